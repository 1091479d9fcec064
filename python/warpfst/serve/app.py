"""The ASGI application: which address is answered by what; keys and origins."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import pathlib
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from . import live
from .answers import error
from .requests import Requests
from .server import Server
from .settings import Refused, Settings

PAGE = pathlib.Path(__file__).with_name("page")
_OPEN = ("/", "/page.js", "/health", "/ready", "/metrics")  # without a key
_KEY_PROTOCOL = "warpfst-key."  # browsers cannot set headers of a WebSocket, but its protocols
_CONTENT = {"Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; connect-src 'self'"}


def _same(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode(), key.encode())


def _given_key(connection: HTTPConnection) -> str:
    kind, _, key = connection.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return key.strip()
    protocols = connection.scope.get("subprotocols", [])
    return next((one[len(_KEY_PROTOCOL) :] for one in protocols if one.startswith(_KEY_PROTOCOL)), "")


class _Gate:
    """Checks origin, key and size of every request, and counts the answers."""

    def __init__(self, app: Any, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection, begin, status = HTTPConnection(scope), time.monotonic(), 500

        async def counted(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await asyncio.wait_for(send(message), self._server.limits.send_seconds)  # a client that reads nothing

        try:
            self._check(connection)
        except Refused as why:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 1008, "reason": str(why)})  # before accepting: 403
            else:
                await _refusal(self._server, why)(scope, receive, counted)
            return
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, self._limited(receive), counted)
        finally:
            path = _counted_path(scope["path"])
            self._server.metrics.requests.labels(path, str(status)).inc()
            self._server.metrics.request_seconds.labels(path).observe(time.monotonic() - begin)

    def _check(self, connection: HTTPConnection) -> None:
        settings, path = self._server.settings, connection.scope["path"]
        origin = connection.headers.get("origin")  # sent by browsers: pages of other sites may not use this server
        if origin is not None and origin.partition("://")[2] != connection.headers.get("host") and origin not in settings.origins:
            raise Refused(403, "pages of this origin may not use the server", "wrong_origin")
        keys = {*settings.api_keys, *([settings.admin_key] if settings.admin_key else [])}
        if path not in _OPEN and settings.api_keys and not any(_same(_given_key(connection), key) for key in keys):
            raise Refused(401, "the API key is missing or wrong: Authorization: Bearer KEY", "invalid_api_key")
        length = connection.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > settings.limits.upload_bytes:
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, f"the request has more than {self._server.limits.upload_bytes} bytes", "request_too_large", param="file")

    def _limited(self, receive: Any) -> Any:
        """Receives a body whose length was not announced."""
        count = 0

        async def limited() -> Any:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self._server.limits.upload_bytes:
                raise self._too_large()
            return message

        return limited


def _counted_path(path: str) -> str:
    """The path as a label of metrics, of which there are few."""
    return path if path in (*_OPEN, "/v1/models", "/v1/align", "/v1/audio/transcriptions") else "other"


def _refusal(server: Server, why: Refused) -> Response:
    server.metrics.refused.labels(why.code).inc()
    headers = {} if why.retry_after is None else {"Retry-After": str(why.retry_after)}
    return JSONResponse(error(why.status, why, why.code, why.param), why.status, headers)


class _Answers:
    """The short answers. Those about recordings are in requests.py and live.py."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def page(self, _: Request) -> Response:
        return FileResponse(PAGE / "index.html", headers=_CONTENT)

    async def script(self, _: Request) -> Response:
        return FileResponse(PAGE / "page.js", media_type="text/javascript")

    async def health(self, _: Request) -> Response:
        """The process works. It may still load models."""
        return JSONResponse({"status": "ok"}) if self._server.failure is None else JSONResponse({"status": "failed"}, 503)

    async def ready(self, _: Request) -> Response:
        """All models are loaded, and the server does not stop."""
        models = {name: name in self._server.models for name in self._server.settings.models}
        return JSONResponse({"ready": self._server.is_ready, "models": models}, 200 if self._server.is_ready else 503)

    async def metrics(self, _: Request) -> Response:
        return Response(self._server.metrics.text(), media_type=self._server.metrics.content_type)

    def _described(self, name: str) -> dict[str, Any]:
        served = self._server.find(name)
        return {"id": name, "object": "model", "created": served.created, "owned_by": "warpfst", "sample_rate": served.model.sample_rate, "live": served.is_live}

    async def models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described(name) for name in self._server.models]})

    async def model(self, request: Request) -> Response:
        return JSONResponse(self._described(request.path_params["name"]))

    async def reload(self, request: Request) -> Response:
        """POST /v1/models/NAME/reload with the admin key."""
        key, name = self._server.settings.admin_key, request.path_params["name"]
        if key is None or not _same(_given_key(request), key):
            raise Refused(403, "models are loaded again with the admin key", "not_admin")
        self._server.find(name)
        try:
            await self._server.reload(name)
        except Exception as why:
            raise Refused(400, f"the model {name!r} stays as it was: {why}", "reload_failed", param="model") from why
        return JSONResponse(self._described(name))


def create_app(settings: Settings, server: Server | None = None, *, wait: bool = False) -> Starlette:
    """The application, for any ASGI server with one process. Models are loaded in the background once it runs; /ready answers 200 when they are.

    server  made with the same settings, for programs that look at it
    wait    the application starts when all models are loaded, and fails to start if one cannot be
    """
    made = Server(settings) if server is None else server
    requests, short = Requests(made), _Answers(made)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        loading = asyncio.create_task(made.load())
        try:
            if wait:
                await loading
                if made.failure is not None:
                    raise made.failure
            yield
        finally:
            await made.drain()
            loading.cancel()
            made.close()

    async def stream(websocket: WebSocket) -> None:
        await live.connect(made, websocket)

    async def refused(_: Request, why: Exception) -> Response:
        assert isinstance(why, Refused)
        return _refusal(made, why)

    async def wrong(_: Request, why: Exception) -> Response:
        assert isinstance(why, HTTPException)
        return JSONResponse(error(why.status_code, why.detail), why.status_code, why.headers)

    async def failed(_: Request, why: Exception) -> Response:
        return JSONResponse(error(500, f"the server failed: {type(why).__name__}"), 500)

    app = Starlette(
        routes=[
            Route("/", short.page),
            Route("/page.js", short.script),
            Route("/health", short.health),
            Route("/ready", short.ready),
            Route("/metrics", short.metrics),
            Route("/v1/models", short.models),
            Route("/v1/models/{name}", short.model),
            Route("/v1/models/{name}/reload", short.reload, methods=["POST"]),
            Route("/v1/audio/transcriptions", requests.transcribe, methods=["POST"]),
            Route("/v1/align", requests.align, methods=["POST"]),
            WebSocketRoute("/v1/audio/stream", stream),
        ],
        exception_handlers={Refused: refused, HTTPException: wrong, Exception: failed},
        lifespan=lifespan,
    )
    app.add_middleware(_Gate, server=made)
    app.state.server = made
    return app
