#!/usr/bin/env python3
"""sweep [--record]: speed and word error rate by beam, with the language model in the graph or scored on the fly. Needs the installed package and numpy.

The 200 utterances of examples/ctc (phones, 3-gram LM), one thread. RTFx is seconds of audio by second of processor time, the best of three; on a busy machine differences of a tenth are noise.
bench/plots.py draws the rows.
"""

import argparse
import pathlib
import tempfile
import time

import numpy as np
from measure import record

import warpfst as wf

CTC = pathlib.Path(__file__).resolve().parents[1] / "examples" / "ctc"
BEAMS = (5, 6, 7, 8, 10, 12, 15, 18)
FRAME_SECONDS, SMALL = 0.04, 1e-4


def decoders(folder):
    """(name, function of the beam that makes a decoder)."""
    tokens, lexicon = CTC / "tokens_phone.txt", wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")
    options = {"acoustic_scale": 0.7, "max_active": 7000, "num_threads": 1}
    large = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    whole = wf.build_ctc_graph(tokens, lexicon, large, topology="compact", backoff="failure")
    yield "LM in the graph", whole, lambda beam: wf.Decoder(whole, beam=beam, **options)
    large.prune(threshold=SMALL).write_arpa(folder / "small.arpa")
    small = wf.build_ctc_graph(tokens, lexicon, folder / "small.arpa", topology="compact", backoff="failure")
    difference = wf.LargeLM.build(CTC / "lm3.arpa.gz", folder / "difference.wlm", subtract=folder / "small.arpa")
    yield f"LM on the fly (graph with the LM pruned at {SMALL:g})", small, lambda beam: wf.Decoder(small, lm=difference, beam=beam, **options)


def processor_seconds(decoder, matrices):
    spent = []
    for _ in range(3):
        begin = time.process_time()
        results = decoder.decode(matrices)
        spent.append(time.process_time() - begin)
    return min(spent), results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    arguments = parser.parse_args()
    keys = [path.stem for path in sorted((CTC / "logp_phone").glob("*.npy"))]
    matrices = [np.load(CTC / "logp_phone" / f"{key}.npy").astype(np.float32) for key in keys]
    references = wf.read_transcripts(CTC / "text")
    audio, rows = sum(map(len, matrices)) * FRAME_SECONDS, []
    with tempfile.TemporaryDirectory() as name:
        for placement, graph, make in decoders(pathlib.Path(name)):
            for beam in BEAMS:
                spent, results = processor_seconds(make(beam), matrices)
                error = wf.wer({key: references[key] for key in keys}, {key: result.text for key, result in zip(keys, results)})
                setup = f"200 utterances, {placement}, {graph.fst.num_arcs} arcs, beam={beam}, max_active=7000"
                print(f"{setup}: {audio / spent:6.0f} x real time, WER {error.percent:.2f}%")
                rows += [("sweep CTC phones", setup, f"{audio / spent:.0f}", "RTFx"), ("sweep CTC phones", f"{setup}, WER", f"{error.percent:.2f}", "%")]
    if arguments.record:
        record(rows, "python bench/sweep.py")


if __name__ == "__main__":
    main()
