#!/usr/bin/env python3
"""lm [--repeat=N] [--record]

Reading ARPA files, and lookups per second on one core (bench_lm): the LM of examples/ctc over its transcripts, and that of the large task of
`./run bench fstops` over the text of its own bigrams.
"""
import argparse
import json
import subprocess
import sys

import fstops
import measure
from measure import BUILD, ROOT

CTC = ROOT / "examples" / "ctc"


def transcripts(path, out):
    with open(path, encoding="utf-8") as lines, open(out, "w", encoding="utf-8") as text:
        text.writelines(" ".join(line.split()[1:]) + "\n" for line in lines)


def bigram_text(arpa, out, num_lines=50000):
    """Sentences of bigrams of the model, each of them starting where the one before ended when that is possible."""
    followers = {}
    section = ""
    for line in open(arpa, encoding="utf-8"):
        if line.startswith("\\"):
            section = line.strip()
        elif section == "\\2-grams:" and line.strip():
            first, second = line.split("\t")[1].split()
            followers.setdefault(first, []).append(second)
    with open(out, "w", encoding="utf-8") as text:
        for i in range(num_lines):
            word, words = "<s>", []
            for k in range(30):
                nexts = followers.get(word, ["</s>"])
                word = nexts[(i * 7919 + k * 104729) % len(nexts)]
                if word == "</s>":
                    break
                words.append(word)
            text.write(" ".join(words) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    arguments = parser.parse_args()
    large = fstops.make_large_task()
    transcripts(CTC / "text", BUILD / "ctc.text")
    bigram_text(large["lm"], BUILD / "large.text")
    rows, figures = [], []
    for name, lm, text in (("ctc", CTC / "lm3.arpa.gz", BUILD / "ctc.text"), ("large", large["lm"], BUILD / "large.text")):
        command = measure.pinned([ROOT / "build" / "release" / "bench" / "bench_lm", lm, text, "1"], measure.last_core())
        runs = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout) for _ in range(arguments.repeat)]
        read_s, rate = min(run["read_cpu_s"] for run in runs), max(run["queries_per_cpu_s"] for run in runs)
        ngrams, mib = runs[0]["ngrams"], runs[0]["bytes"] / 2**20
        rows.append([name, ngrams, f"{mib:.1f}", f"{read_s:.3f}", f"{ngrams / read_s / 1e6:.2f}", f"{rate / 1e6:.1f}"])
        figures += [("LM reading", f"{name}, {ngrams} n-grams, one core, processor time", f"{read_s:.3f}", "s"),
                    ("LM lookups", f"{name}, {ngrams} n-grams, one core", f"{rate / 1e6:.1f}", "million/s")]
    print(f"{measure.machine()}; best of {arguments.repeat}; load {measure.load()}", file=sys.stderr)
    print(measure.table(["LM", "n-grams", "MiB in memory", "read, s", "million n-grams/s read", "million lookups/s"], rows))
    if arguments.record:
        measure.record(figures, "./run bench lm")


if __name__ == "__main__":
    main()
