"""warpfst serve over HTTP: OpenAI's requests, alignment, keys, limits, models that are replaced, metrics, and how it stops. test_serve_live.py has live audio and the page."""

import asyncio
import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT, transducer_folder
from serving import CARDS, Running, recording, run, wav

import warpfst as wf
from warpfst.captions import Spoken, srt, vtt
from warpfst.serve import Limits
from warpfst.serve.batches import Batches
from warpfst.serve.command import main, parser, settings
from warpfst.serve.requests import phrases_of_prompt
from warpfst.transcribe.models import open_model

openai = pytest.importorskip("openai")
SPHINX = pathlib.Path("/usr/share/pocketsphinx/model/en-us")
EXPECTED_CARDS = ("ten of clubs", "seven of clubs", "king of hearts", "five five")
TEXTS = {1: "ten of clubs", 2: "king of hearts", 3: "seven of clubs", 4: "five five"}


def alone(number, **options):
    """The result of a recording without the server."""
    model = open_model(CARDS, "cpu", 1)
    with model.decoder(None, {"lattice_beam": 8.0, **options}) as decoder:
        return decoder.decode(*model.scores([recording(number)]))[0], model.frame_shift


def test_every_format_has_the_package_s_words():
    result, shift = alone(5)
    words = [Spoken(word.text, word.start * shift, min(word.end * shift, len(recording(5)) / 16000)) for word in result.words]

    async def main():
        async with Running() as running:
            answers = {form: await running.post(5, response_format=form) for form in ("json", "verbose_json", "srt", "vtt", "text")}
            assert all(one.status_code == 200 for one in answers.values())
            assert answers["json"].json() == {"text": result.text, "usage": {"type": "duration", "seconds": 4}}
            assert answers["text"].text == result.text + "\n"
            assert answers["srt"].text == srt(words) and answers["vtt"].text == vtt(words)
            assert answers["srt"].headers["content-type"].startswith("application/x-subrip")
            whole = answers["verbose_json"].json()
            assert "words" not in whole and [one["text"] for one in whole["segments"]] == [result.text] and whole["duration"] == pytest.approx(3.5025, abs=0.001)
            both = (await running.post(5, response_format="verbose_json", **{"timestamp_granularities[]": ["word", "segment"]})).json()
            assert "segments" in both
            assert [(one["word"], one["start"], one["end"], one["confidence"]) for one in both["words"]] == [
                (word.text, round(one.start, 3), round(one.end, 3), round(word.confidence, 4)) for word, one in zip(result.words, words)
            ]

    run(main())


def test_the_openai_package():
    async def main():
        async with Running(api_keys=frozenset({"k1"})) as running, openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="k1", max_retries=0) as client:
            assert [one.id async for one in client.models.list()] == ["cards"]
            assert (await client.models.retrieve("cards")).owned_by == "warpfst"
            create = client.audio.transcriptions.create
            file = ("card3.wav", wav(3))
            assert (await create(model="cards", file=file)).text == TEXTS[3]
            verbose = await create(model="cards", file=file, response_format="verbose_json", timestamp_granularities=["word", "segment"])
            assert [word.word for word in verbose.words] == TEXTS[3].split() and verbose.segments[0].text == TEXTS[3] and verbose.duration > 1.5
            assert (await create(model="cards", file=file, response_format="srt")).endswith(TEXTS[3] + "\n")
            assert (await create(model="cards", file=("card1.wav", wav(1)), prompt="hearts: 12")).text == "ten of hearts"
            events = [event async for event in await create(model="cards", file=file, stream=True)]
            assert [event.type for event in events] == ["transcript.text.delta", "transcript.text.done"] and events[-1].text == TEXTS[3]
            with pytest.raises(openai.NotFoundError, match="'whisper-1' does not exist; there are cards") as why:
                await create(model="whisper-1", file=file)
            assert why.value.code == "model_not_found" and why.value.param == "model"
            with pytest.raises(openai.BadRequestError, match="cannot be read"):
                await create(model="cards", file=("x.wav", b"RIFF"))
            with pytest.raises(openai.AuthenticationError):
                await client.with_options(api_key="k2").models.list()

    run(main())


