#!/usr/bin/env python3
"""lm --device=cpu|cuda[:N] [--size=full|small|tiny] [--ngrams=N] [--lm=FILE] [--lm-scale=X] [--batches=1,50,400] [--programs=FOLDER] [--work=FOLDER] [--seconds=1] [--save=FILE] [--record]

Compares decoding with a large n-gram model on the fly and decoding with the graph alone. The graph is that of `bench decode`: full has 200,000 words and LibriSpeech's size. The model is
generated for the same words (bench_generate_lm, at the same time as the graph; --ngrams: 200M, 20M or 300k by default). Its costs are random, so words and word error
rates are meaningless, but the work is that of a real model. With the model there are more tokens, because paths with different histories do not recombine; the table shows how many.
With --hybrid-graph, --hybrid-scores and --hybrid-words, the task is the hybrid task of `bench decode`. --lm: uses an existing model of `lm convert` instead of a generated one.

  off      the graph alone
  device   the whole model in GPU memory
  hybrid   the index in GPU memory, n-grams in host memory, with a cache for 30%, 10% or 0% of them
  host     the whole model in host memory
  table    on the CPU, with the look-up table in memory; on the CPU, `device` is the mapped file

All runs with the model must give the same results bit for bit, on every device and with every placement.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

NGRAMS = {"full": 200_000_000, "small": 20_000_000, "tiny": 300_000}


def generate(programs, path, ngrams):
    """Starts the generator."""
    command = [programs.find("bench_generate_lm"), path, f"--ngrams={ngrams}", "--words-log2=18", f"--memory={16 << 30 if ngrams > 50_000_000 else 1 << 30}"]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, env=programs.environment)


def model_info(programs, path):
    """Returns size, share of the index, and seconds to open the file once it is cached."""
    for _ in range(2):
        begin = time.monotonic()
        info = json.loads(subprocess.run([programs.warpfst, "lm", "info", "--json", path], stdout=subprocess.PIPE, check=True, text=True, env=programs.environment).stdout)
        seconds = time.monotonic() - begin
    ngrams = sum(info["ngrams"])
    print(f"{ngrams} n-grams, {info['bytes'] / 1e9:.2f} GB, index {100 * info['index_bytes'] / info['bytes']:.1f}%, opened in {seconds:.3f} s")
    setup = f"{ngrams} n-grams"
    return ngrams, [("LM scale, file", setup, measure.figure(info["bytes"] / 1e9), "GB"), ("LM scale, index of the file", setup, measure.figure(100 * info["index_bytes"] / info["bytes"]), "%"),
                    ("LM scale, opening, cached", setup, measure.figure(seconds), "s")]


def prepare(programs, arguments, gpu):
    """Returns the task and the path of the model. Both are generated in parallel if they do not exist."""
    size = arguments.size or ("full" if gpu else "small")
    ngrams = arguments.ngrams or NGRAMS[size]
    path = arguments.lm or decode_tasks.work_folder("lm_decode") / f"{ngrams}.wlm"
    generator = None if path.exists() else generate(programs, path, ngrams)
    task = decode_tasks.hybrid(arguments, None, gpu) if arguments.hybrid_graph else decode_tasks.generated(programs, size, None)["peaky"]
    if generator is not None and generator.wait() != 0:
        sys.exit("bench_generate_lm failed")
    return task, path


def runs_of(task, arguments, gpu):
    """Runs ordered by placement of the model, because uploading it takes longer than decoding."""
    runs = []
    if gpu:
        for form in ({"lm": "off"}, {"lm": "device"}, {"lm": "hybrid", "lm_cache": 30}, {"lm": "hybrid", "lm_cache": 10}, {"lm": "hybrid"}, {"lm": "host"}):
            for batch in arguments.batches:
                runs.append(task.run(*task.base, device=arguments.device, scores="device", batch=batch, utterances=max(batch, task.check), seconds=0.5 * task.seconds, **form))
    for form in ({"lm": "off"}, {"lm": "device"}, {"lm": "table"}):
        for threads in (None, 1):
            runs.append(task.run(*task.base, device="cpu", threads=threads, utterances=task.check if threads == 1 else task.cpu_utterances, seconds=task.seconds, **form))
    return runs


def execute(task, programs, model, arguments):
    command = task.command(programs, [f"--lm={model}", f"--lm-scale={arguments.lm_scale}", *runs_of(task, arguments, arguments.device.startswith("cuda"))])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=programs.environment) as process:
        for line in process.stdout:
            row = {"lm": "off", "lm_cache": 0, "cores": len(os.sched_getaffinity(0)), **json.loads(line)}
            print("  " + (row["error"] if "error" in row else f"{place(row)}, {model_of(row)}: RTFx {row['rtfx']:.1f}"), file=sys.stderr, flush=True)
            yield row
    if process.returncode not in (0, 1):
        yield {"error": f"bench_decode: exit code {process.returncode}"}


def place(r):
    return f"GPU, batch {r['batch']}" if r["gpu"] else f"CPU, {r['threads'] or r['cores']} threads"


def model_of(r):
    return f"hybrid, cache {r['lm_cache']:g}%" if r["lm"] == "hybrid" else r["lm"]


def per_frame(r):
    """Approximate number of arcs per frame that were read from host memory or found in the cache. The counters cover all rounds and the warm-up."""
    return (r.get("lm_host_reads", 0) + r.get("lm_cache_hits", 0)) / r["frames"] / (r["rounds"] + 1)


def cells(r, alone):
    asked = r.get("lm_host_reads", 0) + r.get("lm_cache_hits", 0)
    seconds = r["seconds"] * (r["rounds"] + 1)
    return [place(r), model_of(r), f"{r['rtfx']:.1f}", f"{alone['rtfx'] / r['rtfx']:.2f}" if alone else "-", f"{r['tokens_per_frame']:.0f}", f"{r['arcs_per_frame']:.0f}",
            f"{r['seconds'] / (r['tokens_per_frame'] * r['frames']) * 1e9:.2f}", f"{r.get('lm_gpu_bytes', 0) / 1e9:.2f}", f"{r.get('lm_host_bytes', 0) / 1e9:.2f}",
            f"{100 * r['lm_cache_hits'] / asked:.1f}" if asked else "-", f"{per_frame(r):.0f}" if asked else "-", f"{r['lm_bus_bytes'] / seconds / 1e9:.2f}" if asked else "-",
            f"{100 * r['lm_stall_s'] / seconds:.2f}" if asked else "-"]


HEADER = ["on", "model", "RTFx", "times the graph alone", "tokens per frame", "arcs", "ns per token", "GB on the GPU", "GB page-locked", "cache hits, %", "requests per frame", "GB/s over the bus", "waiting for it, %"]


def check(rows):
    problems, digests = [row["error"] for row in rows if "error" in row], collections.defaultdict(set)
    for r in rows:
        if "error" in r:
            continue
        if r["failed"] or r["died"]:
            problems.append(f"{place(r)}, {model_of(r)}: {r['failed']} utterances failed, {r['died']} died")
        digests[r["lm"] != "off"].add(r["digest"])
    for scored, found in digests.items():
        if len(found) > 1:
            problems.append(f"{'with the model' if scored else 'the graph alone'}: results differ")
    return problems


def parse(parser):
    """Adds the flags that all benchmarks of a task with a model have, and parses the command line."""
    parser.add_argument("--ngrams", type=int, help="n-grams of the generated model")
    parser.add_argument("--lm", type=pathlib.Path, help="use this model instead of generating one")
    parser.add_argument("--lm-scale", type=float, help="default: 0.1; 1 with --lm")
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--work", help="folder for graph, scores and model, which are kept (default: build/bench)")
    parser.add_argument("--save", help="also save the measurements to this file")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    measure.BUILD = pathlib.Path(arguments.work or measure.BUILD)
    arguments.lm_scale = arguments.lm_scale or (1 if arguments.lm else 0.1)
    return arguments


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=decode_tasks.SIZES)
    parser.add_argument("--batches", type=lambda text: tuple(map(int, text.split(","))), default=(1, 50, 400))
    parser.add_argument("--seconds", type=float, default=1, help="approximate seconds of each run on the CPU (half of it on a GPU)")
    arguments = parse(parser)
    programs = decode_tasks.Programs(arguments.programs)
    task, path = prepare(programs, arguments, arguments.device.startswith("cuda"))
    task.seconds, task.cpu_utterances = arguments.seconds, min(task.cpu_utterances, 32)
    known, figures = model_info(programs, path)
    rows = []
    with open(arguments.save or os.devnull, "w", encoding="utf-8") as save:
        for row in execute(task, programs, path, arguments):
            rows.append(row)
            print(json.dumps(row), file=save, flush=True)
    good = [row for row in rows if "error" not in row]
    alone = {place(row): row for row in good if row["lm"] == "off"}
    print(f"{task.name}, --lm-scale={arguments.lm_scale:g}; {measure.machine()}; load {measure.load()}\n")
    print(measure.table(HEADER, [cells(row, alone.get(place(row))) for row in good]))
    for row in good:
        setup = f"{task.name}, {known} n-grams, {model_of(row)}, {place(row)}"
        figures.append(("LM on the fly, speed", setup, f"{row['rtfx']:.1f}", "RTFx"))
        if row.get("lm_host_reads", 0) + row.get("lm_cache_hits", 0) > 0:
            figures.append(("LM on the fly, cache hits", setup, f"{100 * row['lm_cache_hits'] / (row['lm_cache_hits'] + row['lm_host_reads']):.1f}", "%"))
    problems = check(rows)
    for problem in problems:
        print(f"NOT AS IT SHOULD BE: {problem}")
    if not problems:
        print("\nwith the model: results equal bit for bit in all runs")
    if arguments.record and not problems:
        gpus = {row["gpu"] for row in good if row["gpu"]}
        measure.record(figures, f"./run bench lm --device={arguments.device}", machine=f"one {gpus.pop()}; host {measure.machine()}" if gpus else measure.machine())
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
