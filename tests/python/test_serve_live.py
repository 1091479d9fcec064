"""Live audio of warpfst serve: real recordings over WebSocket, clients that do wrong, and its page in a headless browser with a recording as microphone."""

import asyncio
import base64
import contextlib
import functools
import gc
import json
import os
import random
import re
import shutil
import signal
import socket
import time
import urllib.request
import weakref

import numpy as np
import pytest
from serving import CARDS, ConnectionClosed, Running, background, recording, run, soundfile, uvicorn, wav, websockets

from warpfst.serve import Limits, Windowing
from warpfst.serve.live import MOST_BYTES
from warpfst.serve.windows import Windows
from warpfst.transcribe.models import open_model

EXPECTED = {1: "ten of clubs", 3: "seven of clubs", 4: "five five", 5: "eight of spades four of clubs seven of hearts"}


@pytest.fixture(scope="module")
def model():
    return open_model(CARDS, "cpu", 1)


def pcm(samples):
    return (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()


async def messages_of(ws):
    """All messages up to the close."""
    found = []
    with contextlib.suppress(ConnectionClosed):
        while True:
            found.append(json.loads(await ws.recv()))
    return found


async def closed(ws):
    """Code and reason of the close, after all messages."""
    await asyncio.wait_for(messages_of(ws), 20)
    return ws.close_code, ws.close_reason


async def spoken(running, samples, size=1600, vocabulary=None, path="/v1/audio/stream"):
    """Sends samples in messages of `size` (or random) samples. Returns the partial and the final messages."""
    async with running.connect(path) as ws:
        if vocabulary is not None:
            await ws.send(json.dumps({"vocabulary": vocabulary}))
        reading, rng, begin = asyncio.create_task(messages_of(ws)), random.Random(size), 0
        while begin < len(samples):
            count = size or rng.randrange(0, 9000)
            await ws.send(pcm(samples[begin : begin + count]))
            begin += count
        await ws.send('{"end": true}')
        received = await reading
        assert ws.close_code == 1000, (ws.close_code, ws.close_reason)
    assert received[0]["type"] == "ready" and received[0]["sample_rate"] == 16000
    assert {message["type"] for message in received[1:]} <= {"partial", "final"}
    return [one for one in received if one["type"] == "partial"], [one for one in received if one["type"] == "final"]


def alone(model, samples):
    """Words, without server and streams: the scores of all windows, decoded at once."""
    windows, rows = Windows(16000, model.frame_shift, Windowing()), []
    windows.add(np.frombuffer(pcm(samples), "<i2").astype(np.float32) / 32768)
    while (window := windows.next(at_end=True)) is not None:
        log_probs, lengths = model.scores([window.samples])
        rows.append(log_probs[0, : lengths[0]][window.begin : window.end])
    with model.decoder(None, {"lattice_beam": 8.0}) as decoder:
        return decoder.decode([np.concatenate(rows)])[0]


def test_recordings_in_messages_of_any_size(model):
    async def main():
        async with Running() as running:
            for number, text in EXPECTED.items():
                samples = recording(number)
                found = [await spoken(running, samples, size) for size in (320, 1600, 0, MOST_BYTES // 2)]
                partials, finals = found[0]
                result = alone(model, samples)
                assert [one["text"] for one in finals] == [text] == [result.text]
                assert all(one == found[0] for one in found)  # the messages' sizes do not matter
                assert [one["confidence"] for one in finals[0]["words"]] == pytest.approx([word.confidence for word in result.words], abs=1e-3)
                assert len(partials) > 0
                for one in partials:
                    assert text.split()[: one["stable"]] == one["text"].split()[: one["stable"]]
                assert [one["time"] for one in partials] == sorted(one["time"] for one in partials) and finals[0]["time"] == pytest.approx(len(samples) / 16000, abs=0.05)
                times = [time for word in finals[0]["words"] for time in (word["start"], word["end"])]
                assert times == sorted(times) and 0 <= times[0] and times[-1] <= len(samples) / 16000

    run(main())


def test_endpoints_separate_utterances():
    first, second = recording(3), recording(4)
    samples = np.concatenate([background(first, 1), first, background(first, 1.6), second, background(second, 2)])

    async def main():
        async with Running() as running:
            _, finals = await spoken(running, samples)
            assert [one["text"] for one in finals] == ["seven of clubs", "five five"]
            assert all(one["endpoint"] for one in finals)
            (begin, end), (begin2, end2) = [(one["words"][0]["start"], one["words"][-1]["end"]) for one in finals]
            border = 1 + len(first) / 16000
            assert 0.9 < begin < end < border + 0.2 and border + 1.4 < begin2 < end2 < border + 1.8 + len(second) / 16000

    run(main())


def test_windows_have_bounded_memory_and_lose_no_frame():
    windowing = Windowing(left=8.0, step=0.32, right=0.48)
    rng, windows, given = np.random.default_rng(1), Windows(250, 0.04, windowing), []
    samples = rng.uniform(-1, 1, 10 * 700).astype(np.float32)
    for begin in range(0, len(samples), 30):
        windows.add(samples[begin : begin + 30])
        while (window := windows.next(at_end=begin + 30 >= len(samples))) is not None:
            assert len(window.samples) <= (200 + 8 + 12) * 10
            given.append(window.samples[window.begin * 10 : None if window.end is None else window.end * 10])
            assert window.end is None or windows.scored * 10 == sum(map(len, given))
    assert np.array_equal(np.concatenate(given), samples)
    silent = Windows(250, 0.04, windowing)
    for _ in range(100):
        silent.add(np.zeros(1000, np.float32))
        assert silent.next() is None and len(silent._samples) <= 6 * 10
    assert silent.next(at_end=True) is None and not silent.begun


def test_connections_at_once_have_their_own_words_and_phrases():
    other = {"hearts": 12.0}

    async def main():
        async with Running(num_threads=2) as running:
            each = [await spoken(running, recording(i), vocabulary=phrases) for i in (1, 3, 4, 5) for phrases in (None, other)]
            together = await asyncio.gather(*(spoken(running, recording(i), vocabulary=phrases) for i in (1, 3, 4, 5) for phrases in (None, other)))
            assert [[one["text"] for one in finals] for _, finals in together] == [[one["text"] for one in finals] for _, finals in each]
            assert each[0][1][0]["text"] == "ten of clubs" and each[1][1][0]["text"] == "ten of hearts"
            metrics = await running.metrics()
            assert metrics['warpfst_batch_items_count{model="cards"}'] < metrics['warpfst_batch_items_sum{model="cards"}']
            await running.none_left()
            assert metrics["warpfst_utterances_total" + '{model="cards"}'] == 16

    run(main())


@pytest.mark.parametrize("lattice_beam", [0, 8])
def test_phrases_may_change_within_an_utterance(lattice_beam):
    """With lattices the utterance so far is decoded again with the new phrases; without, the search goes on with them."""
    samples = np.concatenate([recording(1), background(recording(1), 1.5), recording(1)])

    async def main():
        async with Running(options={"lattice_beam": lattice_beam}) as running, running.connect() as ws:
            assert json.loads(await ws.recv())["type"] == "ready"
            for wrong in ({"hearts": 10**400}, {"hearts": "much"}, {"hearts": [1]}, 3, [1]):
                await ws.send(json.dumps({"vocabulary": wrong}))
                assert json.loads(await ws.recv())["type"] == "error"
            begin, partial, changed = 0, "", False
            finals = []

            async def read():
                nonlocal partial
                async for message in ws:
                    one = json.loads(message)
                    if one["type"] == "final":
                        finals.append(one["text"])
                    else:
                        partial = one["text"]

            reading = asyncio.create_task(read())
            while begin < len(samples):
                await ws.send(pcm(samples[begin : begin + 800]))
                begin += 800
                await asyncio.sleep(0.03)
                if "clubs" in partial and not changed:
                    await ws.send(json.dumps({"vocabulary": {"hearts": 12, " no  such": None}}))
                    changed = True
            await ws.send('{"end": true}')
            await reading
            assert changed and finals == [("ten of hearts" if lattice_beam else "ten of clubs"), "ten of hearts"]

    run(main())


def test_details_have_other_words_and_a_picture():
    async def main():
        async with Running() as running:
            _, finals = await spoken(running, recording(1), path="/v1/audio/stream?details=true&model=cards")
            (final,) = finals
            texts = [one["text"] for one in final["nbest"]]
            assert texts[0] == final["text"] and len(set(texts)) == len(texts) > 1
            assert final["nbest"][0]["words"][0]["start"] == final["words"][0]["start"]
            assert final["lattice"].startswith("<?xml") or final["lattice"].startswith("<svg")
            assert "clubs" in final["lattice"] and len(final["lattice"]) < 200_000
            _, plain = await spoken(running, recording(1))
            assert "nbest" not in plain[0] and "lattice" not in plain[0]

    run(main())


def test_wrong_messages_end_their_connection_only():
    texts = ("", "{", "[]", "3", "{}", '{"vocabulary": {}, "end": true}', '{"end": false}', '{"stop": 1}', "[" * 100000, '{"vocabulary": {"a": 1e999')

    async def main():
        async with Running() as running:
            async with running.connect() as good:
                await good.send(pcm(recording(3)[:8000]))
                for text in texts:
                    async with running.connect() as ws:
                        await ws.send(text)
                        assert (await closed(ws))[0] == 1007, text
                async with running.connect() as ws:
                    await ws.send(b"odd")
                    assert await closed(ws) == (1007, "audio of an odd number of bytes, expected 16-bit samples")
                noise = np.random.default_rng(1).bytes(MOST_BYTES + 2)  # which compression makes longer
                for compression in (None, "deflate"):
                    async with running.connect(compression=compression) as ws:
                        await ws.send(noise)
                        assert await closed(ws) == (1009, f"a message of {len(noise)} bytes, the most is {MOST_BYTES}")
                    async with running.connect(compression=compression) as ws:
                        await ws.send(noise[2:])
                        await ws.send('{"end": true}')
                        assert (await closed(ws))[0] == 1000
                async with running.connect("/v1/audio/stream?model=other") as ws:
                    assert await closed(ws) == (1008, "the model 'other' does not exist; there are cards")
                await good.send(pcm(recording(3)[8000:]))
                await good.send('{"end": true}')
                assert [one["text"] for one in await messages_of(good) if one["type"] == "final"] == ["seven of clubs"]
            for origin in ("http://elsewhere.org", "null"):
                with pytest.raises(Exception, match="403"):
                    await running.connect(origin=origin)
            await (await running.connect(origin=f"http://127.0.0.1:{running.port}")).close()
            assert (await running.client.get("/v1/audio/stream")).status_code == 404  # not a WebSocket

    run(main())


def test_keys_of_connections():
    async def main():
        async with Running(api_keys=frozenset({"k-1"}), origins=frozenset({"https://example.org"})) as running:
            for options in ({}, {"additional_headers": {"Authorization": "Bearer no"}}, {"subprotocols": ["warpfst", "warpfst-key.no"]}):
                with pytest.raises(Exception, match="403"):
                    await running.connect(**options)
            for options in ({"additional_headers": {"Authorization": "Bearer k-1"}}, {"subprotocols": ["warpfst", "warpfst-key.k-1"], "origin": "https://example.org"}):
                async with running.connect(**options) as ws:
                    assert json.loads(await ws.recv())["type"] == "ready"
                    assert ws.subprotocol == ("warpfst" if "subprotocols" in options else None)

    run(main())


def test_too_many_connections():
    async def main():
        async with Running(limits=Limits(streams=2)) as running:
            async with running.connect() as first, running.connect() as second:
                assert json.loads(await first.recv())["type"] == json.loads(await second.recv())["type"] == "ready"
                for _ in range(3):
                    async with running.connect() as third:
                        assert await closed(third) == (1013, "too many streams")
                await first.send('{"end": true}')
                assert await messages_of(first) == []
                while running.server.num_streams == 2:
                    await asyncio.sleep(0.01)
                assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"
            await running.none_left()

    run(main())


HANDSHAKE = b"GET /v1/audio/stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"


def test_clients_that_left_take_no_place_from_others():
    """They left while the server did not run, as on a busy machine: it reads their end after their begin."""

    async def main():
        async with Running(limits=Limits(streams=2)) as running:
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", running.port)) as gone:
                    gone.sendall(HANDSHAKE)
            found = await asyncio.gather(*(spoken(running, recording(3)) for _ in range(2)))
            assert [finals[0]["text"] for _, finals in found] == ["seven of clubs"] * 2
            await running.none_left()

    run(main())


def test_a_server_that_is_behind_keeps_its_clients(monkeypatch):
    """Pings and their answers wait behind the audio that came before, so they say nothing about the client."""
    monkeypatch.setattr(uvicorn.Config, "__init__", functools.partialmethod(uvicorn.Config.__init__, ws_ping_interval=0.1, ws_ping_timeout=0.1))

    async def main():
        async with Running() as running:
            model = running.server.models["cards"].model
            scores = model.scores
            monkeypatch.setattr(model, "scores", lambda pieces: time.sleep(0.1) or scores(pieces))
            _, finals = await spoken(running, np.tile(recording(3), 4))
            assert " ".join(one["text"] for one in finals).startswith("seven of clubs")

    run(main())


def test_clients_that_leave_are_forgotten():
    async def main():
        async with Running() as running:
            for kind in ("close", "abort"):
                for _ in range(4):
                    ws = await running.connect()
                    await ws.send(pcm(recording(5)))
                    if kind == "close":
                        await ws.close()
                    else:
                        ws.transport.abort()
            await running.none_left()
            assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"

    run(main())


def test_idle_clients_are_disconnected():
    async def main():
        async with Running(limits=Limits(idle_seconds=0.3)) as running, running.connect() as ws:
            assert await closed(ws) == (1008, "no message for 0.3 s")
            await running.none_left()

    run(main())


def test_clients_that_read_nothing_are_disconnected():
    """Its messages fill the buffers. Others are served meanwhile."""

    async def main():
        async with Running(send_buffer=4096, limits=Limits(send_seconds=0.5, idle_seconds=1000)) as running:
            deaf = socket.socket()
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(deaf, ("127.0.0.1", running.port))
            await loop.sock_sendall(deaf, HANDSHAKE)
            assert (await loop.sock_recv(deaf, 12)).endswith(b"101")
            text = json.dumps({"vocabulary": {"clubs": "x" * 80}}).encode()  # each is answered by an error
            frame = bytes([0x81, 0x80 | len(text)]) + bytes(4) + text  # masked with 0
            flooding = asyncio.create_task(loop.sock_sendall(deaf, frame * 20000))
            while not running.server.num_streams:
                await asyncio.sleep(0.01)
            assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"
            with contextlib.suppress(ConnectionError):
                await flooding
            await running.none_left()
            while running.uvicorn.server_state.connections:  # its socket is closed, too
                await asyncio.sleep(0.01)
            deaf.close()

    run(main())


def test_a_failing_model_ends_its_connection_only(monkeypatch):
    async def main():
        async with Running() as running, running.connect() as good, running.connect() as bad:
            await good.send(pcm(recording(3)[:8000]))
            await asyncio.sleep(0.5)
            model = running.server.models["cards"].model
            with monkeypatch.context() as broken:
                broken.setattr(model, "scores", lambda pieces: 1 / 0)
                await bad.send(pcm(recording(5)))
                assert await closed(bad) == (1011, "the server failed")
            await good.send(pcm(recording(3)[8000:]))
            await good.send('{"end": true}')
            assert [one["text"] for one in await messages_of(good) if one["type"] == "final"] == ["seven of clubs"]

    run(main())


def test_a_stream_takes_a_new_graph_at_its_next_utterance(tmp_path):
    config = json.loads((CARDS / "config.json").read_text())
    config["acoustic_model"]["file"] = str(CARDS / config["acoustic_model"]["file"])
    config["tokens"], config["graph"] = str(CARDS / config["tokens"]), {"lexicon": str(CARDS / "lexicon.txt"), "phrases": "phrases.txt"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "phrases.txt").write_text("ten of clubs\n")
    one = np.concatenate([recording(1), background(recording(1), 2)])

    async def main():
        async with Running(models={"m": str(tmp_path)}) as running, running.connect() as ws:
            await ws.send(pcm(one[:16000]))
            await asyncio.sleep(0.5)
            old = running.server.models["m"]
            (tmp_path / "phrases.txt").write_text("ten of hearts\n")
            await running.server.reload("m")
            for samples in (one[16000:], one, one):
                for begin in range(0, len(samples), 1600):
                    await ws.send(pcm(samples[begin : begin + 1600]))
            await ws.send('{"end": true}')
            finals = [message for message in await messages_of(ws) if message["type"] == "final"]
            assert [message["text"] for message in finals] == ["ten of clubs", "ten of hearts", "ten of hearts"]
            begins = [message["words"][0]["start"] for message in finals]
            assert np.diff(begins) == pytest.approx([len(one) / 16000] * 2, abs=0.15)
            while old.decoder._address is not None:  # it is closed
                await asyncio.sleep(0.01)

    run(main())


def test_a_model_that_was_replaced_is_freed():
    """At once, not when Python next looks for cycles, until when models would fill the memory."""

    async def main():
        async with Running() as running:
            old = weakref.ref(running.server.models["cards"].model)
            assert (await running.post(3)).status_code == 200
            assert (await spoken(running, recording(3)))[1][0]["text"] == "seven of clubs"
            await running.server.reload("cards")
            while old() is not None:
                await asyncio.sleep(0.01)

    gc.collect()
    gc.disable()
    try:
        run(main(), 20)
    finally:
        gc.enable()


def test_a_stop_ends_utterances_with_their_words():
    async def main():
        running = await Running().__aenter__()
        connections = [await running.connect() for _ in range(3)]
        await connections[0].send(pcm(recording(3)))
        reading = [asyncio.create_task(messages_of(ws)) for ws in connections]
        await asyncio.sleep(0.5)
        await running.stop()
        found = await asyncio.gather(*reading)
        assert [ws.close_code for ws in connections] == [1001] * 3
        assert (found[0][-1]["type"], found[0][-1]["text"]) == ("final", "seven of clubs")
        assert all([one["type"] for one in messages] == ["ready"] for messages in found[1:])
        assert running.server.models == {}
        await running.client.aclose()

    run(main())


class Browser:
    """A headless Chromium, driven through its DevTools protocol, with a WAV file as its microphone."""

    def __init__(self, program, folder, wav):
        self._profile, flags = folder / "profile", "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-port=0 --window-size=400,900"
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
        listed = await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{ports.read_text().split()[0]}/json/list").read())
        (page,) = [one for one in json.loads(listed) if one["type"] == "page"]
        self._ws, self._count = await websockets.connect(page["webSocketDebuggerUrl"], max_size=None), 0
        return self

    async def __aexit__(self, *_):
        await self._ws.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def call(self, method, **parameters):
        self._count += 1
        await self._ws.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while (answer := json.loads(await self._ws.recv())).get("id") != self._count:
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

    async def open(self, running):
        await self.call("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=True)
        await self.call("Page.navigate", url=running.url)
        await self.until("document.readyState === 'complete' && location.port !== ''")
        await self.value("element = id => document.getElementById(id)")

    async def texts(self):
        return await self.value("[...document.querySelectorAll('#finals > div > p')].map(one => [...one.querySelectorAll('.word')].map(word => word.textContent).join(' '))")


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
WATCH = """
partials = []
new MutationObserver(() => partials.push(element("partial").textContent.trim())).observe(element("partial"), {childList: true, characterData: true, subtree: true})
"""
TYPE = "element('phrases').value = %s; element('phrases').dispatchEvent(new Event('input'))"


@needs_browser
def test_the_page_shows_what_the_microphone_hears(tmp_path):
    """Live captions, then a phrase that is edited while it records changes the next words. It fits on 400 pixels."""
    first, second = recording(3), recording(1)
    samples = np.concatenate([background(first, 3), first, background(first, 2), second, background(second, 6)])
    soundfile.write(tmp_path / "microphone.wav", samples, 16000)

    async def main():
        async with Running() as running, Browser(CHROMIUM, tmp_path, tmp_path / "microphone.wav") as browser:
            await browser.open(running)
            await browser.value(WATCH)
            await browser.value("element('record').click()")
            await browser.until("document.querySelectorAll('#finals > div').length >= 1 || element('status').textContent")
            assert await browser.texts() == ["seven of clubs"]
            await browser.value(TYPE % "'hearts 12\\nno such word'")
            await browser.until("document.querySelectorAll('#finals > div').length >= 2 || element('status').textContent")
            assert await browser.value("element('status').textContent") == ""
            assert await browser.texts() == ["seven of clubs", "ten of hearts"]
            partials = await browser.value("partials")
            assert "seven of clubs" in partials and len(set(partials)) > 3
            latency = re.fullmatch(r"latency (\d+) ms", await browser.value("element('latency').textContent"))
            assert latency and 300 < int(latency[1]) < 5000
            assert await browser.value("element('record').textContent") == "Stop"
            assert await browser.value("document.documentElement.scrollWidth") <= 400
            await browser.value("element('record').click()")
            await browser.until("element('record').textContent === 'Microphone' && !element('status').textContent")
            await running.none_left()

    run(main())


@needs_browser
def test_the_page_shows_a_file_s_words_with_what_else_they_may_be(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav(1))
    data = base64.b64encode(wav(1)).decode()

    async def main():
        async with Running(api_keys=frozenset({"secret"})) as running, Browser(CHROMIUM, tmp_path, tmp_path / "a.wav") as browser:
            await browser.open(running)
            await browser.until("!element('key').hidden")
            await browser.value("element('key').value = 'secret'; element('key').dispatchEvent(new Event('change'))")
            await browser.until("element('model').options.length == 1 && !element('status').textContent")
            await browser.value(
                f"bytes = Uint8Array.from(atob('{data}'), c => c.charCodeAt(0)); transfer = new DataTransfer(); transfer.items.add(new File([bytes], 'a.wav')); "
                "element('file').files = transfer.files; element('file').dispatchEvent(new Event('change'))"
            )
            await browser.until("document.querySelectorAll('#finals > div').length || element('status').textContent")
            assert await browser.value("element('status').textContent") == ""
            assert await browser.texts() == ["ten of clubs"]
            await browser.until("element('record').textContent === 'Microphone'")
            shades = await browser.value("[...document.querySelectorAll('.word')].map(word => Number(word.style.getPropertyValue('--confidence')))")
            colours = await browser.value("[...document.querySelectorAll('.word')].map(word => Number(getComputedStyle(word).backgroundColor.match(/[\\d.]+(?=\\))/)))")
            assert min(shades) < 0.9 and colours[shades.index(min(shades))] == max(colours) > min(colours)
            await browser.value("document.querySelectorAll('.word')[2].click()")
            others = await browser.value("[...document.querySelectorAll('.others li')].map(one => one.textContent)")
            assert len(others) > 0 and all("nats" in one for one in others) and not any(one.startswith("clubs ") for one in others)
            await browser.value("document.querySelectorAll('.word')[2].click()")
            assert await browser.value("document.querySelector('.others').hidden")
            await browser.value("document.querySelector('#finals summary').click()")
            await browser.until("document.querySelector('.picture img').naturalWidth > 100")
            assert await browser.value("document.documentElement.scrollWidth") <= 400

    run(main())
