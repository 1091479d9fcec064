"""Words from the tokens of results, for graphs whose words are tokens. `warpfst decode --join` has the same rules (cli/join_tokens.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .errors import ArgumentError
from .symbols import Symbols

WORD_START = "\u2581"
CONTINUES = "##"
SPECIAL = re.compile(r"<.+>|\[.+\]")  # <unk>, <sos/eos>, [UNK]
SEPARATORS = ("|", "<space>")


class Piece(NamedTuple):
    """What a token adds to a text. `begins`: a word begins here; `ends`: the word before it ends, and none begins; `text` None: nothing at all."""

    text: str | None
    begins: bool = False
    ends: bool = False


class Joiner:
    """Joins tokens to words, by their names.

    separator  the token between words (default: | or <space>, if the table has it)

    A token U+2581... begins a word. If the table has tokens ##..., these continue a word, and all others begin one. Names in brackets are left out.
    """

    def __init__(self, table: Symbols | None, separator: str | None = None) -> None:
        if table is None:
            raise ArgumentError("join: the graph has no symbol table of words")
        names = [text for text, _ in table]
        if separator is not None and separator not in table:
            raise ArgumentError(f"join: {separator!r} is not a token of the graph")
        self._separator = separator or next((name for name in SEPARATORS if name in table), None)
        self._marks_rest = any(name.startswith(CONTINUES) for name in names)
        self._pieces: dict[str, Piece] = {}
        self._rendered: dict[str, str] = {}

    def _piece(self, name: str) -> Piece:
        if name == self._separator:
            return Piece("", ends=True)
        if SPECIAL.fullmatch(name):
            return Piece(None)
        if name.startswith(WORD_START):
            return Piece(name[1:], begins=True)
        rest = self._marks_rest and name.startswith(CONTINUES)
        return Piece(name[len(CONTINUES) :] if rest else name, begins=self._marks_rest and not rest)

    def piece(self, name: str) -> Piece:
        if name not in self._pieces:
            self._pieces[name] = self._piece(name)
        return self._pieces[name]

    def _render(self, name: str) -> str:
        if name not in self._rendered:
            piece = self.piece(name)
            self._rendered[name] = " " * (piece.begins or piece.ends) + (piece.text or "")
        return self._rendered[name]

    def text(self, names: Iterable[str]) -> str:
        """The words that `groups` finds, separated by spaces."""
        return " ".join("".join(map(self._render, names)).split())

    def groups(self, names: Iterable[str]) -> list[tuple[str, int, int]]:
        """(text, first token, last token) of each word. Words without text, such as a lone U+2581, are left out."""
        words: list[tuple[str, int, int]] = []
        is_open = False
        for i, piece in enumerate(map(self.piece, names)):
            if piece.text is None:
                continue
            if is_open and not piece.begins and not piece.ends:
                text, first, _ = words[-1]
                words[-1] = (text + piece.text, first, i)
            elif not piece.ends:
                words.append((piece.text, i, i))
            is_open = not piece.ends
        return [word for word in words if word[0]]
