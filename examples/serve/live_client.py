"""Sends a recording to `warpfst serve` as a microphone would, and prints its words while they are spoken.

    pip install websockets soundfile
    python examples/serve/live_client.py examples/cards/card3.wav ws://localhost:8000
"""

import asyncio
import json
import sys

import soundfile
import websockets


async def send(server, samples, rate):
    for begin in range(0, len(samples), rate // 10):
        await server.send(samples[begin : begin + rate // 10].tobytes())  # 16 bits, one channel
        await asyncio.sleep(0.1)
    await server.send(json.dumps({"end": True}))


async def main(path, url):
    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    async with websockets.connect(url + "/v1/audio/stream") as server:
        ready = json.loads(await server.recv())
        assert ready["sample_rate"] == rate, f"the model wants {ready['sample_rate']} Hz"
        sending = asyncio.create_task(send(server, samples[:, 0], rate))
        async for message in server:
            words = json.loads(message)
            if words["text"]:
                print(("... " if words["type"] == "partial" else "") + words["text"], flush=True)
        await sending


asyncio.run(main(*sys.argv[1:]))
