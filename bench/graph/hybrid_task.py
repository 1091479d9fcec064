#!/usr/bin/python3
"""hybrid_task.py FOLDER --size=20k|medium|full

Makes the four transducers of a hybrid graph from Debian's pocketsphinx-en-us, as AT&T text with numeric labels, for `./run bench graph`.

  G  the trigram model: one state per history; back-off arcs read #0; for the smaller sizes pruned by weighted difference, with renormalised back-offs
  L  the lexicon: position-dependent phones, silence between words, #1 ... for words with the same base phones; passes #0 through
  C  triphones: states are (left phone, phone that waits for its right context); writes HMM types
  H  three arcs per HMM type, labels senone + 1; no self-loops, which are added last

Costs: -ln P_LM - (ln word insertion + ln transitions + ln silence) / LM weight. Also writes info.txt: number of senones, number of disambiguation
symbols. Needs numpy.
"""
import argparse
import collections
import math
import pathlib
import subprocess

import numpy as np

MODEL = pathlib.Path("/usr/share/pocketsphinx/model/en-us")
SIZES = {"20k": (20000, 1e-6), "medium": (None, 1e-7), "full": (None, 0.0)}  # words, threshold
LM_WEIGHT, WORD_INSERTION, SILENCE = 6.5, 0.65, 0.005
POSITIONS = "ibes"  # internal, begin, end, single: the order in which other positions are tried for a missing triphone
LOG_BASE = math.log(1.0001)


# --- language model: the trie of sphinx_lm_convert. Values are logarithms to base 1.0001; the words of an n-gram are in reverse order ---

def bit_fields(data, count, widths):
    """Reads `count` consecutive records of bit fields, lowest bits first; returns an array for each field."""
    buffer = np.concatenate([np.frombuffer(data, np.uint8), np.zeros(16, np.uint8)])
    start = np.arange(count, dtype=np.int64) * sum(widths)
    fields = []
    for width in widths:
        value = np.zeros(count, np.uint64)
        for byte in range(8):
            value |= buffer[(start >> 3) + byte].astype(np.uint64) << np.uint64(8 * byte)
        fields.append((value >> (start & 7).astype(np.uint64) & np.uint64((1 << width) - 1)).astype(np.int64))
        start = start + width
    return fields


