"""compat_torchaudio.py - the tasks of `./run bench compat` with torchaudio's ctc_decoder, in batches, on one processor."""
import os
import statistics
import time
import warnings

import measure
import torch
from compat_speech import CTC, WORD_START, Comparison, Speech

import warpfst.compat

PEER = "torchaudio 2.8.0"
BATCH = 64
TASKS = {"3-gram": {}, "3-gram, sums": {"log_add": True}, "3-gram, 10 hypotheses": {"nbest": 10}}


def lexicon_with_spaces(folder):
    """The lexicon of characters with the space after words, which is torchaudio's convention, instead of before them."""
    path = folder / "lexicon_space.txt"
    lines = (CTC / "lexicon_char.txt").read_text(encoding="utf-8").splitlines()
    path.write_text("".join(f"{word} {' '.join(spelled[1:])} {WORD_START}\n" for word, *spelled in map(str.split, lines)), encoding="utf-8")
    return str(path)


def batches(scores):
    for begin in range(0, len(scores), BATCH):
        some = [torch.from_numpy(one) for one in scores[begin : begin + BATCH]]
        yield torch.nn.utils.rnn.pad_sequence(some, batch_first=True), torch.tensor([len(one) for one in some])


def run(decoder, padded, rounds):
    """Texts, and the median of the processor seconds."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        texts = [" ".join(found[0].words) for batch in padded for found in decoder(*batch)]
        seconds.append(time.process_time() - begin)
    return texts, statistics.median(seconds)


def compare(data, model, rounds):
    with warnings.catch_warnings():  # 2.8 announces that it will be removed
        warnings.simplefilter("ignore")
        from torchaudio.models.decoder import ctc_decoder
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    speech = Speech(data, "char")
    lexicon, padded = lexicon_with_spaces(measure.BUILD), list(batches(speech.scores))
    for name, changes in TASKS.items():
        arguments = {"lm_weight": 1.5, "beam_threshold": 25, "blank_token": speech.tokens[0], "sil_token": WORD_START, **changes}
        decoders = [build(lexicon, speech.tokens, model, **arguments) for build in (warpfst.compat.ctc_decoder, ctc_decoder)]
        mine, theirs = (run(decoder, padded, rounds) for decoder in decoders)
        yield Comparison(speech, f"ctc_decoder, {name}", mine, theirs, PEER)
