#!/usr/bin/env python3
"""serve.py [--streams=500] [--seconds=60] [--requests=2000] [--at-once=32] [--part=live|requests|both] [--model=MODEL] [--num-threads=2] [--device=cpu] [--cores=0,1] [--clients=1] [--faults] [--record]

Loads `warpfst serve` with live streams in real time, then with requests of mixed lengths, and compares every text with that of the same audio alone. --cores: processors of the server; the clients,
in this number of processes, have the others. Without --model the model costs nothing (recorded_model.py), so this is the time of the server and the search. --faults: meanwhile clients vanish, send halves
and nonsense, as many again as there are of the others. Prints latencies, what was lost or wrong, and the memory of the server over time.
"""
import argparse
import asyncio
import collections
import concurrent.futures
import io
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

import httpx2
import numpy as np
import soundfile
import websockets
from recorded_model import audio_of, utterances

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure

STEP_S, RATE = 0.32, 16000
STEP = round(STEP_S * RATE)
CONNECT_S = 60  # for a handshake: a machine may be busy with other work
LENGTHS = (1, 2, 4, 8, 15, 30, 60)  # utterances in a recording: 3 s to 4 minutes


class Server:
    """A server in a process of its own."""

    def __init__(self, arguments):
        model = arguments.model or f"m={pathlib.Path(__file__).with_name('recorded_model.py')}:Recorded"
        windows = [] if arguments.model else ["--left-seconds=0", "--right-seconds=0"]
        command = [sys.executable, "-m", "warpfst", "serve", "--port=0", f"--model={model}", *windows, f"--streams={2 * arguments.streams + 64}", f"--queue={4 * arguments.at_once}"]
        command += [f"--num-threads={arguments.num_threads}", f"--device={arguments.device}", "--log-level=warning"]
        if arguments.cores:
            command = ["taskset", "-c", arguments.cores, *command]
        self.log = open(measure.BUILD / "serve.log", "w+")
        self.process = subprocess.Popen(command, stderr=self.log, text=True)
        while not (found := re.search(r"ready at http://localhost:(\d+)", (measure.BUILD / "serve.log").read_text())):
            if self.process.poll() is not None:
                sys.exit((measure.BUILD / "serve.log").read_text())
            time.sleep(0.05)
        self.url = f"localhost:{found[1]}"

    def rss_mib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def cpu_s(self):
        times = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


class Tally:
    """What clients saw."""

    def __init__(self):
        self.latencies, self.wrong, self.lost, self.done = [], [], [], 0

    def check(self, found, expected):
        self.done += 1
        if found != expected:
            self.wrong.append((expected, found))

    def quantile(self, part):
        return sorted(self.latencies)[min(int(part * len(self.latencies)), len(self.latencies) - 1)]


async def live(url, samples, tally=None, paced=True, expected=None, stop_after=None):
    """Plays samples as a microphone does. The latency of a text is from when the last audio in it was sent. Returns the text."""
    sent, texts, complete = [], [], False
    try:
        async with websockets.connect(f"ws://{url}/v1/audio/stream", compression=None, open_timeout=CONNECT_S, ping_interval=None) as socket:
            async def read():
                async for data in socket:
                    message = json.loads(data)
                    if message["type"] == "final" and message["text"]:
                        texts.append(message["text"])
                    if tally is not None and "time" in message:
                        number = min(max(round(message["time"] / STEP_S + 0.49) - 1, 0), len(sent) - 1)
                        tally.latencies.append(time.monotonic() - sent[number])

            reading = asyncio.create_task(read())
            begin = time.monotonic()
            for i in range(0, len(samples), STEP):
                if stop_after is not None and i > stop_after:
                    reading.cancel()
                    socket.transport.abort()
                    return None
                if paced:
                    await asyncio.sleep(max(0, begin + i / RATE - time.monotonic()))
                sent.append(time.monotonic())
                await socket.send(samples[i : i + STEP].tobytes())
            await socket.send('{"end": true}')
            await reading
            complete = socket.close_code == 1000
    except (OSError, websockets.WebSocketException) as why:
        if tally is not None:
            tally.lost.append(repr(why))
        return None
    text = " ".join(texts)
    if tally is not None:
        if complete:
            tally.check(text, expected)
        else:
            tally.lost.append(f"closed with {socket.close_code} {socket.close_reason}")
    return text


