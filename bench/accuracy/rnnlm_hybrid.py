#!/usr/bin/env python3
"""rnnlm_hybrid [--wav=NAME=FOLDER ...] [--curve] [--beam=14] [--max-active=10000] [--history-merge-order=0] [--keep] [--record]

Measures whether a language model of the domain helps on the hybrid task. Graph, 3-gram model (72,547 words) and speech are those of `./run bench fly`; the speech is from chapter 1 of
Sense and Sensibility. The text is Jane Austen's other novels (austen.py; training, validation and held-out chapters). Words that the graph lacks are <unk>. With
linear interpolation, words that the text lacks get only the n-gram model's part of the probability.

  models    recurrent models of `warpfst rnnlm train`, and a Kneser-Ney 3-gram model of the same text (ngram_mix.py). The recurrent model and the weights of all
            models are chosen on held-out text only (maximum likelihood, EM)
  systems   decoded with these weights: en-us; en-us and the 3-gram model of the text; en-us and the recurrent model, on the fly, on 1000-best lists and on
            lattices; all three. No other weights are tried
  --curve   the recurrent model with weights from 0 to 0.99, linear and log-linear, on the test words; nothing is chosen by it

Other speech (--wav) is a control with the same models and weights. Whole histories make ten times as many tokens as n-gram models; --max-active limits the tokens per frame.
"""
import argparse
import json
import math
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import austen
import fly
import hybrid_graphs
import measure
import text_models
from measure import BUILD, WARPFST

WORK = BUILD / "austen"
EN_US = f"{hybrid_graphs.MODEL}/en-us.lm.bin"
MODELS = {
    "sigmoid 100": ["--hidden=100"],
    "sigmoid 100, MaxEnt 3": ["--hidden=100", "--maxent-cells=20000000"],
    "sigmoid 300, MaxEnt 3": ["--hidden=300", "--maxent-cells=20000000"],
}
ACOUSTIC_SCALE = "0.1538"
LATTICE_BEAM = 8


def mixture(one, other, share, name):
    path = WORK / f"{name}.{share:.4f}.arpa"
    return fly.make(path, lambda: text_models.mixture(one, other, share, path))


# --- decoding ---

def decode(graph, work, beam, max_active, *flags, out):
    """Writes the words of each utterance to `out`; returns the summary."""
    summary = WORK / "summary.json"
    measure.run(WARPFST, "decode", graph, work / "sen.scp", f"--acoustic-scale={ACOUSTIC_SCALE}", f"--beam={beam}", f"--max-active={max_active}", f"--max-tokens={4 * max_active}", f"--summary={summary}",
                "-o", out, *flags)
    return json.loads(summary.read_text())


class Errors:
    """Errors of a set's hypotheses: wrong words; wrong words if mr counts as mister, as in the reference; positions of the reference that are right."""

    def __init__(self, ref, hyp):
        score = lambda path: json.loads(measure.run(WARPFST, "score", ref, path, "--json"))
        self.counts = score(hyp)
        self.wrong = sum(self.counts[what] for what in ("sub", "del", "ins"))
        respelt = WORK / "respelt"
        respelt.write_text("".join(" ".join({"mr": "mister", "mrs": "missus"}.get(word, word) for word in line.split()) + "\n" for line in open(hyp, encoding="utf-8")), encoding="utf-8")
        self.wrong_respelt = sum(score(respelt)[what] for what in ("sub", "del", "ins"))
        self.right, place, reference = set(), 0, []
        for line in measure.run(WARPFST, "score", ref, respelt, "--align").splitlines():
            if line.startswith("REF:"):
                reference = line.split()[1:]
            elif line.startswith("HYP:"):
                for word, heard in zip(reference, line.split()[1:]):
                    if word.strip("*"):
                        self.right |= {place} if word == heard else set()
                        place += 1

    def against(self, other):
        """Reference words that only this system has right, that only the other has right, and the p-value of the exact two-sided McNemar test."""
        better, worse = len(self.right - other.right), len(other.right - self.right)
        n, k = better + worse, min(better, worse)
        return better, worse, min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2 ** n)


def percent(part):
    return f"{100 * part:.1f}"


