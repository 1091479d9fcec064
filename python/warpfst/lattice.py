"""Raw lattices: every path that the search kept within lattice_beam of the best."""

from __future__ import annotations

from ._library import Handle, lib
from .fst import array_view


class Lattice(Handle):
    """States in topological order from 0; arcs with graph and acoustic cost apart. Immutable; its words are labels of the graph's output table."""

    _free = lib.wf_lattice_free

    @property
    def num_states(self) -> int:
        return lib.wf_lattice_get(self.address).num_states

    @property
    def num_arcs(self) -> int:
        return lib.wf_lattice_get(self.address).num_arcs

    def _share(self) -> Lattice:
        """A reference of its own, so that views outlive close()."""
        return Lattice(lib.wf_lattice_ref(self.address))

    @property
    def arcs(self) -> memoryview:
        """All arcs, state by state: numpy.asarray gives ilabel, olabel, graph_cost, acoustic_cost, nextstate. No copy."""
        return array_view(lib.wf_lattice_get(self.address).arcs, self.num_arcs, self._share())

    @property
    def arc_offsets(self) -> memoryview:
        """uint64 [num_states + 1]. No copy."""
        return array_view(lib.wf_lattice_get(self.address).arc_off, self.num_states + 1 if self.num_states else 0, self._share(), "Q")

    @property
    def frames(self) -> memoryview:
        """int32 [num_states]: frames consumed before the state. No copy."""
        return array_view(lib.wf_lattice_get(self.address).frames, self.num_states, self._share(), "i")

    @property
    def final_graph_costs(self) -> memoryview:
        """float32 [num_states], infinity where not final. No copy."""
        return array_view(lib.wf_lattice_get(self.address).final_graph_cost, self.num_states, self._share(), "f")

    @property
    def final_acoustic_costs(self) -> memoryview:
        """float32 [num_states]. No copy."""
        return array_view(lib.wf_lattice_get(self.address).final_acoustic_cost, self.num_states, self._share(), "f")

    def __repr__(self) -> str:
        return f"<Lattice: {self.num_states} states, {self.num_arcs} arcs>" if self._address else "<Lattice, closed>"
