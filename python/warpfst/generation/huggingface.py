"""A logits processor for transformers, which is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..scorers import Boosts

if TYPE_CHECKING:
    from .biasing import Biasing, Hypotheses


class BiasingProcessor:
    """Called by `generate` with all tokens so far and the logits. It finds each hypothesis by its tokens, so any reordering of beams is followed.

    A call whose tokens do not go on from the last call begins new texts, after a prompt of these tokens.
    """

    def __init__(self, biasing: Biasing, phrases: Sequence[Boosts | None] | None = None) -> None:
        self._biasing, self._phrases = biasing, phrases
        self._hypotheses: Hypotheses | None = None
        self._places: dict[tuple[int, bytes], int] = {}  # request and tokens -> hypothesis
        self._width = -1

    def _request_of(self, row: int, rows: int) -> int:
        """The request of a hypothesis: those of a request follow each other."""
        return row if self._phrases is None else row * len(self._phrases) // rows

    def _key(self, ids: Any, row: int, width: int) -> tuple[int, bytes]:
        """Without lists of phrases, hypotheses with the same tokens are the same."""
        return (0 if self._phrases is None else self._request_of(row, len(ids))), ids[row, :width].tobytes()

    def _begin(self, ids: Any) -> None:
        if self._phrases is None:
            self._hypotheses = self._biasing.begin(len(ids))
            return
        if not self._phrases or len(ids) % len(self._phrases):
            raise ValueError(f"{len(self._phrases)} lists of phrases for a batch of {len(ids)} hypotheses")
        self._hypotheses = self._biasing.begin([self._phrases[self._request_of(row, len(ids))] for row in range(len(ids))])

    def _go_on(self, ids: Any) -> bool:
        """Follows the last tokens; False if a hypothesis goes on from none of the last call."""
        if self._hypotheses is None or ids.shape[1] != self._width + 1:
            return False
        places = [self._places.get(self._key(ids, row, self._width), -1) for row in range(len(ids))]
        if -1 in places:
            return False
        self._hypotheses.reorder(places)
        self._hypotheses.advance(ids[:, -1])
        return True

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        ids = input_ids.cpu().numpy()
        if not self._go_on(ids):
            self._begin(ids)
        self._width = ids.shape[1]
        self._places = {self._key(ids, row, self._width): row for row in range(len(ids))}
        assert self._hypotheses is not None
        return self._hypotheses.scores(scores.clone())
