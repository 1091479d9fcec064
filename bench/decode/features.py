#!/usr/bin/env python3
"""features [--device=cuda[:N]] [--batches=1,20,50,100,200,400] [--programs=FOLDER] [--before=FOLDER] [--work=FOLDER] [--hybrid-graph=HCLG.fst --hybrid-scores=FILE.ark --hybrid-words=FILE --hybrid-lm=FILE.wlm] [--save=FILE | --load=FILE] [--record]

What decoding costs with a language model, boosts and lattices: RTFx against the batch, with scores in the GPU's memory.

  nothing     the graph alone
  model       an n-gram model on the fly, on the GPU
  boosts      100 random phrases of two to four words
  lattices    raw lattices, lattice_beam 8
  all         model, boosts, determinized lattices and confidences

  CTC         phones of examples/ctc, a unigram graph; the model is the difference of the 3-gram model to it. Beam 15
  hybrid      on request: --hybrid-lm is a model of `warpfst lm convert --subtract`. Acoustic scale 0.1, beam 13, max_active 7000

With --before, the programs of another build run in turn with these (without boosts, which an older bench_decode may not have). Results must be equal bit for bit, on the CPU as well.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

BOOSTS = "boost=100"
ALL = "determinize=1,confidences=1"
FEATURES = {"nothing": "", "model": "lm=device", "boosts": BOOSTS, "lattices": "lattice_beam=8", "all": f"lm=device,{BOOSTS},lattice_beam=8,{ALL}"}


def ctc_task(programs):
    folder = decode_tasks.work_folder("features_ctc")
    small, graph, words, model = (folder / name for name in ("small.arpa", "small.wfst", "words.txt", "difference.wlm"))
    if not model.exists():
        full, ctc = decode_tasks.CTC / "lm3.arpa.gz", decode_tasks.CTC
        programs.run(programs.warpfst, "lm", "prune", full, "--max-total=1", "-q", "-o", small)
        programs.run(programs.warpfst, "mkgraph", "ctc", f"--tokens={ctc / 'tokens_phone.txt'}", f"--lexicon={ctc / 'lexicon_phone.txt'}", f"--lm={small}", "--backoff=failure", "--topology=compact", f"--words-out={words}", "-q", "-o", graph)
        programs.run(programs.warpfst, "lm", "convert", full, f"--subtract={small}", "-q", "-o", model)
    return "CTC phones, unigram graph", [graph, decode_tasks.CTC / "logp_phone", f"--words={words}", "--acoustic-scale=0.7", f"--lm={model}"], "beam=15"


def hybrid_task(a):
    return "hybrid 20k words", [a.hybrid_graph, a.hybrid_scores, f"--words={a.hybrid_words}", "--acoustic-scale=0.1", "--frame-shift=0.01", f"--lm={a.hybrid_lm}"], "beam=13,max_active=7000"


def decode(programs, command, runs):
    """Returns the rows that bench_decode prints."""
    done = subprocess.run([str(word) for word in (programs.decode, *command, *runs)], stdout=subprocess.PIPE, text=True, check=False, env=programs.environment)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0:
        sys.exit(f"bench_decode: exit code {done.returncode}: {'; '.join(row['error'] for row in rows if 'error' in row)}")
    return rows


def measured(a):
    trees = {"now": decode_tasks.Programs(a.programs), **({"before": decode_tasks.Programs(a.before)} if a.before else {})}
    place = "device" if a.device.startswith("cuda") else "host"
    tasks = [ctc_task(trees["now"])] + ([hybrid_task(a)] if a.hybrid_graph else [])
    for task, command, base in tasks:
        for feature, settings in FEATURES.items():
            every = [",".join(filter(None, (base, settings, f"device={a.device},scores={place},batch={batch},seconds=0.4"))) for batch in a.batches]
            check = [",".join(filter(None, (base, settings, "device=cpu,batch=8,utterances=8,seconds=0.1")))]
            for tree, programs in trees.items():
                if tree == "before" and BOOSTS in settings:
                    continue
                for i, row in enumerate(decode(programs, command, every + (check if tree == "now" else []))):
                    yield {"task": task, "feature": feature, "tree": tree, "check": i == len(every), **row}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", type=lambda text: tuple(map(int, text.split(","))), default=(1, 20, 50, 100, 200, 400))
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--before", help="the programs of another build, which run in turn with these")
    parser.add_argument("--work", help="folder for graphs and models, which are kept (default: build/bench)")
    for name in ("graph", "scores", "words", "lm"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--save", help="also save the measurements to this file")
    parser.add_argument("--load", help="use the measurements of this file")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    a = parser.parse_args()
    measure.BUILD = pathlib.Path(a.work or measure.BUILD)
    rows = [json.loads(line) for line in open(a.load, encoding="utf-8")] if a.load else []
    if not a.load:
        with open(a.save or "/dev/null", "w", encoding="utf-8") as save:
            for row in measured(a):
                rows.append(row)
                print(json.dumps(row), file=save, flush=True)
    digests, shown = collections.defaultdict(set), collections.OrderedDict()
    for row in rows:
        digests[row["task"], row["feature"]].add(row["digest"])
        if not row["check"]:
            shown.setdefault((row["task"], row["feature"], row["tree"]), {})[row["batch"]] = row["rtfx"]
    batches = sorted({batch for speeds in shown.values() for batch in speeds})
    print(measure.table(["task", "with", "tree", *(f"batch {batch}" for batch in batches), f"share at {batches[-1]}, %"],
                        [[*key, *(f"{speeds[batch]:.0f}" for batch in batches), f"{100 * speeds[batches[-1]] / shown[key[0], 'nothing', key[2]][batches[-1]]:.0f}"] for key, speeds in shown.items()]))
    different = [f"{task}, {feature}" for (task, feature), found in digests.items() if len(found) > 1]
    print(f"NOT EQUAL: results of {'; '.join(different)}" if different else "results equal bit for bit, on the CPU as well")
    if a.record and not different:
        gpu = next((row["gpu"] for row in rows if row["gpu"]), None)
        figures = [("features", f"{task}, {feature}, batch {batch}{'' if tree == 'now' else ', before'}", f"{rtfx:.0f}", "RTFx") for (task, feature, tree), speeds in shown.items() for batch, rtfx in speeds.items()]
        measure.record(figures, f"./run bench features --device={a.device}", machine=f"one {gpu}" if gpu else measure.machine())
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
