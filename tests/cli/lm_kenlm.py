"""Compares `warpfst lm query` and `lm perplexity` with KenLM, word by word.

lm_kenlm.py generate SEED LM TEXT    writes a random 5-gram model that KenLM reads, and a text to score with it
lm_kenlm.py compare WARPFST LM TEXT  exits with 1 at the first difference
lm_kenlm.py compare-pruned ...       the same, except that KenLM's n-gram order may be higher: if `b c` was pruned but `a b c` was not, KenLM adds `b c` to
                                     its tables with the backed-off probability, and counts it as an n-gram of the model
"""
import collections
import json
import random
import subprocess
import sys


def generate(seed, lm_path, text_path):
    rng = random.Random(seed)
    order, words = 5, ["w%d" % i for i in range(3000)]
    weights = [1 / (i + 3) for i in range(len(words))]
    grams = [collections.OrderedDict() for _ in range(order + 1)]
    for word in ["<unk>", "<s>", "</s>"] + words:
        grams[1][(word,)] = 0
    sentences, successors = [], {}
    for _ in range(4000):  # words tend to follow their earlier successors, so that long n-grams repeat
        sentence = ["<s>"]
        for _ in range(rng.randrange(1, 14)):
            known = successors.setdefault(tuple(sentence[-2:]), [])
            if not known or rng.random() < 0.3:
                known.append(rng.choices(words, weights)[0])
            sentence.append(rng.choice(known))
        sentences.append(sentence + ["</s>"])
    for sentence in sentences:
        for n in range(2, order + 1):
            for i in range(len(sentence) - n + 1):
                gram = tuple(sentence[i : i + n])
                grams[n][gram] = grams[n].get(gram, 0) + 1
    for n in range(order, 1, -1):  # prune n-grams, except prefixes and suffixes of longer ones
        needed = set()
        if n < order:
            for gram in grams[n + 1]:
                needed.update((gram[:-1], gram[1:]))
        for gram in [g for g in grams[n] if g not in needed and rng.random() < 0.3]:
            del grams[n][gram]
    with open(lm_path, "w") as out:
        out.write("\\data\\\n" + "".join("ngram %d=%d\n" % (n, len(grams[n])) for n in range(1, order + 1)))
        for n in range(1, order + 1):
            out.write("\n\\%d-grams:\n" % n)
            lines = list(grams[n])
            if n > 1:
                rng.shuffle(lines)
            for gram in lines:
                p = -99 if gram == ("<s>",) else -rng.random() * (6 - n)
                bow = "" if n == order or gram[-1] == "</s>" or rng.random() < 0.2 else "\t%.7g" % (rng.random() * 1.3 - 1)
                out.write("%.7g\t%s%s\n" % (p, " ".join(gram), bow))
        out.write("\n\\end\\\n")
    with open(text_path, "w") as out:
        for sentence in rng.sample(sentences, 2500):
            noisy = [w if rng.random() > 0.15 else rng.choice(words + ["unknown", "<unk>"] * 300) for w in sentence[1:-1]]
            out.write(" ".join(noisy) + "\n")
        out.write("\n")


def compare(warpfst, lm_path, text_path, pruned=False):
    import kenlm

    model = kenlm.Model(lm_path)
    lines = [json.loads(line) for line in subprocess.check_output([warpfst, "lm", "query", lm_path, text_path, "--json"]).splitlines()]
    sentences = open(text_path).read().split("\n")[:-1]
    assert len(lines) == len(sentences) + 1, "%d lines of answers for %d sentences" % (len(lines), len(sentences))
    tokens = oovs = 0
    total = known = worst = 0.0
    orders = collections.Counter()
    for number, (sentence, line) in enumerate(zip(sentences, lines), 1):
        want = list(model.full_scores(sentence, bos=True, eos=True))
        assert len(want) == len(line["words"]), "line %d: %d words, %d scores" % (number, len(want), len(line["words"]))
        for (log10p, order, oov), got in zip(want, line["words"]):
            difference = abs(got["log10p"] - log10p)
            worst = max(worst, difference)
            same_order = got["order"] == order or (pruned and got["order"] < order)
            assert difference <= 1e-5 and same_order and got["oov"] == oov, "%s:%d: %s, KenLM: %s" % (text_path, number, got, (log10p, order, oov))
            tokens, oovs, total, known = tokens + 1, oovs + oov, total + log10p, known + (0 if oov else log10p)
            orders[order] += 1
        assert abs(line["perplexity"] / model.perplexity(sentence) - 1) < 1e-4, "line %d: perplexity" % number
    summary = json.loads(subprocess.check_output([warpfst, "lm", "perplexity", lm_path, text_path, "--json"]))
    assert lines[-1] == summary, "the totals of query and perplexity differ"
    assert summary["tokens"] == tokens and summary["oovs"] == oovs and summary["sentences"] == len(sentences), summary
    for name, want in (("perplexity", 10 ** (-total / tokens)), ("perplexity_without_oovs", 10 ** (-known / (tokens - oovs)))):
        assert abs(summary[name] / want - 1) < 1e-5, "%s: %s, KenLM: %s" % (name, summary[name], want)
    assert oovs > 0 and all(orders[n] > 100 for n in range(1, model.order + 1)), "the text tries too little: %s" % orders
    print("%d tokens, %d OOVs, by order %s: as KenLM, largest difference %.1e" % (tokens, oovs, dict(sorted(orders.items())), worst))


if __name__ == "__main__":
    if sys.argv[1] == "generate":
        generate(int(sys.argv[2]), *sys.argv[3:])
    else:
        compare(*sys.argv[2:], pruned=sys.argv[1] == "compare-pruned")
