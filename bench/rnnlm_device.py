#!/usr/bin/env python3
"""rnnlm_device.py [--device=cuda] [--words=50000] [--hidden=100,512,1024] [--utterances=256] [--texts=1] [--seconds=110]

Recurrent models on a GPU beside the CPU of the same machine, wall time: text scored (tokens a second), and decoding in the setting of rnnlm_scale.py: search and model on the GPU, with
answers shared by all utterances or each with its own, many at a time and one by one; then naively (no cache, no deduplication) on one thread; then the search on the CPU's threads with the
model on either, and naively with the model on the GPU. With --words=1000000 --texts=0 --hidden=100 it is the paper's setting.
Each run is told on stderr when it is done. In a folder of ./run pack-gpu it takes the programs that lie beside it. Rows that would begin after --seconds are left out, and said so.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import measure

HERE = pathlib.Path(__file__).resolve().parent
PACKED = (HERE / "warpfst").exists()
if PACKED:
    measure.WARPFST, measure.BUILD = HERE / "warpfst", HERE / "work"
    os.environ["LD_LIBRARY_PATH"] = str(HERE)
import rnnlm_scale  # noqa: E402  (takes the paths of measure)

if PACKED:
    rnnlm_scale.GENERATE = HERE / "generate_ctc_task"
MEMORY = {"cuda": 16000000000, "cpu": 4000000000}  # by where the search is


def text_speed(task, model, device, threads):
    return json.loads(measure.run(measure.WARPFST, "rnnlm", "perplexity", model, task.folder / "text", f"--device={device}", f"--threads={threads}", "--json"))


def decode(task, model, search, device, cache, batch, utterances):
    summary = task.folder / "summary"
    measure.run(measure.WARPFST, "decode", task.graph, task.scores(utterances), *rnnlm_scale.BEAM, f"--device={search}", "--num-threads=0", f"--batch={batch}", "-o", task.folder / "out",
                f"--rnnlm={model}", f"--rnnlm-device={device}", f"--rnnlm-ngram={task.lm}", f"--rnnlm-small={task.lm}", "--rnnlm-weight=0.5", f"--rnnlm-cache={cache}",
                f"--rnnlm-memory={MEMORY[search.split(':')[0]]}", f"--summary={summary}")
    return json.loads(summary.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--words", type=int, default=50000)
    parser.add_argument("--hidden", default="100,512,1024")
    parser.add_argument("--utterances", type=int, default=256)
    parser.add_argument("--texts", type=int, default=1, help="0: only decoding")
    parser.add_argument("--seconds", type=float, default=110)
    arguments = parser.parse_args()
    begin = time.monotonic()
    rnnlm_scale.UTTERANCES = arguments.utterances
    measure.BUILD.mkdir(parents=True, exist_ok=True)
    task = rnnlm_scale.Task(arguments.words)
    print(f"{measure.machine()}; task made in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    texts, decodes, left_out = [], [], 0
    gpu, many = arguments.device, arguments.utterances
    for hidden in map(int, arguments.hidden.split(",")):
        model = task.model_of(hidden)
        for device, threads in ((gpu, 1), ("cpu", 1), ("cpu", 0)) if arguments.texts else ():
            if time.monotonic() - begin > arguments.seconds:
                left_out += 1
                continue
            got = text_speed(task, model, device, threads)
            texts.append([hidden, device, threads or os.cpu_count(), f"{got['tokens_per_s']:.0f}", f"{got['perplexity']:.4f}"])
            print("  " + " | ".join(map(str, texts[-1])), file=sys.stderr, flush=True)
        for search, device, cache, batch, utterances in ((gpu, gpu, "shared", many, many), (gpu, gpu, "utterance", many, many), (gpu, gpu, "utterance", 1, 4),
                                                         ("cpu", "cpu", "none", 1, 1), ("cpu", "cpu", "shared", many, many), ("cpu", gpu, "shared", many, many),
                                                         ("cpu", gpu, "utterance", 1, 4), ("cpu", gpu, "none", 1, 1)):
            if time.monotonic() - begin > arguments.seconds:
                left_out += 1
                continue
            got = decode(task, model, search, device, cache, batch, utterances)
            counts, frames = got["rnnlm"], got["hours"] * 3600 / 0.04
            decodes.append([hidden, search, device, cache, batch, f"{counts['requests'] / frames:.0f}", f"{100 * counts['hit_ratio']:.1f}", f"{counts['costs'] / frames:.0f}",
                            f"{counts['answers'] / frames:.3f}", f"{got['rtfx']:.1f}"])
            print("  " + " | ".join(map(str, decodes[-1])), file=sys.stderr, flush=True)
    print(measure.table(["hidden", "recurrent model on", "threads", "tokens/s scored", "perplexity"], texts))
    print()
    print(measure.table(["hidden", "search on", "model on", "cache", "batch", "requests a frame", "hits, %", "costs a frame", "answers a frame", "RTFx"], decodes))
    if left_out > 0:
        print(f"{left_out} rows left out after {arguments.seconds:g} s")


if __name__ == "__main__":
    main()
