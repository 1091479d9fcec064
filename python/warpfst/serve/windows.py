"""Scores of audio that is still arriving, from a model that was trained on whole utterances.

    |<- begin of the utterance, at most `left` ->|<- `step`: new scores ->|<- `right` ->|

The model sees a window; only the scores of its middle are used. An utterance begins when the audio gets loud, because models of this kind do badly on long silence.
The windows depend on the samples alone, not on the messages in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .settings import Windowing

if TYPE_CHECKING:
    import numpy as np

_LEAD_SECONDS = 0.2  # before the first loud frame


class Window(NamedTuple):
    samples: np.ndarray
    begin: int  # the first frame to use
    end: int | None  # the frame after the last one; None: up to the last


class Windows:
    """Cuts the samples of one connection, float32 in [-1, 1], into windows. `frame_shift`: seconds of a frame of the scores."""

    def __init__(self, sample_rate: int, frame_shift: float, windowing: Windowing) -> None:
        import numpy as np

        self._unit = round(frame_shift * sample_rate)  # samples of a frame
        self._left, self._step, self._right, self._lead = (
            max(round(seconds / frame_shift), least) for seconds, least in ((windowing.left, 0), (windowing.step, 1), (windowing.right, 0), (_LEAD_SECONDS, 0))
        )
        self._loud = 10 ** (windowing.begin_db / 20)
        self._samples = np.zeros(0, np.float32)
        self._begun = False  # an utterance
        self._scored = 0  # frames at the begin of _samples that were scored already
        self._start = 0  # frame of the connection at which _samples begins
        self.utterance = 0  # frame of the connection at which the utterance begins

    @property
    def begun(self) -> bool:
        """An utterance has begun and not ended."""
        return self._begun

    @property
    def scored(self) -> int:
        """The frame of the connection up to which windows were given."""
        return self._start + self._scored

    def add(self, samples: np.ndarray) -> None:
        import numpy as np

        self._samples = np.concatenate([self._samples, samples])

    def rest(self) -> np.ndarray:
        """The samples after the frames for which windows were given."""
        return self._samples[self._scored * self._unit :]

    def _drop(self, frames: int) -> None:
        self._samples = self._samples[frames * self._unit :]
        self._start += frames

    def _skip_silence(self) -> None:
        import numpy as np

        count = len(self._samples) // self._unit
        levels = np.sqrt(np.square(self._samples[: count * self._unit].reshape(count, self._unit)).mean(axis=1))
        loud = np.flatnonzero(levels > self._loud)
        self._begun = len(loud) > 0
        self._drop(max((int(loud[0]) if self._begun else count) - self._lead, 0))
        self.utterance = self._start

    def next(self, at_end: bool = False) -> Window | None:
        """The next window, if enough samples have arrived. `at_end`: no more will arrive."""
        if not self._begun:
            self._skip_silence()
        whole = len(self._samples) >= (self._scored + self._step + self._right) * self._unit
        if not self._begun or not (whole or at_end):
            return None
        begin = self._scored
        if not whole:
            window = Window(self._samples, begin, None)
            self._drop(len(self._samples) // self._unit)
            self._samples, self._scored, self._begun = self._samples[:0], 0, False
            return window
        window = Window(self._samples[: (begin + self._step + self._right) * self._unit], begin, begin + self._step)
        self._scored += self._step
        if self._scored > self._left:
            self._drop(self._scored - self._left)
            self._scored = self._left
        return window

    def end_utterance(self) -> None:
        """The next utterance begins after the frames that were scored."""
        self._drop(self._scored)
        self._scored, self._begun = 0, False
