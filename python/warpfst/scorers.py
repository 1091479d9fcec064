"""Scorers: costs of words that are not in the graph but are added during the search. Boosts of words and phrases, and language models."""

from __future__ import annotations

import ctypes
import os
import pathlib
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _abi
from ._library import Handle, Progress, ProgressGuard, as_dict, call, check, create, encode_path, encode_text, lib, sized
from .fst import Fst
from .lm import LM, costs_of
from .options import c_options
from .rnnlm import RnnLM
from .symbols import ExtendedSymbols, Symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import NgramScorerOptions, RnnScorerOptions, WlmOptions


class LargeLM(Handle):
    """A large n-gram model in a memory-mapped file, for scoring during the search. With `subtract`, the difference to the small model of a graph. Immutable."""

    _free = lib.wf_wlm_free

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LargeLM:
        """Opens a file made by `build` or `warpfst lm build`."""
        return cls(create("wf_wlm_open", encode_path(path)))

    @classmethod
    def build(cls, arpa: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Unpack[WlmOptions]) -> LargeLM:
        """Makes the file from an ARPA file of any size, or from another file that LM.read can read, and opens it."""
        with ProgressGuard(progress) as guard:
            call("wf_wlm_build", encode_path(arpa), encode_path(path), None, c_options("wlm", options), None, None, guard.pointer)
        return cls.open(path)

    def make_table(self, *, progress: Progress | None = None) -> None:
        """Builds an in-memory table (21 bytes per n-gram) that makes look-ups on the CPU several times faster; costs are the same.

        Not thread-safe: call it before sharing the model.
        """
        with ProgressGuard(progress) as guard:
            call("wf_wlm_make_table", self.address, guard.pointer)

    def info(self) -> dict[str, Any]:
        info = sized(_abi.wf_wlm_info)
        call("wf_wlm_get_info", self.address, ctypes.byref(info))
        values = as_dict(info)
        return {**values, "num_ngrams": list(values["num_ngrams"][1 : info.order + 1])}

    @property
    def words(self) -> Symbols:
        words = Symbols._share(lib.wf_wlm_words(self.address))
        assert words is not None
        return words

    def verify(self, progress: Progress | None = None) -> None:
        """Checks the checksums, numbers and look-up tables of the file."""
        with ProgressGuard(progress) as guard:
            call("wf_wlm_verify", self.address, guard.pointer)

    def costs(self, sentence: str | Sequence[str], bos: bool = True, eos: bool = True) -> list[float]:
        """Like LM.costs. Costs of a difference can be negative."""
        return costs_of("wf_wlm", self.address, self.words, sentence, bos, eos)

    def to_fst(self, backoff_label: int, words: Symbols | None = None) -> Fst:
        """The model as an acceptor over `words` (None: its own), for compose(graph.fst, ..., phi_label=backoff_label).

        Decoding with the composition gives the same costs as decoding with the graph and this model as a scorer.
        """
        return Fst(create("wf_wlm_to_fst", self.address, Symbols._address_or_none(words), backoff_label))


