"""Live audio over WebSocket. docs/how-to/server.md describes the messages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from .. import notebook
from ..aio import AsyncStream
from ..errors import Error, StateError
from ..lattice import CompactLattice
from ..results import Result, Word
from ..transcribe.outputs import TimedWord
from .answers import timed
from .server import Served, Server
from .settings import Refused, checked_phrases
from .windows import Window, Windows

MOST_BYTES = 1 << 17  # of a message: 4 s of audio at 16 kHz
_NUM_BEST = 10
_BEAMS = (8.0, 5.0, 3.0, 2.0, 1.0)  # of lattices that are drawn, until the picture is small enough
_ENDED, _STOPS, _WRONG, _IDLE, _FAILED, _TOO_MANY = 1000, 1001, 1007, 1008, 1011, 1013


class Closed(Exception):
    """The connection is closed with a code and a reason."""

    def __init__(self, code: int, reason: object) -> None:
        super().__init__(str(reason))
        self.code = code


async def connect(server: Server, websocket: WebSocket) -> None:
    """Serves a connection until it ends. The client may name a `model`, and ask for `details` of utterances."""
    protocols = websocket.scope.get("subprotocols", [])
    await websocket.accept("warpfst" if "warpfst" in protocols else None)
    code, reason = _FAILED, "the server failed"
    try:
        async with server.stream():
            served = server.find(websocket.query_params.get("model"))
            if not served.is_live:
                raise Closed(_IDLE, f"the model {served.name!r} takes arrays, not audio")
            await Connection(server, websocket, served).serve()
        code, reason = _ENDED, ""
    except Refused as why:
        server.metrics.refused.labels(why.code).inc()
        code, reason = (_TOO_MANY if why.retry_after else _IDLE), str(why)
    except Closed as why:
        code, reason = why.code, str(why)
    except StateError:  # the decoder was closed
        code, reason = _STOPS, "the server stops"
    except (WebSocketDisconnect, ConnectionError):  # the client left
        return
    finally:
        if websocket.application_state == websocket.client_state == WebSocketState.CONNECTED:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(websocket.close(code, reason.encode()[:120].decode(errors="ignore")), server.limits.send_seconds)


class Connection:
    """A live connection: audio in, words out."""

    def __init__(self, server: Server, websocket: WebSocket, served: Served) -> None:
        self._server, self._websocket, self._served = server, websocket, served
        self._details = websocket.query_params.get("details") == "true"
        self._windows = self._new_windows()
        self._phrases: dict[str, float | None] = {}
        self._chunks: list[Any] = []  # scores of this utterance, for phrases that change within it
        self._arrived = 0.0
        self._begin = 0.0  # seconds of the connection at which _windows begins

    def _new_windows(self) -> Windows:
        model = self._served.model
        return Windows(model.sample_rate, model.frame_shift, self._server.settings.windowing)

    async def _send(self, **message: Any) -> None:
        try:
            await asyncio.wait_for(self._websocket.send_text(json.dumps(message, ensure_ascii=False)), self._server.limits.send_seconds)
        except asyncio.TimeoutError:
            raise ConnectionError("the client reads nothing") from None
        except RuntimeError:  # of uvicorn, after the client's close
            raise ConnectionError("the client left") from None

    async def _receive(self) -> dict[str, Any]:
        """The next message. While none arrives, a server that stops is noticed."""
        end = time.monotonic() + self._server.limits.idle_seconds
        receiving = asyncio.ensure_future(self._websocket.receive())
        try:
            while not receiving.done():
                await asyncio.wait((receiving,), timeout=0.2)
                if self._server.stopping and not receiving.done():
                    raise Closed(_STOPS, "the server stops")
                if not receiving.done() and time.monotonic() > end:
                    raise Closed(_IDLE, f"no message for {self._server.limits.idle_seconds:g} s")
            message: dict[str, Any] = dict(receiving.result())
        finally:
            receiving.cancel()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1006))
        self._arrived = time.monotonic()
        return message

    async def serve(self) -> None:
        """Until the client ends or leaves. A model that was replaced is left at the end of an utterance."""
        await self._send(type="ready", model=self._served.name, sample_rate=self._served.model.sample_rate)
        ended = False
        while not ended:
            with self._served.used() as served:
                async with served.streams.stream(frame_shift=served.model.frame_shift) as stream:
                    if self._phrases:
                        with contextlib.suppress(Error, ValueError, TypeError):  # the new graph may not know them
                            await stream.set_boost(self._phrases)
                    ended = await self._serve(stream)
            self._take_replacement()

    def _replacement(self) -> Served | None:
        made = self._server.models.get(self._served.name)
        return made if made is not None and made is not self._served and made.is_live and made.model.sample_rate == self._served.model.sample_rate else None

    def _take_replacement(self) -> None:
        made = self._replacement()
        if made is not None:
            self._begin += self._windows.scored * self._served.model.frame_shift
            rest = self._windows.rest()
            self._served = made
            self._windows = self._new_windows()
            self._windows.add(rest)

    async def _serve(self, stream: AsyncStream) -> bool:
        """Until the client ends (True), or the model is replaced and no utterance has begun (False)."""
        try:
            while self._windows.begun or self._replacement() is None:
                message = await self._receive()
                if message.get("bytes") is not None:
                    self._add(message["bytes"])
                    await self._decode(stream)
                elif await self._command(stream, message.get("text") or ""):
                    await self._decode(stream, at_end=True)
                    return True
        except Closed as why:
            if why.code == _STOPS:
                await self._decode(stream, at_end=True)
            raise
        return False

    def _add(self, data: bytes) -> None:
        import numpy as np

        if len(data) % 2:
            raise Closed(_WRONG, "audio of an odd number of bytes, expected 16-bit samples")
        if len(data) > MOST_BYTES:
            raise Closed(1009, f"a message of {len(data)} bytes, the most is {MOST_BYTES}")
        self._windows.add(np.frombuffer(data, "<i2").astype(np.float32) / 32768)

    async def _command(self, stream: AsyncStream, text: str) -> bool:
        """Follows a message of text. True: the client ends."""
        try:
            command = json.loads(text)
        except (ValueError, RecursionError) as why:
            raise Closed(_WRONG, f"not JSON: {why}") from None
        if command == {"end": True}:
            return True
        if not isinstance(command, dict) or set(command) != {"vocabulary"}:
            raise Closed(_WRONG, 'expected {"vocabulary": {PHRASE: NATS or null}} or {"end": true}')
        try:
            await self._set_phrases(stream, checked_phrases(command["vocabulary"]))
        except (Error, ValueError, TypeError) as why:
            await self._send(type="error", message=str(why))
        return False

    async def _set_phrases(self, stream: AsyncStream, phrases: dict[str, float | None]) -> None:
        """Sets the phrases. With lattices a search cannot change them on its way, so the utterance is decoded again up to here."""
        if phrases == self._phrases:
            return
        again, self._chunks = self._chunks, []
        if again:
            await stream.reset()
        try:
            await stream.set_boost(phrases or None)
            self._phrases = phrases
        finally:
            partial = None
            for chunk in again:
                _, partial = await stream.advance(chunk)
            self._chunks = again
        if partial is not None:
            await self._send_partial(partial)

    async def _send_partial(self, partial: Any) -> None:
        await self._send(type="partial", text=partial.text, stable=partial.num_stable, time=round(self._seconds(self._windows.scored), 3))

    def _seconds(self, frame: int) -> float:
        return self._begin + frame * self._served.model.frame_shift

    async def _scores(self, window: Window) -> Any:
        scores = await self._served.scores(window.samples, live=True)
        return scores[window.begin : window.end]

    async def _decode(self, stream: AsyncStream, at_end: bool = False) -> None:
        """Decodes the windows for which the audio has arrived."""
        metrics, name = self._server.metrics, self._served.name
        while (window := self._windows.next(at_end)) is not None:
            scores = await self._scores(window)
            event, partial = await stream.advance(scores)
            if self._served.has_lattices:
                self._chunks.append(scores)
            metrics.audio_seconds.labels(name, "live").inc(len(scores) * self._served.model.frame_shift)
            if event.endpoint or window.end is None:
                await self._finish(stream, event.endpoint)
                metrics.finals.labels(name).inc()
            else:
                await self._send_partial(partial)
            metrics.live_seconds.observe(time.monotonic() - self._arrived)

    async def _finish(self, stream: AsyncStream, endpoint: int) -> None:
        """Sends the words of the utterance, and waits for the next one."""
        result = await stream.finish()
        message = await self._server.in_thread(_final, result, self._seconds(self._windows.utterance), self._served.model.frame_shift, self._details)
        await self._send(type="final", endpoint=endpoint, time=round(self._seconds(self._windows.scored), 3), **message)
        await stream.reset()
        self._chunks = []
        self._windows.end_utterance()


def _final(result: Result, begin: float, shift: float, details: bool) -> dict[str, Any]:
    """An utterance: its words with times in seconds since the connection began; with details, its best texts and its lattice as a picture."""

    def timed_words(words: list[Word]) -> list[dict[str, Any]]:
        return [timed(TimedWord(word.text, begin + word.start * shift, begin + word.end * shift, word.confidence)) for word in words]

    message: dict[str, Any] = {"text": result.text, "words": timed_words(result.words)}
    if details and result.compact_lattice is not None:
        best = result.nbest(_NUM_BEST)
        message["nbest"] = [{"text": one.text, "cost": round(one.cost, 3), "words": timed_words(one.words or [])} for one in best]
        message["lattice"] = _picture(result.compact_lattice, shift)
    return message


def _picture(lattice: CompactLattice, shift: float) -> str | None:
    """SVG of the lattice, pruned until it can be read."""
    for beam in _BEAMS:
        pruned = lattice.prune(beam)
        if pruned.num_arcs <= notebook.MOST_ARCS:
            return notebook.picture(lambda path: pruned.draw(path, frame_shift=shift, max_arcs=notebook.MOST_ARCS))  # noqa: B023 - called before the next beam
    return None
