"""Phrases as a tokenizer spells them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping

from .._library import _pending_warnings, create, report_warnings
from ..errors import ArgumentError
from ..scorers import Scorer, boost_by_length
from .tokens import Vocabulary, is_unspaced


def _cases(phrase: str) -> list[str]:
    return list(dict.fromkeys((phrase, phrase[:1].upper() + phrase[1:], phrase.lower(), phrase.title(), phrase.upper())))


def _after(vocabulary: Vocabulary, before: str, text: str) -> list[int] | None:
    """The tokens of a text after another; None if tokens reach over its beginning."""
    first, both = vocabulary.encode(before), vocabulary.encode(before + text)
    return both[len(first) :] if both[: len(first)] == first and len(both) > len(first) else None


def _begins_word(vocabulary: Vocabulary, tokens: list[int]) -> bool:
    return vocabulary.texts[tokens[0]].startswith(b" ")


def spellings(vocabulary: Vocabulary, phrase: str, cases: bool) -> Iterator[tuple[bool, tuple[int, ...]]]:
    """Whether it must stand where a word may begin without a space, and the tokens, of each way in which the tokenizer may write a phrase."""
    for text in _cases(phrase) if cases else [phrase]:
        found = [_after(vocabulary, "a", " " + text), vocabulary.encode(text), _after(vocabulary, "(", text), _after(vocabulary, "\n", text)]
        for tokens in found:
            if tokens and not any(token in vocabulary.silent or token in vocabulary.ends for token in tokens):
                yield not _begins_word(vocabulary, tokens) and not is_unspaced(text[0]), tuple(tokens)


def phrase_scorer(vocabulary: Vocabulary, phrases: Mapping[str, float | None], cases: bool, per_letter: float) -> Scorer:
    """A scorer with labels token + 1. Phrases that cannot be spelled are left out with a warning."""
    boosts: dict[tuple[int, ...], float] = {}
    missing = []
    for given, nats in phrases.items():
        if not isinstance(given, str):
            raise TypeError(f"phrases: expected texts, found {given!r}")
        phrase = " ".join(given.split())
        if not phrase:
            raise ArgumentError("phrases: a phrase is empty")
        boost = boost_by_length(phrase, per_letter) if nats is None else float(nats)
        spelled = set(spellings(vocabulary, phrase, cases))
        if not spelled:
            missing.append(given)
        for is_start, tokens in spelled:
            labels = ((len(vocabulary.names) + 1,) if is_start else ()) + tuple(token + 1 for token in tokens)
            boosts[labels] = max(boosts.get(labels, boost), boost)
    if missing:
        _pending_warnings.append(f"phrases: {len(missing)} of {len(phrases)} cannot be spelled with the tokens: {', '.join(map(repr, missing[:5]))}")
        report_warnings()
    return _of_labels(boosts)


def _of_labels(boosts: Mapping[tuple[int, ...], float]) -> Scorer:
    ends = [0]
    for labels in boosts:
        ends.append(ends[-1] + len(labels))
    flat: Iterable[int] = (label for labels in boosts for label in labels)
    arrays = (ctypes.c_int32 * ends[-1])(*flat), (ctypes.c_uint64 * len(ends))(*ends), (ctypes.c_float * len(boosts))(*boosts.values())
    return Scorer(create("wf_scorer_boost_phrases", *arrays, len(boosts)))
