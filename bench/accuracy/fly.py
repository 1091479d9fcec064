#!/usr/bin/env python3
"""fly [--parts=2-gram,3-gram,composed,whole] [--beams=14,16] [--wav=NAME=FOLDER ...] [--static] [--keep] [--record]

Tests and measures a large language model on the fly with the hybrid task of `./run bench hybrid` (Debian's en-us 3-gram, 72,547 words), on one thread, with practically no limit on tokens:

  2-gram, 3-gram  The model is cut to bigrams or trigrams, without those for which epsilon back-off arcs are inexact (without_gaps), so that a static graph of any vocabulary can be the
                  reference. Compares the graph of a tenth of the bigrams with the difference on the fly, and the static graph of all: words, costs, word error rate.
  composed        For a small vocabulary, the reference is the small graph composed with the difference by `warpfst compose`.
  whole           Decodes with the whole model on the fly over the graph of those bigrams, with exact back-off, and with the small graph alone, on one core and on all.
                  --static: also with the static graph of the whole model, whose back-off arcs are epsilons (2.3 GB, takes minutes).
"""
import argparse
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import hybrid_graphs
import measure
from measure import BUILD, WARPFST

WORK = BUILD / "fly"
COMPOSED_WORDS, COMPOSED_LARGE, COMPOSED_SMALL = 1000, "30000,10000", "3000,0"  # number of words in addition to those of the references; numbers of bigrams and trigrams


def without_gaps(source, target, order=2):
    """Cuts an ARPA file to `order` (2 or 3) and removes the n-grams for which a path that backs off too early costs less than the model says. These are bigrams and trigrams that cost
    more than backing off and, for order 3, histories v w for which p(w | v) * back-off(v w) < back-off(v) * p(w). For the latter a path could take w from the empty history and be in
    history w afterwards, where each word costs up to -ln back-off(v w) less than after v w. Weights do not change. Returns the numbers of n-grams kept, by order."""
    unigrams, bigrams, histories, lines, section, kept = {}, {}, {}, [], "", [0, 0, 0, 0]
    for line in open(source, encoding="utf-8"):
        line = line.rstrip("\n")
        section = line if line.startswith("\\") else section
        fields = line.split("\t")
        if section == "\\3-grams:" and order == 2 or line.startswith(f"ngram {order + 1}"):
            continue
        if section == "\\1-grams:" and len(fields) > 1:
            unigrams[fields[1]] = float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0
        if section == "\\2-grams:" and len(fields) > 1:
            history, word = fields[1].split()
            p, back_off = float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0
            least = unigrams[history][1] + unigrams[word][0] + 1e-6
            if p < least:
                continue
            bigrams[fields[1]] = p
            if order == 3 and p + back_off >= least:
                histories[fields[1]] = back_off
            kept[2] += 1
            line = "\t".join(fields if fields[1] in histories else fields[:2])
        if section == "\\3-grams:" and len(fields) > 1:
            _, middle, word = fields[1].split()
            history = fields[1][:-len(word) - 1]
            lower = bigrams.get(f"{middle} {word}", unigrams[middle][1] + unigrams[word][0])
            if history not in histories or float(fields[0]) < histories[history] + lower + 1e-6:
                continue
            kept[3] += 1
        lines.append(line)
    text = "\n".join(f"{line[:8]}{kept[int(line[6])]}" if line.startswith(("ngram 2", "ngram 3")) else line for line in lines)
    target.write_text(text + "\n", encoding="utf-8")
    return kept[2:order + 1]


def start(keep):
    """Creates the folder, and empties it unless `keep` is set."""
    WORK.mkdir(parents=True, exist_ok=True)
    for path in WORK.glob("*.*"):
        if not keep and path.is_file():
            path.unlink()


def make(path, function):
    if not path.exists():
        function()
    return path


def small_graph():
    """Makes the whole model and the small one as ARPA, and the graph of the small one with its word table. Back-off arcs of the graph are epsilons, but its costs are those of the small model."""
    full, pruned, small, graph = WORK / "full.arpa", WORK / "pruned.arpa", WORK / "small.arpa", WORK / "small.wfst"
    model = f"{hybrid_graphs.MODEL}/en-us.lm.bin"
    make(full, lambda: measure.run(WARPFST, "lm", "arpa", model, "-o", full))
    make(pruned, lambda: measure.run(WARPFST, "lm", "prune", model, "--max-ngrams=200000,0", "--criterion=difference", "-q", "-o", pruned))
    make(small, lambda: without_gaps(pruned, small))
    make(graph, lambda: hybrid_graphs.make_graph(small, graph, f"--words-out={WORK / 'words.txt'}"))
    return full, small, graph


