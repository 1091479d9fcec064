"""Costs with the sum and the product of a semiring."""

from __future__ import annotations

import math
from typing import Any

from .container import SEMIRINGS, Semiring, choose


class Weight(float):
    """A cost in nats that knows its semiring. It is a float, so it can be given wherever a cost can.

    wf.fst.Weight(1.0).plus(2.0)           1.0, the lower cost: tropical
    wf.fst.Weight(1.0, "log").plus(1.0)    1 - ln 2: the probabilities are added
    wf.fst.Weight(1.0).times(2.0)          3.0, in both
    """

    semiring: Semiring

    def __new__(cls, cost: float | str = 0.0, semiring: Semiring = "tropical") -> Weight:
        """ValueError: the cost is no number, or -infinity."""
        weight = super().__new__(cls, cost)
        if math.isnan(weight) or weight == -math.inf:
            raise ValueError(f"cost {cost}, expected a number or infinity")
        weight.semiring = SEMIRINGS[choose(semiring, SEMIRINGS, "semiring")]
        return weight

    @classmethod
    def zero(cls, semiring: Semiring = "tropical") -> Weight:
        """The weight of no path: infinite cost."""
        return cls(math.inf, semiring)

    @classmethod
    def one(cls, semiring: Semiring = "tropical") -> Weight:
        """The weight of the empty path: no cost."""
        return cls(0.0, semiring)

    def _other(self, other: float) -> float:
        if isinstance(other, Weight) and other.semiring != self.semiring:
            raise ValueError(f"a {self.semiring} and a {other.semiring} weight")
        return float(other)

    def plus(self, other: float) -> Weight:
        """The sum: the lower cost (tropical), or -ln(e^-a + e^-b) (log)."""
        low, high = sorted((float(self), self._other(other)))
        return Weight(low if self.semiring == "tropical" or high == math.inf else low - math.log1p(math.exp(low - high)), self.semiring)

    def times(self, other: float) -> Weight:
        """The product: costs are added."""
        return Weight(float(self) + self._other(other), self.semiring)

    def divide(self, other: float) -> Weight:
        """The weight whose product with `other` is this one. ValueError: `other` is zero, of infinite cost."""
        if self._other(other) == math.inf:
            raise ValueError("division by a weight of infinite cost")
        return Weight(float(self) - float(other), self.semiring)

    def power(self, n: float) -> Weight:
        """The product of n times this weight."""
        return Weight(0.0 if n == 0 else float(self) * n, self.semiring)

    def __reduce__(self) -> Any:
        return Weight, (float(self), self.semiring)

    def __repr__(self) -> str:
        return f"Weight({float(self)!r}, {self.semiring!r})"
