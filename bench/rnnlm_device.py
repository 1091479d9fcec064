#!/usr/bin/env python3
"""rnnlm_device.py [--device=cuda] [--words=50000] [--hidden=100,512,1024] [--utterances=64] [--seconds=110]

Recurrent models on a GPU beside the CPU of the same machine, wall time: text scored (tokens a second), and decoding in the setting of rnnlm_scale.py with the recurrent model
on either, the search on the CPU's threads: naively (no cache, no deduplication), one utterance at a time, and many together. In a folder of ./run pack-gpu it takes the programs that lie
beside it. Rows that would begin after --seconds are left out, and said so.
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


def text_speed(task, model, device, threads):
    return json.loads(measure.run(measure.WARPFST, "rnnlm", "perplexity", model, task.folder / "text", f"--device={device}", f"--threads={threads}", "--json"))


def decode(task, model, device, cache, batch, utterances):
    summary = task.folder / "summary"
    measure.run(measure.WARPFST, "decode", task.graph, task.scores(utterances), *rnnlm_scale.BEAM, "--num-threads=0", f"--batch={batch}", "-o", task.folder / "out", f"--rnnlm={model}",
                f"--rnnlm-device={device}", f"--rnnlm-ngram={task.lm}", f"--rnnlm-small={task.lm}", "--rnnlm-weight=0.5", f"--rnnlm-cache={cache}", "--rnnlm-memory=4000000000",
                f"--summary={summary}")
    return json.loads(summary.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--words", type=int, default=50000)
    parser.add_argument("--hidden", default="100,512,1024")
    parser.add_argument("--utterances", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=110)
    arguments = parser.parse_args()
    begin = time.monotonic()
    rnnlm_scale.UTTERANCES = arguments.utterances
    measure.BUILD.mkdir(parents=True, exist_ok=True)
    task = rnnlm_scale.Task(arguments.words)
    if not (task.folder / "text").exists():
        rnnlm_scale.write_text(rnnlm_scale.Bigrams(task.lm), task.folder / "text", 400000, 3)
    print(f"{measure.machine()}; task made in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    texts, decodes, left_out = [], [], 0
    for hidden in map(int, arguments.hidden.split(",")):
        model = task.model_of(hidden)
        for device, threads in ((arguments.device, 1), ("cpu", 1), ("cpu", 0)):
            if time.monotonic() - begin > arguments.seconds:
                left_out += 1
                continue
            got = text_speed(task, model, device, threads)
            texts.append([hidden, device, threads or os.cpu_count(), f"{got['tokens_per_s']:.0f}", f"{got['perplexity']:.4f}"])
            print("  " + " | ".join(map(str, texts[-1])), file=sys.stderr)
        many = arguments.utterances
        for device, cache, batch, utterances, name in ((arguments.device, "shared", many, many, "shared cache"), (arguments.device, "utterance", many, many, "cache of the utterance"),
                                                       (arguments.device, "utterance", 1, 4, "cache of the utterance"), ("cpu", "shared", many, many, "shared cache"),
                                                       (arguments.device, "none", 1, 1, "naive")):
            if time.monotonic() - begin > arguments.seconds:
                left_out += 1
                continue
            got = decode(task, model, device, cache, batch, utterances)
            counts, frames = got["rnnlm"], got["hours"] * 3600 / 0.04
            decodes.append([hidden, device, name, batch, f"{counts['requests'] / frames:.0f}", f"{100 * counts['hit_ratio']:.1f}", f"{counts['costs'] / frames:.0f}",
                            f"{counts['answers'] / frames:.3f}", f"{got['rtfx']:.1f}"])
            print("  " + " | ".join(map(str, decodes[-1])), file=sys.stderr)
    print(measure.table(["hidden", "recurrent model on", "threads", "tokens/s scored", "perplexity"], texts))
    print()
    print(measure.table(["hidden", "recurrent model on", "cache", "batch", "requests a frame", "hits, %", "costs a frame", "answers a frame", "RTFx"], decodes))
    if left_out > 0:
        print(f"{left_out} rows left out after {arguments.seconds:g} s")


if __name__ == "__main__":
    main()
