#!/usr/bin/env python3
"""Measures the overhead of the Python package on the CPU, with calls in which the library has almost no work. Needs the installed package and numpy.

For batches of 1, 50, 400 and 1,260 utterances (or the sizes given as arguments), prints the milliseconds of one batch, the best of several rounds: borrowing the scores as
one padded tensor, as a list of arrays, as a list of tensors with DLPack, and as a list of torch tensors if torch is installed; a call of decode for utterances without frames,
padded; the texts of results of 25 words; and for 25 frames, which the search needs some time for: decode alone, and with all texts or all words. Borrowing and what decode
takes without frames add to the time of the search.
"""

import sys
import time

import numpy as np

import warpfst as wf
from warpfst.scores import Batch

try:
    import torch
except ImportError:
    torch = None

FRAMES = 25


class Tensor:
    """DLPack as cheap as a producer can make it: returns one capsule, which is never consumed."""

    def __init__(self, array):
        self.array, self.capsule = array, array.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.capsule


def best_ms(function, rounds=15):
    function()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times) * 1e3


def measure(decoder, matrix, size):
    """Milliseconds of a batch, by name."""
    padded, lengths, none = np.tile(matrix, (size, 1, 1)), np.full(size, len(matrix)), np.zeros(size, np.int64)
    arrays = [matrix.copy() for _ in range(size)]
    tensors = [Tensor(array) for array in arrays]
    results = decoder.decode(padded, lengths)
    of_torch = [torch.from_numpy(array) for array in arrays] if torch else []
    return {
        **({"borrow torch": best_ms(lambda: Batch(of_torch))} if torch else {}),
        "borrow padded": best_ms(lambda: Batch(padded, lengths)),
        "borrow arrays": best_ms(lambda: Batch(arrays)),
        "borrow DLPack": best_ms(lambda: Batch(tensors)),
        "decode no frames": best_ms(lambda: decoder.decode(padded, none)),
        "texts": best_ms(lambda: [result.text for result in results]),
        "decode": best_ms(lambda: decoder.decode(padded, lengths)),
        "decode, texts": best_ms(lambda: [result.text for result in decoder.decode(padded, lengths)]),
        "decode, words": best_ms(lambda: [result.words for result in decoder.decode(padded, lengths)]),
    }


def main():
    sizes = [int(size) for size in sys.argv[1:]] or [1, 50, 400, 1260]
    # Each frame is a word of its own. All other columns cost more than the beam, so a frame has one token.
    decoder = wf.Decoder(wf.build_ctc_graph(["<blk>", *(f"t{i}" for i in range(1, FRAMES + 1))]), num_threads=1, check_scores="off")
    matrix = np.full((FRAMES, FRAMES + 1), -100, np.float32)
    matrix[np.arange(FRAMES), np.arange(FRAMES) + 1] = 0
    assert len(decoder.decode(matrix)[0].words) == FRAMES
    rows = [measure(decoder, matrix, size) for size in sizes]
    print(f"{'ms a batch of':20}" + "".join(f"{size:>10}" for size in sizes))
    for name in rows[0]:
        print(f"{name:20}" + "".join(f"{row[name]:10.3f}" for row in rows))
    arc = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: 0.0})
    print(f"compose, one arc: {best_ms(lambda: wf.fst.compose(arc, arc), 1000) * 1e3:.1f} us")


if __name__ == "__main__":
    main()
