"""grammar [--rounds=5] [--json] [--record]

Compiles the text-normalisation grammar of text_grammar.py with warpfst and with pynini, and rewrites sentences. For each part: states and arcs of both, and the
milliseconds that the whole grammar takes; then the microseconds of a sentence. Both must write the same texts, else the exit code is 1. Processor time, best of --rounds.

--record writes the figures to bench/figures.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
import types
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import pynini
import text_grammar
from pynini.lib import pynutil, rewrite

from warpfst import strings

SENTENCES = [
    "The meeting is on 14 March 2024 at 7:45 pm.",
    "Born 3 Jan 1905, died 31 December 1999.",
    "It opens at 9:00 and closes at 12:05 am",
    "no numbers are in this sentence",
    "Rooms (10:30) are shown on 1 May, 2 May 2003 and 30 Sep 2018",
]
THEIRS = types.SimpleNamespace(
    accep=pynini.accep, add_weight=pynutil.add_weight, cross=pynini.cross, cdrewrite=pynini.cdrewrite, string_map=pynini.string_map, optimize=pynini.optimize, insert=pynutil.insert, delete=pynutil.delete
)


def best(call: Callable[[], Any], rounds: int) -> float:
    """Processor seconds."""
    seconds = []
    for _ in range(rounds):
        begin = time.process_time()
        call()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    ours, theirs = text_grammar.grammar(strings), text_grammar.grammar(THEIRS)
    rows: list[tuple[str, str, float, str]] = []
    for name in ours:
        their_size = theirs[name].num_states(), sum(theirs[name].num_arcs(state) for state in theirs[name].states())
        for who, size in (("warpfst", (ours[name].num_states, ours[name].num_arcs)), ("pynini", their_size)):
            rows += [(f"grammar {name}, {who}", "size", number, unit) for number, unit in zip(size, ("states", "arcs"))]
    ends = "dates and times in text"
    wrong = [text for text in SENTENCES if strings.rewrite(text, ours[ends]) != rewrite.top_rewrite(pynini.escape(text), theirs[ends])]
    for who, library in (("warpfst", strings), ("pynini", THEIRS)):
        rows.append((f"grammar, {who}", "compiling all parts", round(1e3 * best(lambda library=library: text_grammar.grammar(library), options.rounds), 1), "ms"))
    calls = {"warpfst": lambda: [strings.rewrite(text, ours[ends]) for text in SENTENCES], "pynini": lambda: [rewrite.top_rewrite(pynini.escape(text), theirs[ends]) for text in SENTENCES]}
    for who, call in calls.items():
        rows.append((f"grammar, {who}", "a sentence", round(1e6 * best(call, 20 * options.rounds) / len(SENTENCES), 1), "us"))
    for what, setup, figure, unit in rows:
        print(json.dumps({"what": what, "setup": setup, "figure": figure, "unit": unit}) if options.json else f"{what:44}{setup:22}{figure:12.1f} {unit}")
    if options.record:
        measure.record(rows, "./run bench grammar")
    if wrong:
        sys.exit(f"different texts for {wrong}")


if __name__ == "__main__":
    main()