async def speakers(url, arguments, numbers, played, expected):
    """Live streams, each playing one recording after the other until the time is over."""
    tally, end = Tally(), time.monotonic() + arguments.seconds

    async def speaker(number):
        rng = random.Random(number)
        await asyncio.sleep(rng.random() * STEP_S * 10)
        while time.monotonic() < end:
            which = rng.randrange(len(played))
            await live(url, played[which], tally, expected=expected[which])

    async def vandal(number):
        rng = random.Random(-number)
        while time.monotonic() < end:
            await asyncio.sleep(rng.random() * 2)
            samples = played[rng.randrange(len(played))]
            await live(url, samples, None, stop_after=rng.randrange(len(samples)))
            try:
                async with websockets.connect(f"ws://{url}/v1/audio/stream") as socket:
                    await socket.send(rng.choice([b"odd", "{", "[" * 10000, '{"vocabulary": 3}']))
            except (OSError, websockets.WebSocketException):
                pass

    await asyncio.gather(*map(speaker, numbers), *map(vandal, numbers if arguments.faults else []))
    return tally


def client(*arguments):
    """A process of clients."""
    return asyncio.run(speakers(*arguments))


async def streams(server, arguments, played, expected):
    """Live streams of some processes, and the memory of the server meanwhile."""
    memory = []

    async def watch():
        while True:
            memory.append((time.monotonic(), server.rss_mib(), server.cpu_s()))
            await asyncio.sleep(max(arguments.seconds / 30, 1))

    watching = asyncio.create_task(watch())
    tally, loop = Tally(), asyncio.get_running_loop()
    with concurrent.futures.ProcessPoolExecutor(arguments.clients) as processes:
        parts = [range(i, arguments.streams, arguments.clients) for i in range(arguments.clients)]
        for one in await asyncio.gather(*(loop.run_in_executor(processes, client, server.url, arguments, part, played, expected) for part in parts)):
            tally.latencies += one.latencies
            tally.wrong += one.wrong
            tally.lost += one.lost
            tally.done += one.done
    watching.cancel()
    return tally, memory


async def requests(server, arguments, files, expected):
    """Requests, some at a time, as fast as they are answered."""
    tally, memory, rng = Tally(), [], random.Random(1)
    queue = [rng.randrange(len(files)) for _ in range(arguments.requests)]
    async with httpx2.AsyncClient(base_url=f"http://{server.url}", timeout=600, limits=httpx2.Limits(max_connections=arguments.at_once)) as client:

        async def ask():
            while queue:
                which, begin = queue.pop(), time.monotonic()
                try:
                    answer = await client.post("/v1/audio/transcriptions", files={"file": ("a.wav", files[which])})
                except httpx2.HTTPError as why:
                    tally.lost.append(repr(why))
                    continue
                tally.latencies.append(time.monotonic() - begin)
                if answer.status_code != 200:
                    tally.lost.append(answer.text)
                    continue
                tally.check(answer.json()["text"], expected[which])
                if tally.done % max(arguments.requests // 20, 1) == 0:
                    memory.append((time.monotonic(), server.rss_mib(), server.cpu_s()))

        async def vandal(number):
            own = random.Random(-number)
            while queue:
                await asyncio.sleep(own.random())
                _, writer = await asyncio.open_connection(*server.url.split(":"))
                body = files[own.randrange(len(files))]
                head = f"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body)}\r\n\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
                writer.write(head.encode() + body[: own.randrange(len(body))])
                await asyncio.sleep(own.random() * 0.2)
                writer.transport.abort()

        await asyncio.gather(*(ask() for _ in range(arguments.at_once)), *(vandal(i) for i in range(8 if arguments.faults else 0)))
    return tally, memory


def wav(samples):
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="WAV", subtype="PCM_16")
    return file.getvalue()


