"""Forced alignment: when the tokens of a known text occur in CTC scores."""

from __future__ import annotations

import array
import ctypes
import functools
import itertools
import math
import struct
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
    """A token in the frames [start, end). `log_prob` is the sum of its scores there, in nats. If its word was left out, start equals end."""

    column: int
    start: int
    end: int
    log_prob: float

    @property
    def confidence(self) -> float:
        """The geometric mean of the token's probabilities in its frames, in [0, 1]. 0 if it was left out."""
        return math.exp(self.log_prob / (self.end - self.start)) if self.end > self.start else 0.0


def _copy(tokens: Any, count: int) -> bytes:
    return ctypes.string_at(tokens, count * ctypes.sizeof(_abi.wf_aligned_token)) if count else b""


def _tokens(data: bytes) -> list[AlignedToken]:
    return [AlignedToken(*values) for values in struct.iter_unpack("=iiif", data)]


class Alignment:
    """The best path of one utterance. If the utterance failed, `error` is the exception, and the other attributes are empty."""

    def __init__(self, raw: Any, blank: int) -> None:
        self.error: Error | None = None if raw.status == _abi.WF_OK else exception_of(raw.status, raw.message.decode("utf-8", "replace"))
        self.num_frames: int = 0 if self.error else raw.num_frames
        self.log_prob: float = -math.inf if self.error else raw.log_prob  # of the whole path, minus the costs of gaps
        self._tokens = b"" if self.error else _copy(raw.tokens, raw.num_tokens)
        self._garbage = b"" if self.error else _copy(raw.garbage, raw.num_garbage)
        self._blank = blank

    @functools.cached_property
    def tokens(self) -> list[AlignedToken]:
        """The tokens of the target, in its order."""
        return _tokens(self._tokens)

    @functools.cached_property
    def garbage(self) -> list[AlignedToken]:
        """The spans of garbage, with column -1, if option `garbage` allows it."""
        return _tokens(self._garbage)

    @property
    def path(self) -> list[int]:
        """The column of each frame: a token's, the blank's, or -1 for garbage."""
        path = [self._blank] * self.num_frames
        for token in itertools.chain(self.tokens, self.garbage):
            path[token.start : token.end] = [token.column] * (token.end - token.start)
        return path

    def __repr__(self) -> str:
        return f"<Alignment: {self.error}>" if self.error else f"<Alignment: {len(self.tokens)} tokens in {self.num_frames} frames>"


def _set_tokens(one: Any, target: Any, words: Any) -> None:
    """Sets the tokens and words of an input, which keeps their memory alive."""
    columns = array.array("i", target.tolist() if hasattr(target, "tolist") else target)
    one.num_tokens = len(columns)
    one.tokens = (ctypes.c_int32 * len(columns)).from_buffer(columns) if columns else None
    if words is not None:
        ends = list(itertools.accumulate(words))
        one.word_ends, one.num_words = (ctypes.c_size_t * len(ends))(*ends), len(ends)


def align(
    log_probs: Any,
    targets: Sequence[Any],
    lengths: Any = None,
    *,
    words: Sequence[Sequence[int]] | None = None,
    keys: Sequence[str] | None = None,
    **options: Unpack[AlignOptions],
) -> list[Alignment]:
    """Finds the best CTC path of given tokens in each utterance: exact, without a beam, on all threads.

    log_probs  log-posteriors in host memory, natural logarithm: [frames, columns], a list of these, or [utterance, frame, column] with `lengths`
    targets    the tokens of each utterance as columns of the scores, without blanks: a list of lists; for a single matrix also one list
    lengths    number of frames of each utterance; None: all frames
    words      for options `garbage` and `skip_words`: the number of tokens of each word of each utterance; None: each token is a word
    keys       names of the utterances for messages
    An utterance that fails (fewer frames than its tokens need, NaN, ...) has an `error` in its result. The others are not affected.
    """
    batch = Batch(log_probs, lengths)
    if len(batch) == 1 and len(targets) > 0 and not hasattr(targets[0], "__len__"):
        targets = [targets]
    for name, given in ("targets", targets), ("words", words), ("keys", keys):
        if given is not None and len(given) != len(batch):
            raise ValueError(f"{len(given)} {name} for {len(batch)} utterances")
    inputs = (_abi.wf_align_input * len(batch))()
    for i, one in enumerate(inputs):
        one.scores = batch.scores[i]
        one.key = None if keys is None else encode_text(keys[i])
        _set_tokens(one, targets[i], None if words is None else words[i])
    results = (ctypes.POINTER(_abi.wf_alignment) * len(batch))()
    try:
        call("wf_align", inputs, len(batch), c_options("align", options), results)
        return [Alignment(pointer.contents, options.get("blank", 0)) for pointer in results]
    finally:
        for pointer in results:
            lib.wf_alignment_free(pointer)
