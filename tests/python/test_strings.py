"""Strings and rewrite rules: rules are checked against a simulation of what they mean, the grammar of numbers against an independent speller."""

import importlib.util
import itertools
import math
import random
import zlib

import pytest
from conftest import ROOT

import warpfst as wf
from warpfst.strings import (
    accep,
    any_of,
    begin,
    cdrewrite,
    cross,
    delete,
    end,
    escape,
    insert,
    labels_of,
    optimize,
    optional,
    rewrite,
    rewrites,
    string_file,
    string_map,
    string_paths,
    symbol_label,
    symbol_labels,
    text_of,
)

ALPHABET = "abc"


def test_texts_and_labels():
    table = wf.Symbols(["<eps>", "one", "two"])
    assert labels_of("aé") == [97, 0xC3, 0xA9] and labels_of("aé", "utf8") == [97, 0xE9] and labels_of("two one", table) == [2, 1]
    for text, kind in (("aé€😀", "byte"), ("aé€😀", "utf8"), ("two one", table)):
        assert text_of(labels_of(text, kind), kind) == text
    assert text_of([7], table) == "<7>"
    with pytest.raises(ValueError, match="NUL"):
        accep("a\0")
    with pytest.raises(ValueError, match="'three' is not in the table"):
        accep("three", token_type=table)
    with pytest.raises(ValueError, match="token_type"):
        accep("a", token_type="words")


def test_brackets_stand_for_labels():
    number, plural = symbol_label("number"), symbol_label("plural")
    assert number > 0x110001 and number != plural and symbol_labels()["number"] == number
    for text, labels in (
        ("a[65]b", [97, 65, 98]), ("[0x41][070][0]", [65, 56, 0]), ("[number]s[plural]", [number, 115, plural]), ("[number plural x]", [number, plural, 120]),
        (r"\[65\]\\", [91, 54, 53, 93, 92]), (r"a\b", [97, 92, 98]), ("[BOS]a[EOS]", [0x110000, 97, 0x110001]), ("[08]", [symbol_label("08")]), (r"[a\]b]", [symbol_label("a]b")]),
    ):  # fmt: skip
        for kind in ("byte", "utf8"):
            assert labels_of(text, kind, brackets=True) == labels
    assert labels_of("[é]", "utf8", brackets=True) == [symbol_label("é")] and labels_of("é[number]", brackets=True) == [0xC3, 0xA9, number]
    assert labels_of("[65]") == list(b"[65]") and labels_of(escape(r"[a]\[b"), brackets=True) == list(rb"[a]\[b")
    assert text_of([97, number, 0x110001, 300, 98]) == "a[number][EOS][300]b" and text_of([97, number, 2**31 - 1], "utf8") == "a[number][2147483647]"
    for wrong in ("a]", "[a", "[a[b]]", r"[a\]", "[-5]", "[2147483648]"):
        with pytest.raises(ValueError, match="counterpart|expected 0 to"):
            accep(wrong)


def test_the_label_of_a_symbol_is_the_same_in_every_process():
    """So that a rule in a file goes together with one that another process writes."""
    assert symbol_label("number") == 0x120000 + zlib.crc32(b"number") % 2**30
    rng, names = random.Random(1), {}
    a = b = ""
    for _ in range(200000):  # two names with the same label
        b = f"s{rng.getrandbits(128):x}"
        a = names.setdefault(zlib.crc32(b.encode()) % 2**30, b)
        if a != b:
            break
    assert symbol_label(a) and a != b
    with pytest.raises(ValueError, match=f"symbols .{b}. and .{a}. have the same label"):
        accep(f"[{b}]")


def test_rules_with_symbols():
    """A symbol marks a class between two rules, and no text has it."""
    sigma_star = wf.fst.closure(wf.fst.union(any_of("a1[]"), accep("[number]")))
    mark = cdrewrite(cross("1", "[number]"), "[BOS]", "", sigma_star)
    assert rewrite("1a1", mark) == "[number]a1" and rewrite("[1]", mark) == "[1]"
    back = cdrewrite(cross("[number]", "a"), "", "[EOS]", sigma_star)
    assert rewrite("1", optimize(wf.fst.compose(mark, back))) == "a"


