"""Word error rate and speed of a public CTC model or transducer on LibriSpeech or the Open ASR Leaderboard's sets: greedy, warpfst with a language model, and peers.

    python examples/librispeech/recipe.py --model facebook/wav2vec2-base-960h

Downloads what it needs into a cache folder, computes the model's scores once, and gives the same scores to each search. README.md beside it says more.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from acoustic import AcousticModel, open_acoustic
from fetch import DownloadError, Hub, fetch, md5_of
from searches import Search, Vocabulary, open_searches
from speech_sets import LEADERBOARD, Normalizer, Utterance, open_set, plain_text, scored, whisper_text
from tune import tune

import warpfst as wf

OPENSLR, HUB = "https://www.openslr.org/resources", "https://huggingface.co"
LMS = ("3-gram.pruned.1e-7", "3-gram.pruned.3e-7", "3-gram", "4-gram")
LEXICON = "librispeech-lexicon.txt"


@dataclasses.dataclass
class Block:
    """Utterances with their samples: what the model and each search are given at a time."""

    utterances: list[Utterance]
    samples: list[np.ndarray]


class Tally:
    """Texts, errors and seconds of one search on one set."""

    def __init__(self, label: str, search: Search) -> None:
        self.label, self.search, self.seconds = label, search, 0.0
        self.texts: dict[str, str] = {}
        self._wer = wf.Wer()

    def add(self, utterances: Sequence[Utterance], scores: Sequence[np.ndarray], normalize: Normalizer) -> None:
        begin = time.perf_counter()
        texts = self.search.decode(scores)
        self.seconds += time.perf_counter() - begin
        for utterance, text in zip(utterances, texts):
            self.texts[utterance.key] = normalize(text)
            self._wer.add(normalize(utterance.text), self.texts[utterance.key], utterance.key)

    @property
    def counts(self) -> wf.Counts:
        return self._wer.totals


def blocks(utterances: Iterable[Utterance], rate: int, seconds: float) -> Iterator[Block]:
    """Blocks of about `seconds` of audio, so that memory does not depend on the size of the set."""
    block, held = Block([], []), 0.0
    for utterance in utterances:
        samples = utterance.samples(rate)
        block.utterances.append(utterance)
        block.samples.append(samples)
        held += len(samples) / rate
        if held >= seconds:
            yield block
            block, held = Block([], []), 0.0
    if block.utterances:
        yield block


def scores_of(model: AcousticModel, samples: Sequence[np.ndarray], batch: int) -> list[np.ndarray]:
    """The model's scores, in batches of utterances of similar length, so that there is little padding."""
    order = sorted(range(len(samples)), key=lambda i: -len(samples[i]))
    made: dict[int, np.ndarray] = {}
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        made.update(zip(chosen, model.scores([samples[i] for i in chosen])))
    return [made[i] for i in range(len(samples))]


def run_set(name: str, utterances: Iterable[Utterance], model: AcousticModel, searches: dict[str, Search], normalize: Normalizer, args: argparse.Namespace) -> dict[str, Any]:
    """Scores and searches a set. Returns what the table and the JSON file say."""
    tallies = [Tally(label, search) for label, search in searches.items()]
    audio_s = model_s = 0.0
    references: dict[str, str] = {}
    for block in blocks(utterances, model.sample_rate, 60 * args.block_minutes):
        begin = time.perf_counter()
        scores = scores_of(model, block.samples, args.batch)
        model_s += time.perf_counter() - begin
        audio_s += sum(map(len, block.samples)) / model.sample_rate
        references.update((utterance.key, normalize(utterance.text)) for utterance in block.utterances)
        for tally in tallies:
            tally.add(block.utterances, scores, normalize)
        print(f"{name}: {len(references)} utterances, {audio_s / 3600:.2f} h", file=sys.stderr)
    if not references:
        raise SystemExit(f"{name}: no utterances")
    rows = []
    for tally in tallies:
        counts = tally.counts
        row = {"search": tally.label, "about": tally.search.about, "wer": counts.percent, "errors": counts.num_errors, "words": counts.num_words}
        row.update(substitutions=counts.num_substitutions, deletions=counts.num_deletions, insertions=counts.num_insertions)
        row.update(search_s=tally.seconds, rtfx_search=audio_s / max(tally.seconds, 1e-9), rtfx=audio_s / max(tally.seconds + model_s, 1e-9))
        rows.append(row)
    if args.out:
        write_texts(args.out / name.replace("/", "-"), {"ref": references, **{tally.label: tally.texts for tally in tallies}})
    return {"set": name, "utterances": len(references), "audio_s": audio_s, "model_s": model_s, "rtfx_model": audio_s / max(model_s, 1e-9), "rows": rows}


