#!/usr/bin/env python3
"""hybrid [--sizes=20k,medium,full] [--wav=NAME=FOLDER ...] [--record]

Measures hybrid graphs as users build them, and their word error rates. The model is Debian's pocketsphinx-en-us. Its language model is pruned by
`warpfst lm prune` (20,000 words; all 72,545 words; not pruned). `warpfst mkgraph hmm` builds each graph with --epsilon, and again without. Then
senone scores from pocketsphinx_batch are decoded with each graph at beams 14 and 16, with practically no other limit. The speech is pocketsphinx-testdata's
five utterances of LibriVox, and for each --wav FOLDER/*.wav with FOLDER/ref, one line `words (key)` per utterance.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import hybrid_graphs
import measure
from measure import WARPFST


def word_errors(graph, work, beam):
    summary = hybrid_graphs.WORK / "summary.json"
    measure.run(WARPFST, "decode", graph, work / "sen.scp", "--acoustic-scale=0.1538", f"--beam={beam}", "--max-active=1000000", "--max-tokens=4000000",
                f"--ref={work / 'ref'}", f"--summary={summary}", "-o", "/dev/null")
    return json.loads(summary.read_text())


def describe(size):
    return "its own LM" if hybrid_graphs.LMS[size] is None else "lm prune " + " ".join(hybrid_graphs.LMS[size])


def measure_graph(size, sets):
    """Returns a table row per step, figures for measure.record, and word error rates."""
    lm, graph = hybrid_graphs.make_lm(size), hybrid_graphs.WORK / f"{size}.wfst"
    report = hybrid_graphs.make_graph(lm, graph, "--epsilon")
    folded = hybrid_graphs.make_graph(lm, hybrid_graphs.WORK / "folded.wfst")
    (hybrid_graphs.WORK / "folded.wfst").unlink()
    steps = report["steps"] + [{**step, "name": "no epsilon"} for step in folded["steps"] if step["name"] == "rmeps"]
    setup, rows, figures, wers = f"{size} hybrid graph ({describe(size)})", [], [], []
    for number, step in enumerate(steps):
        name = f"{number + 1} {step['name']}"
        rows.append([size, name, step["states"], step["arcs"], f"{step['seconds']:.2f}", f"{step['peak_bytes'] / 2**20:.0f}"])
        figures += [(f"mkgraph hmm, step {name}", f"{setup}, {what}", value, unit) for what, value, unit in (
            ("states", step["states"], "states"), ("arcs", step["arcs"], "arcs"), ("wall time", f"{step['seconds']:.2f}", "s"), ("peak memory", f"{step['peak_bytes'] / 2**20:.0f}", "MiB"))]
    rows.append([size, "all but the last", "", "", f"{report['seconds']:.2f}", f"{report['peak_bytes'] / 2**20:.0f}"])
    figures.append(("mkgraph hmm", f"{setup}, from files to a file, wall time", f"{report['seconds']:.2f}", "s"))
    for name, work in sets.items():
        for beam in (14, 16):
            summary = word_errors(graph, work, beam)
            wers.append([size, name, beam, f"{summary['wer']:.2f}", f"{round(summary['wer'] * summary['words'] / 100)} of {summary['words']}"])
            figures.append(("hybrid word error rate", f"{setup}, {name}, beam {beam}", f"{summary['wer']:.2f}", "%"))
    return rows, figures, wers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="20k,medium,full")
    parser.add_argument("--wav", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    hybrid_graphs.WORK.mkdir(parents=True, exist_ok=True)
    print(f"{measure.machine()}; load before {measure.load()}", file=sys.stderr)
    sets = {"LibriVox": hybrid_graphs.score("LibriVox", None), **{name: hybrid_graphs.score(name, wav) for name, wav in (each.split("=", 1) for each in arguments.wav)}}
    rows, figures, wers = [], [], []
    for size in arguments.sizes.split(","):
        print(f"  {size}", file=sys.stderr)
        of_size = measure_graph(size, sets)
        rows, figures, wers = rows + of_size[0], figures + of_size[1], wers + of_size[2]
    print(measure.table(["graph", "step", "states", "arcs", "wall s", "MiB"], rows) + "\n")
    print(measure.table(["graph", "speech", "beam", "WER %", "words wrong"], wers))
    print(f"load after {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record(figures, "./run bench hybrid" + "".join(f" --wav={each.split(chr(61))[0]}=FOLDER" for each in arguments.wav))


if __name__ == "__main__":
    main()
