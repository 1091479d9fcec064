"""The command `warpfst serve`: parses the command line, and runs the application in uvicorn until a signal stops it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Any

from ..errors import Error
from ..transcribe.audio import need
from ..transcribe.command import Formatter, decoder_options, number
from .settings import Limits, Settings, Windowing

EPILOG = """examples:
  warpfst serve --model examples/cards
  warpfst serve --model en=models/en --model de=models/de --graph en=en.wfst --device cuda --port 80 --host 0.0.0.0
  curl -F file=@examples/cards/card1.wav -F model=cards localhost:8000/v1/audio/transcriptions

The page at http://localhost:8000 shows live captions. SIGTERM and Ctrl-C stop the server once what has begun is done, a second one at once.
SIGHUP loads the models again and replaces them while they work. Keys of clients are lines of the file --api-keys, the admin's key is in $WARPFST_ADMIN_KEY."""
_LIMITS, _WINDOWING = Limits(), Windowing()


def parser() -> argparse.ArgumentParser:
    usage = "warpfst serve --model [NAME=]FOLDER [--port N] [--device cuda]"
    made = argparse.ArgumentParser("warpfst serve", usage=usage, description="Serves models over HTTP and WebSocket, with a page for live captions.", epilog=EPILOG, formatter_class=Formatter)
    add, positive = made.add_argument, number(1e-3, 1e9)
    whole = number(1, 1e12, int)
    add("--model", action="append", required=True, metavar="[NAME=]FOLDER", help="required: model as for `warpfst transcribe`; may be repeated (default of NAME: the folder's)")
    add("--graph", action="append", default=[], metavar="[NAME=]FILE", help="decoding graph of a model: read if the file exists, else built and written to it (default: the model's)")
    add("--host", default="localhost", help="address to listen on; 0.0.0.0: all (default: localhost)")
    add("--port", type=number(0, 65535, int), default=8000, metavar="N", help="port; 0: a free one, which is printed (default: 8000)")
    add("--device", default="cpu", help="cpu, cuda or cuda:N (default: cpu)")
    add("--option", action="append", default=[], metavar="NAME=VALUE", help="option of the decoder, such as beam=12 (may be repeated; see warpfst options decoder)")
    add("--num-threads", type=number(0, 1024, int), default=0, metavar="N", help="number of threads; 0: one per processor (default: 0)")
    add("--batch-seconds", type=positive, default=60.0, metavar="S", help="seconds of audio per batch, with padding (default: 60)")
    add("--max-seconds", type=positive, default=30.0, metavar="S", help="cut recordings longer than this many seconds at quiet places (default: 30)")
    add("--api-keys", type=pathlib.Path, metavar="FILE", help="file with a key on each line, one of which clients must send (default: none is needed)")
    add("--origin", action="append", default=[], metavar="URL", help="another site whose pages may use the server (may be repeated)")
    add("--upload-bytes", type=whole, default=_LIMITS.upload_bytes, metavar="N", help="most bytes of a request (default: 104857600)")
    add("--audio-seconds", type=positive, default=_LIMITS.audio_seconds, metavar="S", help="most seconds of a recording (default: 7200)")
    add("--upload-seconds", type=positive, default=_LIMITS.upload_seconds, metavar="S", help="seconds in which a request must arrive (default: 120)")
    add("--queue", type=whole, default=_LIMITS.queue, metavar="N", help="most requests that wait or run (default: 64)")
    add("--streams", type=whole, default=_LIMITS.streams, metavar="N", help="most live connections (default: 64)")
    add("--idle-seconds", type=positive, default=_LIMITS.idle_seconds, metavar="S", help="close live connections that send nothing for so long (default: 30)")
    add("--stop-seconds", type=positive, default=_LIMITS.stop_seconds, metavar="S", help="seconds for what has begun when the server stops (default: 30)")
    add("--left-seconds", type=number(0, 60), default=_WINDOWING.left, metavar="S", help="live audio before new audio that the model sees (default: 8)")
    add("--step-seconds", type=number(0.01, 10), default=_WINDOWING.step, metavar="S", help="live audio that is scored at a time (default: 0.32)")
    add("--right-seconds", type=number(0, 10), default=_WINDOWING.right, metavar="S", help="live audio after new audio that the model sees (default: 0.48)")
    add("--begin-db", type=number(-120, 0), default=_WINDOWING.begin_db, metavar="DB", help="a live utterance begins with a frame louder than this, in dB of full scale (default: -34)")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info", help="info: a line for each request (default: info)")
    return made


