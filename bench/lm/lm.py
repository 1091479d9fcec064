#!/usr/bin/env python3
"""lm [--repeat=N] [--record] [--seconds=N] [--forms]

Measures reading of ARPA files and look-ups per second on one core (bench_lm): the LM of examples/ctc on its transcripts, and the LM of the large task of
`./run bench fstops` and Debian's en-us on texts made of their own bigrams. Then it compares the forms of `warpfst lm convert` for en-us with KenLM's probing and trie
models, built from the sources of PyPI's kenlm (bench/run.sh): building, bytes per n-gram, look-ups, loss. Programs run in turn, so that load on the machine affects all alike.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import generate_task
import measure
from measure import BUILD, ROOT

CTC = ROOT / "examples" / "ctc"


def transcripts(path, out):
    with open(path, encoding="utf-8") as lines, open(out, "w", encoding="utf-8") as text:
        text.writelines(" ".join(line.split()[1:]) + "\n" for line in lines)


def bigram_text(arpa, out, num_lines=50000):
    """Writes sentences made of bigrams of the model. Each bigram starts with the last word of the previous one if possible."""
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


EN_US = pathlib.Path("/usr/share/pocketsphinx/model/en-us/en-us.lm.bin")
FORMS = [("wlm", []), ("wlm, packed", ["--pack=exact"]), ("wlm, 12-bit costs", ["--pack=codebook", "--cost-bits=12"]), ("wlm, 8-bit costs", ["--pack=codebook", "--cost-bits=8"])]


TABLE = "wlm, and its table in memory"


def query(command, seconds, *more):
    done = subprocess.run(measure.pinned([*command, f"--seconds={seconds}", *more], measure.last_core()), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def perplexity(model, text):
    out = subprocess.run([measure.WARPFST, "lm", "perplexity", "--json", model, text], stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(out.splitlines()[-1])["perplexity_without_oovs"]


def compare_forms(arpa, text, arguments):
    """Returns rows of the table of built models, and figures."""
    bench, core = ROOT / "build" / "release" / "bench" / "bench_lm", measure.last_core()
    runs, costs, sizes = {}, {}, {}
    for name, flags in FORMS:
        runs[name] = [bench, BUILD / f"en-us.{name.replace(' ', '_').replace(',', '')}.wlm"]
        costs[name] = measure.timed([measure.WARPFST, "lm", "convert", arpa, "-o", runs[name][1], *flags], core)
    runs[TABLE] = runs["wlm"]
    costs[TABLE] = measure.timed([bench, runs["wlm"][1], text, "--seconds=0.01", "--table"], core) + costs["wlm"]
    for kind in ("probing", "trie"):
        if not KENLM.exists():
            continue
        name = f"KenLM {kind}"
        runs[name] = [BUILD / "peer_kenlm", BUILD / f"en-us.{kind}.kenlm"]
        costs[name] = measure.timed([KENLM, "-s", kind, arpa, runs[name][1]], core)
    rates = {name: 0.0 for name in runs}
    for _ in range(arguments.repeat):
        for name, (program, model) in runs.items():
            result = query([program, model, text], arguments.seconds, *(["--table"] if name == TABLE else []))
            rates[name] = max(rates[name], result["queries_per_cpu_s"])
            sizes[name] = result.get("bytes", model.stat().st_size)
    ngrams = query([*runs["wlm"], text], 0.1)["ngrams"]
    exact = perplexity(runs["wlm"][1], text)
    rows, figures = [], []
    for name, (_, model) in runs.items():
        loss = f"{100 * (perplexity(model, text) / exact - 1):+.3f}" if name.startswith("wlm") else ""
        rounded = re.search("off by ([0-9.]+) nats on average, by ([0-9.]+) at most", costs[name].stderr)
        mean, worst = rounded.groups() if rounded else ("", "")
        rows.append([name, f"{costs[name].cpu_s:.2f}", f"{costs[name].peak_mib:.0f}", f"{sizes[name] / ngrams:.2f}", f"{rates[name] / 1e6:.2f}", loss, mean, worst])
        figures += [("LM forms, lookups", f"en-us, {ngrams} n-grams, {name}, one core", f"{rates[name] / 1e6:.2f}", "million/s"),
                    ("LM forms, size", f"en-us, {ngrams} n-grams, {name}", f"{sizes[name] / ngrams:.2f}", "bytes/n-gram"),
                    ("LM forms, building", f"en-us, {ngrams} n-grams, {name}, one core, processor time", f"{costs[name].cpu_s:.2f}", "s")]
        if loss and name != "wlm":
            figures.append(("LM forms, perplexity", f"en-us, {name}, over exact", loss, "%"))
        if worst:
            figures.append(("LM forms, largest error of a cost", f"en-us, {name}", worst, "nats"))
    return rows, figures


KENLM = BUILD / "kenlm_build_binary"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="seconds of look-ups per turn")
    parser.add_argument("--forms", action="store_true", help="only compare the forms of lm convert with KenLM")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    rows, figures, tasks = [], [], []
    if not arguments.forms:
        large = generate_task.make_large_task()
        transcripts(CTC / "text", BUILD / "ctc.text")
        bigram_text(large["lm"], BUILD / "large.text")
        tasks = [("ctc", CTC / "lm3.arpa.gz", BUILD / "ctc.text"), ("large", large["lm"], BUILD / "large.text")]
    if EN_US.exists():
        measure.run(measure.WARPFST, "lm", "arpa", EN_US, "-o", BUILD / "en-us.arpa")
        bigram_text(BUILD / "en-us.arpa", BUILD / "en-us.text")
        if not arguments.forms:
            tasks.append(("en-us", BUILD / "en-us.arpa", BUILD / "en-us.text"))
    for name, lm, text in tasks:
        command = measure.pinned([ROOT / "build" / "release" / "bench" / "bench_lm", lm, text, "--seconds=1"], measure.last_core())
        runs = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout) for _ in range(arguments.repeat)]
        read_s, rate = min(run["read_cpu_s"] for run in runs), max(run["queries_per_cpu_s"] for run in runs)
        ngrams, mib = runs[0]["ngrams"], runs[0]["bytes"] / 2**20
        rows.append([name, ngrams, f"{mib:.1f}", f"{read_s:.3f}", f"{ngrams / read_s / 1e6:.2f}", f"{rate / 1e6:.1f}"])
        figures += [("LM reading", f"{name}, {ngrams} n-grams, one core, processor time", f"{read_s:.3f}", "s"),
                    ("LM lookups", f"{name}, {ngrams} n-grams, one core", f"{rate / 1e6:.1f}", "million/s")]
    print(f"{measure.machine()}; best of {arguments.repeat}; load {measure.load()}", file=sys.stderr)
    if rows:
        print(measure.table(["LM", "n-grams", "MiB in memory", "read, s", "million n-grams/s read", "million lookups/s"], rows))
    if EN_US.exists():
        forms, more = compare_forms(BUILD / "en-us.arpa", BUILD / "en-us.text", arguments)
        figures += more
        print(measure.table(["en-us, form", "built, s", "peak, MiB", "bytes per n-gram", "million look-ups/s", "perplexity, %", "mean error, nats", "largest"], forms))
    if arguments.record:
        measure.record(figures, "./run bench lm")


if __name__ == "__main__":
    main()
