#!/usr/bin/env python3
"""transducer_peers --wheels=FOLDER [--shape=NAME]... [--data=FOLDER] [--device=cuda] [--batch=400] [--batches=3] [--seconds=15] [--threads=0] [--rounds=3] [--dtype=float32] [--programs=FOLDER] [--record]

NeMo's batched transducer decoders beside warpfst, on the same models and encoder outputs: greedy (label looping) and beam search (modified ALSD, `malsd_batch`), both with CUDA graphs on a GPU.

  --shape   random models of real sizes (transducer_task.py), all by default; none with --data
  --data    real models and utterances, as for transducer.py: rnnt, lstm, tdt; also word error rates
  --wheels  has nemo_toolkit-3.0.0's wheel; torch is that of this Python. Download it with `python3 -m pip download --no-deps -d FOLDER nemo_toolkit==3.0.0`

RTFx is seconds of audio per second of decoding, the median of --rounds runs: predictor, joiner, search, and tokens of the best hypothesis on the host. warpfst reads encoder outputs from host
memory, NeMo's are in GPU memory before. Beam of 8; at most 10 symbols a frame, 3 with --data. "same" is the share of utterances with warpfst's tokens. Beams differ: NeMo sums hypotheses that are
equal, warpfst takes the better; NeMo's have no width in nats, warpfst's is --beam.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tarfile

import decode_tasks
import measure
import transducer_task

WORK = measure.BUILD / "transducer_peers"
REAL = ("rnnt", "lstm", "tdt")


class Task:
    """A model, a graph of its tokens, encoder outputs, and seconds of audio."""

    def __init__(self, name, model, tokens, scores, frame_s, max_symbols, reference=None):
        self.name, self.model, self.scores, self.frame_s, self.max_symbols, self.reference = name, model, scores, frame_s, max_symbols, reference
        self.number_of = {line.split()[0]: int(line.split()[1]) for line in open(tokens, encoding="utf-8")}
        self.names = {number: name for name, number in self.number_of.items()}


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
        folder = measure.BUILD / "transducer_task" / name
        transducer_task.make_task(folder, name, arguments.batch * arguments.batches, arguments.seconds, programs / "warpfst")
        yield Task(name, folder / "model.safetensors", folder / "tokens.txt", folder / "enc", transducer_task.SHAPES[name]["frame_s"], 10)


def with_warpfst(task, arguments, programs, beam):
    """{utterance: token numbers}, seconds of each round, seconds of audio."""
    graph, out, summary, seconds = WORK / "tokens.wfst", WORK / "out", WORK / "summary.json", []
    measure.run(programs / "warpfst", "mkgraph", "ctc", "--topology=transducer", f"--tokens={write_tokens(task)}", "--blank=<blk>", "-q", "-o", graph)
    flags = ["--greedy"] if beam == 1 else [f"--max-hypotheses={beam}", f"--beam={arguments.beam}"]
    for _ in range(arguments.rounds):
        measure.run(programs / "warpfst", "decode", graph, task.scores, f"--transducer={task.model}", f"--max-symbols={task.max_symbols}", f"--num-threads={arguments.threads}",
                    f"--batch={arguments.batch}", f"--device={arguments.device}", f"--frame-shift={task.frame_s}", f"--summary={summary}", *flags, "-o", out)
        found = json.loads(summary.read_text())
        seconds.append(found["decode_seconds"])
    lines = (line.split() for line in open(out, encoding="utf-8"))
    return {key: [task.number_of[token] for token in tokens] for key, *tokens in lines}, seconds, found["hours"] * 3600


def write_tokens(task):
    path = WORK / "tokens.txt"
    path.write_text("".join(f"{name} {number}\n" for number, name in sorted(task.names.items())), encoding="utf-8")
    return path


def with_nemo(task, arguments, wheel, beam):
    job = {"nemo": str(wheel), "model": str(task.model), "scores": str(task.scores), "beam": beam, "max_symbols": task.max_symbols, "batch": arguments.batch,
           "device": arguments.device, "rounds": arguments.rounds, "dtype": arguments.dtype}
    (WORK / "job.json").write_text(json.dumps(job), encoding="utf-8")
    done = subprocess.run([sys.executable, measure.ROOT / "bench" / "nemo_transducer.py", WORK / "job.json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"nemo_transducer.py failed on {task.name}")
    found = json.loads(done.stdout)
    return found["tokens"], [found["seconds"]], found["graphs"]


def word_error_rate(task, found, programs):
    if task.reference is None:
        return ""
    path = WORK / "hypotheses"
    texts = {key: "".join(task.names[number] for number in numbers).replace("\u2581", " ") for key, numbers in found.items()}
    path.write_text("".join(f"{key} {text.strip()}\n" for key, text in texts.items()), encoding="utf-8")
    return f"{json.loads(measure.run(programs / 'warpfst', 'score', task.reference, path, '--json'))['wer']:.2f}"


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
    parser.add_argument("--beam", type=float, default=6, help="of warpfst, in nats")
    parser.add_argument("--dtype", default="float32", help="of NeMo's model: float32, bfloat16")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/results.csv")
    arguments = parser.parse_args()
    programs, rows, figures = pathlib.Path(arguments.programs), [], []
    WORK.mkdir(parents=True, exist_ok=True)
    wheels = sorted(pathlib.Path(arguments.wheels).glob("nemo_toolkit-3*.whl"))
    if not wheels:
        parser.error(f"no wheel of nemo_toolkit in {arguments.wheels}")
    wheel = decode_tasks.unpack_wheel(wheels[-1])
    for task in tasks(arguments, programs):
        for way, beam in (("greedy", 1), ("beam 8", 8)):
            ours, seconds, audio_s = with_warpfst(task, arguments, programs, beam)
            theirs, their_seconds, graphs = with_nemo(task, arguments, wheel, beam)
            same = sum(theirs[key] == tokens for key, tokens in ours.items()) / len(ours)
            for system, found, times, share in (("warpfst", ours, seconds, ""), (f"NeMo{'' if graphs is None else ', ' + graphs}", theirs, their_seconds, f"{100 * same:.1f}")):
                rtfx = audio_s / statistics.median(times)
                rows.append([task.name, way, system, measure.figure(rtfx), word_error_rate(task, found, programs), share])
                figures.append((f"transducer {task.name}, {way}, {system}", f"{arguments.device}, batches of {arguments.batch}", f"{rtfx:.0f}", "RTFx"))
    print(f"{measure.machine() if arguments.device == 'cpu' else measure.machine_with_gpu()}; load {measure.load()}; batches of {arguments.batch}, {arguments.threads or 'all'} threads; NeMo in {arguments.dtype}")
    print(measure.table(["model", "decoding", "system", "RTFx", "WER %", "same %"], rows))
    if arguments.record:
        measure.record(figures, "./run bench transducer_peers", machine=measure.machine_with_gpu() if arguments.device != "cpu" else measure.machine())


if __name__ == "__main__":
    main()
