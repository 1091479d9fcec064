#!/usr/bin/env python3
"""stream [--part=live,server,hour,blank,boost,lists,words] [--ctc-data=PATH] [--seconds=20] [--record]
stream --device=cuda[:N] [--size=small|full|tiny] [--steps=boosts,streams] [--warm=2] [--programs=FOLDER] [--seconds=4] [--save=FILE | --load=FILE] [--record]

Measures streams, blank options, boosts and added words, on CTC phone scores of real speech (examples/ctc, or the .npy files of --ctc-data: a folder, or a tar archive of one).

  live    many streams in real time, chunks of 0.32 s, a partial after each: latency of chunks and of the last word by number of streams, on all processors
  server  256 streams, chunks of 0.4 s in a Poisson process, 2.5 requests per second each: queue, compute, and total latency; then by number of streams
  hour    memory of one stream during an hour without a reset
  blank   blank_penalty and blank_skip_threshold: word error rate and processor time
  boost   time with 0 to 10,000 boosted phrases (what boosts find and break: bench boost)
  lists   processor time to make lists of 20,000 phrases and of 125,000 words, and to change the list of a stream between chunks, during an hour without a reset
  words   words that the graph lacks, added at run time: time to add 0 to 10,000 phrases, and to decode with them

With --device: measures `server` on a GPU, with the generated CTC task of bench decode (peaky scores), which needs no real speech. --programs: a folder made by ./run pack-gpu. Takes about two minutes.

  boosts   256 streams without boosts, with 100 and 10,000 boosted phrases, and with 100 and 5,000 boosted words
  streams  multiplies the number of streams by four until the 99th percentile of the latency exceeds 78 ms, then measures three steps in between
"""
import argparse
import dataclasses
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

PARTS = ("live", "server", "hour", "blank", "boost", "lists", "words")
BENCH = measure.ROOT / "build" / "release" / "bench" / "bench_stream"


class Programs:
    warpfst = measure.WARPFST

    def run(self, *command):
        return measure.run(*command)


def bench(task, *settings):
    command = [BENCH, task.graph, task.scores, f"--acoustic-scale={task.acoustic_scale}", "--max-active=7000", "--blank=0", *settings]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def live(task, seconds):
    """Doubles the streams until they no longer keep up."""
    rows, cores = [], len(os.sched_getaffinity(0))
    for streams in (1, 25, 50, 100, 200, 300, 400, 600, 800, 1200, 1600):
        row = bench(task, f"--streams={streams}", f"--seconds={seconds}")[0]
        rows.append(row)
        print(f"  {streams} streams: {row}", file=sys.stderr)
        if row["chunk_p99_ms"] > 1000:
            break
    header = ["streams", "busy", "batch", "chunk p50", "p95", "p99", "queue p99", "last word p50", "p95", "p99", "KB per stream"]
    print(f"\nReal time, {cores} processors, load {measure.load()}; milliseconds\n")
    print(measure.table(header, [[r["streams"], f"{100 * r['busy']:.0f}%", f"{r['batch']:.1f}", *(f"{r[k]:.1f}" for k in (
        "chunk_p50_ms", "chunk_p95_ms", "chunk_p99_ms", "queue_p99_ms", "word_p50_ms", "word_p95_ms", "word_p99_ms")), f"{r['bytes_a_stream'] / 1000:.0f}"] for r in rows]))
    kept = [r["streams"] for r in rows if r["chunk_p99_ms"] <= 320]
    setup = f"CTC phones, chunks of 0.32 s with partials, {cores} threads"
    out = [("stream latency", f"{setup}, {r['streams']} streams, chunk p99", f"{r['chunk_p99_ms']:.1f}", "ms") for r in rows]
    return out + [("stream capacity", f"{setup}, chunk p99 within a chunk", str(max(kept, default=0)), "streams")]


LATENCIES = ("compute", "queue", "chunk")


def latency_row(row):
    return [f"{row[f'{name}_{figure}_ms']:.1f}" for name in LATENCIES for figure in ("mean", "p50", "p99")]


LATENCY_HEADER = [f"{name} {figure}" for name in ("compute", "queue", "total") for figure in ("mean", "p50", "p99")]


