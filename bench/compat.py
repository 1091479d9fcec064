"""compat --data=FOLDER [--part=compat|open] [--rounds=3] [--record]

Compares warpfst.compat with pyctcdecode: word error rate, processor time and results of the same calls with the same arguments, one utterance per call, on one processor.
FOLDER has logp_char and logp_bpe: folders of .npy files, or .tar.xz archives of them. References and the language model are those of examples/ctc.
--part=open compares ways to recognise any word (open_vocabulary.py); FOLDER then has train_text, too.
"""
import argparse
import logging
import pathlib
import random
import statistics
import time
import warnings

import decode_tasks
import measure
import numpy
import open_vocabulary
import pyctcdecode

import warpfst.compat

CTC = measure.ROOT / "examples" / "ctc"
WORD_START = "\u2581"
NUM_HOTWORDS = 20


class Speech:
    """Scores, references, and labels in pyctcdecode's convention, of one kind of tokens."""

    def __init__(self, folder, head):
        tokens = [line.split()[0] for line in (CTC / f"tokens_{head}.txt").read_text(encoding="utf-8").splitlines()]
        space = " " if head == "char" else WORD_START
        self.labels = ["", *(space if token == WORD_START else token for token in tokens[1:])]
        archive = folder / f"logp_{head}.tar.xz"
        scores = decode_tasks.unpacked(archive) if archive.exists() else folder / f"logp_{head}"
        self.keys, self.scores, self.references = [], [], []
        for line in (CTC / "text").read_text(encoding="utf-8").splitlines():
            key, *words = line.split()
            path = pathlib.Path(scores, f"{key}.npy")
            if path.exists():
                self.keys.append(key)
                self.scores.append(numpy.load(path).astype(numpy.float32))
                self.references.append(words)
        if not self.scores:
            raise SystemExit(f"{folder}: no logp_{head}")
        self.num_words = sum(map(len, self.references))

    def error_rate(self, texts):
        return 100 * sum(measure.distance(words, text.split()) for words, text in zip(self.references, texts, strict=True)) / self.num_words


def hotwords():
    """Words of the lexicon, the same in each run."""
    words = sorted({line.split()[0] for line in (CTC / "lexicon_char.txt").read_text(encoding="utf-8").splitlines()})
    return random.Random(0).sample(words, NUM_HOTWORDS)


def run(build, speech, model, arguments, rounds):
    """Texts, and the median of the processor seconds."""
    decoder = build(speech.labels, model)
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        texts = [decoder.decode(scores, **arguments) for scores in speech.scores]
        seconds.append(time.process_time() - begin)
    return texts, statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--part", choices=("compat", "open"), default="compat")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("error", warpfst.IgnoredOptionWarning)
    if options.part == "open":
        figures = open_vocabulary.run(Speech, options.data, options.rounds)
        if options.record:
            measure.record(figures, "./run bench compat --part=open")
        return
    model = str(decode_tasks.plain_model())
    tasks = {
        "no model": (None, {}),
        "3-gram": (model, {}),
        f"3-gram, {NUM_HOTWORDS} hotwords": (model, {"hotwords": hotwords(), "hotword_weight": 2.0}),
    }
    rows, figures = [], []
    for head in ("char", "bpe"):
        speech = Speech(options.data, head)
        for name, (lm, arguments) in tasks.items():
            mine, my_seconds = run(warpfst.compat.build_ctcdecoder, speech, lm, arguments, options.rounds)
            theirs, their_seconds = run(pyctcdecode.build_ctcdecoder, speech, lm, arguments, options.rounds)
            rates, equal = [speech.error_rate(texts) for texts in (mine, theirs)], sum(a == b for a, b in zip(mine, theirs, strict=True))
            rows.append([f"{head}, {name}", *(f"{rate:.2f}" for rate in rates), f"{equal} of {len(mine)}", f"{my_seconds:.2f}", f"{their_seconds:.2f}", f"{their_seconds / my_seconds:.1f}"])
            setup = f"{head}, {name}, {len(mine)} utterances, {sum(map(len, speech.scores))} frames"
            for peer, rate, seconds in (("compat", rates[0], my_seconds), ("pyctcdecode 0.5.0", rates[1], their_seconds)):
                figures += [("compat", f"{setup}, {peer}", measure.figure(rate), "% WER"), ("compat", f"{setup}, {peer}", measure.figure(seconds), "s")]
    print(measure.table(["task", "WER, compat", "WER, pyctcdecode", "equal texts", "compat, s", "pyctcdecode, s", "ratio"], rows))
    if options.record:
        measure.record(figures, "./run bench compat")


if __name__ == "__main__":
    main()
