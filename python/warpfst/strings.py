"""Transducers from strings: text as acceptors, maps of strings, context-dependent rewrite rules, and back to strings.

Labels are bytes ("byte", the default), Unicode code points ("utf8"), or keys of a symbol table whose symbols the text names, separated by blanks. A rule is a function of fsts: apply it by
composition, or to a string by `rewrite`.

In the strings that rules are written with, brackets stand for labels: "[65]" and "[0x41]" for label 65, "[number]" for a symbol that is no text, "[a b c]" for several, "[BOS]" and "[EOS]" for
the ends of a string in contexts. `escape` makes any text stand for itself. Texts to be rewritten are taken as they are.
"""

from __future__ import annotations

import itertools
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Literal, NamedTuple, Union

from .errors import ArgumentError
from .fst.container import Fst
from .fst.operations import Encoder, arcmap, closure, compose, concat, connect, determinize, minimize, project, reverse, rmepsilon, shortest_path, union
from .symbols import Symbols

TokenType = Union[Literal["byte", "utf8"], Symbols]
StringOrFst = Union[str, Fst]
Direction = Literal["ltr", "rtl", "sim"]

#: Labels of the beginning and the end of a string, for the contexts of `cdrewrite`.
BEGIN_LABEL, END_LABEL = 0x110000, 0x110001  # beyond Unicode


class StringPath(NamedTuple):
    """A successful path: its input, its output, and its cost."""

    input: str
    output: str
    cost: float


# --- labels of texts --------------------------------------------------------------------

