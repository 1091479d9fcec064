#!/usr/bin/env python3
"""rnnlm_device.py [--device=cuda] [--words=50000] [--hidden=100,512,1024] [--utterances=256] [--parts=text,decode,chains,streams] [--seconds=110]

Measures recurrent models on a GPU and on the CPU of the same machine, in wall time.

  text     scoring of text, tokens per second
  decode   decoding in the setting of rnnlm_scale.py. Search and model on the GPU, with a cache for all utterances or one per utterance, in batches and one by one; without cache and deduplication on
           one thread; the search on the CPU's threads with the model on the GPU or the CPU; the model on the GPU without cache and deduplication. With --words=1000000 --parts=decode --hidden=100
           this is the setting of Lee et al. 2015
  chains   decoding on the GPU with boosts in addition to the recurrent model, 100 phrases for all utterances or three phrases for each
  streams  bench_stream on the GPU with chunks of 0.4 s and Poisson arrivals, with the model and without

Each run is reported on stderr when it ends. In a folder of ./run pack-gpu, the script uses the programs in the same folder. Rows that would begin after --seconds are left out, with a note.
"""
import argparse
import json
import os
import pathlib
import random
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure

HERE = pathlib.Path(__file__).resolve().parent
PACKED = (HERE / "warpfst").exists()
if PACKED:
    measure.WARPFST, measure.BUILD = HERE / "warpfst", HERE / "work"
    os.environ["LD_LIBRARY_PATH"] = str(HERE)
import rnnlm_scale  # uses the paths of measure

if PACKED:
    rnnlm_scale.GENERATE = HERE / "generate_ctc_task"
BENCH_STREAM = HERE / "bench_stream" if PACKED else measure.ROOT / "build" / "release" / "bench" / "bench_stream"
MEMORY = {"cuda": 16000000000, "cpu": 4000000000}  # by the device of the search


class Table:
    """Reports rows as they are measured. Leaves out rows that would begin too late."""

    def __init__(self, header, end):
        self.header, self.end, self.rows, self.left_out = header, end, [], 0

    def add(self, measure_row, *arguments):
        if time.monotonic() > self.end:
            self.left_out += 1
            return
        self.rows.append(measure_row(*arguments))
        print("  " + " | ".join(map(str, self.rows[-1])), file=sys.stderr, flush=True)

    def show(self):
        if self.rows:
            print(measure.table(self.header, self.rows))
        if self.left_out > 0:
            print(f"{self.left_out} rows left out")
        print()


def score_text(task, hidden, device, threads):
    got = json.loads(measure.run(measure.WARPFST, "rnnlm", "perplexity", task.model_of(hidden), task.folder / "text", f"--device={device}", f"--threads={threads}", "--json"))
    return [hidden, device, threads or os.cpu_count(), f"{got['tokens_per_s']:.0f}", f"{got['perplexity']:.4f}"]


def decode(task, hidden, search, device, cache, batch, utterances, boosts=()):
    summary = task.folder / "summary"
    measure.run(measure.WARPFST, "decode", task.graph, task.scores(utterances), *rnnlm_scale.BEAM, f"--device={search}", "--num-threads=0", f"--batch={batch}", "-o", task.folder / "out",
                f"--rnnlm={task.model_of(hidden)}", f"--rnnlm-device={device}", f"--rnnlm-ngram={task.lm}", f"--rnnlm-small={task.lm}", "--rnnlm-weight=0.5", f"--rnnlm-cache={cache}",
                f"--rnnlm-memory={MEMORY[search.split(':')[0]]}", f"--summary={summary}", *boosts)
    got = json.loads(summary.read_text())
    counts, frames = got["rnnlm"], got["hours"] * 3600 / 0.04
    return [hidden, search, device, cache, batch, f"{counts['requests'] / frames:.0f}", f"{100 * counts['hit_ratio']:.1f}", f"{counts['costs'] / frames:.0f}",
            f"{counts['answers'] / frames:.3f}", f"{got['rtfx']:.1f}"]


def decode_boosted(task, hidden, device, utterances, name, flags):
    return [*decode(task, hidden, device, device, "shared", utterances, utterances, flags), name]


