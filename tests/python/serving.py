"""A running server for the tests of `warpfst serve`, and recordings for it."""

import asyncio
import io
import os
import pathlib
import socket

import numpy as np
import pytest
from conftest import ROOT

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")
httpx = pytest.importorskip("httpx2")
pytest.importorskip("python_multipart")
pytest.importorskip("prometheus_client")
pytest.importorskip("onnxruntime")
soundfile = pytest.importorskip("soundfile")
websockets = pytest.importorskip("websockets.asyncio.client")
ConnectionClosed = pytest.importorskip("websockets.exceptions").ConnectionClosed

from warpfst.serve import Settings
from warpfst.serve.app import create_app
from warpfst.serve.command import uvicorn_config
from warpfst.serve.server import Server
from warpfst.transcribe import audio

CARDS = ROOT / "examples" / "cards"


def recording(number):
    return audio.read(CARDS / f"card{number}.wav", 16000)


def wav(samples):
    """The bytes of a WAV file: of a recording of the repository, or with these samples."""
    if isinstance(samples, int):
        return (CARDS / f"card{samples}.wav").read_bytes()
    file = io.BytesIO()
    soundfile.write(file, samples, 16000, format="WAV", subtype="PCM_16")
    return file.getvalue()


def background(samples, seconds, seed=1):
    """Noise with the level and the spectrum of the recording's first and last 50 ms, as a room would have it."""
    quiet, count = np.concatenate([samples[:800], samples[-800:]]), int(seconds * 16000)
    spectrum = np.abs(np.fft.rfft(quiet))
    spectrum = np.interp(np.linspace(0, 1, count // 2 + 1), np.linspace(0, 1, len(spectrum)), spectrum)
    noise = np.fft.irfft(spectrum * np.exp(2j * np.pi * np.random.default_rng(seed).random(len(spectrum))), count)
    return (noise * quiet.std() / noise.std()).astype(np.float32)


def run(main, seconds=120):
    return asyncio.run(asyncio.wait_for(main, seconds))


class Running:
    """The server on a free port, in this event loop. `wait`: until its models are loaded."""

    def __init__(self, *, send_buffer=None, wait=True, **options):
        self.settings = Settings(**{"models": {"cards": str(CARDS)}, "num_threads": 1, **options})
        self._send_buffer, self._wait = send_buffer, wait
        if not self.settings.models:
            Server(self.settings)

    async def __aenter__(self):
        listening = socket.socket()
        if self._send_buffer is not None:  # inherited by the connections
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
        listening.bind(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.server = Server(self.settings)
        config = uvicorn_config(create_app(self.settings, self.server), self.settings.limits, log_level="warning")
        self.uvicorn = uvicorn.Server(config)
        self.uvicorn.install_signal_handlers = lambda: None
        self._task = asyncio.create_task(self.uvicorn._serve([listening]))
        while not self.uvicorn.started:
            await asyncio.sleep(0.01)
        if self._wait:
            await self.server.loaded.wait()
            assert self.server.failure is None, self.server.failure
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.AsyncClient(base_url=self.url, timeout=60)
        return self

    async def __aexit__(self, *_):
        await self.client.aclose()
        await self.stop()

    async def stop(self):
        await self.server.drain()
        self.uvicorn.should_exit = True
        await self._task

    async def post(self, what, path="/v1/audio/transcriptions", headers=None, **fields):
        """Sends a recording by its number, samples, or the bytes of a file."""
        body = what if isinstance(what, bytes) else wav(what)
        return await self.client.post(path, files={"file": ("a.wav", body)}, data=fields, headers=headers)

    def connect(self, path="/v1/audio/stream", **options):
        return websockets.connect(f"ws://127.0.0.1:{self.port}{path}", **options)

    async def metrics(self):
        text = (await self.client.get("/metrics")).text
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))}

    async def none_left(self):
        """Waits until no request, connection and stream is left."""
        while self.server.num_requests or self.server.num_streams or any(stream._address for one in self.server.models.values() for stream in one.decoder._streams):
            await asyncio.sleep(0.01)

    def nothing_left(self):
        """No upload is left on disk."""
        assert self.server._folder is None or os.listdir(self.server._folder.name) == []
        assert pathlib.Path(self.server.folder).exists()