def test_phrases_of_a_request_are_its_own():
    async def main():
        async with Running() as running:
            asks = [{}, {"vocabulary": '{"hearts": 12}'}, {"prompt": "hearts: 12"}, {"prompt": "something else, hearts:12"}, {"vocabulary": '["ten of hearts"]'}, {}]
            answers = await asyncio.gather(*(running.post(1, **ask) for ask in asks * 3))
            texts = [one.json()["text"] for one in answers]
            assert texts == ["ten of clubs", "ten of hearts", "ten of hearts", "ten of hearts", texts[4], "ten of clubs"] * 3
            for wrong in ("3", "{", f'{{"hearts": 1{"0" * 400}}}', '{"hearts": "much"}', '{"hearts": 1e999}', '{"hearts": true}', "[" * 100000, "[1]"):
                answer = await running.post(1, vocabulary=wrong)
                assert answer.status_code == 400 and answer.json()["error"]["param"] == "vocabulary", wrong

    run(main())


def test_others_are_served_while_a_prompt_is_read(monkeypatch):
    answered = threading.Event()
    monkeypatch.setattr("warpfst.serve.requests.phrases_of_prompt", lambda _: {"hearts": 12.0} if answered.wait(10) else None)

    async def main():
        async with Running() as running:
            asking = asyncio.create_task(running.post(1, prompt="hearts: 12"))
            await asyncio.sleep(0.5)
            assert (await running.client.get("/health")).status_code == 200
            answered.set()
            assert (await asking).json()["text"] == "ten of hearts"

    run(main())


def test_phrases_of_a_prompt():
    assert phrases_of_prompt("seven  of hearts: 3, ace\nking. Queen") == {"seven of hearts": 3.0, "ace": None, "king": None, "Queen": None}
    assert phrases_of_prompt("3.5 mm, at 10:30, a: nan,,") == {"3.5 mm": None, "at 10": 30.0}


def test_requests_at_once_are_decoded_together_and_have_their_own_words():
    async def main():
        async with Running() as running:
            answers = await asyncio.gather(*(running.post(1 + i % 4) for i in range(48)))
            assert [one.json()["text"] for one in answers] == [TEXTS[1 + i % 4] for i in range(48)]
            metrics = await running.metrics()
            batches = metrics['warpfst_batch_items_count{model="cards"}']
            assert metrics['warpfst_batch_items_sum{model="cards"}'] == 48 and batches <= 24
            assert metrics['warpfst_requests_total{path="/v1/audio/transcriptions",status="200"}'] == 48
            assert metrics["warpfst_queue"] == 0
            assert metrics['warpfst_audio_seconds_total{kind="recording",model="cards"}'] == pytest.approx(12 * sum(len(recording(i)) for i in (1, 2, 3, 4)) / 16000)

    run(main())


def test_long_recordings_come_piece_by_piece():
    samples = np.concatenate([np.concatenate([recording(1 + i % 4), np.zeros(8000, np.float32)]) for i in range(12)])

    async def main():
        async with Running(max_seconds=5.0) as running:
            whole = (await running.post(samples, response_format="verbose_json", **{"timestamp_granularities[]": "word"})).json()
            assert whole["duration"] == pytest.approx(len(samples) / 16000, abs=0.001)
            times = [time for word in whole["words"] for time in (word["start"], word["end"])]
            assert times == sorted(times) and times[-1] > 20
            async with running.client.stream("POST", "/v1/audio/transcriptions", files={"file": ("a.wav", wav(samples))}, data={"stream": "true"}) as answer:
                events = [json.loads(line.removeprefix("data: ")) async for line in answer.aiter_lines() if line]
            assert len(events) > 4 and events[-1]["type"] == "transcript.text.done" and events[-1]["text"] == whole["text"]
            assert "".join(one["delta"] for one in events[:-1]) == whole["text"]

    run(main())


def test_alignment_finds_when_words_are_said():
    async def main():
        async with Running() as running:
            for number, text in TEXTS.items():
                result, shift = alone(number, beam=100.0)
                answer = (await running.post(number, path="/v1/align", text=text)).json()
                assert [one["word"] for one in answer["words"]] == text.split()
                if result.text == text:
                    assert [(one["start"], one["end"]) for one in answer["words"]] == [(round(word.start * shift, 3), pytest.approx(word.end * shift, abs=1e-6)) for word in result.words]
            other = (await running.post(1, path="/v1/align", text="ten of hearts")).json()
            assert [one["word"] for one in other["words"]] == ["ten", "of", "hearts"]
            for text, code in (("ten of dogs", "invalid_text"), ("  ", "missing_text"), ("five " * 200, "text_does_not_fit")):
                answer = await running.post(1, path="/v1/align", text=text)
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), answer.text

    run(main())


