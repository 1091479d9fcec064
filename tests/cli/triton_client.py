"""Tests the Triton backend in a real server: results of many concurrent streams against those of `warpfst decode`, with CTC scores and with a transducer, boosts, errors,
batching.

triton_client.py SERVER REPOSITORY BACKENDS SCORES EXPECTED

The folder EXPECTED has JSON lines of `warpfst decode` for each model: MODEL.json, and MODEL-boosted.json with the boost "IT 8". Uses only the standard library for HTTP.
"""
import concurrent.futures
import http.client
import json
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time


def read_npy(path):
    """Reads a float16 .npy file. Returns (frames, columns, bytes of little-endian float32)."""
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    header = data[10:10 + size].decode()
    shape = header[header.index("'shape'"):].split("(")[1].split(")")[0].split(",")
    assert "'<f2'" in header and "'fortran_order': False" in header, header
    values = struct.unpack(f"<{(len(data) - 10 - size) // 2}e", data[10 + size:])
    return int(shape[0]), int(shape[1]), struct.pack(f"<{len(values)}f", *values)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Refused(Exception):
    pass


class Server:
    """A server with free ports for HTTP, gRPC and metrics."""

    def __init__(self, binary, repository, backends, log, exit_timeout_s=10):
        self.port, self.grpc_port, self.metrics_port = free_port(), free_port(), free_port()
        command = [binary, f"--model-repository={repository}", f"--backend-directory={backends}", f"--http-port={self.port}", "--http-address=127.0.0.1",
                   f"--grpc-port={self.grpc_port}", "--grpc-address=127.0.0.1", f"--metrics-port={self.metrics_port}", "--metrics-address=127.0.0.1",
                   "--grpc-infer-allocation-pool-size=4096", "--allow-gpu-metrics=false", f"--exit-timeout-secs={exit_timeout_s}"]
        self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit("the server did not start")
            try:
                if self.ask("GET", "/v2/health/ready")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("the server is not ready")

    def metrics(self):
        """The page that Prometheus reads."""
        return self.ask("GET", "/metrics", port=self.metrics_port)[1].decode()

    def ask(self, method, path, body=None, headers=None, port=None):
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def infer(self, frames, columns, data, sequence=None, start=False, end=False, boosts=None, datatype="FP32", model="warpfst"):
        """Sends one inference request. The scores are sent in Triton's binary tensor format."""
        inputs = [{"name": "SCORES", "shape": [1, frames, columns], "datatype": datatype, "parameters": {"binary_data_size": len(data)}}]
        if boosts is not None:
            inputs.append({"name": "BOOSTS", "shape": [1, len(boosts)], "datatype": "BYTES", "data": boosts})
        request = {"inputs": inputs, "outputs": [{"name": name} for name in ("TEXT", "WORDS", "FRAMES", "STABLE", "ENDPOINT", "FLAGS", "COST")]}
        if sequence is not None:
            request["parameters"] = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
        header = json.dumps(request).encode()
        status, body = self.ask("POST", f"/v2/models/{model}/infer", header + data, {"Inference-Header-Content-Length": str(len(header))})
        output = json.loads(body)
        if status != 200:
            raise Refused(output["error"])
        return {"flags": output.get("parameters", {}).get("flags", ""), **{each["name"]: each["data"] for each in output["outputs"]}}

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)


def stream(server, scores, sequence, chunk, boosts=None, model="warpfst"):
    """Decodes an utterance chunk by chunk. Checks that stable words never change. Returns the last output."""
    frames, columns, data = scores
    row, stable = 4 * columns, []
    for first in range(0, frames, chunk):
        last = first + chunk >= frames
        part = min(chunk, frames - first), columns, data[row * first:row * (first + chunk)]
        output = server.infer(*part, sequence, first == 0, last, boosts if first == 0 else None, model=model)
        assert output["TEXT"] == [" ".join(output["WORDS"])] and len(output["FRAMES"]) == 2 * len(output["WORDS"]), output
        assert output["WORDS"][:len(stable)] == stable, (stable, output)
        stable = output["WORDS"][:output["STABLE"][0]]
    return output


def check(output, expected):
    assert output["TEXT"] == [expected["text"]], (output, expected)
    frames = [round(word[edge] / 0.04) for word in expected["words"] for edge in ("start", "end")]
    assert output["FRAMES"] == frames, (output, expected)
    bits = {"not_final": 1, "narrowed": 2, "died": 4, "overflow": 8}
    assert output["FLAGS"] == [sum(bits[flag] for flag in expected["flags"])], (output, expected)
    assert abs(output["COST"][0] - expected["cost"]) < 1e-3, (output, expected)


def metric(server, name, model="warpfst"):
    return float(re.search(rf'^{name}{{model="{model}",version="1"}} (\S+)$', server.metrics(), re.MULTILINE).group(1))


