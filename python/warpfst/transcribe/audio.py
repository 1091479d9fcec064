"""Reads audio files as mono samples at the model's rate, and cuts them into pieces at quiet places.

Audio is processed block by block, so memory does not depend on the length of a recording.

    file -> _read_blocks: mono float32 at the file's rate -> resampled: at the model's rate -> cut: pieces of at most max_seconds
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathlib

    import numpy as np

SUFFIXES = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64", ".rf64"}
MIN_RATE, MAX_RATE = 1000, 768000
_BLOCK_VALUES = 1 << 18  # samples of all channels in a block
_RESAMPLE_SECONDS, _RESAMPLE_SAMPLES, _MARGIN_SECONDS = 30.0, 1 << 21, 0.5
_QUIET_SECONDS = 0.2
_FRAME_SECONDS, _PAUSE_FRAMES, _PAUSE_RATIO, _LEAST_SECONDS = 0.1, 5, 0.01, 1.0
_LEAD_FRAMES, _LEAD_RATIO = 3, 0.001


def need(module: str, extra: str = "audio") -> Any:
    """Imports an optional package. If it is not installed, or does not fit to the installed numpy, the error says what to install."""
    import importlib

    try:
        return importlib.import_module(module)
    except Exception as why:  # noqa: BLE001 - packages built for another numpy raise ImportError, AttributeError or ValueError
        what = "serving" if extra == "serve" else "transcribing"
        raise ImportError(f"{what} needs {module} ({why}): pip install '.[{extra}]' in warpfst's source folder") from None


def check_rate(rate: int) -> int:
    if not MIN_RATE <= rate <= MAX_RATE:
        raise ValueError(f"sample rate {rate}: expected {MIN_RATE} to {MAX_RATE}")
    return rate


def seconds(path: str | os.PathLike[str]) -> float:
    """The duration according to the file's header, which can be wrong."""
    info = need("soundfile").info(os.fspath(path))
    return float(info.frames / check_rate(info.samplerate))


