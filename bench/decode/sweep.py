#!/usr/bin/env python3
"""sweep [--record]: measures speed and word error rate by beam, with the language model in the graph or on the fly. Needs the installed package and numpy.
sweep --min-active [--data=FOLDER] [--record]: the same by beam and min_active, for each kind of token. FOLDER has logp_char, logp_bpe, logp_phone (default: examples/ctc, which has only phones).

The task is the 200 utterances of examples/ctc with the 3-gram LM, on one thread. RTFx is seconds of audio per second of processor time, the best of three; on a busy machine differences of a tenth are noise.
tools/plots.py draws the rows of the first command.
"""

import argparse
import functools
import pathlib
import sys
import tempfile
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import numpy as np
from measure import ROOT, record

import warpfst as wf

CTC = ROOT / "examples" / "ctc"
BEAMS = (5, 6, 7, 8, 10, 12, 15, 18)
MIN_ACTIVE = (0, 10, 20, 50, 100, 200)
FRAME_SECONDS, SMALL = 0.04, 1e-4
OPTIONS = {"acoustic_scale": 0.7, "max_active": 7000, "num_threads": 1}


def decoders(folder):
    """Yields (name, function that makes a decoder for a beam)."""
    tokens, lexicon = CTC / "tokens_phone.txt", wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")
    large = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    whole = wf.build_ctc_graph(tokens, lexicon, large, topology="compact", backoff="failure")
    yield "LM in the graph", whole, lambda beam: wf.Decoder(whole, beam=beam, **OPTIONS)
    large.prune(threshold=SMALL).write_arpa(folder / "small.arpa")
    small = wf.build_ctc_graph(tokens, lexicon, folder / "small.arpa", topology="compact", backoff="failure")
    difference = wf.LM.convert(CTC / "lm3.arpa.gz", folder / "difference.wlm", subtract=folder / "small.arpa")
    yield f"LM on the fly (graph with the LM pruned at {SMALL:g})", small, lambda beam: wf.Decoder(small, lm=difference, beam=beam, **OPTIONS)


class Utterances:
    """The utterances of examples/ctc, with the scores of a folder."""

    def __init__(self, folder):
        self.keys = [path.stem for path in sorted((CTC / "logp_phone").glob("*.npy"))]
        self.matrices = [np.load(folder / f"{key}.npy").astype(np.float32) for key in self.keys]
        self.references = wf.read_transcripts(CTC / "text")
        self.seconds = sum(map(len, self.matrices)) * FRAME_SECONDS

    def measure(self, make):
        """Returns (RTFx, WER in percent, tokens per frame)."""
        decoder, spent = make(), []
        for _ in range(3):
            begin = time.process_time()
            results = decoder.decode(self.matrices)
            spent.append(time.process_time() - begin)
        error = wf.wer({key: self.references[key] for key in self.keys}, {key: result.text for key, result in zip(self.keys, results)})
        tokens = sum(result.num_tokens for result in results) / sum(map(len, self.matrices))
        return self.seconds / min(spent), error.percent, tokens


def by_beam():
    utterances = Utterances(CTC / "logp_phone")
    with tempfile.TemporaryDirectory() as name:
        for placement, graph, make in decoders(pathlib.Path(name)):
            for beam in BEAMS:
                speed, percent, _ = utterances.measure(functools.partial(make, beam))
                setup = f"200 utterances, {placement}, {graph.fst.num_arcs} arcs, beam={beam}, max_active=7000"
                print(f"{setup}: {speed:6.0f} x real time, WER {percent:.2f}%")
                yield from (("sweep CTC phones", setup, f"{speed:.0f}", "RTFx"), ("sweep CTC phones", f"{setup}, WER", f"{percent:.2f}", "%"))


def by_min_active(data):
    for kind in ("char", "bpe", "phone"):
        if not (data / f"logp_{kind}").is_dir():
            continue
        utterances = Utterances(data / f"logp_{kind}")
        graph = wf.build_ctc_graph(CTC / f"tokens_{kind}.txt", CTC / f"lexicon_{kind}.txt", CTC / "lm3.arpa.gz", topology="compact")
        for beam in (8, 10, 12, 15):
            for least in MIN_ACTIVE:
                speed, percent, tokens = utterances.measure(functools.partial(wf.Decoder, graph, beam=beam, min_active=least, **OPTIONS))
                setup = f"200 utterances, {kind}, {graph.fst.num_arcs} arcs, beam={beam}, min_active={least}, max_active=7000"
                print(f"{setup}: {speed:6.0f} x real time, WER {percent:.2f}%, {tokens:.0f} tokens per frame", flush=True)
                yield from (("sweep min_active", setup, f"{speed:.0f}", "RTFx"), ("sweep min_active", f"{setup}, WER", f"{percent:.2f}", "%"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--min-active", action="store_true", help="measure by beam and min_active")
    parser.add_argument("--data", type=pathlib.Path, default=CTC, help="folder of logp_char, logp_bpe and logp_phone, for --min-active")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    rows = list(by_min_active(arguments.data) if arguments.min_active else by_beam())
    if arguments.record:
        record(rows, f"./run bench sweep{' --min-active' if arguments.min_active else ''}")


if __name__ == "__main__":
    main()
