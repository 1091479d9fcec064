"""Speech recognition over WebSocket: a page records from the microphone and shows words while they are spoken. README.md describes the messages.

    python examples/server/server.py --model examples/cards        # then open http://localhost:8000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pathlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from aiohttp import WSCloseCode, WSMessage, WSMsgType, web
from windows import Window, Windows

import warpfst as wf
from warpfst.transcribe.models import Model, open_model

PAGE = pathlib.Path(__file__).with_name("index.html")
MOST_BYTES = 1 << 17  # of a message: 4 s of audio


class Refused(Exception):
    """The connection is closed with a code and a reason."""

    def __init__(self, code: int, reason: object) -> None:
        super().__init__(code, str(reason).encode()[:120])


class Server:
    """The model, the decoder and the open connections. `idle_seconds`: a client that sends nothing for so long is disconnected; `send_seconds`: one that reads nothing."""

    def __init__(self, model: Model, *, connections: int = 32, threads: int = 1, idle_seconds: float = 30, send_seconds: float = 10) -> None:
        self._model, self._threads, self._limit = model, ThreadPoolExecutor(threads), connections
        self._idle_seconds, self._send_seconds = idle_seconds, send_seconds
        self._decoder = model.decoder(None, {"num_threads": threads})
        self._streams = wf.AsyncStreams(self._decoder)
        self.open: set[web.WebSocketResponse] = set()

    def app(self) -> web.Application:
        app = web.Application()
        app.add_routes([web.get("/", self._page), web.get("/stream", self._connect)])
        app.cleanup_ctx.append(self._until_shutdown)
        app.on_shutdown.append(self._close_all)
        return app

    async def _page(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(PAGE)

    async def _close_all(self, _: web.Application) -> None:
        await asyncio.gather(*(ws.close(code=WSCloseCode.GOING_AWAY, message=b"the server stops") for ws in list(self.open)))

    async def _until_shutdown(self, _: web.Application) -> AsyncIterator[None]:
        yield
        self._threads.shutdown()
        self._decoder.close()

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        origin = request.headers.get("Origin")  # sent by browsers: pages of other sites may not use this server
        if origin is not None and origin.partition("://")[2] != request.host:
            raise web.HTTPForbidden(text="wrong origin")
        ws = web.WebSocketResponse(heartbeat=20, max_msg_size=MOST_BYTES)
        await ws.prepare(request)
        if len(self.open) >= self._limit:
            await ws.close(code=WSCloseCode.TRY_AGAIN_LATER, message=b"too many connections")
            return ws
        self.open.add(ws)
        try:
            async with self._streams.stream(frame_shift=self._model.frame_shift) as stream:
                await Connection(self, ws, stream).serve()
            await ws.close()
        except Refused as why:
            await ws.close(code=why.args[0], message=why.args[1])
        except asyncio.TimeoutError:  # the client reads nothing, so it would not read a close message
            if request.transport is not None:
                request.transport.abort()
        except (ConnectionError, wf.StateError):  # the client left, or the server stops
            pass
        except Exception:
            await ws.close(code=WSCloseCode.INTERNAL_ERROR, message=b"the server failed")
            raise
        finally:
            self.open.discard(ws)
        return ws

    async def scores(self, window: Window) -> np.ndarray:
        """Log-probabilities, [frames, tokens]. Computed in a thread, because the event loop must not wait."""
        log_probs, lengths = await asyncio.get_running_loop().run_in_executor(self._threads, self._model.scores, [window.samples])
        return log_probs[0, window.begin : lengths[0] if window.end is None else min(window.end, lengths[0])]


class Connection:
    def __init__(self, server: Server, ws: web.WebSocketResponse, stream: Any) -> None:
        self._server, self._ws, self._stream, self._shift = server, ws, stream, server._model.frame_shift
        self._windows = Windows(round(self._shift * server._model.sample_rate))

    async def _send(self, **message: Any) -> None:
        await asyncio.wait_for(self._ws.send_str(json.dumps(message)), self._server._send_seconds)

    async def _receive(self) -> WSMessage:
        try:
            return await self._ws.receive(self._server._idle_seconds)
        except asyncio.TimeoutError:
            raise Refused(WSCloseCode.POLICY_VIOLATION, f"no message for {self._server._idle_seconds:g} s") from None

    async def serve(self) -> None:
        """Until the client ends or leaves. Messages wait in the network while earlier ones are decoded."""
        while (message := await self._receive()).type in (WSMsgType.BINARY, WSMsgType.TEXT):
            if message.type == WSMsgType.BINARY:
                if len(message.data) % 2:
                    raise Refused(WSCloseCode.INVALID_TEXT, "audio of an odd number of bytes, expected 16-bit samples")
                self._windows.add(np.frombuffer(message.data, "<i2").astype(np.float32) / 32768)
                await self._decode()
                continue
            try:
                command = json.loads(message.data)
            except (ValueError, RecursionError) as why:
                raise Refused(WSCloseCode.INVALID_TEXT, f"not JSON: {why}") from None
            if command == {"end": True}:
                return await self._decode(at_end=True)
            if not isinstance(command, dict) or set(command) != {"boost"} or not isinstance(command["boost"], dict):
                raise Refused(WSCloseCode.INVALID_TEXT, 'expected {"boost": {PHRASE: NATS}} or {"end": true}')
            try:
                await self._stream.set_boost(command["boost"])
            except (wf.Error, ValueError, TypeError) as why:
                await self._send(type="error", message=str(why))

    async def _decode(self, at_end: bool = False) -> None:
        while (window := self._windows.next(at_end)) is not None:
            event, partial = await self._stream.advance(await self._server.scores(window))
            if event.endpoint or window.end is None:
                await self._finish(event.endpoint)
            else:
                await self._send(type="partial", text=partial.text, stable=partial.num_stable)

    async def _finish(self, endpoint: int) -> None:
        """Sends the words of the utterance, with times in seconds since the connection began, and waits for the next utterance."""
        result, begin = await self._stream.finish(), self._windows.utterance
        words = [{"word": word.text, "start": round((begin + word.start) * self._shift, 3), "end": round((begin + word.end) * self._shift, 3)} for word in result.words]
        await self._send(type="final", text=result.text, words=words, endpoint=endpoint)
        await self._stream.reset()
        self._windows.end_utterance()


def main() -> None:
    parser = argparse.ArgumentParser(description="Speech recognition over WebSocket, with a page that records from the microphone.")
    parser.add_argument("--model", type=pathlib.Path, default=PAGE.parents[1] / "cards", metavar="FOLDER", help="CTC model folder as for `warpfst transcribe` (default: spoken playing cards)")
    parser.add_argument("--host", default="localhost", help="address to listen on (default: localhost)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--connections", type=int, default=32, metavar="N", help="most clients at a time (default: 32)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of the model and of the search (default: 1)")
    arguments = parser.parse_args()
    server = Server(open_model(arguments.model, "cpu", 1), connections=arguments.connections, threads=arguments.threads)
    web.run_app(server.app(), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
