"""compat_cuctc.py - the tasks of `./run bench compat --part=cuctc`: torchaudio's cuda_ctc_decoder on a GPU, with all utterances in one call.

As shipped, torchaudio's aborts on such scores; it runs with the memory that bench/peers/cuctc_room.c adds, which is loaded into this process. Seconds are of wall time, scores lie on the GPU.
"""
import os
import statistics
import sys
import time

import peers
import torch
from compat_speech import WORD_START, Comparison, Speech

import warpfst.compat

PEER = "torchaudio 2.11.0, cuda_ctc_decoder"
MOST = 400
TASKS = {"beam 10": {}, "beam 10, all frames": {"blank_skip_threshold": 1.0}, "beam 20": {"beam_size": 20}, "beam 10, 5 hypotheses": {"nbest": 5}}


def make_room():
    """Starts the process again with the library, once."""
    room = str(peers.cuctc_room())
    if room not in os.environ.get("LD_PRELOAD", ""):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": room})


def run(decoder, scores, lengths, rounds):
    """Texts, and the median of the seconds. The first call does not count: it takes the memory."""
    seconds = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found = decoder(scores, lengths)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return ["".join(hypotheses[0].words).replace(WORD_START, " ").strip() for hypotheses in found], statistics.median(seconds[1:])


def compare(data, _model, rounds):
    make_room()
    from torchaudio.models.decoder import cuda_ctc_decoder

    for head in ("char", "bpe"):
        speech = Speech(data, head)
        speech.scores = speech.scores[:MOST]
        scores = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(one) for one in speech.scores], batch_first=True).cuda()
        lengths = torch.tensor([len(one) for one in speech.scores], dtype=torch.int32).cuda()
        for name, arguments in TASKS.items():
            mine, theirs = (run(build(speech.tokens, **arguments), scores, lengths, rounds) for build in (warpfst.compat.cuda_ctc_decoder, cuda_ctc_decoder))
            yield Comparison(speech, f"cuda_ctc_decoder, {name}", mine, theirs, PEER)
