"""The decoders and their options."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import Any, Union

from .... import _abi
from ...._library import call, lib
from ....errors import ArgumentError, StateError, UnsupportedError
from ....scores import Batch
from ... import beam
from ...ignored import warn_ignored
from .lm import KenLM, LmCall, ZeroLM
from .trie import Trie

_WIDEST = 1e30  # of a beam
_NO_TRANSITIONS = "only ASG has transitions"


class CriterionType(enum.Enum):
    """What the emissions were trained with."""

    ASG = 0
    CTC = 1
    S2S = 2


@dataclasses.dataclass
class LexiconDecoderOptions:
    """Options of `LexiconDecoder`; all have an effect."""

    beam_size: int
    beam_size_token: int
    beam_threshold: float
    lm_weight: float
    word_score: float
    unk_score: float
    sil_score: float
    log_add: bool
    criterion_type: CriterionType


@dataclasses.dataclass
class LexiconFreeDecoderOptions:
    """Options of `LexiconFreeDecoder`; all have an effect."""

    beam_size: int
    beam_size_token: int
    beam_threshold: float
    lm_weight: float
    sil_score: float
    log_add: bool
    criterion_type: CriterionType


Options = Union[LexiconDecoderOptions, LexiconFreeDecoderOptions]


class DecodeResult:
    """A hypothesis: score = emittingModelScore + lm_weight * lmScore + the scores of words and silence.

    words   for each frame: the word that ends in it, else -1. There is one frame more before the first, and one at the end
    tokens  for each of these frames: its token. With repetitions and blanks
    """

    def __init__(self, length: int = 0) -> None:
        self.score = self.emittingModelScore = self.lmScore = 0.0
        self._length, self._path = length, None
        self._owner: beam.Result | None = None
        self._words: list[int] | None = [-1] * length
        self._tokens: list[int] | None = [-1] * length

    @classmethod
    def _of(cls, owner: beam.Result, path: Any, length: int) -> DecodeResult:
        result = cls()
        result.score, result.emittingModelScore, result.lmScore = path.score, path.token_score, path.lm_score
        result._owner, result._path, result._length = owner, path, length
        result._words = result._tokens = None
        return result

    @property
    def words(self) -> list[int]:
        if self._words is None:
            assert self._path is not None
            self._words = self._path.words[: self._length]
        return self._words

    @property
    def tokens(self) -> list[int]:
        if self._tokens is None:
            assert self._path is not None
            self._tokens = self._path.tokens[: self._length]
        return self._tokens


def _results(result: beam.Result) -> list[DecodeResult]:
    return [DecodeResult._of(result, path, result.value.length) for path in result.paths]


class BeamDecoder:
    """What both decoders have: an utterance in one piece (`decode`), or step by step. One thread at a time."""

    def __init__(
        self, options: Options, trie: Trie | None, lm: Any, silence: int, blank: int, unknown: int, transitions: Sequence[float], is_token_lm: bool, blank_skip: float = 0
    ) -> None:
        if options.criterion_type == CriterionType.S2S:
            raise UnsupportedError("criterion_type=S2S is not supported, only CTC and ASG: sequence-to-sequence models need their own search")
        if not all(callable(getattr(lm, name, None)) for name in ("start", "score", "finish")):
            raise TypeError(f"the language model is a {type(lm).__name__}, which lacks start, score or finish; for an n-gram model, use KenLM")
        for name, number in (("silence", silence), ("blank", blank), ("unknown word", unknown)):
            if not -(2**31) <= number < 2**31:
                raise ArgumentError(f"{name} {number}, expected a number of 32 bits")
        self._options, self._silence, self._blank, self._transitions, self._lm = options, silence, blank, list(transitions), lm
        asg = options.criterion_type == CriterionType.ASG
        nodes, words = trie.flat() if trie is not None else (None, [])
        flat_words = (ctypes.c_int32 * len(words))(*words)
        flat_transitions = array.array("f", self._transitions if asg else [])
        parts: dict[str, Any] = {"nodes": nodes, "num_nodes": 0 if nodes is None else len(nodes), "words": flat_words, "num_words": len(words)}
        parts.update(silence=silence, blank=blank, unknown_word=unknown)
        if flat_transitions:
            parts.update(transitions=(ctypes.c_float * len(flat_transitions)).from_buffer(flat_transitions), num_transitions=len(flat_transitions))
        self._function: LmCall | None = None
        if type(lm) is KenLM:
            parts.update(lm=lm.model.address, lm_labels=lm.labels, num_lm_labels=len(lm.labels))
        elif type(lm) is not ZeroLM:
            self._function = LmCall(lm)
            parts.update(lm_fn=ctypes.cast(lib.wf_python_score, _abi.wf_beam_lm_fn), user=self._function.pointer)
        self._searcher = beam.Searcher(**parts)
        self._values = _values(options, is_token_lm, blank_skip)
        beam.Search(self._searcher, self._values).close()  # refuses wrong options
        self._search: beam.Search | None = None

    @property
    def calls_python(self) -> bool:
        """Is the language model a function in Python?"""
        return self._function is not None

    def _check_not_running(self) -> None:
        if self._function is not None and self._function.is_running:
            raise StateError("called from the language model of the same decoder")

    def _begun(self) -> beam.Search:
        self._check_not_running()
        if self._search is None:
            raise StateError("no utterance has begun: call decode_begin")
        return self._search

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            call(name, *arguments)
        finally:
            if self._function is not None:
                self._function.raise_stored()

    def decode_begin(self) -> None:
        """Begins an utterance."""
        self._check_not_running()
        self._search = beam.Search(self._searcher, self._values)
        if self._function is not None:
            self._function.restart()

    def decode_step(self, emissions: Any, T: int | None = None, N: int | None = None) -> None:
        """Goes on with T frames of N tokens.

        emissions  the address of float32 values [T, N], as a number or a ctypes pointer; or an array or tensor [T, N] in host memory, then T and N may be left out
        """
        self._step(self._begun(), emissions, T, N)

    def _step(self, search: beam.Search, emissions: Any, T: int | None, N: int | None) -> None:
        scores, owner = _scores(emissions, T, N)
        self._call("wf_beam_search_advance", search.address, ctypes.byref(scores))
        del owner

    def decode_end(self) -> None:
        """Ends the utterance."""
        self._call("wf_beam_search_finish", self._begun().address)

    def decode(self, emissions: Any, T: int | None = None, N: int | None = None) -> list[DecodeResult]:
        """All hypotheses of an utterance, best first. Arguments as for `decode_step`."""
        self.decode_begin()
        self.decode_step(emissions, T, N)
        self.decode_end()
        return self.get_all_final_hypothesis()

    def decode_batch(self, batch: Batch, count: int) -> list[list[DecodeResult]]:
        """The best `count` hypotheses of each utterance, by all processors, unless the language model is a function in Python."""
        self._check_not_running()
        if self._function is not None:
            return [self._decode_alone(scores, count) for scores in batch.scores]
        return [_results(one) for one in beam.decode(self._searcher, batch, {**self._values, "nbest": count})]

    def _decode_alone(self, scores: Any, count: int) -> list[DecodeResult]:
        assert self._function is not None
        self._function.restart()
        with beam.Search(self._searcher, {**self._values, "nbest": count}) as search:
            self._call("wf_beam_search_advance", search.address, ctypes.byref(scores))
            self._call("wf_beam_search_finish", search.address)
            return _results(search.result())

    def get_best_hypothesis(self, look_back: int = 0) -> DecodeResult:
        """The best hypothesis of the frames so far without the last `look_back`, up to the frame after the end of a word. An empty one: there is none."""
        search = self._begun()
        results = _results(search.result(look_back)) if look_back >= 0 else []
        return results[0] if results else DecodeResult()

    def get_all_final_hypothesis(self) -> list[DecodeResult]:
        """All hypotheses of the frames so far, best first; empty before the first frame."""
        search = self._begun()
        return _results(search.result()) if self.num_frames else []

    @property
    def num_frames(self) -> int:
        """Frames that were not pruned."""
        return int(self._begun().result(0).value.num_frames)

    def prune(self, look_back: int = 0) -> None:
        """Frees the frames that `get_best_hypothesis(look_back)` has. The best score becomes 0."""
        self._call("wf_beam_search_prune", self._begun().address, look_back)


def _scores(emissions: Any, frames: int | None, columns: int | None) -> tuple[Any, Any]:
    """A wf_scores, and what keeps its memory alive."""
    address = emissions.value if isinstance(emissions, ctypes.c_void_p) else emissions
    if isinstance(address, ctypes._Pointer):
        address = ctypes.cast(address, ctypes.c_void_p).value
    if isinstance(address, int) or address is None:
        if frames is None or columns is None:
            raise ArgumentError("emissions are given by their address, which needs T and N")
        return _abi.wf_scores(data=address, num_frames=frames, num_columns=columns, stride=columns, dtype=_abi.WF_FLOAT32), None
    batch = Batch([emissions])
    scores = batch.scores[0]
    if frames is not None and frames > scores.num_frames or columns is not None and columns != scores.num_columns:
        raise ArgumentError(f"emissions have shape [{scores.num_frames}, {scores.num_columns}], T and N are {frames} and {columns}")
    if frames is not None:
        scores.num_frames = frames
    return scores, batch


def _values(options: Options, is_token_lm: bool, blank_skip: float) -> dict[str, Any]:
    values: dict[str, Any] = {
        "beam_size": options.beam_size,
        "beam_size_token": options.beam_size_token,
        "beam": min(options.beam_threshold, _WIDEST),
        "lm_weight": options.lm_weight,
        "silence_score": options.sil_score,
        "sum_alignments": options.log_add,
        "asg": options.criterion_type == CriterionType.ASG,
        "token_lm": is_token_lm,
        "blank_skip": blank_skip,
    }
    if isinstance(options, LexiconDecoderOptions):
        values["word_score"] = options.word_score
        if options.unk_score > -math.inf:
            # Unknown words can end after any token. If they could hold it, they would be too cheap: the word error rate is higher.
            values.update(unknown_words=True, unknown_score=options.unk_score, hold_word_ends=False)
    return values


class LexiconDecoder(BeamDecoder):
    """A beam search for the words of a trie.

    options        `LexiconDecoderOptions`
    trie           spellings, which are copied
    lm             `KenLM`, `ZeroLM`, or an object with their methods, which is called for each new history
    sil_token_idx  token that may stand between words
    blank_token_idx, unk_token_idx  token of the CTC blank; number of the word that stands for unknown ones
    transitions    of ASG, [token, token before], else empty
    is_token_lm    the language model is one of tokens
    """

    def __init__(
        self,
        options: LexiconDecoderOptions,
        trie: Trie,
        lm: Any,
        sil_token_idx: int,
        blank_token_idx: int,
        unk_token_idx: int,
        transitions: Sequence[float],
        is_token_lm: bool,
    ) -> None:
        if not isinstance(trie, Trie):
            raise TypeError(f"the trie is a {type(trie).__name__}, expected a Trie of this module")
        if options.criterion_type != CriterionType.ASG:
            warn_ignored(_NO_TRANSITIONS, transitions=(list(transitions), []))
        super().__init__(options, trie, lm, sil_token_idx, blank_token_idx, unk_token_idx, transitions, is_token_lm)


class LexiconFreeDecoder(BeamDecoder):
    """A beam search for any tokens, with a language model of tokens. Arguments as for `LexiconDecoder`."""

    def __init__(
        self, options: LexiconFreeDecoderOptions, lm: Any, sil_token_idx: int, blank_token_idx: int, transitions: Sequence[float], *, blank_skip: float = 0
    ) -> None:
        """blank_skip: frames whose blank has at least this probability take no other token; 0: none. flashlight-text lacks it."""
        if options.criterion_type != CriterionType.ASG:
            warn_ignored(_NO_TRANSITIONS, transitions=(list(transitions), []))
        super().__init__(options, None, lm, sil_token_idx, blank_token_idx, -1, transitions, False, blank_skip)

    def get_options(self) -> Options:
        return self._options

    def get_sil_idx(self) -> int:
        return self._silence

    def get_blank_idx(self) -> int:
        return self._blank

    def get_transitions(self) -> list[float]:
        return self._transitions
