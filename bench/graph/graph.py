#!/usr/bin/env python3
"""graph [--sizes=20k,medium,full] [--threads=1,0] [--npath=N] [--finish-only | --ours] [--json] [--record]
graph --device=cuda: the steps that a GPU supports; see `graph --device=cuda --help` (bench/graph/graph_device.py)

Measures the steps of building a hybrid graph: OpenFst's tools, from file to file, and ours, in one process, on the same transducers
(bench/graph/hybrid_task.py: Debian's pocketsphinx-en-us with 20,000 words and a pruned LM, 72,545 words and a pruned LM, and everything).

    L o G, determinize, minimize; C o LG, determinize, minimize; H o CLG, determinize, minimize; disambiguation symbols to epsilon;
    self-loops; no input epsilons

For OpenFst's tools it reports processor time and peak memory of the commands of a step, including reading and writing files and sorting arcs for the next step,
because the tools cannot be run otherwise. For ours it reports processor and wall time of the call, and the peak memory of the process
during it, including the input. Threads 0 means one per processor. The results of both are compared after every minimization: `warpfst equivalent` decides
equivalence of the graphs as acceptors of label pairs; if the two place outputs differently, random paths are compared instead.
OpenFst has no tools for the last two steps. Self-loops are added to OpenFst's graph by warpfst, and five utterances of LibriVox (Debian's pocketsphinx-testdata)
are decoded with both graphs: words must be equal, and costs and random paths are compared. --finish-only measures and records only these two steps, sizes, and the
decoding, with OpenFst's graphs of the last run.
`full` takes OpenFst 13 minutes and 6.5 GB. --ours measures and records only ours, and compares nothing.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
from measure import BUILD, ROOT, WARPFST, Cost

BENCH_GRAPH = ROOT / "build" / "release" / "bench" / "bench_graph"
LEVELS = [("L", "LG"), ("C", "CLG"), ("H", "HCLG")]
FINISH = ("self-loops HCLG", "no input epsilons HCLG")
AM = "--am=/usr/share/pocketsphinx/model/en-us/en-us"


def make_task(size):
    """Makes L, G, C, H as OpenFst vector files, sorted as fstcompose needs them."""
    folder = BUILD / "hybrid" / size
    script = ROOT / "bench" / "graph" / "hybrid_task.py"
    if not (folder / "H.fst").exists() or (folder / "H.fst").stat().st_mtime < script.stat().st_mtime:
        print(f"  making the {size} task", file=sys.stderr)
        measure.run("/usr/bin/python3", script, folder, f"--size={size}")
        for name in "GLCH":
            measure.run("bash", "-c", f"fstcompile {folder}/{name}.txt | fstarcsort --sort_type={'ilabel' if name == 'G' else 'olabel'} - {folder}/{name}.fst")
    return folder


def openfst_step(name, commands, core):
    cost = sum((measure.timed(command, core) for command in commands), Cost())
    print(f"    OpenFst {name}: {cost.cpu_s:.1f} s, {cost.peak_mib:.0f} MiB", file=sys.stderr)
    return name, cost


def run_openfst(folder, core):
    """Returns {step: Cost}. Writes the minimized LG.fst, CLG.fst, HCLG.fst."""
    work, steps = folder / "openfst", []
    work.mkdir(exist_ok=True)
    right = folder / "G.fst"
    for left, name in LEVELS:
        composed, determinized, minimal = work / "composed.fst", work / "determinized.fst", work / f"{name}.fst"
        codes, encoded, small, decoded = (work / part for part in ("codes", "encoded.fst", "small.fst", "decoded.fst"))
        steps.append(openfst_step(f"compose {name}", [["fstcompose", folder / f"{left}.fst", right, composed]], core))
        steps.append(openfst_step(f"determinize {name}", [["fstdeterminize", composed, determinized]], core))
        composed.unlink()
        commands = [["fstencode", "--encode_labels", determinized, codes, encoded], ["fstminimize", encoded, small], ["fstencode", "--decode", small, codes, decoded],
                    ["fstarcsort", "--sort_type=ilabel", decoded, minimal]]
        steps.append(openfst_step(f"minimize {name}", commands, core))
        for path in (determinized, encoded, small, decoded):
            path.unlink()
        right = minimal
    senones, disambig = map(int, (folder / "info.txt").read_text().split())
    (work / "relabel.txt").write_text("".join(f"{senones + 1 + i} 0\n" for i in range(disambig)))
    steps.append(openfst_step("relabel HCLG", [["fstrelabel", f"--relabel_ipairs={work / 'relabel.txt'}", right, work / "relabelled.fst"]], core))
    (work / "relabelled.fst").unlink()
    return dict(steps)


def run_ours(folder, threads, keep):
    """Returns {step: (Cost, states, arcs)}, and the wall time of the whole process, from files to a file."""
    begin = time.monotonic()
    flags = [f"--steps={keep}"] if keep else ["-o", folder / "ours.fst"]
    done = subprocess.run([str(word) for word in (BENCH_GRAPH, folder, AM, f"--threads={threads}", *flags)], stdout=subprocess.PIPE, check=True, text=True)
    wall, steps = time.monotonic() - begin, {}
    for line in done.stdout.splitlines():
        name, cpu_s, wall_s, peak_mib, states, arcs = line.split("\t")
        steps[name] = Cost(float(cpu_s), float(wall_s), float(peak_mib)), int(states), int(arcs)
    return steps, wall


def count_states(path):
    rows = dict(line.rsplit(None, 1) for line in measure.run(WARPFST, "info", path).splitlines() if len(line.split()) > 1)
    return int(rows["states"]), int(rows["arcs"])


def compare(theirs, ours, folder, npath):
    """Returns how the two results compare; stops if they differ."""
    codes, encoded = folder / "codes", [folder / "theirs.encoded", folder / "ours.encoded"]
    measure.run("fstencode", "--encode_labels", theirs, codes, encoded[0])
    measure.run("fstencode", "--encode_labels", "--encode_reuse", ours, codes, encoded[1])
    exact = subprocess.run([str(word) for word in (WARPFST, "equivalent", "--delta=0.05", *encoded)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    for path in encoded:
        path.unlink()
    measure.run(WARPFST, "randequivalent", f"--npath={npath}", "--delta=0.05", "--max-length=100000", theirs, ours)
    return "equivalent" if exact.returncode == 0 else f"equivalent on {2 * npath} random paths"


def compare_levels(folder, threads, npath):
    """Returns {step: how the results compare} for each minimization."""
    steps, verdicts = folder / "steps", {}
    steps.mkdir(exist_ok=True)
    run_ours(folder, threads, steps)
    for _, name in LEVELS:
        verdicts[f"minimize {name}"] = compare(folder / "openfst" / f"{name}.fst", steps / f"minimize_{name}.fst", folder, npath)
        print(f"    {name}: {verdicts[f'minimize {name}']}", file=sys.stderr)
    shutil.rmtree(steps)
    return verdicts


def decode(graph, folder):
    """Returns {utterance: (words, cost)}. Scores are computed once and kept."""
    work = BUILD / "hybrid" / "speech"
    if not (work / "sen.scp").exists():
        measure.run("bash", ROOT / "examples" / "demo_hybrid.sh", "--only", "scores", "--work", work)
    lines = measure.run(WARPFST, "decode", graph, work / "sen.scp", f"--words={folder / 'words.txt'}", "--acoustic-scale=0.1538", "--beam=16", "--max-active=1000000",
                        "--max-tokens=4000000", "--format=json").splitlines()
    results = [json.loads(line) for line in lines if line.startswith("{")]
    return {result["key"]: (result["text"], result["cost"]) for result in results}


def compare_finished(folder, npath):
    """Compares the graphs with self-loops by random paths and by decoding. Returns the number of utterances with equal words, the number of utterances, and the largest difference of costs."""
    measure.run(BENCH_GRAPH, folder, AM, f"--finish={folder / 'openfst' / 'HCLG.fst'}", "-o", folder / "theirs.fst")
    measure.run(WARPFST, "randequivalent", f"--npath={npath}", "--delta=0.05", "--max-length=100000", folder / "theirs.fst", folder / "ours.fst")
    theirs, ours = decode(folder / "theirs.fst", folder), decode(folder / "ours.fst", folder)
    equal = sum(theirs[key][0] == ours[key][0] for key in theirs)
    difference = max(abs(theirs[key][1] - ours[key][1]) for key in theirs)
    if equal != len(theirs):
        sys.exit(f"{folder}: {len(theirs) - equal} of {len(theirs)} utterances have other words with our graph than with OpenFst's")
    print(f"    decoding: {equal} of {len(theirs)} utterances have the same words, costs differ by {difference:.4f} at most", file=sys.stderr)
    return equal, len(theirs), difference


def measure_size(size, threads, npath, only, core):
    """`only`: None, "finish" or "ours"."""
    folder = make_task(size)
    theirs = {} if only else run_openfst(folder, core)
    ours = {count: run_ours(folder, count, None) for count in threads}
    sizes, verdicts, decoding = {}, {}, None
    if only != "ours":
        sizes = {name: count_states(folder / "openfst" / f"{name}.fst") for _, name in LEVELS}
        verdicts = {} if only else compare_levels(folder, threads[-1], npath)
        equal, count, difference = decoding = compare_finished(folder, npath)
        verdicts[FINISH[0]] = f"equivalent on {2 * npath} random paths; {equal} of {count} utterances decoded alike, costs within {difference:.4f}"
    rows = []
    for name in ours[threads[0]][0]:
        row = {"size": size, "step": name, "openfst": vars(theirs[name]) if name in theirs else None, "verdict": verdicts.get(name, "")}
        for count in threads:
            mine, row["states"], row["arcs"] = ours[count][0][name]
            row[f"threads {count}"] = vars(mine)
        if sizes and name.startswith("minimize"):
            row["openfst_states"], row["openfst_arcs"] = sizes[name.split()[1]]
        rows.append(row)
    return rows, {count: ours[count][1] for count in threads}, decoding


def format_rows(rows, walls, threads):
    """Returns a table row per step, and the sums."""
    for row in rows:
        theirs = row["openfst"]
        verdict = row["verdict"]
        if row.get("openfst_states", row["states"]) != row["states"]:
            verdict += f"; OpenFst {row['openfst_states']} states"
        cells = [row["size"], row["step"], row["states"], row["arcs"]] + ([f"{theirs['cpu_s']:.1f}", f"{theirs['peak_mib']:.0f}"] if theirs else ["", ""])
        for count in threads:
            cells += [f"{row[f'threads {count}']['cpu_s']:.2f}", f"{row[f'threads {count}']['wall_s']:.2f}"]
        yield cells + [f"{row[f'threads {threads[-1]}']['peak_mib']:.0f}", verdict]
    theirs = [row["openfst"] for row in rows if row["openfst"]]
    total = [rows[0]["size"], "all", "", "", f"{sum(cost['cpu_s'] for cost in theirs):.1f}", f"{max((cost['peak_mib'] for cost in theirs), default=0):.0f}"]
    for count in threads:
        total += [f"{sum(row[f'threads {count}']['cpu_s'] for row in rows):.2f}", f"{sum(row[f'threads {count}']['wall_s'] for row in rows):.2f}"]
    peak = max(row[f"threads {threads[-1]}"]["peak_mib"] for row in rows)
    yield total + [f"{peak:.0f}", "from files to a file: " + ", ".join(f"{walls[count]:.1f} s" for count in threads)]


def figures(rows, walls, threads, decoding, npath, only):
    """Returns figures for measure.record."""
    for row in rows:
        setup = f"{row['size']} hybrid graph"
        for unit in ("states", "arcs"):
            yield row["step"], f"{setup}, warpfst, {unit}", row[unit], unit
            if f"openfst_{unit}" in row:
                yield row["step"], f"{setup}, OpenFst, {unit}", row[f"openfst_{unit}"], unit
        if only == "finish" and row["step"] not in FINISH:
            continue
        if row["openfst"]:
            yield row["step"], setup + ", OpenFst, processor time", f"{row['openfst']['cpu_s']:.2f}", "s"
            yield row["step"], setup + ", OpenFst, peak memory", f"{row['openfst']['peak_mib']:.0f}", "MiB"
        for count in threads:
            label = "one thread a core" if count == 0 else f"{count} thread{'s' if count > 1 else ''}"
            for field, figure, unit in (("cpu_s", "processor time", "s"), ("wall_s", "wall time", "s"), ("peak_mib", "peak memory", "MiB")):
                yield row["step"], f"{setup}, warpfst, {label}, {figure}", f"{row[f'threads {count}'][field]:.{0 if unit == 'MiB' else 2}f}", unit
    if decoding:
        setup = f"{rows[0]['size']}, graphs of OpenFst and warpfst with self-loops, 5 utterances of LibriVox, beam 16"
        yield "hybrid graph, equal decoding", setup.split(", 5")[0] + ", random paths of equal cost", 2 * npath, "paths"
        yield "hybrid graph, equal decoding", setup + ", utterances with the same words", decoding[0], f"of {decoding[1]}"
        yield "hybrid graph, equal decoding", setup + ", largest difference of costs", f"{decoding[2]:.4f}", "nats"
    for count in threads if only != "finish" else []:
        label = "one thread a core" if count == 0 else f"{count} thread{'s' if count > 1 else ''}"
        yield "hybrid graph, whole pipeline", f"{rows[0]['size']}, warpfst, {label}, from files to a file, wall time", f"{walls[count]:.2f}", "s"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="20k,medium,full")
    parser.add_argument("--threads", default="1,0")
    parser.add_argument("--npath", type=int, default=100)
    parser.add_argument("--finish-only", dest="only", action="store_const", const="finish")
    parser.add_argument("--ours", dest="only", action="store_const", const="ours")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of the table")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    core, threads = measure.last_core(), [int(count) for count in arguments.threads.split(",")]
    header = ["graph", "step", "states", "arcs", "OpenFst, s", "MiB"]
    for count in threads:
        header += [f"warpfst, {'all cores' if count == 0 else count}: processor s", "wall s"]
    cells, recorded = [], []
    print(f"{measure.machine()}; OpenFst on one core; load before {measure.load()}", file=sys.stderr)
    for size in arguments.sizes.split(","):
        print(f"  {size}", file=sys.stderr)
        rows, walls, decoding = measure_size(size, threads, arguments.npath, arguments.only, core)
        cells += format_rows(rows, walls, threads)
        recorded += figures(rows, walls, threads, decoding, arguments.npath, arguments.only)
        if arguments.json:
            print("\n".join(json.dumps(row) for row in rows), flush=True)
    if not arguments.json:
        print(measure.table(header + ["MiB", "results"], cells))
    print(f"load after {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record(recorded, "./run bench graph" + (" --ours" if arguments.only == "ours" else ""))


if __name__ == "__main__":
    main()
