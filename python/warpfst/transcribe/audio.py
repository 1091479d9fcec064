"""Audio files to mono samples at the model's rate; long recordings cut where they are quietest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SUFFIXES = {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64", ".rf64"}
_QUIET_SECONDS = 0.2


def need(module: str) -> Any:
    """Imports an optional package, or says how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as why:
        raise ImportError(f"transcribing needs {module} ({why}): pip install 'warpfst[audio]'") from None


def seconds(path: str | os.PathLike[str]) -> float:
    """Duration, from the file's header."""
    info = need("soundfile").info(os.fspath(path))
    return float(info.frames / info.samplerate)


def read(path: str | os.PathLike[str], rate: int) -> np.ndarray:
    """float32 samples in [-1, 1]; channels are averaged, other rates resampled."""
    samples, own_rate = need("soundfile").read(os.fspath(path), dtype="float32", always_2d=True)
    return resample(samples.mean(axis=1), own_rate, rate)


def resample(samples: np.ndarray, own_rate: int, rate: int) -> np.ndarray:
    """Band-limited, by cutting or padding the spectrum."""
    import numpy as np

    if own_rate == rate or len(samples) == 0:
        return samples
    count = round(len(samples) * rate / own_rate)
    spectrum = np.fft.rfft(samples)
    resized = np.zeros(count // 2 + 1, dtype=spectrum.dtype)
    kept = min(len(spectrum), len(resized))
    resized[:kept] = spectrum[:kept]
    return (np.fft.irfft(resized, count) * (count / len(samples))).astype(np.float32)


def segments(samples: np.ndarray, rate: int, max_seconds: float) -> list[tuple[int, int]]:
    """[begin, end) of pieces of at most max_seconds, cut at the quietest place of their second half."""
    import numpy as np

    longest, quiet = int(max_seconds * rate), int(_QUIET_SECONDS * rate)
    cuts = [0]
    while len(samples) - cuts[-1] > longest:
        begin = cuts[-1] + longest // 2
        energy = np.concatenate([[0.0], np.cumsum(np.square(samples[begin : cuts[-1] + longest], dtype=np.float64))])
        window = energy[quiet:] - energy[:-quiet]
        cuts.append(begin + int(window.argmin()) + quiet // 2)
    return list(zip(cuts, [*cuts[1:], len(samples)]))
