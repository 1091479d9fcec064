#!/usr/bin/env python3
"""generate_task.py FOLDER [--words N] [--tokens N] [--seed N]

Generates a task for timing graph building: tokens.txt, lexicon.txt, lm.arpa (3-gram). The same arguments give the same files on any machine.

  words    w00001 ... by decreasing frequency, Zipf-like; frequent words are short
  lexicon  40 phones in syllables; some words are homophones, prefixes of others, or have a second pronunciation
  text     each word is one of the likely followers of the previous word, or drawn from the whole vocabulary
  LM       counted on that text, with interpolated absolute discounting; trigrams seen once are dropped. Probabilities sum to one after every history.
"""
import argparse
import bisect
import collections
import itertools
import math
import os
import pathlib
import sys

import measure

MASK = (1 << 64) - 1
CONSONANTS = [f"C{i:02d}" for i in range(24)]
VOWELS = [f"V{i:02d}" for i in range(16)]
BOS, EOS, UNK = "<s>", "</s>", "<unk>"
DISCOUNT = 0.6


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return (self.next() >> 32) * n >> 32

    def chance(self, p):
        return self.next() < p * 2.0**64


class Zipf:
    """Ranks 0 .. n - 1 with weight 1 / (rank + shift)."""

    def __init__(self, n, shift=2.7):
        self.sums = list(itertools.accumulate(1 / (rank + shift) for rank in range(n)))

    def draw(self, random):
        return bisect.bisect_left(self.sums, (random.next() >> 11) * 2.0**-53 * self.sums[-1])


def syllable(random):
    phones = [VOWELS[random.below(16)]]
    if random.chance(0.8):
        phones.insert(0, CONSONANTS[random.below(24)])
    if random.chance(0.4):
        phones.append(CONSONANTS[random.below(24)])
    return phones


def pronunciations(num_words, random):
    """Returns one or two pronunciations for each word."""
    first = []
    for rank in range(num_words):
        if rank > 100 and random.chance(0.03):  # homophone
            phones = list(first[random.below(rank)])
        elif rank > 100 and random.chance(0.12):  # an earlier word with an ending
            phones = first[random.below(rank)] + syllable(random)
        else:
            longest = 1 + min(3, int(math.log10(rank + 1)))
            phones = []
            for _ in range(1 + random.below(longest)):
                phones += syllable(random)
        first.append(phones)
    for phones in first:
        variants = [phones]
        if random.chance(0.06):
            other = list(phones)
            other[random.below(len(other))] = VOWELS[random.below(16)]
            variants.append(other)
        yield variants


def sentences(num_words, num_tokens, random):
    """Yields sentences as lists of word ranks."""
    zipf, favourites = Zipf(num_words), Zipf(60)
    made = 0
    while made < num_tokens:
        sentence, previous = [], num_words
        for _ in range(3 + random.below(24)):
            if random.chance(0.75):  # the k-th most likely follower of `previous`: a Zipf rank, a fixed function of k and `previous`
                choice = Random(previous * 1000003 + favourites.draw(random))
                choice.next()
                previous = zipf.draw(choice)
            else:
                previous = zipf.draw(random)
            sentence.append(previous)
        made += len(sentence)
        yield sentence


class Model:
    """Interpolated 3-gram model. Histories and n-grams are tuples of names."""

    def __init__(self, words, text):
        self.counts = [collections.Counter() for _ in range(3)]
        for sentence in text:
            names = [BOS] + [words[rank] for rank in sentence] + [EOS]
            for order in range(1, 4):
                self.counts[order - 1].update(zip(*(names[i:] for i in range(order))))
        del self.counts[0][(BOS,)]
        for word in words:  # every word of the vocabulary has a unigram
            self.counts[0].setdefault((word,), 1)
        trigrams = {ngram: count for ngram, count in self.counts[2].items() if count > 1}
        self.mass = [collections.Counter(), collections.Counter()]  # count of each history; probability mass of its n-grams
        self.kept = [collections.Counter(), collections.Counter()]
        for (u, v), count in self.counts[1].items():
            self.mass[0][(u,)] += count
            self.kept[0][(u,)] += count - DISCOUNT
        for (u, v, w), count in self.counts[2].items():
            self.mass[1][(u, v)] += count
        for (u, v, w), count in trigrams.items():
            self.kept[1][(u, v)] += count - DISCOUNT
        self.counts[2] = trigrams
        self.total = sum(self.counts[0].values()) + 1

    def backoff(self, history):
        level = len(history) - 1
        return 1 - self.kept[level][history] / self.mass[level][history] if self.kept[level][history] else 1

    def prob(self, ngram):
        if len(ngram) == 1:
            return self.counts[0][ngram] / self.total
        lower = self.prob(ngram[1:])
        history = ngram[:-1]
        return (self.counts[len(ngram) - 1][ngram] - DISCOUNT) / self.mass[len(ngram) - 2][history] + self.backoff(history) * lower

    def write(self, path):
        unigrams = dict.fromkeys(self.counts[0])
        levels = [[(BOS,), (UNK,)] + sorted(unigrams), sorted(self.counts[1]), sorted(self.counts[2])]
        self.counts[0][(UNK,)] = 1
        with open(path, "w", encoding="utf-8") as out:
            out.write("\\data\\\n")
            out.writelines(f"ngram {order}={len(ngrams)}\n" for order, ngrams in enumerate(levels, 1))
            for order, ngrams in enumerate(levels, 1):
                out.write(f"\n\\{order}-grams:\n")
                for ngram in ngrams:
                    log_prob = -99 if ngram == (BOS,) else math.log10(self.prob(ngram))
                    out.write(f"{log_prob:.6f}\t{' '.join(ngram)}")
                    if order < 3 and self.kept[order - 1][ngram]:
                        out.write(f"\t{math.log10(self.backoff(ngram)):.6f}")
                    out.write("\n")
            out.write("\n\\end\\\n")
        return [len(ngrams) for ngrams in levels]


