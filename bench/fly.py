#!/usr/bin/env python3
"""fly [--beams=14,16] [--wav=NAME=FOLDER ...] [--static] [--keep] [--record]

A large language model on the fly with the hybrid task of `./run bench hybrid` (Debian's en-us 3-gram, 72,547 words), one thread, no limit on tokens that matters:

  exactness   the model cut to bigrams, without those that cost more than backing off: then back-off arcs as epsilons are exact, so a graph of any vocabulary can be
              the judge. The graph of a tenth of the bigrams with the difference on the fly against the static graph of all: words, costs, word error rate.
  3-gram      the whole model on the fly over the graph of those bigrams: what the model itself gives, with exact back-off; the small graph alone beside it, on one
              core and on all. --static: the static graph of the whole model too, whose back-off arcs are epsilons (2.3 GB, minutes).
"""
import argparse
import json
import os
import sys

import hybrid
import measure
from measure import BUILD, WARPFST

WORK = BUILD / "fly"


def without_gaps(source, target):
    """Unigrams and bigrams of an ARPA file, without bigrams that cost more than backing off. Weights stay as they are."""
    unigrams, lines, section, kept = {}, [], "", 0
    for line in open(source, encoding="utf-8"):
        line = line.rstrip("\n")
        section = line if line.startswith("\\") else section
        fields = line.split("\t")
        if section == "\\3-grams:" or line.startswith("ngram 3"):
            continue
        if section == "\\1-grams:" and len(fields) > 1:
            unigrams[fields[1]] = float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0
        if section == "\\2-grams:" and len(fields) > 1:
            history, word = fields[1].split()
            if float(fields[0]) < unigrams[history][1] + unigrams[word][0] + 1e-6:
                continue
            kept, line = kept + 1, "\t".join(fields[:2])
        lines.append(line)
    text = "\n".join(f"ngram 2={kept}" if line.startswith("ngram 2") else line for line in lines)
    target.write_text(text + "\n", encoding="utf-8")
    return kept


def make(path, function, keep):
    if not (keep and path.exists()):
        function()
    return path


def small_graph(keep):
    """The whole model and the small one as ARPA, and the small one's graph with its word table. Back-off arcs of the graph are epsilons, and it costs what the small model says."""
    WORK.mkdir(parents=True, exist_ok=True)
    full, pruned, small, graph = WORK / "full.arpa", WORK / "pruned.arpa", WORK / "small.arpa", WORK / "small.wfst"
    model = f"{hybrid.MODEL}/en-us.lm.bin"
    make(full, lambda: measure.run(WARPFST, "lm", "arpa", model, "-o", full), keep)
    make(pruned, lambda: measure.run(WARPFST, "lm", "prune", model, "--max-ngrams=200000,0", "--criterion=difference", "-q", "-o", pruned), keep)
    make(small, lambda: without_gaps(pruned, small), keep)
    make(graph, lambda: hybrid.make_graph(small, graph, f"--words-out={WORK / 'words.txt'}"), keep)
    return full, small, graph


