"""flashlight.lib.text.dictionary: entries and their indices, and files of lexicons."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from ...errors import FileError

if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]

_UNKNOWN = "<unk>"


class Dictionary:
    """Entries and their indices. Made of a list of entries; of a file with one entry on each line, further ones on a line being other names for it; or empty."""

    def __init__(self, source: Path | Sequence[str] = ()) -> None:
        lines = [line.split() for line in _read(source).splitlines()] if isinstance(source, (str, os.PathLike)) else [[entry] for entry in source]
        self._indices: dict[str, int] = {}
        self._entries: dict[int, str] = {}
        self._default: int | None = None
        for index, names in enumerate(names for names in lines if names):
            for name in names:
                self.add_entry(name, index)

    def add_entry(self, entry: str, idx: int | None = None) -> None:
        """Adds an entry; by default, with the number of indices as its index."""
        if entry in self._indices:
            raise ValueError(f"{entry!r} is already in the dictionary")
        self._indices[entry] = len(self._entries) if idx is None else idx
        self._entries.setdefault(self._indices[entry], entry)

    def get_index(self, entry: str) -> int:
        """The index of an entry, or the default index. ValueError: there is neither."""
        index = self._indices.get(entry, self._default)
        if index is None:
            raise ValueError(f"{entry!r} is not in the dictionary")
        return index

    def get_entry(self, idx: int) -> str:
        """The first entry with this index. ValueError: there is none."""
        if idx not in self._entries:
            raise ValueError(f"index {idx} is not in the dictionary")
        return self._entries[idx]

    def contains(self, entry: str) -> bool:
        return entry in self._indices

    def set_default_index(self, idx: int) -> None:
        """Sets the index of entries that are not in the dictionary."""
        self._default = idx

    def entry_size(self) -> int:
        return len(self._indices)

    def index_size(self) -> int:
        return len(self._entries)

    def is_contiguous(self) -> bool:
        """Are the indices 0, 1, 2, ...?"""
        return set(self._entries) == set(range(len(self._entries)))

    def map_entries_to_indices(self, entries: Iterable[str]) -> list[int]:
        return [self.get_index(entry) for entry in entries]

    def map_indices_to_entries(self, indices: Iterable[int]) -> list[str]:
        return [self.get_entry(index) for index in indices]


def _read(path: Path) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from error


def load_words(filename: Path, max_words: int = -1) -> dict[str, list[list[str]]]:
    """Reads a lexicon, one spelling a line: the spellings of each word, and <unk> without any. `max_words`: only that many words, the first ones; -1: all."""
    lexicon: dict[str, list[list[str]]] = {}
    for number, line in enumerate(_read(filename).splitlines(), 1):
        word, *tokens = line.split() or [""]
        if not tokens:
            raise ValueError(f"{filename}:{number}: {line!r}, expected a word and its tokens")
        if word in lexicon or max_words < 0 or len(lexicon) < max_words:
            lexicon.setdefault(word, []).append(tokens)
    lexicon.setdefault(_UNKNOWN, [])
    return lexicon


def create_word_dict(lexicon: Mapping[str, Any]) -> Dictionary:
    """The words of a lexicon, as `load_words` makes it. <unk> is the default."""
    words = Dictionary(list(lexicon))
    words.set_default_index(words.get_index(_UNKNOWN))
    return words


def pack_replabels(tokens: Iterable[int], dict: Dictionary, max_reps: int) -> list[int]:
    """Writes repetitions of a token as the token and a number of further ones, at most `max_reps`. The numbers are entries of the dictionary: "<1>", "<2>", ..."""
    packed: list[int] = []
    last, repeats = -1, 0
    for token in tokens:
        if token == last and repeats < max_reps:
            repeats += 1
            continue
        if repeats > 0:
            packed.append(dict.get_index(f"<{repeats}>"))
        packed.append(token)
        last, repeats = token, 0
    return packed + ([dict.get_index(f"<{repeats}>")] if repeats > 0 else [])


def unpack_replabels(tokens: Iterable[int], dict: Dictionary, max_reps: int) -> list[int]:
    """The opposite of `pack_replabels`. Numbers after no token, or after another number, are left out."""
    counts = {dict.get_index(f"<{count}>"): count for count in range(1, max_reps + 1)}
    unpacked: list[int] = []
    last = -1
    for token in tokens:
        if token not in counts:
            unpacked.append(token)
            last = token
        elif last >= 0:
            unpacked += [last] * counts[token]
            last = -1
    return unpacked
