"""Words from the tokens of results, for graphs whose words are tokens: wf_token_joiner of warpfst_graph.h, which has the rules."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from . import _abi
from ._library import Handle, create, encode_text, lib
from .symbols import Symbols

WORD_START = "\u2581"
CONTINUES = "##"


class Joiner(Handle):
    """Joins tokens to words, by their names. `separator`: the token between words (default: | or <space>, if the table has it)."""

    _free = lib.wf_token_joiner_free

    def __init__(self, table: Symbols | None, separator: str | None = None) -> None:
        super().__init__(create("wf_token_joiner_create", None if table is None else table.address, None if separator is None else encode_text(separator)))

    def text(self, names: Iterable[str]) -> str:
        """The words that `groups` finds, separated by spaces."""
        return " ".join(text for text, _, _ in self.groups(names))

    def groups(self, names: Iterable[str]) -> list[tuple[str, int, int]]:
        """(text, first token, last token) of each word. Words without text, such as a lone U+2581, are left out."""
        encoded = [name.encode() for name in names]
        words = (_abi.wf_joined_word * len(encoded))()
        text = ctypes.create_string_buffer(sum(map(len, encoded)) + len(encoded))
        count = lib.wf_token_joiner_join(self.address, (ctypes.c_char_p * len(encoded))(*encoded), len(encoded), words, text)
        return [(word.text.decode(), word.first, word.last) for word in words[:count]]
