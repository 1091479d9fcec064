#!/usr/bin/env python3
"""rnnlm [--parts=text,perplexity,ctc,scale] [--words=1000000] [--hidden=100] [--device=cpu] [--repeat=N] [--record]

Measures recurrent language models on one core, in processor time:

  text        training and scoring of a generated text with models as in Lee et al. 2015 (one sigmoid layer, hierarchical softmax, MaxEnt order 3 with 100M cells, 26,033 words) and 100, 512 and 1024 units
  perplexity  perplexities on the text of tests/data/rnnlm, compared with those of the faster-rnnlm toolkit
  ctc         the CTC phone task with a recurrent model and each kind of cache. The model is trained on the task's own transcripts, so this measures speed, not accuracy
  scale       the setting of Lee et al. with generated data (rnnlm_scale.py): a million words, a bigram graph, --hidden=100,512,1024 as memory allows, utterances one by one and in batches
"""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import rnnlm_scale
from measure import BUILD, ROOT, WARPFST

CTC, DATA = ROOT / "examples" / "ctc", ROOT / "tests" / "data" / "rnnlm"
WORDS, SENTENCES, UTTERANCES = 26033, 50000, 20
TOOLKIT = (  # the toolkit's perplexity of `test`: tests/data/rnnlm/README.md
    ("sigmoid", 86.2273, []),
    ("sigmoid, MaxEnt order 3", 85.9111, ["--maxent-cells=1000000"]),
    ("gru, MaxEnt order 4", 83.2086, ["--layer=gru", "--maxent-cells=1000000", "--maxent-order=4"]),
)


def make_text(path, seed, sentences):
    """Writes a text by Zipf's law, in which the previous word determines every second word."""
    rng = random.Random(seed)
    every = list(range(WORDS)) if seed == 1 else []  # so that the text has every word
    weights = [1 / (rank + 2.7) for rank in range(WORDS)]
    drawn = iter(rng.choices(range(WORDS), weights, k=sentences * 20))
    with open(path, "w", encoding="utf-8") as text:
        for line in range(0, len(every), 10):
            print(*(f"w{word}" for word in every[line:line + 10]), file=text)
        for _ in range(sentences):
            word, words = next(drawn), []
            for _ in range(1 + int(rng.expovariate(1 / 8))):
                word = (word * 31 + 7 + rng.randrange(3)) % WORDS if rng.random() < 0.5 else next(drawn, 0)
                words.append(f"w{word}")
            print(*words, file=text)


def cpu_of(command, repeat, core):
    return min(measure.timed(command, core).cpu_s for _ in range(repeat))


def speeds(hidden, repeat, core):
    """Tokens per second trained and scored. Uses the difference between the times of a long and a short text, so that reading files does not count."""
    train, valid, model = BUILD / "rnnlm.train", BUILD / "rnnlm.valid", BUILD / "rnnlm.model"
    if hidden > 100:
        train = BUILD / "rnnlm.part"
    command = [WARPFST, "rnnlm", "train", train, valid, "-o", model, f"--hidden={hidden}", "--maxent-cells=100000000", "--min-gain=0", "--json"]
    epoch = json.loads(measure.run(*command, "--max-epochs=1").splitlines()[0])
    one, two = (cpu_of([*command, f"--max-epochs={n}"], repeat, core) for n in (1, 2))
    text = BUILD / "rnnlm.part"
    thrice = BUILD / "rnnlm.thrice"
    thrice.write_text(text.read_text(encoding="utf-8") * 3, encoding="utf-8")
    less, more = (cpu_of([WARPFST, "rnnlm", "perplexity", model, path], repeat, core) for path in (text, thrice))
    tokens = json.loads(measure.run(WARPFST, "rnnlm", "perplexity", model, text, "--json"))["tokens"]
    return epoch["tokens"] / (two - one), 2 * tokens / (more - less)


def perplexities():
    for name, toolkit, flags in TOOLKIT:
        model = BUILD / "rnnlm.small"
        measure.run(WARPFST, "rnnlm", "train", DATA / "train.gz", DATA / "valid.gz", "-o", model, "--hidden=16", *flags)
        ours = json.loads(measure.run(WARPFST, "rnnlm", "perplexity", model, DATA / "test", "--json"))["perplexity"]
        yield name, toolkit, ours


