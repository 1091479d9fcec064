"""A torch model and the search on one device: while a batch is searched, the next one is copied and scored. Draws what runs when, with and without this overlap.

    python examples/pipeline/features.py features.npz examples/cards/*.wav
    python examples/pipeline/pipeline.py features.npz --device cuda --picture pipeline.svg
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import queue
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from conformer import Conformer
from timeline import ROWS, Timeline, draw

import warpfst as wf

MODEL = pathlib.Path(__file__).parents[1] / "ctc"
FRAMES_A_SECOND = 100  # of the features
Pack = tuple[torch.Tensor, torch.Tensor, list[int]]  # features, their lengths, lengths of the scores


class TimedDecoder(wf.Decoder):
    """Notes when each call was made and when it was done. Only the picture needs it."""

    def record(self, timeline: Timeline) -> None:
        self.timeline, self._count, self._done = timeline, itertools.count(), queue.SimpleQueue[Any]()

    def decode_async(self, *scores: Any, **options: Any) -> Any:
        begin, future, batch = self.timeline.now(), super().decode_async(*scores, **options), next(self._count)
        future.add_done_callback(lambda _: self._done.put(("search", batch, begin, self.timeline.now())))
        return future

    def decode(self, *scores: Any, **options: Any) -> wf.Results:
        with self.timeline.span("search", next(self._count)):
            return super().decode(*scores, **options)

    def finish(self, num_calls: int) -> None:
        """Futures are done a moment before their callbacks are called, in the decoder's thread."""
        for _ in range(num_calls):
            self.timeline.add(*self._done.get(timeout=60))


class Pipeline:
    """Encoder and decoder on one device. On a GPU, features are copied on one CUDA stream of ours and scored on another."""

    def __init__(self, device: str, num_threads: int, half: bool = False) -> None:
        self.device, self.on_gpu = torch.device(device), device != "cpu"
        torch.set_num_threads(num_threads)
        self.encoder = Conformer(MODEL / "model.onnx").to(self.device, torch.float16 if half else torch.float32)
        graph = wf.build_ctc_graph(MODEL / "tokens_phone.txt", MODEL / "lexicon_phone.txt", MODEL / "lm3.arpa.gz")
        self.decoder = TimedDecoder(graph, acoustic_scale=0.7, max_active=7000, blank=0, device=device, num_threads=num_threads)
        self.copies: Any = torch.cuda.Stream(self.device) if self.on_gpu else None
        self.stream: Any = torch.cuda.Stream(self.device) if self.on_gpu else None

    def _scores(self, packs: Sequence[Pack], timeline: Timeline) -> Iterator[tuple[torch.Tensor, list[int]]]:
        """Starts copies and encoder of each batch. On a GPU it waits for neither: the decoder waits for what is on the current stream when it is given the scores."""
        for batch, (features, lengths, frames) in enumerate(packs):
            if self.on_gpu:
                with torch.cuda.stream(self.copies), timeline.span("copy", batch, self.copies):
                    features, lengths = features.to(self.device, non_blocking=True), lengths.to(self.device, non_blocking=True)
                self.stream.wait_stream(self.copies)
                for tensor in (features, lengths):
                    tensor.record_stream(self.stream)  # its memory is not given to the next copy before the encoder has read it
            with timeline.span("encoder", batch, self.stream):
                log_probs = self.encoder(features, lengths)
            yield log_probs, frames

    def run(self, packs: Sequence[Pack], overlap: bool) -> tuple[list[str], Timeline]:
        """Decodes all batches. Returns the text of each utterance, and the timeline."""
        timeline = Timeline(self.on_gpu)
        self.decoder.record(timeline)
        texts: list[str] = []
        # Not the default stream: the decoder waits for all that is there, so for the next batch as well.
        with torch.no_grad(), torch.cuda.stream(self.stream) if self.on_gpu else contextlib.nullcontext():
            scores = self._scores(packs, timeline)
            found = self.decoder.decode_batches(scores) if overlap else (self.decoder.decode(*each) for each in scores)
            for batch, results in enumerate(found):
                with timeline.span("results", batch):
                    texts += [result.text for result in results]
        if overlap:
            self.decoder.finish(len(packs))
        return texts, timeline


def packed(utterances: Sequence[np.ndarray], size: int, count: int, pinned: bool) -> list[Pack]:
    """`count` padded batches of `size` utterances, which are repeated as often as needed; as a DataLoader with pin_memory=True makes them."""
    endless = itertools.cycle(utterances)
    packs = []
    for rows in ([next(endless) for _ in range(size)] for _ in range(count)):
        lengths = torch.tensor([len(row) for row in rows])
        features = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)
        pack = (features.pin_memory(), lengths.pin_memory()) if pinned else (features, lengths)
        packs.append((*pack, [-(-len(row) // 4) for row in rows]))
    return packs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", help=".npz of arrays [frames, 80], from features.py")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="of the encoder and of the search")
    parser.add_argument("--batch", type=int, default=16, help="utterances in a batch")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--half", action="store_true", help="the encoder computes in float16 (GPU)")
    parser.add_argument("--threads", type=int, default=max((os.cpu_count() or 2) // 2, 1), help="of the encoder and of the decoder, each")
    parser.add_argument("--runs", type=int, default=3, help="of each kind, in turns; the median is drawn")
    parser.add_argument("--picture", type=pathlib.Path, help="SVG file to write")
    parser.add_argument("--json", type=pathlib.Path, help="file to write the times to")
    args = parser.parse_args()

    pipeline = Pipeline(args.device, args.threads, args.half)
    utterances = [array.astype(np.float32) for array in np.load(args.features).values()]
    packs = packed(utterances, args.batch, args.batches, pipeline.on_gpu)
    audio = sum(int(lengths.sum()) for _, lengths, _ in packs) / FRAMES_A_SECOND
    kinds = {"without overlap": False, "with overlap": True}
    runs: dict[str, list[Any]] = {name: [] for name in kinds}
    texts = []
    for repeat, (name, overlap) in itertools.product(range(args.runs + 1), kinds.items()):
        found, timeline = pipeline.run(packs, overlap)
        texts.append(found)
        if repeat > 0:  # the first run of each kind loads kernels and allocates memory
            runs[name].append(timeline.bars())
    if any(found != texts[0] for found in texts):
        raise SystemExit("the runs gave different words")

    device = torch.cuda.get_device_name(pipeline.device) if pipeline.on_gpu else f"CPU, {args.threads} + {args.threads} threads"
    repeated = f"{len(utterances)} recordings, repeated, " if args.batch * args.batches > len(utterances) else ""
    title = f"{device}; {args.batches} batches of {args.batch} utterances: {repeated}{audio:,.0f} s of audio"
    words = sum(len(text.split()) for text in texts[0])
    report: dict[str, Any] = {"title": title, "half": args.half, "torch": torch.__version__, "audio_seconds": audio, "words": words}
    panels = []
    for name, timelines in runs.items():
        timelines.sort(key=lambda bars: max(bar.end for bar in bars))
        bars, seconds = timelines[len(timelines) // 2], [max(bar.end for bar in bars) for bars in timelines]
        busy = {row: sum(bar.end - bar.begin for bar in bars if bar.row == row) for row in ROWS}
        speed = audio / seconds[len(seconds) // 2]
        panels.append((f"{name}: {speed:,.0f} s of audio a second", bars))
        report[name] = {"audio_seconds_per_second": speed, "seconds_of_runs": seconds, "busy_seconds": busy, "bars": bars}
        print(panels[-1][0])
    if args.picture:
        args.picture.write_text(draw(title, panels), encoding="utf-8")
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
