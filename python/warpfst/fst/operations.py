"""Operations on transducers. Each returns a new Fst. Keywords are the options of the C library, with its defaults (`describe("compose")` and so on)."""

from __future__ import annotations

import array
import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _abi
from .._library import Handle, call, check, check_mapping, create, encode_path, int32_array, lib, take_numbers
from ..errors import ArgumentError
from ..options import c_options
from ..symbols import Symbols, SymbolsLike, as_symbols
from .container import SEMIRINGS, Fst, Semiring, choose

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import _option_types as types


def _unary(name: str, fst: Fst, options: Mapping[str, Any]) -> Fst:
    return Fst(create(f"wf_{name}", Fst._address_of(fst), c_options(name, options)))


def addresses(fsts: Sequence[Fst]) -> Any:
    return (ctypes.c_void_p * len(fsts))(*map(Fst._address_of, fsts))


def pair_count(a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst) -> tuple[list[Fst], list[Fst], int]:
    """Both sides as lists, and the number of pairs. If one side has a single fst, it is paired with each of the other side."""
    left, right = ([x] if isinstance(x, Fst) else list(x) for x in (a, b))
    count = max(len(left), len(right)) if left and right else 0
    if any(len(side) not in (1, count) for side in (left, right) if count):
        raise ValueError(f"{len(left)} and {len(right)} fsts make no pairs: expected equal numbers, or one on one side")
    return left, right, count


def compose(a: Fst, b: Fst, *more: Fst, **options: Unpack[types.ComposeOptions]) -> Fst:
    """Composition: paths x:y of `a` and y:z of `b` give paths x:z. Inputs need not be sorted.

    `more` fsts are composed from left to right in the same call, on the CPU. Only the last composition is stored; of the others, only the states that the next one visits are made."""
    fsts = (a, b, *more)
    return Fst(create("wf_compose_n", addresses(fsts), len(fsts), c_options("compose", options)))


class Composition(NamedTuple):
    """A composition and its origins: for each arc, the numbers of the arcs of `a` and of `b` that it comes from; 2^32 - 1: that side takes no arc."""

    fst: Fst
    origins: array.array[int]


def compose_with_origins(a: Fst, b: Fst, **options: Unpack[types.ComposeOptions]) -> Composition:
    """`compose`, with the origins of the arcs, which map gradients of the result to the inputs (`forward_score_gradients`)."""
    with composed([a], [b], 1, options, with_origins=True) as composer:
        return result_with_origins(composer, 0)


@contextlib.contextmanager
def composed(left: Sequence[Fst], right: Sequence[Fst], count: int, options: Mapping[str, Any], with_origins: bool = False) -> Iterator[int]:
    """Creates and runs a composer, yields its address, and frees it."""
    address = create("wf_composer_create", addresses(left), len(left), addresses(right), len(right), count, c_options("compose", options), with_origins)
    try:
        call("wf_composer_run", address)
        yield address
    finally:
        lib.wf_composer_free(address)


def result_with_origins(composer: int, i: int) -> Composition:
    origins = ctypes.c_void_p()
    fst = Fst(create("wf_composer_to_fst", composer, i, after=(ctypes.byref(origins),)))
    return Composition(fst, take_numbers(origins.value, "I", 2 * fst.num_arcs))


def compose_batch(a: Sequence[Fst] | Fst, b: Sequence[Fst] | Fst, **options: Unpack[types.ComposeOptions]) -> list[Fst]:
    """Many compositions in one call, on several threads: pair by pair, or one fst with each of many."""
    left, right, count = pair_count(a, b)
    if count == 0:
        return []
    with composed(left, right, count, options) as composer:
        return [Fst(create("wf_composer_to_fst", composer, i, after=(None,))) for i in range(count)]


def arcsort(fst: Fst, **options: Unpack[types.ArcsortOptions]) -> Fst:
    """Sorts the arcs of each state by input or output label (a stable sort)."""
    return _unary("arcsort", fst, options)


def connect(fst: Fst) -> Fst:
    """Removes the states that are on no path from the start to a final state."""
    return Fst(create("wf_connect", Fst._address_of(fst)))


def topsort(fst: Fst) -> Fst:
    """Numbers the states in topological order: every arc leads to a larger state."""
    return Fst(create("wf_topsort", Fst._address_of(fst)))