def make_large_task():
    """Generates a task of 20,000 words unless it is there. Returns its files by name: tokens, lexicon, lm."""
    parts = {name: measure.BUILD / "task" / f"{name}.{suffix}" for name, suffix in (("tokens", "txt"), ("lexicon", "txt"), ("lm", "arpa"))}
    if not parts["lm"].exists() or parts["lm"].stat().st_mtime < pathlib.Path(__file__).stat().st_mtime:
        print("making the large task", file=sys.stderr)
        measure.run(sys.executable, __file__, parts["lm"].parent, "--words=20000", "--tokens=1500000")
    return parts


def make_sized_task(num_ngrams):
    """A language model of so many n-grams, counted on nothing: words with random followers. Words and lexicon are those of the large task."""
    parts = make_large_task()
    path = measure.BUILD / "task" / f"lm{num_ngrams}.arpa"
    if not path.exists() or path.stat().st_mtime < pathlib.Path(__file__).stat().st_mtime:
        words = [line.split()[0] for line in open(parts["lexicon"], encoding="utf-8")]
        write_ngrams(list(dict.fromkeys(words)), num_ngrams, path)
    return {**parts, "lm": path}


def write_ngrams(words, num_ngrams, path):
    """Every word has the same number of followers, and every bigram followers of its second word, with random probabilities."""
    random, width = Random(7), max(1, round((num_ngrams / len(words)) ** 0.5) - 1)
    zipf = Zipf(len(words))
    followers = [sorted({zipf.draw(random) for _ in range(width)}) for _ in words]
    spread = itertools.cycle([random.below(100) / 40 for _ in range(9973)])
    draw = lambda count: f"{-0.7 - math.log10(count) - next(spread):.4f}"  # sums over all paths converge
    trigrams = [f"{words[u]} {words[v]} {words[w]}" for u in range(len(words)) for v in followers[u] for w in followers[v]]
    bigrams = [f"{words[u]} {words[v]}" for u in range(len(words)) for v in followers[u]]
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"\\data\\\nngram 1={len(words) + 3}\nngram 2={len(bigrams)}\nngram 3={len(trigrams)}\n\n\\1-grams:\n-99\t<s>\t-0.3\n-2\t</s>\n-5\t<unk>\n")
        out.writelines(f"{draw(len(words))}\t{word}\t-0.3\n" for word in words)
        out.write("\n\\2-grams:\n")
        out.writelines(f"{draw(width)}\t{ngram}\t-0.3\n" for ngram in bigrams)
        out.write("\n\\3-grams:\n")
        out.writelines(f"{draw(width)}\t{ngram}\n" for ngram in trigrams)
        out.write("\n\\end\\\n")


def write_strings(num_arcs, labels, path):
    """Strings of ten arcs from one start, as text for `compile`: labels of one in ten arcs are epsilon on one side."""
    random = Random(11)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(num_arcs // 10):
            at = 0
            for k in range(10):
                bits = random.next()
                ilabel, olabel = 1 + (bits >> 32) % labels, 1 + (bits >> 16 & 65535) % labels
                if bits % 10 == 0:
                    ilabel, olabel = (0, olabel) if bits & 1024 else (ilabel, 0)
                out.write(f"{at} {i * 10 + k + 1} {ilabel} {olabel} {(bits >> 11) % 64 / 16}\n")
                at = i * 10 + k + 1
            out.write(f"{at}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--words", type=int, default=20000)
    parser.add_argument("--tokens", type=int, default=1000000, help="words of the text on which the LM is counted")
    parser.add_argument("--seed", type=int, default=20111)
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    os.makedirs(arguments.folder, exist_ok=True)
    words = [f"w{rank + 1:05d}" for rank in range(arguments.words)]
    with open(os.path.join(arguments.folder, "tokens.txt"), "w", encoding="utf-8") as out:
        out.writelines(f"{token} {column}\n" for column, token in enumerate(["<blk>"] + CONSONANTS + VOWELS))
    with open(os.path.join(arguments.folder, "lexicon.txt"), "w", encoding="utf-8") as out:
        for word, variants in zip(words, pronunciations(arguments.words, random)):
            out.writelines(f"{word} {' '.join(phones)}\n" for phones in variants)
    model = Model(words, sentences(arguments.words, arguments.tokens, random))
    sizes = model.write(os.path.join(arguments.folder, "lm.arpa"))
    print(f"{arguments.words} words, n-grams {sizes}")


if __name__ == "__main__":
    main()
