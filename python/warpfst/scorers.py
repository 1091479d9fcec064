"""Scorers: costs of words that are not in the graph but are added during the search. Boosts of words and phrases, and language models."""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _abi
from ._library import Handle, as_dict, call, check, create, encode_path, encode_text, lib, sized
from .joining import Joiner
from .lm import LM
from .options import c_options
from .rnnlm import RnnLM
from .symbols import ExtendedSymbols, Symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import NgramScorerOptions, RnnScorerOptions


class Scorer(Handle):
    """A deterministic automaton that gives costs to words. Immutable; any number of decoders and threads can use it. `a + b` adds the costs of two scorers."""

    _free = lib.wf_scorer_free

    @classmethod
    def boost(cls, boosts: Boosts, words: Symbols | ExtendedSymbols | None = None) -> Scorer:
        """Favours words or phrases (words separated by spaces). `boosts`: word or phrase -> boost in nats; a negative boost disfavours it. Use at most about beam / 2.

        A phrase whose boost is None gets `boost_by_length` of its text; a list or a set of phrases gives all of them that. Words are given as texts of the symbol
        table `words`, or as labels, which need a boost. Phrases with words that the table lacks are ignored, and one InputWarning names them.
        """
        table = words if words is None or isinstance(words, ExtendedSymbols) else check(words, Symbols, "words")
        return cls._of_phrases(phrases_of(boosts), table)

    @classmethod
    def _of_phrases(cls, given: Mapping[Any, float | None], words: Symbols | ExtendedSymbols | None, tokens: Symbols | None = None, joiner: Joiner | None = None) -> Scorer:
        """`tokens`: input table of the graph. `joiner`: that of the results. Either way a graph whose words are tokens is known, with which phrases are spelled."""
        phrases = list(given)
        if phrases and all(isinstance(label, int) for label in phrases):
            labels = [_checked(label) for label in phrases]
            nats = [value for value in given.values() if value is not None]
            if len(nats) < len(labels):
                raise TypeError("boost: labels need boosts, {label: nats}; expected phrases as text otherwise")
            return cls(create("wf_scorer_boost_words", (ctypes.c_int32 * len(labels))(*labels), (ctypes.c_float * len(labels))(*nats), len(labels)))
        for phrase in phrases:
            if not isinstance(phrase, str):
                raise TypeError(f"boost: expected phrases as text, or labels alone, found {phrase!r}")
        if words is None and phrases:
            raise ValueError(f"{phrases[0]!r}: the graph has no symbol table of words, so words must be given as labels")
        table = words if isinstance(words, Symbols) else Symbols(_found(phrases, words))
        items, texts, count = sized(_abi.wf_phrase_list), [encode_text(phrase) for phrase in phrases], len(phrases)
        items.phrases, items.boosts, items.count = (ctypes.c_char_p * count)(*texts), (ctypes.c_float * count)(*map(_nats, phrases, given.values())), count
        items.name, items.words, items.tokens, items.joiner = b"boost", table.address, tokens and tokens.address, joiner and joiner.address
        return cls(create("wf_scorer_boost_texts", ctypes.byref(items)))

    @classmethod
    def from_lm(cls, lm: LM | str | os.PathLike[str], words: Symbols | None = None, **options: Unpack[NgramScorerOptions]) -> Scorer:
        """A scorer of an n-gram model. `words`: the graph's symbol table, whose texts are looked up in the model; without it, labels are the model's own.

        With `lm_scale` below 0 the costs are subtracted: an internal language model, in a chain with another (`a + b`).
        """
        model = lm if isinstance(lm, LM) else LM(create("wf_lm_open_mapped", encode_path(lm)))
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
        call("wf_scorer_get_rnn_stats", self.address, ctypes.byref(stats))
        return as_dict(stats)

    def __add__(self, other: Scorer) -> Scorer:
        return Scorer(create("wf_scorer_chain", self.address, Scorer._address_of(other)))


AnyLM = Union[LM, RnnLM, Scorer, str, "os.PathLike[str]"]