def _named(given: Sequence[str], what: str, default: str | None = None) -> dict[str, str]:
    """NAME=VALUE of flags. Without NAME it is the last part of VALUE, or `default`."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or os.sep in name:
            name, value = default or pathlib.Path(text.rpartition(":")[2] if ".py:" in text else text).resolve().name, text
        if name in found:
            raise ValueError(f"{what} {name!r} is given twice: {found[name]} and {value}; name them, NAME={value}")
        found[name] = value
    return found


def _keys(file: pathlib.Path | None) -> frozenset[str]:
    if file is None:
        return frozenset()
    keys = frozenset(line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    if not keys or not all(key.isascii() and key.replace("-", "").replace("_", "").replace(".", "").isalnum() for key in keys):
        raise ValueError(f"{file}: expected keys of letters, digits, '-', '_' and '.', one on each line")
    return keys


def settings(arguments: argparse.Namespace) -> Settings:
    """The settings of a command line."""
    models = _named(arguments.model, "the model")
    return Settings(
        models=models,
        graphs=_named(arguments.graph, "the graph of", next(iter(models)) if len(models) == 1 else None),
        device=arguments.device,
        options=decoder_options(arguments),
        num_threads=arguments.num_threads,
        batch_seconds=arguments.batch_seconds,
        max_seconds=arguments.max_seconds,
        windowing=Windowing(arguments.left_seconds, arguments.step_seconds, arguments.right_seconds, arguments.begin_db),
        limits=Limits(**{name: getattr(arguments, name) for name in Limits._fields if hasattr(arguments, name)}),
        api_keys=_keys(arguments.api_keys),
        admin_key=os.environ.get("WARPFST_ADMIN_KEY") or None,
        origins=frozenset(arguments.origin),
    )


def _http(limits: Limits) -> Any:
    """uvicorn's HTTP that limits the bytes of headers, whose connections are cut off if the headers of a request take too long."""
    base: Any = need("uvicorn.protocols.http.h11_impl", "serve").H11Protocol

    class Http(base):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.call_later(limits.upload_seconds, self._end)

        def connection_lost(self, why: Exception | None) -> None:
            self._deadline.cancel()
            super().connection_lost(why)

        def on_response_complete(self) -> None:
            self._deadline.cancel()
            self._deadline = self.loop.call_later(limits.upload_seconds, self._end)
            super().on_response_complete()

        def handle_websocket_upgrade(self, *event: Any) -> None:
            self._deadline.cancel()
            super().handle_websocket_upgrade(*event)

        def _end(self) -> None:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.abort()

    return Http


def _websocket(limits: Limits) -> Any:
    """uvicorn's WebSockets, whose connections are cut off if the client does not take part in their close, or reads nothing."""
    base: Any = need("uvicorn.protocols.websockets.auto", "serve").AutoWebSocketsProtocol

    class Socket(base):  # type: ignore[misc]
        async def run_asgi(self) -> None:
            try:
                await super().run_asgi()
            finally:
                self.loop.call_later(limits.send_seconds, self.transport.abort)

    return Socket


def uvicorn_config(app: Any, limits: Limits, **options: Any) -> Any:
    """uvicorn's settings for the application. Without its pings: answers are read after the audio before them, so a server that is behind would take its clients for gone; `limits` find those."""
    from .live import MOST_BYTES

    frame = 2 * MOST_BYTES  # compressed noise grows, and too long ones get a reason
    websockets = {"ws": _websocket(limits), "ws_max_size": frame, "ws_max_queue": 8, "ws_ping_interval": None}
    return need("uvicorn", "serve").Config(app, http=_http(limits), **websockets, timeout_graceful_shutdown=2, **options)


def _allow_many_files() -> None:
    """Raises the soft limit of open files, of which each connection is one."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(given: Settings, host: str, port: int, log_level: str) -> int:
    """Serves until a signal. The first one lets requests and utterances that have begun end; uvicorn then closes the rest."""
    for module in ("starlette", "python_multipart", "websockets", "prometheus_client"):
        need(module, "serve")
    uvicorn: Any = need("uvicorn", "serve")
    from .app import create_app  # now that all packages are there
    from .server import Server

    _allow_many_files()
    server = Server(given)
    config = uvicorn_config(create_app(given, server), given.limits, host=host, port=port, log_level=log_level)
    loop, stops = asyncio.get_running_loop(), 0

    class Stopping(uvicorn.Server):  # type: ignore[misc]
        def handle_exit(self, _sig: int, _frame: Any) -> None:
            loop.call_soon_threadsafe(stop)

    running, tasks = Stopping(config), set()

    async def drain() -> None:
        await server.drain()
        running.should_exit = True

    def stop() -> None:
        nonlocal stops
        stops += 1
        if stops == 1:
            print("warpfst serve: stops; a second signal stops at once", file=sys.stderr, flush=True)
            tasks.add(loop.create_task(drain()))
        else:
            server.num_requests = server.num_streams = 0
            running.should_exit = running.force_exit = True

    async def reload() -> None:
        for name in given.models:
            try:
                await server.reload(name)
                print(f"warpfst serve: {name} was loaded again", file=sys.stderr, flush=True)
            except Exception as why:  # noqa: BLE001 - models of others raise anything
                print(f"warpfst serve: {name} stays as it was: {why}", file=sys.stderr, flush=True)

    async def watch() -> None:
        await server.loaded.wait()
        if server.failure is not None:
            running.should_exit = True
            return
        while not running.started:
            await asyncio.sleep(0.01)
        address = running.servers[0].sockets[0].getsockname()
        print(f"warpfst serve: ready at http://{host}:{address[1]}", file=sys.stderr, flush=True)

    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, lambda: tasks.add(loop.create_task(reload())))
    tasks.add(loop.create_task(watch()))
    await running.serve()
    if server.failure is not None:
        raise server.failure
    return 0 if running.started else 2


def main(given: Sequence[str]) -> int:
    arguments = parser().parse_args(given)
    try:
        return asyncio.run(_run(settings(arguments), arguments.host, arguments.port, arguments.log_level))
    except (Error, ValueError, OSError, RuntimeError, ImportError) as why:
        print(f"warpfst serve: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
