#!/usr/bin/env python3
"""graph --device=cuda [--sizes=20k] [--repeat=N] [--build-only] [--programs=DIR] [--save=FILE] [--load=FILE] [--record]

Measures the steps of building a hybrid graph that a GPU supports, on the transducers of `./run bench graph`: the compositions L o G, C o LG, H o CLG; sorting of their arcs;
trimming of the untrimmed compositions; determinization; minimization; and in HCLG the removal of the epsilons that replace disambiguation symbols.
Times are median wall times on the CPU with all threads, on the GPU with inputs and results in device memory, and on the GPU from host memory to host memory. bench_graph_device stops if
the results of the two devices differ in any byte.

Then it measures `mkgraph hmm` as a whole, step by step, from the model of Debian's pocketsphinx-en-us and the language models of `./run bench hybrid` to the finished graph
(bench_graph_build): step "whole", which includes what the CPU does. Wall times again; the graph must have the same bytes. --build-only measures nothing else.

Size 1k is a user's language model of 1,000 words. Its graph stays in the GPU's memory and decodes an utterance there: step "swap", from the language model to the words.

For a GPU machine where nothing can be installed:
  ./run pack-gpu DIR graph                                                    on your own machine: packs the program and the 20k task
  python3 DIR/graph_device.py --device=cuda --programs=DIR --save=graph-gpu.jsonl       on the GPU machine
  python3 bench/graph/graph_device.py --load=graph-gpu.jsonl --record               on your own machine: prints the table, and writes the figures to bench/figures
"""
import argparse
import gzip
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
from measure import BUILD, ROOT

PROGRAMS = ROOT / "build" / "release" / "bench"
NAMES = ["L.fst", "G.fst", "C.fst", "H.fst", "info.txt"]
MODEL_FILES = ["mdef", "transition_matrices", "noisedict"]


def pack(size, folder):
    """Packs the transducers of a size, compressed, into a folder for a GPU machine."""
    import graph  # needs packages that only `./run bench` installs
    task = graph.make_task(size)
    folder = folder / size
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        with gzip.open(folder / f"{name}.gz", "wb", compresslevel=6) as file:
            file.write((task / name).read_bytes())


def build_folder(size, programs):
    """The folder with the inputs of bench_graph_build."""
    packed = programs / f"build-{size}"
    return packed if packed.exists() else make_build_folder(size, BUILD / "graph_build" / size)


def make_build_folder(size, folder):
    import hybrid_graphs
    if not (folder / "lm").exists():
        folder.mkdir(parents=True, exist_ok=True)
        hybrid_graphs.WORK.mkdir(parents=True, exist_ok=True)
        model = pathlib.Path(hybrid_graphs.MODEL)
        for name in MODEL_FILES:
            shutil.copy(model / "en-us" / name, folder / name)
        shutil.copy(model / "cmudict-en-us.dict", folder / "lexicon.dict")
        shutil.copy(hybrid_graphs.make_lm(size), folder / "lm")
        if size == "1k":
            keep_words(folder)
    return folder


def keep_words(folder):
    """Drops the words of the lexicon that the language model lacks."""
    unigrams = (folder / "lm").read_text(encoding="utf-8").split("\\1-grams:")[1].split("\\2-grams:")[0]
    words = {line.split()[1] for line in unigrams.splitlines() if line}
    lines = (folder / "lexicon.dict").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "lexicon.dict").write_text("".join(line for line in lines if line.split("(")[0].split()[0] in words), encoding="utf-8")


def task_folder(size, programs):
    packed = programs / size
    if not packed.exists():
        import graph
        return graph.make_task(size)
    folder = BUILD / "packed" / size
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        with gzip.open(packed / f"{name}.gz") as file:
            (folder / name).write_bytes(file.read())
    return folder


def measure_size(size, arguments):
    if not arguments.build_only and size != "1k":
        yield from run_program(size, arguments, "bench_graph_device", task_folder(size, arguments.programs))
    yield from run_program(size, arguments, "bench_graph_build", build_folder(size, arguments.programs), ["--swap"] if size == "1k" and arguments.device != "cpu" else [])


def run_program(size, arguments, program, folder, flags=()):
    command = [arguments.programs / program, folder, f"--device={arguments.device}", f"--repeat={arguments.repeat}", *flags]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:  # line by line, so that figures measured before a time limit are kept
        yield {"size": size, **json.loads(line)}
    if process.wait() != 0:
        print(f"{program}, {size}: exit code {process.returncode}", file=sys.stderr)


def measure_all(arguments):
    machine, results = measure.machine_with_gpu() if arguments.device != "cpu" else measure.machine(), []
    print(f"{machine}; load before {measure.load()}", file=sys.stderr)
    file = open(arguments.save, "w", encoding="utf-8") if arguments.save else None
    for size in arguments.sizes.split(","):
        for result in measure_size(size, arguments):
            results.append({**result, "machine": machine, "repeat": arguments.repeat})
            if file:
                print(json.dumps(results[-1]), file=file, flush=True)
    print(f"load after {measure.load()}", file=sys.stderr)
    return results


HEADER = ["graph", "step", "states", "arcs", "CPU, ms", "GPU, ms", "times faster", "with transfers, ms", "times faster"]


def row(result):
    cells = [result["size"], f"{result['step']} {result['level']}", result["states"], result["arcs"], f"{result['cpu_s'] * 1e3:.1f}"]
    if "gpu_s" not in result:
        return cells + ["-"] * 4
    cells += [f"{result['gpu_s'] * 1e3:.2f}", f"{result['cpu_s'] / result['gpu_s']:.1f}"]
    if "transfers_s" not in result:
        return cells + ["-"] * 2
    return cells + [f"{result['transfers_s'] * 1e3:.1f}", f"{result['cpu_s'] / result['transfers_s']:.1f}"]


def figures(result):
    """Returns figures for measure.record."""
    pipeline = "mkgraph hmm" if result["level"] == "mkgraph" else "pipeline on a device"
    for field, what in (("cpu_s", "CPU, all threads, wall time"), ("gpu_s", "GPU, inputs and results there, wall time"), ("transfers_s", "GPU with transfers, wall time")):
        if field in result:
            yield f"{result['step']} {result['level']}", f"{result['size']} hybrid graph, {pipeline}, {what}", f"{result[field]:.6f}", "s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="20k")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to measure only the CPU")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--build-only", action="store_true", help="measure only mkgraph as a whole")
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS, help="folder with bench_graph_device, bench_graph_build and packed tasks")
    parser.add_argument("--save", help="write a JSON line per step to this file")
    parser.add_argument("--load", help="read a file of --save instead of measuring")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    parser.add_argument("--pack", type=pathlib.Path, help="pack the transducers of the sizes into this folder, and stop")
    arguments = parser.parse_args()
    if arguments.pack:
        for size in arguments.sizes.split(","):
            if not arguments.build_only and size != "1k":
                pack(size, arguments.pack)
            make_build_folder(size, arguments.pack / f"build-{size}")
        return
    results = [json.loads(line) for line in open(arguments.load, encoding="utf-8")] if arguments.load else measure_all(arguments)
    print(measure.table(HEADER, [row(result) for result in results]))
    if arguments.record:
        measure.record([each for result in results for each in figures(result)], "./run bench graph --device=cuda", machine=results[0]["machine"])


if __name__ == "__main__":
    main()
