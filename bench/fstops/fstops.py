#!/usr/bin/env python3
"""fstops [--tasks=phone,char,bpe,large] [--repeat=N] [--only=NAME,...] [--json] [--record]

Compares OpenFst's operations and ours on the graphs of CTC graph building, on one core.

  command      OpenFst's tools and ours, from file to file, on the same files, in turn
  in process   the operation without reading and writing files: bench/peers/openfst_ops.cc and bench/fstops/bench_fstops.c

Times are medians of processor time (user + system), which is least affected by other load on the machine; wall time is in the JSON lines. The two results
are compared in the same run: arc by arc if both define the same order, else by equivalence. Needs programs that bench/run.sh builds.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import generate_task
import measure
from measure import BUILD, ROOT, WARPFST, Cost

CTC = ROOT / "examples" / "ctc"
TASKS = {kind: {"tokens": CTC / f"tokens_{kind}.txt", "lexicon": CTC / f"lexicon_{kind}.txt", "lm": CTC / "lm3.arpa.gz"} for kind in ("phone", "char", "bpe")}
# `theirs`: the operation of bench/peers/openfst_ops.cc, if it has another name. `tool`: False if OpenFst has no command for it; that program then reads and writes files, too.
Case = collections.namedtuple("Case", "name op inputs check flags theirs tool", defaults=((), None, True))
CASES = [
    Case("compose L o G", "compose", ["Lsorted", "G"], "equal"),
    Case("compose det L o G (look-ahead)", "compose", ["L.det", "G"], "random", ("--lookahead",), "compose_lookahead", False),
    Case("compose det L o G (look-ahead and pushing)", "compose", ["L.det", "G"], "random", ("--lookahead-push",), "compose_lookahead", False),
    Case("determinize LG", "determinize", ["LG"], "equivalent"),
    Case("minimize LG", "minimize", ["LG.det"], "equivalent"),
    Case("push LG", "push", ["LG.det"], "equivalent"),
    Case("compose T o LG", "compose", ["Tsorted", "LG.min"], "equal"),
    Case("rmepsilon TLG", "rmepsilon", ["TLG"], "random"),
    Case("arcsort TLG", "arcsort", ["TLG"], "equal"),
    Case("connect T o LG", "connect", ["TLG.untrimmed"], "equal"),
    Case("map TLG (arc_sum)", "map", ["TLG"], "equal", ("--map_type=arc_sum",)),
    Case("encode TLG (labels)", "encode", ["TLG"], "equal"),
    Case("epsnormalize L", "epsnormalize", ["L"], "random"),
    Case("disambiguate paths of LG", "disambiguate", ["paths"], "random"),
    Case("difference LG - paths", "difference", ["LG.words", "paths.det"], "equal"),
    Case("replace 50 times L", "replace", ["calls", "L"], "equal"),
    Case("reweight LG", "reweight", ["LG.det"], "equal"),
    Case("condense TLG", "condense", ["TLG"], "equal", tool=False),
    Case("synchronize L o paths", "synchronize", ["Lpaths"], "random"),
    Case("determinize L o paths (all outputs)", "determinize", ["homophones"], "random", ("--det_type=nonfunctional",), "determinize_nonfunctional"),
]


def prepare(task, folder):
    """Writes the graphs as OpenFst vector files without symbol tables, so that both sides read the same bytes."""
    parts = generate_task.make_large_task() if task == "large" else TASKS[task]
    folder.mkdir(parents=True, exist_ok=True)
    steps = folder / "steps"
    measure.run(WARPFST, "mkgraph", "ctc", *(f"--{name}={path}" for name, path in parts.items()), "--topology=compact", f"--keep-steps={steps}", "-q", "-o", folder / "graph.wfst")
    for name in ("L", "G", "LG", "LG.det", "LG.min", "T", "TLG"):
        measure.run(WARPFST, "convert", "--drop_symbols", steps / f"{name}.fst", folder / f"{name}.fst")
    for name in ("L", "T"):
        measure.run(WARPFST, "arcsort", "--sort_type=olabel", folder / f"{name}.fst", folder / f"{name}sorted.fst")
    measure.run(WARPFST, "determinize", folder / "L.fst", folder / "L.unsorted.fst")
    measure.run(WARPFST, "arcsort", "--sort_type=olabel", folder / "L.unsorted.fst", folder / "L.det.fst")
    measure.run(WARPFST, "compose", "--no-connect", folder / "Tsorted.fst", folder / "LG.fst", folder / "TLG.untrimmed.fst")
    prepare_acceptors(parts, folder)


def prepare_acceptors(parts, folder):
    """Words of LG; 300 random strings of them, as paths from one start and as a deterministic acceptor; their pronunciations; and an fst that calls L 50 times."""
    pipe = lambda *commands: [measure.run(WARPFST, *command) for command in commands]
    words, paths, plain = folder / "LG.words.fst", folder / "paths.fst", folder / "plain.fst"
    pipe(("project", "--project_type=output", folder / "LG.min.fst", words))
    pipe(("randgen", "--npath=300", "--seed=1", "--max_length=12", words, plain), ("rmepsilon", plain, paths), ("map", "--map_type=rmweight", paths, plain),
         ("determinize", plain, folder / "paths.det.fst"))
    pipe(("compose", folder / "Lsorted.fst", folder / "paths.det.fst", folder / "Lpaths.fst"))
    tokens = sum(1 for line in open(parts["tokens"], encoding="utf-8") if line.strip())  # larger labels are disambiguation symbols: without them, words that sound alike have the same input
    inputs = {int(line.split()[2]) for line in measure.run(WARPFST, "print", folder / "Lpaths.fst").splitlines() if len(line.split()) >= 4}
    (folder / "marks.txt").write_text("".join(f"{label}\n" for label in sorted(inputs) if label > tokens))
    pipe(("rmsymbols", folder / "marks.txt", folder / "Lpaths.fst", folder / "homophones.fst"))
    (folder / "potentials.txt").write_text(measure.run(WARPFST, "shortestdistance", "--reverse", folder / "LG.det.fst"))
    text = "".join(f"{k} {k + 1} 1 1000001\n" for k in range(50)) + "50\n"
    (folder / "calls.txt").write_text(text)
    pipe(("compile", folder / "calls.txt", folder / "calls.fst"))


def commands(case, folder):
    """Command lines of OpenFst's tools and of ours, with defaults on both sides."""
    inputs = [folder / f"{name}.fst" for name in case.inputs]
    theirs, ours = folder / "openfst.out", folder / "warpfst.out"
    if case.op == "replace":  # each fst is followed by its label
        inputs = [inputs[0], "1000000", inputs[1], "1000001"]
    if case.op == "reweight":
        inputs.append(folder / "potentials.txt")
    if case.op == "encode":
        inputs = ["--encode_labels", *inputs, folder / "codes"]
    openfst = [[f"fst{case.op}", *case.flags, *(["--push_weights"] if case.op == "push" else []), *inputs, theirs]]
    if case.op == "minimize":
        codes, encoded, minimal = folder / "codes", folder / "encoded", folder / "minimal"
        openfst = [["fstencode", "--encode_labels", *inputs, codes, encoded], ["fstminimize", encoded, minimal], ["fstencode", "--decode", minimal, codes, theirs]]
    if not case.tool:
        openfst = [[BUILD / "openfst_ops", case.theirs or case.op, *inputs, f"--output={theirs}"]]
    return openfst, [[WARPFST, case.op, *case.flags, *inputs, ours]], theirs, ours


