"""Released checkpoints, from the folders or names as they are published to words with language model and phrases: runs recipe.py for each, and fills the table of README.md.

    python examples/librispeech/checkpoints.py --device cuda --phrases names.txt       # needs network; hours, most of them for downloads
    python examples/librispeech/checkpoints.py --only "wav2vec 2.0 base" --sets test-clean
    python examples/librispeech/checkpoints.py --fill                                  # the table alone, of the results so far

Other arguments are recipe.py's. Results are kept as JSON files in the cache folder, so an interrupted run goes on with the next checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

import recipe
from speech_sets import LEADERBOARD

README = pathlib.Path(__file__).resolve().parent / "README.md"
SETS = ("test-clean", "test-other", *(f"esb/{name}" for name in LEADERBOARD))
TUNED_ON = "dev-other"

# Name in the table -> what recipe.py needs beside sets and searches.
CHECKPOINTS: dict[str, list[str]] = {
    "Granite TurboCTC 470M": ["--model", "ibm-granite/granite-speech-5.0-470m-turboctc"],
    "Parakeet CTC 0.6B": ["--model", "nvidia/parakeet-ctc-0.6b"],
    "Parakeet TDT 0.6B v3": ["--model", "nvidia/parakeet-tdt-0.6b-v3"],
    "wav2vec 2.0 base": ["--model", "facebook/wav2vec2-base-960h"],
    "MMS 1B": ["--model", "facebook/mms-1b-all", "--language", "eng"],
    "Zipformer transducer": ["--model", "Zengwei/icefall-asr-librispeech-zipformer-2023-05-15", "--toolkit", "icefall"],
}
ROWS = {"greedy": "greedy", "warpfst": "3-gram", "phrases": "3-gram, phrases"}  # search of a report -> name in the table


def command(name: str, phrases: pathlib.Path | None) -> list[str]:
    """The arguments of recipe.py for a checkpoint."""
    searches = ["greedy", "warpfst", *([f"warpfst:phrases={phrases}"] if phrases else [])]
    return [*CHECKPOINTS[name], "--tune", TUNED_ON, *(word for search in searches for word in ("--search", search))]


def table(reports: dict[str, Any]) -> str:
    """The table of README.md. `reports`: name of a checkpoint -> report of recipe.py. What has no report is empty."""
    lines = [f"| checkpoint | search | {' | '.join(name.removeprefix('esb/') for name in SETS)} | RTFx of the search |", f"|---|---|{'--:|' * (len(SETS) + 1)}"]
    for name in CHECKPOINTS:
        sets = {one["set"]: one["rows"] for one in reports.get(name, {}).get("sets", [])}
        for search, label in ROWS.items():
            found = {key: row for key, rows in sets.items() for row in rows if ("phrases" if "phrases=" in row["search"] else row["search"].partition(":")[0]) == search}
            cells = [f"{found[key]['wer']:.2f}" if key in found else "" for key in SETS]
            speed = f"{found[SETS[0]]['rtfx_search']:,.0f}" if SETS[0] in found else ""
            lines.append(f"| {name if search == 'greedy' else ''} | {label} | {' | '.join(cells)} | {speed} |")
    return "\n".join(re.sub(r"  +", " ", line) for line in lines)


def fill(readme: pathlib.Path, reports: dict[str, Any]) -> None:
    text = readme.read_text(encoding="utf-8")
    made = re.sub(r"(<!-- checkpoints -->\n).*?(<!-- end of checkpoints -->)", lambda part: f"{part[1]}\n{table(reports)}\n\n{part[2]}", text, flags=re.DOTALL)
    readme.write_text(made, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(CHECKPOINTS), help="may be repeated; default: all")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--phrases", type=pathlib.Path, help="phrases to favour, one a line, for a row of their own")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "warpfst-recipe")
    parser.add_argument("--readme", type=pathlib.Path, default=README, help="the file with the table (%(default)s)")
    parser.add_argument("--fill", action="store_true", help="no runs, only the table")
    args, others = parser.parse_known_args(argv)
    folder = args.cache / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    for name in () if args.fill else args.only or CHECKPOINTS:
        report = folder / f"{name}.json"
        if report.exists() and not args.only:
            print(f"{name}: there is {report}", file=sys.stderr)
            continue
        recipe.main([*command(name, args.phrases), "--sets", *args.sets, "--cache", str(args.cache), "--json", str(report), *others])
    fill(args.readme, {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in CHECKPOINTS if (folder / f"{name}.json").exists()})


if __name__ == "__main__":
    main()