_FIRST_SYMBOL, _NUM_SYMBOLS, _MAX_LABEL = 0x120000, 1 << 30, 2**31 - 1
_ENDS = {"BOS": BEGIN_LABEL, "EOS": END_LABEL}
_PIECE = re.compile(r"\\(?P<escaped>[][\\])|\[(?P<inside>(?:\\[][\\]|\\(?![][\\])|[^][\\])*)\]|(?P<plain>[^][])", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_symbols: dict[int, str] = {label: name for name, label in _ENDS.items()}


def symbol_label(name: str) -> int:
    """The label of "[name]", the same in every process. ValueError: another name that was used has the same label (450 names have such a pair with a probability of 1 in 10,000)."""
    label = _ENDS.get(name) or _FIRST_SYMBOL + zlib.crc32(name.encode("utf-8")) % _NUM_SYMBOLS
    if _symbols.setdefault(label, name) != name:
        raise ValueError(f"symbols [{name}] and [{_symbols[label]}] have the same label; rename one")
    return label


def symbol_labels() -> dict[str, int]:
    """The labels of the symbols in brackets that this process has used."""
    return {name: label for label, name in _symbols.items()}


def escape(text: str) -> str:
    """The text with a backslash before brackets and backslashes, so that rules take it as it is."""
    return re.sub(r"([][\\])", r"\\\1", text)


def _plain_labels(text: str, token_type: TokenType) -> list[int]:
    return list(text.encode("utf-8", "surrogateescape")) if token_type == "byte" else [ord(char) for char in text]


def _bracket_labels(inside: str) -> list[int]:
    """Labels of what is in brackets: a number, or names of symbols; a name of one byte is that byte."""
    text = re.sub(r"\\([][\\])", r"\1", inside)
    if _NUMBER.fullmatch(text):
        digits = text.lstrip("+-")
        label = int(digits, 16 if digits[1:2] in ("x", "X") else 8 if digits[0] == "0" else 10)
        if text[0] == "-" or label > _MAX_LABEL:
            raise ValueError(f"label [{text}], expected 0 to {_MAX_LABEL}")
        return [label]
    return [ord(name) if len(name.encode("utf-8")) == 1 else symbol_label(name) for name in text.split(" ")]


def _labels_with_brackets(text: str, token_type: TokenType) -> list[int]:
    labels: list[int] = []
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError(f"a {text[at]!r} at character {at} of {text!r} has no counterpart; write \\{text[at]} or use escape()")
        inside = piece["inside"]
        labels += _plain_labels(piece["escaped"] or piece["plain"], token_type) if inside is None else _bracket_labels(inside)
        at = piece.end()
    return labels


def labels_of(text: str, token_type: TokenType = "byte", brackets: bool = False) -> list[int]:
    """The labels of a text. `brackets`: they stand for labels, unless there is a symbol table.

    ValueError: a NUL character, whose label would be epsilon; a symbol that is not in the table; a bracket without a counterpart.
    """
    if isinstance(token_type, Symbols):
        keys = [token_type.find(word) for word in text.split()]
        if None in keys:
            raise ValueError(f"symbol {text.split()[keys.index(None)]!r} is not in the table")
        return [key for key in keys if key is not None]
    if token_type not in ("byte", "utf8"):
        raise ValueError(f'token_type {token_type!r} is none of "byte", "utf8", a symbol table')
    if "\0" in text:
        raise ValueError("a text with a NUL character: label 0 is epsilon")
    return _labels_with_brackets(text, token_type) if brackets and re.search(r"[][\\]", text) else _plain_labels(text, token_type)


def _text_label(label: int) -> str:
    return f"[{_symbols.get(label, label)}]"


def text_of(labels: Iterable[int], token_type: TokenType = "byte") -> str:
    """The text of labels, without epsilons. Labels that are no text are written in brackets.

    Bytes that are not UTF-8 become surrogates, as in file names (os.fsdecode), and these become bytes again in `labels_of` and in `text.encode("utf-8", "surrogateescape")`.
    """
    kept = [label for label in labels if label != 0]
    if isinstance(token_type, Symbols):
        words = [token_type.text(label) for label in kept]
        return " ".join(f"<{label}>" if word is None else word for word, label in zip(words, kept))
    if token_type == "byte":
        return b"".join(bytes((label,)) if label < 256 else _text_label(label).encode() for label in kept).decode("utf-8", "surrogateescape")
    return "".join(chr(label) if label < BEGIN_LABEL else _text_label(label) for label in kept)


# --- fsts of texts ----------------------------------------------------------------------


def accep(text: str = "", weight: float | str = 0.0, token_type: TokenType = "byte") -> Fst:
    """Accepts the text, in which brackets stand for labels, at the cost `weight`."""
    return _accep(labels_of(text, token_type, brackets=True), float(weight))


def _accep(labels: Sequence[int], weight: float = 0.0) -> Fst:
    return Fst.from_arcs([(k, k + 1, label, label, 0.0) for k, label in enumerate(labels)], {len(labels): weight})


def begin() -> Fst:
    """The beginning of a string, in the left context of `cdrewrite`."""
    return Fst.from_arcs([(0, 1, BEGIN_LABEL, BEGIN_LABEL, 0.0)], {1: 0.0})


def end() -> Fst:
    """The end of a string, in the right context of `cdrewrite`."""
    return Fst.from_arcs([(0, 1, END_LABEL, END_LABEL, 0.0)], {1: 0.0})


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


def insert(text: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """Writes the text without reading."""
    return arcmap(_fst(text, token_type), map_type="input_epsilon")


def delete(text: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """Reads the text and writes nothing."""
    return arcmap(_fst(text, token_type), map_type="output_epsilon")


def optional(fst: StringOrFst, token_type: TokenType = "byte") -> Fst:
    """The fst, or nothing."""
    return union(_fst(fst, token_type), accep(""))


def any_of(characters: str, token_type: TokenType = "byte") -> Fst:
    """Accepts one of the characters. With bytes, a character beyond ASCII is a string of several labels."""
    return string_map(map(escape, characters), token_type, token_type)


def optimize(fst: Fst) -> Fst:
    """An equivalent fst, smaller as a rule: without epsilons, deterministic and minimal over pairs of labels."""
    encoder = Encoder.create(labels=True, weights="acyclic" not in fst.properties, semiring=fst.semiring)
    return encoder.decode(minimize(determinize(encoder.encode(rmepsilon(fst)))))


def optimize_acceptor(fst: Fst) -> Fst:
    """The minimal deterministic acceptor of the same strings, without weights."""
    return minimize(determinize(rmepsilon(arcmap(fst, map_type="rmweight"))))


def _small_acceptor(fst: Fst) -> Fst:
    """`optimize_acceptor` that first minimizes with epsilon as a label: over many labels, the state behind each of them would else get an arc for each label."""
    return optimize_acceptor(minimize(determinize(fst)))


# --- back to strings --------------------------------------------------------------------


def string_paths(fst: Fst, input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Iterator[StringPath]:
    """The successful paths, in the order of arcs. ArgumentError: there is a cycle, so they are endless."""
    fst = connect(fst)
    if "acyclic" not in fst.properties:
        raise ArgumentError("the fst has a cycle, so it has endlessly many strings; use shortest_path")
    finals = fst.final_costs
    # States to visit: the number of arcs before, the labels of the last of them, the cost. `ins` and `outs` are the labels of the path to the visited state.
    stack: list[tuple[int, int, int, int, float]] = [(fst.start, 0, 0, 0, 0.0)] if fst.start is not None else []
    ins: list[int] = []
    outs: list[int] = []
    while stack:
        state, length, ilabel, olabel, cost = stack.pop()
        if length > 0:
            ins[length - 1 :] = [ilabel]
            outs[length - 1 :] = [olabel]
        if finals[state] != math.inf:
            yield StringPath(text_of(ins[:length], input_token_type), text_of(outs[:length], output_token_type), cost + finals[state])
        stack.extend((arc.nextstate, length + 1, arc.ilabel, arc.olabel, cost + arc.weight) for arc in reversed(fst.arcs_of(state)))


def rewrite(text: StringOrFst, rule: Fst, token_type: TokenType = "byte") -> str:
    """The best output of a rule for a text. ArgumentError: the rule has none."""
    best = rewrites(text, rule, 1, token_type)
    if not best:
        raise ArgumentError(f"the rule has no output for {text!r}")
    return best[0].output


def rewrites(text: StringOrFst, rule: Fst, count: int, token_type: TokenType = "byte") -> list[StringPath]:
    """The `count` best outputs of a rule for a text, best first, each once."""
    source = text if isinstance(text, Fst) else _accep(labels_of(text, token_type))
    outputs = project(compose(source, rule), project_type="output")
    best = shortest_path(rmepsilon(outputs), nshortest=count, unique=True)
    return list(string_paths(best, token_type, token_type))


# --- context-dependent rewrite rules ----------------------------------------------------


class _Marks(NamedTuple):
    """Labels of the algorithm that are in no string: before a right context; before what is rewritten, and before what could be but is not."""

    right: int
    left: int
    skip: int


def _loops(fst: Fst, loops: Iterable[tuple[int, int]], states: Iterable[int]) -> Fst:
    """Adds loops (ilabel, olabel) to states."""
    arcs = [(s, arc.nextstate, arc.ilabel, arc.olabel, arc.weight) for s in range(fst.num_states) for arc in fst.arcs_of(s)]
    loops = list(loops)
    arcs.extend((state, state, ilabel, olabel, 0.0) for state in states for ilabel, olabel in loops)
    return Fst.from_arcs(sorted(arcs, key=lambda arc: arc[0]), {s: c for s, c in enumerate(fst.final_costs) if c != math.inf}, start=fst.start or 0)


def _all_final(fst: Fst) -> Fst:
    arcs = [(s, arc.nextstate, arc.ilabel, arc.olabel, arc.weight) for s in range(fst.num_states) for arc in fst.arcs_of(s)]
    return Fst.from_arcs(arcs, dict.fromkeys(range(fst.num_states), 0.0), start=fst.start or 0)


def _letters(labels: Iterable[int]) -> Fst:
    return Fst.from_arcs([(0, 1, label, label, 0.0) for label in sorted(labels)], {1: 0.0})


def _ends_with(labels: Iterable[int], tail: Fst) -> Fst:
    """The complete deterministic acceptor of the strings over `labels` that end with one of `tail`."""
    return optimize_acceptor(concat(closure(_letters(labels)), tail))


def _final_states(fst: Fst) -> list[int]:
    return [s for s, cost in enumerate(fst.final_costs) if cost != math.inf]


def _insert_after(acceptor: Fst, marks: Iterable[int]) -> Fst:
    """Writes one of the marks wherever the acceptor is in a final state (Mohri & Sproat's marker of type 1). Each final state gets a second half, behind the mark."""
    half = {state: acceptor.num_states + k for k, state in enumerate(_final_states(acceptor))}
    arcs = [(half.get(s, s), arc.nextstate, arc.ilabel, arc.olabel, 0.0) for s in range(acceptor.num_states) for arc in acceptor.arcs_of(s)]
    arcs.extend((state, behind, 0, mark, 0.0) for state, behind in half.items() for mark in marks)
    finals = {half.get(s, s): 0.0 for s in range(acceptor.num_states)}
    return Fst.from_arcs(sorted(arcs, key=lambda arc: arc[0]), finals, start=acceptor.start or 0)


def _allow_at(acceptor: Fst, mark: tuple[int, int], at_final: bool, everywhere: Iterable[tuple[int, int]] = ()) -> Fst:
    """Accepts all strings with the mark only where the acceptor is in a final state, or only where it is not (types 2 and 3); other marks may be `everywhere`."""
    finals = set(_final_states(acceptor))
    allowed = [s for s in range(acceptor.num_states) if (s in finals) == at_final]
    fst = _loops(acceptor, [mark], allowed)
    return _all_final(_loops(fst, everywhere, range(fst.num_states)))


def _with_marks_inside(phi: Fst, letters: set[int], marks: _Marks) -> Fst:
    """The strings of phi with marks of right contexts between their letters, and one after the last."""
    copies = [(s, t, label, label, 0.0) for label in sorted(letters) for s, t in ((0, 1), (1, 1))]
    inside = Fst.from_arcs(sorted([*copies, (1, 2, 0, marks.right, 0.0), *((2, 1, label, label, 0.0) for label in sorted(letters))]), {0: 0.0, 1: 0.0})
    marked = project(compose(phi, inside), project_type="output")
    return concat(marked, _letters([marks.right]))


def _replacer(tau: Fst, letters: set[int], marks: _Marks, kept: Sequence[int]) -> Fst:
    """Applies tau behind a left mark, up to a mark of the right context. Copies the rest, and the marks that are `kept`."""
    tau = rmepsilon(tau)
    copies = [(label, label) for label in sorted(letters | ({marks.skip} & set(kept)))]
    dropped = [(mark, 0) for mark in marks]
    inner = _loops(tau, dropped, range(tau.num_states))
    base = inner.num_states
    arcs = [(s, arc.nextstate, arc.ilabel, arc.olabel, arc.weight) for s in range(base) for arc in inner.arcs_of(s)]
    arcs.extend((s, base, marks.right, 0, cost) for s, cost in enumerate(inner.final_costs) if cost != math.inf)
    arcs.append((base, inner.start or 0, marks.left, marks.left if marks.left in kept else 0, 0.0))
    arcs.extend((base, base, ilabel, olabel, 0.0) for ilabel, olabel in [*copies, (marks.right, 0)])
    return Fst.from_arcs(arcs, {base: 0.0}, start=base)


def _rule_left_to_right(tau: Fst, left: Fst, right: Fst, letters: set[int], marks: _Marks, simultaneous: bool, mandatory: bool) -> Fst:
    """Mohri & Sproat 1996, "An efficient compiler for weighted rewrite rules": marks right contexts, marks what may be rewritten, rewrites it, checks left contexts."""
    phi = optimize_acceptor(project(tau))
    mark_right = reverse(_insert_after(_ends_with(letters, reverse(right)), [marks.right]))
    with_right = letters | {marks.right}
    mark_phi = reverse(_insert_after(_ends_with(with_right, reverse(_with_marks_inside(phi, letters, marks))), [marks.left, marks.skip]))
    context = _ends_with(letters, left)
    if simultaneous:  # left contexts are those of the input: checked before rewriting
        everywhere = [(marks.right, marks.right), (marks.skip, marks.skip)]
        check = _allow_at(context, (marks.left, marks.left), True, everywhere)
        others = [(marks.right, marks.right), (marks.left, marks.left)]
        check_not = _allow_at(context, (marks.skip, 0), False, others) if mandatory else _dropping(letters | {marks.right, marks.left}, marks.skip)
        steps = [check, check_not, _replacer(tau, letters, marks, [])]
    else:
        check = _allow_at(context, (marks.left, 0), True, [(marks.skip, marks.skip)])
        check_not = _allow_at(context, (marks.skip, 0), False) if mandatory else _dropping(letters, marks.skip)
        steps = [_replacer(tau, letters, marks, [marks.left, marks.skip]), check, check_not]
    rule = compose(rmepsilon(mark_right), rmepsilon(mark_phi))
    for step in steps:
        rule = compose(rule, step)
    return rule


def _dropping(letters: Iterable[int], mark: int) -> Fst:
    return Fst.from_arcs([(0, 0, label, label, 0.0) for label in sorted(letters)] + [(0, 0, mark, 0, 0.0)], {0: 0.0})


def _labels_in(fst: Fst) -> set[int]:
    return {label for s in range(fst.num_states) for arc in fst.arcs_of(s) for label in (arc.ilabel, arc.olabel)} - {0}


def cdrewrite(
    tau: Fst, left: StringOrFst, right: StringOrFst, sigma_star: Fst, direction: Direction = "ltr", mandatory: bool = True, token_type: TokenType = "byte"
) -> Fst:
    """A rule that applies `tau` between the contexts `left` and `right` ("" is any context; `begin()` and `end()` are the ends of the string).

    The input is any string of `sigma_star`, an acceptor without weights that must have all labels of the rule. A `tau` or a context that has no strings (`string_map([])`) never applies. "ltr" rewrites from left to right: the left context is looked for in what is
    already rewritten, the right one in the input; "rtl" is the reverse; with "sim" both are looked for in the input. `mandatory=False`: each place may also be left as it is.
    """
    if direction not in ("ltr", "rtl", "sim"):
        raise ValueError(f'direction {direction!r} is none of "ltr", "rtl", "sim"')
    if not {"acceptor", "unweighted"} <= sigma_star.properties:
        raise ArgumentError("sigma_star must be an acceptor without weights: " + ("its arcs have costs" if "acceptor" in sigma_star.properties else "its input and output labels differ"))
    left, right = _fst(left, token_type), _fst(right, token_type)
    sigma_star = _small_acceptor(sigma_star)
    if any(connect(part).start is None for part in (tau, left, right)):
        return sigma_star
    letters = _labels_in(sigma_star) | _labels_in(tau) | ((_labels_in(left) | _labels_in(right)) - {BEGIN_LABEL, END_LABEL})
    bounded = bool((_labels_in(left) | _labels_in(right)) & {BEGIN_LABEL, END_LABEL})
    alphabet = letters | ({BEGIN_LABEL, END_LABEL} if bounded else set())
    first = max([*alphabet, END_LABEL]) + 1
    marks = _Marks(first, first + 1, first + 2)
    if direction == "rtl":
        rule = reverse(_rule_left_to_right(reverse(tau), reverse(right), reverse(left), alphabet, marks, False, mandatory))
    else:
        rule = _rule_left_to_right(tau, left, right, alphabet, marks, direction == "sim", mandatory)
    if bounded:
        inside = closure(_letters(letters))
        rule = compose(compose(concat(insert(begin()), inside, insert(end())), rule), concat(delete(begin()), inside, delete(end())))
    return optimize(compose(sigma_star, rule))