def epsilons_last(fst: Fst) -> Fst:
    """Moves the arcs with input epsilon behind the other arcs of each state, as the decoder needs them."""
    return Fst(create("wf_epsilons_last", Fst._address_of(fst)))


def determinize(fst: Fst, **options: Unpack[types.DeterminizeOptions]) -> Fst:
    """Determinizes: at most one arc per state and input label. Raises NotDeterminizableError with an example of the input."""
    return _unary("determinize", fst, options)


def minimize(fst: Fst, **options: Unpack[types.MinimizeOptions]) -> Fst:
    """Minimizes a deterministic fst: the fewest states."""
    return _unary("minimize", fst, options)


def rmepsilon(fst: Fst, **options: Unpack[types.RmepsilonOptions]) -> Fst:
    """Removes the arcs with epsilon on both sides."""
    return _unary("rmepsilon", fst, options)


def push(fst: Fst, **options: Unpack[types.PushOptions]) -> Fst:
    """Pushes weights or output labels towards the start or towards the final states."""
    return _unary("push", fst, options)


def shortest_path(fst: Fst, **options: Unpack[types.ShortestPathOptions]) -> Fst:
    """The best path, or the n best paths (nshortest=)."""
    return _unary("shortest_path", fst, options)


def prune(fst: Fst, **options: Unpack[types.PruneOptions]) -> Fst:
    """Removes states and arcs that are on no path within `weight` of the best."""
    return _unary("prune", fst, options)


def closure(fst: Fst, lower: int = 0, upper: int = 0, **options: Unpack[types.ClosureOptions]) -> Fst:
    """Closure: accepts any number of repetitions, or from `lower` to `upper`; upper=0 is no bound. ValueError: bounds and closure_type=."""
    if not (lower or upper):
        return _unary("closure", fst, options)
    if options:
        raise ValueError("closure: give lower and upper, or closure_type=, not both")
    return check(fst, Fst).closure(lower, upper)


def project(fst: Fst, **options: Unpack[types.ProjectOptions]) -> Fst:
    """An acceptor made from the labels of one side."""
    return _unary("project", fst, options)


def randgen(fst: Fst, **options: Unpack[types.RandgenOptions]) -> Fst:
    """Draws random successful paths. The same seed gives the same paths on every machine."""
    return _unary("randgen", fst, options)


def invert(fst: Fst) -> Fst:
    """Exchanges input and output labels."""
    return Fst(create("wf_invert", Fst._address_of(fst)))


def reverse(fst: Fst) -> Fst:
    """Accepts the reversed strings."""
    return Fst(create("wf_reverse", Fst._address_of(fst)))


def _to_join(fsts: Sequence[Fst], check_symbols: bool) -> Sequence[Fst]:
    """The inputs of an operation without options in C: to have no symbol tables compared, only the first fst keeps its own."""
    if check_symbols:
        return fsts
    return [fst if k == 0 else Fst(create("wf_fst_with_symbols", Fst._address_of(fst), None, None)) for k, fst in enumerate(fsts)]


def union(*fsts: Fst, check_symbols: bool = True) -> Fst:
    """Union: accepts the paths of all fsts. ArgumentError: symbol tables differ; check_symbols=False does not compare them."""
    inputs = _to_join(fsts, check_symbols)
    return Fst(create("wf_union", addresses(inputs), len(inputs)))


def concat(*fsts: Fst, check_symbols: bool = True) -> Fst:
    """Concatenation: accepts a path of the first fst followed by one of the second, and so on. Symbol tables are compared as by `union`."""
    inputs = _to_join(fsts, check_symbols)
    return Fst(create("wf_concat", addresses(inputs), len(inputs)))


def arcmap(fst: Fst, **options: Unpack[types.MapOptions]) -> Fst:
    """Changes each arc and final cost, as `map_type=` says (`warpfst map`)."""
    return _unary("map", fst, options)


def difference(a: Fst, b: Fst, **options: Unpack[types.DifferenceOptions]) -> Fst:
    """The paths of `a` whose output string the acceptor `b` does not accept."""
    return Fst(create("wf_difference", Fst._address_of(a), Fst._address_of(b), c_options("difference", options)))


