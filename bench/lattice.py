#!/usr/bin/env python3
"""lattice [--repeat=N] [--record] [--beams=4,8] [--hour] [--hybrid-graph=HCLG.fst --hybrid-scores=FILE.ark --hybrid-ref=FILE --hybrid-words=FILE]

Raw lattices on one CPU thread: decoding with against without, in turn on the same core; sizes; the fewest errors on any path (oracle) and utterances
whose lattice holds exactly what was said. --hour: one utterance of an hour, its scores those of the task end to end, and the peak memory.

  CTC     phones, compact topology, 3-gram LM, acoustic_scale 0.7, beam 15, max_active 7000, on the utterances of examples/ctc
  hybrid  on request: acoustic_scale 0.1538, beam 13, max_active 7000
"""
import argparse
import json

import measure
from measure import BUILD, ROOT

CTC = ROOT / "examples" / "ctc"
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_lattice"


def ctc_task():
    graph, words = BUILD / "lattice_ctc.wfst", BUILD / "lattice_ctc.words"
    measure.run(measure.WARPFST, "mkgraph", "ctc", f"--tokens={CTC / 'tokens_phone.txt'}", f"--lexicon={CTC / 'lexicon_phone.txt'}", f"--lm={CTC / 'lm3.arpa.gz'}", "--topology=compact", f"--words-out={words}", "-q", "-o", graph)
    return "CTC phones", 90_000, [graph, CTC / "logp_phone", "0.7", "15", "7000"], [words, CTC / "text"]


def hybrid_task(a):
    return "hybrid HCLG", 360_000, [a.hybrid_graph, a.hybrid_scores, "0.1538", "13", "7000"], [a.hybrid_words, a.hybrid_ref] if a.hybrid_words and a.hybrid_ref else []


def measured(command, beam, repeat, frames, references):
    words = measure.pinned([PROGRAM, *command, beam, "25", repeat, frames, *references], measure.last_core())
    return json.loads(measure.run(*words))


def figures_of(task, beam, r, frames_per_hour, command):
    seconds = 3600 * r["frames"] / frames_per_hour
    setup = f"{'an hour' if r['utterances'] == 1 else str(r['utterances']) + ' utterances'}, beam {command[3]}, max_active {command[4]}, lattice_beam {beam}, 1 thread"
    rows = [("without", seconds / r["plain_s"], "RTFx"), ("with", seconds / r["lattice_s"], "RTFx"), ("density", r["density"], "arcs/frame")]
    if "words" in r:
        rows += [("WER", 100 * r["best_errors"] / r["words"], "%"), ("oracle WER", 100 * r["oracle_errors"] / r["words"], "%"), ("lattices with the reference", r["held"], "utterances")]
    if r["utterances"] == 1:
        rows += [("memory beyond scores and graph, without", r["plain_mib"] - r["read_mib"], "MiB"), ("memory beyond scores and graph, with", r["peak_mib"] - r["read_mib"], "MiB")]
    return [(f"lattice {task}, {what}", setup, measure.figure(value), unit) for what, value, unit in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beams", default="4,8")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    a = parser.parse_args()
    tasks = [ctc_task()] + ([hybrid_task(a)] if a.hybrid_graph and a.hybrid_scores else [])
    figures = []
    for task, frames_per_hour, command, references in tasks:
        for beam in a.beams.split(","):
            figures += figures_of(task, beam, measured(command, beam, a.repeat, 0, references), frames_per_hour, command)
        if a.hour:
            figures += figures_of(task, "8", measured(command, "8", 1, frames_per_hour, []), frames_per_hour, command)
    print(measure.table(["what", "setup", "figure", "unit"], figures))
    if a.record:
        measure.record(figures, "./run bench lattice")


if __name__ == "__main__":
    main()
