"""Recurrent language models."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, Progress, ProgressGuard, PythonCall, as_dict, call, check_list, create, decode_text, encode_path, encode_text, lib, sized
from .options import c_options
from .symbols import Symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import RnnlmTrainOptions


class Epoch(NamedTuple):
    """Results of one epoch of training."""

    epoch: int
    learning_rate: float
    train_perplexity: float
    valid_perplexity: float
    seconds: float
    num_tokens: int
    num_oov: int


class RnnLM(Handle):
    """A recurrent language model: faster-rnnlm's files, or LSTM and GRU models as safetensors. Immutable; thread-safe."""

    _free = lib.wf_rnnlm_free

    @classmethod
    def open(cls, path: str | os.PathLike[str], unk_symbol: str | None = None) -> RnnLM:
        return cls(create("wf_rnnlm_open", encode_path(path), None if unk_symbol is None else encode_text(unk_symbol)))

    @classmethod
    def train(
        cls,
        train_text: str | os.PathLike[str],
        valid_text: str | os.PathLike[str],
        *,
        on_epoch: Callable[[Epoch], object] | None = None,
        progress: Progress | None = None,
        **options: Unpack[RnnlmTrainOptions],
    ) -> RnnLM:
        """Trains a model on a text with one sentence per line, until the perplexity of the validation text stops improving (`warpfst rnnlm train`).

        `on_epoch` is called after each epoch.
        """

        def report(address: int) -> None:
            raw = _abi.wf_rnnlm_epoch.from_address(address)
            if on_epoch is not None:
                on_epoch(Epoch(*(getattr(raw, name) for name in Epoch._fields)))

        def goes_on(stage: str, fraction: float) -> bool:
            return not reporter.has_raised and (progress is None or progress(stage, fraction) is not False)

        reporter = PythonCall(report)
        callback = ctypes.cast(lib.wf_python_epoch, _abi.wf_rnnlm_epoch_fn)
        inputs = (encode_path(train_text), encode_path(valid_text), c_options("rnnlm_train", options), callback, reporter.pointer)
        try:
            with ProgressGuard(goes_on) as guard:
                return cls(create("wf_rnnlm_train", *inputs, after=(guard.pointer,)))
        finally:
            reporter.raise_stored()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes PATH and PATH.nnet in the format of the faster-rnnlm toolkit."""
        call("wf_rnnlm_write", self.address, encode_path(path))

    def on_device(self, device: str | None) -> RnnLM:
        """Returns the model with its weights also on a GPU ("cuda", "cuda:1"). Its costs and scorers are then computed on that GPU. None or "cpu": the model unchanged."""
        return RnnLM(create("wf_rnnlm_on_device", self.address, None if device is None else encode_text(device)))

    def info(self) -> dict[str, Any]:
        info = sized(_abi.wf_rnnlm_info)
        call("wf_rnnlm_get_info", self.address, ctypes.byref(info))
        values = as_dict(info)
        return {**values, "layer_type": decode_text(values["layer_type"])}

    @property
    def words(self) -> Symbols:
        words = Symbols._share(lib.wf_rnnlm_words(self.address))
        assert words is not None
        return words

    def costs(self, sentences: Sequence[str | Sequence[str]], num_threads: int = 0) -> list[list[float]]:
        """-ln P of each word and of the sentence end, for each sentence. Raises ArgumentError for an unknown word if the model has no unknown-word symbol."""
        split = [sentence.split() if isinstance(sentence, str) else list(sentence) for sentence in check_list(sentences, "sentences")]
        labels = [lib.wf_rnnlm_find(self.address, encode_text(word)) for sentence in split for word in sentence]
        first = [0]
        for sentence in split:
            first.append(first[-1] + len(sentence))
        costs = (ctypes.c_float * (len(labels) + len(split)))()
        call("wf_rnnlm_score", self.address, (ctypes.c_int32 * len(labels))(*labels), (ctypes.c_uint64 * len(first))(*first), len(split), num_threads, costs)
        return [list(costs[first[i] + i : first[i + 1] + i + 1]) for i in range(len(split))]
