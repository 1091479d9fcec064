"""Many transducers at once on one device: what training composes and sums up, batch by batch."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._library import Handle, call, create, encode_text, lib, take_numbers
from .fst import Fst, choose
from .operations import addresses, pair_count
from .options import c_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import ArcsortOptions, ComposeOptions, ForwardScoreOptions, ProjectOptions, ShortestDistanceOptions

Source = Literal["arcs", "first", "second"]
_SOURCES: tuple[Source, ...] = ("arcs", "first", "second")


class FstBatch(Handle):
    """Fsts of one semiring on the CPU or a GPU, where the results of operations stay too until `batch[i]` asks for them. One thread at a time."""

    _free = lib.wf_fst_batch_free

    @classmethod
    def create(cls, fsts: Sequence[Fst], device: str | None = None) -> FstBatch:
        """`device`: "cpu" (the default), "cuda", "cuda:1"."""
        return cls(create("wf_fst_batch_create", addresses(fsts), len(fsts), None if device is None else encode_text(device)))

    @classmethod
    def compose(cls, a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst, **options: Unpack[ComposeOptions]) -> FstBatch:
        """Compositions pair by pair, or of one fst with each of many, on the device= of the options (a GPU: order="canonical"). Gradients go back to the inputs."""
        left, right, count = pair_count(a, b)
        return cls(create("wf_fst_batch_compose", addresses(left), len(left), addresses(right), len(right), count, c_options("compose", options)))

    def __len__(self) -> int:
        return int(lib.wf_fst_batch_count(self.address))

    def __getitem__(self, i: int) -> Fst:
        """A copy of the i-th in host memory."""
        if not 0 <= i < len(self):
            raise IndexError(f"fst {i} of {len(self)}")
        return Fst(create("wf_fst_batch_get", self.address, i))

    def _made(self, name: str, *arguments: Any) -> FstBatch:
        return FstBatch(create(f"wf_fst_batch_{name}", self.address, *arguments))

    def arcsort(self, **options: Unpack[ArcsortOptions]) -> FstBatch:
        return self._made("arcsort", c_options("arcsort", options))

    def connect(self) -> FstBatch:
        return self._made("connect")

    def invert(self) -> FstBatch:
        return self._made("invert")

    def project(self, **options: Unpack[ProjectOptions]) -> FstBatch:
        return self._made("project", c_options("project", options))

    def reverse(self) -> FstBatch:
        return self._made("reverse")

    def shortest_path(self) -> FstBatch:
        """The best path of each (tropical)."""
        return self._made("shortest_path")

    def shortest_distance(self, **options: Unpack[ShortestDistanceOptions]) -> list[array.array[float]]:
        """float32 [num_states] of each, as `shortest_distance`."""
        counts = [self[i].num_states for i in range(len(self))]
        numbers = take_numbers(create("wf_fst_batch_shortest_distance", self.address, c_options("shortest_distance", options)) if sum(counts) else 0, "f", sum(counts))
        ends = [sum(counts[: i + 1]) for i in range(len(counts))]
        return [numbers[end - count : end] for count, end in zip(counts, ends)]

    def forward_score(self, gradients: bool = False, **options: Unpack[ForwardScoreOptions]) -> array.array[float]:
        """float64: total cost of all paths of each, as `forward_score`. `gradients`: keeps the derivatives for the method of that name (log semiring)."""
        costs = (ctypes.c_double * len(self))()
        call("wf_fst_batch_forward_score", self.address, c_options("forward_score", options), gradients, costs)
        return array.array("d", bytes(costs))

    def gradients(self, i: int, of: Source = "arcs") -> array.array[float]:
        """float64: derivatives of the i-th total cost by the weights of its arcs, or of those of the first or second fst that it was composed of."""
        out, count = ctypes.c_void_p(), ctypes.c_uint64()
        call("wf_fst_batch_gradients", self.address, i, choose(of, _SOURCES, "of"), ctypes.byref(out), ctypes.byref(count))
        return take_numbers(out.value, "d", count.value)

    def __repr__(self) -> str:
        return f"<FstBatch: {len(self)} fsts>" if self._address else "<FstBatch, closed>"
