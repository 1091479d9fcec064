"""Recordings over HTTP: /v1/audio/transcriptions as OpenAI has it, and /v1/align."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import pathlib
import re
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from typing import Any, NamedTuple, TypeVar

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..decoder import Decoder
from ..errors import Error, OutOfMemoryError, StateError
from ..transcribe.outputs import TimedWord
from ..transcribe.partial import Part
from ..transcribe.pipeline import ENDS_RUN, transcript_of
from . import answers
from .server import Served, Server
from .settings import Refused, checked_phrases

T = TypeVar("T")
_ALIGN_BEAM = 100.0
_ALIGN_SECONDS = 600.0  # the search holds all frames of a recording
_BLOCK_BYTES = 1 << 20
_OURS = (*ENDS_RUN, OutOfMemoryError, StateError)  # errors that are not the client's
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


class Wanted(NamedTuple):
    """What a request asks for."""

    form: str
    granularities: tuple[str, ...]
    stream: bool
    phrases: dict[str, float | None] | None


def phrases_of_prompt(prompt: str) -> dict[str, float | None]:
    """The phrases of a prompt, which are separated by commas, full stops and line ends. `seven of hearts: 3` gives a boost in nats."""
    phrases: dict[str, float | None] = {}
    for part in re.split(r"[,;!?\n]|\.(?=\s|$)", prompt):
        phrase, _, nats = part.partition(":")
        with contextlib.suppress(ValueError):
            phrases.update(checked_phrases({phrase: float(nats) if nats.strip() else None}))
    return phrases


def _text(form: FormData, name: str, default: str = "") -> str:
    value = form.get(name, default)
    if not isinstance(value, str):
        raise Refused(400, f"{name} is a file, expected text", param=name)
    return value


def _vocabulary(form: FormData) -> dict[str, float | None] | None:
    """The phrases of the fields `vocabulary` and `prompt`; None: there are none."""
    phrases = phrases_of_prompt(_text(form, "prompt"))
    if given := _text(form, "vocabulary"):
        try:
            phrases.update(checked_phrases(json.loads(given)))
        except (ValueError, RecursionError) as why:
            raise Refused(400, f"vocabulary: {why}", param="vocabulary") from None
    return phrases or None


def wanted(form: FormData) -> Wanted:
    kind = _text(form, "response_format", "json")
    if kind not in answers.FORMATS:
        raise Refused(400, f"response_format {kind!r}, expected one of {', '.join(answers.FORMATS)}", param="response_format")
    given = [str(one) for name in ("timestamp_granularities[]", "timestamp_granularities") for one in form.getlist(name)]
    if wrong := [one for one in given if one not in answers.GRANULARITIES]:
        raise Refused(400, f"timestamp_granularities {wrong[0]!r}, expected word or segment", param="timestamp_granularities")
    return Wanted(kind, tuple(given) or ("segment",), _text(form, "stream").lower() in ("true", "1"), _vocabulary(form))


def _store(upload: UploadFile, folder: str) -> pathlib.Path:
    """Copies an upload to a file of its own, which models read. The end of its name is kept, because some readers need it."""
    suffix = pathlib.PurePath(upload.filename or "").suffix
    with tempfile.NamedTemporaryFile(dir=folder, suffix=suffix if re.fullmatch(r"\.[A-Za-z0-9]{1,8}", suffix) else "", delete=False) as file:
        try:
            while block := upload.file.read(_BLOCK_BYTES):
                file.write(block)
        except BaseException:
            pathlib.Path(file.name).unlink()
            raise
    return pathlib.Path(file.name)


class Requests:
    """Answers requests of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @contextlib.asynccontextmanager
    async def _received(self, request: Request) -> AsyncIterator[tuple[FormData, pathlib.Path]]:
        """The fields of a request, and the file with its recording."""
        try:
            form = await asyncio.wait_for(request.form(max_files=1, max_fields=100), self._server.limits.upload_seconds)
        except asyncio.TimeoutError:
            raise Refused(408, f"the request did not arrive within {self._server.limits.upload_seconds:g} s", "upload_too_slow") from None
        try:
            upload = form.get("file")
            if not isinstance(upload, UploadFile):
                raise Refused(400, "no file: the field 'file' of multipart/form-data holds the recording", "missing_file", param="file")
            path = await self._server.in_thread(_store, upload, self._server.folder)
        finally:
            await form.close()
        try:
            yield form, path
        finally:
            path.unlink(missing_ok=True)

    async def transcribe(self, request: Request) -> Response | _Events:
        """POST /v1/audio/transcriptions. What is opened here is closed when the answer is sent, which may be a stream of events."""
        async with contextlib.AsyncExitStack() as opened:
            opened.enter_context(self._server.request())
            with _full_disk():
                form, path = await opened.enter_async_context(self._received(request))
            served = opened.enter_context(self._server.find(_text(form, "model")).used())
            ask = await self._server.in_thread(wanted, form)  # long prompts take a while
            if ask.stream:
                return _Events(self._events(served, path, ask.phrases), opened.pop_all())
            transcript = transcript_of("", path, await _unless_gone(request, self._all_parts(served, path, ask.phrases)), served.model.sample_rate)
            return Response(answers.body(transcript, ask.form, ask.granularities), media_type=answers.MEDIA_TYPES[ask.form])
        raise AssertionError

    async def _all_parts(self, served: Served, path: pathlib.Path, phrases: dict[str, float | None] | None) -> list[Part]:
        parts = self._server.parts(served, path, phrases)
        try:
            with _refusals():
                return [part async for part in parts]
        finally:
            await parts.aclose()

    async def _events(self, served: Served, path: pathlib.Path, phrases: dict[str, float | None] | None) -> AsyncGenerator[str, None]:
        """Server-sent events: the text of each piece, then the whole text; or an error."""
        done: list[Part] = []
        parts = self._server.parts(served, path, phrases)
        try:
            with _refusals():
                async for part in parts:
                    text = " ".join(word.text for word in part.words)
                    if text:
                        before = any(one.words for one in done)
                        yield _event({"type": "transcript.text.delta", "delta": f" {text}" if before else text})
                    done.append(part)
            transcript = transcript_of("", path, done, served.model.sample_rate)
            yield _event({"type": "transcript.text.done", "text": transcript.text, "usage": answers.usage(transcript.seconds)})
        except Refused as why:
            yield _event({"type": "error", **answers.error(why.status, why, why.code, why.param)})
        finally:
            await parts.aclose()

    async def align(self, request: Request) -> Response:
        """POST /v1/align: when the words of `text` are said in `file`."""
        async with contextlib.AsyncExitStack() as opened:
            opened.enter_context(self._server.request())
            with _full_disk():
                form, path = await opened.enter_async_context(self._received(request))
            served = opened.enter_context(self._server.find(_text(form, "model")).used())
            text = " ".join(_text(form, "text").split())
            if not text:
                raise Refused(400, "no text to align", "missing_text", param="text")
            words = await _unless_gone(request, self._aligned(served, path, text))
            return JSONResponse({"text": text, "words": [answers.timed(word) for word in words]})
        raise AssertionError

    async def _aligned(self, served: Served, path: pathlib.Path, text: str) -> list[TimedWord]:
        with _refusals():
            seconds = await self._server.in_thread(served.model.seconds, path)
            if seconds > _ALIGN_SECONDS:
                raise Refused(413, f"the recording has {seconds:.0f} s, the most that is aligned is {_ALIGN_SECONDS:g} s", "audio_too_long", param="file")
            scores, places = await self._server.all_scores(served, path)
            return await self._server.in_thread(_align, served, scores, places, text)


