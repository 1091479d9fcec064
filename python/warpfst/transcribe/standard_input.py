"""Reads audio from standard input while it arrives, from a pipe or a recording program: WAV, or raw samples (s16le, one channel)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .audio import check_rate, resampled
from .interrupts import Interrupts

if TYPE_CHECKING:
    import numpy as np

_READ_BYTES = 1 << 16
_RESAMPLE_SECONDS = 0.5  # short, because results are delayed by it
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_ENDLESS = 0x7FFF0000  # programs that do not know the length write 0 or a size of at least this
_MAX_HEADER_BYTES, _MAX_CHANNELS = 1 << 20, 1024


class Form(NamedTuple):
    """Format of the samples. `bits`: 8 (unsigned), 16, 24, 32; -32 and -64 for floats. `size`: bytes of samples; None: up to the end of the input."""

    rate: int
    channels: int = 1
    bits: int = 16
    size: int | None = None


class _Bytes:
    """Reads bytes from a file descriptor. Ctrl-C acts as the end of the input."""

    def __init__(self, descriptor: int, interrupts: Interrupts) -> None:
        self._descriptor, self._interrupts = descriptor, interrupts
        self._buffer, self._num_read = b"", 0

    def some(self) -> bytes:
        buffer, self._buffer = self._buffer, b""
        try:
            with self._interrupts.raising():
                return buffer or os.read(self._descriptor, _READ_BYTES)
        except KeyboardInterrupt:
            return b""

    def exactly(self, count: int) -> bytes:
        """Reads `count` bytes of a header."""
        self._num_read += count
        if self._num_read > _MAX_HEADER_BYTES:
            raise ValueError(f"a WAV header of more than {_MAX_HEADER_BYTES} bytes")
        data = b""
        while len(data) < count:
            if not (more := self.some()):
                raise ValueError(f"ends in the WAV header, after {len(data)} of {count} bytes")
            data += more
        self._buffer = data[count:]
        return data[:count]


def _wav_format(chunk: bytes) -> Form:
    if len(chunk) < 16:
        raise ValueError(f"a WAV format chunk of {len(chunk)} bytes, expected 16 or more")
    tag, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
    if tag == _EXTENSIBLE and len(chunk) >= 26:
        (tag,) = struct.unpack_from("<H", chunk, 24)
    if (tag, bits) not in {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}:
        raise ValueError(f"WAV format {tag} of {bits} bits: expected PCM of 8, 16, 24 or 32 bits, or float of 32 or 64")
    if not 1 <= channels <= _MAX_CHANNELS:
        raise ValueError(f"{channels} channels: expected 1 to {_MAX_CHANNELS}")
    return Form(check_rate(rate), channels, bits if tag == _PCM else -bits)


def _wav_header(data: _Bytes) -> Form:
    """Reads the header, up to the first sample."""
    riff = data.exactly(12)
    if riff[:4] not in (b"RIFF", b"RF64") or riff[8:] != b"WAVE":
        raise ValueError("no WAV header; raw samples (s16le, one channel) need --rate")
    form = None
    while True:
        name, size = struct.unpack("<4sI", data.exactly(8))
        if name == b"data":
            if form is None:
                raise ValueError("WAV samples without a format chunk before them")
            return form._replace(size=None if size == 0 or size >= _ENDLESS else size)
        chunk = data.exactly(size + size % 2)
        if name == b"fmt ":
            form = _wav_format(chunk)


def _samples(data: bytes, form: Form) -> np.ndarray:
    """float32 in [-1, 1], channels averaged."""
    import numpy as np

    if form.bits < 0:
        values = np.frombuffer(data, f"<f{-form.bits // 8}")
        if not np.isfinite(values).all():
            raise ValueError("a sample is not a finite number")
    elif form.bits == 8:
        values = (np.frombuffer(data, np.uint8) - 128.0) / 128
    elif form.bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        values = wide.view("<i4")[:, 0] / 2.0**31
    else:
        values = np.frombuffer(data, f"<i{form.bits // 8}") / 2.0 ** (form.bits - 1)
    mono: np.ndarray = values.reshape(-1, form.channels).astype(np.float32).mean(axis=1)
    return mono


def _sample_blocks(data: _Bytes, form: Form) -> Iterator[np.ndarray]:
    frame_bytes = form.channels * abs(form.bits) // 8
    rest, left = b"", form.size
    while left != 0 and (more := data.some()):
        if left is not None:
            more = more[:left]
            left -= len(more)
        rest += more
        whole = len(rest) // frame_bytes * frame_bytes
        if whole:
            yield _samples(rest[:whole], form)
            rest = rest[whole:]


def blocks(descriptor: int, raw_rate: int | None, rate: int, interrupts: Interrupts) -> Iterator[np.ndarray]:
    """Yields float32 samples at `rate` as they arrive. `raw_rate`: sample rate of raw samples; None: the input has a WAV header."""
    if os.isatty(descriptor):
        raise ValueError("standard input is a terminal: expected audio from a pipe or a file")
    data = _Bytes(descriptor, interrupts)
    try:
        form = _wav_header(data) if raw_rate is None else Form(check_rate(raw_rate))
        yield from resampled(_sample_blocks(data, form), form.rate, rate, _RESAMPLE_SECONDS)
    except (ValueError, OSError) as why:
        raise ValueError(f"standard input: {why}") from None
