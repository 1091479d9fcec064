"""compat --data=FOLDER [--part=all|pyctcdecode|flashlight|torchaudio|open] [--rounds=3] [--record]

Compares warpfst.compat with pyctcdecode, flashlight-text and torchaudio's ctc_decoder: word error rate, processor time and results of the same calls with the same arguments, on one
processor. FOLDER has logp_char, logp_bpe and logp_phone: folders of .npy files, or .tar.xz archives of them. References, lexicons and the language model are those of examples/ctc.
--part=open compares ways to recognise any word (open_vocabulary.py); it is not part of `all`, and FOLDER then has train_text, too.
"""
import argparse
import logging
import pathlib
import random
import statistics
import time
import warnings

import compat_flashlight
import compat_torchaudio
import decode_tasks
import measure
import open_vocabulary
import pyctcdecode
from compat_speech import CTC, Comparison, Speech

import warpfst.compat

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


def compare_pyctcdecode(data, model, rounds):
    tasks = {
        "no model": (None, {}),
        "3-gram": (model, {}),
        f"3-gram, {NUM_HOTWORDS} hotwords": (model, {"hotwords": hotwords(), "hotword_weight": 2.0}),
    }
    for head in ("char", "bpe"):
        speech = Speech(data, head)
        for name, (lm, arguments) in tasks.items():
            mine, theirs = (run(build, speech, lm, arguments, rounds) for build in (warpfst.compat.build_ctcdecoder, pyctcdecode.build_ctcdecoder))
            yield Comparison(speech, name, mine, theirs, "pyctcdecode 0.5.0")


PARTS = {"pyctcdecode": compare_pyctcdecode, "flashlight": compat_flashlight.compare, "torchaudio": compat_torchaudio.compare}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--part", default="all", choices=["all", *PARTS, "open"])
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
    for part in PARTS if options.part == "all" else [options.part]:
        found = list(PARTS[part](options.data, model, options.rounds))
        print(measure.table(["task", "WER, compat", f"WER, {part}", "equal texts", "compat, s", f"{part}, s", "ratio"], [one.row for one in found]), flush=True)
        if options.record:
            measure.record([figure for one in found for figure in one.figures], "./run bench compat")


if __name__ == "__main__":
    main()
