"""Batches of transducers on one device (CPU or GPU), for training."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .. import _abi
from .._library import Handle, call, create, encode_text, lib, take_numbers
from ..errors import UnsupportedError
from ..options import c_options
from .container import Fst, choose
from .operations import Composition, addresses, composed, pair_count, result_with_origins

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._option_types import (
        ArcsortOptions,
        ComposeOptions,
        DeterminizeOptions,
        ForwardScoreOptions,
        MinimizeOptions,
        ProjectOptions,
        RmepsilonOptions,
        ShortestDistanceOptions,
    )

Source = Literal["arcs", "first", "second"]
_SOURCES: tuple[Source, ...] = ("arcs", "first", "second")


class FstBatch(Handle):
    """Fsts of one semiring on the CPU or a GPU. Results of operations stay on the device; `batch[i]` copies one to the host. Not thread-safe."""

    _free = lib.wf_fst_batch_free

    @classmethod
    def create(cls, fsts: Sequence[Fst], device: str | None = None) -> FstBatch:
        """`device`: "cpu" (the default), "cuda", "cuda:1"."""
        return cls(create("wf_fst_batch_create", addresses(fsts), len(fsts), None if device is None else encode_text(device)))

    @classmethod
    def compose(cls, a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst, **options: Unpack[ComposeOptions]) -> FstBatch:
        """Composes pair by pair, or one fst with each of many, on the device given by device= (a GPU needs order="canonical"). `gradients` can return those of the inputs."""
        left, right, count = pair_count(a, b)
        with composed(left, right, count, options, with_origins=True) as composer:
            return cls(create("wf_composer_to_batch", composer))

    def __len__(self) -> int:
        return int(lib.wf_fst_batch_count(self.address))

    def __getitem__(self, i: int) -> Fst:
        """A copy of the i-th fst in host memory."""
        if not 0 <= i < len(self):
            raise IndexError(f"fst {i} of {len(self)}")
        return Fst(create("wf_fst_batch_to_fst", self.address, i))

    def _made(self, name: str, *arguments: Any) -> FstBatch:
        return FstBatch(create(f"wf_fst_batch_{name}", self.address, *arguments))

    def arcsort(self, **options: Unpack[ArcsortOptions]) -> FstBatch:
        """Sorts the arcs of each state by input or output label."""
        return self._made("arcsort", c_options("arcsort", options))

    def connect(self) -> FstBatch:
        return self._made("connect")

    def determinize(self, **options: Unpack[DeterminizeOptions]) -> FstBatch:
        """GPUs do not support the log semiring, `rmepsilon` on arcs with epsilon input, and outputs delayed by more than 255 labels."""
        return self._made("determinize", c_options("determinize", options))

    def invert(self) -> FstBatch:
        return self._made("invert")

    def minimize(self, **options: Unpack[MinimizeOptions]) -> FstBatch:
        """Three cases of a GPU batch are computed on the CPU: `encode_labels` off, weight pushing in the log semiring, and states that have two arcs with equal labels."""
        return self._made("minimize", c_options("minimize", options))

    def project(self, **options: Unpack[ProjectOptions]) -> FstBatch:
        """Acceptors made from the labels of one side."""
        return self._made("project", c_options("project", options))

    def reverse(self) -> FstBatch:
        return self._made("reverse")

    def rmepsilon(self, **options: Unpack[RmepsilonOptions]) -> FstBatch:
        """On a GPU, epsilon cycles are an error."""
        return self._made("rmepsilon", c_options("rmepsilon", options))

    def shortest_path(self) -> FstBatch:
        """The best path of each fst (tropical semiring)."""
        return self._made("shortest_path")

    def shortest_distance(self, **options: Unpack[ShortestDistanceOptions]) -> list[array.array[float]]:
        """float32 [num_states] for each fst, as from `shortest_distance`."""
        counts = [self[i].num_states for i in range(len(self))]
        numbers = take_numbers(create("wf_fst_batch_shortest_distance", self.address, c_options("shortest_distance", options)) if sum(counts) else 0, "f", sum(counts))
        ends = [sum(counts[: i + 1]) for i in range(len(counts))]
        return [numbers[end - count : end] for count, end in zip(counts, ends)]

    def forward_score(self, gradients: bool = False, **options: Unpack[ForwardScoreOptions]) -> array.array[float]:
        """float64: total cost of all paths of each fst, as from `forward_score`. With gradients=True (log semiring), keeps the derivatives for the method `gradients`."""
        costs = (ctypes.c_double * len(self))()
        call("wf_fst_batch_forward_score", self.address, c_options("forward_score", options), gradients, costs)
        return array.array("d", bytes(costs))

    def gradients(self, i: int, of: Source = "arcs") -> array.array[float]:
        """float64: derivatives of the i-th total cost by the weights of its arcs, or by those of the first or second input of its composition."""
        out, count = ctypes.c_void_p(), ctypes.c_uint64()
        call("wf_fst_batch_gradients", self.address, i, choose(of, _SOURCES, "of"), ctypes.byref(out), ctypes.byref(count))
        return take_numbers(out.value, "d", count.value)

    def __repr__(self) -> str:
        return f"<FstBatch: {len(self)} fsts>" if self._address else "<FstBatch, closed>"


class DeviceArray:
    """Numbers in GPU memory, with the CUDA array interface: `torch.as_tensor(x, device="cuda")`, `cupy.asarray(x)`. Valid until the next run of its composer."""

    def __init__(self, owner: object, address: int | None, typecode: str, count: int, stride: int, offset: int = 0) -> None:
        self._owner, self._count = owner, count
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": typecode,
            "data": ((address or 0) + offset if count else 0, False),
            "strides": (stride,),
            "version": 3,
        }

    def __len__(self) -> int:
        return self._count


class DeviceFst(NamedTuple):
    """An fst in GPU memory. Arcs of state s are arc_offsets[s] to arc_offsets[s + 1] - 1. The four arc fields are strided views of one array; so are the two origins."""

    start: int | None
    num_states: int
    num_arcs: int
    arc_offsets: DeviceArray  # int64 [num_states + 1]
    nextstates: DeviceArray  # int32 [num_arcs], as the next three
    weights: DeviceArray  # float32
    ilabels: DeviceArray
    olabels: DeviceArray
    final_costs: DeviceArray  # float32 [num_states]
    origins: tuple[DeviceArray, DeviceArray] | None  # int32 [num_arcs] each: arc numbers in `a` and in `b`; -1: that side takes no arc


class Composer(Handle):
    """Composes many pairs on one device. Inputs are prepared once and can be composed any number of times. Results stay on the device until they are requested.
    Not thread-safe.

        composer = wf.fst.Composer(emissions, graphs, device="cuda:1")
        composer.run(); composer[0]; composer.view(0).weights; composer.batch().forward_score()
    """

    _free = lib.wf_composer_free

    def __init__(self, a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst, *, with_origins: bool = False, **options: Unpack[ComposeOptions]) -> None:
        """Pairs are formed as in compose_batch. Options are those of `compose`, with device="cuda" and order="canonical" by default; phi_label is not supported."""
        left, right, self._count = pair_count(a, b)
        given: Any = {"device": "cuda", "order": "canonical", **options}
        self._on_gpu = given["device"] not in (None, "", "cpu")
        inputs = (addresses(left), len(left), addresses(right), len(right), self._count, c_options("compose", given), with_origins)
        super().__init__(create("wf_composer_create", *inputs))

    def run(self) -> None:
        """Composes all pairs with a few kernel launches."""
        call("wf_composer_run", self.address)

    def __len__(self) -> int:
        return self._count

    def _checked(self, i: int) -> int:
        if not 0 <= i < self._count:
            raise IndexError(f"pair {i} of {self._count}")
        return i

    def __getitem__(self, i: int) -> Fst:
        """A copy of the i-th result in host memory."""
        return Fst(create("wf_composer_to_fst", self.address, self._checked(i), after=(None,)))

    def with_origins(self, i: int) -> Composition:
        """The i-th result and the origins of its arcs, as from compose_with_origins. Needs with_origins=True."""
        return result_with_origins(self.address, self._checked(i))

    def view(self, i: int) -> DeviceFst:
        """The i-th result in GPU memory, without a copy. Valid until the next run."""
        if not self._on_gpu:
            raise UnsupportedError("view() needs a composer on a GPU; on the CPU use composer[i], which copies nothing")
        raw, origins = _abi.wf_fst_view(), ctypes.c_void_p()
        call("wf_composer_get_view", self.address, self._checked(i), ctypes.byref(raw), ctypes.byref(origins))
        offsets, arcs, finals = (ctypes.cast(pointer, ctypes.c_void_p).value for pointer in (raw.arc_off, raw.arcs, raw.final_cost))
        pair = None if origins.value is None else (DeviceArray(self, origins.value, "<i4", raw.num_arcs, 8), DeviceArray(self, origins.value, "<i4", raw.num_arcs, 8, 4))
        return DeviceFst(
            start=None if raw.start < 0 else raw.start,
            num_states=raw.num_states,
            num_arcs=raw.num_arcs,
            arc_offsets=DeviceArray(self, offsets, "<i8", raw.num_states + 1, 8),
            nextstates=DeviceArray(self, arcs, "<i4", raw.num_arcs, 16),  # the fields of wf_arc
            weights=DeviceArray(self, arcs, "<f4", raw.num_arcs, 16, 4),
            ilabels=DeviceArray(self, arcs, "<i4", raw.num_arcs, 16, 8),
            olabels=DeviceArray(self, arcs, "<i4", raw.num_arcs, 16, 12),
            final_costs=DeviceArray(self, finals, "<f4", raw.num_states, 4),
            origins=pair,
        )

    def batch(self) -> FstBatch:
        """Copies the results of the last run into a batch on the same device."""
        return FstBatch(create("wf_composer_to_batch", self.address))

    def __repr__(self) -> str:
        return f"<Composer: {self._count} pairs>" if self._address else "<Composer, closed>"