def tune_all(one_set: Any, model: AcousticModel, searches: dict[str, Search], normalize: Normalizer, args: argparse.Namespace) -> dict[str, Any]:
    """Sets the weights of the searches that have some to the best on a development set. Returns what the JSON file says."""
    utterances = list(chosen(one_set, normalize, args.tune_limit))
    if not utterances:
        raise SystemExit(f"{one_set.name}: no utterances")
    scores = scores_of(model, [utterance.samples(model.sample_rate) for utterance in utterances], args.batch)
    references, report = [normalize(utterance.text) for utterance in utterances], {}
    for label, search in searches.items():
        if search.has_weights:
            best = tune(search, scores, references, normalize)
            search.about += f"; {best}"
            report[label] = best._asdict()
            print(f"{label}: {best}: WER {best.percent:.2f}% on {len(utterances)} utterances of {one_set.name}", file=sys.stderr)
    return {"set": one_set.name, "utterances": len(utterances), "weights": report}


def write_texts(folder: pathlib.Path, texts: dict[str, dict[str, str]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for label, by_key in texts.items():
        name = "".join(character if character.isalnum() or character in ".=-" else "_" for character in label)
        (folder / f"{name}.txt").write_text("".join(f"{key} {text}\n" for key, text in by_key.items()), encoding="utf-8")


def table(report: dict[str, Any], model: str) -> str:
    title = f"{report['set']}: {report['utterances']} utterances, {report['audio_s'] / 3600:.2f} h; {model}, RTFx of the model alone {report['rtfx_model']:,.0f}"
    lines = [title, "", "| search | WER | errors of words | RTFx of the search | RTFx with the model | |", "|---|--:|--:|--:|--:|---|"]
    for row in report["rows"]:
        lines.append(f"| {row['search']} | {row['wer']:.2f}% | {row['errors']:,} of {row['words']:,} | {row['rtfx_search']:,.0f} | {row['rtfx']:,.0f} | {row['about']} |")
    return "\n".join(lines) + "\n"


def find_lm(name: str, url: str, cache: pathlib.Path) -> pathlib.Path | None:
    """A public model of LibriSpeech by name, or a file."""
    if name == "none":
        return None
    if name in LMS:
        return download(f"{url}/11/{name}.arpa.gz", cache)
    path = pathlib.Path(name)
    if not path.exists():
        raise SystemExit(f"{name}: no such file, and no public model: {', '.join(LMS)}, none")
    return path


def download(url: str, cache: pathlib.Path) -> pathlib.Path:
    path = cache / url.rpartition("/")[2]
    return path if path.exists() else fetch(url, path, checksum=md5_of(url))


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model", required=True, help="a name on HuggingFace's Hub, a folder, a .nemo archive, or a model folder of `warpfst transcribe`")
    add("--toolkit", choices=("auto", "huggingface", "nemo", "icefall", "folder"), default="auto", help="of the model; auto: by its name")
    add("--language", help="of a model with several, as it names them: eng for MMS")
    add("--sets", nargs="+", default=["test-clean", "test-other"], help="test-clean, test-other, dev-clean, dev-other; esb/ami, esb/tedlium, ...; esb: all sets of the leaderboard")
    add("--lm", default="3-gram.pruned.1e-7", help=f"{', '.join(LMS)}, a file (ARPA, KenLM's trie, .wlm), or none")
    add("--lexicon", help=f"pronunciations for a model of phones; default: LibriSpeech's, {LEXICON}")
    add("--search", action="append", metavar="SPEC", help="may be repeated: greedy, warpfst, pyctcdecode, flashlight, each with :OPTION=VALUE,..., as in warpfst:phrases=FILE. Default: all, with their defaults")
    add("--tune", metavar="SET", help="first finds the weight of the language model and the word score of each search on this set, such as dev-clean or dev-other")
    add("--tune-limit", type=int, default=300, help="utterances of that set")
    add("--device", default="cpu", help="of the model and of warpfst's search: cpu, cuda")
    add("--half", action="store_true", help="the model computes in float16")
    add("--threads", type=int, default=1, help="of warpfst's search on a CPU; the peers have one")
    add("--model-threads", type=int, default=os.cpu_count() or 1, help="of the model on a CPU")
    add("--batch", type=int, default=8, help="utterances that the model is given at once")
    add("--block-minutes", type=float, default=60, help="audio whose scores are held in memory, which the searches are given at once")
    add("--limit", type=int, help="the first N utterances of each set")
    add("--normalizer", choices=("plain", "whisper"), help="of references and hypotheses; default: plain for LibriSpeech, whisper for the leaderboard's sets")
    add("--cache", type=pathlib.Path, default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "warpfst-recipe")
    add("--base-url", default=OPENSLR, help="of OpenSLR's files, for mirrors: BASE/12/test-clean.tar.gz, BASE/11/4-gram.arpa.gz (%(default)s)")
    add("--hub-url", default=HUB, help="of HuggingFace's Hub, for the leaderboard's sets (%(default)s)")
    add("--out", type=pathlib.Path, help="folder for the texts: OUT/SET/SEARCH.txt and ref.txt, normalized")
    add("--json", type=pathlib.Path, help="file for all figures")
    args = parser.parse_args(argv)
    if min(args.batch, args.threads, args.model_threads, args.tune_limit) < 1 or args.block_minutes <= 0 or (args.limit is not None and args.limit < 1):
        parser.error("--batch, --threads, --model-threads, --tune-limit, --block-minutes and --limit must be positive")
    args.sets = [name for given in args.sets for name in ([f"esb/{one}" for one in LEADERBOARD] if given == "esb" else [given])]
    args.base_url = args.base_url.rstrip("/")
    return args


def chosen(one_set: Any, normalize: Normalizer, limit: int | None) -> Iterator[Utterance]:
    for count, utterance in enumerate(utterance for utterance in one_set.utterances() if scored(utterance, normalize)):
        if limit is not None and count == limit:
            return
        yield utterance


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    hub = Hub(args.hub_url, args.cache)
    sets = [open_set(name, args.base_url, hub, args.cache) for name in args.sets]
    development = open_set(args.tune, args.base_url, hub, args.cache) if args.tune else None
    lm = find_lm(args.lm, args.base_url, args.cache)
    lexicon = pathlib.Path(args.lexicon) if args.lexicon else None if lm is None else download(f"{args.base_url}/11/{LEXICON}", args.cache)
    for one in [*sets, *([development] if development else [])]:
        one.prepare()
    if args.device == "cpu":
        limit_threads(args.model_threads)
    model = open_acoustic(args.model, args.toolkit, args.device, args.half, args.model_threads, args.language)
    vocabulary = Vocabulary(model.tokens, lm, lexicon, args.cache, model.transducer)
    if vocabulary.num_missing:
        print(f"{vocabulary.num_missing:,} words of the language model have no spelling in the model's tokens and are left out", file=sys.stderr)
    defaults = {"num_threads": args.threads, "device": args.device}
    searches, left_out = open_searches(args.search or ["greedy", "warpfst", "pyctcdecode", "flashlight"], vocabulary, defaults)

    def normalizer(one: Any) -> Normalizer:
        return whisper_text(hub) if (args.normalizer or one.default_normalizer) == "whisper" else plain_text

    tuned = tune_all(development, model, searches, normalizer(development), args) if development else None
    reports = []
    for one in sets:
        normalize = normalizer(one)
        reports.append(run_set(one.name, chosen(one, normalize, args.limit), model, searches, normalize, args))
        print(table(reports[-1], args.model), flush=True)
    for label, why in left_out.items():
        print(f"{label}: left out: {why}")
    if args.json:
        about = {"model": args.model, "lm": args.lm, "device": args.device, "machine": platform.processor() or platform.machine(), "warpfst": wf.__version__, "left_out": left_out, "tuned": tuned}
        args.json.write_text(json.dumps({**about, "sets": reports}, indent=1), encoding="utf-8")


def limit_threads(count: int) -> None:
    """Of torch, if it is installed."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(count)


if __name__ == "__main__":
    try:
        main()
    except DownloadError as error:
        raise SystemExit(f"download failed: {error}") from error
