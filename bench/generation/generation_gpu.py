#!/usr/bin/env python3
"""generation --device=cuda [--vocabularies=32000,128000,256000] [--batches=1,64,512] [--steps=200] [--rounds=5] [--programs=FOLDER] [--save=FILE] [--load=FILE] [--record]

The time of a step of a batch of hypotheses on a GPU, in microseconds: tokens are followed and logits changed in one launch (bench_generation). Each kind is compared with the CPU first, bit for bit.

  launch    nothing is changed: the launch of the step alone
  copy      a copy of the logits on the GPU, to compare with
  phrases   of three tokens: where no hypothesis is in one, where all are (within), where every tenth is
  3-gram    a model of tokens, in texts of which it was estimated
  grammar   1,000 sentences of four words, at their beginning
  words     a 2-gram model of words, within a word

`call` is what the host spends on a step. For a GPU machine where nothing can be installed: --save there, and --load with --record on your own machine.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure

PROGRAMS = measure.ROOT / "build" / "release" / "bench"


def measure_all(arguments):
    machine = measure.machine_with_gpu()
    flags = [f"--{name}={getattr(arguments, name)}" for name in ("vocabularies", "batches", "steps", "rounds")]
    process = subprocess.Popen([str(arguments.programs / "bench_generation"), *flags], stdout=subprocess.PIPE, text=True)
    file = open(arguments.save, "w", encoding="utf-8") if arguments.save else None
    results = []
    for line in process.stdout:  # line by line, so that figures measured before a time limit are kept
        results.append({**json.loads(line), "machine": machine})
        if file:
            print(json.dumps(results[-1]), file=file, flush=True)
    if process.wait() != 0:
        sys.exit(f"bench_generation: exit code {process.returncode}")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=["cuda"])
    parser.add_argument("--vocabularies", default="32000,128000,256000")
    parser.add_argument("--batches", default="1,64,512")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS, help="folder with bench_generation")
    parser.add_argument("--save", help="write a JSON line per figure to this file")
    parser.add_argument("--load", help="read a file of --save instead of measuring")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    results = [json.loads(line) for line in open(arguments.load, encoding="utf-8")] if arguments.load else measure_all(arguments)
    batches = list(dict.fromkeys(one["batch"] for one in results))
    found = {(one["vocabulary"], one["what"], one["batch"]): one for one in results}
    rows = [
        [f"{size:,}", what, *(f"{found[size, what, batch]['step_us']:.1f}" if (size, what, batch) in found else "-" for batch in batches), f"{found[size, what, batches[0]]['call_us']:.1f}"]
        for size, what in dict.fromkeys((one["vocabulary"], one["what"]) for one in results)
    ]
    print(measure.table(["V", "what", *(f"batch {batch}" for batch in batches), "call"], rows))
    if arguments.record:
        figures = [(f"{one['what']}, GPU", f"V = {one['vocabulary']}, batch {one['batch']}", f"{one['step_us']:.2f}", "us of a step") for one in results]
        measure.record(figures, "./run bench generation --device=cuda", machine=results[0]["machine"])


if __name__ == "__main__":
    main()
