"""rnnlm_scale.py - the setting of Lee et al. 2015 generated at any scale, for `./run bench rnnlm`: a vocabulary of up to a million words, a bigram graph, a recurrent model (one
sigmoid layer, hierarchical softmax, MaxEnt order 3) trained on sentences drawn from the bigram model.

Models of more hidden units are the trained one, widened by rows and columns of zeros: the same costs, so the same search, and the arithmetic of the larger size.
"""
import bisect
import itertools
import json
import random
import struct
import sys

import measure
from measure import BUILD, ROOT, WARPFST

GENERATE = ROOT / "build" / "release" / "bench" / "generate_ctc_task"
UTTERANCES = 12
BEAM = ["--beam=11", "--max-active=3000", "--frame-shift=0.04"]


class Bigrams:
    """Of an ARPA file, to draw sentences from. Words are their places among the unigrams."""

    def __init__(self, path):
        self.words, self.after, probs, order = [], {}, [], 0
        for line in open(path, encoding="utf-8"):
            if line.startswith("\\"):
                order = int(line[1]) if line[1].isdigit() else 0
            elif order == 1 and "\t" in line:
                prob, word = line.split("\t")[:2]
                probs.append(0 if word.strip() in ("<s>", "<unk>") else 10 ** float(prob))
                self.words.append(word.strip())
            elif order == 2 and "\t" in line:
                prob, words = line.split("\t")[:2]
                first, second = words.split()
                self.after.setdefault(first, []).append((10 ** float(prob), second))
        self.sums = list(itertools.accumulate(probs))

    def sentence(self, rng):
        word, words = "<s>", []
        while len(words) < 100:
            point = rng.random()
            for prob, follower in self.after.get(word, ()):
                point -= prob
                if point < 0:
                    word = follower
                    break
            else:
                word = self.words[bisect.bisect_right(self.sums, rng.random() * self.sums[-1])]
            if word == "</s>":
                break
            words.append(word)
        return words


def write_text(bigrams, path, num_words, seed):
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as text:
        if seed == 1:  # the vocabulary is complete
            known = [word for word in bigrams.words if word[0] != "<"]
            for first in range(0, len(known), 50):
                print(*known[first:first + 50], file=text)
        while num_words > 0:
            words = bigrams.sentence(rng)
            num_words -= len(words)
            if words:
                print(*words, file=text)


def widen(model, hidden, out):
    """A version 0 model with zeros for the units it lacks. Its activations there are 1/2, times nothing."""
    with open(f"{model}.nnet", "rb") as net, open(f"{out}.nnet", "wb") as wide:
        old, cells, order = struct.unpack("<QQi", net.read(20))
        lines = sum(1 for _ in open(model, encoding="utf-8"))
        wide.write(struct.pack("<QQi", hidden, cells, order))
        padding = bytes(4 * (hidden - old))
        for rows, new_rows in ((lines, lines), (lines, lines), (old, hidden)):  # embedding, output, recurrent
            for _ in range(rows):
                wide.write(net.read(4 * old) + padding)
            for _ in range(new_rows - rows):
                wide.write(bytes(4 * hidden))
        while block := net.read(1 << 24):
            wide.write(block)
    out.write_text(model.read_text(encoding="utf-8"), encoding="utf-8")


