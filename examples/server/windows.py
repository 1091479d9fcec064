"""Scores of audio that is still arriving, from a model that was trained on whole utterances.

    |<- begin of the utterance, at most LEFT ->|<- STEP: new scores ->|<- RIGHT ->|

The model sees a window; only the scores of its middle are used. An utterance begins when the audio gets loud, because models of this kind do badly on long silence.
The windows depend on the samples alone, not on the messages in which they came.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Frames of the model's output, of 40 ms in the example.
LEFT, STEP, RIGHT = 200, 8, 12
LEAD = 5  # before the first loud frame
LOUD = 0.02  # root mean square of a frame; 1 is the loudest


class Window(NamedTuple):
    samples: np.ndarray
    begin: int  # the first frame to use
    end: int | None  # the frame after the last one; None: up to the last


class Windows:
    """Cuts the samples of one connection into windows. `unit`: samples of a frame."""

    def __init__(self, unit: int) -> None:
        self._unit, self._samples = unit, np.zeros(0, np.float32)
        self._begun = False  # an utterance
        self._scored = 0  # frames at the begin of _samples that were scored already
        self._start = 0  # frame of the connection at which _samples begins
        self.utterance = 0  # frame of the connection at which the utterance begins

    def add(self, samples: np.ndarray) -> None:
        self._samples = np.concatenate([self._samples, samples])

    def _drop(self, frames: int) -> None:
        self._samples = self._samples[frames * self._unit :]
        self._start += frames

    def _skip_silence(self) -> None:
        count = len(self._samples) // self._unit
        levels = np.sqrt(np.square(self._samples[: count * self._unit].reshape(count, self._unit)).mean(axis=1))
        loud = np.flatnonzero(levels > LOUD)
        self._begun = len(loud) > 0
        self._drop(max((int(loud[0]) if self._begun else count) - LEAD, 0))
        self.utterance = self._start

    def next(self, at_end: bool = False) -> Window | None:
        """The next window, if enough samples have arrived. `at_end`: no more will arrive."""
        if not self._begun:
            self._skip_silence()
        whole = len(self._samples) >= (self._scored + STEP + RIGHT) * self._unit
        if not self._begun or not (whole or at_end):
            return None
        begin = self._scored
        if not whole:
            window = Window(self._samples, begin, None)
            self._samples, self._scored, self._begun = self._samples[:0], 0, False
            return window
        window = Window(self._samples[: (begin + STEP + RIGHT) * self._unit], begin, begin + STEP)
        self._scored += STEP
        if self._scored > LEFT:
            self._drop(self._scored - LEFT)
            self._scored = LEFT
        return window

    def end_utterance(self) -> None:
        """The next utterance begins after the frames that were scored."""
        self._drop(self._scored)
        self._scored, self._begun = 0, False