class Trigrams:
    """words; natural logarithms p1, b1 by word; bigrams h, w, p2, b2 sorted by (h, w); trigrams g, h3, w3, p3."""

    def __init__(self, path):
        data, at = path.read_bytes(), len(b"Trie Language Model")

        def take(kind, count):
            nonlocal at
            array = np.frombuffer(data, kind, count, at)
            at += array.nbytes
            return array

        order = int(take("u1", 1)[0])
        assert order == 3
        n1, n2, n3 = (int(n) for n in take("<u4", order))
        take("<i4", 1)
        tables = take("<f4", 3 * 65536).astype(np.float64).reshape(3, 65536) * LOG_BASE
        unigrams = take(np.dtype([("p", "<f4"), ("b", "<f4"), ("next", "<u4")]), n1 + 1)
        word_bits, next_bits = n1.bit_length(), n3.bit_length()
        middle = take("u1", ((1 + n2) * (word_bits + 32 + next_bits) + 7) // 8 + 8)
        last = take("u1", ((1 + n3) * (word_bits + 16) + 7) // 8 + 8)
        self.words = [word.decode() for word in data[at + 4:].split(b"\0")[:-1]]
        self.p1, self.b1 = (unigrams[field][:-1].astype(np.float64) * LOG_BASE for field in "pb")
        h, back_off, prob, following = bit_fields(middle.tobytes(), n2 + 1, (word_bits, 16, 16, next_bits))
        self.count = n1
        first = unigrams["next"].astype(np.int64)
        reachable = first[-1]  # the header may count more
        w = np.repeat(np.arange(n1), np.diff(first))
        h, back_off, prob = h[:reachable], back_off[:reachable], prob[:reachable]
        g, prob3 = bit_fields(last.tobytes(), n3, (word_bits, 16))
        parent = np.repeat(np.arange(reachable), np.diff(np.append(following[:reachable], following[reachable] or n3)))
        self.g, self.h3, self.w3, self.p3 = g[:len(parent)], h[parent], w[parent], tables[2][prob3[:len(parent)]]
        order = np.argsort(h * n1 + w, kind="stable")
        self.h, self.w, self.p2, self.b2 = h[order], w[order], tables[0][prob[order]], tables[1][back_off[order]]

    def find(self, h, w):
        """Indices of bigrams; -1: not in the model."""
        keys, key = self.h * self.count + self.w, h * self.count + w
        at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[at] == key, at, -1)


def prune(lm, num_words, threshold, in_lexicon, bos, eos):
    """Returns masks of the words, bigrams and trigrams to keep, by weighted difference (Seymore & Rosenfeld 1996) from backing off."""
    keep = in_lexicon.copy()
    if num_words is not None:
        best = np.argsort(-np.where(in_lexicon, lm.p1, -200), kind="stable")[:num_words]
        keep[:] = False
        keep[best] = True
    keep[bos] = keep[eos] = True
    p_history = np.where(np.arange(lm.count) == bos, math.log(10) * -1.1, lm.p1)
    context, lower = lm.find(lm.g, lm.h3), lm.find(lm.h3, lm.w3)
    p_lower = np.where(lower >= 0, lm.p2[lower], lm.p1[lm.w3] + lm.b1[lm.h3])
    gain3 = np.exp(lm.p2[context] + p_history[lm.g] + lm.p3) * (lm.p3 - p_lower - lm.b2[context])
    keep3 = keep[lm.g] & keep[lm.h3] & keep[lm.w3] & (context >= 0) & (lm.g != eos) & (lm.h3 != eos) & (lm.w3 != bos)
    gain2 = np.exp(p_history[lm.h] + lm.p2) * (lm.p2 - lm.p1[lm.w] - lm.b1[lm.h])
    keep2 = keep[lm.h] & keep[lm.w] & (lm.h != eos) & (lm.w != bos)
    if threshold:
        keep3 &= gain3 > threshold
        needed = np.zeros(len(lm.h), bool)
        needed[context[keep3]] = True
        keep2 &= needed | (gain2 > threshold)
    return keep, keep2, keep3


def write_grammar(lm, keep, keep2, keep3, labels, backoff_label, bos, eos, path):
    """Writes G. State 0 is the empty history, followed by histories of one word and of two words."""
    g, h3, w3, p3 = lm.g[keep3], lm.h3[keep3], lm.w3[keep3], np.exp(lm.p3[keep3])
    lm.h, lm.w, lm.p2, lm.b2 = lm.h[keep2], lm.w[keep2], lm.p2[keep2], lm.b2[keep2]
    h, w, p2 = lm.h, lm.w, np.exp(lm.p2)
    p1 = np.where(keep, np.exp(lm.p1), 0)
    p1[bos] = 0
    p1 /= p1.sum()
    rest = lambda used, lower: np.maximum(1 - used, 1e-4) / np.maximum(1 - lower, 1e-4)
    b1 = rest(np.bincount(h, p2, lm.count), np.bincount(h, p1[w], lm.count))
    context, lower = lm.find(g, h3), lm.find(h3, w3)
    p_lower = np.where(lower >= 0, p2[lower], p1[w3] * b1[h3])
    b2 = rest(np.bincount(context, p3, len(h)), np.bincount(context, p_lower, len(h)))
    one, two = np.full(lm.count, 0), np.full(len(h), -1)
    histories = np.unique(np.append(h, bos))
    one[histories] = 1 + np.arange(len(histories))
    pairs = np.unique(context)
    two[pairs] = 1 + len(histories) + np.arange(len(pairs))
    after2 = np.where(two >= 0, two, one[w])
    after3 = np.where(lower >= 0, after2[lower], one[w3])
    insertion = -math.log(WORD_INSERTION) / LM_WEIGHT
    words = np.flatnonzero(keep)
    words = words[(words != bos) & (words != eos)]
    go2, go3 = w != eos, w3 != eos
    blocks = [  # source, next, input, output, cost
        (np.zeros(len(words), int), one[words], labels[words], labels[words], insertion - np.log(p1[words])),
        (one[histories], np.zeros(len(histories), int), backoff_label, 0, -np.log(b1[histories])),
        (one[h[go2]], after2[go2], labels[w[go2]], labels[w[go2]], insertion - np.log(p2[go2])),
        (two[pairs], one[w[pairs]], backoff_label, 0, -np.log(b2[pairs])),
        (two[context[go3]], after3[go3], labels[w3[go3]], labels[w3[go3]], insertion - np.log(p3[go3])),
    ]
    columns = [np.concatenate([np.broadcast_to(block[i], block[0].shape) for block in blocks]) for i in range(5)]
    order = np.argsort(np.where(columns[0] == one[bos], -1, columns[0]), kind="stable")
    with open(path, "w", encoding="ascii") as file:
        file.writelines("%d %d %d %d %.5f\n" % line for line in zip(*(column[order].tolist() for column in columns)))
        ends = [([0], [p1[eos]]), (one[h[~go2]], p2[~go2]), (two[context[~go3]], p3[~go3])]
        for states, costs in ends:
            file.writelines("%d %.5f\n" % line for line in zip(np.asarray(states).tolist(), (-np.log(costs)).tolist()))


# --- lexicon and acoustic model ---

def read_lexicon(path):
    lexicon = collections.defaultdict(list)
    for line in open(path, encoding="utf-8"):
        word, *phones = line.split()
        if word.endswith(")") and "(" in word[1:]:
            word = word[:word.rindex("(")]
        if phones and phones not in lexicon[word]:
            lexicon[word].append(phones)
    return lexicon


def with_positions(phones):
    if len(phones) == 1:
        return [phones[0] + "_s"]
    return [phones[0] + "_b", *(phone + "_i" for phone in phones[1:-1]), phones[-1] + "_e"]


def write_lexicon(lexicon, words, phones, backoff_label, path):
    """Writes L and returns the number of disambiguation symbols. Words are distinguished by base phones, because phones of different positions can share an HMM."""
    entries = [(word, pron) for word in words for pron in lexicon[word]]
    times = collections.Counter(tuple(pron) for _, pron in entries)
    prefixes = {pron[:i] for pron in times for i in range(1, len(pron))}
    seen, disambig, silence = collections.Counter(), len(phones), phones["SIL"]
    num_states = 3  # 0 start, 1 between words, 2 end
    with open(path, "w", encoding="ascii") as file:
        cost = -math.log(SILENCE) / LM_WEIGHT
        file.write(f"0 1 {silence} 0\n1 1 {silence} 0 {cost:.5f}\n1 2 {silence} 0\n1 1 {disambig} {backoff_label}\n")
        for word, pron in entries:
            labels, key = [phones[phone] for phone in with_positions(pron)], tuple(pron)
            if times[key] > 1 or key in prefixes:
                seen[key] += 1
                labels.append(disambig + seen[key])
            states = [1, *range(num_states, num_states + len(labels) - 1), 1]
            num_states += len(labels) - 1
            file.writelines(f"{states[i]} {states[i + 1]} {label} {words[word] if i == 0 else 0}\n" for i, label in enumerate(labels))
        file.write("2\n")
    return max(times.values()) + 1


class AcousticModel:
    """HMM types (base phone, three senones) by window, from the text form of the model definition; transition costs."""

    def __init__(self, folder, scratch):
        text = scratch / "mdef.txt"
        subprocess.run(["pocketsphinx_mdef_convert", "-text", folder / "mdef", text], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.types, self.bases, self.of_base, self.of_window = {}, [], {}, {}
        for line in open(text, encoding="ascii"):
            fields = line.split()
            if len(fields) != 10 or fields[-1] != "N":
                continue
            kind = self.types.setdefault(tuple(map(int, fields[5:9])), len(self.types) + 1)
            if fields[1] == "-":
                self.of_base[fields[0]] = kind
                if fields[0] != "SIL" and not fields[0].startswith("+"):
                    self.bases.append(fields[0])
            else:
                self.of_window[tuple(fields[:4])] = kind
        self.num_senones = max(max(kind[1:]) for kind in self.types) + 1
        data = (folder / "transition_matrices").read_bytes()
        at = data.index(b"endhdr\n") + 11  # after the magic number
        shape = np.frombuffer(data, "<i4", 4, at)
        counts = np.frombuffer(data, "<f4", shape[3], at + 16).reshape(shape[:3]).astype(np.float64)
        self.costs = -np.log(np.maximum(counts / counts.sum(-1, keepdims=True), 1e-30)) / LM_WEIGHT

    def find(self, base, left, right, position):
        """The HMM type of a triphone. For a missing one: the type of another position, then with silence outside the word, then of the base phone."""
        outer = ("SIL" if position in "bs" else left, "SIL" if position in "es" else right)
        windows = [(left, right, p) for p in position + POSITIONS] + [(*outer, p) for p in position + POSITIONS]
        return next((self.of_window[(base, *window)] for window in windows if (base, *window) in self.of_window), self.of_base[base])


def write_contexts(model, phones, num_disambig, path):
    """Writes C and returns the HMM types it uses. In state 1 a silence is still to be read; in (left, phone and position) that phone is."""
    silence, first_disambig = phones["SIL"], len(model.types) + 1
    states, used = collections.defaultdict(lambda: len(states) + 2), {model.of_base["SIL"]}
    arcs = [(0, 1, 0, silence), (1, 0, model.of_base["SIL"], 0)]
    arcs += [(0, states["SIL", base + "_" + p], 0, phones[base + "_" + p]) for base in model.bases for p in "bs"]
    for left in ["SIL", *model.bases]:
        for base in model.bases:
            for p in POSITIONS:
                if left == "SIL" and p in "ie":
                    continue
                source = states[left, base + "_" + p]
                for right in model.bases:
                    kind = model.find(base, left, right, p)
                    used.add(kind)
                    arcs += [(source, states[base, right + "_" + q], kind, phones[right + "_" + q]) for q in ("ie" if p in "bi" else "bs")]
                if p in "es":
                    kind = model.find(base, left, "SIL", p)
                    used.add(kind)
                    arcs.append((source, 1, kind, silence))
    arcs.sort()
    for state in [0, *range(2, len(states) + 2)]:
        arcs += [(state, state, first_disambig + i, len(phones) + i) for i in range(num_disambig)]
    with open(path, "w", encoding="ascii") as file:
        file.writelines("%d %d %d %d\n" % arc for arc in arcs)
        file.write("0\n")
    return used


def write_hmms(model, used, num_disambig, path):
    state = 1
    with open(path, "w", encoding="ascii") as file:
        for (matrix, *senones), kind in model.types.items():
            if kind not in used:
                continue
            costs = model.costs[matrix]
            file.write(f"0 {state} {senones[0] + 1} {kind}\n{state} {state + 1} {senones[1] + 1} 0 {costs[0, 1]:.5f}\n")
            file.write(f"{state + 1} 0 {senones[2] + 1} 0 {costs[1, 2] + costs[2, 3]:.5f}\n")
            state += 2
        file.writelines(f"0 0 {model.num_senones + 1 + i} {len(model.types) + 1 + i}\n" for i in range(num_disambig))
        file.write("0\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--size", choices=SIZES, default="20k")
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    lexicon, lm = read_lexicon(MODEL / "cmudict-en-us.dict"), Trigrams(MODEL / "en-us.lm.bin")
    bos, eos = lm.words.index("<s>"), lm.words.index("</s>")
    keep, keep2, keep3 = prune(lm, *SIZES[arguments.size], np.array([word in lexicon for word in lm.words]), bos, eos)
    words = {lm.words[i]: 0 for i in np.flatnonzero(keep) if i not in (bos, eos)}
    words = {word: i for i, word in enumerate(words, 1)}
    labels = np.array([words.get(word, -1) for word in lm.words])
    (folder / "words.txt").write_text("".join(f"{word} {i}\n" for word, i in [("<eps>", 0), *words.items(), ("#0", len(words) + 1)]), encoding="utf-8")
    write_grammar(lm, keep, keep2, keep3, labels, len(words) + 1, bos, eos, folder / "G.txt")
    model = AcousticModel(MODEL / "en-us", folder)
    names = ["<eps>", "SIL", *(base + "_" + p for base in model.bases for p in "bies")]
    phones = {name: i for i, name in enumerate(names)}
    num_disambig = write_lexicon(lexicon, words, phones, len(words) + 1, folder / "L.txt")
    used = write_contexts(model, phones, num_disambig, folder / "C.txt")
    write_hmms(model, used, num_disambig, folder / "H.txt")
    (folder / "info.txt").write_text(f"{model.num_senones} {num_disambig}\n", encoding="ascii")


if __name__ == "__main__":
    main()
