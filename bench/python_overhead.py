#!/usr/bin/env python3
"""Measures the overhead of the Python binding, with calls in which the library has almost no work. Needs the installed package and numpy. Prints microseconds, the best of seven rounds."""

import time

import numpy as np

import warpfst as wf


def best_us(function, calls):
    function()
    rounds = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        rounds.append((time.perf_counter() - begin) / calls)
    return min(rounds) * 1e6


def main():
    decoder = wf.Decoder(wf.build_ctc_graph(["<blk>", "a"]), num_threads=1)
    frame, batch = np.zeros((1, 2), np.float32), np.zeros((1000, 1, 2), np.float32)
    arc = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: 0.0})
    print(f"decode, one frame        {best_us(lambda: decoder.decode(frame), 1000):8.1f} us per call")
    print(f"decode, list of 1000     {best_us(lambda: decoder.decode([frame] * 1000), 3) / 1000:8.1f} us per utterance")
    print(f"decode, padded 1000      {best_us(lambda: decoder.decode(batch), 3) / 1000:8.1f} us per utterance")
    print(f"compose, one arc         {best_us(lambda: wf.compose(arc, arc), 5000):8.1f} us per call")


if __name__ == "__main__":
    main()
