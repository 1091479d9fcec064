"""Operations on transducers. Each makes a new Fst; keywords are the C library's options, with its defaults (`describe("compose")` and so on)."""

from __future__ import annotations

import array
import contextlib
import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ._library import call, create, lib, take_numbers
from .fst import Fst
from .options import c_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from . import _option_types as types


def _unary(name: str, fst: Fst, options: Mapping[str, Any]) -> Fst:
    return Fst(create(f"wf_{name}", fst.address, c_options(name, options)))


def addresses(fsts: Sequence[Fst]) -> Any:
    return (ctypes.c_void_p * len(fsts))(*(fst.address for fst in fsts))


def pair_count(a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst) -> tuple[list[Fst], list[Fst], int]:
    """Both sides as lists, and how many pairs they make: a side of one goes with each of the other."""
    left, right = ([x] if isinstance(x, Fst) else list(x) for x in (a, b))
    count = max(len(left), len(right)) if left and right else 0
    if any(len(side) not in (1, count) for side in (left, right) if count):
        raise ValueError(f"{len(left)} and {len(right)} fsts make no pairs")
    return left, right, count


def compose(a: Fst, b: Fst, **options: Unpack[types.ComposeOptions]) -> Fst:
    """Paths x:z for paths x:y of `a` and y:z of `b`; inputs need not be sorted."""
    return Fst(create("wf_compose", a.address, b.address, c_options("compose", options)))


class Composition(NamedTuple):
    """A composition and, for each of its arcs, two numbers: the arcs of `a` and of `b` it comes from, 2^32 - 1 where that side waits."""

    fst: Fst
    origins: array.array[int]


def compose_with_origins(a: Fst, b: Fst, **options: Unpack[types.ComposeOptions]) -> Composition:
    """`compose`, with the origins that carry gradients back to the inputs (`forward_score`)."""
    with composed([a], [b], 1, options, with_origins=True) as composer:
        return result_with_origins(composer, 0)


@contextlib.contextmanager
def composed(left: Sequence[Fst], right: Sequence[Fst], count: int, options: Mapping[str, Any], with_origins: bool = False) -> Iterator[int]:
    """The address of a composer that has run."""
    address = create("wf_composer_create", addresses(left), len(left), addresses(right), len(right), count, c_options("compose", options), with_origins)
    try:
        call("wf_composer_run", address)
        yield address
    finally:
        lib.wf_composer_free(address)


def result_with_origins(composer: int, i: int) -> Composition:
    origins = ctypes.c_void_p()
    fst = Fst(create("wf_composer_get", composer, i, after=(ctypes.byref(origins),)))
    return Composition(fst, take_numbers(origins.value, "I", 2 * fst.num_arcs))


def compose_batch(a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst, **options: Unpack[types.ComposeOptions]) -> list[Fst]:
    """Many compositions in one call, in threads: pair by pair, or one fst with each of many."""
    left, right, count = pair_count(a, b)
    if count == 0:
        return []
    with composed(left, right, count, options) as composer:
        return [Fst(create("wf_composer_get", composer, i, after=(None,))) for i in range(count)]


def arcsort(fst: Fst, **options: Unpack[types.ArcsortOptions]) -> Fst:
    """Arcs of each state sorted by a label, stable."""
    return _unary("arcsort", fst, options)


def connect(fst: Fst) -> Fst:
    """States on some path from the start to a final state."""
    return Fst(create("wf_connect", fst.address))


def topsort(fst: Fst) -> Fst:
    """States numbered so that every arc leads upwards."""
    return Fst(create("wf_topsort", fst.address))


def epsilons_last(fst: Fst) -> Fst:
    """Arcs of each state in the order that the decoder wants: input labels first, epsilons last."""
    return Fst(create("wf_epsilons_last", fst.address))


def determinize(fst: Fst, **options: Unpack[types.DeterminizeOptions]) -> Fst:
    """One arc per state and input label. NotDeterminizableError holds a witness."""
    return _unary("determinize", fst, options)


def minimize(fst: Fst, **options: Unpack[types.MinimizeOptions]) -> Fst:
    """Fewest states."""
    return _unary("minimize", fst, options)


def rmepsilon(fst: Fst, **options: Unpack[types.RmepsilonOptions]) -> Fst:
    """No arcs with epsilon on both sides."""
    return _unary("rmepsilon", fst, options)


def push(fst: Fst, **options: Unpack[types.PushOptions]) -> Fst:
    """Weights, or output labels, towards the start or the end."""
    return _unary("push", fst, options)


def shortest_path(fst: Fst, **options: Unpack[types.ShortestPathOptions]) -> Fst:
    """The best path, or the n best."""
    return _unary("shortest_path", fst, options)


def prune(fst: Fst, **options: Unpack[types.PruneOptions]) -> Fst:
    """Drops what is on no path near the best."""
    return _unary("prune", fst, options)


def closure(fst: Fst, **options: Unpack[types.ClosureOptions]) -> Fst:
    """Any number of repetitions."""
    return _unary("closure", fst, options)


