"""compat --data=FOLDER [--part=all|pyctcdecode|flashlight|torchaudio|cuctc|open] [--rounds=3] [--record]

Compares warpfst.compat with pyctcdecode, flashlight-text and torchaudio's ctc_decoder: word error rate, processor time and results of the same calls with the same arguments, on one
processor. FOLDER has logp_char, logp_bpe and logp_phone: folders of .npy files, or .tar.xz archives of them. References, lexicons and the language model are those of examples/ctc.
--part=cuctc compares cuda_ctc_decoder on a GPU, with wall time; --part=open compares ways to recognise any word (open_vocabulary.py). Neither is part of `all`; for `open`, FOLDER has train_text, too.
"""
import argparse
import importlib
import logging
import pathlib
import sys
import warnings

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
from compat_speech import Speech

import warpfst

PARTS = ("pyctcdecode", "flashlight", "torchaudio")  # each is a module compat_PART, which imports that peer


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--part", default="all", choices=["all", *PARTS, "cuctc", "open"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("error", warpfst.IgnoredOptionWarning)
    if options.part == "open":
        figures = importlib.import_module("open_vocabulary").run(Speech, options.data, options.rounds)
        if options.record:
            measure.record(figures, "./run bench compat --part=open")
        return
    model = None if options.part == "cuctc" else str(decode_tasks.plain_model())
    for part in PARTS if options.part == "all" else [options.part]:
        found = list(importlib.import_module(f"compat_{part}").compare(options.data, model, options.rounds))
        print(measure.table(["task", "WER, compat", f"WER, {part}", "equal texts", "compat, s", f"{part}, s", "ratio"], [one.row for one in found]), flush=True)
        if options.record:
            where = {"machine": measure.machine_with_gpu()} if part == "cuctc" else {}
            measure.record([figure for one in found for figure in one.figures], "./run bench compat" + (f" --part={part}" if where else ""), **where)


if __name__ == "__main__":
    main()