def lm_scorer(lm: AnyLM | Sequence[AnyLM], words: Symbols | None) -> Scorer:
    """A scorer for a model of any type; for several models, the sum of their scorers."""
    if isinstance(lm, Scorer):
        return lm
    if isinstance(lm, (str, os.PathLike)):
        lm = LM.open(lm, mapped=True)
    if isinstance(lm, RnnLM):
        return Scorer.from_rnnlm(lm, words=words)
    if isinstance(lm, LM):
        return Scorer.from_lm(lm, words)
    if not isinstance(lm, Sequence) or len(lm) == 0:
        raise TypeError(f"lm: expected a model, its path, a Scorer, or a list of these, found {type(lm).__name__}")
    first, *others = (lm_scorer(one, words) for one in lm)
    for other in others:
        first = first + other
    return first


def boost_by_length(phrase: str, per_letter: float | None = None) -> float:
    """The boost in nats of a phrase that is listed without one: `per_letter` for each letter, of which at most 12 of each word count.

    `per_letter` None: 0.6 for a word, 1 for a phrase of two words or more.
    """
    value: float = lib.wf_boost_by_length(encode_text(phrase), math.nan if per_letter is None else per_letter)
    return value


Boosts = Union[Mapping[str, Optional[float]], Mapping[int, float], AbstractSet[str], Sequence[str]]
Boost = Union[Scorer, Boosts]


def phrases_of(boosts: Boosts) -> Mapping[Any, float | None]:
    """Boosts of phrases from any form of them. A plain string is one phrase."""
    if isinstance(boosts, Mapping):
        return boosts
    if isinstance(boosts, str):
        return {boosts: None}
    try:
        return dict.fromkeys(sorted(boosts) if isinstance(boosts, AbstractSet) else boosts)
    except TypeError:
        raise TypeError(f"boost: expected phrases with their boosts, a list or a set of phrases, or a Scorer, found {boosts!r}") from None


def _checked(label: int) -> int:
    if not 0 < label < 2**31:
        raise ValueError(f"label {label} is outside 1 to 2^31 - 1")
    return label


def _nats(phrase: str, boost: float | None) -> float:
    """The boost as C takes it, where NaN stands for None."""
    if boost is None:
        return math.nan
    if math.isnan(boost):
        raise ValueError(f"{phrase!r}: the boost is NaN")
    return boost


def _found(phrases: Iterable[str], words: ExtendedSymbols | None) -> dict[str, int]:
    """The words of the phrases that a table has: a small table, in place of a copy of the whole one."""
    texts = dict.fromkeys(word for phrase in phrases for word in phrase.split())
    return {text: label for text in texts if words is not None and (label := words.find(text))}


class BoostCache:
    """The scorers of the lists that a decoder was given, each chained to `base`, so that a list that is given again is neither made again nor copied to a GPU again.

    A mapping is found by its contents, a Scorer by its identity. Least recently used mappings are dropped first. Thread-safe.
    """

    _CAPACITY = 250_000  # phrases; a list counts as 100 more

    def __init__(self, base: Scorer | None, tokens: Symbols | None = None, joiner: Joiner | None = None) -> None:
        """`tokens`, `joiner`: see Scorer._of_phrases."""
        self._base, self._tokens, self._joiner = base, tokens, joiner
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
        given = phrases_of(boost)
        key = (id(words), tuple(given), tuple(given.values()))
        kept = self._made.pop(key, None)
        if kept is None:
            made = Scorer._of_phrases(given, words, self._tokens, self._joiner)
            kept = (made if self._base is None else self._base + made, words)
            self._size += len(given) + 100
        self._made[key] = kept
        while self._size > self._CAPACITY and len(self._made) > 1:
            oldest = next(iter(self._made))
            del self._made[oldest]
            self._size -= len(oldest[1]) + 100
        return kept[0]


def for_batch(boost: Boost | Sequence[Boost | None], tables: Sequence[Symbols | ExtendedSymbols | None], cache: BoostCache) -> list[Scorer | None]:
    """A scorer for each utterance, from one boost for all utterances or one for each. `tables`: word table of each utterance."""
    several = isinstance(boost, Sequence) and not all(isinstance(one, str) for one in boost)
    each: Any = boost if several else [boost] * len(tables)
    if len(each) != len(tables):
        raise ValueError(f"{len(each)} boosts for {len(tables)} utterances")
    made: dict[tuple[int, int], Scorer | None] = {}
    for one, table in zip(each, tables):
        if (id(one), id(table)) not in made:
            made[id(one), id(table)] = None if one is None else cache.scorer(one, table)
    return [made[id(one), id(table)] for one, table in zip(each, tables)]
