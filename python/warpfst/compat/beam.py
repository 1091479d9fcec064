"""The library's beam search (warpfst_compat.h), which the modules of this package share."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .. import _abi
from .._library import Handle, call, create, encode_text, exception_of, lib
from ..options import c_options
from ..scores import Batch


class Searcher(Handle):
    """What a search is made of: the fields of wf_beam_parts."""

    _free = lib.wf_beam_searcher_free

    def __init__(self, **parts: Any) -> None:
        super().__init__(create("wf_beam_searcher_create", ctypes.byref(_abi.wf_beam_parts(**parts))))


class Search(Handle):
    """One utterance in progress."""

    _free = lib.wf_beam_search_free

    def __init__(self, searcher: Searcher, options: dict[str, Any]) -> None:
        super().__init__(create("wf_beam_search_create", searcher.address, None, c_options("beam", options)))

    def result(self, look_back: int = -1) -> Result:
        """The hypotheses of the newest frame; with look_back >= 0 the best one without its newest frames."""
        return Result(create("wf_beam_search_result", self.address, look_back))


class Result(Handle):
    """Owns the memory of its paths."""

    _free = lib.wf_beam_result_free

    @property
    def value(self) -> Any:
        return ctypes.cast(self.address, ctypes.POINTER(_abi.wf_beam_result)).contents

    @property
    def paths(self) -> list[Any]:
        """The wf_beam_paths, best first."""
        value = self.value
        return value.paths[: value.num_paths]  # type: ignore[no-any-return]


def texts(words: Sequence[str]) -> Any:
    """An array of C strings."""
    return (ctypes.c_char_p * len(words))(*(encode_text(word) for word in words))


def decode(searcher: Searcher, batch: Batch, options: dict[str, Any], hotwords: Any = (), lm_state: int = -1) -> list[Result]:
    """The result of each utterance. Raises the error of the first that failed. hotwords: of `texts`."""
    inputs = (_abi.wf_beam_input * len(batch))()
    for i, one in enumerate(inputs):
        one.scores, one.lm_state = batch.scores[i], lm_state
        if hotwords:
            one.hotwords, one.num_hotwords = hotwords, len(hotwords)
    pointers = (ctypes.POINTER(_abi.wf_beam_result) * len(batch))()
    call("wf_beam_decode", searcher.address, inputs, len(batch), c_options("beam", options), pointers)
    results = [Result(ctypes.addressof(pointer.contents)) for pointer in pointers]
    for one in results:
        if one.value.status != _abi.WF_OK:
            raise exception_of(one.value.status, one.value.message.decode("utf-8", "replace"))
    return results