def _align(served: Served, scores: Any, places: list[tuple[int, int, int]], text: str) -> list[TimedWord]:
    """The words of the text with times in seconds: the only path of its graph is decoded."""
    model = served.model
    try:
        graph = model.text_graph(text)
    except NotImplementedError:
        raise Refused(400, f"the model {served.name!r} cannot align", "cannot_align", param="model") from None
    except (Error, ValueError) as why:
        raise Refused(400, f"text: {why}", "invalid_text", param="text") from why
    with Decoder(graph, served.decoder.config, transducer=model.transducer, beam=_ALIGN_BEAM, max_active=1_000_000, lattice_beam=0) as decoder:
        result = decoder.decode([scores])[0]
    if result.error is not None:
        raise result.error
    if [word.text for word in result.words] != text.split():
        raise Refused(400, "the text does not fit the recording", "text_does_not_fit", param="text")

    def seconds(frame: int) -> float:
        first, begin, end = next(place for place in reversed(places) if place[0] <= frame or place is places[0])
        return float(min(begin / model.sample_rate + (frame - first) * model.frame_shift, end / model.sample_rate))

    return [TimedWord(word.text, seconds(word.start), seconds(max(word.end - 1, word.start)) + model.frame_shift) for word in result.words]


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with a recording or its phrases is the client's error."""
    try:
        yield
    except _OURS:
        raise
    except (Error, ValueError, TypeError) as why:
        raise Refused(400, str(why) or type(why).__name__, "invalid_request") from why


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as why:
        if why.errno in _NO_SPACE:
            raise Refused(503, "the server has no space for the recording", "no_space", retry_after=30) from why
        raise


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """The result of the work, which is cancelled if the client leaves."""

    async def gone() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.1)

    task, watch = asyncio.ensure_future(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Refused(499, "the client left", "client_left")
        return task.result()
    finally:
        for one in (task, watch):
            one.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class _Events:
    """An answer of server-sent events. Closes what belongs to the request after the last event, or when the client leaves."""

    def __init__(self, events: AsyncGenerator[str, None], opened: contextlib.AsyncExitStack) -> None:
        self._events, self._opened = events, opened

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = StreamingResponse(self._events, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        async with self._opened:
            try:
                await answer(scope, receive, send)
            finally:
                await self._events.aclose()
