"""Finds the weight of the language model and the word score of each search on a development set. All searches have the same candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from searches import Search
from speech_sets import Normalizer

import warpfst as wf

LM_WEIGHTS = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
WORD_SCORES = (-1.0, 0.0, 1.0, 2.0)


class Weights(NamedTuple):
    """The best candidate. `percent`: its word error rate on the development set."""

    percent: float
    lm_weight: float
    word_score: float

    def __str__(self) -> str:
        return f"lm weight {self.lm_weight:g}, word score {self.word_score:g}"


def tune(search: Search, scores: Sequence[np.ndarray], references: Sequence[str], normalize: Normalizer) -> Weights:
    """Tries the weights with no word score, then the word scores with the best weight, and leaves the search with the best of both."""

    def tried(lm_weight: float, word_score: float) -> Weights:
        search.set_weights(lm_weight, word_score)
        counts = wf.wer(references, [normalize(text) for text in search.decode(scores)])
        return Weights(counts.percent, lm_weight, word_score)

    best = min((tried(weight, 0.0) for weight in LM_WEIGHTS), key=lambda one: one.percent)
    best = min([best, *(tried(best.lm_weight, word_score) for word_score in WORD_SCORES if word_score != 0)], key=lambda one: one.percent)
    search.set_weights(best.lm_weight, best.word_score)
    return best