def server(task, seconds):
    """Queue and compute time of requests, as in Table 4 of Galvez & Kaldewey 2023."""
    rows, cores, out = [], len(os.sched_getaffinity(0)), []
    for streams in (64, 128, 256, 512, 1024):
        row = bench(task, f"--streams={streams}", f"--seconds={seconds}", "--chunk=0.4", "--poisson=1")[0]
        rows.append([streams, f"{row['heard_s'] / row['seconds']:.0f}", f"{row['batch']:.1f}", *latency_row(row)])
        setup = f"CTC phones, chunks of 0.4 s, Poisson arrivals, {cores} threads, {streams} streams"
        out += [("stream requests", f"{setup}, {name} {figure}", f"{row[f'{name}_{figure}_ms']:.1f}", "ms") for name in LATENCIES for figure in ("mean", "p50", "p99")]
        if row["chunk_p99_ms"] > 2000:
            break
    print(f"\nPoisson arrivals, 2.5 requests per second and stream, {cores} processors, load {measure.load()}; milliseconds\n")
    print(measure.table(["streams", "RTFx", "batch", *LATENCY_HEADER], rows))
    return out


GOAL_MS, MOST_STREAMS = 78, 65536  # the paper's latency; with twice as many streams the audio would arrive at 130,000 times real time


def on_gpu(arguments):
    programs = decode_tasks.Programs(arguments.programs)
    task = decode_tasks.generated(programs, arguments.size, None)["peaky"]
    program, rows, out, start = programs.find("bench_stream"), [], [], time.monotonic()

    def run(streams, what=None, count=0):
        boosts = [f"--{what}={count}"] if what else []
        command = [program, task.graph, task.scores, f"--device={arguments.device}", f"--streams={streams}", f"--seconds={arguments.seconds}", f"--warm={arguments.warm}", "--chunk=0.4", "--poisson=1",
                   "--beam=15", "--max-active=7000", f"--acoustic-scale={task.acoustic_scale}", *boosts]
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True, env=programs.environment)
        row = json.loads(done.stdout)
        name = f"{count} boosted {'words' if what == 'boost-words' else 'phrases'}"
        rows.append([streams, name, f"{row['heard_s'] / row['seconds']:.0f}", f"{row['batch']:.1f}", *(f"{row[f'{name}_{figure}_ms']:.2f}" for name in LATENCIES for figure in ("mean", "p50", "p99"))])
        setup = f"{task.name}, chunks of 0.4 s with partials, Poisson arrivals, {arguments.device}, {streams} streams, {name}"
        out.extend(("stream requests", f"{setup}, {part} {figure}", f"{row[f'{part}_{figure}_ms']:.2f}", "ms") for part in LATENCIES for figure in ("mean", "p50", "p99"))
        out.append(("stream requests", f"{setup}, RTFx", f"{row['heard_s'] / row['seconds']:.0f}", ""))
        print(f"  {time.monotonic() - start:.0f} s: {rows[-1]}", file=sys.stderr)
        return row["chunk_p99_ms"]

    steps = arguments.steps.split(",")
    for what, count in (("boost", 0), ("boost", 100), ("boost", 10000), ("boost-words", 100), ("boost-words", 5000)):
        if "boosts" in steps:
            run(256, what, count)
    if "streams" in steps:
        most, next_step = 0, 1024
        while next_step <= MOST_STREAMS and run(next_step) <= GOAL_MS:
            most, next_step = next_step, 4 * next_step
        for _ in range(3 if 0 < most and next_step <= MOST_STREAMS else 0):
            between = (most + next_step) // 2 if next_step < 4 * most else next_step // 2
            if run(between) <= GOAL_MS:
                most = between
            else:
                next_step = between
        out.append(("stream capacity", f"{task.name}, chunks of 0.4 s with partials, Poisson arrivals, {arguments.device}, p99 within {GOAL_MS} ms", str(most), "streams"))
        print(f"\nStreams within {GOAL_MS} ms (99 of 100 requests): {most}")
    print(f"\nPoisson arrivals, 2.5 requests per second and stream, {task.name}, {arguments.device}; milliseconds\n")
    print(measure.table(["streams", "boosts", "RTFx", "batch", *LATENCY_HEADER], rows))
    return out