def decode(graph, work, beam, lm=None, threads=1):
    """Returns the summary of the run, and the result of each utterance by key."""
    out, summary = WORK / "out.json", WORK / "summary.json"
    measure.run(WARPFST, "decode", graph, work / "sen.scp", *([f"--lm={lm}"] if lm else []), "--acoustic-scale=0.1538", f"--beam={beam}", "--max-active=1000000",
                "--max-tokens=4000000", f"--num-threads={threads}", f"--ref={work / 'ref'}", f"--summary={summary}", "--format=json", "-o", out)
    return json.loads(summary.read_text()), {result["key"]: result for result in map(json.loads, out.open(encoding="utf-8"))}


def agreement(expected, results):
    """Keys of the utterances with the same words in both, and the largest difference of their costs."""
    same = [key for key in expected if expected[key]["text"] == results[key]["text"]]
    return same, max((abs(expected[key]["cost"] - results[key]["cost"]) for key in same), default=0)


class Report:
    def __init__(self):
        self.rows, self.figures = [], []

    def compare(self, name, beam, setup, judge, fly):
        """`judge` and `fly` are pairs of a description and a result of decode()."""
        (judge_is, (expected, judged)), (fly_is, (summary, results)) = judge, fly
        same, worst = agreement(judged, results)
        self.rows += [[name, beam, judge_is, f"{expected['wer']:.2f}", ""],
                      [name, beam, fly_is, f"{summary['wer']:.2f}", f"{len(same)} of {len(judged)} the same, costs within {worst:.1e}"]]
        setup = f"{setup.format(name=name, beam=beam)}"
        self.figures += [("on the fly, word error rate", setup, f"{summary['wer']:.2f}", "%"), ("static graph, word error rate", setup, f"{expected['wer']:.2f}", "%"),
                         ("on the fly, utterances of the same words", setup, f"{len(same)} of {len(judged)}", "utterances"),
                         ("on the fly, largest difference of costs", setup, f"{worst:.1e}", "nats")]

    def speed(self, name, beam, what, summary, threads):
        self.rows.append([name, beam, f"{what}, {threads} thread{'s' if threads > 1 else ''}", f"{summary['wer']:.2f}", f"RTFx {summary['rtfx']:.1f}"])
        setup = f"en-us, {name}, beam {beam}, {what}, {threads} threads"
        self.figures += [("on the fly, word error rate", setup, f"{summary['wer']:.2f}", "%"), ("on the fly, speed", setup, f"{summary['rtfx']:.2f}", "RTFx")]


def build_difference(large, small, path):
    return make(path, lambda: measure.run(WARPFST, "lm", "convert", large, "--subtract", small, "-q", "-o", path))


def static_part(order, sets, beams, report):
    """The reference is the static graph of the model of without_gaps."""
    full, small, graph = small_graph()
    large, judge = WORK / f"{order}-grams.arpa", WORK / f"{order}-grams.wfst"
    kept = " and ".join(f"{number} {kind}" for number, kind in zip(without_gaps(full, large, order), ("bigrams", "trigrams")))
    num_small = without_gaps(WORK / "pruned.arpa", small)[0]
    make(judge, lambda: hybrid_graphs.make_graph(large, judge))
    difference = build_difference(large, small, WORK / f"{order}-grams.wlm")
    for name, work in sets.items():
        for beam in beams:
            report.compare(name, beam, f"en-us {order}-gram, {{name}}, beam {{beam}}, on the fly over {num_small} bigrams against the static graph",
                           (f"static graph, {kept}", decode(judge, work, beam)), (f"{num_small} bigrams, difference on the fly", decode(graph, work, beam, difference)))


