#!/usr/bin/env python3
"""triton [--streams=8,16,32] [--seconds=20] [--device=cpu] [--boosted=0.25] [--phrases=100] [--poisson] [--clients=N] [--save=FILE | --load=FILE] [--record]
triton --pack=FOLDER

Measures a real Triton Inference Server with the backend of triton/: streams of real speech (CTC phone scores of examples/ctc) in real time, a chunk of 0.4 s per request, sent over gRPC by
NVIDIA's tritonclient on the same machine. A share of the streams (--boosted) sends a list of boosted phrases of its own with the first chunk of each utterance.

  queue, compute  the server's own figures, mean over requests
  latency         from the moment when a chunk was spoken until its answer is there; a chunk that the client sends late counts from when it was due
  late            the 99th percentile of how late the client sent: if it is high, there are too few client processes or cores
  busy, RTFx      the share of time in which the backend was at work, and seconds of audio per second of that time, from the metrics page
  without server  the same load (without boosts) given directly to the library, in one process: bench_stream

Results without boosts must equal those of `warpfst decode`. Needs the server that ./run test installs in build/triton, or the one that WARPFST_TRITON_SERVER names.

--pack makes a folder, and FOLDER.tar.xz, to measure on a machine where nothing can be installed: the server without what it does not need, the client for Python 3.12, scores, expected results.
There, after building triton_warpfst and bench_stream: python3 FOLDER/triton.py --build=build/release --device=cuda --streams=256,1024
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKED = (HERE / "expected.json").exists()
sys.path[:0] = [str(HERE / "site")] if PACKED else [str(HERE.parent / "common"), str(HERE.parents[1] / "tests" / "cli")]
import measure
import triton_client

CHUNK_S, CHUNK_FRAMES, FRAME_S = 0.4, 10, 0.04
SETTINGS = ("--acoustic-scale=0.7", "--beam=15", "--max-active=7000", "--blank=0")  # as in triton/models/warpfst/config.pbtxt
WARM_S = 3
CTC = measure.ROOT / "examples" / "ctc"
PUBLISHED = "Published (Galvez & Kaldewey 2023, Table 4; A100, 256 streams, chunks of 0.4 s): compute 30.1, latency mean 54.5, p99 78"


def find_server():
    server = HERE / "server/bin/tritonserver" if PACKED else pathlib.Path(os.environ.get("WARPFST_TRITON_SERVER", measure.ROOT / "build/triton/pytriton/tritonserver/bin/tritonserver"))
    if not server.exists():
        sys.exit(f"{server} not found; ./run test installs it")
    return server


class Task:
    """The graph, scores, and the text of each utterance as `warpfst decode` finds it."""

    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.data = HERE if PACKED else folder
        self.graph, self.scores, self.words = self.data / "TLG.wfst", HERE / "logp_phone" if PACKED else CTC / "logp_phone", HERE / "words.txt" if PACKED else folder / "words.txt"
        if not PACKED:
            self.make()
        self.expected = json.loads((self.data / "expected.json").read_text(encoding="utf-8"))

    def make(self):
        program = self.build / "warpfst"
        measure.run(program, "mkgraph", "ctc", f"--tokens={CTC / 'tokens_phone.txt'}", f"--lexicon={CTC / 'lexicon_phone.txt'}", f"--lm={CTC / 'lm3.arpa.gz'}", "--topology=compact", "-q",
                    "-o", self.graph)
        measure.run(program, "decode", self.graph, self.scores, *SETTINGS, "--format=json", "-o", self.folder / "decoded.json")
        rows = map(json.loads, (self.folder / "decoded.json").read_text(encoding="utf-8").splitlines())
        (self.folder / "expected.json").write_text(json.dumps({row["key"]: row["text"] for row in rows}), encoding="utf-8")
        lines = (CTC / "lexicon_phone.txt").read_text(encoding="utf-8").splitlines()
        self.words.write_text("".join(f"{word}\n" for word in sorted({line.split()[0] for line in lines if line[0].isalpha()})), encoding="utf-8")


def make_repository(task, device):
    models, backend = task.folder / "models/warpfst", task.folder / "backends/warpfst"
    shutil.rmtree(task.folder / "models", ignore_errors=True)
    (models / "1").mkdir(parents=True)
    backend.mkdir(parents=True, exist_ok=True)
    shutil.copy(task.build / "triton/libtriton_warpfst.so", backend)
    shutil.copy(task.graph, models / "1/graph.wfst")
    config = (HERE / "config.pbtxt" if PACKED else measure.ROOT / "triton/models/warpfst/config.pbtxt").read_text(encoding="utf-8")
    (models / "config.pbtxt").write_text(f'{config}\nparameters [ {{ key: "device" value: {{ string_value: "{device}" }} }} ]\n', encoding="utf-8")


def counters(server):
    """The server's statistics and this backend's metrics, in seconds."""
    found = json.loads(server.ask("GET", "/v2/models/warpfst/stats")[1])["model_stats"][0]
    stats = found["inference_stats"]
    out = {name: float(re.search(rf"^warpfst_{name}_seconds_total.* (\S+)$", server.metrics(), re.MULTILINE).group(1)) for name in ("audio", "busy")}
    compute = sum(stats[name]["ns"] for name in ("compute_input", "compute_infer", "compute_output"))
    return {**out, "count": stats["success"]["count"], "fail": stats["fail"]["count"], "queue": stats["queue"]["ns"] / 1e9, "compute": compute / 1e9, "executions": found["execution_count"]}


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def start_clients(task, server, streams, arguments):
    clients = arguments.clients or max(1, min(-(-streams // 128), len(os.sched_getaffinity(0)) // 2))
    start = time.monotonic() + 3 + clients / 4
    plan = {"port": server.grpc_port, "start": start, "until": start + WARM_S + arguments.seconds, "poisson": arguments.poisson, "boosted": arguments.boosted, "phrases": arguments.phrases,
            "chunk_s": CHUNK_S, "chunk_frames": CHUNK_FRAMES, "frame_s": FRAME_S, "scores": str(task.scores), "words": task.words.read_text(encoding="utf-8").split()}
    running = []
    for i in range(clients):
        paths = task.folder / f"plan{i}.json", task.folder / f"results{i}.json"
        paths[0].write_text(json.dumps({**plan, "streams": list(range(i, streams, clients))}), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(HERE / "site")} if PACKED else None
        running.append((subprocess.Popen([sys.executable, HERE / "triton_load.py", *paths], env=environment), paths[1]))
    return plan, running


def check(task, results):
    """Exits unless the results without boosts are those of `warpfst decode`. Returns their number."""
    plain = [(key, text) for key, text, _, boosted in results if not boosted]
    wrong = [(key, text, task.expected[key]) for key, text in plain if text != task.expected[key]]
    if wrong:
        sys.exit(f"{len(wrong)} of {len(plain)} results differ from those of warpfst decode, such as {wrong[0]}")
    return len(plain)


class Crashed(Exception):
    pass


def through_server(task, streams, arguments):
    """Measures again if the server crashes. Version 2.51 did, in its gRPC code, in some of the runs with 500 and more streams and its default of 8 kept states; in none with 4,096."""
    make_repository(task, arguments.device)
    for _ in range(3):
        try:
            return measure_server(task, streams, arguments)
        except Crashed:
            (task.folder / "server.log").replace(task.folder / "crashed.log")
            print(f"the server crashed ({task.folder / 'crashed.log'}); once more", file=sys.stderr)
    sys.exit("the server crashed three times")


def measure_server(task, streams, arguments):
    with open(task.folder / "server.log", "wb") as log:
        server = triton_client.Server(find_server(), task.folder / "models", task.folder / "backends", log, exit_timeout_s=1)
        try:
            plan, running = start_clients(task, server, streams, arguments)
            time.sleep(max(0, plan["start"] + WARM_S - time.monotonic()))
            before = counters(server)
            time.sleep(max(0, plan["until"] - time.monotonic()))
            after = counters(server)
            codes = [process.wait(timeout=60) for process, _ in running]
        except OSError as error:
            for process, _ in running:
                process.wait(timeout=60)
            raise Crashed from error
        finally:
            crashed = server.process.poll() is not None
            server.stop()
    if crashed:
        raise Crashed
    if any(codes):
        sys.exit("a client failed")
    found = [json.loads(path.read_text(encoding="utf-8")) for _, path in running]
    errors = [error for each in found for error in each["errors"]]
    if errors:
        sys.exit(f"a request failed: {errors[0]}")
    done = {name: after[name] - before[name] for name in after}
    rows = [row for each in found for row in each["latencies"] if plan["start"] + WARM_S <= row[0] < plan["until"]]
    latencies, checked = [row[1] for row in rows], check(task, [row for each in found for row in each["results"]])
    return {"streams": streams, "realtime": sum(row[3] for row in rows) * FRAME_S / arguments.seconds, "unanswered": sum(each["unanswered"] for each in found), "checked": checked,
            "busy": done["busy"] / arguments.seconds, "rtfx": done["audio"] / done["busy"], "batch": done["count"] / max(1, done["executions"]),
            "queue_ms": done["queue"] / done["count"] * 1e3, "compute_ms": done["compute"] / done["count"] * 1e3, "late_ms": percentile([row[2] for row in rows], 99),
            "mean_ms": sum(latencies) / len(latencies), "p50_ms": percentile(latencies, 50), "p99_ms": percentile(latencies, 99)}


def without_server(task, streams, arguments):
    lines = measure.run(task.build / "bench/bench_stream", task.graph, task.scores, *SETTINGS, f"--device={arguments.device}", f"--streams={streams}", f"--seconds={arguments.seconds}",
                        f"--warm={WARM_S}", f"--chunk={CHUNK_S}", f"--poisson={int(arguments.poisson)}").splitlines()
    done = json.loads(next(line for line in lines if line.startswith("{")))  # there may be messages, too
    return {"streams": streams, "realtime": done["heard_s"] / done["seconds"], "busy": done["busy"], "rtfx": done["heard_s"] / done["seconds"] / done["busy"], "batch": done["batch"],
            "queue_ms": done["queue_mean_ms"], "compute_ms": done["compute_mean_ms"], "mean_ms": done["chunk_mean_ms"], "p50_ms": done["chunk_p50_ms"], "p99_ms": done["chunk_p99_ms"]}


FIGURES = ("queue_ms", "compute_ms", "mean_ms", "p50_ms", "p99_ms")


def report(rows, arguments):
    cells, figures = [], []
    for how, row in rows:
        cells.append([how, row["streams"], f"{row['realtime']:.0f}", f"{100 * row['busy']:.0f}%", f"{row['rtfx']:.0f}", f"{row['batch']:.1f}", *(f"{row[name]:.2f}" for name in FIGURES),
                      f"{row['late_ms']:.1f}" if "late_ms" in row else "", row.get("checked", "")])
        boosts = f", {100 * arguments.boosted:.0f}% with {arguments.phrases} boosted phrases" if how == "gRPC" and arguments.boosted > 0 else ""
        setup = f"CTC phones, chunks of 0.4 s with partials, {'Poisson' if arguments.poisson else 'even'} arrivals{boosts}, {arguments.device}, {how}, {row['streams']} streams"
        names = {"queue_ms": "queue mean", "compute_ms": "compute mean", "mean_ms": "total mean", "p50_ms": "total p50", "p99_ms": "total p99"}
        figures += [("triton requests", f"{setup}, {text}", f"{row[name]:.2f}", "ms") for name, text in names.items()] + [("triton requests", f"{setup}, busy", f"{100 * row['busy']:.1f}", "%")]
    print(f"\nStreams in real time, {'Poisson' if arguments.poisson else 'even'} arrivals, {arguments.device}, load {measure.load()}; milliseconds\n")
    print(measure.table(["", "streams", "audio s per s", "busy", "RTFx", "batch", "queue", "compute", "latency mean", "p50", "p99", "late p99", "results checked"], cells))
    print(f"\n{PUBLISHED}")
    return figures


# --- a folder for a machine where nothing can be installed --------------------------------------------------------------------------------------------


def pack_server(folder):
    """The program and the libraries it is linked with. The rest of the package is for backends in Python."""
    server = find_server()
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    shutil.copy(server, folder / "bin")
    package = str(server.resolve().parents[3] / "nvidia_pytriton.libs")
    for line in measure.run("ldd", server).splitlines():
        path = line.split(" => ")[-1].split(" (")[0]
        if os.path.realpath(path).startswith(package):
            shutil.copy(os.path.realpath(path), folder / "lib" / os.path.basename(path))
    (folder / "bin/tritonserver").chmod(0o755)
    measure.run("strip", "--strip-unneeded", folder / "bin/tritonserver", *(folder / "lib").iterdir())


def pack(task, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pack_server(folder / "server")
    platforms = [word for version in ("2_28", "2_27", "2_24", "2_17") for word in ("--platform", f"manylinux_{version}_x86_64")] + ["--platform", "manylinux2014_x86_64"]
    pinned = (measure.ROOT / "tests/python-requirements.txt").read_text(encoding="utf-8").split()
    wanted = [line.replace("[grpc]", "") for line in pinned if line.startswith(("grpcio", "protobuf", "tritonclient"))]
    measure.run(sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile", "--no-deps", "--only-binary=:all:", "--python-version=3.12", *platforms,
                "--target", folder / "site", *wanted, "python-rapidjson", "typing_extensions", "packaging", "ml_dtypes")
    for extension in (folder / "site").rglob("*.so"):
        measure.run("strip", "--strip-unneeded", extension)
    shutil.copytree(task.scores, folder / "logp_phone")
    for path in (task.graph, task.words, task.folder / "expected.json", measure.ROOT / "triton/models/warpfst/config.pbtxt", measure.ROOT / "tests/cli/triton_client.py", HERE / "triton.py",
                 HERE / "triton_load.py", measure.ROOT / "bench/common/measure.py"):
        shutil.copy(path, folder)
    measure.run("tar", "-C", folder.parent, "-cJf", f"{folder}.tar.xz", folder.name)
    print(measure.run("du", "-sh", folder, f"{folder}.tar.xz"), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="8,16,32")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--boosted", type=float, default=0.25, help="share of the streams with boosts")
    parser.add_argument("--phrases", type=int, default=100, help="boosted phrases of each of them")
    parser.add_argument("--poisson", action="store_true", help="exponentially distributed times between chunks")
    parser.add_argument("--clients", type=int, help="client processes (default: one for 128 streams, at most half of the cores)")
    parser.add_argument("--build", type=pathlib.Path, default=measure.ROOT / "build" / "release", help="folder with triton/libtriton_warpfst.so and bench/bench_stream")
    parser.add_argument("--work", type=pathlib.Path, default=HERE / "work" if PACKED else measure.BUILD / "triton", help="folder for the server's models and log")
    parser.add_argument("--pack", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--save", help="save the figures to this file")
    parser.add_argument("--load", help="do not measure; record a saved file")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    if arguments.load:
        saved = json.loads(pathlib.Path(arguments.load).read_text(encoding="utf-8"))
    else:
        task = Task(arguments.build.resolve(), arguments.work.resolve())
        if arguments.pack:
            pack(task, arguments.pack.resolve())
            return
        rows = []
        for streams in map(int, arguments.streams.split(",")):
            for how, run in (("gRPC", through_server), ("without server", without_server)):
                rows.append((how, run(task, streams, arguments)))
                print(f"  {rows[-1]}", file=sys.stderr)
        saved = {"machine": measure.machine() if arguments.device == "cpu" else measure.machine_with_gpu(), "figures": report(rows, arguments), "rows": rows}
    if arguments.save:
        pathlib.Path(arguments.save).write_text(json.dumps(saved), encoding="utf-8")
    if arguments.record:
        measure.record(saved["figures"], f"./run bench triton{'' if arguments.device == 'cpu' else f' --device={arguments.device}'}", machine=saved["machine"])


if __name__ == "__main__":
    main()
