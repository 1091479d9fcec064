"""The models that are served: loaded in the background, used by requests and streams in common batches, replaced while running, closed when nobody uses them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import pathlib
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..aio import AsyncStreams
from ..decoder import Decoder
from ..results import Result
from ..transcribe.models import ArrayModel, Model, open_model
from ..transcribe.partial import Part
from ..transcribe.pipeline import part_of
from .batches import Batches
from .metrics import Metrics
from .settings import Refused, Settings

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
_READERS = 4  # threads that read recordings and describe results
_AHEAD = 4  # pieces of a recording that are decoded at a time
_LATTICE_BEAM = 8.0
_PLACE_SECONDS = 1.0  # that a new connection waits for a place


class _Utterance(NamedTuple):
    log_probs: Any
    boost: dict[str, float | None] | None


def _score(model: Model, name: str, metrics: Metrics, pieces: list[np.ndarray]) -> Sequence[Any]:
    begin = time.monotonic()
    log_probs, lengths = model.scores(pieces)
    metrics.batch_items.labels(name).observe(len(pieces))
    metrics.batch_seconds.labels(name).observe(time.monotonic() - begin)
    return [log_probs[i] if lengths is None else log_probs[i][: int(lengths[i])] for i in range(len(pieces))]


def _decode(decoder: Decoder, utterances: list[_Utterance]) -> Sequence[Result | Exception]:
    results = decoder.decode([one.log_probs for one in utterances], boost=[one.boost for one in utterances])
    return [result if result.error is None else result.error for result in results]


class Served:
    """A model with two decoders of one graph: one for recordings, one for streams, so that live words do not wait for recordings. For one event loop."""

    def __init__(self, name: str, model: Model, decoder: Decoder, live: Decoder, settings: Settings, metrics: Metrics) -> None:
        self.name, self.model, self.created = name, model, int(time.time())
        self._thread = ThreadPoolExecutor(1, "warpfst-model")  # a model is used by one thread at a time
        self._decoder, self.decoder = decoder, live
        self.streams = AsyncStreams(self.decoder)
        self.has_lattices = bool(decoder.config["lattice_beam"] > 0)
        samples = settings.batch_seconds * model.sample_rate
        self._scoring: Batches[np.ndarray, Any] = Batches(partial(_score, model, name, metrics), len, samples, self._thread)  # no cycle: a model that was replaced is freed at once
        self._decoding: Batches[_Utterance, Result] = Batches(partial(_decode, decoder), lambda one: len(one.log_probs), samples, decoder._worker)
        self._users, self._retired = 0, False

    @classmethod
    def load(cls, name: str, settings: Settings, metrics: Metrics) -> Served:
        """Opens the model and makes its graph. Takes long: run it in a thread."""
        model = open_model(settings.models[name], settings.device, settings.num_threads)
        options = {"device": settings.device, "num_threads": settings.num_threads, **settings.options}
        if "lattice_beam" not in options and "lattice_beam" not in model.decoder_options:
            options["lattice_beam"] = _LATTICE_BEAM
        graph = pathlib.Path(settings.graphs[name]) if name in settings.graphs else None
        decoder = model.decoder(graph, options)
        shared = type(model).decoder is Model.decoder  # a model's own way to make a decoder is taken twice
        live = Decoder(decoder.graph, decoder.config, transducer=model.transducer) if shared else model.decoder(graph, options)
        return cls(name, model, decoder, live, settings, metrics)

    @property
    def is_live(self) -> bool:
        """The model takes audio, which can be live."""
        return not isinstance(self.model, ArrayModel)

    async def scores(self, samples: np.ndarray, *, live: bool = False) -> Any:
        """Scores of a piece of audio, [frames, columns], made in a batch with those of other requests. Live ones come first."""
        return await self._scoring.put(samples, urgent=live)

    async def decode(self, log_probs: Any, boost: dict[str, float | None] | None) -> Result:
        """The result of scores, decoded in a batch with those of other requests."""
        return await self._decoding.put(_Utterance(log_probs, boost))

    @contextlib.contextmanager
    def used(self) -> Iterator[Served]:
        """While it is used, it is not closed."""
        self._users += 1
        try:
            yield self
        finally:
            self._users -= 1
            self._close_unused()

    def retire(self) -> None:
        """Closes it when its last user ends."""
        self._retired = True
        self._close_unused()

    def _close_unused(self) -> None:
        if self._retired and self._users == 0:
            self.close()

    def close(self) -> None:
        """Frees decoders and graph once a running batch ends. Work that waits fails."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self.decoder._worker.submit(self.decoder.close)
        self._decoder._worker.submit(self._decoder.close)


