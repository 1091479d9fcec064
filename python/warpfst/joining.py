"""Words from the tokens of results, for graphs whose words are tokens: wf_token_joiner of warpfst_graph.h, which has the rules."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from . import _abi
from ._library import Handle, create, encode_text, lib
from .symbols import Symbols

WORD_START = "\u2581"
CONTINUES = "##"


class Joiner(Handle):
    """Joins tokens to words, by their names. `separator`: the token between words (default: <space>, a space or |, if the table has it)."""

    _free = lib.wf_token_joiner_free

    def __init__(self, table: Symbols | None, separator: str | None = None) -> None:
        super().__init__(create("wf_token_joiner_create", None if table is None else table.address, None if separator is None else encode_text(separator)))

    def text(self, names: Iterable[str]) -> str:
        """The words that `groups` finds, separated by spaces."""
        text, _words, _count = self._join(names)
        return text.raw.rstrip(b"\0").replace(b"\0", b" ").decode()  # the words follow each other, each with a NUL

    def groups(self, names: Iterable[str]) -> list[tuple[str, int, int]]:
        """(text, first token, last token) of each word. Words without text, such as a lone U+2581, are left out."""
        _text, words, count = self._join(names)
        return [(word.text.decode(), word.first, word.last) for word in words[:count]]

    def encode(self, text: str) -> str:
        """The text as the names of the table write it, where they are strings of bytes: "Ġthe" for " the". Else the text."""
        encoded = encode_text(text)
        out = ctypes.create_string_buffer(3 * len(encoded) + 1)
        size = lib.wf_token_joiner_encode(self.address, encoded, out)
        return out.raw[:size].decode()

    def _join(self, names: Iterable[str]) -> tuple[ctypes.Array[ctypes.c_char], Any, int]:
        """The texts, an array of wf_joined_words that point to them, and how many there are."""
        encoded = [name.encode() for name in names]
        count = len(encoded)
        words, text = (_abi.wf_joined_word * count)(), ctypes.create_string_buffer(sum(map(len, encoded)) + count)
        return text, words, lib.wf_token_joiner_join(self.address, (ctypes.c_char_p * count)(*encoded), count, words, text)
