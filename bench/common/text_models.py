"""text_models.py - language models of a small text: recurrent ones, and 3-gram ones, alone and mixed with a large model. The weights of mixtures are chosen on held-out text.
Second passes with them."""
import json
import math
import os
import subprocess
import sys

import measure
import ngram_mix
from measure import WARPFST

NBEST = 1000


def train(folder, models, keep=False):
    """Trains recurrent models on FOLDER/train and FOLDER/valid. `models`: flags by name. Returns paths by name. Uses one thread for each, so that training is reproducible."""
    paths, running = {}, []
    for name, flags in models.items():
        paths[name] = folder / name.replace(", ", "_").replace(" ", "")
        if not (keep and paths[name].with_suffix(".nnet").exists()):
            command = [WARPFST, "rnnlm", "train", folder / "train", folder / "valid", "-o", paths[name], *flags]
            running.append(subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL))
        while len(running) >= (os.cpu_count() or 1):
            finish(running.pop(0))
    for process in running:
        finish(process)
    return paths


def finish(process):
    if process.wait() != 0:
        sys.exit("rnnlm train failed")


def write(grams, path, programs=measure.Built):
    """Writes n-grams (n-gram, log10 p) as an ARPA file with back-off weights."""
    raw = path.with_suffix(".raw.arpa")
    ngram_mix.write(grams, raw)
    programs.run(programs.warpfst, "lm", "prune", raw, "-q", "-o", path)
    return path


def text_ngrams(sentences, known, path, programs=measure.Built, unseen=None):
    """Writes the 3-gram model of a text as an ARPA file. `known`: words of the vocabulary; those that the text lacks get the probability `unseen`, or are left out."""
    grams = ngram_mix.estimate(sentences, len(known) + 1, known | {ngram_mix.START, ngram_mix.END})
    for word in known if unseen is not None else ():
        grams.setdefault((word,), unseen)
    grams[(ngram_mix.START,)] = 1.0
    return write(((gram, math.log10(p)) for gram, p in grams.items()), path, programs)


def mixture(one, other, share, path):
    """Writes an ARPA file of the mixture of two models; `share` is the weight of `one`."""
    raw = path.with_suffix(".raw.arpa")
    ngram_mix.mix(ngram_mix.Model(one), ngram_mix.Model(other), share, raw)
    measure.run(WARPFST, "lm", "prune", raw, "-q", "-o", path)
    return path


def difference(large, small, path):
    measure.run(WARPFST, "lm", "convert", large, "--subtract", small, "-q", "-o", path)
    return path


# --- word probabilities of a text, for all words that the first model has ---

def ngram_stream(model, text):
    stream = []
    for line in measure.run(WARPFST, "lm", "query", model, text).splitlines():
        for field in line.split("\t"):
            word, _, rest = field.rpartition("=")
            if word and word != "<unk>" and not line.startswith(("Perplexity", "OOV", "Tokens", "Name")):
                stream.append(10 ** float(rest.split()[2]))
    return stream


def rnn_stream(model, text):
    """Word probabilities of a recurrent model; 0 for words that it lacks, as in decoding."""
    vocabulary = {line.split(" ")[0] for line in open(model, encoding="utf-8")}
    words = [word for line in open(text, encoding="utf-8") for word in (*line.split(), ngram_mix.END)]
    scored = [line.split(" ") for line in measure.run(WARPFST, "rnnlm", "score", model, text, "--unk=<unk>", "--per-word").splitlines() if line.startswith("w ")]
    return [10 ** float(fields[2]) if word in vocabulary else 0.0 for word, fields in zip(words, scored) if word != "<unk>"]


class Streams:
    """Word probabilities of a text: a list for each model, by name. Words that the first n-gram model lacks do not count."""

    def __init__(self, text, ngrams, rnns):
        self.of = {name: ngram_stream(path, text) for name, path in ngrams.items()}
        self.of.update((name, rnn_stream(path, text)) for name, path in rnns.items())
        if len({len(stream) for stream in self.of.values()}) != 1:
            sys.exit(f"{text}: models disagree about the number of words")
        known = [p > 0 for p in next(iter(self.of.values()))]
        self.of = {name: [p for p, is_known in zip(stream, known) if is_known] for name, stream in self.of.items()}

    def perplexity(self, shares):
        return ngram_mix.perplexity([self.of[name] for name in shares], list(shares.values()))

    def fit(self, *names):
        return dict(zip(names, ngram_mix.shares([self.of[name] for name in names])))


# --- decoding ---

def rnn_flags(rnn, ngram, share, interpolation="linear", unknown=1e6):
    return [f"--rnnlm={rnn}", f"--rnnlm-ngram={ngram}", f"--rnnlm-weight={share:.4f}", f"--interpolation={interpolation}", f"--unknown-cost={unknown:g}"]


def write_nbest(lattices, words, acoustic_scale, lattice_beam, path):
    """Writes n-best lists as `rnnlm rescore` reads them."""
    lists = path.with_suffix(".json")
    measure.run(WARPFST, "lattice", "nbest", lattices, f"--n={NBEST}", f"--beam={lattice_beam}", f"--acoustic-scale={acoustic_scale}", "--format=json", f"--words={words}", "-o", lists)
    with open(path, "w", encoding="utf-8") as out:
        for result in map(json.loads, open(lists, encoding="utf-8")):
            key, _, rank = result["key"].rpartition("-")
            print(key, rank, f"{result['graph_cost']:.6f} {result['acoustic_cost']:.6f} {result['text']}", file=out)


def rescore(lattices, rnn, ngram, share, words, acoustic_scale, lattice_beam, out):
    """Rescores n-best lists and lattices, made with the model `ngram`, with the recurrent model. `out`: paths for the words of "1000 best" and of "lattices"."""
    nbest, second = out["1000 best"].with_suffix(".nbest"), out["lattices"].with_suffix(".ark")
    write_nbest(lattices, words, acoustic_scale, lattice_beam, nbest)
    flags = [f"--rnnlm-weight={share:.4f}", "--interpolation=linear", "--unknown-cost=1000000"]
    best = subprocess.run([str(word) for word in (WARPFST, "rnnlm", "rescore", rnn, nbest, f"--small={ngram}", f"--ngram={ngram}", "--best", "--threads=0", *flags)], stdout=subprocess.PIPE, check=True, text=True)
    out["1000 best"].write_text(best.stdout, encoding="utf-8")
    measure.run(WARPFST, "rnnlm", "lattice", lattices, *rnn_flags(rnn, ngram, share), f"--rnnlm-small={ngram}", f"--acoustic-scale={acoustic_scale}", "--history-merge-order=4", f"--words={words}", "-o", second)
    lines = measure.run(WARPFST, "lattice", "nbest", second, "--n=1", f"--words={words}", "-o", "-").splitlines()
    out["lattices"].write_text("".join(line.replace("-1 ", " ", 1) + "\n" for line in lines), encoding="utf-8")
