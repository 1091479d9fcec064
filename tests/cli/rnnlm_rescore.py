#!/usr/bin/env python3
"""Checks `warpfst rnnlm rescore`: computes the expected output from `rnnlm score --per-word` and `lm query --json` of each hypothesis.
    rnnlm_rescore.py WARPFST RNNLM ARPA SMALL UNKNOWN        writes nbest.txt and checks 24 sets of options"""
import itertools
import json
import math
import random
import subprocess
import sys

LN10 = math.log(10)


def run(*command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def per_word(warpfst, rnnlm, sentences):
    """Costs (negative natural logarithms) of each word and of the sentence end. All words must be known."""
    out, costs = [], []
    for line in run(warpfst, "rnnlm", "score", rnnlm, "--per-word", text="\n".join(" ".join(s) for s in sentences) + "\n").splitlines():
        if line.startswith("w "):
            costs.append(-float(line.split()[2]) * LN10)
        else:
            out.append(costs)
            costs = []
    return out


def query(warpfst, lm, sentences):
    lines = run(warpfst, "lm", "query", lm, "--json", text="\n".join(" ".join(s) for s in sentences) + "\n").splitlines()
    return [[-w["log10p"] * LN10 for w in json.loads(line)["words"]] for line in lines[:len(sentences)]]


def main():
    warpfst, rnnlm, arpa, small, unknown = sys.argv[1:]
    random.seed(1)
    known = [f"w{i}" for i in range(12)]
    lists = []
    for key in ("first", "second", "third"):
        for rank in range(1, 30):
            words = [random.choice(known + [unknown]) for _ in range(random.randint(1, 6))]
            if all(w == unknown for w in words):
                words = ["w1"]
            lists.append((key, rank, round(random.uniform(0, 9), 3), round(random.uniform(0, 9), 3), words))
    with open("nbest.txt", "w") as file:
        for key, rank, graph, acoustic, words in lists:
            print(key, rank, graph, acoustic, *words, file=file)
    sentences = [entry[4] for entry in lists]
    recurrent, ngram, less = per_word(warpfst, rnnlm, [[w for w in s if w != unknown] for s in sentences]), query(warpfst, arpa, sentences), query(warpfst, small, sentences)
    for scale, weight, mode, use_small in itertools.product((1, 1.5), (1, 0.5, 0.25), ("log_linear", "linear"), (True, False)):
        flags = [f"--rnnlm-scale={scale}", f"--rnnlm-weight={weight}", f"--interpolation={mode}", f"--ngram={arpa}", "--acoustic-scale=0.7", "--unknown-cost=5"]
        flags += [f"--small={small}", "--small-scale=0.9"] if use_small else []
        wanted = []
        for (key, rank, graph, acoustic, words), r, n, s in zip(lists, recurrent, ngram, less):
            r = iter(r)
            for i, word in enumerate(words + ["</s>"]):
                cost = 5 if word == unknown else next(r)
                mixed = weight * cost + (1 - weight) * n[i] if mode == "log_linear" else -math.log(weight * math.exp(-cost) + (1 - weight) * math.exp(-n[i]))
                graph += scale * mixed - (0.9 * s[i] if use_small else 0)
            wanted.append((key, graph + 0.7 * acoustic, rank, graph, acoustic, words))
        order = {"first": 0, "second": 1, "third": 2}
        wanted.sort(key=lambda x: (order[x[0]], x[1], x[2]))
        got = [line.split() for line in run(warpfst, "rnnlm", "rescore", rnnlm, "nbest.txt", *flags).splitlines()]
        assert len(got) == len(wanted) == 87
        for i, (g, w) in enumerate(zip(got, wanted)):
            assert g[0] == w[0] and int(g[1]) == i % 29 + 1 and abs(float(g[2]) - w[3]) < 1e-3 and abs(float(g[3]) - w[4]) < 1e-5 and g[4:] == w[5], (flags, g, w)
        best = [line.split() for line in run(warpfst, "rnnlm", "rescore", rnnlm, "nbest.txt", "--best", "--threads=2", *flags).splitlines()]
        assert best == [[w[0], *w[5]] for w in wanted[::29]], flags
    print("24 option sets agree")


if __name__ == "__main__":
    main()