def hour(task):
    rows, out = [], []
    for name, settings in (("all kept", []), ("forget", ["--forget=1"]), ("lattice_beam 4", ["--lattice-beam=4"]),
                           ("lattice_beam 4, committed every 10 s", ["--lattice-beam=4", "--commit=10"]),
                           ("lattice_beam 8, committed every 10 s", ["--lattice-beam=8", "--commit=10"])):
        found = bench(task, "--hours=1", *settings)
        marks = {round(r["heard_s"] / 360): r for r in found}
        rows.append([name, *(f"{marks[k]['bytes'] / 1000:.0f}" for k in (1, 2, 4, 6, 8, 10)), f"{max(r['most_bytes'] for r in found) / 1000:.0f}",
                     max(r["open_frames"] for r in found), f"{found[-1]['rtfx']:.0f}"])
        out.append(("stream memory", f"CTC phones, an hour without a reset, {name}, at the end", f"{found[-1]['bytes'] / 1000:.0f}", "KB"))
    print("\nOne stream for an hour; KB\n")
    print(measure.table(["", "6 min", "12 min", "24 min", "36 min", "48 min", "60 min", "most", "open frames", "RTFx"], rows))
    return out


def decode(task, *flags):
    """(WER, processor seconds on one thread, tokens per frame)."""
    summary = measure.BUILD / "stream_summary.json"
    cost = measure.timed([measure.WARPFST, "decode", task.graph, task.scores, "--ref", task.ref, f"--acoustic-scale={task.acoustic_scale}", "--max-active=7000", "--num-threads=1",
                          "--frame-shift=0.04", "--blank=0", "-o", measure.BUILD / "stream_out.txt", "--summary", summary, *flags], measure.last_core())
    found = json.loads(summary.read_text())
    return found["wer"], cost.cpu_s, found["tokens_per_frame"]


def blank(task):
    rows, out = [], []
    plain = decode(task)
    settings = [[], *([f"--blank-penalty={p}"] for p in (-1, -0.5, 0.5, 1, 1.5, 2, 3)), *([f"--blank-skip-threshold={t}"] for t in (0.999, 0.99, 0.98, 0.95, 0.9, 0.7))]
    for flags in settings:
        wer, cpu_s, tokens = decode(task, *flags)
        name = " ".join(flags) or "neither"
        rows.append([name, f"{wer:.2f}", f"{cpu_s:.2f}", f"{plain[1] / cpu_s:.2f}", f"{tokens:.0f}"])
        out += [("blank", f"CTC phones, {name}, WER", f"{wer:.2f}", "%"), ("blank", f"CTC phones, {name}, processor time, 1 thread", f"{cpu_s:.2f}", "s")]
    print("\nBlank\n")
    print(measure.table(["", "WER", "processor s", "faster by", "tokens per frame"], rows))
    return out


def boost(task):
    folder = decode_tasks.work_folder("boost")
    words, out = sorted(set(pathlib.Path(task.words_file).read_text(encoding="utf-8").split())), []
    rng, rows, plain = random.Random(2), [], decode(task)
    for size in (0, 100, 1000, 10000):
        path = folder / f"phrases_{size}"
        path.write_text("".join(f"{' '.join(rng.choices(words, k=rng.choice((2, 3))))} 3\n" for _ in range(size)), encoding="utf-8")
        wer, cpu_s, tokens = decode(task, *(["--boost", path] if size else []))
        rows.append([size, f"{wer:.2f}", f"{cpu_s:.2f}", f"{cpu_s / plain[1]:.2f}", f"{tokens:.0f}"])
        out.append(("boost", f"CTC phones, {size} random phrases of 2 or 3 words, boost 3, processor time, 1 thread", f"{cpu_s:.2f}", "s"))
    print("\nTime by number of boosted phrases\n")
    print(measure.table(["phrases", "WER", "processor s", "of plain", "tokens per frame"], rows))
    return out


