"""Shares one graph between decoders in several threads. Calls release the GIL, so the threads run in parallel."""

import concurrent.futures
import pathlib

import warpfst as wf

folder = pathlib.Path(__file__).parent.parent / "ctc"
graph = wf.build_ctc_graph(folder / "tokens_phone.txt", folder / "lexicon_phone.txt", folder / "lm3.arpa.gz")
scores = [data for _, data in wf.ScoreReader(folder / "logp_phone")]
config = wf.DecoderConfig(acoustic_scale=0.7, num_threads=1)  # picklable, so it can also be sent to other processes


def work(part):
    return [result.text for result in wf.Decoder(graph, config).decode(part)]


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    halves = list(pool.map(work, (scores[:100], scores[100:])))
print("the same as alone:", halves[0] + halves[1] == work(scores))

# prints:
# the same as alone: True