def check_metrics(server, matrices, stats):
    """The metrics page: audio, time and queue of all requests, utterances that died, and sequences that clients abandon, with the model whose sequences may idle for half a second."""
    assert metric(server, "warpfst_utterances_died_total") == 1
    audio = metric(server, "warpfst_audio_seconds_total")
    assert audio > 0.04 * sum(frames for frames, _, _ in matrices.values()), audio
    spent = sum(stats["inference_stats"][name]["ns"] for name in ("compute_input", "compute_infer", "compute_output")) / 1e9  # of each request: more than of each batch
    assert 0 < metric(server, "warpfst_busy_seconds_total") < spent, (spent, server.metrics())
    assert metric(server, "warpfst_batch_size") >= 1 and metric(server, "warpfst_rtfx") > 0
    assert metric(server, "nv_inference_queue_duration_us") > 0
    _, columns, data = next(iter(matrices.values()))
    frame = (1, columns, data[:4 * columns])
    for number in range(20, 25):
        server.infer(*frame, number, start=True, model="short")
    for _ in range(100):
        time.sleep(0.2)
        server.infer(*frame, 30, start=True, end=True, model="short")
        if metric(server, "warpfst_sequences", "short") == 0:
            break
    assert metric(server, "warpfst_sequences", "short") == 0 and metric(server, "warpfst_sequences_abandoned_total", "short") == 5
    assert metric(server, "warpfst_sequences_abandoned_total") == 0
    refuse(server, "START", *frame, 20, model="short")


def refuse(server, says, *args, **named):
    try:
        server.infer(*args, **named)
    except Refused as error:
        assert says in str(error), (says, error)
        return
    raise AssertionError(f"not refused: {says}")


def start_streams(pool, server, model, chunk, matrices, expected, boosted):
    """Streams of all utterances, in chunks of 1 to 9 times `chunk` frames, and once more with boosts if these change the text. Returns {future: expected result}."""
    jobs = {}
    for number, (key, matrix) in enumerate(matrices.items(), 1):
        sequence = number if number % 2 else f"conversation {number}"
        jobs[pool.submit(stream, server, matrix, sequence, (1 + number % 9) * chunk, model=model)] = expected[key]
        if boosted[key]["text"] != expected[key]["text"]:
            jobs[pool.submit(stream, server, matrix, 1000 + number, 8 * chunk, ["IT 8", "NEVERHEARD 3"], model)] = boosted[key]
    return jobs


def check_refused(server, model, matrix, expected):
    """Wrong requests fail alone, and end their sequences."""
    frames, columns, data = matrix
    frame, nan = data[:4 * columns], struct.pack("<f", float("nan")) * columns
    server.infer(1, columns, frame, 7, start=True, model=model)  # a new start in mid-utterance discards the words so far
    check(stream(server, matrix, 7, frames, model=model), expected)
    refuse(server, "columns", 1, 3, b"\0" * 12, 8, start=True, end=True, model=model)
    refuse(server, "NaN", 1, columns, nan, 9, start=True, end=True, model=model)
    refuse(server, "FP32", 1, columns, frame[:4] * (2 * columns), 10, start=True, end=True, datatype="FP64", model=model)
    refuse(server, "expected `word word", 1, columns, frame, 11, start=True, end=True, boosts=[" "], model=model)
    refuse(server, "", 1, columns, frame, 12, model=model)  # this sequence was never started
    server.infer(1, columns, frame, 15, start=True, model=model)
    refuse(server, "NaN", 1, columns, nan, 15, model=model)
    refuse(server, "not started", 1, columns, frame, 15, end=True, model=model)
    check(stream(server, matrix, 13, 5, model=model), expected)  # the server still works


def main():
    binary, repository, backends, scores, folder = sys.argv[1:]
    matrices = {path.stem: read_npy(path) for path in sorted(pathlib.Path(scores).glob("*.npy"))}
    expected, boosted = ({model: {row["key"]: row for row in map(json.loads, open(f"{folder}/{model}{suffix}.json"))} for model in ("warpfst", "transducer")}
                         for suffix in ("", "-boosted"))
    assert len(matrices) >= 40
    with open("server.log", "wb") as log:
        server = Server(binary, repository, backends, log)
        try:
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                jobs = {}
                for model, chunk in (("warpfst", 1), ("transducer", 10)):
                    jobs |= start_streams(pool, server, model, chunk, matrices, expected[model], boosted[model])
                assert len(jobs) >= 2 * len(matrices) + 6
                for job in concurrent.futures.as_completed(jobs):
                    check(job.result(), jobs[job])
            key = next(iter(matrices))
            columns = matrices[key][1]  # the metric of utterances that died is complete when the model's next request is
            nothing = server.infer(2, columns, struct.pack("<f", float("-inf")) * (2 * columns), 14, start=True, end=True)
            assert nothing["TEXT"] == [""] and nothing["FLAGS"][0] & 4 and "died" in nothing["flags"], nothing
            for model, rows in expected.items():
                check_refused(server, model, matrices[key], rows[key])
            stats = {model: json.loads(server.ask("GET", f"/v2/models/{model}/stats")[1])["model_stats"][0] for model in expected}
            sizes = {model: max(row["batch_size"] for row in rows["batch_stats"]) for model, rows in stats.items()}
            assert sizes["warpfst"] > 8 and sizes["transducer"] > 2, sizes  # chunks of all lengths, with and without boosts
            counts = stats["warpfst"]["inference_stats"]
            assert counts["compute_infer"]["count"] > 500 and counts["fail"]["count"] >= 3, counts  # the server refused the others before they reached the model
            check_metrics(server, matrices, stats["warpfst"])
            for model, rows in stats.items():
                print(f"{model}: {rows['inference_stats']['success']['count']} requests in {rows['execution_count']} executions, of up to {sizes[model]}")
        finally:
            code = server.stop()
        assert code == 0, f"the server ended with {code}"


if __name__ == "__main__":
    main()
