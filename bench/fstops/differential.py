"""differential [--rounds=1000] [--seed=1] [--only=NAME,...] [--json] [--record]

Compares operations with OpenFst's (through pywrapfst, which the package pynini brings) on random machines. For each operation, it prints how many results are
identical (same states, arcs and order), isomorphic (the same up to numbers of states and order of arcs), or equivalent on random paths, and which of the two is
smaller. A result that is none of these is printed with its input, and the exit code is 1. Results that keep the paths of the input are compared with the input, too.

--record writes the counts to bench/figures, from which tools/pictures.py makes the table of docs/migrating/openfst.md.

OpenFst may fail or not end where ours has an error; such machines are not drawn, or are counted as refused by both.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import pynini
import pywrapfst

import warpfst as wf
from warpfst import strings

SEMIRINGS = {"tropical": "standard", "log": "log"}
Change = Callable[[Any], Any]


class Exchange:
    """Passes fsts from one library to the other, in OpenFst's format."""

    def __init__(self, folder: str) -> None:
        self.path = str(pathlib.Path(folder, "exchange.fst"))

    def to_openfst(self, fst: wf.Fst) -> Any:
        fst.write(self.path, "vector")
        return pywrapfst.Fst.read(self.path)

    def to_warpfst(self, fst: Any) -> wf.Fst:
        fst.write(self.path)
        return wf.Fst.read(self.path)


@dataclasses.dataclass
class Shape:
    states: int = 6
    arcs: int = 12
    labels: int = 3
    epsilons: float = 0.25
    finals: float = 0.35
    weights: bool = True
    acceptor: bool = False
    acyclic: bool = False


def random_fst(rng: random.Random, semiring: str, shape: Shape) -> wf.Fst:
    states = rng.randint(1, shape.states)
    arcs = []
    for _ in range(rng.randint(0, shape.arcs)):
        source, target = rng.randrange(states), rng.randrange(states)
        if shape.acyclic and source == target:
            continue
        if shape.acyclic and source > target:
            source, target = target, source
        labels = [0 if rng.random() < shape.epsilons else rng.randint(1, shape.labels) for _ in range(2)]
        if shape.acceptor:
            labels[1] = labels[0]
        weight = rng.randint(0, 32) / 8 if shape.weights else 0.0
        if semiring == "log":
            weight += 1.5 if shape.weights else 0  # so that sums over cycles exist
        arcs.append((source, target, labels[0], labels[1], weight))
    finals = {state: rng.randint(0, 16) / 8 if shape.weights else 0.0 for state in range(states) if rng.random() < shape.finals}
    finals.setdefault(states - 1, 0.0)
    arcs.sort(key=lambda arc: arc[0])
    return wf.Fst.from_arcs(arcs, finals, semiring=semiring)


@dataclasses.dataclass
class Case:
    """`draw` returns the inputs. `theirs` and `ours` return a result, or None if they refuse them. `keeps`: the result has the paths of the first input."""

    draw: Callable[[random.Random, str], tuple[Any, ...]]
    theirs: Callable[..., Any]
    ours: Callable[..., wf.Fst]
    keeps: bool = False
    semirings: tuple[str, ...] = ("tropical", "log")
    right: Callable[[wf.Fst], bool] = lambda fst: True  # a property that the result must have


def drawn(count: int = 1, **shape: Any) -> Callable[[random.Random, str], tuple[wf.Fst, ...]]:
    return lambda rng, semiring: tuple(random_fst(rng, semiring, Shape(**shape)) for _ in range(count))


# --- the cases --------------------------------------------------------------------------


