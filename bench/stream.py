#!/usr/bin/env python3
"""stream [--part=live,hour,blank,boost] [--ctc-data=PATH] [--seconds=20] [--record]

Streams and what goes with them, on CTC phone scores of real speech (examples/ctc, or the .npy files of --ctc-data: a folder, or a tar archive of one).

  live    many streams in real time, chunks of 0.32 s, a partial after each: latency of chunks and of the last word by number of streams, on all processors
  hour    one stream that hears an hour without a reset: its memory
  blank   blank_penalty and blank_skip_threshold: word error rate and processor time
  boost   word error rate by size of boost, with lists of words that are said and of words that are not; time with 0 to 10,000 boosted phrases
"""
import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

import decode_tasks
import measure

PARTS = ("live", "hour", "blank", "boost")
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
    header = ["streams", "busy", "batch", "chunk p50", "p95", "p99", "queue p99", "last word p50", "p95", "p99", "KB a stream"]
    print(f"\nReal time, {cores} processors, load {measure.load()}; milliseconds\n")
    print(measure.table(header, [[r["streams"], f"{100 * r['busy']:.0f}%", f"{r['batch']:.1f}", *(f"{r[k]:.1f}" for k in (
        "chunk_p50_ms", "chunk_p95_ms", "chunk_p99_ms", "queue_p99_ms", "word_p50_ms", "word_p95_ms", "word_p99_ms")), f"{r['bytes_a_stream'] / 1000:.0f}"] for r in rows]))
    kept = [r["streams"] for r in rows if r["chunk_p99_ms"] <= 320]
    setup = f"CTC phones, chunks of 0.32 s with partials, {cores} threads"
    out = [("stream latency", f"{setup}, {r['streams']} streams, chunk p99", f"{r['chunk_p99_ms']:.1f}", "ms") for r in rows]
    return out + [("stream capacity", f"{setup}, chunk p99 within a chunk", str(max(kept, default=0)), "streams")]


def hour(task):
    rows, out = [], []
    for name, settings in (("all kept", []), ("forget", ["--forget=1"]), ("lattice_beam 4", ["--lattice-beam=4"])):
        found = bench(task, "--hours=1", *settings)
        marks = {round(r["heard_s"] / 360): r for r in found}
        rows.append([name, *(f"{marks[k]['bytes'] / 1000:.0f}" for k in (1, 2, 4, 6, 8, 10)), f"{max(r['most_bytes'] for r in found) / 1000:.0f}",
                     max(r["open_frames"] for r in found), f"{found[-1]['rtfx']:.0f}"])
        out.append(("stream memory", f"CTC phones, an hour without a reset, {name}, at the end", f"{found[-1]['bytes'] / 1000:.0f}", "KB"))
    print("\nOne stream for an hour; KB\n")
    print(measure.table(["", "6 min", "12 min", "24 min", "36 min", "48 min", "60 min", "most", "open frames", "RTFx"], rows))
    return out


def decode(task, *flags):
    """(WER, processor seconds on one thread, tokens a frame)."""
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
    print(measure.table(["", "WER", "processor s", "faster by", "tokens a frame"], rows))
    return out


def boost_lists(task, folder):
    """Tables of lists by utterance: the rare words of its reference; as many as 20 rare words that are not in it."""
    words = {line.split()[0] for line in pathlib.Path(task.words_file).read_text(encoding="utf-8").splitlines()}
    said = {fields[0]: fields[1:] for fields in map(str.split, pathlib.Path(task.ref).read_text(encoding="utf-8").splitlines())}
    count = collections.Counter(word for sentence in said.values() for word in set(sentence))
    rare = sorted(word for word, times in count.items() if times <= 5 and word in words)
    rng, kinds = random.Random(1), {}
    for kind in ("said", "not said"):
        lists = kinds[kind] = {}
        for key, sentence in said.items():
            chosen = [word for word in rare if word in sentence] if kind == "said" else [word for word in rng.sample(rare, min(20, len(rare))) if word not in sentence]
            if chosen:
                lists[key] = chosen
    return kinds, sorted(words - {"<eps>", "#0", "<s>", "</s>"}), sum(word in rare for sentence in said.values() for word in sentence)


def boost(task):
    folder = decode_tasks.work_folder("boost")
    kinds, words, num_rare = boost_lists(task, folder)
    rows, out = [], []
    for value in (0, 1, 2, 3, 5, 7.5, 10):
        row = [f"{value:g}"]
        for kind, lists in kinds.items():
            table = folder / "table"
            with open(table, "w", encoding="utf-8") as file:
                for key, chosen in lists.items():
                    path = folder / f"{key}.boost"
                    path.write_text("".join(f"{word} {value}\n" for word in chosen), encoding="utf-8")
                    file.write(f"{key} {path}\n")
            wer = decode(task, "--utterance-boosts", table)[0]
            row.append(f"{wer:.2f}")
            out.append(("boost", f"CTC phones, lists of words {kind}, boost {value:g}, WER", f"{wer:.2f}", "%"))
        rows.append(row)
    print(f"\nWER by boost, lists by utterance; {num_rare} of the words said are rare\n")
    print(measure.table(["boost", "words said", "words not said"], rows))
    rng, rows, plain = random.Random(2), [], decode(task)
    for size in (0, 100, 1000, 10000):
        path = folder / f"phrases_{size}"
        path.write_text("".join(f"{' '.join(rng.choices(words, k=rng.choice((2, 3))))} 3\n" for _ in range(size)), encoding="utf-8")
        wer, cpu_s, tokens = decode(task, *(["--boost", path] if size else []))
        rows.append([size, f"{wer:.2f}", f"{cpu_s:.2f}", f"{cpu_s / plain[1]:.2f}", f"{tokens:.0f}"])
        out.append(("boost", f"CTC phones, {size} random phrases of 2 or 3 words, boost 3, processor time, 1 thread", f"{cpu_s:.2f}", "s"))
    print("\nTime by number of boosted phrases\n")
    print(measure.table(["phrases", "WER", "processor s", "of plain", "tokens a frame"], rows))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default=",".join(PARTS))
    parser.add_argument("--ctc-data", default=decode_tasks.CTC / "logp_phone")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--record", action="store_true", help="into bench/results.csv")
    arguments = parser.parse_args()
    parts = arguments.part.split(",")
    if set(parts) - set(PARTS):
        parser.error(f"--part: choose of {', '.join(PARTS)}")
    task = decode_tasks.real_ctc(Programs(), arguments.ctc_data, None)
    task.words_file = measure.BUILD / "stream_words.txt"
    with open(task.words_file, "w", encoding="utf-8") as file:  # the words that the graph has
        for line in open(decode_tasks.CTC / "lexicon_phone.txt", encoding="utf-8"):
            file.write(line.split()[0] + "\n")
    found = []
    for part in parts:
        found += {"live": lambda: live(task, arguments.seconds), "hour": lambda: hour(task), "blank": lambda: blank(task), "boost": lambda: boost(task)}[part]()
    if arguments.record:
        measure.record(found, "./run bench stream")


if __name__ == "__main__":
    main()
