#!/usr/bin/env python3
"""accuracy --data=FOLDER [--heads=phone,char,bpe] [--beam=15] [--max-active=7000] [--device=cpu] [--keep] [--record]

Word error rates that the scorers reach on the real CTC scores of examples/ctc, each alone and together, for phones, characters and byte-pair pieces. FOLDER has train_text and
the archives logp_HEAD.tar.xz (bpe: the first 400 utterances only).

  words     the 72,547 words of Debian's en-us model and those of the training text. Phones of words: CMU's dictionary, and examples/ctc/lexicon_phone.txt; characters and pieces:
            spelled
  models    en-us, pruned; a Kneser-Ney 3-gram model and recurrent models of the training text (2,500 sentences); mixtures. A tenth of the text is held out for choosing the weights
            and the recurrent model (maximum likelihood); another twentieth decides when training ends. The n-gram model of the final mixture is of the whole text
  scale     the acoustic scale of a head is the best of SCALES on the first 200 utterances, with the mixture in the graph
  systems   models in the graph; on the fly, with unigrams in the graph; the recurrent model in a second pass on 1000-best lists and lattices; minimum Bayes risk words; boosts
            of the words that the text has much more often than en-us
"""
import argparse
import collections
import math
import pathlib
import random
import shutil
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import hybrid_graphs
import measure
import ngram_mix
import text_models
from measure import BUILD, WARPFST

WORK, CTC = BUILD / "accuracy", measure.ROOT / "examples" / "ctc"
MODELS = {"sigmoid 50": ["--hidden=50"], "sigmoid 100": ["--hidden=100"], "sigmoid 100, MaxEnt 3": ["--hidden=100", "--maxent-cells=5000000"], "gru 100": ["--layer=gru", "--hidden=100"]}
SCALES = (0.5, 0.7, 0.9, 1.1)
TUNED, FIRST = 200, 400  # utterances
LATTICE_BEAM = 8
NUM_BOOSTS, BOOST = 100, 1.0
LOG_LINEAR_SHARE = 0.3  # of the recurrent model; not tuned


def write_lines(path, sentences):
    path.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")


def upper(arpa, path):
    """Copies an ARPA file with words in capital letters, as they are in examples/ctc. Words that become equal keep the first n-gram, which is the more probable one of none or few."""
    model, grams = ngram_mix.Model(arpa), {}
    for gram, p in model.p.items():
        grams.setdefault(tuple(word if word[0] == "<" else word.upper() for word in gram), p)
    text_models.write(grams.items(), path)