def decoding(core):
    """One run with each kind of cache: requests, hits, processor seconds."""
    text, model, graph = BUILD / "rnnlm.ctc", BUILD / "rnnlm.ctc.model", BUILD / "rnnlm.wfst"
    with open(CTC / "text", encoding="utf-8") as lines, open(text, "w", encoding="utf-8") as out:
        out.writelines(" ".join(line.split()[1:]) + "\n" for line in lines)
    measure.run(WARPFST, "rnnlm", "train", text, text, "-o", model, "--hidden=100", "--maxent-cells=1000000", "--max-epochs=5")
    scores = BUILD / "rnnlm.scores"
    scores.mkdir(exist_ok=True)
    for path in sorted((CTC / "logp_phone").iterdir())[:UTTERANCES]:
        shutil.copy(path, scores)
    measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={CTC}/tokens_phone.txt", f"--lexicon={CTC}/lexicon_phone.txt", f"--lm={CTC}/lm3.arpa.gz", "--topology=compact", "-o", graph)
    base = [WARPFST, "decode", graph, scores, "--acoustic-scale=0.7", "--beam=15", "--max-active=7000", "--frame-shift=0.04", "--num-threads=1", "-o", BUILD / "rnnlm.out",
            "--json"]
    rnnlm = [f"--rnnlm={model}", f"--rnnlm-small={CTC}/lm3.arpa.gz", f"--rnnlm-ngram={CTC}/lm3.arpa.gz", "--rnnlm-weight=0.5"]
    for name, flags in (("no recurrent model", []), ("no cache", [*rnnlm, "--rnnlm-cache=none"]), ("cache of the utterance", rnnlm), ("shared cache", [*rnnlm, "--rnnlm-cache=shared"]),
                        ("cache of the utterance, merge order 4", [*rnnlm, "--history-merge-order=4"])):
        done = subprocess.run(measure.pinned([*base, *flags], core), capture_output=True, check=True, text=True)
        summary = json.loads(done.stderr.splitlines()[-1])
        yield name, summary, measure.timed([*base, *flags], core).cpu_s


def text_part(arguments, core):
    make_text(BUILD / "rnnlm.train", 1, SENTENCES)
    make_text(BUILD / "rnnlm.part", 1, SENTENCES // 20)
    make_text(BUILD / "rnnlm.valid", 2, 100)
    rows, figures = [], []
    for hidden in (100, 512, 1024):
        trained, scored = speeds(hidden, arguments.repeat, core)
        rows.append([hidden, f"{trained:.0f}", f"{scored:.0f}"])
        figures += [(f"RNN LM {what}", f"sigmoid {hidden}, {WORDS} words, MaxEnt order 3 of 100M cells, one core, processor time", f"{value:.0f}", "tokens/s")
                    for what, value in (("training", trained), ("scoring", scored))]
    print(measure.table(["hidden units", "tokens/s trained", "tokens/s scored"], rows))
    return figures


def perplexity_part(arguments, core):
    rows, figures = [], []
    for name, toolkit, ours in perplexities():
        rows.append([name, f"{toolkit:.2f}", f"{ours:.2f}"])
        figures.append(("RNN LM perplexity", f"{name}, 16 hidden units, tests/data/rnnlm (the toolkit: {toolkit:.2f})", f"{ours:.2f}", "perplexity"))
    print(measure.table(["model", "toolkit's perplexity", "ours"], rows))
    return figures


def ctc_part(arguments, core):
    rows, figures = [], []
    for name, summary, cpu_s in decoding(core):
        counts, frames = summary.get("rnnlm", {}), summary["hours"] * 3600 / 0.04
        rtfx = summary["hours"] * 3600 / cpu_s
        rows.append([name, f"{counts.get('requests', 0) / frames:.1f}", f"{100 * counts.get('hit_ratio', 0):.1f}", f"{counts.get('costs', 0) / frames:.1f}", counts.get("hidden_states", 0), f"{rtfx:.0f}"])
        figures.append(("decode with RNN LM", f"CTC phones, {UTTERANCES} utterances, hidden 100, {name}, one core, processor time with loading", f"{rtfx:.0f}", "RTFx"))
    print(measure.table(["cache", "requests per frame", "hits, %", "costs per frame", "hidden states", "RTFx"], rows))
    return figures


def scale_part(arguments, core):
    rows, figures = rnnlm_scale.measure_all(arguments.words, [int(hidden) for hidden in arguments.hidden.split(",")], arguments.device, core)
    print(measure.table(rnnlm_scale.HEADER, rows))
    return figures


PARTS = {"text": text_part, "perplexity": perplexity_part, "ctc": ctc_part, "scale": scale_part}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--words", type=int, default=1000000, help="words of the scale part")
    parser.add_argument("--hidden", default="100", help="hidden units of the scale part; a million words with 1024 units take 8 GB")
    parser.add_argument("--device", default="cpu", help="device of the scale part")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    core, figures = measure.last_core(), []
    for part in arguments.parts.split(","):
        figures += PARTS[part](arguments, core)
        print()
    print(f"{measure.machine()}; best of {arguments.repeat}; load {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record(figures, f"./run bench rnnlm --parts={arguments.parts}" + (f" --words={arguments.words} --hidden={arguments.hidden}" if "scale" in arguments.parts else ""))


if __name__ == "__main__":
    main()