def _read_blocks(file: Any) -> Iterator[np.ndarray]:
    import numpy as np

    count = max(_BLOCK_VALUES // file.channels, 1)
    while len(block := file.read(count, dtype="float32", always_2d=True)):
        if not np.isfinite(block).all():
            raise ValueError("a sample is not a finite number")
        yield block.mean(axis=1)


def blocks(path: str | os.PathLike[str], rate: int) -> Iterator[np.ndarray]:
    """float32 samples in [-1, 1] at `rate`; channels are averaged, other rates resampled."""
    with need("soundfile").SoundFile(os.fspath(path)) as file:
        yield from resampled(_read_blocks(file), check_rate(file.samplerate), rate)


def read(path: str | os.PathLike[str], rate: int) -> np.ndarray:
    """All samples of the file, as `blocks` yields them."""
    return joined(blocks(path, rate))


def joined(chunks: Iterable[np.ndarray]) -> np.ndarray:
    import numpy as np

    return np.concatenate([np.zeros(0, np.float32), *chunks])


def resample(samples: np.ndarray, own_rate: int, rate: int) -> np.ndarray:
    """Band-limited resampling: truncates or zero-pads the spectrum."""
    import numpy as np

    if own_rate == rate or len(samples) == 0:
        return samples
    count = round(len(samples) * rate / own_rate)
    spectrum = np.fft.rfft(samples)
    resized = np.zeros(count // 2 + 1, dtype=spectrum.dtype)
    kept = min(len(spectrum), len(resized))
    resized[:kept] = spectrum[:kept]
    return (np.fft.irfft(resized, count) * (count / len(samples))).astype(np.float32)


def resampled(chunks: Iterable[np.ndarray], own_rate: int, rate: int, block_seconds: float = _RESAMPLE_SECONDS) -> Iterator[np.ndarray]:
    """`resample` block by block. A block has a margin on each side, whose outer half is faded out. Audio that fits into one block is resampled at once.

    samples| margin | block | margin |     the next block begins at the end of this block
    """
    import numpy as np

    if own_rate == rate:
        yield from chunks
        return
    unit = own_rate // math.gcd(own_rate, rate)  # number of input samples that is a whole number of output samples
    margin = math.ceil(_MARGIN_SECONDS * own_rate / unit) * unit
    block = max(int(min(block_seconds * own_rate, _RESAMPLE_SAMPLES)) // unit * unit, margin)
    fade = np.square(np.sin(np.linspace(0, np.pi / 2, margin // 2))).astype(np.float32)
    samples, lead = np.zeros(0, np.float32), 0

    def at_rate(count: int) -> int:
        return count * rate // own_rate

    def put(piece: np.ndarray, end: int | None) -> np.ndarray:
        if lead:
            piece[: len(fade)] *= fade
        return resample(piece, own_rate, rate)[at_rate(lead) : end]

    for chunk in chunks:
        samples = np.concatenate([samples, chunk])
        while len(samples) > lead + block + margin:
            piece = samples[: lead + block + margin].copy()
            piece[-len(fade) :] *= fade[::-1]
            yield put(piece, at_rate(lead + block))
            samples, lead = samples[lead + block - margin :], margin
    yield put(samples, None)


def _quietest(samples: np.ndarray, rate: int) -> int:
    """The middle of the quietest 0.2 s in the second half."""
    import numpy as np

    begin, quiet = len(samples) // 2, int(_QUIET_SECONDS * rate)
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples[begin:], dtype=np.float64))])
    window = energy[quiet:] - energy[:-quiet]
    return begin + int(window.argmin()) + quiet // 2


def _energies(samples: np.ndarray, frame: int) -> np.ndarray:
    import numpy as np

    energies: np.ndarray = np.square(samples[: len(samples) // frame * frame].reshape(-1, frame), dtype=np.float64).sum(axis=1)
    return energies


def _lead(samples: np.ndarray, rate: int) -> int:
    """The number of leading samples to skip: up to 0.3 s before the first frame that is less than 30 dB below the loudest."""
    frame = int(_FRAME_SECONDS * rate)
    energy = _energies(samples, frame)
    return max(int((energy >= _LEAD_RATIO * energy.max()).argmax()) - _LEAD_FRAMES, 0) * frame if len(energy) else 0


def _pause(samples: np.ndarray, rate: int) -> int | None:
    """The middle of the first half second, after the first second, that is 20 dB below the loudest frame so far. None: no pause."""
    import numpy as np

    frame = int(_FRAME_SECONDS * rate)
    energy = _energies(samples, frame)
    quiet = energy < _PAUSE_RATIO * np.maximum.accumulate(energy)
    first = round(_LEAST_SECONDS / _FRAME_SECONDS)
    for begin in range(first, len(quiet) - _PAUSE_FRAMES + 1):
        if quiet[begin : begin + _PAUSE_FRAMES].all():
            return begin * frame + _PAUSE_FRAMES * frame // 2
    return None


def cut(chunks: Iterable[np.ndarray], rate: int, max_seconds: float, *, at_pauses: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """Yields (begin, samples) of pieces of at most max_seconds, cut at the quietest place in their second half.
    With at_pauses, pieces are cut at the first pause, and leading silence is skipped.

    The end of a piece depends only on the samples of the piece, so cutting can be resumed after any piece.
    """
    import numpy as np

    longest = int(max_seconds * rate)
    begin, samples = 0, np.zeros(0, np.float32)
    for chunk in chunks:
        samples = np.concatenate([samples, chunk])
        while True:
            end = _pause(samples[:longest], rate) if at_pauses else None
            if end is None and len(samples) > longest:
                end = _quietest(samples[:longest], rate)
            if end is None:
                break
            skipped = _lead(samples[:end], rate) if at_pauses else 0
            yield begin + skipped, samples[skipped:end]
            begin, samples = begin + end, samples[end:]
    if len(samples) or begin == 0:
        skipped = _lead(samples, rate) if at_pauses else 0
        yield begin + skipped, samples[skipped:]


def _without(chunks: Iterable[np.ndarray], count: int) -> Iterator[np.ndarray]:
    """The chunks without the first `count` samples."""
    for chunk in chunks:
        if count < len(chunk):
            yield chunk[count:]
        count = max(count - len(chunk), 0)


def pieces(path: pathlib.Path, rate: int, max_seconds: float, start: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """The pieces of a file, from sample `start` on, which must be the begin of a piece."""
    for begin, samples in cut(_without(blocks(path, rate), start), rate, max_seconds):
        if start == 0 or len(samples):
            yield start + begin, samples
