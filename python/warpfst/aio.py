"""Streams for asyncio. The event loop never waits for the search: it runs in a thread of the decoder. Chunks that arrive meanwhile are decoded together in the next call."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._library import check
from .decoder import Decoder
from .errors import StateError
from .option_calls import document
from .options import c_options
from .results import Result
from .scorers import Boost
from .streams import Partial, Stream, StreamEvent

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ._option_types import StreamOptions
    from .graphs import Graph

T = TypeVar("T")


def answer_all(futures: Iterable[asyncio.Future[T]], answers: Iterable[T | Exception]) -> None:
    """Gives each future its answer or its error, but not those whose caller was cancelled."""
    for future, answer in zip(futures, answers):
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


class AsyncStreams:
    """Streams of one decoder, for one event loop.

        streams = wf.AsyncStreams(decoder)
        async with streams.stream() as stream:                  # one per connection
            async for chunk in connection:
                event, partial = await stream.advance(chunk)
            result = await stream.finish()

    One call of the decoder runs at a time; it decodes one chunk of every stream that has any. `partials=False`: advance returns None for the partial result.
    """

    def __init__(self, decoder: Decoder, *, partials: bool = True) -> None:
        self._decoder, self._partials = check(decoder, Decoder, "decoder"), partials
        self._waiting: list[tuple[Stream, Any, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None

    def stream(self, **options: Unpack[StreamOptions]) -> AsyncStream:
        """A stream, to be used in `async with`, which opens and closes it. Options: describe("stream")."""
        c_options("stream", options)  # wrong ones are reported here, and not when the stream is opened
        return AsyncStream(self, options)

    async def _run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Runs a call of the decoder in its thread, after all calls before."""
        try:
            future = self._decoder._worker.submit(function, *arguments, **options)
        except RuntimeError:
            raise StateError("the decoder is closed") from None
        return await asyncio.wrap_future(future)

    async def _accept(self, stream: Stream, chunk: Any) -> tuple[StreamEvent, Partial | None]:
        answer: asyncio.Future[tuple[StreamEvent, Partial | None]] = asyncio.get_running_loop().create_future()
        self._waiting.append((stream, chunk, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._decode_waiting())
        return await answer

    async def _decode_waiting(self) -> None:
        while self._waiting:
            batch, self._waiting = [one for one in self._waiting if not one[2].done()], []  # without those whose caller was cancelled
            streams, chunks = [one[0] for one in batch], [one[1] for one in batch]
            try:
                answers = await self._run(self._advance, streams, chunks)
            except Exception as error:  # noqa: BLE001 - every caller gets it; the decoder may be closed
                answers = [error] * len(batch)
            answer_all([one[2] for one in batch], answers)
        self._task = None

    def _advance(self, streams: Sequence[Stream], chunks: Sequence[Any]) -> list[Any]:
        """The event and the partial result of each stream, or its error."""
        try:
            events = self._decoder.advance(streams, list(chunks))
            partials: list[Any] = list(self._decoder.partials(streams)) if self._partials else [None] * len(events)
        except Exception as error:  # noqa: BLE001 - of one chunk, before any was decoded; its caller gets it
            return [error] if len(streams) == 1 else [answer for one in zip(streams, chunks) for answer in self._advance(one[:1], one[1:])]
        return list(zip(events, partials))


class AsyncStream:
    """A stream whose calls are awaited. Made by AsyncStreams.stream. Calls of one stream run in the order in which they were made."""

    def __init__(self, streams: AsyncStreams, options: StreamOptions) -> None:
        self._streams, self._options, self._lock = streams, options, asyncio.Lock()
        self._stream: Stream | None = None

    async def __aenter__(self) -> Self:
        self._stream = await self._streams._run(self._streams._decoder.stream, **self._options)
        return self

    async def __aexit__(self, *_: object) -> None:
        async with self._lock:
            stream, self._stream = self._open(), None
            with contextlib.suppress(StateError):  # a closed decoder has closed its streams
                await self._streams._run(stream.close)

    def _open(self) -> Stream:
        if self._stream is None:
            raise ValueError("the stream is not open: use it in `async with streams.stream() as stream`")
        return self._stream

    async def advance(self, chunk: Any) -> tuple[StreamEvent, Partial | None]:
        """Decodes the next chunk, [frames, columns]; it must not change until this returns. Returns the state and the partial result."""
        async with self._lock:
            return await self._streams._accept(self._open(), chunk)

    async def accept(self, chunk: Any) -> tuple[StreamEvent, Partial | None]:
        """The old name of `advance`."""
        warnings.warn("warpfst.AsyncStream.accept is now warpfst.AsyncStream.advance; the old name goes in version 0.4", DeprecationWarning, stacklevel=2)
        return await self.advance(chunk)

    async def finish(self) -> Result:
        """Ends the utterance. After that only `reset` is possible."""
        return await self._call(Stream.finish)

    async def reset(self) -> None:
        """Prepares the stream for a new utterance."""
        await self._call(Stream.reset)

    async def set_boost(self, boost: Boost | None) -> None:
        """Sets the boosts from the next chunk on: Stream.set_boost."""
        await self._call(Stream.set_boost, boost)

    async def set_graph(self, graph: Graph | None) -> None:
        """Sets the graph of the next utterances: Stream.set_graph."""
        await self._call(Stream.set_graph, graph)

    async def _call(self, method: Callable[..., T], *arguments: Any) -> T:
        async with self._lock:
            return await self._streams._run(method, self._open(), *arguments)


document([AsyncStreams])