def project(fst: Fst, **options: Unpack[types.ProjectOptions]) -> Fst:
    """The acceptor of one side."""
    return _unary("project", fst, options)


def randgen(fst: Fst, **options: Unpack[types.RandgenOptions]) -> Fst:
    """Random successful paths; the same seed gives the same paths everywhere."""
    return _unary("randgen", fst, options)


def invert(fst: Fst) -> Fst:
    """Input and output exchanged."""
    return Fst(create("wf_invert", fst.address))


def reverse(fst: Fst) -> Fst:
    """Accepts the reversed strings."""
    return Fst(create("wf_reverse", fst.address))


def union(*fsts: Fst) -> Fst:
    """The paths of any of several fsts."""
    return Fst(create("wf_union", addresses(fsts), len(fsts)))


def concat(*fsts: Fst) -> Fst:
    """One fst after the other."""
    return Fst(create("wf_concat", addresses(fsts), len(fsts)))


def _pairs(pairs: Iterable[tuple[int, int]]) -> Any:
    flat = [_int32(label) for pair in pairs for label in pair]
    return (ctypes.c_int32 * len(flat))(*flat)


def _labels(labels: Iterable[int]) -> Any:
    checked = [_int32(label) for label in labels]
    return (ctypes.c_int32 * len(checked))(*checked)


def _int32(label: int) -> int:
    if not -(2**31) <= label < 2**31:  # ctypes would take the low bits
        raise ValueError(f"label {label} does not fit 32 bits")
    return label


def relabel(fst: Fst, ipairs: Iterable[tuple[int, int]] = (), opairs: Iterable[tuple[int, int]] = ()) -> Fst:
    """Replaces labels by pairs (old, new); labels not listed stay."""
    ins, outs = _pairs(ipairs), _pairs(opairs)
    return Fst(create("wf_relabel", fst.address, ins, len(ins) // 2, outs, len(outs) // 2))


def add_self_loops(fst: Fst, ilabels: Iterable[int], olabels: Iterable[int]) -> Fst:
    """Self-loops of disambiguation symbols at states that are final or emit, as Kaldi's fstaddselfloops."""
    ins, outs = _labels(ilabels), _labels(olabels)
    if len(ins) != len(outs):
        raise ValueError(f"{len(ins)} input labels and {len(outs)} output labels")
    return Fst(create("wf_add_self_loops", fst.address, ins, outs, len(ins)))


def remove_disambig(fst: Fst, ilabels: Iterable[int]) -> Fst:
    """Listed input labels replaced by epsilon."""
    ins = _labels(ilabels)
    return Fst(create("wf_remove_disambig", fst.address, ins, len(ins)))


def shortest_distance(fst: Fst, **options: Unpack[types.ShortestDistanceOptions]) -> array.array[float]:
    """float32 [num_states]: sums over all paths from the start to each state, or to the final states with reverse=True."""
    out = create("wf_shortest_distance", fst.address, c_options("shortest_distance", options)) if fst.num_states else 0
    return take_numbers(out, "f", fst.num_states)


def forward_score(fst: Fst, **options: Unpack[types.ForwardScoreOptions]) -> float:
    """Total cost of all successful paths: -ln of the sum of exp(-cost) in the log semiring, the least cost in the tropical."""
    cost = ctypes.c_double()
    call("wf_forward_score", fst.address, c_options("forward_score", options), ctypes.byref(cost), None)
    return cost.value


def forward_score_gradients(fst: Fst, **options: Unpack[types.ForwardScoreOptions]) -> tuple[float, array.array[float]]:
    """`forward_score` and its derivative by each arc's weight (float64 [num_arcs]). Log semiring only."""
    cost, gradients = ctypes.c_double(), ctypes.c_void_p()
    call("wf_forward_score", fst.address, c_options("forward_score", options), ctypes.byref(cost), ctypes.byref(gradients))
    return cost.value, take_numbers(gradients.value, "d", fst.num_arcs)


class Comparison(NamedTuple):
    """True or false, and the first difference found."""

    equal: bool
    difference: str

    def __bool__(self) -> bool:
        return self.equal


def _compare(name: str, a: Fst, b: Fst, third: Any) -> Comparison:
    out = ctypes.c_bool()
    remark = call(name, a.address, b.address, third, ctypes.byref(out))
    return Comparison(out.value, "" if out.value else remark)


def equal(a: Fst, b: Fst, delta: float = 0.0) -> Comparison:
    """The same fst, state by state and arc by arc, with weights within delta?"""
    return _compare("wf_equal", a, b, delta)


def equivalent(a: Fst, b: Fst, delta: float = 0.0009765625) -> Comparison:
    """Do two deterministic epsilon-free acceptors accept the same strings at the same costs?"""
    return _compare("wf_equivalent", a, b, delta)


def randequivalent(a: Fst, b: Fst, **options: Unpack[types.RandequivalentOptions]) -> Comparison:
    """Same costs of random paths in both? A difference is proof, equality evidence."""
    return _compare("wf_randequivalent", a, b, c_options("randequivalent", options))