def test_files_of_pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("km\tkilometers\t0.5 # a comment\n# only a comment\n\nkg\tkilograms\n[65]\n\\#\tnumber\n")
    assert outputs(string_file(path)) == [("#", "number", 0.0), ("A", "A", 0.0), ("kg", "kilograms", 0.0), ("km", "kilometers", 0.5)]
    for text, what in (("a\tb\t1\t2\n", "4 columns"), ("a\nb\tc\tx\n", ":2: could not convert"), ("a[\n", ":1: a '\\['")):
        path.write_text(text)
        with pytest.raises(ValueError, match=what):
            string_file(path)


def outputs(fst):
    return sorted((path.input, path.output, path.cost) for path in string_paths(fst))


def test_maps():
    assert outputs(accep("ab", 0.5)) == outputs(accep("ab", "0.5")) == [("ab", "ab", 0.5)]
    assert outputs(cross("ab", "x")) == [("ab", "x", 0.0)]
    assert outputs(cross(string_map(["a", "bc"]), string_map(["x", "yz"]))) == [(i, o, 0.0) for i in ("a", "bc") for o in ("x", "yz")]
    assert outputs(string_map(["a", ("b", "xyz"), ("abc", "", "1.5"), ("b", "xyz", 3.0)])) == [("a", "a", 0.0), ("abc", "", 1.5), ("b", "xyz", 0.0)]
    assert outputs(wf.fst.concat(insert("a"), delete("bc"), optional("d"))) == [("bc", "a", 0.0), ("bcd", "ad", 0.0)]
    assert string_map(["abc", "abd"]).num_states == 5
    with pytest.raises(wf.ArgumentError, match="cycle"):
        list(string_paths(wf.fst.closure(accep("a"))))


def test_optimize_keeps_the_pairs():
    rng = random.Random(1)
    for _ in range(60):
        pairs = {(random_text(rng, 4), random_text(rng, 4)): rng.randrange(9) / 4 for _ in range(8)}
        fst = wf.fst.union(*(string_map([(*pair, cost)]) for pair, cost in pairs.items()))
        small = optimize(fst)
        assert outputs(small) == outputs(string_map((*pair, cost) for pair, cost in pairs.items())) and small.num_states <= fst.num_states


def test_rewrites_are_the_best_first():
    rule = string_map([("a", "x", 2.0), ("a", "y", 1.0), ("a", "z", 3.0)])
    assert rewrite("a", rule) == "y" and [path.output for path in rewrites("a", rule, 2)] == ["y", "x"]
    with pytest.raises(wf.ArgumentError, match="no output"):
        rewrite("b", rule)


# --- rules ------------------------------------------------------------------------------


def random_text(rng, longest):
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randint(0, longest)))


def simulate(text, pairs, left, right, simultaneous, mandatory):
    """All results of rewriting from left to right."""
    results = set()
    empty = sorted({y for x, y in pairs if x == ""})
    others = sorted({(x, y) for x, y in pairs if x != ""})

    def allowed(done, at, length):
        before = text[:at] if simultaneous else done
        return any(before.endswith(context) for context in left) and any(text[at + length :].startswith(context) for context in right)

    def insertion(done, at):
        if empty and allowed(done, at, 0):
            for y in empty:
                replacement(done + y, at)
            if mandatory:
                return
        replacement(done, at)

    def replacement(done, at):
        if at == len(text):
            results.add(done)
            return
        found = [(x, y) for x, y in others if text.startswith(x, at) and allowed(done, at, len(x))]
        for x, y in found:
            insertion(done + y, at + len(x))
        if not (found and mandatory):
            insertion(done + text[at], at + 1)

    insertion("", 0)
    return results


def turned(texts):
    return [tuple(x[::-1] for x in text) if isinstance(text, tuple) else text[::-1] for text in texts]


