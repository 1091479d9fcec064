"""Symbol tables: words or tokens and their integer labels."""

from __future__ import annotations

import ctypes
import itertools
import operator
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union

from ._library import Handle, call, check, check_list, create, decode_symbol, encode_path, encode_symbol, lib, take_bytes
from .errors import ArgumentError


def first_repeated(texts: Sequence[str]) -> tuple[int, int] | None:
    """The places of the first text that comes a second time; None: all differ."""
    places: dict[str, int] = {}
    return next(((places[text], place) for place, text in enumerate(texts) if places.setdefault(text, place) != place), None)


def _checksum(texts: Iterable[bytes]) -> str:
    """OpenFst's: all bytes in a row, folded into 32 by exclusive or."""
    folded = bytearray(32)
    for at, byte in enumerate(itertools.chain.from_iterable(texts)):
        folded[at % 32] ^= byte
    return folded.hex()


class Symbols(Handle):
    """Texts and their labels. Reading is thread-safe; `add` is not.

    Tables in files of OpenFst may have entries that no label can have: with a key below 0 or above 2^31 - 1, or with a text or key that came before. They are listed
    with the others and written with the table. Bytes that are not UTF-8 become surrogates, as in file names (os.fsdecode).
    """

    _free = lib.wf_symbols_free

    def __init__(self, pairs: Mapping[str, int] | Iterable[str] = (), name: str = "") -> None:
        """Makes a table from a mapping text -> label, or from texts, which get the labels 0, 1, 2 and so on. ArgumentError: a text is given twice."""
        check_list(pairs, "pairs")
        if not isinstance(pairs, Mapping):
            pairs = list(pairs)
            twice = first_repeated(pairs)
            if twice is not None:
                raise ArgumentError(f"{name or 'symbols'}: {pairs[twice[0]]!r} is listed twice, in places {twice[0]} and {twice[1]}, counted from 0")
        super().__init__(create("wf_symbols_create", encode_symbol(name)))
        items = pairs.items() if isinstance(pairs, Mapping) else ((text, key) for key, text in enumerate(pairs))
        for text, key in items:
            if operator.index(key) < 0:
                raise ArgumentError(f"{name or 'symbols'}: the key {key} of {text!r} is outside 0 to 2^31 - 1")
            self.add(text, key)

    @classmethod
    def _adopt(cls, address: int) -> Symbols:
        symbols = cls.__new__(cls)
        Handle.__init__(symbols, address)
        return symbols

    @classmethod
    def _share(cls, address: int | None) -> Symbols | None:
        """A new reference to a table that belongs to another C object; None for NULL."""
        return None if address is None else cls._adopt(lib.wf_symbols_ref(address))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Symbols:
        """Reads `symbol id` lines, or a binary table of OpenFst."""
        return cls._adopt(create("wf_symbols_read", encode_path(path)))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "symbols") -> Symbols:
        """A table from the contents of a file that `read` can read. Messages show `name` as the path, and a table read from text has it."""
        return cls._adopt(create("wf_symbols_read_memory", data, len(data), encode_symbol(name)))

    def to_bytes(self) -> bytes:
        """The whole table in OpenFst's binary form. Pickling uses it."""
        return take_bytes("wf_symbols_write_memory", self.address)

    def write(self, path: str | os.PathLike[str], format: Literal["text", "binary"] = "text") -> None:
        """Writes `symbol id` lines, or OpenFst's binary form. ArgumentError: in a text file, a symbol is empty or holds a blank, a tab or a line end, so that it could not be read back."""
        if format not in ("text", "binary"):
            raise ValueError(f"format {format!r} is none of text, binary")
        if format == "text":
            call("wf_symbols_write", self.address, encode_path(path))
        else:
            pathlib.Path(path).write_bytes(self.to_bytes())

    def add(self, text: str, key: int = -1) -> int:
        """Adds a text under a label (-1: the next free one) and returns the label."""
        out = ctypes.c_int64()
        if not -1 <= operator.index(key) < 2**31:
            raise ArgumentError(f"{self.name or 'symbols'}: the key {key} of {text!r} is outside 0 to 2^31 - 1")
        call("wf_symbols_add", self.address, encode_symbol(text), key, ctypes.byref(out))
        return out.value

    def add_table(self, other: Symbols) -> None:
        """Adds the texts of another table that this one lacks, under the next free labels."""
        for text, _ in Symbols._checked(other):
            if text not in self:
                self.add(text)

    def merge(self, other: Symbols) -> Symbols:
        """A new table with the texts of both. Those of this one keep their labels; those of the other keep theirs where these are free, and get the next free labels elsewhere."""
        merged = self.copy()
        later = []
        for text, key in Symbols._checked(other):
            if text in merged:
                continue
            if 0 <= key < 2**31 and merged.text(key) is None:
                merged.add(text, key)
            else:
                later.append(text)
        for text in later:
            merged.add(text)
        return merged

    def copy(self) -> Symbols:
        """A table with the same entries, which can be changed by itself."""
        return Symbols.from_bytes(self.to_bytes())

    @staticmethod
    def _checked(table: object) -> Symbols:
        return check(table, Symbols)

    def member(self, symbol: str | int) -> bool:
        """Whether a text or a label is in the table."""
        return (self.find(symbol) if isinstance(symbol, str) else self.text(symbol)) is not None

    def checksum(self) -> str:
        """32 bytes in hexadecimal digits that are the same for equal texts in the same order, whatever their labels: OpenFst's CheckSum."""
        return _checksum(encode_symbol(text) + b"\0" for text, _ in self)

    def labeled_checksum(self) -> str:
        """The same for texts and their labels, in any order: OpenFst's LabeledCheckSum. Labels below 0 do not count."""
        return _checksum(b"%s\t%d" % (encode_symbol(text), key) for text, key in sorted(self, key=lambda pair: pair[1]) if key >= 0)

    def find(self, text: str) -> int | None:
        """The label of a text, or None. Of a table of OpenFst, also a key that is no label."""
        key = int(lib.wf_symbols_find(self.address, encode_symbol(text)))
        if key >= 0 or lib.wf_symbols_count(self.address) == len(self):
            return None if key < 0 else key
        return next((key for other, key in self if other == text), None)

    def text(self, key: int) -> str | None:
        """The text of a label, or None."""
        fits = -(2**63) <= operator.index(key) < 2**63
        return decode_symbol(lib.wf_symbols_text(self.address, key)) if fits else None

    @property
    def name(self) -> str:
        return decode_symbol(lib.wf_symbols_name(self.address)) or ""

    def __len__(self) -> int:
        return int(lib.wf_symbols_num_entries(self.address))

    def __contains__(self, text: str) -> bool:
        return self.find(text) is not None

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """(text, label) in the order in which they were added."""
        key = ctypes.c_int64()
        for i in range(len(self)):
            text = lib.wf_symbols_entry(self.address, i, ctypes.byref(key))
            yield decode_symbol(text) or "", key.value

    def __reduce__(self) -> Any:
        return Symbols.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<Symbols {self.name!r}: {len(self)} symbols>" if self._address else "<Symbols, closed>"


