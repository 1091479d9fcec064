"""Writes the log-mel features of recordings to a file for pipeline.py, in the form that the model of examples/ctc reads. Needs the packages of `pip install '.[audio]'`.

    python examples/pipeline/features.py features.npz examples/cards/*.wav
"""

import pathlib
import sys

import numpy as np

from warpfst.transcribe.models import CtcModel

if __name__ == "__main__":
    model = CtcModel(pathlib.Path(__file__).parents[1] / "ctc", "cpu", 1)
    pieces = {f"{pathlib.Path(path).stem}-{begin}": samples for path in sys.argv[2:] for begin, samples in model.pieces(pathlib.Path(path), 30)}
    np.savez(sys.argv[1], **{name: model.features(samples).astype(np.float16) for name, samples in pieces.items()})
