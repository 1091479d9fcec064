#!/usr/bin/env python3
"""lm --part=fetch [--size=small|full|tiny] [--ngrams=N] [--lm=FILE] [--lm-scale=X] [--lanes=400,50] [--rounds=1,5] [--programs=FOLDER] [--work=FOLDER] [--save=FILE] [--record]

Compares ways to fetch the n-grams of a batch from host memory to a GPU (bench_lm_fetch). Each lane reads its own n-grams (direct), or the requests of the batch are merged and each n-gram is read
once, by means of a hash table, sorting, or host threads. The requests come from the peaky task of `bench lm --device=cuda` with a generated model, decoded on the CPU in lockstep
(bench_lm_traffic --steady): all requests, and those that a cache for a share --cache of the n-grams' bytes does not have. With --hybrid-graph, --hybrid-scores, --hybrid-words and --lm they come
from the hybrid task. Then random requests follow, from 100 to a million per frame, all different and with repetitions. Every way must give the same sums.

The table has microseconds per frame of the whole batch. `search` is the total time of a frame of the batch, decoded by bench_decode with the n-grams in host memory and the same cache.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import lm_decode
import measure

WAYS = ("direct", "hashed", "sorted", "host")
RANDOM = [f"random={n}/{n // repeated}" for n in (100, 1000, 10_000, 100_000, 1_000_000) for repeated in (1, 2, 10)]


def make_trace(programs, task, model, arguments):
    """Writes the requests of 400 lanes in a few frames."""
    path = decode_tasks.work_folder("lm_fetch") / f"{task.part}.trace"
    beam, active = task.base
    words = [f"--words={task.words}"] if task.words else []
    programs.run(programs.find("bench_lm_traffic"), task.graph, task.scores, model, *words, f"--acoustic-scale={task.acoustic_scale}", f"--lm-scale={arguments.lm_scale}", f"--beam={beam}",
                 f"--max-active={active}", f"--steady={arguments.steady}", f"--trace={path}", "--trace-frames=1", f"--cache={arguments.cache}", "--batch=400")
    return path


def search_us(programs, task, model, lanes, arguments):
    """Microseconds of a frame of a whole batch, with the cache and without."""
    forms = [task.run(*task.base, device=arguments.device, scores="device", batch=lanes, utterances=lanes, seconds=0.5, lm="hybrid", lm_cache=cache) for cache in (100 * arguments.cache, 0)]
    done = subprocess.run(task.command(programs, [f"--lm={model}", f"--lm-scale={arguments.lm_scale}", *forms]), stdout=subprocess.PIPE, text=True, check=True, env=programs.environment)
    return [1e6 * lanes * task.frame_shift / json.loads(line)["rtfx"] for line in done.stdout.splitlines()]


def fetch(programs, arguments, requests, **settings):
    """Rows of bench_lm_fetch; the first describes the table."""
    options = [f"--{name}={value}" for name, value in {"gigabytes": arguments.gigabytes, "record": 3, "seconds": arguments.seconds, **settings}.items()]
    command = [str(word) for word in (programs.find("bench_lm_fetch"), *options, *requests)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=programs.environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


def cells(row):
    search = row.get("search_us")
    return [row["requests"], row["lanes"], row["rounds"], f"{row['asked']:.0f}", f"{row['distinct_lane']:.0f}", f"{row['distinct']:.0f}", *(f"{row[f'{way}_us']:.1f}" for way in WAYS),
            f"{search:.0f}" if search else "-"]


HEADER = ["requests", "lanes", "rounds", "n-grams requested", "distinct in a lane", "distinct in the batch", "direct, us", "hashed", "sorted", "host", "search"]


def measure_all(programs, arguments, task, model):
    trace = make_trace(programs, task, model, arguments)
    rows = fetch(programs, arguments, RANDOM)[1:]
    for lanes in arguments.lanes:
        cached, whole = search_us(programs, task, model, lanes, arguments)
        for rounds in arguments.rounds:
            for row, us in zip(fetch(programs, arguments, [f"missed={trace}", f"trace={trace}"], lanes=lanes, rounds=rounds)[1:], (cached, whole)):
                rows.append({**row, "search_us": us, "requests": f"{task.part}, " + (f"cache {100 * arguments.cache:g}%" if row["requests"].startswith("missed") else "no cache")})
    return rows


def numbers(text):
    return tuple(map(int, text.split(",")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["fetch"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=decode_tasks.SIZES, default="small")
    parser.add_argument("--cache", type=float, default=0.1, help="share of the n-grams' bytes")
    parser.add_argument("--steady", type=int, default=150, help="frames to decode; the last is the trace")
    parser.add_argument("--gigabytes", type=float, default=8, help="size of the table that is read")
    parser.add_argument("--lanes", type=numbers, default=(400, 50))
    parser.add_argument("--rounds", type=numbers, default=(1, 5))
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds to repeat each way")
    arguments = lm_decode.parse(parser)
    programs = decode_tasks.Programs(arguments.programs)
    task, model = lm_decode.prepare(programs, arguments, True)
    rows = measure_all(programs, arguments, task, model)
    with open(arguments.save or os.devnull, "w", encoding="utf-8") as save:
        save.writelines(json.dumps(row) + "\n" for row in rows)
    print(f"{measure.machine_with_gpu()}; load {measure.load()}\n")
    print(measure.table(HEADER, [cells(row) for row in rows]))
    if arguments.record:
        figures = [("LM fetch, a frame", f"{row['requests']}, {row['lanes']} lanes, {row['rounds']} rounds, {row['asked']:.0f} n-grams, {row['distinct']:.0f} different, {way}",
                    measure.figure(row[f"{way}_us"]), "us") for row in rows for way in WAYS]
        measure.record(figures, f"./run bench lm --part=fetch --device={arguments.device}", machine=measure.machine_with_gpu())


if __name__ == "__main__":
    main()
