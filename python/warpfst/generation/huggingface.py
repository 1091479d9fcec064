"""A logits processor for transformers, which is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..scorers import Boosts

if TYPE_CHECKING:
    from .biasing import Biasing, Hypotheses
    from .gpu import GpuHypotheses

_FACTOR = 0x5851F42D4C957F2D


def _keys_of(ids: Any) -> Any:
    """A 64-bit hash of each row."""
    import torch

    factors = torch.full((ids.shape[1],), _FACTOR, dtype=torch.int64, device=ids.device).cumprod(0)
    return ((ids + 1) * factors).sum(1)


class BiasingProcessor:
    """Called by `generate` with all tokens so far and the logits. It finds each hypothesis by its tokens, so any reordering of beams is followed.

    A call whose tokens do not go on from the last call begins new texts, after a prompt of these tokens. If the logits are on a GPU, everything happens there, and
    hypotheses are found by a hash of their tokens.
    """

    def __init__(self, biasing: Biasing, phrases: Sequence[Boosts | None] | None = None) -> None:
        self._biasing, self._phrases = biasing, phrases
        self._hypotheses: Hypotheses | None = None
        self._places: dict[tuple[int, bytes], int] = {}  # request and tokens -> hypothesis
        self._width = -1
        self._on_gpu: GpuHypotheses | None = None
        self._keys: Any = None  # of their tokens

    def _request_of(self, row: int, rows: int) -> int:
        """The request of a hypothesis: those of a request follow each other."""
        return row if self._phrases is None else row * len(self._phrases) // rows

    def _key(self, ids: Any, row: int, width: int) -> tuple[int, bytes]:
        """Without lists of phrases, hypotheses with the same tokens are the same."""
        return (0 if self._phrases is None else self._request_of(row, len(ids))), ids[row, :width].tobytes()

    def _batch(self, rows: int) -> int | list[Boosts | None]:
        """As in Biasing.begin."""
        if self._phrases is None:
            return rows
        if not self._phrases or rows % len(self._phrases):
            raise ValueError(f"{len(self._phrases)} lists of phrases for a batch of {rows} hypotheses")
        return [self._phrases[self._request_of(row, rows)] for row in range(rows)]

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

    def _follow_on_gpu(self, hypotheses: GpuHypotheses, ids: Any, before: Any) -> None:
        """Follows the last tokens. A hypothesis that goes on from none of the last call begins anew."""
        import torch

        same = _keys_of(ids[:, :-1])[:, None] == before[None]
        if self._phrases is not None:
            requests = torch.arange(len(ids), device=ids.device) * len(self._phrases) // len(ids)
            same &= requests[:, None] == requests[None]
        found = same.any(1)
        hypotheses.reorder(torch.where(found, same.int().argmax(1), len(ids)))
        hypotheses.advance(torch.where(found, ids[:, -1], -1))

    def _scores_on_gpu(self, ids: Any, scores: Any) -> Any:
        hypotheses = self._on_gpu
        if hypotheses is None or hypotheses.device != str(scores.device) or len(hypotheses) != len(ids) or ids.shape[1] != self._width + 1:
            hypotheses = self._on_gpu = self._biasing.begin(self._batch(len(ids)), device=str(scores.device))
        else:
            self._follow_on_gpu(hypotheses, ids, self._keys)
        self._width, self._keys = ids.shape[1], _keys_of(ids)
        return hypotheses.scores(scores.clone())

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if scores.is_cuda:
            return self._scores_on_gpu(input_ids, scores)
        ids = input_ids.cpu().numpy()
        if not self._go_on(ids):
            self._hypotheses = self._biasing.begin(self._batch(len(ids)))
        self._width = ids.shape[1]
        self._places = {self._key(ids, row, self._width): row for row in range(len(ids))}
        assert self._hypotheses is not None
        return self._hypotheses.scores(scores.clone())
