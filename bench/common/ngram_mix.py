"""ngram_mix.py - estimates an n-gram model of a text, and mixes two models. Both write ARPA files without back-off weights; `warpfst lm prune` without
options computes these, so that probabilities sum to 1.

estimate: interpolated Kneser-Ney with three discounts per order (Chen & Goodman 1999, section 3). mix: for every n-gram of either model, weight * p + (1 - weight) * p of the
other model, which may back off (as SRILM's `ngram -mix-lm`).
"""
import collections
import math

START, END = "<s>", "</s>"


def discounts(counts):
    """Discounts for counts of one, two, and three or more."""
    having = collections.Counter(counts)
    y = having[1] / max(1, having[1] + 2 * having[2])
    return [0, *(max(0.0, n - (n + 1) * y * having[n + 1] / max(1, having[n])) for n in (1, 2, 3))]


def estimate(sentences, num_words, known, most=3):
    """Returns probabilities by n-gram of up to `most` words, a tuple of words. `known`: words of the model; n-grams with other words are left out, as if the sentence were split there. Words of
    the vocabulary that the text lacks share the probability that the unigrams' discounts leave; the vocabulary has num_words words."""
    counts = [collections.Counter() for _ in range(most)]
    for sentence in sentences:
        words = [START, *sentence, END]
        for i in range(1, len(words)):
            for order in range(1, most + 1):
                gram = tuple(words[i + 1 - order:i + 1])
                if i + 1 >= order and all(word in known for word in gram):
                    counts[order - 1][gram] += 1
    for order in reversed(range(most - 1)):  # lower orders count the distinct words before; n-grams that begin with <s> have none and keep their counts
        before = collections.Counter(gram[1:] for gram in counts[order + 1])
        counts[order] = collections.Counter({gram: count if gram[0] == START else before[gram] or count for gram, count in counts[order].items()})
    probabilities = {}
    for order, grams in enumerate(counts):
        discount, total, left = discounts(grams.values()), collections.Counter(), collections.Counter()
        for gram, count in grams.items():
            total[gram[:-1]] += count
            left[gram[:-1]] += discount[min(count, 3)]
        for gram, count in grams.items():
            history = gram[:-1]
            lower = probabilities[gram[1:]] if order else 1 / num_words
            probabilities[gram] = (count - discount[min(count, 3)] + left[history] * lower) / total[history]
    return probabilities


class Model:
    """An ARPA file of order 3: log10 p and back-off weights by n-gram."""

    def __init__(self, path):
        self.p, self.back_off, section = {}, {}, 0
        for line in open(path, encoding="utf-8"):
            if line.startswith("\\"):
                section = int(line[1]) if line[1].isdigit() else 0
            elif section and "\t" in line:
                p, words, *weight = line.rstrip("\n").split("\t")
                gram = tuple(words.split(" "))
                self.p[gram] = float(p)
                if weight:
                    self.back_off[gram] = float(weight[0])

    def log10(self, gram):
        """log10 p of the last word, with back-off if needed; -infinity for a word that the model lacks."""
        if gram in self.p:
            return self.p[gram]
        return self.back_off.get(gram[:-1], 0.0) + self.log10(gram[1:]) if len(gram) > 1 else -math.inf

    def sentence(self, words):
        """log10 p of each word and of the end."""
        words = [START, *words, END]
        return [self.log10(tuple(words[max(0, i - 2):i + 1])) for i in range(1, len(words))]


def mix(one, other, weight, path):
    """Writes the mixture. `weight` is the weight of `one`."""
    def mixed():
        for gram in {**one.p, **other.p}:
            p = weight * 10 ** one.log10(gram) + (1 - weight) * 10 ** other.log10(gram)
            yield gram, math.log10(p) if p > 0 else -99
    write(mixed(), path)


def write(grams, path):
    """Writes an ARPA file. `grams`: (n-gram, log10 p)."""
    orders = []
    for gram, p in grams:
        orders += [[] for _ in range(len(gram) - len(orders))]
        orders[len(gram) - 1].append(f"{-99 if gram == (START,) else p:.6f}\t{' '.join(gram)}\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\\data\\\n" + "".join(f"ngram {n}={len(lines)}\n" for n, lines in enumerate(orders, 1)))
        for n, lines in enumerate(orders, 1):
            file.write(f"\n\\{n}-grams:\n")
            file.writelines(lines)
        file.write("\n\\end\\\n")


def shares(streams, rounds=100):
    """Estimates the mixture weights of maximum likelihood with EM. `streams` has a list of word probabilities for each model."""
    share = [1 / len(streams)] * len(streams)
    for _ in range(rounds):
        total = [0.0] * len(streams)
        for each in zip(*streams):
            parts = [s * p for s, p in zip(share, each)]
            whole = sum(parts)
            for i, part in enumerate(parts):
                total[i] += part / whole
        share = [t / len(streams[0]) for t in total]
    return share


def perplexity(streams, share):
    """Perplexity of the mixture, from the models' word probabilities."""
    logs = [math.log(sum(s * p for s, p in zip(share, each))) for each in zip(*streams)]
    return math.exp(-sum(logs) / len(logs))
