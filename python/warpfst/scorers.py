"""Scorers: costs for words that are not in the graph, added as each word is hypothesised."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Union

from ._library import Handle, create, lib
from .symbols import Symbols


class Scorer(Handle):
    """A deterministic automaton over words. Immutable: any number of decoders and threads may use it. `a + b` is the sum of two."""

    _free = lib.wf_scorer_free

    @classmethod
    def boost_words(cls, boosts: Mapping[str, float] | Mapping[int, float], words: Symbols | None = None) -> Scorer:
        """Favours words by so many nats wherever they are hypothesised (negative: disfavours); at most beam / 2 is advised. Words are texts of `words`, or labels."""
        labels = [_label(word, words) for word in boosts]
        return cls(create("wf_scorer_boost_words", (ctypes.c_int32 * len(labels))(*labels), (ctypes.c_float * len(labels))(*boosts.values()), len(labels)))

    def __add__(self, other: Scorer) -> Scorer:
        return Scorer(create("wf_scorer_chain", self.address, other.address))


Boost = Union[Scorer, Mapping[str, float], Mapping[int, float]]


def _label(word: str | int, words: Symbols | None) -> int:
    if isinstance(word, str):
        label = words.find(word) if words is not None else None
        if label is None:
            raise ValueError(f"{word!r} is not a word of the graph" if words is not None else f"{word!r}: the graph has no table of words, name labels")
        return label
    if not 0 < word < 2**31:
        raise ValueError(f"label {word} is outside 1 to 2^31 - 1")
    return word


def as_scorer(boost: Boost, words: Symbols | None) -> Scorer:
    return boost if isinstance(boost, Scorer) else Scorer.boost_words(boost, words)


def for_batch(boost: Boost | Sequence[Boost | None], count: int, words: Symbols | None) -> list[Scorer | None]:
    """One scorer for all utterances, or one for each."""
    if isinstance(boost, (Scorer, Mapping)):
        return [as_scorer(boost, words)] * count
    if len(boost) != count:
        raise ValueError(f"{len(boost)} boosts for {count} utterances")
    return [None if one is None else as_scorer(one, words) for one in boost]
