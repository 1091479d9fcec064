"""Keys of recordings, which name their output files."""

from __future__ import annotations

import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from . import audio
from .outputs import wrong_key


class Found(NamedTuple):
    """A recording and its key. `given`: the key comes from a list, so it must not be changed. `error`: why it cannot be transcribed."""

    key: str
    path: pathlib.Path
    given: bool = False
    error: str = ""


def read_list(path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Yields the keys and paths of a list of recordings. Paths are relative to the folder of the list. Bytes that are not UTF-8 are kept, as in names of files."""
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").split("\n"), 1):
        if fields := line.strip().split(maxsplit=1):
            if len(fields) != 2:
                raise ValueError(f"{path}:{number}: {line!r}, expected `key path`")
            yield fields[0], path.parent / fields[1]


def checked(listed: Iterable[tuple[str, str | os.PathLike[str]]]) -> list[Found]:
    """The recordings of a list. Those whose key was used before, or is no file name, have an error. A recording that is listed twice is used once."""
    found: dict[tuple[str, str], Found] = {}
    first: dict[str, str] = {}
    for key, path in listed:
        where = os.path.abspath(path)
        error = wrong_key(key)
        if not error and first.setdefault(key, where) != where:
            error = f"the key {key!r} is that of {first[key]}, too: give it another key in the list"
        found.setdefault((key, where), Found(key, pathlib.Path(path), True, error))
    return list(found.values())


def find(paths: Iterable[pathlib.Path], listed: Iterable[tuple[str, pathlib.Path]]) -> list[Found]:
    """All recordings: files, audio files in folders, and those of a list, with distinct keys. A file that is given twice is used once."""
    found = checked(listed)
    for path in paths:
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in audio.SUFFIXES]
            found += [Found(file.relative_to(path).with_suffix("").as_posix().replace("/", "-"), file) for file in files]
        else:
            found.append(Found(path.stem, path))
    once = {(one.key, os.path.abspath(one.path)): one for one in reversed(found)}
    unique = list(reversed(once.values()))
    return [one for one in unique if one.error] + make_distinct([one for one in unique if not one.error])


def shard_of(key: str, count: int) -> int:
    """The part, of `count` parts, that a recording belongs to. It depends only on the key, so it is the same on every machine."""
    return zlib.crc32(key.encode("utf-8", "surrogateescape")) % count


def _dashed(path: pathlib.Path) -> str:
    return "-".join(part for part in path.parts if part not in ("..", path.anchor))


# Forms of a key, from short to long. The last one is different for any two paths.
_FORMS: tuple[Callable[[Found], str], ...] = (
    lambda one: one.key,
    lambda one: one.key + one.path.suffix,
    lambda one: _dashed(one.path.with_suffix("")),
    lambda one: _dashed(one.path),
    lambda one: f"{_dashed(one.path)}-{zlib.crc32(os.fsencode(one.path)):08x}",
)


def _clashing(keys: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    return {key for key in keys if key in seen or seen.add(key)}  # type: ignore[func-returns-value]


def make_distinct(found: list[Found]) -> list[Found]:
    """Recordings with the same key all get longer keys, with the first form that distinguishes them: x.wav and x.flac, else a-x and b-x."""
    levels = [0] * len(found)
    while clashing := _clashing(keys := [one.key if one.given else _FORMS[level](one) for one, level in zip(found, levels)]):
        for key in clashing:
            members = [i for i, other in enumerate(keys) if other == key]
            movable = [i for i in members if not found[i].given and levels[i] + 1 < len(_FORMS)]
            if not movable:
                first, second = (found[i].path for i in members[:2])
                raise ValueError(f"{first} and {second} have the same key {key!r}: give them different keys in the list")
            for i in movable:
                levels[i] += 1
    return [one._replace(key=key) for one, key in zip(found, keys)]