def shown(arguments, name, tally, memory, what, setup):
    quarter, middle, last = memory[len(memory) // 4], memory[len(memory) // 2], memory[-1]
    wall = last[0] - memory[0][0]
    row = {
        "P50, ms": 1000 * statistics.median(tally.latencies),
        "P99, ms": 1000 * tally.quantile(0.99),
        "largest, ms": 1000 * max(tally.latencies),
        "server's processor, cores": (last[2] - memory[0][2]) / max(wall, 1e-9),
        "memory at the begin, MiB": memory[0][1],
        "memory after a quarter, MiB": quarter[1],
        "in the middle, MiB": middle[1],
        "at the end, MiB": last[1],
    }
    print(f"\n{name}: {what}; {tally.done} texts, {len(tally.wrong)} wrong, {len(tally.lost)} lost; {len(tally.latencies)} latencies")
    print(measure.table(list(row), [[measure.figure(value) for value in row.values()]]))
    for reason, count in collections.Counter(tally.lost).items():
        print(f"   {count} lost: {reason}")
    for one in tally.wrong[:3]:
        print("   wrong:", one)
    if arguments.record:
        measure.record([(f"serve {name}", f"{setup}, {column.rpartition(', ')[0]}", measure.figure(value), column.rpartition(", ")[2]) for column, value in row.items()], "./run bench serve " + " ".join(sys.argv[1:]))


async def measured(server, arguments):
    known = utterances()
    played = [audio_of(first, len(scores)) for first, scores in known]
    alone = [await live(server.url, samples, paced=False) for samples in played]
    print(f"{len(played)} recordings of {sum(map(len, played)) / RATE / len(played):.1f} s on average")
    if arguments.part in ("live", "both"):
        tally, memory = await streams(server, arguments, played, alone)
        setup = f"CTC phones, {arguments.streams} streams, steps of {STEP_S} s, {arguments.device}, server on cores {arguments.cores or 'of all'}"
        shown(arguments, "live", tally, memory, f"{arguments.streams} streams for {arguments.seconds} s", setup)
    if arguments.part in ("requests", "both"):
        rng = random.Random(3)
        chosen = [np.concatenate([played[rng.randrange(len(played))] for _ in range(count)]) for count in LENGTHS for _ in range(3)]
        files = [wav(samples) for samples in chosen]
        async with httpx2.AsyncClient(base_url=f"http://{server.url}", timeout=600) as client:
            expected = [(await client.post("/v1/audio/transcriptions", files={"file": ("a.wav", file)})).json()["text"] for file in files]
        begin = time.monotonic()
        tally, memory = await requests(server, arguments, files, expected)
        seconds = arguments.requests * statistics.mean(map(len, chosen)) / RATE
        setup = f"CTC phones, {arguments.requests} requests of 3 s to 4 min, {arguments.at_once} at a time, {arguments.device}, server on cores {arguments.cores or 'of all'}"
        shown(arguments, "requests", tally, memory, f"{arguments.requests} requests, {arguments.at_once} at a time, {seconds / 3600:.1f} h of audio at {seconds / (time.monotonic() - begin):.0f} x real time", setup)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--part", choices=("live", "requests", "both"), default="both")
    parser.add_argument("--model")
    parser.add_argument("--num-threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cores")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    measure.BUILD.mkdir(parents=True, exist_ok=True)
    server = Server(arguments)
    try:
        asyncio.run(measured(server, arguments))
    finally:
        print("stops with exit code", server.stop())


if __name__ == "__main__":
    main()
