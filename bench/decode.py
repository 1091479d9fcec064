#!/usr/bin/env python3
"""decode [--repeat=N] [--json] [--record] [--threads=1,0] [--hybrid-graph=HCLG.fst --hybrid-scores=FILE.ark --hybrid-ref=FILE --hybrid-words=FILE]

How fast real scores become words on the CPU: `warpfst decode` on one thread and on all.

  CTC     phones, compact topology, 3-gram LM, 40 ms frames, acoustic_scale 0.7, beam 15, max_active 7000, on the utterances of examples/ctc; or on
          those of the folder of .npy files that the environment variable WARPFST_BENCH_DATA names
  hybrid  on request, graphs and scores being too large to ship: 10 ms frames, acoustic_scale 0.1538, beam 16, no other limit in practice

RTFx is seconds of speech per second of decoding, reading of the scores left out, best of the repetitions. One thread is pinned to one core.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import measure
from measure import BUILD, ROOT, WARPFST

CTC = ROOT / "examples" / "ctc"


def ctc_task():
    graph = BUILD / "decode_ctc.wfst"
    measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={CTC / 'tokens_phone.txt'}", f"--lexicon={CTC / 'lexicon_phone.txt'}", f"--lm={CTC / 'lm3.arpa.gz'}", "--topology=compact", "-q", "-o", graph)
    scores = os.environ.get("WARPFST_BENCH_DATA", CTC / "logp_phone")
    keys = {path.stem for path in pathlib.Path(scores).glob("*.npy")}
    ref = BUILD / "decode_ctc.ref"
    ref.write_text("".join(line for line in (CTC / "text").open(encoding="utf-8") if line.split()[0] in keys), encoding="utf-8")
    return "CTC phones", [graph, scores, "--frame-shift=0.04", f"--ref={ref}"], ["--acoustic-scale=0.7", "--beam=15", "--max-active=7000"]


def hybrid_task(arguments):
    command = [arguments.hybrid_graph, arguments.hybrid_scores]
    if arguments.hybrid_ref:
        ref = BUILD / "decode_hybrid.ref"
        to_text(arguments.hybrid_ref, ref)
        command.append(f"--ref={ref}")
    if arguments.hybrid_words:
        command.append(f"--words={arguments.hybrid_words}")
    return "hybrid HCLG", command, ["--acoustic-scale=0.1538", "--beam=16", "--max-active=100000", "--max-tokens=200000"]


def to_text(path, out):
    """`id word word`, from that or from `word word (id)`."""
    lines = []
    for line in open(path, encoding="utf-8"):
        words = line.split()
        if words and words[-1].startswith("("):
            words = [words[-1].strip("()")] + words[:-1]
        lines.append(" ".join(words) + "\n")
    out.write_text("".join(lines), encoding="utf-8")


def decode(task, threads, repeat):
    name, command, options = task
    core = measure.last_core()
    best = None
    for _ in range(repeat):
        words = [WARPFST, "decode", *command, *options, f"--num-threads={threads}", "--json", "-o", os.devnull]
        words = measure.pinned(words, core) if threads == 1 else [str(word) for word in words]
        out = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if out.returncode != 0:
            sys.exit(f"{' '.join(words)}: exit code {out.returncode}\n{out.stderr}")
        result = json.loads(out.stderr.splitlines()[-1])
        if best is None or result["rtfx"] > best["rtfx"]:
            best = result
    return {"task": name, "options": " ".join(options), "threads": threads or len(os.sched_getaffinity(0)), **best}


def row(r):
    wer = f"{r['wer']:.2f}%" if "wer" in r else "-"
    return [r["task"], r["threads"], r["utterances"], f"{r['hours'] * 60:.1f}", f"{r['rtfx']:.0f}", f"{r['frames_per_second']:.0f}", f"{r['tokens_per_frame']:.0f}", f"{r['arcs_per_frame']:.0f}", wer]


HEADER = ["task", "threads", "utterances", "minutes", "RTFx", "frames/s", "tokens a frame", "arcs a frame", "WER"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", default="1,0", help="0: all")
    parser.add_argument("--json", action="store_true", help="a line a measurement instead of the table")
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    arguments = parser.parse_args()
    print(f"{measure.machine()}; best of {arguments.repeat}; load before {measure.load()}", file=sys.stderr)
    tasks = [ctc_task()]
    if arguments.hybrid_graph and arguments.hybrid_scores:
        tasks.append(hybrid_task(arguments))
    results = []
    for task in tasks:
        for threads in map(int, arguments.threads.split(",")):
            results.append(decode(task, threads, arguments.repeat))
            if arguments.json:
                print(json.dumps(results[-1]), flush=True)
    if not arguments.json:
        print(measure.table(HEADER, [row(result) for result in results]))
    print(f"load after {measure.load()}", file=sys.stderr)
    if arguments.record:
        figures = []
        for r in results:
            setup = f"{r['utterances']} utterances, {r['options']}, {r['threads']} thread{'s' if r['threads'] > 1 else ''}"
            figures.append((f"decode {r['task']}", setup, f"{r['rtfx']:.0f}", "RTFx"))
            if "wer" in r:
                figures.append((f"decode {r['task']}", setup + ", WER", f"{r['wer']:.2f}", "%"))
        measure.record(figures, "./run bench decode")


if __name__ == "__main__":
    main()
