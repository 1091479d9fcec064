"""Writes words with times as text, JSON, CTM, SRT and VTT."""

from __future__ import annotations

import collections
import json
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import NamedTuple, TextIO

from .._library import write_output
from ..captions import captions, srt, vtt

FORMATS = {"text": ".txt", "json": ".json", "ctm": ".ctm", "srt": ".srt", "vtt": ".vtt"}


class TimedWord(NamedTuple):
    text: str
    start: float  # seconds
    end: float
    confidence: float | None = None  # set if the decoder has the option lattice_beam


class Transcript(NamedTuple):
    key: str
    path: str
    seconds: float
    words: list[TimedWord]
    cost: float
    flags: list[str]
    start: float = 0.0  # seconds; of a piece, its position in the recording

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


def as_text(transcript: Transcript) -> str:
    return f"{transcript.key} {transcript.text}".rstrip() + "\n"


def as_json(transcript: Transcript) -> str:
    words = [
        {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3), **({} if word.confidence is None else {"confidence": round(word.confidence, 4)})}
        for word in transcript.words
    ]
    return (
        json.dumps(
            {
                "key": transcript.key,
                "audio": transcript.path,
                **({"start": round(transcript.start, 3)} if transcript.start > 0 else {}),
                "duration": round(transcript.seconds, 3),
                "text": transcript.text,
                "words": words,
                "cost": round(transcript.cost, 4),
                "flags": transcript.flags,
            },
            ensure_ascii=False,
        )
        + "\n"
    )


def as_ctm(transcript: Transcript) -> str:
    return "".join(
        f"{transcript.key} 1 {word.start:.2f} {word.end - word.start:.2f} {word.text}" + ("\n" if word.confidence is None else f" {word.confidence:.4f}\n")
        for word in transcript.words
    )


def as_srt(transcript: Transcript, num_before: int = 0) -> str:
    return srt(transcript.words, num_before)


def as_vtt(transcript: Transcript, num_before: int = 0) -> str:
    return vtt(transcript.words, num_before)


class Writer:
    """Writes transcripts to a stream as they arrive. Captions are numbered on from one transcript to the next."""

    def __init__(self, form: str, stream: TextIO) -> None:
        self._form, self._stream, self._num_captions = form, stream, 0

    def put(self, transcript: Transcript) -> None:
        if self._form in ("srt", "vtt"):
            text = (as_srt if self._form == "srt" else as_vtt)(transcript, self._num_captions)
            self._stream.write("\n" + text if self._num_captions else text)
            self._num_captions += sum(1 for _ in captions(transcript.words))
        else:
            self._stream.write(WRITERS[self._form](transcript))
        self._stream.flush()


class InOrder:
    """Passes on transcripts in the order of `keys`, although shorter recordings are finished first."""

    def __init__(self, keys: Iterable[str], put: Callable[[Transcript], object]) -> None:
        self._keys, self._put = collections.deque(keys), put
        self._done: dict[str, Transcript | None] = {}

    def add(self, key: str, transcript: Transcript | None) -> None:
        """A recording is finished. None: it failed."""
        self._done[key] = transcript
        while self._keys and self._keys[0] in self._done:
            self._pass(self._keys.popleft())

    def finish(self) -> None:
        """Passes on the rest, if the run ends early."""
        for key in self._keys:
            self._pass(key)
        self._keys.clear()

    def _pass(self, key: str) -> None:
        transcript = self._done.pop(key, None)
        if transcript is not None:
            self._put(transcript)


WRITERS = {"text": as_text, "json": as_json, "ctm": as_ctm, "srt": as_srt, "vtt": as_vtt}


def wrong_key(key: str) -> str:
    """Why a key cannot name a file in the output folder; "" if it can."""
    return "" if key and key not in (".", "..") and not {"/", "\0"} & set(key) else f"the key {key!r} cannot be the name of a file"


def output_file(folder: pathlib.Path, key: str, form: str) -> pathlib.Path:
    """The file of a recording. ValueError: the key is no file name, so the file could be in another folder."""
    if why := wrong_key(key):
        raise ValueError(why)
    return folder / (key + FORMATS[form])


def is_written(file: pathlib.Path) -> bool:
    """Is there an output file? False, too, for a name that cannot be one, such as a long one: writing it reports that."""
    return os.path.isfile(file)


def replace_file(file: pathlib.Path, text: str) -> None:
    """Writes a file atomically, so that it is never incomplete, even if other processes write the same file."""
    write_output(file, text.encode("utf-8"))


def write_file(folder: pathlib.Path, form: str, transcript: Transcript) -> None:
    """Writes the output file of a recording. It must be written atomically, because --resume treats existing files as complete."""
    replace_file(output_file(folder, transcript.key, form), WRITERS[form](transcript))
