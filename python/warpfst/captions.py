"""Captions: words with times in seconds as SRT and WebVTT. Used for results, and by `warpfst transcribe`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

# The rules of `warpfst decode --format=srt`, whose words count frames (src/io/captions.c); the tolerance is for sums of seconds.
_CHARACTERS, _SECONDS, _PAUSE_SECONDS, _TOLERANCE = 84, 6.0, 1.0, 1e-6


class Timed(Protocol):
    """A word with times in seconds."""

    @property
    def text(self) -> str: ...
    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...


class Spoken(NamedTuple):
    text: str
    start: float
    end: float


T = TypeVar("T", bound=Timed)


def captions(words: Sequence[T]) -> Iterator[list[T]]:
    """Splits words into captions of at most two lines and a few seconds, without a long pause inside."""
    current: list[T] = []
    for word in words:
        characters = sum(len(other.text) + 1 for other in current) + len(word.text)
        if current and (characters > _CHARACTERS or word.end - current[0].start > _SECONDS + _TOLERANCE or word.start - current[-1].end > _PAUSE_SECONDS + _TOLERANCE):
            yield current
            current = []
        current.append(word)
    if current:
        yield current


def clock(seconds: float, point: str) -> str:
    milliseconds = math.floor(seconds * 1000 + 0.5)
    return f"{milliseconds // 3600000:02d}:{milliseconds // 60000 % 60:02d}:{milliseconds // 1000 % 60:02d}{point}{milliseconds % 1000:03d}"


def _cue(words: Sequence[Timed], point: str, escape: bool = False) -> str:
    text = " ".join(word.text for word in words)
    if len(text) > _CHARACTERS // 2 and (middle := text.find(" ", len(text) // 2)) > 0:
        text = text[:middle] + "\n" + text[middle + 1 :]
    if escape:
        text = text.replace("&", "&amp;").replace("<", "&lt;")
    return f"{clock(words[0].start, point)} --> {clock(words[-1].end, point)}\n{text}\n"


def srt(words: Sequence[Timed], num_before: int = 0) -> str:
    """SubRip captions. `num_before`: captions of the file before these."""
    return "\n".join(f"{number}\n{_cue(cue, ',')}" for number, cue in enumerate(captions(words), 1 + num_before))


def vtt(words: Sequence[Timed], num_before: int = 0) -> str:
    """WebVTT captions, with the head of the file if none are before these."""
    return ("" if num_before else "WEBVTT\n\n") + "\n".join(_cue(cue, ".", escape=True) for cue in captions(words))