@pytest.mark.parametrize("direction", ["ltr", "rtl", "sim"])
def test_rules_against_simulation(direction):
    rng = random.Random(direction)
    sigma_star = wf.fst.closure(any_of(ALPHABET))
    num_changed = 0
    for _ in range(25):
        pairs = [(random_text(rng, 2), random_text(rng, 2)) for _ in range(rng.randint(1, 3))]
        if len({pair[0] == "" for pair in pairs}) > 1:  # a rule either inserts or replaces
            pairs = [pair for pair in pairs if pair[0]]
        left, right = ([random_text(rng, 2) for _ in range(rng.randint(1, 2))] for _ in range(2))
        mandatory = rng.random() < 0.7
        rule = cdrewrite(string_map(pairs), string_map(left), string_map(right), sigma_star, direction, mandatory)
        for size in range(4):
            for letters in itertools.product(ALPHABET, repeat=size):
                text = "".join(letters)
                if direction == "rtl":
                    want = {x[::-1] for x in simulate(text[::-1], turned(pairs), turned(right), turned(left), False, mandatory)}
                else:
                    want = simulate(text, pairs, left, right, direction == "sim", mandatory)
                got = {path.output for path in string_paths(wf.fst.compose(accep(text), rule))}
                assert got == want, (text, pairs, left, right, mandatory)
                num_changed += want != {text}
    assert num_changed > 100


def test_ends_of_the_string():
    sigma_star = wf.fst.closure(any_of(ALPHABET))
    first, last = cdrewrite(cross("a", "b"), begin(), "", sigma_star), cdrewrite(cross("a", "b"), "", end(), sigma_star)
    assert rewrite("aaa", first) == "baa" and rewrite("aaa", last) == "aab" and rewrite("", first) == ""
    middle = cdrewrite(cross("a", "b"), wf.fst.union(begin(), accep("c")), wf.fst.union(end(), accep("c")), sigma_star)
    assert rewrite("aca", middle) == "bcb" and rewrite("aaca", middle) == "aacb"
    with pytest.raises(ValueError, match="direction"):
        cdrewrite(cross("a", "b"), "", "", sigma_star, "down")


def test_rules_over_code_points():
    sigma_star = wf.fst.closure(any_of("aäö", "utf8"))
    rule = cdrewrite(string_map([("ä", "ae"), ("ö", "oe")], "utf8", "utf8"), "", "", sigma_star)
    assert rewrite("aäöa", rule, "utf8") == "aaeoea"


def test_weights_of_a_rule_stay():
    sigma_star = wf.fst.closure(any_of("ab"))
    rule = cdrewrite(string_map([("a", "b", 1.5)]), "", "", sigma_star, mandatory=False)
    assert sorted((path.output, path.cost) for path in rewrites("aa", rule, 4)) == [("aa", 0.0), ("ab", 1.5), ("ba", 1.5), ("bb", 3.0)]


# --- the grammar of numbers -------------------------------------------------------------


