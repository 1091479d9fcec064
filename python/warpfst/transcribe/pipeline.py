"""Transcribes recordings in batches of pieces.

groups: recordings decoded together -> pieces of each -> batches of at most batch_seconds -> model -> decoder -> parts -> a transcript per recording
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..decoder import Decoder
from ..errors import CancelledError, DeviceError, Error
from ..results import Result
from .config import ConfigError
from .models import Model
from .outputs import TimedWord, Transcript
from .partial import Part, Partial

if TYPE_CHECKING:
    import numpy as np

ENDS_RUN = (ImportError, CancelledError, DeviceError, ConfigError)  # they are not about one recording


class Recording(NamedTuple):
    key: str
    path: pathlib.Path
    seconds: float  # Model.seconds


class Limits(NamedTuple):
    """`batch_seconds`: seconds of audio in a batch, with padding. `max_seconds`: longer recordings are cut into pieces."""

    batch_seconds: float = 120.0
    max_seconds: float = 30.0


def reason(why: Exception) -> str:
    """What is wrong with a recording, for the user. The kind of an exception is part of it where its message may say nothing."""
    return str(why) if isinstance(why, (Error, RuntimeError, OSError, ValueError)) and str(why) else f"{type(why).__name__}: {why}"


def groups(recordings: Iterable[Recording], most_seconds: float) -> Iterator[list[Recording]]:
    """Splits recordings, sorted by length, into groups of at most most_seconds with padding, or of one recording."""
    group: list[Recording] = []
    for recording in recordings:
        if group and recording.seconds * (len(group) + 1) > most_seconds:
            yield group
            group = []
        group.append(recording)
    if group:
        yield group


def transcript_of(key: str, path: pathlib.Path, parts: Sequence[Part], rate: int) -> Transcript:
    words = [word for part in parts for word in part.words]
    flags = sorted({flag for part in parts for flag in part.flags})
    begin, end = (parts[0].begin, parts[-1].end) if parts else (0, 0)
    return Transcript(key, os.fspath(path), (end - begin) / rate, words, sum(part.cost for part in parts), flags, begin / rate)


class _Work:
    """A recording that is being transcribed: its finished parts, where to continue, and its error, if any."""

    def __init__(self, recording: Recording, partial: Partial | None) -> None:
        self.recording = recording
        self.parts: list[Part] = [] if partial is None else list(partial.parts)
        self.start = self.parts[-1].end if self.parts else 0
        self.error: Exception | None = None


class _Piece(NamedTuple):
    work: _Work
    begin: int
    samples: np.ndarray


def _batches(works: Iterable[_Work], model: Model, limits: Limits) -> Iterator[list[_Piece]]:
    """Batches of pieces. The end of a batch depends only on its begin, so a resumed run makes the same batches.

    If a recording cannot be read to its end, its error is stored and its pieces end there.
    """
    batch: list[_Piece] = []
    longest = 0
    for work in works:
        try:
            for begin, samples in model.pieces(work.recording.path, limits.max_seconds, work.start):
                longest = max(longest, len(samples))
                if batch and longest * (len(batch) + 1) > limits.batch_seconds * model.sample_rate:
                    yield batch
                    batch, longest = [], len(samples)
                if work.error is not None:
                    break
                batch.append(_Piece(work, begin, samples))
        except ENDS_RUN:
            raise
        except Exception as why:  # noqa: BLE001 - files and models of others raise anything
            work.error = why
    if batch:
        yield batch


def decode_pieces(model: Model, decoder: Decoder, pieces: Sequence[tuple[int, np.ndarray]]) -> list[Part | Exception]:
    """A part for each (begin, samples), or the error. If a batch fails as a whole, each piece is tried alone, so only the bad ones fail."""
    try:
        return _decoded(model, decoder, pieces)
    except ENDS_RUN:
        raise
    except Exception as why:  # noqa: BLE001 - models of others raise anything
        if len(pieces) == 1:
            return [why]
    return [part for piece in pieces for part in decode_pieces(model, decoder, [piece])]


def part_of(model: Model, begin: int, num_samples: int, result: Result) -> Part:
    """The part of a piece that has a result without error. Word times are relative to the begin of the recording."""
    end, shift = begin + num_samples, model.frame_shift
    offset, last = begin / model.sample_rate, end / model.sample_rate
    words = [TimedWord(word.text, offset + word.start * shift, min(offset + word.end * shift, last), word.confidence) for word in result.words]
    return Part(begin, end, words, result.cost, sorted(result.flags))


def _decoded(model: Model, decoder: Decoder, pieces: Sequence[tuple[int, np.ndarray]]) -> list[Part | Exception]:
    results = decoder.decode(*model.scores([samples for _, samples in pieces]))
    return [result.error or part_of(model, begin, len(samples), result) for (begin, samples), result in zip(pieces, results)]


def _decode_batch(model: Model, decoder: Decoder, batch: list[_Piece]) -> None:
    for piece, part in zip(batch, decode_pieces(model, decoder, [(piece.begin, piece.samples) for piece in batch])):
        if isinstance(part, Part):
            piece.work.parts.append(part)
        else:
            piece.work.error = piece.work.error or part


def transcribe_group(
    model: Model,
    decoder: Decoder,
    recordings: Sequence[Recording],
    limits: Limits,
    partial: Partial | None = None,
    after_batch: Callable[[Recording, float, float], object] | None = None,
) -> Iterator[Transcript | tuple[Recording, Exception]]:
    """A transcript for each recording, or (recording, error).

    partial      the stored parts of the recording, if there is only one; new parts are added to it
    after_batch  called after each batch with its last recording, how many seconds of that recording are done, and how many seconds of audio the batch had
    """
    works = [_Work(recording, partial) for recording in recordings]
    for batch in _batches(works, model, limits):
        _decode_batch(model, decoder, batch)
        last = batch[-1].work
        if partial is not None and last.error is None:
            try:
                partial.add(last.parts[-len(batch) :])
            except OSError as why:
                last.error = why
        if after_batch is not None:
            position, count = batch[-1].begin + len(batch[-1].samples), sum(len(piece.samples) for piece in batch)
            after_batch(last.recording, position / model.sample_rate, count / model.sample_rate)
    for work in works:
        key, path, _ = work.recording
        yield transcript_of(key, path, work.parts, model.sample_rate) if work.error is None else (work.recording, work.error)