class Task:
    """Graph and models, and the systems to run on each set of speech."""

    def __init__(self, arguments):
        self.beam, self.max_active, self.merge_order, keep = arguments.beam, arguments.max_active, arguments.history_merge_order, arguments.keep
        fly.start(keep)
        full, self.small, self.graph = fly.small_graph()
        table = (line.split()[0] for line in open(fly.WORK / "words.txt", encoding="utf-8"))
        known = {word for word in table if word[0] not in "<#"}
        self.parts = austen.split(WORK, known.__contains__)
        self.rnns = text_models.train(WORK, MODELS, keep)
        self.text = text_models.text_ngrams(self.parts["train"], known, WORK / "text.arpa")
        self.held_out = text_models.Streams(WORK / "held-out", {"en-us": EN_US, "text": self.text}, self.rnns)
        fit, perplexity = self.held_out.fit, self.held_out.perplexity
        self.best = min(self.rnns, key=lambda name: perplexity(fit("en-us", name)))
        self.rnn = self.rnns[self.best]
        self.with_text, self.with_rnn, self.with_both = fit("en-us", "text"), fit("en-us", self.best), fit("en-us", "text", self.best)
        ngrams = self.with_both["en-us"] + self.with_both["text"]
        self.mixed = mixture(full, self.text, self.with_text["en-us"], "mixed")
        self.mixed_for_rnn = mixture(full, self.text, self.with_both["en-us"] / ngrams, "mixed_for_rnn")
        self.differences = {name: text_models.difference(large, self.small, WORK / f"{name}.wlm") for name, large in (("en-us", EN_US), ("mixed", self.mixed))}
        # for log-linear interpolation: the cost on held-out text of a graph word that the text lacks, equal for all such words
        lacking = sum(p == 0 for p in self.held_out.of[self.best])
        self.unknown = -math.log(lacking / len(self.held_out.of[self.best]) / (len(known) - sum(1 for _ in open(self.rnn, encoding="utf-8"))))

    def text_table(self):
        rows = []
        for name, sentences in self.parts.items():
            words = [word for sentence in sentences for word in sentence]
            rows.append([name, len(sentences), len(words), len(set(words)), percent(words.count("<unk>") / len(words))])
        return measure.table(["text", "sentences", "words", "different", "<unk>, %"], rows)

    def model_table(self):
        rows = [["en-us", "", f"{self.held_out.perplexity({'en-us': 1.0}):.1f}"], ["3-gram model of the text", f"{self.with_text['text']:.3f}", f"{self.held_out.perplexity(self.with_text):.1f}"]]
        for name in self.rnns:
            shares = self.held_out.fit("en-us", name)
            rows.append([name, f"{shares[name]:.3f}", f"{self.held_out.perplexity(shares):.1f}"])
        rows.append([f"3-gram model of the text, and {self.best}", f"{self.with_both['text']:.3f} {self.with_both[self.best]:.3f}", f"{self.held_out.perplexity(self.with_both):.1f}"])
        return rows

    def systems(self, work):
        """Name, weights, hypotheses and speed of each system."""
        rnn = lambda ngram, share: [*text_models.rnn_flags(self.rnn, ngram, share), f"--rnnlm-small={self.small}", f"--history-merge-order={self.merge_order}"]
        lattices = WORK / "lattices.ark"
        runs = [("en-us", {"en-us": 1.0}, [f"--lm={self.differences['en-us']}", f"--lattice={lattices}", f"--lattice-beam={LATTICE_BEAM}"]),
                ("en-us, 3-gram model of the text", self.with_text, [f"--lm={self.differences['mixed']}"]),
                ("en-us, recurrent model, on the fly", self.with_rnn, rnn(EN_US, self.with_rnn[self.best])),
                ("all three, on the fly", self.with_both, rnn(self.mixed_for_rnn, self.with_both[self.best]))]
        for number, (name, shares, flags) in enumerate(runs):
            out = WORK / f"hyp.{work.name}.{number}"
            summary = decode(self.graph, work, self.beam, self.max_active, *flags, out=out)
            yield name, shares, out, summary["rtfx"]
            if number == 0:
                second = {what: WORK / f"hyp.{work.name}.{what}" for what in ("1000 best", "lattices")}
                text_models.rescore(lattices, self.rnn, EN_US, self.with_rnn[self.best], fly.WORK / "words.txt", ACOUSTIC_SCALE, LATTICE_BEAM, second)
                for what, path in second.items():
                    yield f"en-us, recurrent model, {what}", self.with_rnn, path, None

    def measure_set(self, name, work):
        text = WORK / "reference"
        text.write_text("".join(line.split(" ", 1)[1] for line in open(work / "ref", encoding="utf-8")), encoding="utf-8")
        streams = text_models.Streams(text, {"en-us": EN_US, "text": self.text}, self.rnns)
        rows, figures, first = [], [], None
        for system, shares, hyp, speed in self.systems(work):
            errors = Errors(work / "ref", hyp)
            first = first or errors
            better, worse, chance = errors.against(first)
            wer = 100 * errors.wrong / errors.counts["words"]
            rows.append([name, system, f"{streams.perplexity(shares):.1f}", errors.wrong, f"{wer:.2f}", errors.wrong_respelt, f"+{better} -{worse}", f"{chance:.3f}", f"{speed:.1f}" if speed else ""])
            setup = f"{name} ({errors.counts['words']} words), {system}, beam {self.beam:g}, max_active {self.max_active}" + (f", history_merge_order {self.merge_order}" if self.merge_order else "")
            figures += [("text of the domain, word error rate", setup, f"{wer:.2f}", "%"), ("text of the domain, words wrong, mr read as mister", setup, errors.wrong_respelt, "words"),
                        ("text of the domain, perplexity of the references", setup, f"{streams.perplexity(shares):.1f}", "perplexity")]
        return rows, figures

    def curve(self, name, work):
        for interpolation, unknown in (("linear", 1e6), ("log_linear", self.unknown)):
            for share in (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99) if interpolation == "linear" else (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
                out = WORK / "hyp.curve"
                decode(self.graph, work, self.beam, self.max_active, *text_models.rnn_flags(self.rnn, EN_US, share, interpolation, unknown), f"--rnnlm-small={self.small}", out=out)
                errors = Errors(work / "ref", out)
                yield [name, interpolation, f"{share:g}", errors.wrong, f"{100 * errors.wrong / errors.counts['words']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wav", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--curve", action="store_true", help="decode LibriVox with all weights")
    parser.add_argument("--beam", type=float, default=14)
    parser.add_argument("--max-active", type=int, default=10000, help="largest number of tokens per frame")
    parser.add_argument("--history-merge-order", type=int, default=0, help="history_merge_order of the recurrent model on the fly")
    parser.add_argument("--keep", action="store_true", help="reuse graph, recurrent models and mixtures of an earlier run")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    hybrid_graphs.WORK.mkdir(parents=True, exist_ok=True)
    for path in WORK.glob("mixed*.arpa"):
        if not arguments.keep:
            path.unlink()
    sets = {"LibriVox": hybrid_graphs.score("LibriVox", None), **{name: hybrid_graphs.score(name, wav) for name, wav in (each.split("=", 1) for each in arguments.wav)}}
    task = Task(arguments)
    print("from " + ", ".join(f"{novel}.txt" for novel in austen.NOVELS) + "\n")
    print(task.text_table() + "\n")
    models = task.model_table()
    print(measure.table(["with en-us", "share", "held-out perplexity"], models) + "\n", flush=True)
    figures = [("text of the domain, held-out perplexity", f"en-us with {name}, share {share}" if share else "en-us", value, "perplexity") for name, share, value in models]
    for name, work in sets.items():
        rows, some = task.measure_set(name, work)
        figures += some
        print(measure.table(["speech", "models", "perplexity", "wrong", "WER %", "mr as mister", "against en-us", "by chance", "RTFx"], rows) + "\n", flush=True)
    if arguments.curve:
        rows = list(task.curve("LibriVox", sets["LibriVox"]))
        print(measure.table(["speech", "interpolation", "share", "wrong", "WER %"], rows))
        figures += [("text of the domain, word error rate by share", f"{name}, {kind}, share {share} of the recurrent model, beam {arguments.beam:g}, max_active {arguments.max_active}", wer, "%") for name, kind, share, _, wer in rows]
    print(f"{measure.machine()}; load {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record(figures, "./run bench rnnlm_hybrid" + "".join(f" --wav={each.split('=')[0]}=FOLDER" for each in arguments.wav) + (" --curve" if arguments.curve else "") + f" --max-active={arguments.max_active}"
                       + (f" --history-merge-order={arguments.history_merge_order}" if arguments.history_merge_order else ""))


if __name__ == "__main__":
    main()
