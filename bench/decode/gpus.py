#!/usr/bin/env python3
"""gpus [--batch-ctc=2520] [--batch-hybrid=800] [--streams=0] [--programs=FOLDER] [--work=FOLDER] [--hybrid-graph=HCLG.fst --hybrid-scores=FILE.ark --hybrid-words=FILE --hybrid-lm=FILE.wlm] [--record]

What a second GPU gains: RTFx of one call with all utterances, on the first GPU and on all of them. Needs a machine with several GPUs.

  host    scores in host memory, which is not page-locked
  first   scores in the memory of the first GPU
  model   an n-gram model on the fly: on the GPUs, or 90% of it in host memory, which they share
  lattices raw lattices, lattice_beam 8; determinized while decoding

Tasks are those of `./run bench features`. Results must be equal bit for bit, on the CPU as well (8 utterances). --streams=N: also N streams in real time, delays on one GPU and on all.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import features
import measure

SETTINGS = {
    "scores in host memory": "scores=host",
    "scores on the first GPU": "scores=device",
    "scores in host memory, model": "scores=host,lm=device",
    "scores in host memory, model in host memory": "scores=host,lm=hybrid,lm_cache=10",
    "scores in host memory, lattices": "scores=host,lattice_beam=8",
    "scores on the first GPU, lattices": "scores=device,lattice_beam=8",
    "scores in host memory, determinized": "scores=host,lattice_beam=8,determinize=1",
}


def measured(a, programs):
    tasks = [(*features.ctc_task(programs), a.batch_ctc)] + ([(*features.hybrid_task(a), a.batch_hybrid)] if a.hybrid_graph else [])
    for task, command, base, batch in tasks:
        has_model = command[-1] != "--lm=None"
        for what, settings in SETTINGS.items():
            if "lm=" in settings and not has_model:
                continue
            runs = [f"{base},{settings},device={device},batch={batch},seconds=1" for device in ("cuda:0", "cuda:all")]
            check = f"{base},{settings.replace('scores=device', 'scores=host')},device=cpu,batch=8,utterances=8,seconds=0.1"
            one, several, cpu = features.decode(programs, command if has_model else command[:-1], [*runs, check])
            yield task, what, one, several, cpu


def streams(a, programs):
    task, command, _ = features.ctc_task(programs)
    graph, scores = command[:2]
    for device in ("cuda:0", "cuda:all"):
        done = subprocess.run([str(programs.find("bench_stream")), str(graph), str(scores), f"--device={device}", "--acoustic-scale=0.7", f"--streams={a.streams}", "--seconds=8"], stdout=subprocess.PIPE, text=True, check=True, env=programs.environment)
        yield f"{task}, {a.streams} streams", device, json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-ctc", type=int, default=2520)
    parser.add_argument("--batch-hybrid", type=int, default=800)
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--work", help="folder for graphs and models, which are kept (default: build/bench)")
    for name in ("graph", "scores", "words", "lm"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    a = parser.parse_args()
    measure.BUILD = pathlib.Path(a.work or measure.BUILD)
    programs = decode_tasks.Programs(a.programs)
    table, figures, different, gpu = [], [], [], None
    for task, what, one, several, cpu in measured(a, programs):
        gpu = one["gpu"]
        table.append([task, what, f"{one['rtfx']:.0f}", f"{several['rtfx']:.0f}", f"{several['rtfx'] / one['rtfx']:.2f}"])
        figures += [("several GPUs", f"{task}, {what}, {name}", f"{row['rtfx']:.0f}", "RTFx") for name, row in (("one GPU", one), ("all GPUs", several))]
        if len({row["digest"] for row in (one, several, cpu)}) > 1:
            different.append(f"{task}, {what}")
    print(measure.table(["task", "", "one GPU", "all GPUs", "gain"], table))
    if a.streams:
        for what, device, row in streams(a, programs):
            print(what, device, json.dumps(row))
    print(f"NOT EQUAL: results of {'; '.join(different)}" if different else "results equal bit for bit, on the CPU as well")
    if a.record and not different:
        measure.record(figures, "./run bench gpus", machine=f"two {gpu}")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
