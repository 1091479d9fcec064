"""triton_load.py - sends requests as Poisson processes to a real Triton Inference Server with the backend of triton/. Used by stream.py.

Every stream plays utterances of the task one after the other, a chunk of 0.4 s per request, with exponentially distributed times between requests. The latency of a request that is
sent late, because the previous one had no answer yet, counts from the time when it was due. Queue and compute times come from the server's statistics.
"""
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time

import measure

CHUNK_FRAMES, FRAME_SECONDS = 10, 0.04
sys.path.insert(0, str(measure.ROOT / "tests" / "cli"))


def find_server():
    server = pathlib.Path(os.environ.get("WARPFST_TRITON_SERVER", measure.ROOT / "build/triton/pytriton/tritonserver/bin/tritonserver"))
    if not server.exists():
        sys.exit(f"{server} not found; ./run test installs it")
    return server


def make_repository(task, folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "backends/warpfst").mkdir(parents=True)
    shutil.copy(measure.ROOT / "build/release/triton/libtriton_warpfst.so", folder / "backends/warpfst")
    shutil.copytree(measure.ROOT / "triton/models", folder / "models")
    (folder / "models/warpfst/1").mkdir()
    shutil.copy(task.graph, folder / "models/warpfst/1/graph.wfst")


def speak(server, matrices, number, until, latencies):
    rng, due, utterance = random.Random(number), time.monotonic() + random.Random(-number).random() * CHUNK_FRAMES * FRAME_SECONDS, number * 7919
    while True:
        frames, columns, data = matrices[utterance % len(matrices)]
        for first in range(0, frames, CHUNK_FRAMES):
            size = min(CHUNK_FRAMES, frames - first)
            time.sleep(max(0, due - time.monotonic()))
            if time.monotonic() > until:
                return
            server.infer(size, columns, data[4 * columns * first:4 * columns * (first + size)], number, first == 0, first + size == frames)
            latencies.append((time.monotonic() - due) * 1e3)
            due += rng.expovariate(1 / (size * FRAME_SECONDS))
        utterance += 1


def statistics(server):
    found = json.loads(server.ask("GET", "/v2/models/warpfst/stats")[1])["model_stats"][0]
    stats = found["inference_stats"]
    compute = sum(stats[name]["ns"] for name in ("compute_input", "compute_infer", "compute_output"))
    return {"count": stats["success"]["count"], "queue": stats["queue"]["ns"], "compute": compute, "executions": found["execution_count"]}


def run(task, streams, seconds):
    import triton_client
    folder = measure.BUILD / "triton_load"
    make_repository(task, folder)
    matrices = [triton_client.read_npy(path) for path in sorted(pathlib.Path(task.scores).glob("*.npy"))]
    with open(folder / "server.log", "wb") as log:
        server = triton_client.Server(find_server(), folder / "models", folder / "backends", log)
        try:
            before, latencies, start = statistics(server), [], time.monotonic()
            threads = [threading.Thread(target=speak, args=(server, matrices, i + 1, start + seconds, latencies)) for i in range(streams)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            after = statistics(server)
        finally:
            server.stop()
    done = {name: after[name] - before[name] for name in after}
    latencies.sort()
    return {"rtfx": len(latencies) * CHUNK_FRAMES * FRAME_SECONDS / seconds, "batch": done["count"] / done["executions"],
            "queue_ms": done["queue"] / done["count"] / 1e6, "compute_ms": done["compute"] / done["count"] / 1e6, "total_mean_ms": sum(latencies) / len(latencies),
            "total_p50_ms": latencies[len(latencies) // 2], "total_p99_ms": latencies[len(latencies) * 99 // 100]}