class Server:
    """Models, metrics and what is running. For one event loop; made by create_app."""

    def __init__(self, settings: Settings) -> None:
        if not settings.models:
            raise ValueError("no models to serve")
        if wrong := [name for name in settings.graphs if name not in settings.models]:
            raise ValueError(f"graph of {wrong[0]!r}: no such model; there are {', '.join(settings.models)}")
        self.settings, self.limits, self.metrics = settings, settings.limits, Metrics()
        self.models: dict[str, Served] = {}
        self.failure: Exception | None = None  # why the models could not be loaded
        self.stopping = False
        self.num_requests, self.num_streams = 0, 0
        self._places = asyncio.Semaphore(settings.limits.streams)  # for live connections
        self._readers = ThreadPoolExecutor(_READERS, "warpfst-reader")
        self._loading = asyncio.Lock()
        self.loaded = asyncio.Event()  # all models, or with an error
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_ready(self) -> bool:
        return len(self.models) == len(self.settings.models) and not self.stopping

    @property
    def folder(self) -> str:
        """The folder for uploads."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="warpfst-serve-", ignore_cleanup_errors=True)
        return self._folder.name

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Runs a call that reads files or takes a while. A call that has begun is not cancelled."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *arguments)

    async def load(self) -> None:
        """Loads all models. What fails is stored in `failure`."""
        try:
            for name in self.settings.models:
                await self.reload(name)
        except Exception as why:  # noqa: BLE001 - models of others raise anything
            self.failure = why
        finally:
            self.loaded.set()

    async def reload(self, name: str) -> None:
        """Reads model and graph again and puts them in the place of the old ones, which work until they are. Streams change at their next utterance. After an error, the old ones stay."""
        async with self._loading:
            made = await asyncio.get_running_loop().run_in_executor(None, Served.load, name, self.settings, self.metrics)
            old, self.models[name] = self.models.get(name), made
        if old is not None:
            old.retire()

    def find(self, name: str | None) -> Served:
        """A model by its name; "" or None: the first."""
        if self.stopping:
            raise Refused(503, "the server stops", "stopping", retry_after=5)
        known = name or next(iter(self.settings.models))
        if known not in self.settings.models:
            raise Refused(404, f"the model {known!r} does not exist; there are {', '.join(self.settings.models)}", "model_not_found", param="model")
        if known not in self.models:
            raise Refused(503, f"the model {known!r} is being loaded", "loading", retry_after=5)
        return self.models[known]

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """A place in the queue."""
        if self.stopping:
            raise Refused(503, "the server stops", "stopping", retry_after=5)
        if self.num_requests >= self.limits.queue:
            raise Refused(429, f"{self.num_requests} requests wait or run, which is the most", "queue_full", retry_after=1 + self.num_requests // 32)
        self.num_requests += 1
        self.metrics.queue.inc()
        try:
            yield
        finally:
            self.num_requests -= 1
            self.metrics.queue.dec()

    @contextlib.asynccontextmanager
    async def stream(self) -> AsyncIterator[None]:
        """A place among the live connections. If there is none it waits a little, because connections that clients have left still have theirs until their end is read."""
        try:
            await asyncio.wait_for(self._places.acquire(), _PLACE_SECONDS)
        except asyncio.TimeoutError:
            raise Refused(429, "too many streams", "too_many_streams", retry_after=5) from None
        self.num_streams += 1
        self.metrics.streams.inc()
        try:
            yield
        finally:
            self._places.release()
            self.num_streams -= 1
            self.metrics.streams.dec()

    async def _pieces(self, served: Served, path: pathlib.Path) -> AsyncGenerator[tuple[int, np.ndarray], None]:
        """The pieces of a recording as (begin, samples). Refused: it is too long, or cannot be read."""
        most = self.limits.audio_seconds

        def check(seconds: float) -> None:
            if seconds > most:
                raise Refused(413, f"the recording has {seconds:.0f} s or more, the most is {most:g} s", "audio_too_long", param="file")

        try:
            check(await self.in_thread(served.model.seconds, path))
            pieces = served.model.pieces(path, self.settings.max_seconds)
            while (piece := await self.in_thread(next, pieces, None)) is not None:
                check((piece[0] + len(piece[1])) / served.model.sample_rate)
                yield piece
        except (Refused, OSError, ImportError):
            raise
        except Exception as why:
            raise Refused(400, f"the file cannot be read: {str(why).replace(str(path), 'file')}", "invalid_audio", param="file") from why

    async def parts(self, served: Served, path: pathlib.Path, boost: dict[str, float | None] | None) -> AsyncGenerator[Part, None]:
        """The words of each piece of a recording, in order. Close the iterator if you leave early."""

        async def part(begin: int, samples: np.ndarray) -> Part:
            result = await served.decode(await served.scores(samples), boost)
            made = await self.in_thread(part_of, served.model, begin, len(samples), result)
            self.metrics.audio_seconds.labels(served.name, "recording").inc(len(samples) / served.model.sample_rate)
            return made

        running: collections.deque[asyncio.Task[Part]] = collections.deque()
        pieces = self._pieces(served, path)
        try:
            async for begin, samples in pieces:
                running.append(asyncio.create_task(part(begin, samples)))
                while len(running) >= _AHEAD:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await pieces.aclose()

    async def all_scores(self, served: Served, path: pathlib.Path) -> tuple[Any, list[tuple[int, int, int]]]:
        """The scores of a whole recording, [frames, columns], and for each piece its first frame, its first sample and its end."""
        import numpy as np

        scores, places, frame = [], [], 0
        pieces = self._pieces(served, path)
        try:
            async for begin, samples in pieces:
                made = np.asarray(await served.scores(samples))
                places.append((frame, begin, begin + len(samples)))
                scores.append(made)
                frame += len(made)
        finally:
            await pieces.aclose()
        return np.concatenate(scores), places

    async def drain(self) -> None:
        """Stops taking work, and waits until what has begun is done or stop_seconds have passed."""
        self.stopping = True
        end = time.monotonic() + self.limits.stop_seconds
        while (self.num_requests or self.num_streams) and time.monotonic() < end:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Closes all models and removes what is left of uploads."""
        self.stopping = True
        for served in self.models.values():
            served.close()
        self.models = {}
        self._readers.shutdown(wait=False, cancel_futures=True)
        if self._folder is not None:
            self._folder.cleanup()
