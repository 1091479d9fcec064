#!/usr/bin/env python3
"""lm_scale [--ngrams=1000000000] [--build=100000000] [--memory=536870912] [--generator-memory=2147483648] [--programs=FOLDER] [--keep] [--record]

Measures very large language models. First, a model of --ngrams n-grams is generated directly in the format of `lm convert` (bench_generate_lm): its size, the share of the index that a GPU
keeps, and the time to open the file once it is cached. Then an ARPA file of --build n-grams is built into a model with --memory bytes for sorting: time and peak
memory. 0 skips either part. Files are under build/bench and are removed afterwards; for 1G n-grams they take 36 GB during generation.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
from measure import BUILD


def opened(programs, model):
    """Returns the cost of the second `lm info`, when the file is cached, and its output."""
    for _ in range(2):
        cost = measure.timed(["env", f"LD_LIBRARY_PATH={programs.environment['LD_LIBRARY_PATH']}", programs.warpfst, "lm", "info", model], measure.last_core())
    report = subprocess.run([programs.warpfst, "lm", "info", "--json", model], stdout=subprocess.PIPE, check=True, text=True, env=programs.environment).stdout
    return cost, json.loads(report.splitlines()[-1])


def measure_file(programs, arguments):
    model, rows = BUILD / "scale.wlm", []
    try:
        begin = time.monotonic()
        programs.run(programs.find("bench_generate_lm"), model, f"--ngrams={arguments.ngrams}", "--words-log2=18", f"--memory={arguments.generator_memory}")
        rows.append(("LM scale, generating", time.monotonic() - begin, "s"))
        cost, info = opened(programs, model)
        ngrams, size = sum(info["ngrams"]), model.stat().st_size
        rows += [("LM scale, file", size / 1e9, "GB"), ("LM scale, bytes an n-gram", size / ngrams, "bytes"), ("LM scale, index of the file", 100 * info["index_bytes"] / size, "%"),
                 ("LM scale, opening, cached", cost.wall_s, "s"), ("LM scale, opening, cached, processor time", cost.cpu_s, "s")]
    finally:
        if not arguments.keep:
            model.unlink(missing_ok=True)
    return f"{ngrams} n-grams", rows


def measure_build(programs, arguments):
    arpa, model = BUILD / "scale.arpa", BUILD / "built.wlm"
    try:
        programs.run(programs.find("bench_generate_lm"), arpa, f"--ngrams={arguments.build}", "--words-log2=18")
        cost = measure.timed([programs.warpfst, "lm", "convert", "--quiet", arpa, f"--memory={arguments.memory}", "-o", model], measure.last_core())
        _, info = opened(programs, model)
        rows = [("LM scale, ARPA", arpa.stat().st_size / 1e9, "GB"), ("LM scale, building, processor time", cost.cpu_s, "s"), ("LM scale, building, wall time", cost.wall_s, "s"),
                ("LM scale, building, peak", cost.peak_mib, "MiB")]
    finally:
        for path in (arpa, model):
            if not arguments.keep:
                path.unlink(missing_ok=True)
    return f"{sum(info['ngrams'])} n-grams, --memory={arguments.memory}, one core", rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ngrams", type=int, default=10**9)
    parser.add_argument("--build", type=int, default=10**8)
    parser.add_argument("--memory", type=int, default=2**29)
    parser.add_argument("--generator-memory", type=int, default=2**31, help="memory of the generator in bytes; beyond it, it uses files")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    programs = decode_tasks.Programs(arguments.programs)
    parts = [part for part, wanted in ((measure_file, arguments.ngrams), (measure_build, arguments.build)) if wanted]
    figures = []
    for part in parts:
        setup, rows = part(programs, arguments)
        print(setup, flush=True)
        print(measure.table(["what", "figure", "unit"], [(what, measure.figure(value), unit) for what, value, unit in rows]), flush=True)
        figures += [(what, setup, measure.figure(value), unit) for what, value, unit in rows]
    print(f"{measure.machine()}; load {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record(figures, "./run bench lm_scale")


if __name__ == "__main__":
    main()
