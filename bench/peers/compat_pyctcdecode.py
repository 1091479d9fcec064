"""compat_pyctcdecode.py - the tasks of `./run bench compat` with pyctcdecode, one utterance per call."""
import random
import statistics
import time

import pyctcdecode
from compat_speech import CTC, Comparison, Speech

import warpfst.compat

PEER = "pyctcdecode 0.5.0"
NUM_HOTWORDS = 20


def hotwords():
    """Words of the lexicon, the same in each run."""
    words = sorted({line.split()[0] for line in (CTC / "lexicon_char.txt").read_text(encoding="utf-8").splitlines()})
    return random.Random(0).sample(words, NUM_HOTWORDS)


def run(build, speech, model, arguments, rounds):
    """Texts, and the median of the processor seconds."""
    decoder = build(speech.labels(), model)
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        texts = [decoder.decode(scores, **arguments) for scores in speech.scores]
        seconds.append(time.process_time() - begin)
    return texts, statistics.median(seconds)


def compare(data, model, rounds):
    tasks = {
        "no model": (None, {}),
        "3-gram": (model, {}),
        f"3-gram, {NUM_HOTWORDS} hotwords": (model, {"hotwords": hotwords(), "hotword_weight": 2.0}),
    }
    for head in ("char", "bpe"):
        speech = Speech(data, head)
        for name, (lm, arguments) in tasks.items():
            mine, theirs = (run(build, speech, lm, arguments, rounds) for build in (warpfst.compat.build_ctcdecoder, pyctcdecode.build_ctcdecoder))
            yield Comparison(speech, name, mine, theirs, PEER)