def draw_map(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    names = ["identity", "input_epsilon", "invert", "output_epsilon", "plus", "power", "quantize", "rmweight", "superfinal", "times", "arc_sum", "arc_unique"]
    return random_fst(rng, semiring, Shape(labels=2)), rng.choice(names), rng.randint(1, 8) / 4  # OpenFst's power 0 makes all states final


def map_theirs(fst: Any, name: str, value: float) -> Any:
    if name in ("arc_sum", "arc_unique"):
        return pywrapfst.statemap(fst, name)
    return pywrapfst.arcmap(fst, map_type=name, power=value, weight=pywrapfst.Weight(fst.weight_type(), value), delta=0.5)


def map_ours(fst: wf.Fst, name: str, value: float) -> wf.Fst:
    return wf.fst.arcmap(fst, map_type=name, power=value, weight=value, delta=0.5)


def draw_difference(rng: random.Random, semiring: str) -> tuple[wf.Fst, wf.Fst]:
    a = random_fst(rng, semiring, Shape(acceptor=True))  # OpenFst takes no transducers
    b = random_fst(rng, "tropical", Shape(acceptor=True, weights=False, epsilons=0 if rng.random() < 0.5 else 0.2))
    return a, b.with_semiring(semiring)


def difference_theirs(a: Any, b: Any) -> Any:
    plain = pywrapfst.arcmap(b, map_type="to_std") if b.arc_type() == "log" else b.copy()  # in the log semiring, equal paths would get costs
    ready = pywrapfst.determinize(plain.rmepsilon()).arcsort("ilabel")
    return pywrapfst.difference(a, pywrapfst.arcmap(ready, map_type="to_log") if b.arc_type() == "log" else ready)


def draw_replace(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    """fst k may call those of larger numbers: label 10 + k calls fst k."""
    fsts = []
    for k in range(3):
        fst = random_fst(rng, semiring, Shape(states=4, arcs=6))
        calls = [(i, rng.randint(10 + k + 1, 12)) for i in range(fst.num_arcs) if k < 2 and rng.random() < 0.3]
        arcs, finals, at = [], {s: c for s, c in enumerate(fst.final_costs) if c != float("inf")}, 0
        called = dict(calls)
        for state in range(fst.num_states):
            for arc in fst.arcs_of(state):
                arcs.append((state, arc.nextstate, arc.ilabel, called.get(at, arc.olabel), arc.weight))
                at += 1
        fsts.append(wf.Fst.from_arcs(arcs, finals, semiring=semiring))
    options = {"call_arc_labeling": rng.choice(["input", "output", "both", "neither"]), "return_arc_labeling": rng.choice(["neither", "input", "output", "both"]),
               "return_label": rng.choice([0, 7]), "epsilon_on_replace": rng.random() < 0.2}  # fmt: skip
    return (*fsts, options)


def replace_theirs(a: Any, b: Any, c: Any, options: dict[str, Any]) -> Any:
    return pywrapfst.replace([(10, a), (11, b), (12, c)], **options)


def replace_ours(a: wf.Fst, b: wf.Fst, c: wf.Fst, options: dict[str, Any]) -> wf.Fst:
    return wf.fst.replace({10: a, 11: b, 12: c}, **options)


def draw_encode(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    return random_fst(rng, semiring, Shape(labels=2)), *rng.choice([(True, False), (False, True), (True, True)])


def encode_theirs(fst: Any, labels: bool, weights: bool, decode: bool = False) -> Any:
    mapper = pywrapfst.EncodeMapper(fst.arc_type(), encode_labels=labels, encode_weights=weights)
    encoded = fst.copy().encode(mapper)
    return encoded.decode(mapper) if decode else encoded


def encode_ours(fst: wf.Fst, labels: bool, weights: bool, decode: bool = False) -> wf.Fst:
    encoder = wf.fst.Encoder.create(labels, weights, fst.semiring)
    encoded = encoder.encode(fst)
    return encoder.decode(encoded) if decode else encoded


def draw_epsnormalize(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    """Without cycles of epsilons on one side that have labels on the other: OpenFst does not end there."""
    return random_fst(rng, semiring, Shape(acyclic=rng.random() < 0.6, epsilons=0.3)), rng.choice(["input", "output"])


def epsnormalize_ours(fst: wf.Fst, side: str) -> wf.Fst | None:
    try:
        return wf.fst.epsnormalize(fst, eps_norm_type=side)
    except wf.ArgumentError:
        return None


def synchronize_ours(fst: wf.Fst) -> wf.Fst | None:
    try:
        return wf.fst.synchronize(fst)
    except wf.ArgumentError:
        return None


def is_unambiguous(fst: wf.Fst) -> bool:
    """At most one path for each string: pairs of different paths of one string are followed until both end."""
    seen, waiting = {(0, 0, False)}, [(fst.start, fst.start, False)] if fst.start is not None else []
    finals = fst.final_costs
    while waiting:
        a, b, differ = waiting.pop()
        if differ and finals[a] != float("inf") and finals[b] != float("inf"):
            return False
        for i, x in enumerate(fst.arcs_of(a)):
            for j, y in enumerate(fst.arcs_of(b)):
                pair = (x.nextstate, y.nextstate, differ or a != b or i != j)
                if x.ilabel == y.ilabel and pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
    return True


def draw_acceptor(rng: random.Random, semiring: str) -> tuple[wf.Fst]:
    acyclic = rng.random() < 0.6
    fst = random_fst(rng, semiring, Shape(acceptor=True, epsilons=0 if semiring == "log" else 0.1, acyclic=acyclic, weights=acyclic, arcs=14, labels=2))
    return (wf.fst.relabel(fst, opairs=[(1, 5), (2, rng.choice([0, 6]))]) if rng.random() < 0.5 else fst,)  # a functional transducer


def disambiguate_ours(fst: wf.Fst) -> wf.Fst | None:
    try:
        return wf.fst.disambiguate(fst, max_states=3000)
    except wf.LimitError:
        return None


def is_deterministic(fst: wf.Fst) -> bool:
    return all(len(labels) == len(set(labels)) for s in range(fst.num_states) for labels in [[arc.ilabel for arc in fst.arcs_of(s)]])


def draw_determinizable(rng: random.Random, semiring: str) -> tuple[wf.Fst]:
    """Acceptors without cycles, or without weights."""
    acyclic = semiring == "log" or rng.random() < 0.6
    return (random_fst(rng, semiring, Shape(acceptor=True, acyclic=acyclic, weights=acyclic, epsilons=0, arcs=16, labels=2)),)


def draw_deterministic(rng: random.Random, semiring: str) -> tuple[wf.Fst]:
    return (wf.fst.determinize(*draw_determinizable(rng, semiring)),)


def nonfunctional_ours(fst: wf.Fst) -> wf.Fst | None:
    return wf.fst.determinize(fst, det_type="nonfunctional", delta=1e-6)


def only_final_labels_repeat(fst: wf.Fst) -> bool:
    """Each state has one arc per input label, but for epsilons, which write the outputs that are left at the end."""
    return all(len(labels) == len(set(labels)) for s in range(fst.num_states) for labels in [[a.ilabel for a in fst.arcs_of(s) if a.ilabel]])


def draw_push(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    return random_fst(rng, semiring, Shape(labels=2, epsilons=0.2, acyclic=True)), rng.random() < 0.5  # OpenFst does not end on some cycles


def push_theirs(fst: Any, to_final: bool) -> Any:
    return pywrapfst.push(fst, push_labels=True, remove_common_affix=True, reweight_type="to_final" if to_final else "to_initial")


def push_ours(fst: wf.Fst, to_final: bool) -> wf.Fst:
    return wf.fst.push(fst, push_weights=False, push_labels=True, remove_common_affix=True, to_final=to_final)


def draw_reweight(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    fst = random_fst(rng, semiring, Shape())
    return fst, [rng.randint(-16, 16) / 8 for _ in range(fst.num_states)], rng.random() < 0.5


def reweight_theirs(fst: Any, potentials: list[float], to_final: bool) -> Any:
    return fst.copy().reweight([pywrapfst.Weight(fst.weight_type(), value) for value in potentials], reweight_type="to_final" if to_final else "to_initial")


def reweight_ours(fst: wf.Fst, potentials: list[float], to_final: bool) -> wf.Fst:
    return wf.fst.reweight(fst, potentials, to_final=to_final)


def draw_strings(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    """Without cycles, on which OpenFst does not end."""
    fst = random_fst(rng, semiring, Shape(acyclic=True))
    string = lambda: [rng.randint(1, 4) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    return fst, [string() for _ in range(fst.num_arcs)], {state: string() for state in range(fst.num_states)}


def factor_theirs(fst: Any, arcs: list[list[int]], finals: dict[int, list[int]]) -> Any:
    """pywrapfst does not have it, so it runs in bench/peers/openfst_ops.cc, with the OpenFst that is installed."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        rows, at = [f"{state} final {' '.join(map(str, labels))}" for state, labels in finals.items()], iter(arcs)
        rows += [f"{state} {k} {' '.join(map(str, next(at)))}" for state in range(fst.num_states()) for k in range(fst.num_arcs(state))]
        (path / "strings").write_text("\n".join(rows) + "\n")
        fst.write(str(path / "in.fst"))
        command = [measure.BUILD / "openfst_ops", "factorweight", path / "in.fst", f"--strings={path / 'strings'}", f"--output={path / 'out.fst'}"]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        return pywrapfst.Fst.read(str(path / "out.fst"))


def random_text(rng: random.Random, longest: int) -> str:
    return "".join(rng.choice("abc") for _ in range(rng.randint(0, longest)))


def draw_rule(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    """Rewrites of one to three strings, empty ones, too; contexts of any of up to two strings."""
    tau = strings.string_map([(random_text(rng, 2), random_text(rng, 2)) for _ in range(rng.randint(1, 3))])
    contexts = [strings.string_map([random_text(rng, 2) for _ in range(rng.randint(1, 2))]) for _ in range(2)]
    return tau, *contexts, wf.fst.closure(strings.any_of("abc")), rng.choice(["ltr", "rtl", "sim"]), rng.random() < 0.7


def rule_theirs(tau: Any, left: Any, right: Any, sigma: Any, direction: str, mandatory: bool) -> Any:
    parts = [pynini.Fst.from_pywrapfst(fst) for fst in (tau, left, right, sigma)]
    return pynini.cdrewrite(*parts, direction=direction, mode="obl" if mandatory else "opt")


def random_written(rng: random.Random, longest: int) -> str:
    """A text with letters, escapes, and numbers and names in brackets."""
    pieces = ["a", "b", "é", "\\[", "\\]", "\\\\", "\\a", "[65]", "[0x42]", "[0103]", "[08]", "[name]", "[a b name]", "[x]", "[another name]", "[é]", "[BOS]", "[EOS]", "[a\\]b]", "[]"]
    return "".join(rng.choice(pieces) for _ in range(rng.randint(0, longest)))


def with_our_symbols(fst: Any) -> Any:
    """pynini numbers symbols in the order of their use."""
    pairs = [(label, strings.symbol_label(name)) for label, name in pynini.generated_symbols() if label]
    pairs += [(pynini.accep(f"[{name}]").arcs(0).value().ilabel, strings.symbol_label(name)) for name in ("BOS", "EOS")]
    return fst.relabel_pairs(ipairs=pairs, opairs=pairs)


def draw_accep(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    return random_written(rng, 6), rng.randint(0, 8) / 4, rng.choice(["byte", "utf8"])


def draw_string_map(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    rows = [[random_written(rng, 3) for _ in range(rng.randint(1, 2))] for _ in range(rng.randint(1, 5))]
    return [[*row, str(rng.randint(0, 8) / 4)] if len(row) == 2 and rng.random() < 0.5 else row for row in rows], *(rng.choice(["byte", "utf8"]) for _ in range(2))


def through_file(read: Callable[..., Any]) -> Callable[..., Any]:
    """Calls string_file with a file of the rows; a "#" would start a comment."""

    def call(rows: list[list[str]], *token_types: str) -> Any:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("".join("\t".join(row) + "  # comment\n" for row in rows if any(row)) or "a\n")
            file.flush()
            return read(file.name, *token_types)

    return call


def with_bounds(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    lower, upper = sorted(rng.choices(range(4), k=2))
    return random_fst(rng, semiring, Shape(states=4, arcs=6)), lower, upper


def draw_lenient(rng: random.Random, semiring: str) -> tuple[Any, ...]:
    """Maps of strings: pynini subtracts determinized inputs, which others may not have."""
    maps = [strings.string_map([(random_text(rng, 2), random_text(rng, 2), rng.randint(0, 8) / 4) for _ in range(rng.randint(1, 4))]) for _ in range(2)]
    return maps[0], maps[1], wf.fst.closure(strings.any_of("abc"))


def lenient_theirs(a: Any, b: Any, sigma_star: Any) -> Any:
    return pynini.leniently_compose(*map(pynini.Fst.from_pywrapfst, (a, b, sigma_star)))


def tropical(fst: Any, weight: float) -> Any:
    return pywrapfst.Weight(fst.weight_type(), weight)


CASES = {
    "accep": Case(draw_accep, lambda text, weight, kind: with_our_symbols(pynini.accep(text, weight=weight, token_type=kind)), strings.accep, semirings=("tropical",)),
    "string_map": Case(
        draw_string_map,
        lambda rows, *kinds: with_our_symbols(pynini.string_map(rows, input_token_type=kinds[0], output_token_type=kinds[1])),
        strings.string_map,
        semirings=("tropical",),
    ),
    "string_file": Case(
        draw_string_map,
        through_file(lambda path, *kinds: with_our_symbols(pynini.string_file(path, input_token_type=kinds[0], output_token_type=kinds[1]))),
        through_file(strings.string_file),
        semirings=("tropical",),
    ),
    "cdrewrite": Case(draw_rule, rule_theirs, strings.cdrewrite, semirings=("tropical",)),
    "compose": Case(drawn(2), lambda a, b: pywrapfst.compose(a.copy().arcsort("olabel"), b), wf.fst.compose),
    "compose with pushing": Case(
        drawn(2, acyclic=True), lambda a, b: pywrapfst.compose(a.copy().arcsort("olabel"), b), lambda a, b: wf.fst.compose(a, b, lookahead_push=True)
    ),
    "intersect": Case(drawn(2, acceptor=True), lambda a, b: pywrapfst.intersect(a.copy().arcsort("olabel"), b), wf.fst.compose),
    "union": Case(drawn(2), lambda a, b: a.copy().union(b), wf.fst.union),
    "concat": Case(drawn(2), lambda a, b: a.copy().concat(b), wf.fst.concat),
    "closure": Case(drawn(), lambda fst: fst.copy().closure(), wf.fst.closure),
    "closure with bounds": Case(with_bounds, lambda fst, *bounds: pynini.closure(pynini.Fst.from_pywrapfst(fst), *bounds), wf.Fst.closure),
    "lenient composition": Case(draw_lenient, lenient_theirs, lambda a, b, sigma_star: wf.fst.lenient_compose(a, b), semirings=("tropical",)),
    "reverse": Case(drawn(), pywrapfst.reverse, wf.fst.reverse),
    "invert": Case(drawn(), lambda fst: fst.copy().invert(), wf.fst.invert),
    "project": Case(drawn(), lambda fst: fst.copy().project("output"), lambda fst: wf.fst.project(fst, project_type="output")),
    "connect": Case(drawn(), lambda fst: fst.copy().connect(), wf.fst.connect, keeps=True),
    "arcsort": Case(drawn(), lambda fst: fst.copy().arcsort("ilabel"), wf.fst.arcsort, keeps=True),
    "topsort": Case(drawn(acyclic=True), lambda fst: fst.copy().topsort(), wf.fst.topsort, keeps=True),
    "prune": Case(
        drawn(),
        lambda fst: pywrapfst.prune(fst, weight=pywrapfst.Weight(fst.weight_type(), 2)),
        lambda fst: wf.fst.prune(fst, weight=2),
        semirings=("tropical",),
    ),
    "rmepsilon": Case(drawn(epsilons=0.4), lambda fst: fst.copy().rmepsilon(), wf.fst.rmepsilon, keeps=True),
    "rmepsilon with weight": Case(
        drawn(epsilons=0.4), lambda fst: fst.copy().rmepsilon(weight=tropical(fst, 2)), lambda fst: wf.fst.rmepsilon(fst, weight=2), semirings=("tropical",)
    ),
    "shortestpath with weight": Case(
        drawn(acyclic=True),
        lambda fst: pywrapfst.shortestpath(fst, nshortest=20, weight=tropical(fst, 1)),
        lambda fst: wf.fst.shortest_path(fst, nshortest=20, weight=1),
        semirings=("tropical",),
    ),
    "determinize": Case(draw_determinizable, pywrapfst.determinize, wf.fst.determinize, keeps=True, right=is_deterministic),
    "minimize": Case(draw_deterministic, lambda fst: fst.copy().minimize(), wf.fst.minimize, keeps=True),
    "push": Case(drawn(acyclic=True), lambda fst: pywrapfst.push(fst, push_weights=True), wf.fst.push, keeps=True),
    "map": Case(draw_map, map_theirs, map_ours),
    "difference": Case(draw_difference, difference_theirs, wf.fst.difference),
    "replace": Case(draw_replace, replace_theirs, replace_ours),
    "encode": Case(draw_encode, encode_theirs, encode_ours),
    "decode": Case(draw_encode, lambda *a: encode_theirs(*a, decode=True), lambda *a: encode_ours(*a, decode=True), keeps=True),
    "epsnormalize": Case(draw_epsnormalize, lambda fst, side: pywrapfst.epsnormalize(fst.copy().connect(), eps_norm_type=side), epsnormalize_ours, keeps=True),
    "synchronize": Case(drawn(acyclic=True, epsilons=0.35), pywrapfst.synchronize, synchronize_ours, keeps=True),
    "disambiguate": Case(draw_acceptor, pywrapfst.disambiguate, disambiguate_ours, keeps=True, right=is_unambiguous),
    "determinize nonfunctional": Case(drawn(acyclic=True, labels=2), lambda fst: pywrapfst.determinize(fst, det_type="nonfunctional"), nonfunctional_ours, keeps=True, right=only_final_labels_repeat),
    "push without affix": Case(draw_push, push_theirs, push_ours),
    "factor_weight": Case(draw_strings, factor_theirs, wf.fst.factor_weight, semirings=("tropical",)),
    "reweight": Case(draw_reweight, reweight_theirs, reweight_ours, keeps=True),
}


# --- comparison -------------------------------------------------------------------------


def compare(theirs: wf.Fst, ours: wf.Fst) -> str:
    if wf.fst.equal(theirs, ours, 1e-3):
        return "identical"
    try:
        if wf.fst.isomorphic(theirs, ours, 1e-3):
            return "isomorphic"
    except wf.UnsupportedError:
        pass
    return "equivalent" if wf.fst.randequivalent(theirs, ours, npath=30, max_length=40, delta=0.01) else "different"


def as_passed(value: Any, convert: Change) -> Any:
    return convert(value) if isinstance(value, wf.Fst) else value


def run_case(case: Case, rounds: int, seed: int, exchange: Exchange) -> tuple[collections.Counter[str], list[str]]:
    counts: collections.Counter[str] = collections.Counter()
    problems = []
    for index in range(rounds):
        rng = random.Random(f"{seed} {index}")
        inputs = case.draw(rng, case.semirings[index % len(case.semirings)])
        ours = case.ours(*inputs)
        if ours is None:
            counts["refused"] += 1
            continue
        try:
            theirs = exchange.to_warpfst(case.theirs(*(as_passed(value, exchange.to_openfst) for value in inputs)))
        except pywrapfst.FstOpError:
            counts["OpenFst fails"] += 1
            continue
        verdict = compare(theirs, ours)
        kept = not case.keeps or wf.fst.randequivalent(inputs[0], ours, npath=30, max_length=40, delta=0.01)
        theirs_kept = not case.keeps or wf.fst.randequivalent(inputs[0], theirs, npath=30, max_length=40, delta=0.01)
        if verdict == "different" and case.keeps and kept and not theirs_kept:
            verdict = "OpenFst wrong"
        if ours.num_states != theirs.num_states:
            counts["smaller" if ours.num_states < theirs.num_states else "larger"] += 1
        counts[verdict] += 1
        if verdict == "different" or not kept or not case.right(ours):
            counts["WRONG"] += 1
            problems.append(f"round {index}: {verdict}, paths kept: {bool(kept)}, form: {case.right(ours)}\n" + "\n".join(x.to_text() if isinstance(x, wf.Fst) else repr(x) for x in (*inputs, theirs, ours)))
    return counts, problems


COLUMNS = ["identical", "isomorphic", "equivalent", "OpenFst wrong", "OpenFst fails", "refused", "smaller", "larger", "WRONG"]


def figures(name: str, rounds: int, counts: collections.Counter[str]) -> list[tuple[str, str, int, str]]:
    """Figures for measure.record. All counts are written, so that none of an earlier run stays."""
    return [(f"differential {name}", f"{column} of {rounds} random machines", counts[column], "machines") for column in COLUMNS]


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    wrong = False
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        if not options.json:
            print(f"{'operation':28}{'rounds':>8}" + "".join(f"{name:>15}" for name in COLUMNS), flush=True)
        for name, case in CASES.items():
            if options.only and name not in options.only.split(","):
                continue
            counts, problems = run_case(case, options.rounds, options.seed, Exchange(folder))
            wrong = wrong or bool(problems)
            if options.record:
                measure.record(figures(name, options.rounds, counts), f"./run bench differential --rounds={options.rounds}")
            if options.json:
                print(json.dumps({"operation": name, "rounds": options.rounds, **counts}), flush=True)
            else:
                print(f"{name:28}{options.rounds:>8}" + "".join(f"{counts[column]:>15}" for column in COLUMNS), flush=True)
            for problem in problems[:3]:
                print(problem, file=sys.stderr)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
