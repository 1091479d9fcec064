"""The command `warpfst transcribe`: parses the command line, finds the recordings, skips finished ones, and writes results and the summary."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..decoder import Decoder
from ..error_rate import Wer, read_transcripts
from ..errors import Error
from ..options import from_text
from . import audio, standard_input
from .interrupts import Interrupts
from .keys import Found, find, read_list, shard_of
from .models import Model, open_model
from .outputs import FORMATS, InOrder, Transcript, Writer, is_written, output_file, write_file
from .partial import Partial, identity
from .pipeline import ENDS_RUN, Limits, Recording, decode_pieces, groups, reason, transcribe_group, transcript_of

EPILOG = """examples:
  warpfst transcribe examples/cards/*.wav --model examples/cards
  warpfst transcribe recordings/ --model my_model --format srt -o subtitles --resume
  arecord -q -f S16_LE -r 16000 -t raw | warpfst transcribe - --rate 16000 --model my_model
  warpfst transcribe a.wav --model /usr/share/pocketsphinx/model/en-us --graph en-us.wfst

Exit codes: 0 done, 1 some recordings failed, 2 wrong usage, 130 interrupted (with -o, the same command with --resume continues)."""
_STDIN = pathlib.Path("-")
_STDIN_KEY = "stdin"


def number(least: float, most: float, kind: Callable[[str], float] = float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r}, expected a number from {least:g} to {most:g}")
        return value

    return parse


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Rows such as `-o, --output=FOLDER`, as in the help of the other commands, which completion reads."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = "|".join(action.choices) if action.choices else self._format_args(action, action.dest.upper())
        return f"{', '.join(action.option_strings)}={value}"


def _parser() -> argparse.ArgumentParser:
    usage = "warpfst transcribe AUDIO... --model FOLDER [-o FOLDER] [--format text|json|ctm|srt|vtt]"
    parser = argparse.ArgumentParser("warpfst transcribe", usage=usage, description="Transcribes audio to text.", epilog=EPILOG, formatter_class=Formatter)
    parser.add_argument("audio", nargs="*", type=pathlib.Path, help="audio files or folders; '-': standard input")
    parser.add_argument("--list", type=pathlib.Path, metavar="FILE", help="list of audio files: lines `key path`")
    parser.add_argument("--model", type=pathlib.Path, required=True, metavar="FOLDER", help="required: folder with config.json, acoustic model and graph (docs/how-to/transcribe.md), a model folder of CMU Sphinx, or FILE.py:NAME, a class of your own")
    parser.add_argument("--graph", type=pathlib.Path, metavar="FILE", help="decoding graph: read if the file exists, else built and written to it (default: the model's)")
    parser.add_argument("--format", choices=FORMATS, default="text", help="output format (default: text)")
    parser.add_argument("-o", "--output", type=pathlib.Path, metavar="FOLDER", help="folder for one file per recording (default: standard output)")
    parser.add_argument("--resume", action="store_true", help="skip recordings that have a file in the output folder, and continue long recordings that were started")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="only part I (from 0) of N parts of the recordings, chosen by their keys, for job arrays")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="option of the decoder, such as beam=12 (may be repeated; see warpfst options decoder)"
    )
    most = number(1, 1e6)
    parser.add_argument("--batch-seconds", type=most, default=Limits().batch_seconds, metavar="S", help="seconds of audio per batch, with padding (default: 120)")
    parser.add_argument("--max-seconds", type=most, default=Limits().max_seconds, metavar="S", help="cut recordings longer than this many seconds at quiet places (default: 30)")
    rate = number(audio.MIN_RATE, audio.MAX_RATE, int)
    parser.add_argument("--rate", type=rate, metavar="N", help="standard input is raw samples (s16le, one channel) at this sample rate in Hz (default: WAV)")
    parser.add_argument("--num-threads", type=number(0, 1024, int), default=0, metavar="N", help="number of threads; 0: one per processor (default: 0)")
    parser.add_argument("--ref", type=pathlib.Path, metavar="FILE", help="reference words by key; adds the word error rate to the summary")
    parser.add_argument("--progress", action="store_true", help="print a line after every batch, even if standard error is not a terminal")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress and no summary")
    return parser


def _shard(text: str) -> tuple[int, int]:
    """Parses `I/N`: part I (from 0) of N parts."""
    part, sign, count = text.partition("/")
    if not (sign and part.isdecimal() and count.isdecimal() and int(part) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r}, expected I/N with I from 0 to N - 1")
    return int(part), int(count)


class Run:
    """One call of the command."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.num_failed = self.num_done = 0
        self.audio_seconds = 0.0
        self.begin = time.monotonic()
        self.writer = Writer(arguments.format, sys.stdout)
        self.in_order = InOrder([], self.print)

    def fail(self, path: pathlib.Path, why: object) -> None:
        self.num_failed += 1
        self.note(f"{path}: {why}")

    def note(self, text: str) -> None:
        print(f"\r\033[K{text}" if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def output_file(self, key: str) -> pathlib.Path | None:
        return None if self.arguments.output is None else output_file(self.arguments.output, key, self.arguments.format)

    def todo(self) -> list[Found]:
        """The recordings to transcribe. Reports missing files before the model is loaded."""
        found = find(self.arguments.audio, [] if self.arguments.list is None else read_list(self.arguments.list))
        if not found:
            raise ValueError("no audio files given")
        todo = []
        for one in found:
            if self.arguments.shard is not None and shard_of(one.key, self.arguments.shard[1]) != self.arguments.shard[0]:
                continue
            if one.error:
                self.fail(one.path, one.error)
                continue
            file = self.output_file(one.key)
            if self.arguments.resume and file is not None and is_written(file):
                continue
            if os.path.exists(one.path):
                todo.append(one)
            else:
                self.fail(one.path, "no such file")
        return todo

    def by_length(self, todo: list[Found], model: Model) -> list[Recording]:
        """Sorted by length, so that those of a batch have similar lengths. Reports those that cannot be read."""
        recordings = []
        for key, path, *_ in todo:
            try:
                recordings.append(Recording(key, path, model.seconds(path)))
            except ENDS_RUN:
                raise
            except Exception as why:  # noqa: BLE001 - files and models of others raise anything
                self.fail(path, reason(why))
        return sorted(recordings, key=lambda recording: recording.seconds)

    def partial_of(self, group: list[Recording], limits: Limits, model: Model, options: dict[str, Any]) -> Partial | None:
        """The stored parts of a long recording; None for short recordings and without --output."""
        file = self.output_file(group[0].key)
        if file is None or len(group) > 1 or group[0].seconds <= limits.batch_seconds:
            return None
        graph = self.arguments.graph
        settings = {**limits._asdict(), "graph": graph and os.fspath(graph), **{name: value for name, value in options.items() if name != "num_threads"}}
        whose = identity(group[0].path, model.files, settings)
        return Partial(file.with_name(file.name + ".partial"), whose, resume=self.arguments.resume)

    def print(self, transcript: Transcript) -> None:
        try:
            self.writer.put(transcript)
        except UnicodeError as why:  # a name that is no text; other errors of standard output are those of all recordings
            self.num_done -= 1
            self.fail(pathlib.Path(transcript.path), why)

    def put(self, transcript: Transcript) -> bool:
        """Returns whether it was written, or is in its place for standard output."""
        if self.arguments.output is None:
            self.num_done += 1
            self.in_order.add(transcript.key, transcript)
            return True
        try:
            write_file(self.arguments.output, self.arguments.format, transcript)
        except (OSError, ValueError) as why:
            self.fail(pathlib.Path(transcript.path), why)
            return False
        self.num_done += 1
        return True

    def progress(self, recording: Recording, position: float, seconds: float, total: int) -> None:
        """Prints progress. `position`: seconds of the recording that are done. `seconds`: seconds of audio in the batch."""
        self.audio_seconds += seconds
        if self.arguments.quiet or not (self.arguments.progress or sys.stderr.isatty()):
            return
        text = f"{self.num_done}/{total} recording{'s' * (total != 1)}"
        if recording.seconds > self.arguments.batch_seconds:
            text += f", {recording.path.name} {min(100 * position / recording.seconds, 100):.0f}%"
        text += f", {self.audio_seconds / 60:.1f} min, {self.speed()}"
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def speed(self) -> str:
        return f"{self.audio_seconds / max(time.monotonic() - self.begin, 1e-3):.0f} x real time"

    def summary(self) -> None:
        if self.arguments.quiet:
            return
        spent = time.monotonic() - self.begin
        rate = f", {self.speed()}" if self.num_done else ""
        self.note(f"{self.num_done} recording{'s' * (self.num_done != 1)}, {self.num_failed} failed, {self.audio_seconds / 60:.2f} min of audio in {spent:.1f} s{rate}")


def decoder_options(arguments: argparse.Namespace) -> dict[str, Any]:
    options: dict[str, Any] = {"device": arguments.device, "num_threads": arguments.num_threads}
    for text in arguments.option:
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"--option {text}: expected NAME=VALUE")
        name = name.replace("-", "_")
        options[name] = from_text("decoder", name, value)
    return options


def _files(run: Run, interrupts: Interrupts) -> None:
    arguments = run.arguments
    todo = run.todo()
    if arguments.format in ("srt", "vtt") and arguments.output is None and len(todo) > 1:
        raise ValueError(f"--format {arguments.format} of several recordings needs --output")
    references = None if arguments.ref is None else read_transcripts(arguments.ref)
    wer = Wer(ignore_case=True)
    recordings: list[Recording] = []
    if todo:
        model, decoder = _open(run)
        recordings = run.by_length(todo, model)
        readable = {recording.key for recording in recordings}
        run.in_order = InOrder([one.key for one in todo if one.key in readable], run.print)
    limits = Limits(arguments.batch_seconds, arguments.max_seconds)

    def after_batch(recording: Recording, position: float, seconds: float) -> None:
        run.progress(recording, position, seconds, len(recordings))
        interrupts.check()

    for group in groups(recordings, limits.batch_seconds):
        try:
            partial = run.partial_of(group, limits, model, decoder_options(arguments))
        except OSError as why:  # of the output folder; the group is one recording
            run.fail(group[0].path, why)
            continue
        for outcome in transcribe_group(model, decoder, group, limits, partial, after_batch):
            if not isinstance(outcome, Transcript):
                run.fail(outcome[0].path, reason(outcome[1]))
                run.in_order.add(outcome[0].key, None)
                continue
            if not run.put(outcome):
                continue
            if partial is not None:
                partial.remove()
            if references is not None and outcome.key in references:
                wer.add(references[outcome.key], outcome.text, outcome.key)
    run.summary()
    if references is not None and not arguments.quiet:
        run.note(str(wer.totals))


def _standard_input(run: Run, interrupts: Interrupts) -> None:
    """Decodes each piece when it ends, at a pause. Writes its words at once; with --output, writes all words at the end."""
    arguments = run.arguments
    if len(arguments.audio) > 1 or arguments.list is not None or arguments.resume or arguments.shard is not None or arguments.ref is not None:
        raise ValueError("'-' (standard input) cannot be combined with other recordings, --list, --resume, --shard or --ref")
    model, decoder = _open(run)
    blocks = standard_input.blocks(0, arguments.rate, model.sample_rate, interrupts)
    parts = []
    for begin, samples in audio.cut(blocks, model.sample_rate, arguments.max_seconds, at_pauses=True):
        (part,) = decode_pieces(model, decoder, [(begin, samples)])
        if isinstance(part, Exception):
            raise part
        run.audio_seconds += len(samples) / model.sample_rate
        if arguments.output is not None:
            parts.append(part)
        elif part.words:
            run.writer.put(transcript_of(_STDIN_KEY, _STDIN, [part], model.sample_rate))
    if arguments.output is not None:
        write_file(arguments.output, arguments.format, transcript_of(_STDIN_KEY, _STDIN, parts, model.sample_rate))
    run.num_done = 1
    run.summary()


def _open(run: Run) -> tuple[Model, Decoder]:
    arguments = run.arguments
    model = open_model(arguments.model, arguments.device, arguments.num_threads)
    decoder = model.decoder(arguments.graph, decoder_options(arguments))
    run.begin = time.monotonic()
    return model, decoder


def _run(run: Run) -> int:
    arguments = run.arguments
    if arguments.resume and arguments.output is None:
        raise ValueError("--resume needs --output, the folder with the finished recordings")
    live = _STDIN in arguments.audio
    if arguments.rate is not None and not live:
        raise ValueError("--rate is for raw samples on standard input: it needs '-' as the recording")
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
    with Interrupts(raised=not live) as interrupts:
        try:
            (_standard_input if live else _files)(run, interrupts)
        finally:
            run.in_order.finish()  # what is done when Ctrl-C comes
    return 1 if run.num_failed else 0


def main(given: Sequence[str]) -> int:
    run = Run(_parser().parse_args(given))
    try:
        return _run(run)
    except (Error, ValueError, OSError, RuntimeError, ImportError) as why:
        print(f"warpfst transcribe: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        run.note("interrupted" + ("; the same command with --resume continues" if run.arguments.output is not None else ""))
        return 130
