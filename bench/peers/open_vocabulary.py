"""open_vocabulary.py - `compat --part=open`: word error rate, recall of words that the language model lacks, and processor time, of ways to recognise any word.

All models are estimated from DATA/train_text alone: the words' 3-gram (examples/ctc/lm3.arpa.gz), n-grams of tokens, and n-grams of the tokens of words (each word of that text once).
The acoustic model, too, was trained on these sentences, and hardly spells words that are not in them. So there is a second round, in which the language models lack every second of the
words that are at most five times in the text: the 3-gram without them, the others of the text without their sentences.
The options of each way are chosen on one half of the speakers and used for the other half, and the other way round; the rates are those of both halves together. The time is that
of one processor with the options that are best for all.
"""
import collections
import itertools
import math
import time

import measure
import ngram_mix
import pyctcdecode
import text_models

import warpfst as wf
import warpfst.compat

CTC = measure.ROOT / "examples" / "ctc"
ORDER = {"char": 8, "bpe": 6}  # of the n-grams of tokens
TOKEN_SEARCH = {"beam": 8, "min_active": 0}


def write_model(sentences, tokens, order, name):
    """Estimates an n-gram model of token sequences; returns the path of its ARPA file."""
    grams = ngram_mix.estimate(sentences, len(tokens) + 1, {*tokens, ngram_mix.START, ngram_mix.END}, order)
    unseen = [token for token in tokens if (token,) not in grams]
    left = max(1e-6, 1 - sum(p for gram, p in grams.items() if len(gram) == 1))
    grams.update({(token,): left / len(unseen) for token in unseen})
    grams[(ngram_mix.START,)] = 1.0
    return text_models.write(((gram, math.log10(p)) for gram, p in grams.items()), measure.BUILD / f"{name}.arpa")


def rare_words(lines, references):
    """Every second of the words that are one to five times in the lines, and that somebody says."""
    counts = collections.Counter(word for words in lines for word in words)
    return set(sorted(word for word in {word for words in references for word in words} if 0 < counts[word] <= 5)[::2])


class Setting:
    """What the ways share: scores, models, and which words are unknown."""

    def __init__(self, speech, head, data, removes):
        self.speech, self.head = speech, head
        self.tokens = [line.split()[0] for line in (CTC / f"tokens_{head}.txt").read_text(encoding="utf-8").splitlines()]
        pieces = {line.split()[0]: line.split()[1:] for line in (CTC / f"lexicon_{head}.txt").read_text(encoding="utf-8").splitlines()}
        lines = [line.split() for line in (data / "train_text").read_text(encoding="utf-8").splitlines()]
        removed = rare_words(lines, speech.references) if removes else set()
        self.known = {word for words in lines for word in words} - removed
        lines = [words for words in lines if removed.isdisjoint(words)]
        texts = [[token for word in words for token in pieces[word]] for words in lines]
        self.token_lm = wf.LM.convert(write_model(texts, self.tokens[1:], ORDER[head], f"{head}_texts"), measure.BUILD / f"{head}_texts.wlm")
        self.spelling_lm = wf.LM.read(write_model([pieces[word] for word in sorted(self.known)], self.tokens[1:], 4, f"{head}_words"))
        self.word_lm_path = measure.BUILD / "words.arpa"
        vocabulary = measure.BUILD / "words.txt"
        vocabulary.write_text("".join(f"{word}\n" for word, _ in wf.LM.read(CTC / "lm3.arpa.gz").words if word not in removed), encoding="utf-8")
        measure.run(measure.WARPFST, "lm", "prune", CTC / "lm3.arpa.gz", f"--vocabulary={vocabulary}", "-o", self.word_lm_path, "-q")
        self.word_lm = wf.LM.read(self.word_lm_path)
        speakers = sorted({key[:-4] for key in speech.keys})
        first = set(speakers[::2])
        self.halves = [[i for i, key in enumerate(speech.keys) if (key[:-4] in first) == half] for half in (True, False)]

    def errors(self, texts, chosen):
        return sum(measure.distance(self.speech.references[i], texts[i].split()) for i in chosen)

    def unknown(self, texts):
        """(unknown words found, unknown words said, others that were found in their place)."""
        found = said = false = 0
        for words, text in zip(self.speech.references, texts):
            wanted, got = (collections.Counter(word for word in each if word not in self.known) for each in (words, text.split()))
            found, said = found + sum((wanted & got).values()), said + sum(wanted.values())
            false += sum(got.values()) - sum((wanted & got).values())
        return found, said, false


def decoded(decoder, setting):
    return [result.text for result in decoder.decode(setting.speech.scores)]


