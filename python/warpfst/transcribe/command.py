"""The command `warpfst transcribe`: which recordings, in which batches, what is done already, what came of it."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..decoder import Decoder
from ..error_rate import Wer, read_transcripts
from ..errors import Error
from ..options import from_text
from . import audio
from .models import Model, open_model
from .outputs import FORMATS, WRITERS, TimedWord, Transcript, output_file, write_file

EPILOG = """examples:
  warpfst transcribe examples/cards/*.wav --model examples/cards
  warpfst transcribe recordings/ --model my_model --format srt -o subtitles --resume
  warpfst transcribe a.wav --model /usr/share/pocketsphinx/model/en-us --graph en-us.wfst

Exit codes: 0 done, 1 some recordings failed, 2 wrong usage."""


class Recording(NamedTuple):
    key: str
    path: pathlib.Path
    seconds: float


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("warpfst transcribe", description="Audio to text.", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("audio", nargs="*", type=pathlib.Path, help="audio files, or folders of them")
    parser.add_argument("--list", type=pathlib.Path, metavar="FILE", help="more of them: lines `key path`")
    parser.add_argument("--model", type=pathlib.Path, required=True, metavar="FOLDER", help="config.json, acoustic model and graph; or a Sphinx model")
    parser.add_argument("--graph", type=pathlib.Path, metavar="FILE", help="decoding graph: read if it is there, else made and kept there")
    parser.add_argument("--format", choices=FORMATS, default="text", help="(default: text)")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FOLDER", help="a file a recording, KEY.txt and so on (default: standard output)")
    parser.add_argument("--resume", action="store_true", help="leave out recordings whose file is in the output folder already")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="part I of N (from 0) of the recordings, by their keys: for arrays of jobs")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:N (default: cpu)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the decoder, such as beam=12 (warpfst options decoder)"
    )
    parser.add_argument("--batch-seconds", type=float, default=240.0, metavar="S", help="audio read and decoded at once (default: 240)")
    parser.add_argument("--max-seconds", type=float, default=30.0, metavar="S", help="longer recordings are cut at quiet places (default: 30)")
    parser.add_argument("--num-threads", type=int, default=0, metavar="N", help="0: one per processor (default)")
    parser.add_argument("--ref", type=pathlib.Path, metavar="FILE", help="reference words by key: the word error rate ends the summary")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return parser


def read_list(path: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Keys and paths of a list of recordings; paths are relative to its folder."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if fields := line.split(maxsplit=1):
            if len(fields) != 2 or "/" in fields[0]:
                raise ValueError(f"{path}:{number}: {line!r}, expected `key path`")
            yield fields[0], path.parent / fields[1]


def _shard(text: str) -> tuple[int, int]:
    """`I/N`: part I, from 0, of N."""
    part, sign, count = text.partition("/")
    if not (sign and part.isdecimal() and count.isdecimal() and int(part) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r}, expected I/N with I from 0 to N - 1")
    return int(part), int(count)


def shard_of(key: str, count: int) -> int:
    """Which of `count` parts a recording belongs to: the same on every machine, whatever else is in the list."""
    return zlib.crc32(key.encode("utf-8", "surrogateescape")) % count


def _paths(arguments: argparse.Namespace) -> Iterator[tuple[str, pathlib.Path]]:
    for path in arguments.audio:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.suffix.lower() in audio.SUFFIXES:
                    yield file.relative_to(path).with_suffix("").as_posix().replace("/", "-"), file
        else:
            yield path.stem, path
    if arguments.list is not None:
        yield from read_list(arguments.list)


class Run:
    """One call of the command."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.num_failed = self.num_done = 0
        self.audio_seconds = 0.0
        self.begin = time.monotonic()

    def fail(self, path: pathlib.Path, why: object) -> None:
        self.num_failed += 1
        self.note(f"{path}: {why}")

    def note(self, text: str) -> None:
        print(f"\r\033[K{text}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def output_file(self, key: str) -> pathlib.Path | None:
        return None if self.arguments.output is None else output_file(self.arguments.output, key, self.arguments.format)

    def recordings(self) -> list[Recording]:
        """What is to do, short ones first, so that batches are of one length."""
        found: dict[str, pathlib.Path] = {}
        todo = []
        for key, path in _paths(self.arguments):
            if key in found:
                raise ValueError(f"{found[key]} and {path} have the same key {key!r}: give them keys with --list")
            found[key] = path
            if self.arguments.shard is not None and shard_of(key, self.arguments.shard[1]) != self.arguments.shard[0]:
                continue
            file = self.output_file(key)
            if self.arguments.resume and file is not None and file.exists():
                continue
            try:
                todo.append(Recording(key, path, audio.seconds(path)))
            except (RuntimeError, OSError) as why:
                self.fail(path, why)
        if not found:
            raise ValueError("no audio files given")
        return sorted(todo, key=lambda recording: recording.seconds)

    def put(self, transcript: Transcript) -> None:
        if self.arguments.output is None:
            sys.stdout.write(WRITERS[self.arguments.format](transcript))
            sys.stdout.flush()
        else:
            write_file(self.arguments.output, self.arguments.format, transcript)
        self.num_done += 1
        self.audio_seconds += transcript.seconds

    def progress(self, total: int) -> None:
        if not self.arguments.quiet and sys.stderr.isatty():
            spent = time.monotonic() - self.begin
            print(
                f"\r\033[K{self.num_done}/{total} recordings, {self.audio_seconds / 60:.1f} min, {self.audio_seconds / max(spent, 1e-3):.0f} x real time",
                end="",
                file=sys.stderr,
                flush=True,
            )


def groups(recordings: Iterable[Recording], most_seconds: float) -> Iterator[list[Recording]]:
    """Batches of about equal lengths: at most so many seconds, or one recording."""
    group: list[Recording] = []
    for recording in recordings:
        if group and recording.seconds * (len(group) + 1) > most_seconds:
            yield group
            group = []
        group.append(recording)
    if group:
        yield group


class _Piece(NamedTuple):
    owner: int
    offset: float  # seconds
    samples: Any


def transcribe_group(model: Model, decoder: Decoder, recordings: Sequence[Recording], max_seconds: float) -> Iterator[Transcript | tuple[Recording, Exception]]:
    """A transcript for each recording, or why there is none."""
    pieces, failed = [], {}
    lengths = {}
    for i, recording in enumerate(recordings):
        try:
            samples = audio.read(recording.path, model.sample_rate)
        except (RuntimeError, OSError) as why:
            failed[i] = why
            continue
        lengths[i] = len(samples) / model.sample_rate
        pieces += [_Piece(i, begin / model.sample_rate, samples[begin:end]) for begin, end in audio.segments(samples, model.sample_rate, max_seconds)]
    pieces.sort(key=lambda piece: len(piece.samples))
    results = decoder.decode(*model.scores([piece.samples for piece in pieces])) if pieces else []
    for i, recording in enumerate(recordings):
        own = sorted((piece.offset, result) for piece, result in zip(pieces, results) if piece.owner == i) if i not in failed else []
        error = failed.get(i) or next((result.error for _, result in own if result.error is not None), None)
        if error is not None:
            yield recording, error
            continue
        words = [
            TimedWord(word.text, offset + word.start * model.frame_shift, min(offset + word.end * model.frame_shift, lengths[i]), word.confidence)
            for offset, result in own
            for word in result.words
        ]
        flags = sorted({flag for _, result in own for flag in result.flags})
        yield Transcript(recording.key, os.fspath(recording.path), lengths[i], words, sum(result.cost for _, result in own), flags)


def decoder_options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {"device": arguments.device, "num_threads": arguments.num_threads}
    for text in arguments.option:
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"--option {text}: expected NAME=VALUE")
        name = name.replace("-", "_")
        options[name] = from_text("decoder", name, value)
    return options


def _run(arguments: argparse.Namespace) -> int:
    run = Run(arguments)
    if arguments.resume and arguments.output is None:
        raise ValueError("--resume needs --output: what is there is done")
    recordings = run.recordings()
    if arguments.format in ("srt", "vtt") and arguments.output is None and len(recordings) > 1:
        raise ValueError(f"--format {arguments.format} of several recordings needs --output")
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    references = None if arguments.ref is None else read_transcripts(arguments.ref)
    wer = Wer(ignore_case=True)
    if recordings:
        model = open_model(arguments.model, arguments.device, arguments.num_threads)
        decoder = model.decoder(arguments.graph, decoder_options(arguments))
        run.begin = time.monotonic()
    for group in groups(recordings, arguments.batch_seconds):
        for outcome in transcribe_group(model, decoder, group, arguments.max_seconds):
            if not isinstance(outcome, Transcript):
                run.fail(outcome[0].path, outcome[1])
                continue
            run.put(outcome)
            if references is not None and outcome.key in references:
                wer.add(references[outcome.key], outcome.text, outcome.key)
        run.progress(len(recordings))
    if not arguments.quiet:
        spent = time.monotonic() - run.begin
        rate = f", {run.audio_seconds / spent:.0f} x real time" if run.num_done else ""
        run.note(f"{run.num_done} recordings, {run.num_failed} failed, {run.audio_seconds / 60:.2f} min of audio in {spent:.1f} s{rate}")
        if references is not None:
            run.note(str(wer.totals))
    return 1 if run.num_failed else 0


def main(given: Sequence[str]) -> int:
    arguments = _parser().parse_args(given)
    try:
        return _run(arguments)
    except (Error, ValueError, OSError, RuntimeError, ImportError) as why:
        print(f"warpfst transcribe: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