def size(path):
    rows = dict(line.rsplit(None, 1) for line in measure.run(WARPFST, "info", path).splitlines() if len(line.split()) > 1)
    return int(rows["states"]), int(rows["arcs"])


def check(case, folder, theirs, ours):
    """Returns how the results compare; stops if they differ."""
    if case.check == "equal":
        measure.run("fstequal", "--v=1", theirs, ours)
        return "equal"
    sizes = size(theirs), size(ours)
    # On longer paths, what OpenFst rounds when it pushes weights adds up to more than delta.
    measure.run("fstequivalent", "--random", "--npath=100", "--max_length=300", "--delta=0.01", theirs, ours)
    if case.check == "equivalent":  # with encoded labels, both are deterministic acceptors
        codes, encoded = folder / "codes", [folder / "theirs.encoded", folder / "ours.encoded"]
        measure.run("fstencode", "--encode_labels", theirs, codes, encoded[0])
        measure.run("fstencode", "--encode_labels", "--encode_reuse", ours, codes, encoded[1])
        measure.run(WARPFST, "equivalent", "--delta=0.01", *encoded)
    if sizes[0] == sizes[1]:
        return "same size, equivalent"
    return f"equivalent, {sizes[1][0]} states for OpenFst's {sizes[0][0]}"


def in_process(program, case, folder, repeat, core):
    op, flags = (case.theirs or case.op, ()) if program.name == "openfst_ops" else (case.op, case.flags)
    potentials = [f"--potentials={folder / 'potentials.txt'}"] if case.op == "reweight" else []
    command = [program, op, *flags, *potentials, *(folder / f"{name}.fst" for name in case.inputs), f"--repeat={repeat}"]
    out = subprocess.run(measure.pinned(command, core), stdout=subprocess.PIPE, check=True, text=True).stdout
    return measure.median([Cost(*map(float, line.split()[:2])) for line in out.splitlines()])


