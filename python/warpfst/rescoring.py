"""Rescores n-best lists with a model of whole texts, such as a large language model."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ._library import check
from .errors import ArgumentError, Error
from .results import Hypothesis, Result

TextScorer = Callable[[list[str]], Iterable[Any]]


class Rescored(NamedTuple):
    """A text of an n-best list, with the model's score and the total by which the list is ranked. Higher is better."""

    text: str
    total: float
    score: float
    hypothesis: Hypothesis


@dataclasses.dataclass(frozen=True)
class Rescorer:
    """Ranks n-best lists by the first pass and a model of whole texts.

        rescorer = wf.Rescorer(log_probs_of_texts, nbest=50, weight=0.4)
        for best, *others in rescorer(decoder.decode(log_probs)): print(best.text)

    score         called with up to `batch_size` different texts; returns one number for each: a natural logarithm, higher is better. A list, array or tensor
    nbest         texts of each utterance that are scored
    weight        of the model's score
    graph_weight  of the graph's costs, which include the language model of the first pass
    word_score    added for each word
    batch_size    texts in a call of `score`. They come sorted by length, so that there is little padding

    total = -acoustic_cost - graph_weight * graph_cost + weight * score + word_score * number of words. Acoustic costs include acoustic_scale.
    """

    score: TextScorer
    nbest: int = 20
    weight: float = 0.5
    graph_weight: float = 1.0
    word_score: float = 0.0
    batch_size: int = 64

    def __post_init__(self) -> None:
        if not callable(self.score):
            raise TypeError(f"score: {type(self.score).__name__}, expected a function of a list of texts")
        for name in ("nbest", "batch_size"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name} is {getattr(self, name)}, expected at least 1")
        for name in ("weight", "graph_weight", "word_score"):
            if not math.isfinite(getattr(self, name)):
                raise ArgumentError(f"{name} is {getattr(self, name)}, expected a finite number")

    def __call__(self, results: Iterable[Result]) -> list[list[Rescored]]:
        """The rescored list of each utterance, best first. The texts of all utterances are scored together, each once.

        The results need a lattice (lattice_beam). Raises the error of the first utterance that failed. wf.Error: `score` raised an exception, which is the cause
        of this one. ArgumentError: it returned another number of scores than texts, or what is no number.
        """
        lists = [check(result, Result).nbest(self.nbest) for result in results]
        scores = self._scores({one.text for hypotheses in lists for one in hypotheses})
        return self.rank([[Rescored(one.text, 0.0, scores[one.text], one) for one in hypotheses] for hypotheses in lists])

    def rank(self, lists: Iterable[Iterable[Rescored]]) -> list[list[Rescored]]:
        """The lists with totals by this rescorer's weights, best first. `score` is not called, so that weights can be tried out: dataclasses.replace(rescorer, weight=0.3)."""
        return [sorted((one._replace(total=self._total(one)) for one in listed), key=lambda one: -one.total) for listed in lists]

    def _total(self, one: Rescored) -> float:
        first = -one.hypothesis.acoustic_cost - self.graph_weight * one.hypothesis.graph_cost
        second = self.weight * one.score if self.weight != 0 else 0.0  # a score may be -inf
        return first + second + self.word_score * len(one.hypothesis.labels)

    def _scores(self, texts: Iterable[str]) -> dict[str, float]:
        ordered = sorted(texts, key=lambda text: (len(text), text))
        scores: dict[str, float] = {}
        for begin in range(0, len(ordered), self.batch_size):
            batch = ordered[begin : begin + self.batch_size]
            scores.update(zip(batch, self._batch_scores(batch)))
        return scores

    def _batch_scores(self, batch: Sequence[str]) -> list[float]:
        about = f"{len(batch)} texts, such as {batch[0]!r}"
        try:
            returned = list(self.score(list(batch)))
        except Exception as why:
            raise Error(f"rescoring of {about}: {type(why).__name__}: {why}") from why
        if len(returned) != len(batch):
            raise ArgumentError(f"rescoring of {about}: {len(returned)} scores were returned")
        try:
            numbers = [float(one) for one in returned]
        except (TypeError, ValueError) as why:
            raise ArgumentError(f"rescoring of {about}: a score is no number: {why}") from why
        wrong = next((text for text, number in zip(batch, numbers) if math.isnan(number) or number == math.inf), None)
        if wrong is not None:
            raise ArgumentError(f"rescoring of {about}: the score of {wrong!r} is {numbers[list(batch).index(wrong)]}")
        return numbers
