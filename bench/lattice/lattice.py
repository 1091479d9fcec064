#!/usr/bin/env python3
"""lattice [--repeat=N] [--record] [--beams=4,8] [--hour] [--hybrid-graph=HCLG.fst --hybrid-scores=FILE.ark --hybrid-ref=FILE --hybrid-words=FILE]
lattice --device=cuda[:N] [--programs=FOLDER] [--beams=8] [--batches=1,50,200,400] [--part=hybrid,real,peaky,flat] [--hour] [--size=full] [--save=FILE | --load=FILE] [--record] [--hybrid-...]

Measures raw lattices on one CPU thread, in processor time: decoding with and without lattices, in turn; lattice sizes; oracle errors and the number of utterances
whose lattice contains the reference; determinization and 100-best lists. --hour: decodes one utterance of an hour, made by concatenating the scores of the task, and
reports peak memory.

  CTC     phones, compact topology, 3-gram LM, acoustic_scale 0.7, beam 15, max_active 7000, on the utterances of examples/ctc
  hybrid  on request: acoustic_scale 0.1538, beam 13, max_active 7000

With --device: measures tasks of `./run bench decode` (the generated ones only with batches of 400), in batches on the GPU with scores in its memory: without lattices, with raw and with
determinized lattices; sizes; and the time of determinization alone on all host threads. The first lattices must equal the CPU's, bit for bit.
--hour (or --hour=real): decodes an hour-long utterance from host memory, and reports peak memory of GPU and host.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
from measure import BUILD, ROOT

CTC = ROOT / "examples" / "ctc"
PROGRAM = ROOT / "build" / "release" / "bench" / "bench_lattice"


MAX_ACTIVE = 7000


def search(files, acoustic_scale, beam):
    return [*files, f"--acoustic-scale={acoustic_scale}", f"--beam={beam}", f"--max-active={MAX_ACTIVE}"]


def errors(words, references):
    return [f"--words={words}", f"--references={references}"]


def setting(command, name):
    return next(str(word).partition("=")[2] for word in command if str(word).startswith(f"--{name}="))


def ctc_task():
    graph, words = BUILD / "lattice_ctc.wfst", BUILD / "lattice_ctc.words"
    measure.run(measure.WARPFST, "mkgraph", "ctc", f"--tokens={CTC / 'tokens_phone.txt'}", f"--lexicon={CTC / 'lexicon_phone.txt'}", f"--lm={CTC / 'lm3.arpa.gz'}", "--topology=compact", f"--words-out={words}", "-q", "-o", graph)
    return "CTC phones", 90_000, search([graph, CTC / "logp_phone"], 0.7, 15), errors(words, CTC / "text")


def hybrid_task(a):
    return "hybrid HCLG", 360_000, search([a.hybrid_graph, a.hybrid_scores], 0.1538, 13), errors(a.hybrid_words, a.hybrid_ref) if a.hybrid_words and a.hybrid_ref else []


def measured(command, beam, repeat, frames, references):
    words = measure.pinned([PROGRAM, *command, f"--lattice-beam={beam}", f"--rounds={repeat}", f"--frames={frames}", *references], measure.last_core())
    return json.loads(measure.run(*words))


def figures_of(task, beam, r, frames_per_hour, command):
    seconds = 3600 * r["frames"] / frames_per_hour
    setup = f"{'an hour' if r['utterances'] == 1 else str(r['utterances']) + ' utterances'}, beam {setting(command, 'beam')}, max_active {MAX_ACTIVE}, lattice_beam {beam}, 1 thread"
    rows = [("without", seconds / r["plain_s"], "RTFx"), ("with", seconds / r["lattice_s"], "RTFx"), ("density", r["density"], "arcs/frame")]
    if "words" in r:
        rows += [("WER", 100 * r["best_errors"] / r["words"], "%"), ("oracle WER", 100 * r["oracle_errors"] / r["words"], "%"), ("lattices with the reference", r["with_reference"], "utterances")]
    if r["utterances"] == 1:
        rows += [("memory beyond scores and graph, without", r["plain_mib"] - r["read_mib"], "MiB"), ("memory beyond scores and graph, with", r["peak_mib"] - r["read_mib"], "MiB")]
    return [(f"lattice {task}, {what}", setup, measure.figure(value), unit) for what, value, unit in rows]


def work_figures(task, command, frames_per_hour):
    """Figures of operations on lattices and of decoding with lattices: processor time."""
    r = json.loads(measure.run(*measure.pinned([PROGRAM.with_name("bench_latops"), *command, "--lattice-beam=8", "--rounds=5"], measure.last_core())))
    seconds = 3600 * r["frames"] / frames_per_hour
    setup = f"{r['utterances']} utterances, beam {setting(command, 'beam')}, max_active {MAX_ACTIVE}, lattice_beam 8, 1 thread"
    return [(f"lattice {task}, determinization", setup, measure.figure(seconds / r["determinize_s"]), "RTFx"),
            (f"lattice {task}, determinization of decoding", setup, measure.figure(100 * r["determinize_s"] / r["decode_s"]), "%"),
            (f"lattice {task}, arcs raw", setup, str(r["raw_arcs"]), "arcs"), (f"lattice {task}, arcs determinized", setup, str(r["arcs"]), "arcs"),
            (f"lattice {task}, lists of the 100 best", setup, measure.figure(seconds / r["nbest_s"]), "RTFx"),
            (f"lattice {task}, lists of the 10 best, of determinization", setup, measure.figure(100 * r["short_nbest_s"] / r["determinize_s"]), "%"),
            (f"lattice {task}, confidences, of determinization", setup, measure.figure(100 * r["confidences_s"] / r["determinize_s"]), "%"),
            (f"lattice {task}, minimum Bayes risk words, of determinization", setup, measure.figure(100 * r["mbr_s"] / r["determinize_s"]), "%")]


def results_figures(task, command, references, n=100):
    """Word error rates of minimum Bayes risk and oracle word error rates of n-best lists, by the commands."""
    graph, scores, *flags = command
    words, ref = setting(references, "words"), setting(references, "references")
    lattices, lists = BUILD / "lattice_results.ark", BUILD / "lattice_nbest.txt"
    measure.run(measure.WARPFST, "decode", graph, scores, *flags, "--lattice-beam=8", f"--lattice={lattices}", "-o", BUILD / "lattice_hyp.txt")
    scaled = [lattices, f"--acoustic-scale={setting(command, 'acoustic-scale')}", f"--words={words}"]
    mbr = measure.run(measure.WARPFST, "lattice", "mbr", *scaled, f"--ref={ref}", "-o", BUILD / "lattice_mbr.txt")
    measure.run(measure.WARPFST, "lattice", "nbest", *scaled, f"--n={n}", "-o", lists)
    said = {key: text for key, *text in map(str.split, open(ref, encoding="utf-8"))}
    least = {}
    for key, *text in map(str.split, open(lists, encoding="utf-8")):
        key = key.rsplit("-", 1)[0]
        if key in said:
            least[key] = min(least.get(key, len(said[key]) + len(text)), measure.distance(text, said[key]))
    if not least:
        sys.exit(f"{ref}: no reference for any utterance; expected lines `key word word ...`")
    share = 100 * sum(least.values()) / sum(len(said[key]) for key in least)
    setup = f"{len(least)} utterances, beam {setting(command, 'beam')}, max_active {MAX_ACTIVE}, lattice_beam 8"
    return [(f"lattice {task}, WER by minimum Bayes risk", setup, re.search(r"WER ([0-9.]+)%", mbr).group(1), "%"), (f"lattice {task}, oracle WER of {n}-best lists", setup, measure.figure(share), "%")]


# --- on a GPU ---------------------------------------------------------------------------------------------------------------


def gpu_tasks(a, programs):
    batches = tuple(map(int, a.batches.split(",")))
    for part in a.part.split(","):
        if part == "real":
            yield decode_tasks.real_ctc(programs, decode_tasks.CTC / "logp_phone", batches)
        elif part == "hybrid" and a.hybrid_graph and a.hybrid_scores:
            yield decode_tasks.hybrid(a, batches, True)
        elif part in ("peaky", "flat"):
            yield decode_tasks.generated(programs, a.size, (400,))[part]


def gpu_runs(a, task):
    """Runs on the CPU for comparison, and then runs without and with lattices in turn, so that the figures compared are measured within seconds."""
    beams = [0, *map(float, (a.beams or "8").split(","))]
    runs = [task.run(*task.base, device="cpu", utterances=task.check, seconds=0, lattice_beam=beam) for beam in beams]
    for batch in task.batches:
        on_gpu = {"device": a.device, "scores": "device", "batch": batch, "utterances": max(batch, task.check), "seconds": 0.3}
        runs += [task.run(*task.base, **on_gpu, lattice_beam=beam) for beam in beams]
        runs += [task.run(*task.base, **on_gpu, lattice_beam=beam, determinize=1) for beam in beams[1:] if batch == max(task.batches)]
    if task.part in a.hour.split(","):
        hour = {"device": a.device, "scores": "host", "frames": round(3600 / task.frame_shift)}
        runs += [task.run(*task.base, **hour, lattice_beam=beam) for beam in (0, beams[-1])]
    return runs


def gpu_rows(a):
    programs = decode_tasks.Programs(a.programs)
    for task in gpu_tasks(a, programs):
        with subprocess.Popen(task.command(programs, gpu_runs(a, task)), stdout=subprocess.PIPE, text=True, env=programs.environment) as process:
            for line in process.stdout:
                row = {"task": task.name, **json.loads(line)}
                print("  " + (row["error"] if "error" in row else f"{row['task']}, {row['device']}, {row['scores']}, batch {row['batch']}, lattice_beam {row.get('lattice_beam', 0):g}: RTFx {row['rtfx']:.0f}"), file=sys.stderr)
                yield row
        if process.returncode not in (0, 1):
            yield {"task": task.name, "error": f"bench_decode: exit code {process.returncode}"}


def gpu_figures(r, plain):
    """Figures of a run on the GPU. `plain`: RTFx without lattices by setting."""
    beam, figure = r.get("lattice_beam", 0), measure.figure
    what = f"lattice GPU {r['task']}"
    setup = f"{'an hour' if r['tiled'] else str(r['utterances']) + ' utterances'}, beam {r['beam']:g}, max_active {r['max_active']}, {r['scores']} scores, batch {r['batch']}"
    key = (r["task"], r["scores"], r["batch"], r["tiled"])
    if beam == 0:
        plain[key] = r["rtfx"]
    else:
        setup += f", lattice_beam {beam:g}"
    kind = "without" if beam == 0 else "determinized while decoding" if r["determinize"] else "with"
    figures = [(f"{what}, {kind}", setup, figure(r["rtfx"]), "RTFx")]
    if beam > 0:
        figures.append((f"{what}, {kind} of without", setup, figure(100 * r["rtfx"] / plain[key]), "%"))
    if kind == "with":
        figures += [(f"{what}, arcs", setup, figure(r["lattice_arcs_per_frame"]), "arcs/frame"), (f"{what}, utterances left to the CPU, of all rounds", setup, str(r.get("on_cpu", 0)), "utterances"),
                    (f"{what}, determinization by all threads", setup, figure(r["audio_s"] / r["determinize_s"]), "RTFx")]
    if r["tiled"]:
        figures += [(f"{what}, memory on the GPU, {kind}", setup, figure(r.get("gpu_mib", 0)), "MiB"), (f"{what}, memory on the host beyond scores and graph, {kind}", setup, figure(r["host_mib"]), "MiB")]
    return figures


def gpu_report(rows):
    """(figures, problems)"""
    figures, problems, digests, plain = [], [row["error"] for row in rows if "error" in row], {}, {}
    for r in rows:
        if "error" in r:
            continue
        beam = r.get("lattice_beam", 0)
        if digests.setdefault((r["task"], beam, r["tiled"]), r["digest"]) != r["digest"]:
            problems.append(f"{r['task']}, {r['scores']} scores, batch {r['batch']}, lattice_beam {beam:g}: not the results of the CPU")
        if r["failed"] or r["died"]:
            problems.append(f"{r['task']}, batch {r['batch']}, lattice_beam {beam:g}: {r['failed']} utterances failed, {r['died']} died")
        if r["device"] != "cpu":
            figures += gpu_figures(r, plain)
    return figures, problems


def on_gpu(a):
    rows = [json.loads(line) for line in open(a.load, encoding="utf-8")] if a.load else []
    if not a.load:
        with open(a.save or os.devnull, "w", encoding="utf-8") as save:  # row by row, so that rows are kept if the machine is lost
            for row in gpu_rows(a):
                rows.append(row)
                print(json.dumps(row), file=save, flush=True)
    figures, problems = gpu_report(rows)
    print(measure.table(["what", "setup", "figure", "unit"], figures))
    print("\n".join(problems) or "results and lattices equal the CPU's bit for bit")
    if a.record and not problems:
        gpu = next(row["gpu"] for row in rows if row["device"] != "cpu")
        measure.record(figures, f"./run bench lattice --device={a.device}", machine=f"one {gpu}")
    return 1 if problems or not figures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beams", help="default: 4,8, on a GPU 8")
    parser.add_argument("--hour", nargs="?", const="real,hybrid", default="", help="decode an hour-long utterance, of both tasks or of real or hybrid")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    for name in ("graph", "scores", "ref", "words"):
        parser.add_argument(f"--hybrid-{name}")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--programs", default=ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--batches", default="1,50,200,400")
    parser.add_argument("--part", default="hybrid,real,peaky,flat")
    parser.add_argument("--size", choices=decode_tasks.SIZES, default="full", help="size of the generated tasks")
    parser.add_argument("--work", help="folder for graphs and scores, which are kept (default: build/bench)")
    parser.add_argument("--save", help="also save the measurements to this file")
    parser.add_argument("--load", help="do not measure; print the table of a saved file")
    a = parser.parse_args()
    measure.BUILD = pathlib.Path(a.work or measure.BUILD)
    if a.device != "cpu":
        return on_gpu(a)
    tasks = [ctc_task()] + ([hybrid_task(a)] if a.hybrid_graph and a.hybrid_scores else [])
    figures = []
    for task, frames_per_hour, command, references in tasks:
        for beam in (a.beams or "4,8").split(","):
            figures += figures_of(task, beam, measured(command, beam, a.repeat, 0, references), frames_per_hour, command)
        figures += work_figures(task, command, frames_per_hour)
        if references:
            figures += results_figures(task, command, references)
        if ("hybrid" if "hybrid" in task else "real") in a.hour.split(","):
            figures += figures_of(task, "8", measured(command, "8", 1, frames_per_hour, []), frames_per_hour, command)
    print(measure.table(["what", "setup", "figure", "unit"], figures))
    if a.record:
        measure.record(figures, "./run bench lattice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
