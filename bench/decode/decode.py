#!/usr/bin/env python3
"""decode [--device=cpu|cuda[:N]] [--part=peaky,flat,real,hybrid] [--size=full|small|tiny] [--programs=FOLDER] [--save=FILE | --load=FILE] [--record]

Measures the speed of decoding, also relative to the limits of the hardware.

  peaky, flat  generated tasks of LibriSpeech's size (bench/decode/ctc_task), 25 frames per second; without a GPU, the default of --size is small
  real         CTC phone scores of real speech, 40 ms frames: the utterances of examples/ctc, or the .npy files of --ctc-data (a folder, or a tar archive of one)
  hybrid       a real HCLG and senone scores, 10 ms frames: --hybrid-graph, --hybrid-scores, --hybrid-ref, --hybrid-words

With a GPU, it measures batches x beams x max_active with scores in device memory, host memory and pinned memory, in float32 and float16, and the CPU backend on the same task.
Without a GPU it measures the CPU backend on all processors and on one. Results of the first utterances must be equal bit for bit in every run of a setting.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

PARTS = ("peaky", "flat", "real", "hybrid")
# Measured limits of one H200 (docs/engineering/performance.md), per second: bytes of a device copy; random reads of 16 bytes from L2 and from memory.
COPY_BYTES, L2_READS, MEMORY_READS = 4.31e12, 138e9, 38e9


def traffic(r):
    """(bytes, random reads) of a frame, by the model of docs/engineering/performance.md. An arc is 16 bytes. A token is 16 for its state, 16 written and 16 read for its source,
    and 8 for its trace. The row of scores is added. Every arc and every token's state counts as a random read."""
    element = 4 if r["dtype"] == "f32" else 2
    return r["arcs_per_frame"] * 16 + r["tokens_per_frame"] * 56 + r["columns"] * element, r["arcs_per_frame"] + r["tokens_per_frame"]


def lanes(r):
    """Number of utterances that can be searched at the same time."""
    return min(r["batch"], r["processors"] if r["gpu"] else r["threads"] or os.cpu_count())


def execute(task, programs, runs):
    """Yields rows as bench_decode prints them."""
    command = task.command(programs, runs)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=programs.environment) as process:
        for line in process.stdout:
            row = {"part": task.part, "task": task.name, **json.loads(line)}
            print("  " + (row["error"] if "error" in row else f"{describe(row)}: RTFx {row['rtfx']:.0f}"), file=sys.stderr)
            yield row
    if process.returncode not in (0, 1):
        yield {"part": task.part, "task": task.name, "error": f"bench_decode {task.graph}: exit code {process.returncode}"}


def describe(r):
    where = f"{r['scores']} scores" if r["gpu"] else f"{r['threads'] or 'all'} thread{'s' if r['threads'] != 1 else ''}"
    return f"{r['device']}, {where}, {r['dtype']}, beam {r['beam']:g}, max_active {r['max_active']}, batch {r['batch'] if r['gpu'] else r['utterances']}"


# --- tables ---------------------------------------------------------------------------------------------------------------

HEADER = ["on", "scores", "beam", "max_active", "batch", "RTFx", "us/frame", "us/frame/lane", "tokens", "arcs", "Garcs/s", "GB/s", "% copy", "% L2 reads", "narrowed", "overflow", "WER"]


def cells(r):
    bytes_a_frame, reads = traffic(r)
    frames_per_s = r["frames"] / r["seconds"]
    share = [f"{100 * bytes_a_frame * frames_per_s / COPY_BYTES:.1f}", f"{100 * reads * frames_per_s / L2_READS:.1f}"] if r["gpu"] else ["-", "-"]
    place = "GPU" if r["gpu"] else "1 thread" if r["threads"] == 1 else "CPU"
    return [place, f"{r['scores']} {r['dtype']}", f"{r['beam']:g}", r["max_active"], r["batch"] if r["gpu"] else r["utterances"], f"{r['rtfx']:.0f}", f"{r['us_per_frame']:.2f}",
            f"{r['us_per_frame'] * lanes(r):.1f}", f"{r['tokens_per_frame']:.0f}", f"{r['arcs_per_frame']:.0f}", f"{r['arcs_per_s'] * 1e-9:.2f}", f"{bytes_a_frame * frames_per_s * 1e-9:.0f}",
            *share, f"{100 * r['narrowed_frames']:.1f}%", r["overflow"], f"{r['wer']:.2f}" if "wer" in r else "-"]


def print_tables(rows):
    by_task = collections.defaultdict(list)
    for row in rows:
        by_task[row["part"], row["task"]].append(row)
    for (_, task), group in by_task.items():
        print(f"\n{task}\n")
        print(measure.table(HEADER, [cells(row) for row in group if "error" not in row]))


def check(rows):
    """Returns the problems found: runs with different results, runs that failed."""
    problems, digests = [], collections.defaultdict(dict)
    for r in rows:
        if "error" in r:
            problems.append(f"{r['task']}: {r['error']}")
            continue
        if r["failed"] or r["died"]:
            problems.append(f"{r['task']}: {describe(r)}: {r['failed']} utterances failed, {r['died']} died")
        digests[r["task"], r["beam"], r["max_active"], r["dtype"]].setdefault(r["digest"], []).append(describe(r))
    for setting, found in digests.items():
        if len(found) > 1:
            problems.append(f"{setting}: different results from " + " AND ".join("; ".join(which) for which in found.values()))
    if not digests:
        return problems
    differ = any(len(found) > 1 for found in digests.values())
    compared = sum(1 for found in digests.values() if sum(map(len, found.values())) > 1)
    print(f"\n{compared} settings with several runs: results of the first {decode_tasks.CHECK} utterances " + ("DIFFER" if differ else "equal bit for bit"))
    return problems


