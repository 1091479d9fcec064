#!/usr/bin/env python3
"""score_statistics.py FOLDER...: prints statistics of CTC scores. FOLDER has files KEY.npy, [frames, tokens], natural logarithms, blank in column 0. Needs numpy.

Used to compare generated scores (bench/decode/ctc_task) with a real model's. `warpfst matrix copy peaky.ark --format=npy -o FOLDER/` converts an archive to a folder.
"""
import itertools
import pathlib
import sys

import numpy


def percentiles(values):
    return " / ".join(f"{value:.2g}" for value in numpy.percentile(values, [10, 25, 50, 75, 90]))


def profile(logp, ranks):
    """Mean log-probability of the k-th best token, without the blank."""
    ordered = -numpy.sort(-logp[:, 1:], axis=1)
    return ", ".join(f"{rank}: {ordered[:, rank - 1].mean():.1f}" for rank in ranks if rank < logp.shape[1])


def describe(folder):
    matrices = [numpy.load(path).astype(numpy.float64) for path in sorted(pathlib.Path(folder).glob("*.npy"))]
    logp = numpy.concatenate(matrices)
    logp -= numpy.log(numpy.exp(logp).sum(1, keepdims=True))
    prob = numpy.exp(logp)
    best = -numpy.sort(-prob, axis=1)
    entropy = -(prob * logp).sum(1)
    quiet, peaks = prob[:, 0] > 0.99, logp.argmax(1) != 0
    runs = [len(list(run)) for matrix in matrices for token, run in itertools.groupby(matrix.argmax(1)) if token != 0]
    yield "frames, tokens", f"{logp.shape[0]}, {logp.shape[1]}"
    yield "blank above 0.99", f"{100 * quiet.mean():.1f}% of frames"
    yield "blank best, but below 0.99", f"{100 * (~quiet & ~peaks).mean():.1f}% of frames"
    yield "peaks per frame, frames per peak", f"{len(runs) / len(logp):.2f}, {numpy.mean(runs):.2f}"
    yield "entropy where blank is below 0.99", f"mean {entropy[~quiet].mean():.2f} nats"
    yield "best at peaks, percentiles 10/25/50/75/90", percentiles(best[peaks, 0])
    yield "second best at peaks", percentiles(best[peaks, 1])
    yield "k-th token at peaks, mean log", profile(logp[peaks], (1, 2, 3, 5, 10, 20))
    if quiet.mean() > 0.01:
        yield "k-th token where blank is above 0.99", profile(logp[quiet], (1, 2, 3, 5, 10, 20))


for name in sys.argv[1:]:
    print(name)
    for label, value in describe(name):
        print(f"  {label:42} {value}")