def replace(fsts: Mapping[int, Fst], **options: Unpack[types.ReplaceOptions]) -> Fst:
    """Replaces each arc whose output is a label of `fsts` by a copy of its fst, recursively. It begins with the fst of `root=`, or the first."""
    check_mapping(fsts, "fsts")
    return Fst(create("wf_replace", addresses(list(fsts.values())), int32_array(list(fsts)), len(fsts), c_options("replace", options)))


def epsnormalize(fst: Fst, **options: Unpack[types.EpsnormalizeOptions]) -> Fst:
    """Makes all paths read their input labels before the first input epsilon."""
    return _unary("epsnormalize", fst, options)


def synchronize(fst: Fst) -> Fst:
    """Makes arcs read and write one label each, until one side has no labels left."""
    return Fst(create("wf_synchronize", Fst._address_of(fst)))


def disambiguate(fst: Fst, **options: Unpack[types.DisambiguateOptions]) -> Fst:
    """Makes an acceptor or a functional transducer with at most one successful path for each input string."""
    return _unary("disambiguate", fst, options)


def condense(fst: Fst) -> Fst:
    """One state for each strongly connected component."""
    return Fst(create("wf_condense", Fst._address_of(fst)))


def reweight(fst: Fst, potentials: Sequence[float], **options: Unpack[types.ReweightOptions]) -> Fst:
    """Moves costs along paths by a potential per state, as `shortest_distance` gives them. The costs of paths stay."""
    values = potentials if isinstance(potentials, array.array) and potentials.typecode == "f" else array.array("f", potentials)
    address, count = values.buffer_info()
    return Fst(create("wf_reweight", Fst._address_of(fst), ctypes.c_void_p(address), count, c_options("reweight", options)))


def _strings(rows: Iterable[Iterable[int]], count: int, owners: str) -> Any:
    """wf_label_strings of `count` rows, and the memory that it points to."""
    labels, offsets = array.array("i"), array.array("Q", [0])
    for row in rows:
        labels.extend(int32_array(list(row)))
        offsets.append(len(labels))
    if len(offsets) != count + 1:
        raise ValueError(f"{len(offsets) - 1} strings for {count} {owners}")
    pointer = ctypes.POINTER
    strings = _abi.wf_label_strings(ctypes.cast(offsets.buffer_info()[0], pointer(ctypes.c_uint64)), ctypes.cast(labels.buffer_info()[0], pointer(ctypes.c_int32)))
    return ctypes.byref(strings), (labels, offsets)


def factor_weight(
    fst: Fst, arcs: Iterable[Iterable[int]] | None = None, finals: Mapping[int, Iterable[int]] | None = None, **options: Unpack[types.FactorWeightOptions]
) -> Fst:
    """Makes arcs with one output label each of weights with strings of output labels, such as OpenFst's Gallic weights or k2's ragged aux_labels.

    arcs    for each arc, in order, the labels that it writes after its own output label
    finals  by state, the labels that its final weight writes; other states write none
    New states are numbered last. ValueError: another number of strings than arcs, or a state that does not exist; ArgumentError: a label below 1.
    """
    check(fst, Fst)
    given: Mapping[int, Iterable[int]] = check_mapping(finals or {}, "finals")
    if any(not 0 <= state < fst.num_states for state in given):
        raise ValueError(f"a string for a state that does not exist; the fst has {fst.num_states}")
    of_arcs, keep_arcs = (None, None) if arcs is None else _strings(arcs, fst.num_arcs, "arcs")
    of_finals, keep_finals = (None, None) if not given else _strings((given.get(state, ()) for state in range(fst.num_states)), fst.num_states, "states")
    result = Fst(create("wf_factor_weight", Fst._address_of(fst), of_arcs, of_finals, c_options("factor_weight", options)))
    del keep_arcs, keep_finals  # the call reads their memory
    return result


