"""Forced alignment: when the tokens of a known text occur in CTC scores."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import call, encode_text, exception_of, lib
from .errors import Error
from .options import c_options
from .scores import Batch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import AlignOptions


class AlignedToken(NamedTuple):
    """A token in the frames [start, end). `log_prob` is the sum of its scores there, in nats."""

    column: int
    start: int
    end: int
    log_prob: float

    @property
    def confidence(self) -> float:
        """The geometric mean of the token's probabilities in its frames, in [0, 1]."""
        return math.exp(self.log_prob / (self.end - self.start))


class Alignment:
    """The best path of one utterance. If the utterance failed, `error` is the exception, and the other attributes are empty."""

    def __init__(self, raw: Any, blank: int) -> None:
        self.error: Error | None = None if raw.status == _abi.WF_OK else exception_of(raw.status, raw.message.decode("utf-8", "replace"))
        count = 0 if self.error else raw.num_tokens
        self.tokens = [AlignedToken(one.column, one.start_frame, one.end_frame, one.log_prob) for one in raw.tokens[:count]]
        self.num_frames: int = 0 if self.error else raw.num_frames
        self.log_prob: float = -math.inf if self.error else raw.log_prob  # of the whole path, blanks included
        self._blank = blank

    @property
    def path(self) -> list[int]:
        """The column of each frame: a token's or the blank's."""
        path = [self._blank] * self.num_frames
        for token in self.tokens:
            path[token.start : token.end] = [token.column] * (token.end - token.start)
        return path

    def __repr__(self) -> str:
        return f"<Alignment: {self.error}>" if self.error else f"<Alignment: {len(self.tokens)} tokens in {self.num_frames} frames>"


def align(
    log_probs: Any, targets: Sequence[Any], lengths: Any = None, *, keys: Sequence[str] | None = None, **options: Unpack[AlignOptions]
) -> list[Alignment]:
    """Finds the best CTC path of given tokens in each utterance: exact, without a beam, on all threads.

    log_probs  log-posteriors in host memory, natural logarithm: [frames, columns], a list of these, or [utterance, frame, column] with `lengths`
    targets    the tokens of each utterance as columns of the scores, without blanks: a list of lists; for a single matrix also one list
    lengths    number of frames of each utterance; None: all frames
    keys       names of the utterances for messages
    An utterance that fails (fewer frames than its tokens need, NaN, ...) has an `error` in its result. The others are not affected.
    """
    batch = Batch(log_probs, lengths)
    if len(batch) == 1 and len(targets) > 0 and not hasattr(targets[0], "__len__"):
        targets = [targets]
    if len(targets) != len(batch) or (keys is not None and len(keys) != len(batch)):
        raise ValueError(f"{len(targets)} targets{'' if keys is None else f' and {len(keys)} keys'} for {len(batch)} utterances")
    inputs = (_abi.wf_align_input * len(batch))()
    for i, one in enumerate(inputs):
        columns = [int(column) for column in targets[i]]
        one.scores, one.num_tokens = batch.scores[i], len(columns)
        one.tokens = (ctypes.c_int32 * len(columns))(*columns)
        one.key = None if keys is None else encode_text(keys[i])
    results = (ctypes.POINTER(_abi.wf_alignment) * len(batch))()
    try:
        call("wf_align", inputs, len(batch), c_options("align", options), results)
        return [Alignment(pointer.contents, options.get("blank", 0)) for pointer in results]
    finally:
        for pointer in results:
            lib.wf_alignment_free(pointer)