def measure_case(task, case, folder, repeat, core):
    openfst, warpfst, theirs, ours = commands(case, folder)
    costs = [], []
    for _ in range(repeat):
        for side, steps in enumerate((openfst, warpfst)):
            costs[side].append(sum((measure.timed(step, core) for step in steps), Cost()))
    verdict = check(case, folder, theirs, ours)
    states, arcs = map(sum, zip(*(size(folder / f"{name}.fst") for name in case.inputs)))
    alone = [in_process(program, case, folder, repeat, core) for program in (BUILD / "openfst_ops", ROOT / "build" / "release" / "bench" / "bench_fstops")]
    return {"task": task, "case": case.name, "states": states, "arcs": arcs, "command": [vars(measure.median(side)) for side in costs],
            "in_process": [vars(cost) for cost in alone], "verdict": verdict}


def row(result):
    theirs, ours = result["command"]
    theirs_alone, ours_alone = (cost["cpu_s"] for cost in result["in_process"])
    digits = lambda seconds: f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3f}"
    return [result["task"], result["case"], result["arcs"], digits(theirs["cpu_s"]), digits(ours["cpu_s"]), f"{theirs['cpu_s'] / ours['cpu_s']:.1f}",
            f"{theirs['peak_mib']:.0f}", f"{ours['peak_mib']:.0f}", digits(theirs_alone), digits(ours_alone), f"{theirs_alone / ours_alone:.1f}", result["verdict"]]


HEADER = ["task", "operation", "arcs in", "OpenFst tool, s", "warpfst, s", "faster", "MiB", "MiB", "OpenFst in process, s", "warpfst in process, s", "faster", "results"]


def figures(result):
    """Returns figures for measure.record."""
    for kind, name in (("command", "command"), ("in_process", "in process")):
        for side, program in enumerate(("OpenFst", "warpfst")):
            setup = f"{result['task']} task, {result['arcs']} arcs in, {program}, {name}"
            yield result["case"], setup + ", processor time", f"{result[kind][side]['cpu_s']:.4f}", "s"
            if kind == "command":
                yield result["case"], setup + ", peak memory", f"{result[kind][side]['peak_mib']:.1f}", "MiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="phone,char,bpe,large")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="operations (compose, determinize, ...) or rows of the table, by name")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of tables")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    core = measure.last_core()
    cases = [case for case in CASES if not arguments.only or {case.op, case.name} & set(arguments.only.split(","))]
    results = []
    print(f"{measure.machine()}; one core; medians of {arguments.repeat}; load before {measure.load()}", file=sys.stderr)
    for task in arguments.tasks.split(","):
        folder = BUILD / task
        prepare(task, folder)
        for case in cases:
            print(f"  {task}: {case.name}", file=sys.stderr)
            results.append(measure_case(task, case, folder, arguments.repeat, core))
            if arguments.json:
                print(json.dumps(results[-1]), flush=True)
    if not arguments.json:
        print(measure.table(HEADER, [row(result) for result in results]))
    print(f"load after {measure.load()}", file=sys.stderr)
    if arguments.record:
        measure.record([each for result in results for each in figures(result)], "./run bench fstops")


if __name__ == "__main__":
    main()
