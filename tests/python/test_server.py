"""The server of examples/server: real recordings over WebSocket, clients that do wrong, and its page in a headless browser with a recording as microphone."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys

import aiohttp
import numpy as np
import pytest
import soundfile
from aiohttp import web
from conftest import ROOT

import warpfst as wf
from warpfst.transcribe import audio
from warpfst.transcribe.models import open_model

sys.path.insert(0, str(ROOT / "examples" / "server"))
from server import MOST_BYTES, Server
from windows import LEAD, LEFT, RIGHT, STEP, Windows

CARDS = ROOT / "examples" / "cards"
UNIT = 640


@pytest.fixture(scope="module")
def model():
    return open_model(CARDS, "cpu", 1)


def recording(number):
    return audio.read(CARDS / f"card{number}.wav", 16000)


def background(samples, seconds, seed=1):
    """Noise with the level and the spectrum of the recording's first and last 50 ms, as a room would have it."""
    quiet, count = np.concatenate([samples[:800], samples[-800:]]), int(seconds * 16000)
    spectrum = np.abs(np.fft.rfft(quiet))
    spectrum = np.interp(np.linspace(0, 1, count // 2 + 1), np.linspace(0, 1, len(spectrum)), spectrum)
    noise = np.fft.irfft(spectrum * np.exp(2j * np.pi * np.random.default_rng(seed).random(len(spectrum))), count)
    return (noise * quiet.std() / noise.std()).astype(np.float32)


def pcm(samples):
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


class Running:
    """The server on a free port."""

    def __init__(self, model, send_buffer=None, **options):
        self.server, self._send_buffer = Server(model, **options), send_buffer

    async def __aenter__(self):
        listening = socket.socket()
        if self._send_buffer is not None:  # inherited by the connections
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
        listening.bind(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.runner = web.AppRunner(self.server.app(), shutdown_timeout=5)
        await self.runner.setup()
        await web.SockSite(self.runner, listening).start()
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_):
        await self.session.close()
        await self.runner.cleanup()

    def connect(self, **options):
        return self.session.ws_connect(f"http://127.0.0.1:{self.port}/stream", **options)

    async def none_left(self):
        """Waits until no connection and no stream is left."""
        while self.server.open or any(stream._address for stream in self.server._decoder._streams):
            await asyncio.sleep(0.01)


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


async def messages_of(ws):
    """All messages up to the close."""
    return [json.loads(message.data) async for message in ws]


async def spoken(running, samples, size=1600, boost=None):
    """Sends samples in messages of `size` (or random) samples. Returns the partial and the final messages."""
    async with running.connect() as ws:
        if boost is not None:
            await ws.send_json({"boost": boost})
        reading, rng, begin = asyncio.create_task(messages_of(ws)), random.Random(size), 0
        while begin < len(samples):
            count = size or rng.randrange(0, 9000)
            await ws.send_bytes(pcm(samples[begin : begin + count]))
            begin += count
        await ws.send_json({"end": True})
        received = await reading
        assert ws.close_code == 1000
    assert {message["type"] for message in received} <= {"partial", "final"}
    return [one for one in received if one["type"] == "partial"], [one for one in received if one["type"] == "final"]


def alone(model, samples):
    """Words, without server and streams: the scores of all windows, decoded at once."""
    windows, rows = Windows(UNIT), []
    windows.add(np.frombuffer(pcm(samples), "<i2").astype(np.float32) / 32768)
    while (window := windows.next(at_end=True)) is not None:
        log_probs, lengths = model.scores([window.samples])
        rows.append(log_probs[0, : lengths[0]][window.begin : window.end])
    with model.decoder(None, {}) as decoder:
        return decoder.decode([np.concatenate(rows)])[0]


def test_recordings_in_messages_of_any_size(model):
    expected = {1: "ten of clubs", 3: "seven of clubs", 4: "five five", 5: "eight of spades four of clubs seven of hearts"}

    async def main():
        async with Running(model) as running:
            for number, text in expected.items():
                samples = recording(number)
                found = [await spoken(running, samples, size) for size in (320, 1600, 0, MOST_BYTES // 2)]
                partials, finals = found[0]
                assert [one["text"] for one in finals] == [text] == [alone(model, samples).text]
                assert all(one == found[0] for one in found)  # the messages' sizes do not matter
                assert len(partials) > 0
                for one in partials:
                    assert text.split()[: one["stable"]] == one["text"].split()[: one["stable"]]
                times = [time for word in finals[0]["words"] for time in (word["start"], word["end"])]
                assert times == sorted(times) and 0 <= times[0] and times[-1] <= len(samples) / 16000

    run(main())


def test_endpoints_separate_utterances(model):
    first, second = recording(3), recording(4)
    samples = np.concatenate([background(first, 1), first, background(first, 1.6), second, background(second, 2)])

    async def main():
        async with Running(model) as running:
            _, finals = await spoken(running, samples)
            assert [one["text"] for one in finals] == ["seven of clubs", "five five"]
            assert all(one["endpoint"] for one in finals)
            (begin, end), (begin2, end2) = [(one["words"][0]["start"], one["words"][-1]["end"]) for one in finals]
            border = 1 + len(first) / 16000
            assert 0.9 < begin < end < border + 0.2 and border + 1.4 < begin2 < end2 < border + 1.8 + len(second) / 16000

    run(main())


def test_windows_have_bounded_memory_and_lose_no_frame():
    rng, windows, given = np.random.default_rng(1), Windows(10), []
    samples = rng.uniform(-1, 1, 10 * (LEFT + 500)).astype(np.float32)
    for begin in range(0, len(samples), 30):
        windows.add(samples[begin : begin + 30])
        while (window := windows.next(at_end=begin + 30 >= len(samples))) is not None:
            assert len(window.samples) <= (LEFT + STEP + RIGHT) * 10
            given.append(window.samples[window.begin * 10 : None if window.end is None else window.end * 10])
    assert np.array_equal(np.concatenate(given), samples)
    silent = Windows(10)
    for _ in range(100):
        silent.add(np.zeros(1000, np.float32))
        assert silent.next() is None and len(silent._samples) <= (LEAD + 1) * 10
    assert silent.next(at_end=True) is None


def test_connections_at_once_have_their_own_words_and_boosts(model):
    other = {"hearts": 12.0}

    async def main():
        async with Running(model, threads=2) as running:
            alone = [await spoken(running, recording(i), boost=boost) for i in (1, 3, 4, 5) for boost in (None, other)]
            together = await asyncio.gather(*(spoken(running, recording(i), boost=boost) for i in (1, 3, 4, 5) for boost in (None, other)))
            assert together == alone
            assert alone[0][1][0]["text"] == "ten of clubs" and alone[1][1][0]["text"] == "ten of hearts"
            await running.none_left()

    run(main())


def test_boosts_may_change_and_wrong_ones_are_reported(model):
    async def main():
        async with Running(model) as running, running.connect() as ws:
            for boost in ({"hearts": "much"}, {"": 1.0}, {"hearts": [1]}):
                await ws.send_json({"boost": boost})
                assert (await ws.receive_json(timeout=10))["type"] == "error"
            for boost in ({"hearts": 12}, {"seven of hearts": None}, {}, {"hearts": 12}):
                await ws.send_json({"boost": boost})
                await ws.send_bytes(b"")
            await ws.send_bytes(pcm(recording(1)))
            await ws.send_json({"end": True})
            assert [one["text"] for one in await messages_of(ws) if one["type"] == "final"] == ["ten of hearts"]

    run(main())


def test_wrong_messages_end_their_connection_only(model):
    texts = ("", "{", "[]", "3", "{}", '{"boost": 3}', '{"boost": {}, "end": true}', '{"end": false}', '{"stop": 1}', "[" * 100000, '{"boost": {"a": 1e999')

    async def main():
        async with Running(model) as running:
            async with running.connect() as good:
                await good.send_bytes(pcm(recording(3)[:8000]))
                for text in texts:
                    async with running.connect() as ws:
                        await ws.send_str(text)
                        assert (await ws.receive(10)).type == aiohttp.WSMsgType.CLOSE and ws.close_code == 1007, text
                async with running.connect() as ws:
                    await ws.send_bytes(b"odd")
                    assert (await ws.receive(10)).extra.startswith("audio of an odd number") and ws.close_code == 1007
                async with running.connect() as ws:
                    await ws.send_bytes(bytes(MOST_BYTES + 2))
                    assert (await ws.receive(10)).type == aiohttp.WSMsgType.CLOSE and ws.close_code == 1009
                await good.send_bytes(pcm(recording(3)[8000:]))
                await good.send_json({"end": True})
                assert [one["text"] for one in await messages_of(good) if one["type"] == "final"] == ["seven of clubs"]
            for request in ({"headers": {"Origin": "http://elsewhere.org"}}, {"headers": {"Origin": "null"}}):
                with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                    await running.connect(**request)
            await running.connect(headers={"Origin": f"http://127.0.0.1:{running.port}"})
            async with running.session.get(f"http://127.0.0.1:{running.port}/stream") as answer:
                assert answer.status == 400  # not a WebSocket

    run(main())


def test_too_many_connections(model):
    async def main():
        async with Running(model, connections=2) as running:
            async with running.connect() as first, running.connect():
                for _ in range(3):
                    async with running.connect() as third:
                        assert (await third.receive(10)).extra == "too many connections" and third.close_code == 1013
                await first.send_json({"end": True})
                assert await messages_of(first) == []
                while len(running.server.open) == 2:
                    await asyncio.sleep(0.01)
                assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"
            await running.none_left()

    run(main())


def test_clients_that_leave_are_forgotten(model):
    async def main():
        async with Running(model) as running:
            for kind in ("close", "abort"):
                for _ in range(4):
                    ws = await running.connect()
                    await ws.send_bytes(pcm(recording(5)))
                    if kind == "close":
                        await ws.close()
                    else:
                        ws._response.connection.transport.abort()
            await running.none_left()
            assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"

    run(main())


def test_idle_clients_are_disconnected(model):
    async def main():
        async with Running(model, idle_seconds=0.2) as running, running.connect() as ws:
            message = await ws.receive(10)
            assert (message.extra, ws.close_code) == ("no message for 0.2 s", 1008)
            await running.none_left()

    run(main())


def test_clients_that_read_nothing_are_disconnected(model):
    """Its messages fill the buffers. Others are served meanwhile."""

    async def main():
        async with Running(model, send_buffer=4096, send_seconds=0.5, idle_seconds=1000) as running:
            deaf = socket.socket()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, ("127.0.0.1", running.port))
            await loop.sock_sendall(deaf, b"GET /stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
            text = json.dumps({"boost": {"clubs": "x" * 80}}).encode()  # each is answered by an error
            frame = bytes([0x81, 0x80 | len(text)]) + bytes(4) + text  # masked with 0
            flooding = asyncio.create_task(loop.sock_sendall(deaf, frame * 20000))
            while not running.server.open:
                await asyncio.sleep(0.01)
            assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"
            with contextlib.suppress(ConnectionError):
                await flooding
            await running.none_left()
            deaf.close()

    run(main())


def test_a_failing_model_ends_its_connection_only(model, monkeypatch):
    async def main():
        async with Running(model) as running, running.connect() as good, running.connect() as bad:
            await good.send_bytes(pcm(recording(3)[:8000]))
            with monkeypatch.context() as broken:
                broken.setattr(model, "scores", lambda pieces: 1 / 0)
                await bad.send_bytes(pcm(recording(5)))
                assert (await bad.receive(10)).extra == "the server failed" and bad.close_code == 1011
            await good.send_bytes(pcm(recording(3)[8000:]))
            await good.send_json({"end": True})
            assert [one["text"] for one in await messages_of(good) if one["type"] == "final"] == ["seven of clubs"]

    run(main())


def test_shutdown_closes_connections(model):
    async def main():
        running = await Running(model).__aenter__()
        connections = [await running.connect() for _ in range(3)]
        await connections[0].send_bytes(pcm(recording(5)))
        reading = [asyncio.create_task(messages_of(ws)) for ws in connections]
        await asyncio.sleep(0.05)
        await running.runner.cleanup()
        await asyncio.gather(*reading)
        assert [ws.close_code for ws in connections] == [1001] * 3
        with pytest.raises(wf.StateError):
            running.server._decoder.decode([])
        await running.session.close()

    run(main())


class Browser:
    """A headless Chromium, driven through its DevTools protocol, with a WAV file as its microphone."""

    def __init__(self, program, folder, wav):
        self._profile, flags = folder / "profile", "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-port=0"
        flags += " --use-fake-ui-for-media-stream --use-fake-device-for-media-stream --autoplay-policy=no-user-gesture-required"
        self._command = [program, *flags.split(), f"--use-file-for-fake-audio-capture={wav}%noloop", f"--user-data-dir={self._profile}", "about:blank"]
        self._log = folder / "chromium.log"

    async def __aenter__(self):
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(*self._command, stdout=log, stderr=log, start_new_session=True)
        ports = self._profile / "DevToolsActivePort"
        while not ports.exists() or len(ports.read_text().split()) < 2:
            assert self._process.returncode is None, self._log.read_text()
            await asyncio.sleep(0.05)
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{ports.read_text().split()[0]}/json/list") as answer:
            (page,) = [one for one in await answer.json() if one["type"] == "page"]
        self._ws, self._count = await self._session.ws_connect(page["webSocketDebuggerUrl"]), 0
        return self

    async def __aexit__(self, *_):
        await self._session.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def call(self, method, **parameters):
        self._count += 1
        await self._ws.send_json({"id": self._count, "method": method, "params": parameters})
        while (answer := await self._ws.receive_json()).get("id") != self._count:
            pass
        assert "result" in answer, answer
        return answer["result"]

    async def value(self, script):
        """The value of a script in the page, as if a user had called it."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, script):
        while not (value := await self.value(script)):
            await asyncio.sleep(0.05)
        return value


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WATCH = """
partials = []
new MutationObserver(() => partials.push(element("partial").textContent.trim())).observe(element("partial"), {childList: true, characterData: true, subtree: true})
"""


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_the_page_shows_what_the_microphone_hears(model, tmp_path):
    first, second = recording(3), recording(4)
    samples = np.concatenate([background(first, 3), first, background(first, 2), second, background(second, 6)])
    soundfile.write(tmp_path / "microphone.wav", samples, 16000)

    async def main():
        async with Running(model) as running, Browser(CHROMIUM, tmp_path, tmp_path / "microphone.wav") as browser:
            await browser.call("Page.navigate", url=f"http://127.0.0.1:{running.port}/")
            await browser.until("document.readyState === 'complete' && location.port && typeof element === 'function'")
            await browser.value(WATCH)
            await browser.value("element('record').click()")
            await browser.until("element('finals').children.length >= 2 || element('status').textContent")
            assert await browser.value("element('status').textContent") == ""
            assert await browser.value("[...element('finals').children].map(one => one.textContent)") == ["seven of clubs", "five five"]
            partials = await browser.value("partials")
            assert "seven of clubs" in partials and "five five" in partials and len(set(partials)) > 3
            assert await browser.value("element('record').textContent") == "Stop"
            await browser.value("element('record').click()")
            await browser.until("element('record').textContent === 'Record' && !element('status').textContent")
            await running.none_left()

    asyncio.run(asyncio.wait_for(main(), 90))
