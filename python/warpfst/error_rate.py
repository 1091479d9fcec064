"""Word error rate, computed like NIST's sclite."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _abi
from ._library import Handle, call, check_list, create, decode_text, encode_path, encode_text, lib
from .options import c_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import WerOptions


Utterance = Union[str, Sequence[str]]
Transcripts = Union[str, Mapping[str, Utterance], Sequence[Utterance]]


class Pair(NamedTuple):
    """One step of an alignment: "=" correct, "S" substitution, "D" deletion, "I" insertion."""

    step: str
    reference: str | None
    hypothesis: str | None


class Counts(NamedTuple):
    num_words: int
    num_correct: int
    num_substitutions: int
    num_deletions: int
    num_insertions: int
    num_utterances: int
    num_wrong_utterances: int

    @property
    def num_errors(self) -> int:
        return self.num_substitutions + self.num_deletions + self.num_insertions

    @property
    def percent(self) -> float:
        return float(lib.wf_wer_percent(ctypes.byref(_abi.wf_wer_counts(*self))))

    def __str__(self) -> str:
        return f"WER {self.percent:.2f}% ({self.num_errors} of {self.num_words} words)"


def _counts(raw: Any) -> Counts:
    return Counts(*(getattr(raw, name) for name in Counts._fields))


def _transcript(key: str, words: str | Sequence[str]) -> Any:
    texts = words.split() if isinstance(words, str) else words
    return _abi.wf_transcript(encode_text(key), (ctypes.c_char_p * len(texts))(*(encode_text(text) for text in texts)), len(texts))


class Wer(Handle):
    """Totals over utterances, and the alignment of the last one. Not thread-safe."""

    _free = lib.wf_wer_free

    def __init__(self, ignore: Sequence[str] = (), **options: Unpack[WerOptions]) -> None:
        """`ignore`: words removed from references and hypotheses, such as "<unk>"."""
        super().__init__(create("wf_wer_create", c_options("wer", options)))
        for word in check_list(ignore, "ignore"):
            call("wf_wer_ignore", self.address, encode_text(word))

    def add(self, reference: str | Sequence[str], hypothesis: str | Sequence[str], key: str = "") -> Counts:
        """Aligns one utterance, adds it to the totals, and returns its counts. Words are given as a text with spaces between them, or as a list."""
        counts = _abi.wf_wer_counts()
        left, right = _transcript(key, reference), _transcript(key, hypothesis)
        call("wf_wer_add", self.address, ctypes.byref(left), ctypes.byref(right), ctypes.byref(counts))
        return _counts(counts)

    @property
    def alignment(self) -> list[Pair]:
        """The alignment of the utterance added last."""
        count = ctypes.c_size_t()
        pairs = lib.wf_wer_alignment(self.address, ctypes.byref(count))
        return [Pair(pair.step.decode(), decode_text(pair.reference), decode_text(pair.hypothesis)) for pair in pairs[: count.value]]

    @property
    def totals(self) -> Counts:
        return _counts(lib.wf_wer_totals(self.address))


def wer(references: Transcripts, hypotheses: Transcripts | Mapping[str, Utterance | None] | Sequence[Utterance | None], **options: Unpack[WerOptions]) -> Counts:
    """Word error rate of utterances: two lists in the same order, two mappings by key, or two texts, which are one utterance.

    An utterance is a text with spaces between its words, or a list of words. A hypothesis that is None (`Results.texts` of an utterance that failed), or that a mapping
    lacks, counts as empty.
    """
    total = Wer(**options)
    kinds = [next((name for kind, name in ((str, "a text"), (Mapping, "a mapping")) if isinstance(each, kind)), "a list") for each in (references, hypotheses)]
    if kinds[0] != kinds[1]:
        raise TypeError(f"references and hypotheses must both be lists, mappings or texts, found {kinds[0]} and {kinds[1]}")
    if isinstance(references, str) and isinstance(hypotheses, str):
        total.add(references, hypotheses)
    elif isinstance(references, Mapping) and isinstance(hypotheses, Mapping):
        if strangers := set(hypotheses) - set(references):
            raise ValueError(f"{len(strangers)} hypotheses without a reference, such as {min(strangers)!r}")
        for key, words in references.items():
            hypothesis = hypotheses.get(key)
            total.add(words, "" if hypothesis is None else hypothesis, key)
    else:
        if len(references) != len(hypotheses):
            raise ValueError(f"{len(references)} references and {len(hypotheses)} hypotheses")
        for reference, other in zip(references, hypotheses):
            total.add(reference, "" if other is None else other)
    return total.totals


class _Transcripts(Handle):
    _free = lib.wf_transcripts_free


def read_transcripts(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Reads the words of each utterance from Kaldi text, sclite trn, CTM, or JSON lines. The format is detected from the content."""
    with _Transcripts(create("wf_transcripts_read", encode_path(path), _abi.WF_TRANSCRIPT_AUTO)) as table:
        result = {}
        for i in range(lib.wf_transcripts_count(table.address)):
            one = lib.wf_transcripts_at(table.address, i)
            result[decode_text(one.key) or ""] = [decode_text(word) or "" for word in one.words[: one.num_words]]
        return result