def spell(n):
    """English words of 0 to 1,000,000, without fsts."""
    small = ["zero", *["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]]
    tens = dict(enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2))
    if n < 20:
        return small[n]
    if n < 100:
        return tens[n // 10] + ("-" + small[n % 10] if n % 10 else "")
    for size, name in ((1000000, "million"), (1000, "thousand"), (100, "hundred")):
        if n >= size:
            return f"{spell(n // size)} {name}" + (" " + spell(n % size) if n % size else "")
    return ""


def count_paths(fst):
    counts = [0] * fst.num_states
    order = wf.fst.topsort(fst)
    for state in reversed(range(order.num_states)):
        counts[state] = int(order.final_costs[state] != math.inf) + sum(counts[arc.nextstate] for arc in order.arcs_of(state))
    return counts[order.start]


def test_numbers_in_both_directions():
    spec = importlib.util.spec_from_file_location("english_numbers", ROOT / "examples" / "python" / "english_numbers.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    number = example.numbers()
    back = wf.fst.invert(number)
    assert count_paths(number) == 1000001
    rng = random.Random(2)
    for n in [*range(1200), *(rng.randrange(1000001) for _ in range(1200)), 1000000]:
        assert rewrite(str(n), number) == spell(n)
        assert rewrite(spell(n), back) == str(n)
    for wrong in ("00", "01", "1000001", ""):
        assert rewrites(wrong, number, 1) == []
    rule = example.numbers_in_text(number)
    assert rewrite("7 of 1200, 3x (11)", rule) == "seven of one thousand two hundred, 3x (eleven)"


def test_bytes_that_are_not_utf8_come_back():
    for data in (b"\xc3", b"caf\xe9 \xff\xfe", bytes(range(1, 256))):
        text = data.decode("utf-8", "surrogateescape")
        assert text_of(list(data)) == text and labels_of(text) == list(data)
    rule = cdrewrite(cross("a", "b"), "", "", wf.fst.closure(wf.fst.union(*(accep(f"[{label}]") for label in range(1, 256)))))
    assert rewrite("a\udce9a", rule) == "b\udce9b"


@pytest.mark.parametrize("direction", ["ltr", "rtl", "sim"])
def test_rules_that_never_apply(direction):
    """An empty set of strings as the rule or a context is not the empty string."""
    sigma, rule, nothing = wf.fst.closure(any_of("abc")), cross("a", "b"), string_map([])
    shut = wf.Fst.from_arcs([(0, 1, 97, 98, 0.0)], {})  # arcs, but no final state
    for tau, left, right in ((nothing, "", ""), (any_of(""), "b", ""), (shut, "", ""), (rule, nothing, ""), (rule, "", shut), (nothing, nothing, nothing), (rule, "b", nothing)):
        for mandatory in (True, False):
            made = cdrewrite(tau, left, right, sigma, direction, mandatory)
            assert [(p.output, p.cost) for p in rewrites("abca", made, 3)] == [("abca", 0)] and rewrites("xyz", made, 1) == []
    assert rewrite("abca", cdrewrite(rule, "", "", sigma, direction)) == "bbcb"
    cascade = wf.fst.compose(cdrewrite(nothing, "", "", sigma, direction), cdrewrite(rule, "", "", sigma, direction))
    assert rewrite("abca", cascade) == "bbcb"


def test_sigma_star_is_an_acceptor_without_weights():
    rule = cross("a", "b")
    with pytest.raises(wf.ArgumentError, match="sigma_star .*costs"):
        cdrewrite(rule, "", "", wf.fst.closure(accep("a", 0.5)))
    with pytest.raises(wf.ArgumentError, match="sigma_star .*differ"):
        cdrewrite(string_map([]), "", "", wf.fst.closure(cross("a", "b")))


def test_a_rule_over_many_labels():
    """A state behind each label, with an arc for each label, would be 25 million arcs."""
    letters = "".join(chr(0x4E00 + k) for k in range(5000))
    rule = cdrewrite(cross(letters[0], letters[1], "utf8"), letters[2], "", wf.fst.closure(any_of(letters, "utf8")), token_type="utf8")
    assert rule.num_arcs < 3 * len(letters)
    assert rewrite(letters[2] + letters[0] + letters[7] + letters[0], rule, "utf8") == letters[2] + letters[1] + letters[7] + letters[0]


def test_a_file_of_strings_with_a_byte_order_mark(tmp_path):
    (tmp_path / "units.tsv").write_bytes("\ufeffkm\tkilometers\r\nkg\tkilograms\r\n".encode())
    assert [rewrite(text, string_file(tmp_path / "units.tsv")) for text in ("km", "kg")] == ["kilometers", "kilograms"]


def test_paths_share_beginnings():
    """Final states inside of paths, paths that part and meet, and a long one."""
    fst = string_map([("a", "x"), ("ab", "xyz"), ("abc", ""), ("b", "b"), ("", "q")])
    want = {("a", "x"), ("ab", "xyz"), ("abc", ""), ("b", "b"), ("", "q")}
    assert {(p.input, p.output) for p in string_paths(fst)} == want and len(list(string_paths(fst))) == len(want)
    (long,) = string_paths(accep("ab" * 100000))
    assert long.output == long.input == "ab" * 100000
