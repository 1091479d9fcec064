#!/usr/bin/env python3
"""fstops [--tasks=phone,char,bpe,large] [--sizes=100000,1000000,10000000] [--repeat=N] [--only=NAME,...] [--json] [--record]

Compares OpenFst's operations and ours on the graphs of CTC graph building, on one core.

  command      OpenFst's tools and ours, from file to file, on the same files, in turn
  in process   the operation without reading and writing files: bench/peers/openfst_ops.cc and bench/fstops/bench_fstops.c

Times are medians of processor time (user + system), which is least affected by other load on the machine; wall time is in the JSON lines. The two results
are compared in the same run: arc by arc if both define the same order, else by equivalence. Needs programs that bench/run.sh builds.

With --sizes, every operation runs on generated graphs of about so many arcs instead: commands alone, beside OpenFst's, on all cores, from 1,000,000 arcs on once, and
stopped after --limit seconds. Results are compared at up to 100,000 arcs.
"""
import argparse
import collections
import json
import os
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
# With --sizes: those of CASES whose inputs grow with the language model, and these.
GROWING = [case for case in CASES if not {"L", "paths", "calls", "LG.words", "Lpaths", "homophones"} & set(case.inputs)] + [
    Case("project LG", "project", ["LG.det"], "equal", ("--project_type=output",)),
    Case("invert LG", "invert", ["LG.det"], "equal"),
    Case("reverse LG", "reverse", ["LG.det"], "equal"),
    Case("union of two LG", "union", ["LG.det", "LG.det"], "random"),
    Case("concat of two LG", "concat", ["LG.det", "LG.det"], "equal"),
    Case("closure LG", "closure", ["LG.det"], "equal"),
    Case("relabel LG", "relabel", ["LG.det"], "equal", ("--relabel_opairs=PAIRS",)),
    Case("prune LG", "prune", ["LG.det"], "random", ("--weight=8",)),
    Case("shortestdistance LG", "shortestdistance", ["LG.det"], None),
    Case("shortestdistance LG (reverse)", "shortestdistance", ["LG.det"], None, ("--reverse",)),
    Case("shortestdistance LG (log)", "shortestdistance", ["LG.log"], None, ("--reverse",)),
    Case("shortestpath LG", "shortestpath", ["LG.det"], None),
    Case("shortestpath LG (10 best)", "shortestpath", ["LG.det"], None, ("--nshortest=10",)),
    Case("randgen LG (1000 paths)", "randgen", ["LG.det"], None, ("--npath=1000", "--seed=1")),
    Case("equal (LG and LG)", "equal", ["LG.det", "LG.det"], None),
    Case("isomorphic (LG and LG)", "isomorphic", ["LG.det", "LG.det"], None),
    Case("info LG", "info", ["LG.det"], None),
    Case("print LG", "print", ["LG.det"], None),
    Case("compile LG", "compile", ["LG.txt"], "equal"),
    Case("topsort strings", "topsort", ["strings"], "random"),
    Case("rmepsilon strings", "rmepsilon", ["strings"], "random"),
    Case("determinize strings", "determinize", ["words"], "random"),
    Case("minimize strings", "minimize", ["words.det"], "random"),
    Case("determinize strings (all outputs)", "determinize", ["strings.one"], "random", ("--det_type=nonfunctional",)),
    Case("disambiguate strings", "disambiguate", ["words"], "random"),
    Case("epsnormalize strings", "epsnormalize", ["strings"], "random"),
    Case("synchronize strings", "synchronize", ["strings"], "random"),
    Case("difference strings - half of them", "difference", ["words", "half"], "equal"),
    Case("replace strings in a string", "replace", ["calls", "strings"], "equal"),
]


def prepare(task, folder):
    """Writes the graphs as OpenFst vector files without symbol tables, so that both sides read the same bytes."""
    parts = generate_task.make_large_task() if task == "large" else TASKS[task]
    prepare_graphs(parts, folder)
    prepare_acceptors(parts, folder)


