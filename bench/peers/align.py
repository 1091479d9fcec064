"""align [--device=cpu|cuda] [--data=FOLDER] [--head=phone] [--rounds=5] [--record]

Compares wf.align with torchaudio's forced_align on one processor: batches of 64 with real CTC scores (examples/ctc, or a FOLDER of .npy files), the utterances themselves and several
in a row that together have the wanted length. torchaudio takes one utterance per call. Prints and records processor time, and how many paths are equal: paths may differ where
torchaudio's has a lower log-probability. --device=cuda: torchaudio's CUDA version with scores on the GPU, beside ours with all processors and scores there or in host memory; wall time.
"""
import argparse
import itertools
import pathlib
import statistics
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import numpy
import torch
import torchaudio

import warpfst as wf

CTC = measure.ROOT / "examples" / "ctc"
BATCH = 64


def read_utterances(data, head):
    """Scores and columns of the tokens of each utterance: of each word the first pronunciation. Utterances that have an unknown word or too few frames are left out."""
    tokens = {token: int(column) for token, column in map(str.split, (CTC / f"tokens_{head}.txt").read_text(encoding="utf-8").splitlines())}
    lexicon = {}
    for line in (CTC / f"lexicon_{head}.txt").read_text(encoding="utf-8").splitlines():
        word, *spelled = line.split()
        lexicon.setdefault(word, [tokens[token] for token in spelled])
    utterances = []
    for line in (CTC / "text").read_text(encoding="utf-8").splitlines():
        key, *words = line.split()
        path = data / f"{key}.npy"
        if path.exists() and all(word in lexicon for word in words):
            scores, targets = numpy.load(path).astype(numpy.float32), list(itertools.chain.from_iterable(lexicon[word] for word in words))
            if len(scores) >= len(targets) + sum(a == b for a, b in itertools.pairwise(targets)):
                utterances.append((scores, targets))
    return utterances


def join(utterances, num_frames, count):
    """`count` utterances of at least `num_frames` frames, each of several in a row."""
    source, joined = itertools.cycle(utterances), []
    for _ in range(count):
        parts = [next(source)]
        while sum(len(scores) for scores, _ in parts) < num_frames:
            parts.append(next(source))
        joined.append((numpy.concatenate([scores for scores, _ in parts]), list(itertools.chain.from_iterable(targets for _, targets in parts))))
    return joined


def ours(batch, num_threads):
    return wf.align([scores for scores, _ in batch], [targets for _, targets in batch], num_threads=num_threads)


def theirs(batch):
    return [torchaudio.functional.forced_align(scores, targets, blank=0) for scores, targets in batch]


def seconds(gpu, function, *arguments):
    """Of the processor; with a GPU wall time, until the GPU is done."""
    clock = time.perf_counter if gpu else time.process_time
    begin = clock()
    function(*arguments)
    if gpu:
        torch.cuda.synchronize()
    return clock() - begin


def compare(name, batch, rounds, place, gpu):
    """`place`: where our scores lie; `gpu`: those of torchaudio lie on the GPU."""
    tensors = [(torch.from_numpy(scores)[None].to("cuda" if gpu else "cpu"), torch.tensor([targets], dtype=torch.int32).to("cuda" if gpu else "cpu")) for scores, targets in batch]
    mine, threads = [(scores[0] if place == "cuda" else frames, targets) for (scores, _), (frames, targets) in zip(tensors, batch, strict=True)], 0 if gpu else 1
    num_equal = sum(one.path == path[0].tolist() for one, (path, _) in zip(ours(mine, threads), theirs(tensors), strict=True))
    times = [(seconds(gpu, ours, mine, threads), seconds(gpu, theirs, tensors)) for _ in range(rounds)]
    my_time, peer_time = (statistics.median(side) for side in zip(*times, strict=True))
    frames, places = sum(len(scores) for scores, _ in batch), sum(len(targets) for _, targets in batch)
    where = f"scores {'on the GPU' if place == 'cuda' else 'in host memory'}" if gpu else "1 thread"
    return f"{name}: {len(batch)} of {frames // len(batch)} frames and {places // len(batch)} tokens on average, {where}", my_time, peer_time, num_equal


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--head", default="phone")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    gpu = options.device == "cuda"
    torch.set_num_threads(1)
    utterances = read_utterances(options.data or CTC / f"logp_{options.head}", options.head)
    tasks = {
        "utterances": utterances[:BATCH],
        "30 s": join(utterances, 750, BATCH),
        "5 min": join(utterances, 7500, BATCH // 8),
    }
    rows, figures = [], []
    for (name, batch), place in itertools.product(tasks.items(), ("cuda", "cpu") if gpu else ("cpu",)):
        setup, mine, peer, num_equal = compare(f"{options.head}, {name}", batch, options.rounds, place, gpu)
        rows.append([setup, f"{1e3 * mine:.2f}", f"{1e3 * peer:.1f}", f"{peer / mine:.1f}", num_equal])
        figures += [("align", f"{setup}, ours", measure.figure(1e3 * mine), "ms"), ("align", f"{setup}, torchaudio {torchaudio.__version__} {options.device.upper()}", measure.figure(1e3 * peer), "ms")]
    print(measure.table(["batch", "ours, ms", "torchaudio, ms", "ratio", "equal paths"], rows))
    if options.record:
        where = {"machine": measure.machine_with_gpu()} if gpu else {}
        measure.record(figures, "./run bench align" + (" --device=cuda" if gpu else ""), **where)


if __name__ == "__main__":
    main()
