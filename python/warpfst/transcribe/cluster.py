"""Transcribes a list of recordings with the actors of a Ray cluster, or a part of it in one process (transcribe_part):
`python -m warpfst.transcribe.cluster --list LIST --model MODEL -o FOLDER --actors 8 --gpus-per-actor 1`.

    list -> unfinished recordings -> Ray Data: batches -> actors (each with a model and a decoder) -> a file per recording -> a row per recording -> summary

The model is a folder or a class of your own (Model, ArrayModel). Each recording has an output file in a folder that all machines share. A file appears only when it is complete. So a run can be stopped and started again, and a batch can be
repeated when a machine is lost. The words are the same as on one machine; costs are the same up to the rounding of padded batches. Needs the packages of `pip install '.[audio,cluster]'`
on every machine.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..errors import Error
from .audio import need
from .command import decoder_options
from .keys import checked, read_list, shard_of
from .models import Model, open_model
from .outputs import FORMATS, Transcript, is_written, output_file, write_file
from .pipeline import ENDS_RUN, Limits, Recording, groups, reason, transcribe_group


class Settings(NamedTuple):
    """Settings of the actors. Paths must be valid on the machines that the actors run on. `model`: a folder, FILE.py:NAME, or a subclass of Model."""

    model: str | Callable[[str, int], Model]
    output: str
    format: str = "json"
    graph: str | None = None
    options: dict[str, Any] = {}  # noqa: RUF012 - never modified; options of the decoder, including device=
    batch_seconds: float = Limits().batch_seconds
    max_seconds: float = Limits().max_seconds


class Summary(NamedTuple):
    """Result of a run. `num_there`: recordings that had a file before. `failed`: (key, error message)."""

    num_done: int
    num_there: int
    audio_seconds: float
    failed: list[tuple[str, str]]


class Transcriber:
    """An actor. Loads model and graph once. For each batch of (key, path), writes the files and returns a row (key, error, seconds) for each recording."""

    def __init__(self, settings: Settings) -> None:
        device, threads = settings.options.get("device", "cpu"), int(settings.options.get("num_threads", 0))
        self._settings = settings
        self._model = open_model(settings.model, device, threads)
        self._decoder = self._model.decoder(None if settings.graph is None else pathlib.Path(settings.graph), dict(settings.options))

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        settings, folder = self._settings, pathlib.Path(self._settings.output)
        recordings, rows = [], []
        for key, path in zip(map(str, batch["key"]), map(pathlib.Path, batch["path"])):
            if is_written(output_file(folder, key, settings.format)):  # the batch is repeated after a machine was lost
                rows.append((key, "", 0.0))
                continue
            try:
                recordings.append(Recording(key, path, self._model.seconds(path)))
            except ENDS_RUN:
                raise
            except Exception as why:  # noqa: BLE001 - files and models of others raise anything
                rows.append((key, f"{path}: {reason(why)}", 0.0))
        limits = Limits(settings.batch_seconds, settings.max_seconds)
        for group in groups(sorted(recordings, key=lambda recording: recording.seconds), limits.batch_seconds):
            rows += [self._row(outcome) for outcome in transcribe_group(self._model, self._decoder, group, limits)]
        return {"key": [row[0] for row in rows], "error": [row[1] for row in rows], "seconds": [row[2] for row in rows]}

    def _row(self, outcome: Transcript | tuple[Recording, Exception]) -> tuple[str, str, float]:
        """Writes the file of a transcript."""
        if not isinstance(outcome, Transcript):
            return outcome[0].key, f"{outcome[0].path}: {reason(outcome[1])}", 0.0
        try:
            write_file(pathlib.Path(self._settings.output), self._settings.format, outcome)
        except (OSError, ValueError) as why:
            return outcome.key, f"{outcome.path}: {reason(why)}", 0.0
        return outcome.key, "", outcome.seconds


Recordings = Iterable[tuple[str, "str | pathlib.Path"]]


class _Listed(NamedTuple):
    todo: list[dict[str, str]]  # rows (key, path) of the recordings that have no file
    num_there: int
    failed: list[tuple[str, str]]  # those with a wrong key


def _listed(recordings: Recordings, settings: Settings) -> _Listed:
    folder = pathlib.Path(settings.output)
    folder.mkdir(parents=True, exist_ok=True)
    found = checked(recordings)
    good = [one for one in found if not one.error]
    todo = [{"key": one.key, "path": str(one.path)} for one in good if not is_written(output_file(folder, one.key, settings.format))]
    return _Listed(todo, len(good) - len(todo), [(one.key, f"{one.path}: {one.error}") for one in found if one.error])


def _summary(rows: Iterable[dict[str, Any]], listed: _Listed) -> Summary:
    failed, num_done, seconds = list(listed.failed), 0, 0.0
    for row in rows:
        seconds += row["seconds"]
        if row["error"]:
            failed.append((row["key"], row["error"]))
        else:
            num_done += 1
    return Summary(num_done, listed.num_there, seconds, sorted(failed))


def transcribe_list(
    recordings: Recordings,
    settings: Settings,
    *,
    actors: int = 1,
    cpus_per_actor: float | None = None,
    gpus_per_actor: float | None = None,
    batch_size: int = 64,
    max_retries: int = 10,
) -> Summary:
    """Transcribes the recordings that have no file yet. Uses Ray as it was set up with `ray.init`, or starts it on this machine.

    `cpus_per_actor`: by default 1, or what Ray gives to actors with a GPU. `gpus_per_actor`: by default 1 if the device is cuda, else 0. Ray shows an actor only its own
    GPUs, so device="cuda" is the actor's. If an actor or its machine dies, Ray starts another and repeats the batch, at most `max_retries` times: a recording that
    kills every actor ends the run with RuntimeError. The next call tries failed recordings again.
    """
    data = need("ray.data", "cluster")
    gpus = float(str(settings.options.get("device", "cpu")).startswith("cuda")) if gpus_per_actor is None else gpus_per_actor
    listed = _listed(recordings, settings)
    if not listed.todo:
        return _summary([], listed)
    rows = data.from_items(listed.todo, override_num_blocks=-(-len(listed.todo) // batch_size)).map_batches(
        Transcriber,
        fn_constructor_args=(settings,),
        compute=data.ActorPoolStrategy(size=actors),
        batch_size=batch_size,
        num_cpus=1 if cpus_per_actor is None and not gpus else cpus_per_actor,
        num_gpus=gpus or None,
        max_task_retries=max_retries,
    )
    try:
        return _summary(rows.iter_rows(), listed)
    except need("ray.exceptions", "cluster").RayActorError as why:
        raise RuntimeError(f"a batch was tried {1 + max_retries} times, and its actor died each time: {why}") from None


def transcribe_part(recordings: Recordings, settings: Settings, part: int, num_parts: int) -> Summary:
    """Transcribes part `part` (from 0) of `num_parts` parts in this process, without Ray: those recordings that have no file yet. A recording's key decides its part.

    For processes of torch.distributed: transcribe_part(recordings, settings, dist.get_rank(), dist.get_world_size()).
    """
    if not 0 <= part < num_parts:
        raise ValueError(f"part {part} of {num_parts}, expected 0 to {num_parts - 1}")
    listed = _listed([one for one in recordings if shard_of(one[0], num_parts) == part], settings)
    if not listed.todo:
        return _summary([], listed)
    columns = Transcriber(settings)({name: [row[name] for row in listed.todo] for name in ("key", "path")})
    return _summary((dict(zip(columns, row)) for row in zip(*columns.values())), listed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m warpfst.transcribe.cluster", description="Transcribes recordings with the actors of a Ray cluster. Run the same command again to continue.")
    parser.add_argument("--list", type=pathlib.Path, required=True, metavar="FILE", help="recordings: lines `key path`")
    parser.add_argument("--model", type=pathlib.Path, required=True, metavar="FOLDER", help="model folder or FILE.py:NAME as for `warpfst transcribe`, at the same path on every machine")
    parser.add_argument("--graph", type=pathlib.Path, metavar="FILE", help="existing decoding graph, made with `warpfst transcribe --graph` (default: each actor builds it)")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FOLDER", help="folder for one file per recording; all machines must share it")
    parser.add_argument("--format", choices=FORMATS, default="json", help="output format (default: json)")
    parser.add_argument("--actors", type=int, default=1, metavar="N", help="number of actors, each with its own model (default: 1)")
    parser.add_argument("--cpus-per-actor", type=float, metavar="N", help="CPUs that Ray reserves for each actor (default: 1; with a GPU: Ray's)")
    parser.add_argument("--gpus-per-actor", type=float, metavar="N", help="GPUs that Ray reserves for each actor (default: 1 with --device cuda, else 0)")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="recordings per batch of an actor (default: 64)")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for the GPU that Ray assigns to the actor (default: cpu)")
    parser.add_argument("--num-threads", type=int, default=1, metavar="N", help="threads of each actor; 0: one per processor (default: 1)")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="option of the decoder, such as beam=12 (may be repeated; see warpfst options decoder)")
    parser.add_argument("--address", help="address of the cluster, such as auto (default: $RAY_ADDRESS, else only this machine)")
    return parser


def main(given: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(given)
    begin = time.monotonic()
    try:
        need("ray.data", "cluster")
        need("ray", "cluster").init(address=arguments.address, ignore_reinit_error=True)
        graph = None if arguments.graph is None else str(arguments.graph.absolute())
        settings = Settings(str(arguments.model.absolute()), str(arguments.output.absolute()), arguments.format, graph, decoder_options(arguments))
        recordings = [(key, path.absolute()) for key, path in read_list(arguments.list)]
        sizes: dict[str, Any] = {"cpus_per_actor": arguments.cpus_per_actor, "gpus_per_actor": arguments.gpus_per_actor, "batch_size": arguments.batch_size}
        summary = transcribe_list(recordings, settings, actors=arguments.actors, **sizes)
    except (Error, ValueError, OSError, RuntimeError, ImportError) as why:
        print(f"warpfst.transcribe.cluster: {why}", file=sys.stderr)
        return 2
    for key, error in summary.failed:
        print(f"{key}: {error}", file=sys.stderr)
    spent = time.monotonic() - begin
    done = f"{summary.num_done} recording{'s' * (summary.num_done != 1)} transcribed, {summary.num_there} done before, {len(summary.failed)} failed"
    print(f"{done}, {summary.audio_seconds / 60:.2f} min of audio in {spent:.1f} s", file=sys.stderr)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