class Scorer(Handle):
    """A deterministic automaton that gives costs to words. Immutable; any number of decoders and threads can use it. `a + b` adds the costs of two scorers."""

    _free = lib.wf_scorer_free

    @classmethod
    def boost(cls, boosts: Boosts, words: Symbols | ExtendedSymbols | None = None) -> Scorer:
        """Favours words or phrases (words separated by spaces). `boosts`: word or phrase -> boost in nats; a negative boost disfavours it. Use at most about beam / 2.

        A phrase whose boost is None gets `boost_by_length` of its text; a set of phrases gives all of them that. Words are given as texts of the symbol table `words`,
        or as labels, which need a boost.
        """
        table = words if words is None or isinstance(words, ExtendedSymbols) else check(words, Symbols, "words")
        given: Mapping[Any, float | None] = boosts if isinstance(boosts, Mapping) else dict.fromkeys(sorted(boosts))
        nats = [boost_by_length(phrase) if value is None else value for phrase, value in given.items()]
        phrases = [[_label(word, table) for word in (phrase.split() if isinstance(phrase, str) else [phrase])] for phrase in given]
        labels = [label for phrase in phrases for label in phrase]
        c_labels, values, count = (ctypes.c_int32 * len(labels))(*labels), (ctypes.c_float * len(phrases))(*nats), len(phrases)
        if all(len(phrase) == 1 for phrase in phrases):
            return cls(create("wf_scorer_boost_words", c_labels, values, count))
        offsets = [0]
        for phrase in phrases:
            offsets.append(offsets[-1] + len(phrase))
        return cls(create("wf_scorer_boost_phrases", c_labels, (ctypes.c_uint64 * len(offsets))(*offsets), values, count))

    @classmethod
    def from_lm(cls, lm: LargeLM | str | os.PathLike[str], words: Symbols | None = None, **options: Unpack[NgramScorerOptions]) -> Scorer:
        """A scorer of a large n-gram model. `words`: the graph's symbol table, whose texts are looked up in the model; without it, labels are the model's own.

        With `lm_scale` below 0 the costs are subtracted: an internal language model, in a chain with another (`a + b`).
        """
        model = lm if isinstance(lm, LargeLM) else LargeLM.open(lm)
        return cls(create("wf_scorer_from_lm", model.address, Symbols._address_or_none(words), c_options("ngram_scorer", options)))

    @classmethod
    def from_rnnlm(
        cls,
        rnnlm: RnnLM | str | os.PathLike[str],
        ngram: LM | None = None,
        small: LM | None = None,
        words: Symbols | None = None,
        **options: Unpack[RnnScorerOptions],
    ) -> Scorer:
        """A scorer of a recurrent model, interpolated with `ngram`. The costs of `small`, the model that the graph was built with, are subtracted. `words`: see from_lm."""
        model = rnnlm if isinstance(rnnlm, RnnLM) else RnnLM.open(rnnlm)
        others = (LM._address_or_none(ngram), LM._address_or_none(small), Symbols._address_or_none(words))
        return cls(create("wf_scorer_from_rnnlm", model.address, *others, c_options("rnn_scorer", options)))

    def rnn_stats(self) -> dict[str, int]:
        """Counters of a scorer made by from_rnnlm: requests, cache hits, hidden states computed, ..."""
        stats = sized(_abi.wf_rnn_scorer_stats)
        call("wf_scorer_rnn_stats", self.address, ctypes.byref(stats))
        return as_dict(stats)

    def __add__(self, other: Scorer) -> Scorer:
        return Scorer(create("wf_scorer_chain", self.address, Scorer._address_of(other)))


_MAPPED = b"\x89WLM\r\n\x1a\n"  # the first bytes of a LargeLM's file


def open_model(path: str | os.PathLike[str]) -> LM | LargeLM | RnnLM:
    """Implements LM.open."""
    if _is_recurrent(path):
        return RnnLM.open(path)
    return LargeLM.open(path) if _is_mapped(path) else LM.read(path)


def _is_recurrent(path: str | os.PathLike[str]) -> bool:
    name = os.fspath(path)
    return name.endswith(".safetensors") or any(os.path.exists(f"{name}.nnet{end}") for end in ("", ".gz"))


def _is_mapped(path: str | os.PathLike[str]) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAPPED)) == _MAPPED
    except OSError:
        return False  # opening it raises the error


def _mapped(model: LM | str | os.PathLike[str]) -> LargeLM:
    """Converts a model to a LargeLM in a temporary file, which is deleted after it is opened."""
    with tempfile.TemporaryDirectory() as folder:
        source: str | os.PathLike[str] = pathlib.Path(folder, "model.arpa")
        if isinstance(model, LM):
            model.write_arpa(source)
        else:
            source = model
        return LargeLM.build(source, pathlib.Path(folder, "model.wlm"))


AnyLM = Union[LM, LargeLM, RnnLM, Scorer, str, "os.PathLike[str]"]