class ExtendedSymbols:
    """A table with additional texts, which shares the base table: for the added words of a graph. Its memory is that of the additional texts. Immutable."""

    def __init__(self, base: Symbols, texts: tuple[str, ...]) -> None:
        first = lib.wf_symbols_next_key(base.address)
        self._base, self.texts = base, texts
        self._labels = {text: first + i for i, text in enumerate(texts)}
        self._whole: Symbols | None = None
        self._texts = {label: text for text, label in self._labels.items()}

    @classmethod
    def of(cls, table: Symbols | ExtendedSymbols, texts: Iterable[str]) -> ExtendedSymbols:
        """Extends a table by those of the texts that it does not have."""
        base, has = (table._base, table.texts) if isinstance(table, ExtendedSymbols) else (table, ())
        return cls(base, (*has, *(text for text in dict.fromkeys(texts) if table.find(text) is None)))

    def find(self, text: str) -> int | None:
        return self._labels.get(text) or self._base.find(text)

    def text(self, key: int) -> str | None:
        return self.added(key) or self._base.text(key)

    def added(self, key: int) -> str | None:
        """The text of an added label; None for labels of the base table."""
        return self._texts.get(key)

    def whole(self) -> Symbols:
        """The whole table as Symbols; made on the first call."""
        if self._whole is None:
            whole = Symbols.from_bytes(self._base.to_bytes())
            for text, label in self._labels.items():
                whole.add(text, label)
            self._whole = whole
        return self._whole


def as_symbols(source: SymbolsLike, name: str = "symbols") -> Symbols:
    """A table from a table, the path of one, a mapping text -> label, or a list of texts in the order of their labels. `name`: of the argument, for messages."""
    if isinstance(source, Symbols):
        return source
    if isinstance(source, (str, os.PathLike)):
        return Symbols.read(source)
    if not isinstance(source, Iterable):
        raise TypeError(f"{name}: expected a symbol table, its path, a mapping or a list of texts, found {type(source).__name__}")
    return Symbols(source, name)


SymbolsLike = Union[Symbols, str, "os.PathLike[str]", Mapping[str, int], Iterable[str]]
