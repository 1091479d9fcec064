"""Transducers from strings: text as acceptors, maps of strings, context-dependent rewrite rules, and back to strings.

Labels are bytes ("byte", the default), Unicode code points ("utf8"), or keys of a symbol table whose symbols the text names, separated by blanks. A rule is a function of fsts: apply it by
composition, or to a string by `rewrite`.

In the strings that rules are written with, brackets stand for labels: "[65]" and "[0x41]" for label 65, "[number]" for a symbol that is no text, "[a b c]" for several, "[BOS]" and "[EOS]" for
the ends of a string in contexts. `escape` makes any text stand for itself. Texts to be rewritten are taken as they are.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, Union

from .._library import create
from ..errors import ArgumentError
from ..fst.container import Fst, StringPath
from ..fst.operations import Encoder, arcmap, arcsort, compose, concat, determinize, minimize, rmepsilon, union
from ..labels import BEGIN_LABEL, END_LABEL, TokenType, escape, labels_of, symbol_label, symbol_labels, text_of
from ..options import c_options

StringOrFst = Union[str, Fst]
Direction = Literal["ltr", "rtl", "sim"]

__all__ = [
    "BEGIN_LABEL",
    "END_LABEL",
    "Direction",
    "StringOrFst",
    "StringPath",
    "TokenType",
    "accep",
    "add_weight",
    "any_of",
    "begin",
    "cdrewrite",
    "cross",
    "delete",
    "edit_transducer",
    "end",
    "escape",
    "insert",
    "join",
    "labels_of",
    "matches",
    "optimal_rewrites",
    "optimize",
    "optional",
    "rewrite",
    "rewrites",
    "string_file",
    "string_map",
    "string_paths",
    "symbol_label",
    "symbol_labels",
    "text_of",
    "top_rewrite",
    "top_rewrites",
]

# --- fsts of texts ----------------------------------------------------------------------


def accep(text: str = "", weight: float | str = 0.0, token_type: TokenType = "byte") -> Fst:
    """Accepts the text, in which brackets stand for labels, at the cost `weight`."""
    return Fst.from_string(text, float(weight), token_type)


def begin() -> Fst:
    """The beginning of a string, in the left context of `cdrewrite`."""
    return Fst.from_string("[BOS]")


def end() -> Fst:
    """The end of a string, in the right context of `cdrewrite`."""
    return Fst.from_string("[EOS]")


def _fst(value: StringOrFst, token_type: TokenType) -> Fst:
    return value if isinstance(value, Fst) else accep(value, token_type=token_type)


def string_map(pairs: Iterable[str | Sequence[str | float]], input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Fst:
    """Maps strings to strings: items are "text", ("input", "output") or ("input", "output", cost). Brackets stand for labels. Common beginnings share states."""
    arcs: list[tuple[int, int, int, int, float]] = []
    finals: dict[int, float] = {}
    children: dict[tuple[int, int, int], int] = {}
    for item in pairs:
        source, target, *rest = (item, item) if isinstance(item, str) else (item[0], item[-1] if len(item) == 1 else item[1], *item[2:])
        cost = float(rest[0]) if rest else 0.0
        state = 0
        for ilabel, olabel in itertools.zip_longest(labels_of(str(source), input_token_type, True), labels_of(str(target), output_token_type, True), fillvalue=0):
            key = (state, ilabel, olabel)
            if key not in children:
                children[key] = len(children) + 1
                arcs.append((state, children[key], ilabel, olabel, 0.0))
            state = children[key]
        finals[state] = min(cost, finals.get(state, math.inf))
    return Fst.from_arcs(arcs, finals)


def string_file(path: str | PathLike[str], input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Fst:
    """`string_map` of a UTF-8 file with lines "text", "input TAB output" or "input TAB output TAB cost". "#" and blanks before it start a comment, "\\#" is the character.

    ValueError: a line with other columns.
    """
    pairs: list[list[str]] = []
    with open(path, encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            text = re.split(r"\s*(?<!\\)#", line.rstrip("\r\n"), maxsplit=1)[0].replace("\\#", "#")
            columns = text.split("\t")
            if text == "":
                continue
            try:
                if len(columns) > 3:
                    raise ValueError(f"{len(columns)} columns, expected 1 to 3")
                pairs.append([*columns[:2], *(str(float(cost)) for cost in columns[2:])])
                _ = labels_of(columns[0], input_token_type, True), labels_of(columns[:2][-1], output_token_type, True)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return string_map(pairs, input_token_type, output_token_type)


def cross(a: StringOrFst, b: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """Maps each string of `a` to each string of `b`."""
    if isinstance(a, str) and isinstance(b, str):
        return string_map([(a, b)], token_type, token_type)
    return rmepsilon(concat(arcmap(_fst(a, token_type), map_type="output_epsilon"), arcmap(_fst(b, token_type), map_type="input_epsilon")))


def add_weight(text: StringOrFst, weight: float, token_type: TokenType = "byte") -> Fst:
    """The fst, at an additional cost for each path."""
    return _fst(text, token_type) + Fst.from_string("", weight)


def _weighted(fst: Fst, weight: float) -> Fst:
    return add_weight(fst, weight) if weight else fst


def insert(text: StringOrFst, token_type: TokenType = "byte", *, weight: float = 0.0) -> Fst:
    """Writes the text without reading, at the cost `weight`."""
    return _weighted(arcmap(_fst(text, token_type), map_type="input_epsilon"), weight)


def delete(text: StringOrFst, token_type: TokenType = "byte", *, weight: float = 0.0) -> Fst:
    """Reads the text and writes nothing, at the cost `weight`."""
    return _weighted(arcmap(_fst(text, token_type), map_type="output_epsilon"), weight)


def optional(fst: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """The fst, or nothing."""
    return _fst(fst, token_type).ques


def join(fst: StringOrFst, separator: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """The fst once or more, with the separator between: lists."""
    item = _fst(fst, token_type)
    return item + (_fst(separator, token_type) + item).star


def any_of(characters: str, token_type: TokenType = "byte") -> Fst:
    """Accepts one of the characters. With bytes, a character beyond ASCII is a string of several labels."""
    return string_map(map(escape, characters), token_type, token_type)


def optimize(fst: Fst) -> Fst:
    """An equivalent fst, smaller as a rule: without epsilons, deterministic and minimal over pairs of labels. Its arcs are sorted by input label, so that texts are composed with it fast."""
    encoder = Encoder.create(labels=True, weights="acyclic" not in fst.properties, semiring=fst.semiring)
    return arcsort(encoder.decode(minimize(determinize(encoder.encode(rmepsilon(fst))))))


def edit_transducer(
    alphabet: StringOrFst | Iterable[str],
    insert_cost: float = 1.0,
    delete_cost: float = 1.0,
    substitute_cost: float = 1.0,
    bound: int | None = None,
    token_type: TokenType = "byte",
) -> Fst:
    """Changes a string at a cost for each letter that is inserted, deleted or replaced by another: between two strings, the best path has their edit distance.

    alphabet  the letters: a text, a list of texts, or an acceptor of one letter
    bound     most changes of a string; None: any number. With a bound of n the fst has n + 1 copies of the alphabet

        near = edit_transducer("abc", bound=1) @ string_map(["cab", "bab"])
        rewrite("cb", near)  # "cab"
    """
    letter = alphabet if isinstance(alphabet, Fst) else any_of(alphabet, token_type) if isinstance(alphabet, str) else string_map(alphabet, token_type, token_type)
    change = union(insert(letter, weight=insert_cost), delete(letter, weight=delete_cost), add_weight(cross(letter, letter), substitute_cost))
    if bound is None:
        return rmepsilon(union(letter, change).star)
    if bound < 0:
        raise ValueError(f"bound {bound}, expected 0 or more")
    return rmepsilon(letter.star + (change + letter.star).closure(0, bound) if bound else letter.star)


# --- back to strings --------------------------------------------------------------------


def string_paths(fst: Fst, input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Iterator[StringPath]:
    """`fst.paths`: the successful paths, in the order of arcs. ArgumentError: there is a cycle, so they are endless."""
    return fst.paths(input_token_type, output_token_type)


@functools.lru_cache(maxsize=64)
def _options(table: str, *pairs: tuple[str, object]) -> Any:
    """Options that are made once: C only reads them."""
    return c_options(table, dict(pairs))


def _outputs(text: StringOrFst, rule: Fst, token_type: TokenType) -> Fst:
    """The acceptor of all outputs."""
    source = text if isinstance(text, Fst) else Fst.from_string(text, 0.0, token_type, brackets=False)
    both = compose(source, rule)
    return rmepsilon(Fst(create("wf_project", both.address, _options("project", ("project_type", "output")))))


def rewrite(text: StringOrFst, rule: Fst, token_type: TokenType = "byte") -> str:
    """The best output of a rule for a text. ArgumentError: the rule has none."""
    best = rewrites(text, rule, 1, token_type)
    if not best:
        raise ArgumentError(f"the rule has no output for {text!r}")
    return best[0].output


def rewrites(text: StringOrFst, rule: Fst, count: int, token_type: TokenType = "byte") -> list[StringPath]:
    """The `count` best outputs of a rule for a text, best first, each once."""
    outputs = _outputs(text, rule, token_type)
    best = Fst(create("wf_shortest_path", outputs.address, _options("shortest_path", ("nshortest", count), ("unique", True))))
    return list(string_paths(best, token_type, token_type))


def top_rewrite(text: StringOrFst, rule: Fst, token_type: TokenType = "byte", *, unique: bool = False) -> str:
    """`rewrite`. `unique`: ArgumentError if two outputs are the best."""
    best = optimal_rewrites(text, rule, token_type) if unique else []
    if len(best) > 1:
        raise ArgumentError(f"the rule has several best outputs for {text!r}: {best[0]!r}, {best[1]!r}")
    return rewrite(text, rule, token_type)


def top_rewrites(text: StringOrFst, rule: Fst, count: int, token_type: TokenType = "byte") -> list[str]:
    """The texts of `rewrites`: the `count` best outputs, best first."""
    return [path.output for path in rewrites(text, rule, count, token_type)]


def optimal_rewrites(text: StringOrFst, rule: Fst, token_type: TokenType = "byte", threshold: float = 1e-5) -> list[str]:
    """All outputs whose cost is the lowest, or within `threshold` of it, each once, in alphabetical order."""
    best = determinize(_outputs(text, rule, token_type), weight=threshold)
    return sorted({path.output for path in best.paths(token_type, token_type)})


def matches(text: StringOrFst, output: StringOrFst, rule: Fst, token_type: TokenType = "byte") -> bool:
    """Whether `output` is one of the outputs of a rule for a text."""
    target = output if isinstance(output, Fst) else Fst.from_string(output, 0.0, token_type, brackets=False)
    return compose(_outputs(text, rule, token_type), target).start is not None


# --- context-dependent rewrite rules ----------------------------------------------------


def cdrewrite(
    tau: Fst, left: StringOrFst, right: StringOrFst, sigma_star: Fst, direction: Direction = "ltr", mandatory: bool = True, token_type: TokenType = "byte"
) -> Fst:
    """A rule that applies `tau` between the contexts `left` and `right` ("" is any context; `begin()` and `end()` are the ends of the string).

    The input is any string of `sigma_star`, an acceptor without weights that must have all labels of the rule. A `tau` or a context that has no strings (`string_map([])`) never applies.
    "ltr" rewrites from left to right: the left context is looked for in what is already rewritten, the right one in the input; "rtl" is the reverse; with "sim" both are looked for in the
    input. `mandatory=False`: each place may also be left as it is.
    """
    if direction not in ("ltr", "rtl", "sim"):
        raise ValueError(f'direction {direction!r} is none of "ltr", "rtl", "sim"')
    parts = (tau, _fst(left, token_type), _fst(right, token_type), sigma_star)
    return Fst(create("wf_cdrewrite", *map(Fst._address_of, parts), _options("cdrewrite", ("direction", direction), ("mandatory", mandatory))))