class Task:
    def __init__(self, words):
        self.folder = BUILD / f"rnnlm_{words}"
        self.graph, self.lm, self.model = (self.folder / name for name in ("TLG.wfst", "lm.arpa", "rnn"))
        if not self.graph.exists():
            measure.run(GENERATE, self.folder, f"--words={words}", f"--text-words={12 * words}", "--min-trigram=1000", f"--utterances={UTTERANCES}")
            measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={self.folder / 'tokens.txt'}", f"--lexicon={self.folder / 'lexicon.txt'}", f"--lm={self.lm}", "--topology=compact", "-q", "-o",
                        self.graph)
        if not self.model.exists():
            bigrams = Bigrams(self.lm)
            for name, size, seed in (("train.txt", words, 1), ("valid.txt", 2000, 2)):
                write_text(bigrams, self.folder / name, size, seed)
            measure.run(WARPFST, "rnnlm", "train", self.folder / "train.txt", self.folder / "valid.txt", "-o", self.model, "--hidden=100", f"--maxent-cells={100 * words}",
                        "--max-epochs=1")

    def model_of(self, hidden):
        wide = self.folder / f"rnn{hidden}"
        if hidden != 100 and not wide.exists():
            widen(self.model, hidden, wide)
        return self.model if hidden == 100 else wide

    def decode(self, hidden, cache, batch, utterances, device, core):
        """The summary, and the processor time of all utterances but the first."""
        flags = [f"--rnnlm={self.model_of(hidden)}", f"--rnnlm-ngram={self.lm}", f"--rnnlm-small={self.lm}", "--rnnlm-weight=0.5", f"--rnnlm-cache={cache}"] if hidden else []
        summaries, costs = [], []
        for count in (1, utterances):
            command = [WARPFST, "decode", self.graph, self.scores(count), *BEAM, f"--device={device}", "--num-threads=1", f"--batch={batch}", "-o", self.folder / "out", *flags]
            costs.append(measure.timed([*command, f"--summary={self.folder / 'summary'}"], core).cpu_s)
            summaries.append(json.loads((self.folder / "summary").read_text()))
        seconds = 3600 * (summaries[1]["hours"] - summaries[0]["hours"])
        return summaries[1], seconds / (costs[1] - costs[0])

    def scores(self, count):
        """Of the first utterances."""
        every, some = self.folder / "every.scp", self.folder / f"first{count}.scp"
        if not every.exists():
            measure.run(WARPFST, "matrix", "copy", self.folder / "peaky.ark", "-o", self.folder / "every.ark", f"--scp={every}")
        some.write_text("".join(every.read_text(encoding="utf-8").splitlines(keepends=True)[:count]), encoding="utf-8")
        return some


def measure_all(words, hiddens, device, core, utterances=UTTERANCES):
    """Table rows and rows for results.csv. Decoding without the recurrent model; then naively, question by question; then as it is done, utterances alone and together."""
    task, rows, figures = Task(words), [], []
    kinds = [(0, "utterance", utterances, "no recurrent model")]
    for hidden in hiddens:
        kinds += [(hidden, "none", 1, "naive"), (hidden, "utterance", 1, "cache of the utterance"), (hidden, "utterance", utterances, "cache of the utterance"),
                  (hidden, "shared", utterances, "shared cache")]
    for hidden, cache, batch, name in kinds:
        summary, rtfx = task.decode(hidden, cache, batch, utterances, device, core)
        counts, frames = summary.get("rnnlm", {}), summary["hours"] * 3600 / 0.04
        requests, costs, states = (counts.get(what, 0) / frames for what in ("requests", "costs", "hidden_states"))
        rows.append([words, hidden, name, batch, f"{requests:.0f}", f"{100 * counts.get('hit_ratio', 0):.1f}", f"{costs:.0f}", f"{states:.1f}", f"{rtfx:.1f}"])
        print("  " + " | ".join(map(str, rows[-1])), file=sys.stderr)
        setup = f"generated CTC, {words} words, bigram graph, hidden {hidden}, {name}, batch {batch}, beam 11, max_active 3000, one core, processor time"
        figures += [("decode with RNN LM at scale", setup, value, unit) for value, unit in (
            (f"{rtfx:.1f}", "RTFx"), (f"{requests:.0f}", "requests/frame"), (f"{100 * counts.get('hit_ratio', 0):.1f}", "% hits"))]
    return rows, figures


HEADER = ["words", "hidden", "cache", "batch", "requests a frame", "hits, %", "costs a frame", "states a frame", "RTFx"]