def lm_scorer(lm: AnyLM | Sequence[AnyLM], words: Symbols | None) -> Scorer:
    """A scorer for a model of any type; for several models, the sum of their scorers."""
    if isinstance(lm, Scorer):
        return lm
    if isinstance(lm, (str, os.PathLike)):
        lm = RnnLM.open(lm) if _is_recurrent(lm) else LargeLM.open(lm) if _is_mapped(lm) else _mapped(lm)
    if isinstance(lm, RnnLM):
        return Scorer.from_rnnlm(lm, words=words)
    if isinstance(lm, (LM, LargeLM)):
        return Scorer.from_lm(lm if isinstance(lm, LargeLM) else _mapped(lm), words)
    if not isinstance(lm, Sequence) or len(lm) == 0:
        raise TypeError(f"lm: expected a model, its path, a Scorer, or a list of these, found {type(lm).__name__}")
    first, *others = (lm_scorer(one, words) for one in lm)
    for other in others:
        first = first + other
    return first


def boost_by_length(phrase: str, per_letter: float = 0.6) -> float:
    """A boost in nats for a phrase of this text: `per_letter` for each letter, of which at most 12 of each word count. For words listed without a boost."""
    value: float = lib.wf_boost_by_length(encode_text(phrase), per_letter)
    return value


Boosts = Union[Mapping[str, Optional[float]], Mapping[int, float], AbstractSet[str]]
Boost = Union[Scorer, Boosts]


def _label(word: str | int, words: Symbols | ExtendedSymbols | None) -> int:
    if isinstance(word, str):
        label = words.find(word) if words is not None else None
        if label is None:
            raise ValueError(f"{word!r} is not a word of the graph" if words is not None else f"{word!r}: the graph has no symbol table of words, so words must be given as labels")
        return label
    if not 0 < word < 2**31:
        raise ValueError(f"label {word} is outside 1 to 2^31 - 1")
    return word


class BoostCache:
    """The scorers of the lists that a decoder was given, each chained to `base`, so that a list that is given again is neither made again nor copied to a GPU again.

    A mapping is found by its contents, a Scorer by its identity. Least recently used mappings are dropped first. Thread-safe.
    """

    _CAPACITY = 250_000  # phrases; a list counts as 100 more

    def __init__(self, base: Scorer | None) -> None:
        self._base = base
        self._lock = threading.Lock()
        self._chains: weakref.WeakKeyDictionary[Scorer, Scorer] = weakref.WeakKeyDictionary()
        self._made: dict[tuple[Any, ...], tuple[Scorer, Any]] = {}  # the last one was used last; with the table, so that its id is not used again
        self._size = 0

    def scorer(self, boost: Boost | None, words: Symbols | ExtendedSymbols | None) -> Scorer | None:
        """A scorer of the boosts and of `base`; None for neither."""
        if boost is None:
            return self._base
        with self._lock:
            return self._chained(boost) if isinstance(boost, Scorer) else self._listed(boost, words)

    def _chained(self, boost: Scorer) -> Scorer:
        if self._base is None or boost.address is None:
            return boost
        if boost not in self._chains:
            self._chains[boost] = self._base + boost
        return self._chains[boost]

    def _listed(self, boost: Boosts, words: Symbols | ExtendedSymbols | None) -> Scorer:
        key = (id(words), tuple(boost), tuple(boost.values()) if isinstance(boost, Mapping) else None)
        kept = self._made.pop(key, None)
        if kept is None:
            made = Scorer.boost(boost, words)
            kept = (made if self._base is None else self._base + made, words)
            self._size += len(boost) + 100
        self._made[key] = kept
        while self._size > self._CAPACITY and len(self._made) > 1:
            oldest = next(iter(self._made))
            del self._made[oldest]
            self._size -= len(oldest[1]) + 100
        return kept[0]


def for_batch(boost: Boost | Sequence[Boost | None], tables: Sequence[Symbols | ExtendedSymbols | None], cache: BoostCache) -> list[Scorer | None]:
    """A scorer for each utterance, from one boost for all utterances or one for each. `tables`: word table of each utterance."""
    each = [boost] * len(tables) if isinstance(boost, (Scorer, Mapping, AbstractSet)) else boost
    if len(each) != len(tables):
        raise ValueError(f"{len(each)} boosts for {len(tables)} utterances")
    made: dict[tuple[int, int], Scorer | None] = {}
    for one, table in zip(each, tables):
        if (id(one), id(table)) not in made:
            made[id(one), id(table)] = None if one is None else cache.scorer(one, table)
    return [made[id(one), id(table)] for one, table in zip(each, tables)]