def whole_part(sets, beams, static, report):
    """The whole 3-gram, with exact back-off."""
    model = f"{hybrid_graphs.MODEL}/en-us.lm.bin"
    _, small, graph = small_graph()
    difference = build_difference(model, small, WORK / "3-gram.wlm")
    runs = [(what, graph, lm, threads) for threads in (1, os.cpu_count()) for what, lm in (("small graph alone", None), ("3-gram on the fly", difference))]
    if static:
        runs.append(("3-gram, static graph, back-off as epsilon", make(WORK / "full.wfst", lambda: hybrid_graphs.make_graph(model, WORK / "full.wfst")), None, 1))
    for name, work in sets.items():
        for beam in beams:
            for what, path, lm, threads in runs:
                report.speed(name, beam, what, decode(path, work, beam, lm, threads)[0], threads)


def composed_part(sets, beams, report):
    """The reference is the composition of the small graph and the difference by `warpfst compose`, with failure back-off. It has a copy of each graph state for every history that reaches it, so it is possible only for few words."""
    folder = WORK / "composed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    full, _, _ = small_graph()
    words = {word for work in sets.values() for line in open(work / "ref", encoding="utf-8") for word in line.split()[1:]}
    unigrams = []
    for line in open(full, encoding="utf-8"):
        fields = line.rstrip("\n").split("\t")
        if line.startswith("\\2-grams:"):
            break
        if len(fields) > 1 and fields[1][0] != "<":
            unigrams.append((float(fields[0]), fields[1]))
    words |= {word for _, word in sorted(unigrams, reverse=True)[:COMPOSED_WORDS]}
    vocabulary, large, small, graph, difference, acceptor, composed, table = (
        folder / name for name in ("vocabulary", "large.arpa", "small.arpa", "small.wfst", "difference.wlm", "difference.wfst", "composed.wfst", "words.txt"))
    vocabulary.write_text("".join(word + "\n" for word in sorted(words)), encoding="utf-8")
    measure.run(WARPFST, "lm", "prune", f"{hybrid_graphs.MODEL}/en-us.lm.bin", f"--vocabulary={vocabulary}", f"--max-ngrams={COMPOSED_LARGE}", "--criterion=difference", "-q", "-o", large)
    measure.run(WARPFST, "lm", "prune", large, f"--max-ngrams={COMPOSED_SMALL}", "--criterion=difference", "-q", "-o", small)
    hybrid_graphs.make_graph(small, graph, f"--words-out={table}")
    build_difference(large, small, difference)
    measure.run(WARPFST, "lm", "convert", difference, "--backoff=failure", "--backoff-symbol=#phi", f"--words={table}", f"--write-words={folder / 'phi.txt'}", "-o", acceptor)
    phi = next(line.split()[1] for line in open(folder / "phi.txt", encoding="utf-8") if line.startswith("#phi"))
    print(measure.run(WARPFST, "compose", graph, acceptor, composed, f"--phi-label={phi}", "--stats"), file=sys.stderr)
    for name, work in sets.items():
        for beam in beams:
            report.compare(name, beam, f"en-us of {len(words)} words, {COMPOSED_LARGE} bigrams and trigrams, {{name}}, beam {{beam}}, on the fly against the graph composed with the difference",
                           (f"composed graph, {len(words)} words", decode(composed, work, beam)), (f"difference on the fly, {len(words)} words", decode(graph, work, beam, difference)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="2-gram,3-gram,composed,whole")
    parser.add_argument("--beams", default="14,16")
    parser.add_argument("--wav", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--static", action="store_true", help="also use the static graph of the whole model")
    parser.add_argument("--keep", action="store_true", help="reuse graphs and models of an earlier run")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    start(arguments.keep)
    sets = {"LibriVox": hybrid_graphs.score("LibriVox", None), **{name: hybrid_graphs.score(name, wav) for name, wav in (each.split("=", 1) for each in arguments.wav)}}
    beams, report = arguments.beams.split(","), Report()
    for part in arguments.parts.split(","):
        if part in ("2-gram", "3-gram"):
            static_part(int(part[0]), sets, beams, report)
        elif part == "composed":
            composed_part(sets, beams, report)
        elif part == "whole":
            whole_part(sets, beams, arguments.static, report)
        else:
            parser.error(f"unknown part {part}")
    print(f"{measure.machine()}; load {measure.load()}", file=sys.stderr)
    print(measure.table(["speech", "beam", "what", "WER %", ""], report.rows))
    if arguments.record:
        measure.record(report.figures, f"./run bench fly --parts={arguments.parts}" + "".join(f" --wav={each.split('=')[0]}=FOLDER" for each in arguments.wav))


if __name__ == "__main__":
    main()
