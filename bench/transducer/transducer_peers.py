#!/usr/bin/env python3
"""transducer_peers --wheels=FOLDER [--shape=NAME]... [--data=FOLDER] [--device=cuda] [--batch=400] [--batches=3] [--seconds=15] [--threads=0] [--rounds=3] [--max-symbols=1] [--limit=120] [--modes=full_graph,no_while_loops,no_graphs] [--dtype=float32] [--programs=FOLDER] [--record]

NeMo's batched transducer decoders beside warpfst, on the same models and encoder outputs: greedy (label looping) and beam search (modified ALSD, `malsd_batch`), both with CUDA graphs on a GPU.

  --shape   random models of real sizes (transducer_task.py), all by default; none with --data
  --data    real models and utterances, as for transducer.py: rnnt, lstm, tdt; also word error rates
  --wheels  has nemo_toolkit-3.0.0's wheel; torch is that of this Python. Download it with `python3 -m pip download --no-deps -d FOLDER nemo_toolkit==3.0.0`
  --modes   NeMo's modes of CUDA graphs, tried in this order until one works: full_graph (the loop is in the graph; needs the package cuda-bindings), no_while_loops (Python loops over graphs),
            no_graphs. Each is a row
  --limit   seconds that a row may take, with all that is loaded and made for it: where it has no result by then, the row says so, and the next one is run. Rounds for which no time is left are not run

RTFx is seconds of audio per second of decoding, the median of --rounds runs: predictor, joiner, search, and tokens of the best hypothesis on the host. warpfst reads encoder outputs from host
memory, NeMo's are in GPU memory before. Beam of 8; at most --max-symbols a frame, 3 with --data: a frame of a random model that favours a token favours it again after it, so with NeMo's 10 its
beam search would spend most steps on repeats that trained models do not make. "same" is the share of utterances with warpfst's tokens. Beams differ: NeMo sums hypotheses that are
equal, warpfst takes the better; NeMo's have no width in nats, warpfst's is --beam. Standard error shows where the time goes, and rows as they come.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile
import threading
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
import numpy as np
import transducer_task

WORK = measure.BUILD / "transducer_peers"
REAL = ("rnnt", "lstm", "tdt")


class Task:
    """A model, a graph of its tokens, encoder outputs."""

    def __init__(self, name, model, tokens, scores, frame_s, max_symbols, reference=None):
        self.name, self.model, self.scores, self.frame_s, self.max_symbols, self.reference = name, model, scores, frame_s, max_symbols, reference
        self.number_of = {line.split()[0]: int(line.split()[1]) for line in open(tokens, encoding="utf-8")}
        self.names = {number: name for name, number in self.number_of.items()}

    def audio_s(self):
        return self.frame_s * sum(len(np.load(path, mmap_mode="r")) for path in pathlib.Path(self.scores).glob("*.npy"))


def tasks(arguments, programs):
    if arguments.data:
        data, folder = pathlib.Path(arguments.data), WORK / "real"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "enc").exists():
            with tarfile.open(data / "enc.tar.xz") as archive:
                archive.extractall(folder, filter="data")
        for name in REAL:
            yield Task(name, data / f"{name}.safetensors", data / "tokens.txt", folder / "enc", 0.04, 3, data / "text")
    for name in arguments.shape or ([] if arguments.data else transducer_task.SHAPES):
        folder = WORK / name
        search = {**transducer_task.SEARCH, "beam": arguments.beam, "max_symbols": arguments.max_symbols}
        transducer_task.make_task(folder, name, arguments.batch * arguments.batches, arguments.seconds, search, programs / "warpfst")
        yield Task(name, folder / "tokens.safetensors", folder / "tokens.txt", folder / "enc", transducer_task.SHAPES[name]["frame_s"], arguments.max_symbols)


class Run:
    """What a system found: {utterance: token numbers} and the seconds of each round; or no tokens, and why."""

    def __init__(self, tokens=None, seconds=(), why="", note=""):
        self.tokens, self.seconds, self.why, self.note = tokens, seconds, why, note


def run_limited(command, seconds, out):
    """Runs a command, writes its output to the file `out` and shows its standard error. Returns None, or a Run that says what went wrong, with the last line of standard error."""
    with open(out, "w", encoding="utf-8") as file:
        process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=subprocess.PIPE, text=True)
    over = threading.Event()

    def stop():
        over.set()
        process.kill()

    timer, last = threading.Timer(seconds, stop), ""
    timer.start()
    for line in process.stderr:
        print(f"  {line}", end="", file=sys.stderr, flush=True)
        last = line.strip() or last
    code = process.wait()
    timer.cancel()
    if code == 0:
        return None
    return Run(why=f"over {seconds:g} s", note=f"after: {last}") if over.is_set() else Run(why="failed", note=last)


def with_warpfst(task, arguments, programs, beam):
    graph, out, summary, seconds, began = WORK / "tokens.wfst", WORK / "out", WORK / "summary.json", [], time.monotonic()
    measure.run(programs / "warpfst", "mkgraph", "ctc", "--topology=transducer", f"--tokens={write_tokens(task)}", "--blank=<blk>", "-q", "-o", graph)
    flags = ["--greedy"] if beam == 1 else [f"--max-hypotheses={beam}", f"--beam={arguments.beam}"]
    command = [programs / "warpfst", "decode", graph, task.scores, f"--transducer={task.model}", f"--max-symbols={task.max_symbols}", f"--num-threads={arguments.threads}",
               f"--batch={arguments.batch}", f"--device={arguments.device}", f"--frame-shift={task.frame_s}", f"--summary={summary}", *flags]
    while len(seconds) < arguments.rounds and (not seconds or time.monotonic() - began < arguments.limit):
        wrong = run_limited(command, arguments.limit, out)
        if wrong is not None:
            return wrong
        seconds.append(json.loads(summary.read_text())["decode_seconds"])
    lines = (line.split() for line in open(out, encoding="utf-8"))
    return Run({key: [task.number_of[token] for token in tokens] for key, *tokens in lines}, seconds)


def write_tokens(task):
    path = WORK / "tokens.txt"
    path.write_text("".join(f"{name} {number}\n" for number, name in sorted(task.names.items())), encoding="utf-8")
    return path


def with_nemo(task, arguments, wheel, beam, mode):
    job = {"nemo": str(wheel), "model": str(task.model), "scores": str(task.scores), "beam": beam, "max_symbols": task.max_symbols, "batch": arguments.batch, "mode": mode,
           "device": arguments.device, "rounds": arguments.rounds, "threads": arguments.threads, "limit": arguments.limit, "dtype": arguments.dtype}
    out = WORK / "nemo.json"
    (WORK / "job.json").write_text(json.dumps(job), encoding="utf-8")
    wrong = run_limited([sys.executable, measure.ROOT / "bench" / "peers" / "nemo_transducer.py", WORK / "job.json"], arguments.limit, out)
    if wrong is not None:
        return wrong
    found = json.loads(out.read_text(encoding="utf-8"))
    return Run(found["tokens"], found["seconds"])


def word_error_rate(task, found, programs):
    if task.reference is None:
        return ""
    path = WORK / "hypotheses"
    texts = {key: "".join(task.names[number] for number in numbers).replace("\u2581", " ") for key, numbers in found.items()}
    path.write_text("".join(f"{key} {text.strip()}\n" for key, text in texts.items()), encoding="utf-8")
    return f"{json.loads(measure.run(programs / 'warpfst', 'score', task.reference, path, '--json'))['wer']:.2f}"


def measured(task, arguments, programs, wheel):
    """(row of the table, figure to record or None) of each system."""
    audio_s, setup = task.audio_s(), f"{arguments.device}, batches of {arguments.batch}"
    for way, beam in (("greedy", 1), ("beam 8", 8)):
        ours = None
        for name, run in systems(task, arguments, programs, wheel, beam):
            if run.tokens is None:
                yield [task.name, way, name, run.why, "", "", run.note], None
                continue
            rtfx = audio_s / statistics.median(run.seconds)
            same = "" if ours is None else f"{100 * sum(run.tokens[key] == tokens for key, tokens in ours.items()) / len(ours):.1f}"
            note = "" if len(run.seconds) == arguments.rounds else f"rounds: {len(run.seconds)}"
            yield [task.name, way, name, measure.figure(rtfx), word_error_rate(task, run.tokens, programs), same, note], (f"transducer {task.name}, {way}, {name}", setup, f"{rtfx:.0f}", "RTFx")
            ours = run.tokens if name == "warpfst" else ours


def systems(task, arguments, programs, wheel, beam):
    """(name, Run) of warpfst, and of NeMo in each mode of CUDA graphs until one works."""
    print(f"{task.name}, beam of {beam}, warpfst", file=sys.stderr, flush=True)
    yield "warpfst", with_warpfst(task, arguments, programs, beam)
    for mode in arguments.modes.split(",") if arguments.device != "cpu" else [None]:
        name = f"NeMo{'' if mode is None else ', ' + mode}"
        print(f"{task.name}, beam of {beam}, {name}", file=sys.stderr, flush=True)
        run = with_nemo(task, arguments, wheel, beam, mode)
        yield name, run
        if run.tokens is not None:
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", required=True)
    parser.add_argument("--shape", action="append", choices=list(transducer_task.SHAPES))
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--batches", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-symbols", type=int, default=1)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--modes", default="full_graph,no_while_loops,no_graphs")
    parser.add_argument("--beam", type=float, default=6, help="of warpfst, in nats")
    parser.add_argument("--dtype", default="float32", help="of NeMo's model: float32, bfloat16")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    programs, rows, figures = pathlib.Path(arguments.programs), [], []
    WORK.mkdir(parents=True, exist_ok=True)
    wheels = sorted(pathlib.Path(arguments.wheels).glob("nemo_toolkit-3*.whl"))
    if not wheels:
        parser.error(f"no wheel of nemo_toolkit in {arguments.wheels}")
    wheel = decode_tasks.unpack_wheel(wheels[-1])
    for task in tasks(arguments, programs):
        for row, figure in measured(task, arguments, programs, wheel):
            print("| " + " | ".join(row) + " |", file=sys.stderr, flush=True)
            rows.append(row)
            figures += [figure] if figure is not None else []
    print(f"{measure.machine() if arguments.device == 'cpu' else measure.machine_with_gpu()}; load {measure.load()}; batches of {arguments.batch}, {arguments.threads or 'all'} threads; NeMo in {arguments.dtype}")
    print(measure.table(["model", "decoding", "system", "RTFx", "WER %", "same %", "note"], rows))
    if arguments.record:
        measure.record(figures, "./run bench transducer_peers", machine=measure.machine_with_gpu() if arguments.device != "cpu" else measure.machine())


if __name__ == "__main__":
    main()