class Models:
    """Text and models of all heads."""

    def __init__(self, folder, keep):
        sentences = [line.split() for line in open(folder / "train_text", encoding="utf-8")]
        random.Random(1).shuffle(sentences)
        tenth = len(sentences) // 10
        parts = {"held-out": sentences[:tenth], "valid": sentences[tenth:tenth + tenth // 2], "train": [*sentences[tenth + tenth // 2:], ["<unk>"]]}  # so that recurrent models have <unk>, for histories with other words
        for name, part in parts.items():
            write_lines(WORK / name, part)
        self.en_us = WORK / "en-us.arpa"
        if not (keep and self.en_us.exists()):
            pruned = WORK / "pruned.arpa"
            measure.run(WARPFST, "lm", "prune", f"{hybrid_graphs.MODEL}/en-us.lm.bin", "--threshold=1e-7", "-q", "-o", pruned)
            upper(pruned, self.en_us)
        self.words = self.read_words()
        small = text_models.text_ngrams(parts["train"], self.words, WORK / "part.arpa")
        self.rnns = text_models.train(WORK, MODELS, keep)
        self.held_out = text_models.Streams(WORK / "held-out", {"en-us": self.en_us, "text": small}, self.rnns)
        fit, perplexity = self.held_out.fit, self.held_out.perplexity
        self.best = min(self.rnns, key=lambda name: perplexity(fit("en-us", "text", name)))
        self.shares = fit("en-us", "text", self.best)
        self.rnn, self.rnn_share = self.rnns[self.best], self.shares[self.best]
        self.text = text_models.text_ngrams(sentences, self.words, WORK / "text.arpa")
        self.mixed = text_models.mixture(self.en_us, self.text, fit("en-us", "text")["en-us"], WORK / "mixed.arpa")
        self.unigrams = WORK / "unigrams.arpa"
        measure.run(WARPFST, "lm", "prune", self.mixed, "--max-total=1", "-q", "-o", self.unigrams)
        self.chained = text_models.difference(self.mixed, self.unigrams, WORK / "chained.wlm")
        self.boosts = self.write_boosts(sentences)

    def read_words(self):
        """Writes the lexicon of phones; returns its words."""
        pronunciations = collections.defaultdict(list)
        for path, is_upper in ((CTC / "lexicon_phone.txt", True), (pathlib.Path(hybrid_graphs.MODEL) / "cmudict-en-us.dict", False)):
            for line in open(path, encoding="utf-8"):
                word, *phones = line.split()
                word = word if is_upper else word.split("(")[0].upper()
                if phones not in pronunciations[word]:
                    pronunciations[word].append(phones)
        own = {line.split()[0] for line in open(CTC / "lexicon_phone.txt", encoding="utf-8")}
        known = {gram[0] for gram in ngram_mix.Model(self.en_us).p if len(gram) == 1}
        words = {word for word in pronunciations if word in own or word in known}
        write_lines(WORK / "lexicon.txt", ([word, *phones] for word in sorted(words) for phones in pronunciations[word]))
        return words

    def write_boosts(self, sentences):
        """Words that the text has at least five times, by the ratio of their frequencies in the text and in en-us."""
        counts = collections.Counter(word for words in sentences for word in words)
        model = ngram_mix.Model(self.en_us)
        ratio = {word: math.log10(count / counts.total()) - max(model.log10((word,)), -7) for word, count in counts.items() if count >= 5}
        path = WORK / "boosts.txt"
        path.write_text("".join(f"{word} {BOOST}\n" for word in sorted(ratio, key=ratio.get, reverse=True)[:NUM_BOOSTS]), encoding="utf-8")
        return path

    def rnn_flags(self, interpolation="linear"):
        """Of the recurrent model, where the costs of words are those of the mixture."""
        share, unknown = (self.rnn_share, 1e6) if interpolation == "linear" else (LOG_LINEAR_SHARE, self.unknown_cost())
        return [*text_models.rnn_flags(self.rnn, self.mixed, share, interpolation, unknown), f"--rnnlm-small={self.mixed}", "--history-merge-order=4"]

    def unknown_cost(self):
        """For log-linear interpolation: the cost on held-out text of a word that the recurrent model lacks, equal for all such words."""
        stream = self.held_out.of[self.best]
        return -math.log(sum(p == 0 for p in stream) / len(stream) / (len(self.words) - sum(1 for _ in open(self.rnn, encoding="utf-8"))))

    def table(self):
        rows = [["en-us", "", f"{self.held_out.perplexity({'en-us': 1.0}):.1f}"]]
        for names in [("en-us", "text"), ("en-us", self.best)] + [("en-us", "text", name) for name in self.rnns]:
            shares = self.held_out.fit(*names)
            rows.append([" + ".join(names), " ".join(f"{share:.2f}" for share in shares.values()), f"{self.held_out.perplexity(shares):.1f}"])
        return rows


class Head:
    """Scores of one kind of tokens, and the systems to run on them."""

    def __init__(self, name, folder, models, options):
        self.name, self.models, self.options = name, models, options
        self.scores = decode_tasks.unpacked(folder / f"logp_{name}.tar.xz")
        self.refs = [line for line in open(CTC / "text", encoding="utf-8") if (pathlib.Path(self.scores) / f"{line.split()[0]}.npy").exists()]
        self.scale, self.number = None, 0

    def take(self, count):
        """Keeps the first utterances only."""
        folder = WORK / f"{self.name}.first{count}"
        folder.mkdir(exist_ok=True)
        for line in self.refs[:count]:
            shutil.copy(pathlib.Path(self.scores) / f"{line.split()[0]}.npy", folder)
        self.scores, self.refs = folder, self.refs[:count]

    def write_reference(self):
        path = WORK / f"ref.{self.name}"
        path.write_text("".join(self.refs), encoding="utf-8")
        return path

    def graph(self, lm, *flags):
        tokens, graph, words = f"--tokens={CTC / f'tokens_{self.name}.txt'}", WORK / f"{self.name}.wfst", WORK / "words.txt"
        lexicon = {"phone": [f"--lexicon={WORK / 'lexicon.txt'}"], "char": ["--unknown=skip"], "bpe": ["--unknown=skip", f"--merges={CTC / 'bpe_merges.txt'}"]}[self.name]
        if lm == CTC / "lm3.arpa.gz":
            lexicon = [f"--lexicon={CTC / f'lexicon_{self.name}.txt'}"]
        if not any(flag.startswith("--topology") for flag in flags):
            flags = (*flags, "--topology=compact")
        measure.run(WARPFST, "mkgraph", "ctc", tokens, *lexicon, f"--lm={lm}", "-q", f"--words-out={words}", "-o", graph, *flags)
        return graph, words

    def decode(self, graph, words, *flags, scale=None):
        self.number += 1
        out = WORK / f"hyp.{self.name}.{self.number}"
        measure.run(WARPFST, "decode", graph, self.scores, f"--words={words}", f"--acoustic-scale={scale or self.scale}", f"--beam={self.options.beam}", f"--max-active={self.options.max_active}", f"--device={self.options.device}", "-o", out, *flags)
        return out

    def errors(self, hyp, chosen=slice(None)):
        """Word error rate of the chosen utterances."""
        words = {line.split()[0]: line.split()[1:] for line in open(hyp, encoding="utf-8")}
        pairs = [(line.split()[1:], words.get(line.split()[0], [])) for line in self.refs[chosen]]
        return 100 * sum(measure.distance(ref, found) for ref, found in pairs) / sum(len(ref) for ref, _ in pairs)

    def choose_scale(self, graph, words):
        found = {scale: self.errors(self.decode(graph, words, scale=scale), slice(TUNED)) for scale in SCALES}
        self.scale = min(found, key=found.get)

    def mbr(self, lattices, words):
        out = WORK / f"hyp.{self.name}.mbr"
        measure.run(WARPFST, "lattice", "mbr", lattices, f"--acoustic-scale={self.scale}", f"--words={words}", "-o", out)
        return out

    def second_passes(self, lattices, words):
        """Of the recurrent model, beside the mixture and alone."""
        for share, what in ((self.models.rnn_share, "mixture and recurrent model"), (1.0, "recurrent model alone")):
            out = {kind: WORK / f"hyp.{self.name}.{kind.replace(' ', '')}.{share:.2f}.txt" for kind in ("1000 best", "lattices")}
            text_models.rescore(lattices, self.models.rnn, self.models.mixed, share, words, self.scale, LATTICE_BEAM, out)
            for kind, hyp in out.items():
                yield f"{what}, second pass, {kind}", hyp
            yield f"{what}, second pass, lattices, minimum Bayes risk", self.mbr(out["lattices"].with_suffix(".ark"), words)

    def systems(self):
        """Names and hypotheses."""
        m, lattices = self.models, WORK / "lattices.ark"
        yield "3-gram of KenLM (lm3.arpa.gz) in the graph", self.decode(*self.graph(CTC / "lm3.arpa.gz"))
        for what, model in (("text", m.text), ("en-us", m.en_us), ("mixture", m.mixed)):
            yield f"{what} in the graph", self.decode(*self.graph(model))
        graph, words = self.graph(m.unigrams, "--backoff=failure")
        mixture = f"--lm={m.chained}"
        yield "unigrams in the graph", self.decode(graph, words)
        yield "mixture on the fly", self.decode(graph, words, mixture, f"--lattice={lattices}", f"--lattice-beam={LATTICE_BEAM}", "--unaligned-lattice")
        yield "mixture on the fly, minimum Bayes risk", self.mbr(lattices, words)
        yield from self.second_passes(lattices, words)
        yield "mixture and recurrent model on the fly", self.decode(graph, words, mixture, *m.rnn_flags())
        yield "mixture and recurrent model on the fly, log-linear", self.decode(graph, words, mixture, *m.rnn_flags("log_linear"))
        yield "mixture and boosts on the fly", self.decode(graph, words, mixture, f"--boost={m.boosts}")
        yield "mixture, recurrent model and boosts on the fly", self.decode(graph, words, mixture, *m.rnn_flags(), f"--boost={m.boosts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--heads", default="phone,char,bpe")
    parser.add_argument("--beam", type=float, default=15)
    parser.add_argument("--max-active", type=int, default=7000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", action="store_true", help="reuse recurrent models and the pruned en-us model of an earlier run")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    models = Models(options.data, options.keep)
    rows = models.table()
    print(measure.table(["models", "shares", "perplexity of held-out text"], rows) + "\n", flush=True)
    figures = [("accuracy, held-out perplexity", f"{name}{f', shares {shares}' if shares else ''}", value, "perplexity") for name, shares, value in rows]
    for name in options.heads.split(","):
        head, rows = Head(name, options.data, models, options), []
        head.choose_scale(*head.graph(models.mixed))
        for system, hyp in head.systems():
            first, every = (f"{head.errors(hyp, chosen):.2f}" for chosen in (slice(FIRST), slice(None)))
            rows.append([system, first, every])
            print(name, system, first, every, file=sys.stderr)
            setup = f"{name}, {system}, acoustic scale {head.scale}, beam {options.beam:g}, max_active {options.max_active}"
            figures += [("accuracy, WER", f"{setup}, first {FIRST} utterances", first, "%")] + [("accuracy, WER", f"{setup}, {len(head.refs)} utterances", every, "%")] * (len(head.refs) > FIRST)
        print(f"{name}, acoustic scale {head.scale}\n\n" + measure.table(["system", f"WER, first {FIRST}", f"WER, {len(head.refs)}"], rows) + "\n", flush=True)
    if options.record:
        measure.record(figures, "./run bench accuracy", machine=measure.machine() if options.device == "cpu" else measure.machine_with_gpu())


if __name__ == "__main__":
    main()
