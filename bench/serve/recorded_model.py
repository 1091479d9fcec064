"""recorded_model.py:Recorded - a model for `warpfst serve` that costs nothing: its audio says which of the recorded scores of examples/ctc come next.

All samples of a frame of 40 ms have the value FIRST + number of a row of scores. So load tests measure the server and the search, with real scores.
"""
import pathlib

import numpy as np

import warpfst as wf
from warpfst.transcribe import Model

CTC = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ctc"
FIRST, FRAME = 2000, 640  # louder than the level at which live utterances begin


def utterances():
    """(first row, scores) of the first recordings, as many as 16 bits can number."""
    row, found = 0, []
    for path in sorted((CTC / "logp_phone").glob("*.npy")):
        scores = np.load(path).astype(np.float32)
        if row + len(scores) > 2**15 - FIRST:
            break
        found.append((row, scores))
        row += len(scores)
    return found


def audio_of(first, count):
    """16-bit samples that stand for these rows."""
    return np.repeat(np.arange(first, first + count, dtype="<i2") + FIRST, FRAME)


class Recorded(Model):
    sample_rate, frame_shift, decoder_options = 16000, 0.04, {"acoustic_scale": 0.7, "max_active": 7000, "lattice_beam": 0.0}

    def __init__(self, _device, _num_threads):
        self._rows = np.concatenate([scores for _, scores in utterances()])

    def scores(self, pieces):
        numbers = [np.rint(piece[FRAME // 2 :: FRAME] * 32768).astype(np.int64) - FIRST for piece in pieces]
        return [self._rows[np.clip(one, 0, len(self._rows) - 1)] for one in numbers], None

    def build_graph(self):
        return wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz")
