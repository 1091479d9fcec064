"""Fsts built state by state and arc by arc."""

from __future__ import annotations

import array
import math
import struct

from ..symbols import Symbols
from .container import ARC, Arc, Fst, Semiring


class FstBuilder:
    """A transducer that can be changed: states and arcs are added, then `build` makes the Fst. Not thread-safe.

    builder = wf.fst.FstBuilder()
    a, b = builder.add_states(2)
    builder.add_arc(a, wf.fst.Arc(1, 2, 0.5, b))
    builder.set_final(b)
    fst = builder.build()
    """

    def __init__(self, fst: Fst | None = None, *, semiring: Semiring = "tropical", isymbols: Symbols | None = None, osymbols: Symbols | None = None) -> None:
        """An empty builder, or one that begins with the states, arcs, semiring and symbols of an fst."""
        self.semiring: Semiring = semiring if fst is None else fst.semiring
        self.isymbols = isymbols if fst is None or isymbols is not None else fst.isymbols
        self.osymbols = osymbols if fst is None or osymbols is not None else fst.osymbols
        self._start: int | None = None
        self._num_states = 0
        self._finals: dict[int, float] = {}
        self._sources, self._arcs = array.array("I"), bytearray()
        if fst is not None:
            self._start, self._num_states = fst.start, fst.num_states
            self._finals = {state: cost for state, cost in enumerate(fst.final_costs) if cost != math.inf}
            offsets = fst.arc_offsets
            for state in range(fst.num_states):
                self._sources.extend(array.array("I", [state]) * (offsets[state + 1] - offsets[state]))
            self._arcs += bytes(fst.arcs)

    @property
    def num_states(self) -> int:
        return self._num_states

    @property
    def num_arcs(self) -> int:
        return len(self._sources)

    @property
    def start(self) -> int | None:
        """The start state: the first one, unless `set_start` names another. None: there are no states."""
        return self._start if self._start is not None else 0 if self._num_states else None

    def _checked(self, state: int) -> int:
        if not 0 <= state < self._num_states:
            raise IndexError(f"state {state} of {self._num_states}")
        return state

    def add_state(self) -> int:
        """Adds a state and returns its number."""
        return self.add_states(1)[0]

    def add_states(self, count: int) -> range:
        """Adds states and returns their numbers."""
        first = self._num_states
        self._num_states += max(count, 0)
        return range(first, self._num_states)

    def set_start(self, state: int) -> None:
        self._start = self._checked(state)

    def set_final(self, state: int, cost: float = 0.0) -> None:
        """Makes a state final; with an infinite cost, not final."""
        self._finals[self._checked(state)] = cost

    def final(self, state: int) -> float:
        """The final cost of a state; infinity: it is not final."""
        return self._finals.get(self._checked(state), math.inf)

    def add_arc(self, state: int, arc: Arc | tuple[int, int, float, int]) -> None:
        """Adds an arc (ilabel, olabel, weight, nextstate) that leaves a state. The order of the arcs of a state is that of the calls."""
        ilabel, olabel, weight, nextstate = arc
        if not (0 <= ilabel < 2**31 and 0 <= olabel < 2**31):
            raise ValueError(f"label {ilabel if not 0 <= ilabel < 2**31 else olabel} is outside 0 to 2^31 - 1")
        try:
            packed = ARC.pack(self._checked(nextstate), weight, ilabel, olabel)
        except struct.error as error:
            raise TypeError(f"arc {tuple(arc)}: {error}") from None
        self._sources.append(self._checked(state))
        self._arcs += packed

    def build(self) -> Fst:
        """The fst. The builder stays as it is and can be changed further."""
        sources, arcs = self._sources.tobytes(), bytes(self._arcs)
        return Fst._built(self.semiring, self._num_states, self.start or 0, self._finals, len(self._sources), sources, arcs, self.isymbols, self.osymbols)

    def __repr__(self) -> str:
        return f"<FstBuilder: {self.num_states} states, {self.num_arcs} arcs, {self.semiring}>"
