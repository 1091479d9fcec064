"""Labels of texts: bytes, Unicode code points or keys of a symbol table, and labels in brackets. `warpfst.strings` says what brackets mean."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Literal, Union

from .symbols import Symbols

TokenType = Union[Literal["byte", "utf8"], Symbols]

#: Labels of the beginning and the end of a string, for the contexts of `cdrewrite`.
BEGIN_LABEL, END_LABEL = 0x110000, 0x110001  # beyond Unicode

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
    if token_type == "byte" and max(kept, default=0) < 256:
        return bytes(kept).decode("utf-8", "surrogateescape")
    if token_type == "byte":
        return b"".join(bytes((label,)) if label < 256 else _text_label(label).encode() for label in kept).decode("utf-8", "surrogateescape")
    return "".join(chr(label) if label < BEGIN_LABEL else _text_label(label) for label in kept)
