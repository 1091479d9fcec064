"""Operators, building, weights and tables as pynini has them: against lists of strings, plain arithmetic and sets."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest
from conftest import arcs_of, best_by_strings, paths

import warpfst as wf
from warpfst.fst import Arc, FstBuilder, Weight
from warpfst.strings import (
    accep,
    add_weight,
    byte,
    cdrewrite,
    cross,
    edit_transducer,
    insert,
    join,
    matches,
    optimal_rewrites,
    paradigms,
    rewrite,
    string_map,
    top_rewrite,
    top_rewrites,
    utf8,
)

LETTERS = "ab"


def pairs(fst):
    """{(input, output): lowest cost} of an acyclic fst."""
    best = {}
    for path in fst.paths():
        best[path[:2]] = min(path.cost, best.get(path[:2], math.inf))
    return best


def language(rng):
    """A few strings with costs, and their acceptor."""
    strings = {"".join(rng.choices(LETTERS, k=rng.randint(0, 3))): rng.randint(0, 8) / 4 for _ in range(rng.randint(1, 4))}
    return strings, string_map([(text, text, cost) for text, cost in strings.items()])


def test_operators_are_those_of_sets():
    rng = random.Random(1)
    for _ in range(100):
        (a, fa), (b, fb) = language(rng), language(rng)
        assert pairs(fa | fb) == {(x, x): min(a.get(x, math.inf), b.get(x, math.inf)) for x in {*a, *b}}
        both = {}
        for (x, p), (y, q) in itertools.product(a.items(), b.items()):
            both[x + y, x + y] = min(p + q, both.get((x + y, x + y), math.inf))
        assert pairs(fa + fb) == both
        assert pairs(fa @ fb) == {(x, x): a[x] + b[x] for x in a.keys() & b.keys()}
        plain = string_map(list(b))
        assert pairs(fa - plain) == {(x, x): a[x] for x in a.keys() - b.keys()}
        assert pairs(fa.ques) == {(x, x): min(a.get(x, math.inf), 0.0 if x == "" else math.inf) for x in {*a, ""}}
        lower, upper = sorted(rng.choices(range(4), k=2))
        counted = {}
        for count in range(lower, max(upper, 1) + 1):
            for parts in itertools.product(a.items(), repeat=count):
                text = "".join(part for part, _ in parts)
                counted[text, text] = min(sum(cost for _, cost in parts), counted.get((text, text), math.inf))
        assert pairs(fa.closure(lower, max(upper, 1))) == counted


def test_unbounded_repetition():
    a = accep("ab")
    for fst, accepted in ((a.star, range(9)), (a.plus, range(1, 9)), (a.closure(3), range(3, 9)), (wf.fst.closure(a, 2), range(2, 9)), (wf.fst.closure(a, 1, 2), (1, 2))):
        assert [n for n in range(9) if matches("ab" * n, "ab" * n, fst)] == list(accepted)
    for wrong in ((-1, 0), (3, 2)):
        with pytest.raises(ValueError, match="repetitions"):
            a.closure(*wrong)
    with pytest.raises(ValueError, match="not both"):
        wf.fst.closure(a, 1, closure_type="plus")


def test_each_number_of_repetitions_counts_once():
    """In the log semiring, in which the probabilities of equal strings are added."""
    half = wf.Fst.from_arcs([(0, 1, 97, 97, 0.5)], {1: 0.0}, semiring="log")
    assert math.isclose(wf.fst.forward_score(half.closure(1, 4)), -math.log(sum(math.exp(-0.5 * n) for n in range(1, 5))))


def test_operators_take_texts():
    a = accep("b")
    assert [("a" + a).string(), (a + "c").string(), ("b" @ a).string(), (a @ "b").string()] == ["ab", "bc", "b", "b"]
    assert pairs("a" | a).keys() == pairs(a | "a").keys() == {("a", "a"), ("b", "b")}
    assert pairs(a - "b") == pairs("b" - a) == {} and (a + "[65]").string() == "bA"
    for wrong in (5, None, ["a"], object()):
        for operation in ("__add__", "__or__", "__matmul__", "__sub__", "__radd__", "__ror__", "__rmatmul__", "__rsub__"):
            assert getattr(a, operation)(wrong) is NotImplemented
    with pytest.raises(TypeError):
        a + 5
    with pytest.raises(wf.ArgumentError, match="no path"):
        (a @ "c").string()
    with pytest.raises(wf.ArgumentError, match="several"):
        (a | "c").string()


def test_a_builder_makes_what_from_arcs_makes():
    rng = random.Random(2)
    for _ in range(50):
        states = rng.randint(1, 5)
        arcs = [(rng.randrange(states), rng.randrange(states), rng.randint(0, 3), rng.randint(0, 3), rng.randint(0, 8) / 4) for _ in range(rng.randint(0, 9))]
        finals = {rng.randrange(states): rng.randint(0, 4) / 2 for _ in range(2)}
        builder = FstBuilder(semiring="log")
        assert [builder.add_state(), *builder.add_states(states - 1)] == list(range(states))
        for source, target, ilabel, olabel, weight in arcs:
            builder.add_arc(source, Arc(ilabel, olabel, weight, target))
        for state, cost in finals.items():
            builder.set_final(state, cost)
        start = rng.randrange(states)
        builder.set_start(start)
        fst = builder.build()
        assert (fst.num_states, fst.num_arcs, fst.start, fst.semiring) == (states, len(arcs), start, "log") == (builder.num_states, builder.num_arcs, builder.start, builder.semiring)
        by_source = sorted(arcs, key=lambda arc: arc[0])
        assert [(s, arc.nextstate, arc.ilabel, arc.olabel, arc.weight) for s in range(states) for arc in fst.arcs_of(s)] == by_source
        assert {s: c for s, c in enumerate(fst.final_costs) if c < math.inf} == finals
        again = FstBuilder(fst)
        assert again.build().to_bytes() == fst.to_bytes()
        new = again.add_state()  # goes on from what was built
        again.add_arc(0, (1, 2, 0.5, new))
        again.set_final(new)
        assert again.build().num_states == states + 1 == new + 1 and again.final(new) == 0.0 and builder.build().num_states == states


def test_what_a_builder_refuses():
    builder = FstBuilder()
    assert builder.start is None and builder.build().num_states == 0
    state = builder.add_state()
    for call in (lambda: builder.set_start(1), lambda: builder.set_final(-1), lambda: builder.add_arc(1, Arc(1, 1, 0.0, 0)), lambda: builder.add_arc(0, Arc(1, 1, 0.0, 1)), lambda: builder.final(1)):
        with pytest.raises(IndexError, match="of 1"):
            call()
    with pytest.raises(ValueError, match="label -1"):
        builder.add_arc(state, Arc(-1, 1, 0.0, 0))
    with pytest.raises(TypeError):
        builder.add_arc(state, Arc(1, 1, "x", 0))
    assert builder.num_arcs == 0 and builder.start == 0
    builder.add_arc(state, Arc(1, 1, math.nan, 0))
    with pytest.raises(wf.ArgumentError):
        builder.build()


def test_arcs_of_arrays():
    rng = random.Random(3)
    arcs = [(rng.randrange(6), rng.randrange(6), rng.randint(0, 9), rng.randint(0, 9), rng.randint(0, 8) / 4) for _ in range(40)]
    kinds = [("source", "i8"), ("target", "i4"), ("ilabel", "u2"), ("olabel", "i8"), ("weight", "f8")]
    wanted = wf.Fst.from_arcs(arcs, {5: 1.0}, start=2).to_bytes()
    fields = np.array(arcs, dtype=kinds)
    other_order = np.empty(40, dtype=[("weight", "f4"), ("nextstate", "u4"), ("source", "i4"), ("ilabel", "i4"), ("olabel", "i4")])
    for name in other_order.dtype.names:
        other_order[name] = fields["target" if name == "nextstate" else name]
    for array in (np.array(arcs), np.array(arcs, dtype="f4"), np.asfortranarray(np.array(arcs)), fields, other_order):
        assert wf.Fst.from_arcs(array, {5: 1.0}, start=2).to_bytes() == wanted
    assert wf.Fst.from_arcs(np.array([[0, 1, 1, 2, 0]]), {1: 0.0}).num_arcs == 1 and wf.Fst.from_arcs(np.empty((0, 5)), {0: 0.0}).num_states == 1
    for wrong, message in (
        ([[0, 1, 1.5, 1, 0]], "ilabel 1.5"), ([[0, -1, 1, 1, 0]], "target -1"), ([[0, 1, 1, 2**31, 0]], "olabel"), ([[0, 1, 1, 1]], "shape"), ([0, 1, 1, 1, 0], "shape"), ([[0, 1, np.nan, 1, 0]], "ilabel nan"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message), np.errstate(invalid="ignore"):
            wf.Fst.from_arcs(np.array(wrong), {1: 0.0})
    with pytest.raises(ValueError, match="fields"):
        wf.Fst.from_arcs(np.zeros(3, dtype=[("a", "i4")]), {1: 0.0})


def test_weights():
    a, b = Weight(1.0), Weight(3.0)
    assert (a.plus(b), a.times(b), b.divide(a), a.power(3), Weight.one().power(0)) == (1.0, 4.0, 2.0, 3.0, 0.0)
    x, y = Weight(1.0, "log"), Weight("3.0", "log")
    assert math.isclose(x.plus(y), -math.log(math.exp(-1) + math.exp(-3))) and x.plus(y).semiring == "log" and x.plus(y) == y.plus(x)
    for kind in ("tropical", "log"):
        zero, one, w = Weight.zero(kind), Weight.one(kind), Weight(2.5, kind)
        assert w.plus(zero) == w == zero.plus(w) and w.times(one) == w and w.times(zero) == zero == zero.plus(zero) and w.times(w.times(one).divide(w)) == w
        assert pickle.loads(pickle.dumps(w)).semiring == kind and repr(w) == f"Weight(2.5, {kind!r})"
    for call in (lambda: Weight(math.nan), lambda: Weight(-math.inf), lambda: a.plus(x), lambda: a.divide(math.inf), lambda: Weight(1, "real"), lambda: Weight("x")):
        with pytest.raises(ValueError, match=r"cost|semiring|weight|convert"):
            call()
    fst = wf.Fst.from_arcs([(0, 1, 1, 1, a)], {1: b})
    assert fst.arcs[0].weight == 1.0 and fst.final_costs[1] == 3.0


def test_tables():
    a = wf.Symbols({"<eps>": 0, "x": 1, "y": 5})
    b = wf.Symbols({"<eps>": 0, "z": 1, "x": 2, "w": 3, "v": 5})
    merged = a.merge(b)
    assert dict(merged) == {"<eps>": 0, "x": 1, "y": 5, "w": 3, "z": 6, "v": 7} and len(a) == 3 and len(b) == 5
    copy = a.copy()
    copy.add_table(b)
    assert dict(copy) == {"<eps>": 0, "x": 1, "y": 5, "z": 6, "w": 7, "v": 8} and len(a) == 3
    assert a.member("x") and a.member(5) and not a.member("z") and not a.member(2)
    with pytest.raises(TypeError, match="Symbols"):
        a.merge({"x": 1})


def test_tables_in_files_and_their_checksums(tmp_path):
    table = wf.Symbols({"<eps>": 0, "hello": 1, "wörld": 7, "z": 3, "abcdefghijklmnopqrstuvwxyzabcdefghij": 2}, "x")
    table.write(tmp_path / "t.syms", "binary")
    assert (tmp_path / "t.syms").read_bytes() == table.to_bytes() and dict(wf.Symbols.read(tmp_path / "t.syms")) == dict(table)
    with pytest.raises(ValueError, match="none of"):
        table.write(tmp_path / "t.txt", "fst")
    # those of OpenFst 1.8.3
    assert bytes.fromhex(table.checksum()) == b"P\x08\x1e\x1cNq\x1a\x16\x18\x19\x19w\x0f\xba\xcc\x13\x0e\x07d\x1ff\x06\n\n\x0eefghijk"
    assert bytes.fromhex(table.labeled_checksum()) == b"O\x11\x05\x05IqI\x12\x04\x0e\x0f\x0blW\x06\n\n\x0elT\x1daZ\x1d\xa8\xda\x1f\x02\x0byFr"


def test_relabel_by_tables():
    old, new = wf.Symbols(["<eps>", "a", "b"]), wf.Symbols({"<eps>": 0, "b": 7, "a": 9})
    fst = wf.Fst.from_text("0 1 a b\n1 2 b <eps>\n2\n", old, old)
    both = wf.fst.relabel(fst, new_isymbols=new, new_osymbols=new)
    assert [(arc.ilabel, arc.olabel) for arc in both.arcs] == [(9, 7), (7, 0)] and both.to_text() == fst.to_text() and dict(both.isymbols) == dict(new)
    plain = fst.with_symbols(None, None)
    one = wf.fst.relabel(plain, old_isymbols=old, new_isymbols=["<eps>", "b", "a"])
    assert [(arc.ilabel, arc.olabel) for arc in one.arcs] == [(2, 2), (1, 0)] and one.osymbols is None
    for arguments, message in (({"new_isymbols": new}, "old_isymbols"), ({"old_isymbols": old, "new_isymbols": ["<eps>", "a"]}, "'b'"), ({"ipairs": [(1, 2)], "old_isymbols": old, "new_isymbols": new}, "not both")):
        with pytest.raises(wf.ArgumentError, match=message):
            wf.fst.relabel(plain, **arguments)


def test_thresholds_are_those_of_prune(rng):
    for _ in range(40):
        a, _ = language(random.Random(int(rng.integers(1 << 30))))
        fst = wf.fst.union(*(accep(text, cost) for text, cost in a.items()), accep("", 9.0))
        for weight in (0.0, 0.5, 1.5):
            best = min(a.values())
            near = {(text, text): cost for text, cost in a.items() if cost <= best + weight}
            for made in (wf.fst.rmepsilon(fst, weight=weight), wf.fst.determinize(wf.fst.rmepsilon(fst), weight=weight), wf.fst.shortest_path(fst, nshortest=9, unique=True, weight=weight)):
                assert pairs(made) == near
    full = wf.fst.determinize(wf.fst.rmepsilon(fst))
    for limit in range(1, full.num_states + 1):
        assert wf.fst.determinize(wf.fst.rmepsilon(fst), nstate=limit).to_bytes() == wf.fst.prune(full, nstate=limit).to_bytes()


def test_shortest_paths_of_log_fsts_are_those_of_the_lowest_cost():
    fst = wf.Fst.from_arcs([(0, 1, 1, 1, 1.0), (0, 1, 1, 1, 1.0), (0, 1, 2, 2, 0.9)], {1: 0.0}, semiring="log")
    best = wf.fst.shortest_path(fst)
    assert best.semiring == "log" and [arc.ilabel for arc in best.arcs] == [2]
    assert wf.fst.shortest_path(fst, nshortest=3).with_semiring("tropical").to_text() == wf.fst.shortest_path(fst.with_semiring("tropical"), nshortest=3).to_text()


def test_is_stochastic():
    half = -math.log(0.5)
    fst = wf.Fst.from_arcs([(0, 1, 1, 1, half), (0, 0, 2, 2, half)], {1: 0.0})
    assert wf.fst.is_stochastic(fst) and not wf.fst.is_stochastic(wf.Fst.from_arcs([(0, 1, 1, 1, 0.5)], {1: 0.25}))
    sums = wf.fst.is_stochastic(wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (0, 1, 2, 2, 0.5)], {1: 0.25}))
    assert math.isclose(sums.lowest, 0.5 - math.log(2)) and math.isclose(sums.highest, 0.25)


def test_lenient_composition():
    a = string_map([("x", "1"), ("y", "2"), ("z", "3")])
    assert pairs(wf.fst.lenient_compose(a, string_map([("1", "one"), ("3", "three", 0.5)]))) == {("x", "one"): 0.0, ("y", "2"): 0.0, ("z", "three"): 0.5}


def distance(a, b, insertion=1.0, deletion=1.0, substitution=1.0):
    """The edit distance, by the table that everyone knows."""
    row = [j * insertion for j in range(len(b) + 1)]
    for x in a:
        above, row = row, [row[0] + deletion]
        row += [0.0] * len(b)
        for j, y in enumerate(b):
            row[j + 1] = min(row[j] + insertion, above[j + 1] + deletion, above[j] + (substitution if x != y else 0.0))
    return row[-1]


@pytest.mark.parametrize("costs", [(1.0, 1.0, 1.0), (0.5, 2.0, 1.25)])
def test_edit_transducer(costs):
    rng = random.Random(4)
    free = edit_transducer("abc", *costs)
    for _ in range(60):
        a, b = ("".join(rng.choices("abc", k=rng.randint(0, 5))) for _ in range(2))
        assert math.isclose(wf.fst.forward_score(accep(a) @ free @ accep(b)), distance(a, b, *costs))
    near = edit_transducer(["ab", "c"], bound=2)
    assert {n for n in range(5) if matches("ab" * 4, "c" * n + "ab" * (4 - n), near)} == {0, 1, 2}
    assert rewrite("cb", edit_transducer("abc", bound=1) @ string_map(["cab", "bbbb"])) == "cab"
    assert matches("ab", "ab", edit_transducer("ab", bound=0)) and not matches("ab", "b", edit_transducer("ab", bound=0))
    with pytest.raises(ValueError, match="bound -1"):
        edit_transducer("ab", bound=-1)


def test_rewrites():
    rule = string_map([("x", "a", 1.0), ("x", "b", 1.0), ("x", "c", 2.0)])
    assert top_rewrites("x", rule, 2) == ["a", "b"] and top_rewrite("x", rule) in "ab" and optimal_rewrites("x", rule) == ["a", "b"]
    assert matches("x", "c", rule) and not matches("x", "d", rule) and not matches("y", "c", rule) and optimal_rewrites("y", rule) == []
    with pytest.raises(wf.ArgumentError, match="several best outputs"):
        top_rewrite("x", rule, unique=True)
    with pytest.raises(wf.ArgumentError, match="no output"):
        top_rewrite("y", rule)
    assert pairs(join("a", ",") @ "a,a") == {("a,a", "a,a"): 0.0} and not matches("a,", "a,", join("a", ",")) and not matches("", "", join("a", ","))
    assert pairs(add_weight("a", 0.5)) == {("a", "a"): 0.5} and pairs(insert("a", weight=1.5) + cross("x", "y")) == {("x", "ay"): 1.5}


def test_classes_of_bytes():
    is_class = {"ALNUM": str.isalnum, "ALPHA": str.isalpha, "DIGIT": str.isdigit, "LOWER": str.islower, "UPPER": str.isupper, "SPACE": lambda c: c in " \t\n\r\v\f", "HEX": lambda c: c in "0123456789abcdefABCDEF"}
    for name, test in is_class.items():
        labels, others = ({arc.ilabel for arc in getattr(byte, kind).arcs} for kind in (name, f"NOT_{name}"))
        assert labels == {b for b in range(1, 128) if test(chr(b))} and labels | others == set(range(1, 256)) and not labels & others
    assert byte.BYTE.num_arcs == 255 and byte.PUNCT.num_arcs + byte.ALNUM.num_arcs == byte.GRAPH.num_arcs and "DIGIT" in dir(byte)
    with pytest.raises(AttributeError, match="XYZ"):
        _ = byte.XYZ


def test_characters_of_utf8():
    rng = random.Random(5)
    edges = [1, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    for _ in range(30):
        low, high = sorted(rng.choice([rng.choice(edges), rng.choice((rng.randrange(1, 0xD800), rng.randrange(0xE000, 0x110000)))]) for _ in range(2))
        fst = utf8.characters(chr(low), chr(high))
        for code in {*edges, low, high, low + 1, high - 1, low - 1, high + 1, *(rng.randrange(low, high + 1) for _ in range(5))} - {0, 0x110000}:
            if not 0xD800 <= code < 0xE000:
                assert matches(chr(code), chr(code), fst) == (low <= code <= high), (low, high, code)
    assert all(matches(chr(code), chr(code), utf8.VALID_UTF8_CHAR) for code in edges)
    for invalid in (b"\x80", b"\xc1\x81", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        text = invalid.decode("utf-8", "surrogateescape")
        assert not matches(text, text, utf8.VALID_UTF8_CHAR)
    for wrong in (("b", "a"), ("ab", "c"), ("\0", "a")):
        with pytest.raises(ValueError, match="in this order"):
            utf8.characters(*wrong)


def test_paths_have_the_costs_of_all_paths(rng):
    fst = wf.Fst.from_arcs([(0, 1, 97, 98, 0.5), (0, 1, 97, 98, 0.25), (1, 2, 98, 0, 1.0)], {1: 0.0, 2: 0.5})
    assert sorted(fst.paths()) == [("a", "b", 0.25), ("a", "b", 0.5), ("ab", "b", 1.75), ("ab", "b", 2.0)]
    assert {(tuple(i), tuple(o)) for (i, o) in best_by_strings(paths(*arcs_of(fst)))} == {((97,), (98,)), ((97, 98), (98,))}
    with pytest.raises(wf.ArgumentError, match="cycle"):
        accep("a").star.paths()


ENDINGS = {  # of the first declension
    "a": (("sg", "nom"), ("sg", "abl")), "am": (("sg", "acc"),), "ae": (("sg", "gen"), ("sg", "dat"), ("pl", "nom")), "as": (("pl", "acc"),), "arum": (("pl", "gen"),),
    "is": (("pl", "dat"), ("pl", "abl")),
}  # fmt: skip


def test_paradigms():
    noun = paradigms.Category(paradigms.Feature("number", "sg", "pl"), paradigms.Feature("case", "nom", "acc", "gen", "dat", "abl"))
    assert [feature.name for feature in noun.features] == ["case", "number"]
    stem, vector = paradigms.letters_without(), noun.vector
    slots = [(paradigms.suffix(f"+{ending}", stem), vector(number=number, case=case)) for ending, uses in ENDINGS.items() for number, case in uses]
    softer = cdrewrite(cross("g", "j"), "", "+i", byte.BYTE.star)  # g becomes j before an ending in i
    made = paradigms.Paradigm(noun, slots, vector(number="sg", case="nom"), ["aqu", "femin", "tog"], rules=[softer])
    for root in ("aqu", "femin", "tog"):
        for ending, uses in ENDINGS.items():
            word = root.replace("g", "j") + ending if ending == "is" else root + ending
            all_features = sorted(({"case": case, "number": number} for number, case in uses), key=lambda features: (features["case"], features["number"]))
            assert made.analyze(word) == [(f"{root}+{ending}", features) for features in all_features]
            assert made.tag(word) == [(word, features) for features in all_features] and made.lemmatize(word) == [(f"{root}a", features) for features in all_features]
            assert all(made.inflect(f"{root}a", features) == [word] for features in all_features)
    assert made.inflect("aqua", vector(case="gen")) == ["aquae", "aquarum"] and len(made.forms("toga")) == 10
    assert made.analyze("togis") == made.lemmatize("x[y]") == made.inflect("xa", {}) == []
    for call in (lambda: vector(gender="f"), lambda: vector(case="voc")):
        with pytest.raises(wf.ArgumentError, match="the category has Feature"):
            call()
    with pytest.raises(ValueError, match="without blanks"):
        paradigms.Feature("case", "no m")
    prefixed = paradigms.Paradigm(noun, [(paradigms.prefix("re+", stem), {})], {}, wf.strings.string_map(["do"]))
    assert {analysis.form for analysis in prefixed.analyze("redo")} == {"re+do"}