def search(setting, graph, join=True, **options):
    """A way that uses a graph, whose words are tokens with `join`. `options`: lists of values."""

    def make(**values):
        lm = wf.Scorer.from_lm(setting.token_lm, graph.words, lm_scale=values.pop("lm_scale")) if "lm_scale" in values else None
        decoder = wf.Decoder(graph, lm=lm, join=join, blank=0, num_threads=1, **values)
        return lambda: decoded(decoder, setting)

    return make, options


def words_graph(setting, **options):
    merges = {"merges": str(CTC / "bpe_merges.txt")} if setting.head == "bpe" else {}
    return wf.build_ctc_graph(CTC / f"tokens_{setting.head}.txt", lm=setting.word_lm, topology="compact", **merges, **options)


def spelled(setting):
    base = words_graph(setting, classes="<unk>")

    def make(word_cost, **values):
        return search(setting, base.add_spelling(setting.spelling_lm, word_cost=word_cost))[0](**values)

    return make, {"word_cost": [0, -4], "beam": [12], "acoustic_scale": [1.0, 1.4], "word_score": [0, 1]}


def with_hypotheses(setting, build):
    """pyctcdecode, or the same search of warpfst."""
    decoder = build(setting.speech.labels(), str(setting.word_lm_path))

    def make(**values):
        decoder.reset_params(**values)
        return lambda: [decoder.decode(scores) for scores in setting.speech.scores]

    return make, {"alpha": [0.4, 0.6, 0.8], "beta": [1.5]}


def ways(setting):
    tokens = wf.build_ctc_graph(CTC / f"tokens_{setting.head}.txt")
    token_options = {"lm_scale": [0.8, 1.1], "word_score": [0, 0.7, 1.4]}
    fast = {name: [value] for name, value in TOKEN_SEARCH.items()}
    return {
        "no model": lambda: search(setting, tokens),
        "no model, beam 8, min_active 0": lambda: search(setting, tokens, **fast),
        f"{ORDER[setting.head]}-gram of tokens, beam 8, min_active 0": lambda: search(setting, tokens, **token_options, **fast),
        f"{ORDER[setting.head]}-gram of tokens, beam 5, min_active 0": lambda: search(setting, tokens, **token_options, beam=[5], min_active=[0]),
        "3-gram of words, graph": lambda: search(setting, words_graph(setting), join=False, beam=[12], acoustic_scale=[1.0, 1.4], word_score=[0, 1]),
        "3-gram of words, graph, unknown words spelled": lambda: spelled(setting),
        "3-gram of words, compat": lambda: with_hypotheses(setting, warpfst.compat.build_ctcdecoder),
        "3-gram of words, pyctcdecode 0.5.0": lambda: with_hypotheses(setting, pyctcdecode.build_ctcdecoder),
    }


def measured(setting, make, options, rounds):
    """Texts with options chosen on the other half, and processor seconds with those that are best for all."""
    tried = [(make(**values), None) for values in (dict(zip(options, each)) for each in itertools.product(*options.values()))]
    tried = [(work, work()) for work, _ in tried]
    texts = [""] * len(setting.speech.references)
    for half, other in zip(setting.halves, reversed(setting.halves)):
        _, best = min(tried, key=lambda one: setting.errors(one[1], other))
        for i in half:
            texts[i] = best[i]
    work, _ = min(tried, key=lambda one: setting.errors(one[1], range(len(texts))))
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return texts, min(seconds)


def run(speech_of, data, rounds):
    """Prints a table; returns figures for measure.record."""
    rows, figures = [], []
    for head, removes in itertools.product(("char", "bpe"), (False, True)):
        speech = speech_of(data, head)
        setting = Setting(speech, head, data, removes)
        task = f"{head}, without rare words" if removes else head
        for name, way in ways(setting).items():
            texts, seconds = measured(setting, *way(), rounds)
            rate, (found, said, false) = speech.error_rate(texts), setting.unknown(texts)
            rows.append([task, name, f"{rate:.2f}", f"{found} of {said}", false, f"{seconds:.3f}"])
            print(f"  {rows[-1]}", flush=True)
            setup = f"{task}, {name}, {len(texts)} utterances, {sum(map(len, speech.scores))} frames"
            figures += [("open vocabulary", setup, f"{rate:.2f}", "% WER"), ("open vocabulary", setup, measure.figure(seconds), "s")]
            figures += [("open vocabulary", setup, f"{found}", f"unknown words found, of {said}"), ("open vocabulary", setup, f"{false}", "false unknown words")]
    print(measure.table(["task", "way", "WER", "unknown words found", "false ones", "s"], rows))
    return figures