def prepare_graphs(parts, folder):
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
    prepare_potentials(folder)
    prepare_calls(folder, 50)


def prepare_potentials(folder):
    (folder / "potentials.txt").write_text(measure.run(WARPFST, "shortestdistance", "--reverse", folder / "LG.det.fst"))


def prepare_calls(folder, count):
    """An fst that calls another one `count` times."""
    (folder / "calls.txt").write_text("".join(f"{k} {k + 1} 1 1000001\n" for k in range(count)) + f"{count}\n")
    measure.run(WARPFST, "compile", folder / "calls.txt", folder / "calls.fst")


def prepare_sizes(size, folder):
    """A graph with a generated language model of `size` n-grams, and strings of 10 arcs with epsilons on either side that have `size` arcs together."""
    run = lambda *command: measure.run(WARPFST, *command)
    fst = lambda name: folder / f"{name}.fst"
    prepare_graphs(generate_task.make_sized_task(size), folder)
    prepare_potentials(folder)
    run("print", fst("LG.det"), folder / "LG.txt")
    run("convert", "--arc_type=log", fst("LG.det"), fst("LG.log"))
    (folder / "pairs.txt").write_text("".join(f"{label} {label + 1}\n" for label in range(1, 20000)))
    generate_task.write_strings(size, size // 1000, folder / "strings.txt")
    run("compile", folder / "strings.txt", fst("strings"))
    run("rmepsilon", fst("strings"), fst("strings.some"))
    run("project", "--project_type=input", fst("strings.some"), fst("words.some"))
    run("rmepsilon", fst("words.some"), fst("words"))
    run("determinize", fst("words"), fst("words.det"))
    run("epsnormalize", fst("strings"), fst("strings.one"))
    generate_task.write_strings(size // 2, size // 1000, folder / "half.txt")
    run("compile", folder / "half.txt", fst("half.some"))
    for step in (("project", "--project_type=input"), ("map", "--map_type=rmweight"), ("rmepsilon",), ("determinize",)):
        run(*step, fst("half.some"), fst("half"))
        fst("half").replace(fst("half.some"))
    fst("half.some").replace(fst("half"))
    prepare_calls(folder, 2)


def commands(case, folder):
    """Command lines of OpenFst's tools and of ours, with defaults on both sides."""
    inputs = [folder / (name if name.endswith(".txt") else f"{name}.fst") for name in case.inputs]
    case = case._replace(flags=tuple(flag.replace("PAIRS", str(folder / "pairs.txt")) for flag in case.flags))
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
    warpfst = [WARPFST, case.op, *case.flags, *inputs, ours]
    if case.op in ("equal", "isomorphic", "info"):  # no result
        openfst, warpfst = [openfst[0][:-1]], warpfst[:-1]
    return openfst, [warpfst], theirs, ours


def size(path):
    rows = dict(line.rsplit(None, 1) for line in measure.run(WARPFST, "info", path).splitlines() if len(line.split()) > 1)
    return int(rows["states"]), int(rows["arcs"])


def check(case, folder, theirs, ours, max_length=300):
    """Returns how the results compare; stops if they differ."""
    if case.check == "equal":
        measure.run("fstequal", "--v=1", theirs, ours)
        return "equal"
    sizes = size(theirs), size(ours)
    # On longer paths, what OpenFst rounds when it pushes weights adds up to more than delta.
    measure.run("fstequivalent", "--random", "--npath=100", f"--max_length={max_length}", "--delta=0.01", theirs, ours)
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


def measure_sized(size, case, folder, repeat, limit):
    """Costs of OpenFst's commands and of ours, alternately; None: above the limit."""
    openfst, warpfst, theirs, ours = commands(case, folder)
    costs = [[], []]
    for _ in range(repeat):
        for side, steps in enumerate((openfst, warpfst)):
            if None in costs[side]:
                continue
            total = Cost()
            for step in steps:
                each = measure.timed(step, ALL_CORES, limit)
                total = None if each is None else total + each
                if each is None:
                    break
            costs[side].append(total)
    if size <= 100000 and case.check is not None and None not in costs[0]:
        check(case, folder, theirs, ours, max_length=60)
    _, arcs = map(sum, zip(*(size_of(folder, name) for name in case.inputs)))
    return {"size": size, "case": case.name, "arcs": arcs, "command": [None if None in side else vars(measure.median(side)) for side in costs]}


def size_of(folder, name):
    return size(folder / (f"{name}.fst" if not name.endswith(".txt") else "LG.det.fst"))


def sized_table(results, sizes, limit):
    """A row for each operation: arcs, processor seconds of OpenFst and of ours with every size, wall seconds and memory at the largest."""
    header = ["operation", "arcs in"]
    for each in sizes:
        header += [f"OpenFst, {each:.0e}".replace("e+0", "e"), f"warpfst, {each:.0e}".replace("e+0", "e")]
    header += ["wall s", "wall s", "MiB", "MiB"]
    rows, number = [], lambda cost, key: f"above {limit}" if cost is None else measure.figure(cost[key])
    for name in dict.fromkeys(result["case"] for result in results):
        same = [result for result in results if result["case"] == name]
        costs = [cost for result in same for cost in result["command"]]
        rows.append([name, same[-1]["arcs"], *(number(cost, "cpu_s") for cost in costs), *(number(cost, "wall_s") for cost in costs[-2:]), *(number(cost, "peak_mib") for cost in costs[-2:])])
    return measure.table(header, rows)


def sized_figures(result, limit):
    for program, cost in zip(("OpenFst", "warpfst"), result["command"]):
        setup = f"size {result['size']}, {result['arcs']} arcs in, {program}, command"
        for key, name, unit in (("cpu_s", "processor time", "s"), ("wall_s", "wall time", "s"), ("peak_mib", "peak memory", "MiB")):
            if cost is not None or key == "cpu_s":
                yield result["case"], f"{setup}, {name}", f"above {limit}" if cost is None else measure.figure(cost[key]), unit


def run_sizes(arguments, cases):
    sizes, results = [int(size) for size in arguments.sizes.split(",")], []
    for each in sizes:
        folder = BUILD / f"size{each}"
        if not (folder / "ready").exists():  # it takes minutes
            prepare_sizes(each, folder)
            (folder / "ready").touch()
        for case in cases:
            print(f"  {each}: {case.name}", file=sys.stderr)
            results.append(measure_sized(each, case, folder, arguments.repeat if each < 10**6 else 1, arguments.limit))
            print(json.dumps(results[-1]), flush=True, file=sys.stdout if arguments.json else sys.stderr)
    if not arguments.json:
        print(sized_table(results, sizes, arguments.limit))
    if arguments.record:
        measure.record([each for result in results for each in sized_figures(result, arguments.limit)], f"./run bench fstops --sizes={arguments.sizes}")


def row(result):
    theirs, ours = result["command"]
    theirs_alone, ours_alone = (cost["cpu_s"] for cost in result["in_process"])
    digits = lambda seconds: f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3f}"
    return [result["task"], result["case"], result["arcs"], digits(theirs["cpu_s"]), digits(ours["cpu_s"]), f"{theirs['cpu_s'] / ours['cpu_s']:.1f}",
            f"{theirs['peak_mib']:.0f}", f"{ours['peak_mib']:.0f}", digits(theirs_alone), digits(ours_alone), f"{theirs_alone / ours_alone:.1f}", result["verdict"]]


ALL_CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))))
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
    parser.add_argument("--sizes", default="", help="numbers of arcs: every operation on generated graphs of these sizes")
    parser.add_argument("--limit", type=int, default=120, help="with --sizes: seconds after which a command is stopped")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="operations (compose, determinize, ...) or rows of the table, by name")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of tables")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    core = measure.last_core()
    cases = [case for case in (GROWING if arguments.sizes else CASES) if not arguments.only or {case.op, case.name} & set(arguments.only.split(","))]
    results = []
    if arguments.sizes:
        run_sizes(arguments, cases)
        return
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