def lists(task):
    done = subprocess.run([str(BENCH.with_name("bench_lists")), task.graph, task.scores, f"--acoustic-scale={task.acoustic_scale}", "--minutes=60"], stdout=subprocess.PIPE, text=True, check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    made, changes = [row for row in found if "make_ms" in row], [row for row in found if "heard_s" in row]
    print("\nMaking a list\n")
    print(measure.table(["list", "ms", "MiB"], [[f"{row['count']} {row['list']}", f"{row['make_ms']:.1f}", f"{row['mib']:.1f}"] for row in made]))
    out = [("boost", f"list of {row['count']} {row['list']}, making it", f"{row['make_ms']:.1f}", "ms") for row in made]
    names = {"same": "the same list", "few": "100 phrases", "many": "20,000 phrases", "none": "no list"}
    print("\nChanging the list of a stream, last quarter of the hour, ms\n")
    print(measure.table(["to", "mean", "p99", "maximum"], [[text, *(f"{changes[-1][name][f'{figure}_ms']:.3f}" for figure in ("mean", "p99", "max"))] for name, text in names.items()]))
    out += [("boost", f"CTC phones, a stream of an hour, changing its list to {text}, {figure}", f"{changes[-1][name][f'{figure}_ms']:.3f}", "ms")
            for name, text in names.items() for figure in ("mean", "p99")]
    return out


def added_words(task):
    """Uses the LM's unknown word as the class. Phrases are random words of the lexicon, so that none of them is said."""
    folder, rng, rows, out = decode_tasks.work_folder("words"), random.Random(3), [], []
    graph = folder / "unk.wfst"
    measure.run(measure.WARPFST, "mkgraph", "ctc", f"--tokens={decode_tasks.CTC / 'tokens_phone.txt'}", f"--lexicon={decode_tasks.CTC / 'lexicon_phone.txt'}",
                f"--lm={decode_tasks.CTC / 'lm3.arpa.gz'}", "--classes=<unk>", "--topology=compact", "-o", graph, "-q")
    spoken = [line.split(None, 1)[1].strip() for line in open(decode_tasks.CTC / "lexicon_phone.txt", encoding="utf-8")]
    with_graph = dataclasses.replace(task, graph=graph)
    for size in (0, 100, 1000, 10000):
        path = folder / f"words_{size}"
        path.write_text("".join(f"new{i}\t7\t{rng.choice(spoken)} {rng.choice(spoken)}\n" for i in range(size)), encoding="utf-8")
        wer, cpu_s, tokens = decode(with_graph, *(["--add-words", path] if size else []))
        add_ms = bench(with_graph, f"--add-words={size}")[0]["add_ms"] if size else 0
        rows.append([size, f"{add_ms:.2f}", f"{wer:.2f}", f"{cpu_s:.2f}", f"{tokens:.0f}"])
        out += [("added words", f"CTC phones, {size} words, adding them", f"{add_ms:.2f}", "ms"), ("added words", f"CTC phones, {size} words, processor time, 1 thread", f"{cpu_s:.2f}", "s")]
    print("\nWords added in place of <unk>, cost 7, by number\n")
    print(measure.table(["words", "ms to add", "WER", "processor s", "tokens per frame"], rows))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--ctc-data", default=decode_tasks.CTC / "logp_phone")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=decode_tasks.SIZES, default="small")
    parser.add_argument("--steps", default="boosts,streams", help="of --device")
    parser.add_argument("--warm", type=float, default=2, help="with --device: seconds of warm-up")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release")
    parser.add_argument("--save", help="with --device: save the figures to this file")
    parser.add_argument("--load", help="do not measure; record a saved file")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    if arguments.seconds is None:
        arguments.seconds = 20 if arguments.device == "cpu" else 4
    if arguments.device != "cpu":
        saved = json.load(open(arguments.load, encoding="utf-8")) if arguments.load else {"machine": measure.machine_with_gpu(), "figures": on_gpu(arguments)}
        if arguments.save:
            with open(arguments.save, "w", encoding="utf-8") as file:
                json.dump(saved, file)
        if arguments.record:
            measure.record(saved["figures"], f"./run bench stream --device={arguments.device}", machine=saved["machine"])
        return
    parts = arguments.part.split(",")
    if set(parts) - set(PARTS):
        parser.error(f"--part: expected one of {', '.join(PARTS)}")
    task = decode_tasks.real_ctc(Programs(), arguments.ctc_data, None)
    task.words_file = measure.BUILD / "stream_words.txt"
    with open(task.words_file, "w", encoding="utf-8") as file:  # words of the graph
        file.writelines(line.split()[0] + "\n" for line in open(decode_tasks.CTC / "lexicon_phone.txt", encoding="utf-8"))
    found = []
    for part in parts:
        found += {"live": lambda: live(task, arguments.seconds), "server": lambda: server(task, arguments.seconds),
                  "words": lambda: added_words(task), "hour": lambda: hour(task), "blank": lambda: blank(task), "boost": lambda: boost(task), "lists": lambda: lists(task)}[part]()
    if arguments.record:
        measure.record(found, "./run bench stream")


if __name__ == "__main__":
    main()