class Encoder(Handle):
    """Encodes labels, weights or both of the arcs of fsts as single labels, and decodes them. Used by one thread at a time."""

    _free = lib.wf_encoder_free

    @classmethod
    def create(cls, labels: bool = False, weights: bool = False, semiring: Semiring = "tropical") -> Encoder:
        """An encoder without labels."""
        return cls(create("wf_encoder_create", choose(semiring, SEMIRINGS, "semiring"), labels, weights))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Encoder:
        """Reads a table of `write` or of OpenFst's fstencode."""
        return cls(create("wf_encoder_read", encode_path(path)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the table in OpenFst's format."""
        call("wf_encoder_write", self.address, encode_path(path))

    def encode(self, fst: Fst) -> Fst:
        """The fst with encoded labels. Labels that are new are added to the encoder."""
        return Fst(create("wf_encoder_encode", self.address, Fst._address_of(fst)))

    def decode(self, fst: Fst) -> Fst:
        """The fst with the original labels and weights."""
        return Fst(create("wf_encoder_decode", self.address, Fst._address_of(fst)))

    def __len__(self) -> int:
        return int(lib.wf_encoder_num_labels(self.address))


def _pairs(pairs: Iterable[tuple[int, int]]) -> Any:
    return int32_array([label for pair in pairs for label in pair])


def _pairs_of_tables(fst: Fst, side: str, old: SymbolsLike | None, new: Symbols | None) -> list[tuple[int, int]]:
    """Pairs for the labels of one side of the fst, from the old table, or the fst's own, to the new one."""
    if new is None:
        return []
    table = getattr(fst, side) if old is None else as_symbols(old, f"old_{side}")
    if table is None:
        raise ArgumentError(f"the fst has no {side}; give old_{side}=")
    pairs = []
    for label in sorted({getattr(arc, "ilabel" if side == "isymbols" else "olabel") for arc in fst.arcs} - {0}):
        text = table.text(label)
        key = None if text is None else new.find(text)
        if key is None:
            raise ArgumentError(f"label {label} is not in the old table" if text is None else f"symbol {text!r} (label {label}) is not in the new table")
        pairs.append((label, key))
    return pairs


def relabel(
    fst: Fst,
    ipairs: Iterable[tuple[int, int]] = (),
    opairs: Iterable[tuple[int, int]] = (),
    *,
    old_isymbols: SymbolsLike | None = None,
    new_isymbols: SymbolsLike | None = None,
    old_osymbols: SymbolsLike | None = None,
    new_osymbols: SymbolsLike | None = None,
) -> Fst:
    """Replaces labels by pairs (old, new), or from one symbol table to another. Labels that no pair has are not changed.

    old_isymbols, old_osymbols  the tables of the labels as they are; None: those of the fst
    new_isymbols, new_osymbols  the tables of the result: each label becomes that of the same text. The fst gets these tables

    ArgumentError: pairs and tables for one side; a text that is not in the new table.
    """
    check(fst, Fst)
    news = [None if table is None else as_symbols(table, name) for table, name in ((new_isymbols, "new_isymbols"), (new_osymbols, "new_osymbols"))]
    given = [list(ipairs), list(opairs)]
    for k, (side, old) in enumerate((("isymbols", old_isymbols), ("osymbols", old_osymbols))):
        if given[k] and news[k] is not None:
            raise ArgumentError(f"relabel: give pairs or new_{side}, not both")
        given[k] = given[k] or _pairs_of_tables(fst, side, old, news[k])
    ins, outs = map(_pairs, given)
    made = Fst(create("wf_relabel", Fst._address_of(fst), ins, len(ins) // 2, outs, len(outs) // 2))
    return made if news == [None, None] else made.with_symbols(news[0] or made.isymbols, news[1] or made.osymbols)


def lenient_compose(a: Fst, b: Fst) -> Fst:
    """Lenient composition: as `compose` for the inputs of `a` that have an output in it, as `a` for the others (Karttunen 1998)."""
    both = compose(a, b)
    inputs = arcmap(project(both), map_type="rmweight")
    return union(both, invert(difference(invert(a), inputs, check_symbols=False)), check_symbols=False)


class Sums(NamedTuple):
    """The lowest and the highest cost of a state: -ln of the sum of exp(-cost) over its arcs and its final cost. True if both are within delta of 0."""

    stochastic: bool
    lowest: float
    highest: float

    def __bool__(self) -> bool:
        return self.stochastic


def is_stochastic(fst: Fst, delta: float = 0.01) -> Sums:
    """Whether the probabilities of each state sum to one, as Kaldi's fstisstochastic tests it."""
    info: Mapping[str, Any] = check(fst, Fst).info()
    lowest, highest = info["min_sum"], info["max_sum"]
    return Sums(abs(lowest) <= delta and abs(highest) <= delta, lowest, highest)


def add_self_loops(fst: Fst, ilabels: Iterable[int], olabels: Iterable[int]) -> Fst:
    """Adds self-loops with disambiguation symbols to states that are final or have an arc with output, like Kaldi's fstaddselfloops."""
    ins, outs = int32_array(list(ilabels)), int32_array(list(olabels))
    if len(ins) != len(outs):
        raise ValueError(f"{len(ins)} input labels and {len(outs)} output labels, expected the same number")
    return Fst(create("wf_add_self_loops", Fst._address_of(fst), ins, outs, len(ins)))


def remove_disambig(fst: Fst, ilabels: Iterable[int]) -> Fst:
    """Replaces the given input labels by epsilon."""
    ins = int32_array(list(ilabels))
    return Fst(create("wf_remove_disambig", Fst._address_of(fst), ins, len(ins)))


def shortest_distance(fst: Fst, **options: Unpack[types.ShortestDistanceOptions]) -> array.array[float]:
    """float32 [num_states]: the semiring's sum of the costs of all paths from the start to each state; with reverse=True, from each state to the final states."""
    out = create("wf_shortest_distance", fst.address, c_options("shortest_distance", options)) if check(fst, Fst).num_states else 0
    return take_numbers(out, "f", fst.num_states)


def forward_score(fst: Fst, **options: Unpack[types.ForwardScoreOptions]) -> float:
    """Total cost of all successful paths: -ln of the sum of exp(-cost) in the log semiring, the lowest cost in the tropical semiring."""
    cost = ctypes.c_double()
    call("wf_forward_score", Fst._address_of(fst), c_options("forward_score", options), ctypes.byref(cost), None)
    return cost.value


def forward_score_gradients(fst: Fst, **options: Unpack[types.ForwardScoreOptions]) -> tuple[float, array.array[float]]:
    """`forward_score`, and its derivatives by the arc weights (float64 [num_arcs]). Only in the log semiring."""
    cost, gradients = ctypes.c_double(), ctypes.c_void_p()
    call("wf_forward_score", Fst._address_of(fst), c_options("forward_score", options), ctypes.byref(cost), ctypes.byref(gradients))
    return cost.value, take_numbers(gradients.value, "d", fst.num_arcs)


class Comparison(NamedTuple):
    """The result of a comparison: true or false, and the first difference found."""

    equal: bool
    difference: str

    def __bool__(self) -> bool:
        return self.equal


def _compare(name: str, a: Fst, b: Fst, third: Any, check_symbols: bool = True) -> Comparison:
    out = ctypes.c_bool()
    a, b = _to_join((a, b), check_symbols)
    remark = call(name, Fst._address_of(a), Fst._address_of(b), third, ctypes.byref(out))
    return Comparison(out.value, "" if out.value else remark)


def equal(a: Fst, b: Fst, delta: float = 0.0, check_symbols: bool = True) -> Comparison:
    """Whether two fsts are the same, state by state and arc by arc, with weights that differ by at most delta, and symbol tables that agree."""
    return _compare("wf_equal", a, b, delta, check_symbols)


def equivalent(a: Fst, b: Fst, delta: float = 0.0009765625, check_symbols: bool = True) -> Comparison:
    """Whether two deterministic acceptors without epsilons accept the same strings with costs that differ by at most delta."""
    return _compare("wf_equivalent", a, b, delta, check_symbols)


def isomorphic(a: Fst, b: Fst, delta: float = 0.0009765625, check_symbols: bool = True) -> Comparison:
    """Whether two fsts are the same up to the numbers of states and the order of arcs, with symbol tables that agree."""
    return _compare("wf_isomorphic", a, b, delta, check_symbols)


def randequivalent(a: Fst, b: Fst, **options: Unpack[types.RandequivalentOptions]) -> Comparison:
    """Whether random paths have the same costs in both fsts. A difference proves that they are not equivalent; equality does not prove that they are."""
    return _compare("wf_randequivalent", a, b, c_options("randequivalent", options))
