"""Graphs of k2: dictionaries of tensors, in memory or as icefall saves them: torch.save(HLG.as_dict(), "HLG.pt"). Needs numpy, but not k2; only k2_tensors needs torch."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Any

from .. import _abi
from ..errors import ArgumentError, FormatError
from ..fst.container import Fst
from ..symbols import Symbols
from . import saved_tensors
from .tokens import Path


class _Ragged:
    """What k2 saves of a RaggedTensor with two axes: (row splits, a text, values)."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


_CLASSES = {(module, "RaggedTensor"): _Ragged for module in ("_k2.ragged", "_k2", "k2.ragged", "k2")}


def _plain(value: Any) -> Any:
    """A tensor in host memory as numpy's array; a ragged tensor of k2 as what k2 saves of it."""
    if hasattr(value, "numpy"):
        return value.detach().cpu().numpy()
    ragged = _Ragged()
    ragged.state = tuple(part.detach().cpu().numpy() if hasattr(part, "numpy") else part for part in value.__getstate__())
    return ragged


def _words_of(given: Any, count: int, source: str) -> tuple[Any, Any]:
    """The words of all arcs, one arc after the other, and how many each arc has."""
    import numpy as np

    ragged = isinstance(given, _Ragged)
    parts = tuple(given.state) if ragged and isinstance(given.state, tuple) else (np.arange(count + 1), "", given)
    splits, words = parts[0], parts[-1]
    if len(parts) != 3 or any(not isinstance(each, np.ndarray) or each.ndim != 1 or each.dtype.kind != "i" for each in (splits, words)):
        raise FormatError(f"{source}: aux_labels: expected one tensor of words, or one ragged tensor with two axes")
    if len(splits) != count + 1 or splits[0] != 0 or splits[-1] != len(words) or (np.diff(splits) < 0).any():
        raise FormatError(f"{source}: aux_labels: expected words, or a row of words, for each of {count} arcs")
    owners = np.repeat(np.arange(count), np.diff(splits))
    kept = words > 0  # 0 is no word, and -1 stands on arcs to the final state
    return words[kept], np.bincount(owners[kept], minlength=count)


def k2_tensors(fst: Fst, columns: bool = True) -> dict[str, Any]:
    """An fst as k2 has it, int32 tensors of torch: k2.Fsa.from_dict(k2_tensors(fst)). `k2_fst` is the way back.

    arcs        [num_arcs + num_finals, 4]: source, target, label, bits of the float32 score, which is -cost. The last state is the final one; arcs to it have label -1
    aux_labels  [num_arcs + num_finals]: output labels, -1 on the arcs to the final state
    columns     label i of k2 is input label i + 1, as in decoding graphs; then arcs without input label are an error. False: labels are the same, 0 is epsilon
    """
    import numpy as np
    import torch

    raw, count = np.asarray(fst.arcs), fst.num_states
    if columns and len(raw) and (raw["ilabel"] == 0).any():
        raise ArgumentError("an arc has no input label, and k2 would read label 0 as column 0: remove epsilons (wf.fst.rmepsilon), or give columns=False")
    number = np.arange(count, dtype=np.int32)  # k2 begins in state 0
    if fst.start:
        number[[0, fst.start]] = number[[fst.start, 0]]
    finals = np.array(fst.final_costs, dtype=np.float32)
    ends = np.flatnonzero(np.isfinite(finals))
    begins = np.asarray(fst.arc_offsets).astype(np.int64)
    sources = np.repeat(np.arange(count), begins[1:] - begins[:-1])
    fields = {name: raw[name] if len(raw) else np.zeros(0, np.int32) for name in ("nextstate", "weight", "ilabel", "olabel")}
    arcs = np.empty((len(raw) + len(ends), 4), np.int32)
    arcs[:, 0] = number[np.concatenate((sources, ends)).astype(np.int64)]
    arcs[:, 1] = np.concatenate((number[fields["nextstate"].astype(np.int64)], np.full(len(ends), count)))
    arcs[:, 2] = np.concatenate((fields["ilabel"] - (1 if columns else 0), np.full(len(ends), -1)))
    arcs[:, 3] = (-np.concatenate((fields["weight"], finals[ends])).astype(np.float32)).view(np.int32)
    aux = np.concatenate((fields["olabel"], np.full(len(ends), -1))).astype(np.int32)
    order = np.argsort(arcs[:, 0], kind="stable")
    return {"arcs": torch.from_numpy(arcs[order]), "aux_labels": torch.from_numpy(aux[order])}


def k2_fst(source: Path | Mapping[str, Any], words: Path | Symbols | None = None, columns: bool = True) -> Fst:
    """A graph of k2 for the decoder, from a file (HLG.pt, LG.pt) or from fsa.as_dict(): wf.Graph(k2_fst("HLG.pt", "words.txt")).

    words    table of the words, such as icefall's words.txt
    columns  False: input labels are k2's labels, 0 is epsilon
    Otherwise label i of k2 is column i of the scores (0: the blank), so all arcs read a frame: the graph must have no epsilons on its token side, as icefall's HLG. An arc with
    several words becomes a chain of arcs. Words have no exact times, since the file does not tell where they begin. Nothing that the file names is called. FileError, FormatError.
    """
    import numpy as np

    if isinstance(source, Mapping):
        saved: Any = {name: _plain(value) for name, value in source.items() if name in ("arcs", "aux_labels")}
        source = "fsa"
    else:
        saved, source = saved_tensors.load(source, _CLASSES), os.fspath(source)
    arcs = saved.get("arcs") if isinstance(saved, dict) else None
    if not isinstance(arcs, np.ndarray) or arcs.dtype != np.int32 or arcs.ndim != 2 or arcs.shape[1] != 4 or len(arcs) == 0:
        raise FormatError(f"{source}: expected the dictionary of one fsa, with int32 arcs of four columns")
    origin, target, label, bits = arcs.T
    if origin.min() < 0 or target.min() < 0 or label.min() < -1:
        raise FormatError(f"{source}: an arc has a state or a label below 0")
    cost, final, count = -np.ascontiguousarray(bits).view(np.float32), max(origin.max(), target.max()), len(arcs)
    if final > 100 * count + 1000:
        raise FormatError(f"{source}: state {final} in a graph of {count} arcs")
    emits = label >= 0
    if (emits & (target == final)).any() or (~emits & (target != final)).any():
        raise FormatError(f"{source}: label -1 must be on the arcs to the last state, and on no others")
    given = saved.get("aux_labels")
    all_words, sizes = _words_of(label if given is None else given, count, source)
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
    raw["ilabel"] = np.where(number == 0, label[owner] + (1 if columns else 0), 0)
    raw["olabel"][np.repeat(sizes[emits] > 0, parts)] = all_words
    sources: Any = np.where(number == 0, origin[owner], np.concatenate(([0], inner[:-1]))).astype("u4")
    ends = {int(state): float(value) for state, value in sorted(zip(origin[~emits], cost[~emits]), key=lambda end: -end[1])}
    table = words if isinstance(words, Symbols) or words is None else Symbols.read(words)
    num_states = int(final) + 1 + int((~is_last).sum())
    buffers = (ctypes.c_uint32 * len(owner)).from_buffer(sources), (_abi.wf_arc * len(owner)).from_buffer(raw)
    return Fst._built("tropical", num_states, 0, ends, len(owner), *buffers, None, table)