def figures(rows):
    out = []
    for r in rows:
        if "rtfx" not in r:
            continue
        what = f"decode {'GPU ' if r['gpu'] else ''}{r['task']}"
        setup = f"{r['utterances']} utterances, --acoustic-scale={r['acoustic_scale']:g} --beam={r['beam']:g} --max-active={r['max_active']}"
        setup += f" --max-tokens={r['max_tokens']}" if r["max_tokens"] not in (28000, r["max_active"]) else ""
        threads = r["threads"] or r.get("cores")
        setup += f", {r['scores']} {r['dtype']} scores, batch {r['batch']}" if r["gpu"] else f", {threads} thread{'s' if threads > 1 else ''}"
        if not r["gpu"] and r["threads"] != 1 and r["utterances"] <= decode_tasks.CHECK:
            continue  # only for comparing results, not for speed
        out.append((what, setup, f"{r['rtfx']:.0f}", "RTFx"))
        if "wer" in r:
            out.append((what, setup + ", WER", f"{r['wer']:.2f}", "%"))
    return out


# --- command line -----------------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="", help="comma-separated; default: all parts for which the needed files are given")
    parser.add_argument("--size", choices=decode_tasks.SIZES, help="size of the generated tasks")
    parser.add_argument("--batches", default="", help="comma-separated, instead of each task's batches")
    parser.add_argument("--max-tokens", type=int, help="instead of the decoder's default")
    parser.add_argument("--seconds", type=float, default=1, help="approximate seconds of each run on the CPU (half of it on a GPU)")
    parser.add_argument("--work", help="folder for graphs and scores, which are kept (default: build/bench)")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--ctc-data", default=os.environ.get("WARPFST_BENCH_DATA", decode_tasks.CTC / "logp_phone"))
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of tables")
    parser.add_argument("--save", help="also save the measurements to this file")
    parser.add_argument("--load", help="do not measure; print tables of a saved file, or record it")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    gpu = arguments.device.startswith("cuda")
    arguments.size = arguments.size or ("full" if gpu else "small")
    if not arguments.part:
        arguments.part = ",".join(part for part in PARTS if (part != "hybrid" or arguments.hybrid_graph))
    arguments.part = arguments.part.split(",")
    measure.BUILD = pathlib.Path(arguments.work or measure.BUILD)
    unknown = set(arguments.part) - set(PARTS)
    if unknown or "hybrid" in arguments.part and not (arguments.hybrid_graph and arguments.hybrid_scores):
        parser.error(f"--part: {', '.join(sorted(unknown))} unknown" if unknown else "hybrid needs --hybrid-graph and --hybrid-scores")
    return arguments


def tasks_of(arguments, programs):
    batches = tuple(map(int, arguments.batches.split(","))) if arguments.batches else None
    generated = decode_tasks.generated(programs, arguments.size, batches) if {"peaky", "flat"} & set(arguments.part) else {}
    for part in arguments.part:
        if part in generated:
            yield generated[part]
        elif part == "real":
            yield decode_tasks.real_ctc(programs, arguments.ctc_data, batches)
        elif part == "hybrid":
            yield decode_tasks.hybrid(arguments, batches, arguments.device.startswith("cuda"))


def measured(arguments):
    programs = decode_tasks.Programs(arguments.programs)
    gpu = arguments.device.startswith("cuda")
    for task in tasks_of(arguments, programs):
        print(f"{task.name}", file=sys.stderr)
        task.seconds = arguments.seconds
        task.max_tokens = arguments.max_tokens or task.max_tokens
        runs = (task.gpu_runs(arguments.device) if gpu else []) + task.cpu_runs(alone=not gpu)
        yield from execute(task, programs, runs)


def main():
    arguments = parse()
    about = {"machine": measure.machine(), "commit": measure.commit()}
    if arguments.load:
        lines = [json.loads(line) for line in open(arguments.load, encoding="utf-8")]
        about, rows = {**lines[0], "commit": os.environ.get("WARPFST_COMMIT", lines[0]["commit"])}, lines[1:]
    else:
        print(f"{about['machine']}; load before {measure.load()}", file=sys.stderr)
        rows = []
        with open(arguments.save or os.devnull, "w", encoding="utf-8") as save:
            print(json.dumps(about), file=save, flush=True)
            for row in measured(arguments):
                row["cores"] = len(os.sched_getaffinity(0))
                rows.append(row)
                print(json.dumps(row), file=save, flush=True)
                if arguments.json:
                    print(json.dumps(row), flush=True)
    if not arguments.json:
        print_tables(rows)
    problems = check(rows)
    for problem in problems:
        print(f"NOT AS IT SHOULD BE: {problem}")
    if arguments.record and not problems:
        gpus = {row["gpu"] for row in rows if row.get("gpu")}
        measure.record(figures(rows), "./run bench decode", machine=f"one {gpus.pop()}; host {about['machine']}" if gpus else about["machine"], commit=about["commit"])
    sys.exit(1 if problems or not any("rtfx" in row for row in rows) else 0)


if __name__ == "__main__":
    main()
