"""Stores the finished parts of a long recording in the output folder until the recording is finished: KEY.json.partial in the place of KEY.json.

The first line identifies audio, model and settings, as JSON. Then there is a line for each batch: [[begin, end, words, cost, flags], ...].
A line that is incomplete because the process was killed is ignored, and so are all lines after it.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from .outputs import TimedWord, replace_file


class Part(NamedTuple):
    """The result of a piece, [begin, end) in samples at the model's rate. Word times are relative to the begin of the recording."""

    begin: int
    end: int
    words: list[TimedWord]
    cost: float
    flags: list[str]


def identity(audio: pathlib.Path, files: Iterable[pathlib.Path], settings: dict[str, Any]) -> str:
    """A text that identifies audio, model and settings. Stored parts are only used if it is the same."""
    stats = [(os.fspath(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (audio, *files) if path.exists()]
    return json.dumps({"warpfst_partial": 1, "files": stats, **settings}, sort_keys=True) + "\n"


def _part(begin: int, end: int, words: list[Any], cost: float, flags: list[str]) -> Part:
    return Part(int(begin), int(end), [TimedWord(*word) for word in words], float(cost), list(map(str, flags)))


class Partial:
    """The finished parts of one recording, in memory and on disk."""

    def __init__(self, file: pathlib.Path, identity: str, *, resume: bool) -> None:
        self._file, self._identity, self._begun = file, identity, False
        batches = self._read() if resume else []
        self.parts = [part for batch in batches for part in batch]
        if batches:
            replace_file(file, identity + "".join(map(self._line, batches)))
            self._begun = True

    @staticmethod
    def _line(batch: list[Part]) -> str:
        return json.dumps(batch) + "\n"

    def _read(self) -> list[list[Part]]:
        try:
            with self._file.open(encoding="utf-8") as file:
                first, *lines = file
        except (OSError, ValueError):
            return []
        batches: list[list[Part]] = []
        end = 0
        for line in lines if first == self._identity else []:
            try:
                batch = [_part(*fields) for fields in json.loads(line)]
            except (ValueError, TypeError):
                break
            if not line.endswith("\n") or [part.begin for part in batch] != [end, *(part.end for part in batch[:-1])]:
                break
            batches.append(batch)
            end = batch[-1].end
        return batches

    def add(self, batch: list[Part]) -> None:
        if not self._begun:
            replace_file(self._file, self._identity)
            self._begun = True
        with self._file.open("a", encoding="utf-8") as file:
            file.write(self._line(batch))

    def remove(self) -> None:
        """Deletes the stored parts, after the recording's output file was written."""
        self._file.unlink(missing_ok=True)
