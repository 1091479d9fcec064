"""Keys of recordings: the names of their outputs."""

from __future__ import annotations

import os
import pathlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from . import audio


class Found(NamedTuple):
    """`given`: the key comes from a list, and stays as it is."""

    key: str
    path: pathlib.Path
    given: bool = False


def read_list(path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Keys and paths of a list of recordings; paths are relative to its folder."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if fields := line.split(maxsplit=1):
            if len(fields) != 2 or "/" in fields[0]:
                raise ValueError(f"{path}:{number}: {line!r}, expected `key path`")
            yield fields[0], path.parent / fields[1]


def find(paths: Iterable[pathlib.Path], listed: Iterable[tuple[str, pathlib.Path]]) -> list[Found]:
    """Files, files in folders, and what is listed; a file that is named twice counts once."""
    found = [Found(key, path, True) for key, path in listed]
    for path in paths:
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in audio.SUFFIXES]
            found += [Found(file.relative_to(path).with_suffix("").as_posix().replace("/", "-"), file) for file in files]
        else:
            found.append(Found(path.stem, path))
    once = {(one.key, os.path.abspath(one.path)): one for one in reversed(found)}
    return named_apart(list(reversed(once.values())))


def shard_of(key: str, count: int) -> int:
    """Which of `count` parts a recording belongs to: the same on every machine, whatever else is in the list."""
    return zlib.crc32(key.encode("utf-8", "surrogateescape")) % count


def _dashed(path: pathlib.Path) -> str:
    return "-".join(part for part in path.parts if part not in ("..", path.anchor))


# Longer and longer names. The last one differs for any two paths.
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


def named_apart(found: list[Found]) -> list[Found]:
    """Of recordings with one key all get longer names, the first form that sets them apart: x.wav and x.flac, then a-x and b-x."""
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
