"""Graphs of k2, as icefall saves them: torch.save(HLG.as_dict(), "HLG.pt"). Needs torch and numpy, not k2."""

from __future__ import annotations

import ctypes
import os
import pickle
import types
from typing import Any

from .. import _abi
from ..errors import FormatError
from ..fst import Fst
from ..symbols import Symbols
from .tokens import Path

_SAFE = {"collections": ("OrderedDict",), "torch._utils": ("_rebuild_tensor", "_rebuild_tensor_v2")}


class _Ragged:
    """What k2 saves of a RaggedTensor with two axes: (row splits, a text, values)."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Makes tensors and ragged tensors, and calls nothing else that a file names."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "RaggedTensor" and module.split(".")[0] in ("_k2", "k2"):
            return _Ragged
        if name in _SAFE.get(module, ()) or (module in ("torch", "torch.storage") and name.endswith("Storage")):
            return super().find_class(module, name)
        raise FormatError(f"the file needs {module}.{name}, which is no part of an fsa of k2")


def _load(file: Any, **options: Any) -> Any:
    return _Unpickler(file, **options).load()


def _words_of(given: Any, count: int, source: str) -> tuple[Any, Any]:
    """The words of all arcs, one arc after the other, and how many each arc has."""
    import numpy as np

    splits, values = (np.arange(count + 1), given) if not isinstance(given, _Ragged) else (given.state[0].numpy(), given.state[-1])
    if len(splits) != count + 1 or (isinstance(given, _Ragged) and len(given.state) != 3):
        raise FormatError(f"{source}: aux_labels: expected a row of words for each of {count} arcs")
    words = values.numpy()
    owners = np.repeat(np.arange(count), np.diff(splits))
    if len(owners) != len(words):
        raise FormatError(f"{source}: aux_labels: {len(words)} words in rows for {len(owners)}")
    kept = words > 0  # 0 is no word, and -1 stands on arcs to the final state
    return words[kept], np.bincount(owners[kept], minlength=count)


def k2_fst(path: Path, words: Path | Symbols | None = None) -> Fst:
    """Reads a graph of k2 (HLG.pt, LG.pt) for the decoder: wf.Graph(k2_fst("HLG.pt", "words.txt")).

    words  table of the words, such as icefall's words.txt
    Label i of k2 is column i of the scores (0: the blank), so all arcs read a frame: the graph must have no epsilons on its token side, as icefall's HLG. An arc with
    several words becomes a chain of arcs. Words have no exact times, since the file does not tell where they begin. FormatError: the file holds something else.
    """
    import numpy as np
    import torch

    source = os.fspath(path)
    loader: Any = types.SimpleNamespace(Unpickler=_Unpickler, load=_load, __name__="pickle")
    saved = torch.load(source, map_location="cpu", weights_only=False, pickle_module=loader)
    arcs = saved.get("arcs") if isinstance(saved, dict) else None
    if arcs is None or arcs.dtype != torch.int32 or arcs.ndim != 2 or arcs.shape[1] != 4 or len(arcs) == 0:
        raise FormatError(f"{source}: expected the dictionary of one fsa, with int32 arcs of four columns")
    origin, target, label, bits = arcs.numpy().T
    if origin.min() < 0 or target.min() < 0 or label.min() < -1:
        raise FormatError(f"{source}: an arc has a state or a label below 0")
    cost, final, count = -np.ascontiguousarray(bits).view(np.float32), max(origin.max(), target.max()), len(arcs)
    emits = label >= 0
    if (emits & (target == final)).any() or (~emits & (target != final)).any():
        raise FormatError(f"{source}: label -1 must be on the arcs to the last state, and on no others")
    given = saved.get("aux_labels")
    all_words, sizes = _words_of(torch.as_tensor(label.copy()) if given is None else given, count, source)
    if sizes[~emits].any():
        raise FormatError(f"{source}: an arc to the final state has a word")
    # An arc with n words is n arcs in a row, at least one.
    parts = np.maximum(sizes, 1)[emits]
    first = np.cumsum(parts) - parts
    owner = np.repeat(np.flatnonzero(emits), parts)
    number = np.arange(len(owner)) - np.repeat(first, parts)  # of the arc in its row
    is_last = number == np.repeat(parts, parts) - 1
    inner = final + np.cumsum(~is_last)  # the state after an arc that is not the last
    raw: Any = np.zeros(len(owner), [("nextstate", "u4"), ("weight", "f4"), ("ilabel", "i4"), ("olabel", "i4")])
    raw["nextstate"] = np.where(is_last, target[owner], inner)
    raw["weight"] = np.where(number == 0, cost[owner], 0)
    raw["ilabel"] = np.where(number == 0, label[owner] + 1, 0)
    raw["olabel"][np.repeat(sizes[emits] > 0, parts)] = all_words
    sources: Any = np.where(number == 0, origin[owner], np.concatenate(([0], inner[:-1]))).astype("u4")
    ends = {int(state): float(value) for state, value in sorted(zip(origin[~emits], cost[~emits]), key=lambda end: -end[1])}
    table = words if isinstance(words, Symbols) or words is None else Symbols.read(words)
    num_states = int(final) + 1 + int((~is_last).sum())
    buffers = (ctypes.c_uint32 * len(owner)).from_buffer(sources), (_abi.wf_arc * len(owner)).from_buffer(raw)
    return Fst._built("tropical", num_states, 0, ends, len(owner), *buffers, None, table)
