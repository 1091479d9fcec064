"""warpfst serve on a Ray cluster on this machine: two replicas, one of which is killed while requests and live audio run."""

import asyncio
import json
import re

import pytest
from conftest import ROOT
from serving import CARDS, httpx, recording, wav, websockets

ray = pytest.importorskip("ray")
serve = pytest.importorskip("ray.serve", reason="needs ray[serve]", exc_type=ImportError)
PORT = 18765


def pcm(samples):
    return (samples * 32767).astype("<i2").tobytes()


async def ask(client):
    """The text of a recording. A client tries again if its replica dies, as openai's does."""
    for _ in range(60):
        try:
            answer = await client.post("/v1/audio/transcriptions", files={"file": ("a.wav", wav(3))})
        except httpx.HTTPError:
            answer = None
        if answer is not None and answer.status_code == 200:
            return answer.json()["text"]
        await asyncio.sleep(0.25)
    return None


async def speak():
    async with websockets.connect(f"ws://127.0.0.1:{PORT}/v1/audio/stream") as ws:
        await ws.send(pcm(recording(3)))
        await ws.send('{"end": true}')
        return [json.loads(message) async for message in ws][-1]["text"]


def replicas():
    """The names of the replicas' actors."""
    return {one["name"] for one in ray.util.list_named_actors(all_namespaces=True) if "REPLICA" in one["name"] and "warpfst" in one["name"]}


@pytest.mark.more
def test_two_replicas_one_killed(tmp_path):
    text = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```py\n(from ray import serve\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        serve.start(http_options={"port": PORT, "host": "127.0.0.1"})
        exec(code.replace("examples/cards", str(CARDS)), {})  # noqa: S102 - two replicas

        async def main():
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{PORT}", timeout=60) as client:
                assert await ask(client) == "seven of clubs" == await speak()
                before = replicas()
                assert len(before) == 2
                asking = [asyncio.create_task(ask(client)) for _ in range(40)]
                await asyncio.sleep(0.3)
                ray.kill(ray.get_actor(min(before), namespace="serve"))
                assert await asyncio.gather(*asking) == ["seven of clubs"] * 40
                while len(replicas() - {min(before)}) < 2:  # Ray starts another
                    await asyncio.sleep(0.5)
                assert await asyncio.gather(*(ask(client) for _ in range(8))) == ["seven of clubs"] * 8
                for _ in range(8):
                    assert await speak() == "seven of clubs"

        asyncio.run(asyncio.wait_for(main(), 240))
    finally:
        serve.shutdown()
        ray.shutdown()