def write_boosts(task, words, utterances):
    """Returns the flags for each kind of boosts."""
    rng = random.Random(1)

    def phrases(path, count):
        path.write_text("".join(" ".join(f"w{rng.randrange(words)}" for _ in range(rng.choice((2, 3)))) + " 3\n" for _ in range(count)), encoding="utf-8")
        return path

    keys = [line.split()[0] for line in open(task.scores(utterances), encoding="utf-8")]
    table = task.folder / "boosts.txt"
    table.write_text("".join(f"{key} {phrases(task.folder / f'boost.{key}', 3)}\n" for key in keys), encoding="utf-8")
    return {"none": [], "100 phrases": [f"--boost={phrases(task.folder / 'boost.txt', 100)}"], "3 phrases each": [f"--utterance-boosts={table}"]}


def stream(task, device, streams, recurrent, boosts):
    model = [f"--rnnlm={task.model}", f"--arpa={task.lm}", f"--rnnlm-memory={MEMORY['cpu']}"] if recurrent else []
    got = json.loads(measure.run(BENCH_STREAM, task.graph, task.folder / "peaky.ark", *rnnlm_scale.BEAM[:2], f"--device={device}", f"--streams={streams}", "--chunk=0.4", "--poisson=1",
                                 "--seconds=1.2", "--warm=0.5", f"--boost={boosts}", *model).splitlines()[-1])
    return [streams, "yes" if recurrent else "no", boosts, f"{got['heard_s'] / got['seconds']:.0f}", f"{got['batch']:.1f}",
            *(f"{got[f'{what}_{part}_ms']:.2f}" for what in ("compute", "queue", "chunk") for part in ("mean", "p99"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--words", type=int, default=50000)
    parser.add_argument("--hidden", default="100,512,1024")
    parser.add_argument("--utterances", type=int, default=256)
    parser.add_argument("--parts", default="text,decode")
    parser.add_argument("--seconds", type=float, default=110)
    arguments = parser.parse_args()
    begin = time.monotonic()
    rnnlm_scale.UTTERANCES = arguments.utterances
    measure.BUILD.mkdir(parents=True, exist_ok=True)
    task = rnnlm_scale.Task(arguments.words)
    print(f"{measure.machine()}; task made in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    end, parts, gpu, many = begin + arguments.seconds, arguments.parts.split(","), arguments.device, arguments.utterances
    hiddens = [int(hidden) for hidden in arguments.hidden.split(",")]
    texts = Table(["hidden", "recurrent model on", "threads", "tokens/s scored", "perplexity"], end)
    header = ["hidden", "search on", "model on", "cache", "batch", "requests per frame", "hits, %", "costs per frame", "results per frame", "RTFx"]
    decodes, chains = Table(header, end), Table([*header, "boosts"], end)
    live = Table(["streams", "recurrent model", "boosts", "RTFx", "chunks per call", "compute, mean", "P99", "queue, mean", "P99", "total, mean", "P99"], end)
    for hidden in hiddens:
        for device, threads in ((gpu, 1), ("cpu", 1), ("cpu", 0)) if "text" in parts else ():
            texts.add(score_text, task, hidden, device, threads)
        for search, device, cache, batch, utterances in ((gpu, gpu, "shared", many, many), (gpu, gpu, "utterance", many, many), (gpu, gpu, "utterance", 1, 4),
                                                         ("cpu", "cpu", "none", 1, 1), ("cpu", "cpu", "shared", many, many), ("cpu", gpu, "shared", many, many),
                                                         ("cpu", gpu, "utterance", 1, 4), ("cpu", gpu, "none", 1, 1)) if "decode" in parts else ():
            decodes.add(decode, task, hidden, search, device, cache, batch, utterances)
        for name, flags in write_boosts(task, arguments.words, many).items() if "chains" in parts else ():
            chains.add(decode_boosted, task, hidden, gpu, many, name, flags)
    for streams, recurrent, boosts in ((256, False, 0), (256, False, 100), (256, True, 0), (256, True, 100), (1024, True, 0), (4096, True, 0)) if "streams" in parts else ():
        live.add(stream, task, gpu, streams, recurrent, boosts)
    for table in (texts, decodes, chains, live):
        table.show()


if __name__ == "__main__":
    main()