def test_wrong_requests_are_refused_and_leave_nothing():
    async def main():
        async with Running(limits=Limits(upload_bytes=300_000, audio_seconds=6.0)) as running:
            wrong = [
                (await running.post(1, response_format="xml"), 400, None),
                (await running.post(1, **{"timestamp_granularities[]": "phone"}), 400, None),
                (await running.post(1, model="../cards"), 404, "model_not_found"),
                (await running.client.post("/v1/audio/transcriptions"), 400, "missing_file"),
                (await running.client.post("/v1/audio/transcriptions", data={"file": "text"}), 400, "missing_file"),
                (await running.client.post("/v1/audio/transcriptions", content=b"--x\r\n", headers={"Content-Type": "multipart/form-data; boundary=x"}), 400, None),
                (await running.client.post("/v1/audio/transcriptions", content=b"x" * 1000, headers={"Content-Type": "multipart/form-data"}), 400, None),
                (await running.client.get("/v1/audio/transcriptions"), 405, None),
                (await running.client.get("/v1/nothing"), 404, None),
                (await running.post(b""), 400, "invalid_audio"),
                (await running.post(os.urandom(5000)), 400, "invalid_audio"),
                (await running.post(wav(1)[:40]), 400, "invalid_audio"),
                (await running.post(np.zeros(16000 * 9, np.float32)), 413, "audio_too_long"),
                (await running.post(np.zeros(16000 * 12, np.float32)), 413, "request_too_large"),
                (await running.post(1, headers={"Origin": "http://elsewhere.org"}), 403, "wrong_origin"),
            ]
            for i, (answer, status, code) in enumerate(wrong):
                assert answer.status_code == status and (code is None or answer.json()["error"]["code"] == code), (i, answer.text)
                assert set(answer.json()["error"]) == {"message", "type", "param", "code"}

            async def chunks():
                yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
                for _ in range(100):
                    yield bytes(10_000)
                yield b"\r\n--x--\r\n"

            answer = await running.client.post("/v1/audio/transcriptions", content=chunks(), headers={"Content-Type": "multipart/form-data; boundary=x"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")  # although the length is not announced
            header = wav(1)[:40] + (1 << 30).to_bytes(4, "little")  # a header that promises more than there is
            assert (await running.post(header + wav(1)[44:])).status_code in (200, 413)
            assert (await running.post(1)).json()["text"] == TEXTS[1]
            running.nothing_left()

    run(main())


async def _closed_after(port, data):
    """Seconds until the server closes a connection that has sent this, and what it answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    begin, found = time.monotonic(), b""
    with contextlib.suppress(ConnectionError):
        found = await reader.read()
    writer.close()
    return time.monotonic() - begin, found


def test_headers_that_are_long_or_late():
    """Whatever packages are installed: with httptools, uvicorn would take headers without end."""
    answered = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"

    async def main():
        async with Running(limits=Limits(upload_seconds=0.5)) as running:
            async with running.connect() as ws:
                assert json.loads(await ws.recv())["type"] == "ready"
                for data in (b"", b"GET /health HTTP/1.1\r\nX: ", answered + b"GET /hea"):
                    seconds, found = await asyncio.wait_for(_closed_after(running.port, data), 10)
                    assert 0.4 < seconds < 5 and found.count(b"HTTP/1.1 200 OK") == data.count(answered)
                _, found = await asyncio.wait_for(_closed_after(running.port, b"GET /health HTTP/1.1\r\n" + b"X: a\r\n" * 100_000), 10)
                assert found == b"" or found.startswith(b"HTTP/1.1 400 Bad Request")
                answer = await running.post(np.tile(recording(5), 60))  # takes longer, but its headers did not
                assert answer.status_code == 200
                await ws.send('{"end": true}')
                assert [message async for message in ws] == [] and ws.close_code == 1000
            await running.none_left()

    run(main())


def test_half_requests_and_clients_that_leave():
    async def main():
        async with Running(limits=Limits(upload_seconds=0.5)) as running:
            body = wav(5)
            head = f"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body) + 500}\r\n\r\n"
            part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + body[: len(body) // 2]
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(head.encode() + part)
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            writer.close()
            for _ in range(5):  # gone with half of the file
                _, writer = await asyncio.open_connection("127.0.0.1", running.port)
                writer.write(head.encode() + part)
                await writer.drain()
                writer.transport.abort()
            for _ in range(5):  # gone while it is decoded
                asking = asyncio.create_task(running.post(np.tile(recording(5), 20)))
                await asyncio.sleep(0.05)
                asking.cancel()
            await running.none_left()
            assert (await running.post(3)).json()["text"] == TEXTS[3]
            running.nothing_left()

    run(main())


def test_a_full_queue_refuses_and_recovers():
    async def main():
        async with Running(limits=Limits(queue=3)) as running:
            answers = await asyncio.gather(*(running.post(np.tile(recording(3), 4)) for _ in range(24)))
            refused = [one for one in answers if one.status_code == 429]
            assert 0 < len(refused) < 24 and all(one.status_code == 200 for one in answers if one not in refused)
            assert all(one.headers["retry-after"].isdecimal() and one.json()["error"]["type"] == "rate_limit_error" for one in refused)
            assert (await running.metrics())['warpfst_refused_total{code="queue_full"}'] == len(refused)
            assert (await running.post(3)).status_code == 200

    run(main())


def test_a_full_disk_refuses_and_recovers(monkeypatch):
    async def main():
        async with Running() as running:
            with monkeypatch.context() as full:
                def no_space(*_):
                    raise OSError(28, "No space left on device")

                full.setattr("warpfst.serve.requests._store", no_space)
                answer = await running.post(3)
                assert answer.status_code == 503 and answer.json()["error"]["code"] == "no_space" and "retry-after" in answer.headers
            assert (await running.post(3)).json()["text"] == TEXTS[3]

    run(main())


def test_a_failing_model_fails_its_requests_only(monkeypatch):
    async def main():
        async with Running() as running:
            model = running.server.models["cards"].model
            scores = model.scores

            def broken(pieces):
                if any(len(piece) == len(recording(4)) for piece in pieces):
                    raise ValueError("this piece")
                return scores(pieces)

            monkeypatch.setattr(model, "scores", broken)
            answers = await asyncio.gather(*(running.post(i) for i in (3, 4, 3, 4, 3)))
            assert [one.status_code for one in answers] == [200, 400, 200, 400, 200]
            monkeypatch.setattr(model, "scores", lambda pieces: 1 / 0)
            answer = await running.post(3)
            assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"

    run(main())


def test_keys_and_open_addresses():
    async def main():
        async with Running(api_keys=frozenset({"one", "two"}), admin_key="boss") as running:
            for key, status in ((None, 401), ("no", 401), ("one", 200), ("two", 200), ("boss", 200)):
                headers = {} if key is None else {"Authorization": f"Bearer {key}"}
                assert (await running.client.get("/v1/models", headers=headers)).status_code == status
                assert (await running.post(3, headers=headers)).status_code == status
                assert (await running.client.post("/v1/models/cards/reload", headers=headers)).status_code == (200 if key == "boss" else 401 if status == 401 else 403)
            for path in ("/", "/page.js", "/health", "/ready", "/metrics"):
                assert (await running.client.get(path)).status_code == 200
        async with Running() as running:
            assert (await running.client.post("/v1/models/cards/reload")).status_code == 403

    run(main())


def test_several_models_and_a_graph_that_is_replaced(tmp_path):
    """While requests run, the graph changes from cards to numbers. No request fails; an error leaves the old graph."""
    config = json.loads((CARDS / "config.json").read_text())
    config["acoustic_model"]["file"] = str(CARDS / config["acoustic_model"]["file"])
    config["tokens"] = str(CARDS / config["tokens"])
    config["graph"] = {"lexicon": str(CARDS / "lexicon.txt"), "phrases": "phrases.txt"}
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "phrases.txt").write_text("ten of clubs\nten of hearts\n")

    async def main():
        async with Running(models={"cards": str(CARDS), "small": str(folder)}, admin_key="boss") as running:
            assert [one["id"] for one in (await running.client.get("/v1/models")).json()["data"]] == ["cards", "small"]
            assert (await running.post(1, model="small")).json()["text"] == "ten of clubs"
            old = running.server.models["small"]
            stop, found = False, []

            async def ask():
                while not stop:
                    answer = await running.post(1, model="small")
                    assert answer.status_code == 200
                    found.append(answer.json()["text"])

            asking = [asyncio.create_task(ask()) for _ in range(4)]
            (folder / "phrases.txt").write_text("ten of hearts\n")
            headers = {"Authorization": "Bearer boss"}
            assert (await running.client.post("/v1/models/small/reload", headers=headers)).status_code == 200
            assert (await running.post(1, model="small")).json()["text"] == "ten of hearts"
            stop = True
            await asyncio.gather(*asking)
            assert set(found) <= {"ten of clubs", "ten of hearts"} and len(found) >= 4
            while old.decoder._address is not None:  # it is closed
                await asyncio.sleep(0.01)
            (folder / "phrases.txt").write_text("")
            answer = await running.client.post("/v1/models/small/reload", headers=headers)
            assert answer.status_code == 400 and answer.json()["error"]["code"] == "reload_failed"
            assert (await running.post(1, model="small")).json()["text"] == "ten of hearts"
            assert (await running.post(1)).json()["text"] == "ten of clubs"
            assert (await running.client.post("/v1/models/none/reload", headers=headers)).status_code == 404

    run(main())


def test_a_model_of_one_s_own(tmp_path):
    """Uploads are arrays for a model of arrays."""
    result, _ = alone(3)
    model = open_model(CARDS, "cpu", 1)
    log_probs, lengths = model.scores([recording(3)])
    source = f"""
from warpfst.transcribe import ArrayModel
from warpfst.transcribe.models import open_model

class Mine(ArrayModel):
    sample_rate, frame_shift, decoder_options = 25, 0.04, {{"min_active": 200}}

    def __init__(self, device, num_threads):
        self._cards = open_model({str(CARDS)!r}, device, num_threads)

    def build_graph(self):
        return self._cards.build_graph()
"""
    (tmp_path / "mine_served.py").write_text(source)
    file = io.BytesIO()
    np.save(file, log_probs[0, : lengths[0]])

    async def main():
        async with Running(models={"Mine": f"{tmp_path}/mine_served.py:Mine"}) as running:
            answer = await running.client.post("/v1/audio/transcriptions", files={"file": ("a.npy", file.getvalue())})
            assert answer.json()["text"] == result.text
            assert (await running.post(3, path="/v1/align", text="five")).status_code == 400
            assert not (await running.client.get("/v1/models/Mine")).json()["live"]

    run(main())


def test_a_transducer(tmp_path, rng):
    """Its recordings, phrases, alignment and live audio. It is random, so the words mean nothing."""
    transducer_folder(tmp_path, rng)
    model = open_model(tmp_path, "cpu", 1)
    with model.decoder(None, {"lattice_beam": 8.0}) as decoder:
        wanted = [result.text for result in decoder.decode(*model.scores([recording(3), recording(4)]))]

    async def main():
        async with Running(models={"toy": str(tmp_path)}) as running:
            assert [(await running.post(i)).json()["text"] for i in (3, 4)] == wanted
            assert all(wanted)
            text = f"{wanted[0]} {wanted[1]}"
            words = (await running.post(3, path="/v1/align", text=text)).json()["words"]
            assert [one["word"] for one in words] == text.split()
            async with running.connect() as ws:
                await ws.send((recording(3) * 32767).astype("<i2").tobytes())
                await ws.send('{"end": true}')
                final = [json.loads(message) async for message in ws][-1]
            assert final["type"] == "final" and final["text"]

    run(main())


@pytest.mark.skipif(not SPHINX.exists(), reason="no pocketsphinx-en-us")
def test_a_sphinx_model(tmp_path):
    """With a small graph, whose sentences are cards."""
    graph = wf.build_hmm_graph(SPHINX / "en-us", SPHINX / "cmudict-en-us.dict", phrases=[*EXPECTED_CARDS])
    graph.save(tmp_path / "cards.wfst")

    async def main():
        async with Running(models={"en": str(SPHINX)}, graphs={"en": str(tmp_path / "cards.wfst")}) as running:
            assert (await running.post(3)).json()["text"] == "seven of clubs"
            words = (await running.post(3, path="/v1/align", text="seven of clubs")).json()["words"]
            assert [one["word"] for one in words] == ["seven", "of", "clubs"] and words[0]["end"] <= words[1]["start"] + 1e-6
            async with running.connect() as ws:
                await ws.send((recording(3) * 32767).astype("<i2").tobytes())
                await ws.send('{"end": true}')
                assert [json.loads(message) async for message in ws][-1]["text"] == "seven of clubs"

    run(main())


def test_batches_take_similar_items_urgent_first_and_drop_cancelled_ones():
    async def main():
        from concurrent.futures import ThreadPoolExecutor

        seen, block = [], threading.Event()

        def work(items):
            block.wait(5)
            seen.append(list(items))
            return [ValueError(item) if item == 13 else item + 1 for item in items]

        with ThreadPoolExecutor(1) as thread:
            batches = Batches(work, lambda item: item, 40, thread)
            first = asyncio.create_task(batches.put(1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            puts = [asyncio.create_task(batches.put(item, urgent=item >= 100)) for item in (10, 11, 13, 9, 20, 100, 12, 200)]
            dropped = asyncio.create_task(batches.put(10))
            await asyncio.sleep(0)
            dropped.cancel()
            block.set()
            answers = await asyncio.gather(first, *puts, return_exceptions=True)
            assert [str(one) for one in answers] == ["2", "11", "12", "13", "10", "21", "101", "13", "201"]
            assert seen == [[1], [100], [10, 11, 13], [200], [9, 12], [20]] and len(batches) == 0

    run(main())


def test_batches_try_items_alone_when_a_batch_fails():
    async def main():
        from concurrent.futures import ThreadPoolExecutor

        def work(items):
            if 3 in items:
                raise RuntimeError("three")
            return items

        with ThreadPoolExecutor(1) as thread:
            batches = Batches(work, lambda _: 1, 10, thread)
            answers = await asyncio.gather(*(batches.put(item) for item in (1, 2, 3, 4)), return_exceptions=True)
            assert answers[:2] == [1, 2] and str(answers[2]) == "three" and answers[3] == 4

    run(main())


class Program:
    """`python -m warpfst serve` as a process."""

    def __init__(self, *arguments, **environment):
        command = [sys.executable, "-m", "warpfst", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.lines = []
        self._found = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._found.wait(60), self.lines
        self.port = int(self.lines[-1].rpartition(":")[2]) if self.process.poll() is None else None

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            if "ready at" in line:
                self._found.set()
        self._found.set()

    def until(self, text):
        end = time.monotonic() + 30
        while not any(text in line for line in self.lines):
            assert time.monotonic() < end, self.lines
            time.sleep(0.02)


def _curl(port, *arguments):
    return subprocess.run(["curl", "-s", *arguments, f"http://localhost:{port}/v1/audio/transcriptions"], capture_output=True, text=True).stdout


def test_the_program_stops_when_what_has_begun_is_done(tmp_path):
    (tmp_path / "keys").write_text("abc\n\nd-e_f.1\n")
    (tmp_path / "long.wav").write_bytes(wav(np.tile(recording(3), 60)))
    program = Program("--model", str(CARDS), "--api-keys", str(tmp_path / "keys"), "--max-seconds", "3")
    file = ["-F", f"file=@{CARDS}/card3.wav"]
    assert json.loads(_curl(program.port, *file))["error"]["code"] == "invalid_api_key"
    key = ["-H", "Authorization: Bearer d-e_f.1"]
    assert json.loads(_curl(program.port, *key, *file))["text"] == TEXTS[3]
    program.process.send_signal(signal.SIGHUP)
    program.until("was loaded again")
    answers = []
    asking = threading.Thread(target=lambda: answers.append(_curl(program.port, *key, "-F", f"file=@{tmp_path}/long.wav")))
    asking.start()
    time.sleep(0.3)
    program.process.send_signal(signal.SIGTERM)
    program.until("a second signal")
    assert json.loads(_curl(program.port, *key, *file))["error"]["code"] == "stopping"
    asking.join()
    assert json.loads(answers[0])["text"].startswith("seven of clubs")
    assert program.process.wait(20) == 0, program.lines


def test_a_killed_program_starts_again_and_a_port_in_use_is_an_error():
    program = Program("--model", str(CARDS))
    assert json.loads(_curl(program.port, "-F", f"file=@{CARDS}/card3.wav"))["text"] == TEXTS[3]
    second = subprocess.run([sys.executable, "-m", "warpfst", "serve", "--model", str(CARDS), "--port", str(program.port)], capture_output=True, text=True, timeout=60)
    assert second.returncode != 0 and "address already in use" in second.stderr
    program.process.kill()
    program.process.wait()
    again = Program("--model", str(CARDS), "--port", str(program.port))
    assert json.loads(_curl(again.port, "-F", f"file=@{CARDS}/card3.wav"))["text"] == TEXTS[3]
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(20) == 0, again.lines


def test_wrong_command_lines(capsys, tmp_path):
    (tmp_path / "keys").write_text("a b\n")
    for arguments, message in (
        (["--model", "nowhere"], "nowhere"),
        (["--model", str(CARDS), "--model", str(CARDS)], "given twice"),
        (["--model", str(CARDS), "--graph", "x=y"], "no such model"),
        (["--model", str(CARDS), "--option", "baem=3"], "baem"),
        (["--model", str(CARDS), "--api-keys", str(tmp_path / "keys")], "expected keys"),
        (["--model", str(CARDS), "--api-keys", str(tmp_path / "none")], "none"),
    ):
        assert main([*arguments, "--port", "0"]) == 2
        assert message in capsys.readouterr().err, arguments
    given = settings(parser().parse_args(["--model", "a=models/x", "--model", "models/y", "--model", "z.py:Name", "--graph", "y=g.wfst", "--queue", "7", "--option", "beam=12"]))
    assert given.models == {"a": "models/x", "y": "models/y", "Name": "z.py:Name"} and given.graphs == {"y": "g.wfst"}
    assert given.limits == Limits(queue=7) and given.options["beam"] == 12
    assert settings(parser().parse_args(["--model", "models/y", "--graph", "g.wfst"])).graphs == {"y": "g.wfst"}


def test_health_and_readiness_while_models_load(tmp_path):
    (tmp_path / "slow_served.py").write_text(
        f"import time\nfrom warpfst.transcribe.models import open_model\n\ndef slow(device, threads):\n    time.sleep(1)\n    return open_model({str(CARDS)!r}, device, threads)\n"
    )

    async def main():
        async with Running(models={"slow": f"{tmp_path}/slow_served.py:slow"}, wait=False) as running:
            assert (await running.client.get("/health")).status_code == 200
            ready = await running.client.get("/ready")
            assert ready.status_code == 503 and ready.json() == {"ready": False, "models": {"slow": False}}
            answer = await running.post(3)
            assert answer.status_code == 503 and answer.json()["error"]["code"] == "loading" and answer.headers["retry-after"]
            await running.server.loaded.wait()
            assert (await running.client.get("/ready")).status_code == 200
            assert (await running.post(3)).json()["text"] == TEXTS[3]
        with pytest.raises(ValueError, match="no models"):
            Running(models={})

    run(main())


def test_the_commands_of_the_page():
    """Those of docs/how-to/server.md, with another port."""
    program = Program("--model", str(CARDS))
    text = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8").replace("localhost:8000", f"localhost:{program.port}")
    commands = re.findall(r"^```sh\n(curl .*?)\n```\n```\n(.*?)\n```$", text, re.MULTILINE)
    assert len(commands) == 2
    for command, output in commands:
        assert subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT).stdout == output
    (code,) = re.findall(r"^```py\n(from openai .*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT).stdout == "ten of clubs\n"
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(20) == 0


def test_the_client_of_thirty_lines():
    """examples/serve/live_client.py sends a recording as a microphone would."""
    program = Program("--model", str(CARDS))
    client = ROOT / "examples" / "serve" / "live_client.py"
    assert len(client.read_text().splitlines()) <= 36
    made = subprocess.run([sys.executable, client, str(CARDS / "card3.wav"), f"ws://localhost:{program.port}"], capture_output=True, text=True, timeout=60)
    assert made.stdout.splitlines()[-1] == TEXTS[3], (made.stdout, made.stderr)
    program.process.send_signal(signal.SIGTERM)
    assert program.process.wait(20) == 0