def decode(graph, work, beam, lm=None, threads=1):
    """Summary of the run, and each utterance's result by key."""
    out, summary = WORK / "out.json", WORK / "summary.json"
    measure.run(WARPFST, "decode", graph, work / "sen.scp", *([f"--lm={lm}"] if lm else []), "--acoustic-scale=0.1538", f"--beam={beam}", "--max-active=1000000",
                "--max-tokens=4000000", f"--num-threads={threads}", f"--ref={work / 'ref'}", f"--summary={summary}", "--format=json", "-o", out)
    return json.loads(summary.read_text()), {result["key"]: result for result in map(json.loads, out.open(encoding="utf-8"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beams", default="14,16")
    parser.add_argument("--wav", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--static", action="store_true", help="the static graph of the whole model, too")
    parser.add_argument("--keep", action="store_true", help="take graphs and models that are there from an earlier run")
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    sets = {"LibriVox": hybrid.score("LibriVox", None), **{name: hybrid.score(name, wav) for name, wav in (each.split("=", 1) for each in arguments.wav)}}
    model, keep = f"{hybrid.MODEL}/en-us.lm.bin", arguments.keep
    full, pruned = WORK / "full.arpa", WORK / "pruned.arpa"
    make(full, lambda: measure.run(WARPFST, "lm", "arpa", model, "-o", full), keep)
    make(pruned, lambda: measure.run(WARPFST, "lm", "prune", model, "--max-ngrams=200000,0", "--criterion=difference", "-q", "-o", pruned), keep)
    small, bigrams = WORK / "small.arpa", WORK / "bigrams.arpa"
    num_small, num_bigrams = without_gaps(pruned, small), without_gaps(full, bigrams)
    graph = make(WORK / "small.wfst", lambda: hybrid.make_graph(small, WORK / "small.wfst"), keep)
    judge = make(WORK / "bigrams.wfst", lambda: hybrid.make_graph(bigrams, WORK / "bigrams.wfst"), keep)
    static = make(WORK / "full.wfst", lambda: hybrid.make_graph(model, WORK / "full.wfst"), keep) if arguments.static else None
    differences = {}
    for name, large in (("bigrams", bigrams), ("3-gram", model)):
        path = differences[name] = WORK / f"{name}.wlm"
        make(path, lambda large=large, path=path: measure.run(WARPFST, "lm", "build", large, "--subtract", small, "-q", "-o", path), keep)
    rows, figures = [], []
    for name, work in sets.items():
        for beam in arguments.beams.split(","):
            expected, judged = decode(judge, work, beam)
            fly, results = decode(graph, work, beam, differences["bigrams"])
            same = [key for key in judged if judged[key]["text"] == results[key]["text"]]
            worst = max((abs(judged[key]["cost"] - results[key]["cost"]) for key in same), default=0)
            rows += [[name, beam, f"static graph, {num_bigrams} bigrams", f"{expected['wer']:.2f}", ""],
                     [name, beam, f"{num_small} bigrams, difference on the fly", f"{fly['wer']:.2f}", f"{len(same)} of {len(judged)} the same, costs within {worst:.1e}"]]
            setup = f"en-us 2-gram, {name}, beam {beam}, on the fly over {num_small} bigrams against the static graph"
            figures += [("on the fly, word error rate", setup, f"{fly['wer']:.2f}", "%"), ("static graph, word error rate", setup, f"{expected['wer']:.2f}", "%"),
                        ("on the fly, utterances of the same words", setup, f"{len(same)} of {len(judged)}", "utterances"), ("on the fly, largest difference of costs", setup, f"{worst:.1e}", "nats")]
            for what, path, lm, threads in (("small graph alone", graph, None, 1), ("3-gram on the fly", graph, differences["3-gram"], 1),
                                            ("small graph alone", graph, None, os.cpu_count()), ("3-gram on the fly", graph, differences["3-gram"], os.cpu_count()),
                                            ("3-gram, static graph, back-off as epsilon", static, None, 1)):
                if path is None:
                    continue
                summary, _ = decode(path, work, beam, lm, threads)
                rows.append([name, beam, f"{what}, {threads} thread{'s' if threads > 1 else ''}", f"{summary['wer']:.2f}", f"RTFx {summary['rtfx']:.1f}"])
                setup = f"en-us, {name}, beam {beam}, {what}, {threads} threads"
                figures += [("on the fly, word error rate", setup, f"{summary['wer']:.2f}", "%"), ("on the fly, speed", setup, f"{summary['rtfx']:.2f}", "RTFx")]
    print(f"{measure.machine()}; load {measure.load()}", file=sys.stderr)
    print(measure.table(["speech", "beam", "what", "WER %", ""], rows))
    if arguments.record:
        measure.record(figures, "./run bench fly" + "".join(f" --wav={each.split('=')[0]}=FOLDER" for each in arguments.wav))


if __name__ == "__main__":
    main()
