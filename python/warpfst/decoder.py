"""The decoder and its results."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import Handle, Progress, ProgressGuard, as_dict, call, check, check_list, create, lib, report_warnings
from .errors import ArgumentError, Error, StateError
from .fst.container import Fst
from .graphs import Graph, Path
from .joining import Joiner
from .options import DecoderConfig, Options, c_options
from .results import Completing, Result, Results, Word, WordTexts
from .scorers import AnyLM, Boost, BoostCache, for_batch, lm_scorer
from .scores import LEGACY_STREAM, Batch
from .streams import Partial, Stream, StreamEvent, event_of
from .symbols import ExtendedSymbols, Symbols
from .transducer import Transducer

if TYPE_CHECKING:
    from concurrent.futures import Future

    from typing_extensions import Unpack

    from ._option_types import DecoderOptions, LatticeDeterminizeOptions, StreamOptions

class Decoder(Handle):
    """Beam search over a graph.

        decoder = Decoder(graph, beam=15, max_active=10000, acoustic_scale=0.7, device="cuda")
        for result in decoder.decode(log_probs, lengths): print(result.text)

    graph        a Graph, an Fst, or the path of a graph's file
    config       options as a DecoderConfig, or as keywords: see below
    words        symbol table of the output labels (default: the graph's own; without one, words
                 are numbers)
    lm           a language model of any kind (LM, RnnLM), its path, a Scorer, or a list of these.
                 Its cost is added to each word while decoding. If the graph already contains a
                 language model, that model's costs must be subtracted: with a difference
                 (`LM.convert(..., subtract=)`) or a Scorer (`Scorer.from_rnnlm(..., small=)`). A
                 file that is no .wlm, or an LM in memory, is first converted in a temporary file;
                 to convert it only once, use `LM.convert`
    determinize  `decode` also determinizes the lattices (lattice_beam), on all threads, while
                 other utterances are searched. True: within lattice_beam; or a dict of options
                 (`describe("lattice_determinize")`). Lattices of streams are not determinized
    confidences, nbest, mbr
                 with determinize, what these threads make, too: confidences of words, lists of the
                 `nbest` best word sequences, words of minimum Bayes risk. Else who first reads a
                 word or a list has those of the whole batch made, on all threads, after the search
    keep_raw     False, with determinize: results have only the compact lattice; less memory
    confidence_scale
                 factor on the costs of paths in confidences and minimum Bayes risk. 0, the
                 default, stands for 0.24 / sqrt(acoustic_scale), at most 1, which is calibrated:
                 of words with a confidence of about 0.8, about 80% are right
                 (docs/how-to/word-times.md)
    join         the graph's words are tokens, and results have the words that they make
                 (docs/how-to/open-vocabulary.md). A text is the token between words; True finds
                 it, or the marks of words, in the table. Lattices and `Results.words` have tokens
    transducer   a Transducer or its file. `decode` then takes encoder outputs, [frames, encoder
                 size], in place of log_probs (docs/how-to/transducers.md)

    A decoder runs one call at a time; calls from other threads wait. For threads that decode at the
    same time, make one decoder for each; they can share the graph. Pickling stores the graph and the
    options. Errors: ArgumentError for options and arguments that are wrong, UnsupportedError for what
    the device cannot do.
    """

    _free = lib.wf_decoder_free

    def __init__(
        self,
        graph: Graph | Fst | Path,
        config: DecoderConfig | None = None,
        *,
        words: Symbols | None = None,
        lm: AnyLM | Sequence[AnyLM] | None = None,
        determinize: bool | LatticeDeterminizeOptions = False,
        confidences: bool = True,
        nbest: int = 0,
        mbr: bool = False,
        keep_raw: bool = True,
        confidence_scale: float = 0,
        join: bool | str = False,
        transducer: Transducer | Path | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        """See the class."""
        self.graph = graph if isinstance(graph, Graph) else Graph(graph) if isinstance(graph, Fst) else Graph.load(graph)
        base = check(config, DecoderConfig, "config") if config is not None else DecoderConfig()
        self.config: DecoderConfig = base.replace(**options) if options else base
        self._own_words = words if words is None else check(words, Symbols, "words")
        self._table = words if words is not None else self.graph._table
        self._join = join
        self._texts = WordTexts(self._table, joiner=Joiner(self.words, join if isinstance(join, str) else None) if join is not False else None)
        self._lock = threading.RLock()  # re-entrant, so that a call from a progress callback is detected instead of blocking
        self._busy = False
        self._stream = LEGACY_STREAM
        from concurrent.futures import ThreadPoolExecutor  # imported here, because programs without a decoder need not wait for it

        self._worker = ThreadPoolExecutor(1, "warpfst")  # of decode_async
        self._scored = False
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._boosts = BoostCache(None if lm is None else lm_scorer(lm, self.words), self.graph.fst.isymbols, self._texts.joiner)
        self.transducer = transducer if transducer is None or isinstance(transducer, Transducer) else Transducer.open(transducer)
        if self.transducer is None:
            super().__init__(create("wf_decoder_create", self.graph.address, self.config.as_c().pointer))
        else:
            super().__init__(create("wf_decoder_create_transducer", self.graph.address, self.transducer.address, self.config.as_c().pointer))
        self._num_nbest = nbest
        self._lattice_results = {"determinize": determinize, "confidences": confidences, "nbest": nbest, "mbr": mbr, "keep_raw": keep_raw, "confidence_scale": confidence_scale}
        if not isinstance(determinize, (bool, Mapping)):
            raise TypeError(f"determinize={determinize!r}, expected True, False or a dict of options")
        nat = (self.config["acoustic_scale"] or 1) if self.transducer is not None else 1  # a transducer's lattice_beam is in nats of the model
        limits = {"beam": min(self.config["lattice_beam"] * nat, 1e30), "num_threads": self.config["num_threads"], **(determinize if isinstance(determinize, Mapping) else {})}
        wanted = {name: value for name, value in self._lattice_results.items() if name != "determinize"}
        scale = Options("lattice_results", **wanted)["confidence_scale"] or lib.wf_confidence_scale(self.config["acoustic_scale"])
        self._completing = Completing(self.config["lattice_beam"], limits, confidences, scale)
        if determinize is not False:
            call("wf_decoder_set_determinization", self.address, c_options("lattice_determinize", limits))
            call("wf_decoder_set_lattice_results", self.address, c_options("lattice_results", wanted))
        elif nbest or mbr or not keep_raw:
            raise ArgumentError("nbest, mbr and keep_raw=False need determinize=True; without it, call nbest() or mbr() of a result")
        self.set_boost(None)

    @property
    def words(self) -> Symbols | None:
        """The table of the output labels."""
        return self._table.whole() if isinstance(self._table, ExtendedSymbols) else self._table

    def __reduce__(self) -> Any:
        if self._scored:
            raise TypeError("a decoder with a scorer cannot be pickled: set language model and boosts after unpickling")
        if self.transducer is not None:
            raise TypeError("a decoder with a transducer cannot be pickled")
        return _restore, (self.graph, self.config, self._own_words, {**self._lattice_results, "join": self._join})

    def close(self) -> None:
        """Frees the decoder. Waits for a running call of another thread. Batches of `decode_async` that have not begun fail."""
        for stream in list(self._streams):
            stream.close()
        if self._address is not None:
            with self._exclusive():
                super().close()
        self._worker.shutdown(wait=False, cancel_futures=True)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Runs one call at a time. Raises StateError in a function that the decoder itself calls, which may run in another thread: progress, predictor, joiner."""
        if self._busy and self.transducer is not None and self.transducer.is_running:
            raise StateError("called from a predictor or joiner of the same decoder")
        with self._lock:
            if self._busy:
                raise StateError("called from a callback of the same decoder")
            self._busy = True
            try:
                yield
            finally:
                self._busy = False
                if self.transducer is not None:
                    self.transducer.raise_stored()
        report_warnings()

    def set_stream(self, stream: Any) -> None:
        """Sets the CUDA stream on which GPU scores are produced. Decoding then waits for the work that is on this stream at the time of the call to `decode`.

        `stream` is a CUDA stream's address, or an object of torch (cuda_stream), cupy (ptr), or any with __cuda_stream__. Without this call, the legacy default
        stream is used, and DLPack asks producers to make it wait for their work, which is correct for producers on any stream. The stream must outlive the decoder's
        use of it.
        """
        if hasattr(stream, "__cuda_stream__"):
            stream = stream.__cuda_stream__()[1]
        handle = int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
        with self._exclusive():
            call("wf_decoder_set_stream", self.address, handle if handle > LEGACY_STREAM else None)
            self._stream = handle if handle != 0 else LEGACY_STREAM

    def set_boost(self, boost: Boost | None) -> None:
        """Sets the boosts of utterances for which `decode` is given none. None: no boosts."""
        scorer = self._boosts.scorer(boost, self._table)
        with self._exclusive():
            if scorer is not None or self._scored:
                call("wf_decoder_set_scorer", self.address, scorer and scorer.address)
            self._scored = scorer is not None

    def stream(self, **options: Unpack[StreamOptions]) -> Stream:
        """Opens a stream: an utterance whose scores arrive in chunks. Options: describe("stream")."""
        with self._exclusive():
            stream = Stream(self, c_options("stream", options))
        self._streams.add(stream)
        return stream

    def advance(self, streams: Sequence[Stream], chunks: Any, lengths: Any = None) -> list[StreamEvent]:
        """Decodes the next chunk of each stream, on all threads of the decoder. `chunks` and `lengths` are given as log_probs and lengths in `decode`."""
        with self._exclusive():
            batch = Batch(chunks, lengths, self._stream)
            if len(batch) != len(streams):
                raise ValueError(f"{len(batch)} chunks for {len(streams)} streams")
            addresses = (ctypes.c_void_p * len(streams))(*map(Stream._address_of, streams))
            events = (_abi.wf_stream_event * len(streams))()
            call("wf_streams_advance", self.address, addresses, batch.scores, len(streams), events)
            return [event_of(event) for event in events]

    def partials(self, streams: Sequence[Stream]) -> list[Partial]:
        """The partial result of each stream, made by all threads of the decoder. That of a stream that has failed has no words and no frames."""
        with self._exclusive():
            addresses = (ctypes.c_void_p * len(streams))(*map(Stream._address_of, streams))
            raw = (_abi.wf_partial * len(streams))()
            call("wf_streams_partial", self.address, addresses, len(streams), raw)
            return [stream._partial_of(one) for stream, one in zip(streams, raw)]

    def decode(
        self,
        log_probs: Any,
        lengths: Any = None,
        *,
        boost: Boost | Sequence[Boost | None] | None = None,
        graphs: Graph | Sequence[Graph | None] | None = None,
        progress: Progress | None = None,
    ) -> Results:
        """Decodes a batch. Returns a sequence of one Result per utterance, which does not depend on the other utterances.

        log_probs  natural logarithms: [frames, columns], [utterances, frames, columns], or a list of [frames, columns]. float32, float16 or bfloat16 arrays of numpy,
                   torch, cupy, jax, or any other object with the buffer protocol or DLPack, on the CPU or (if the decoder is on a GPU) on any GPU. On a GPU that is
                   not the decoder's, they are copied, and a warning says so once. Host memory is not copied, except float64, which is converted to float32. Scores
                   that look wrong give an InputWarning (check_scores=)
        lengths    number of frames of each utterance (default: all frames)
        boost      words and phrases to favour: {"word": nats, "two words": None}, a list or a set of them (see Scorer.boost), or a Scorer, for all utterances; or a
                   list with one of these or None per utterance. Phrases with words that the graph lacks are ignored, with a warning that names them
        graphs     the decoder's graph with added words (Graph.add_words), for all utterances; or a list with one or None per utterance
        progress   called from time to time with (stage, fraction); if it returns False, CancelledError is raised
        """
        return self._prepared(log_probs, lengths, boost, graphs)(progress)

    def decode_async(
        self,
        log_probs: Any,
        lengths: Any = None,
        *,
        boost: Boost | Sequence[Boost | None] | None = None,
        graphs: Graph | Sequence[Graph | None] | None = None,
    ) -> Future[Results]:
        """Starts `decode` in a thread of the decoder and returns a future: `result()` waits for the results or raises the error.

        Batches are decoded one at a time, in order. The scores are borrowed before this returns and must not change until the future is done; so must lists of boosts.
        Scores on a GPU: what is on the producer's current stream at this call is waited for. Decoding also waits for all work on the legacy default stream (or that
        of `set_stream`), so run the model of the next batch on another stream. In asyncio: `await asyncio.wrap_future(decoder.decode_async(...))`.
        """
        return self._worker.submit(self._prepared(log_probs, lengths, boost, graphs))

    def decode_batches(self, batches: Iterable[Any], *, ahead: int = 1) -> Iterator[Results]:
        """Decodes batches while the next ones are made: yields the results of each, in order.

            for results in decoder.decode_batches((model(features), lengths) for features, lengths in loader): ...

        `batches` gives log_probs, or tuples (log_probs, lengths), as `decode` takes them. Up to `ahead` batches are taken from it beyond the one whose results come
        next. An error of a batch is raised in its place and ends the iteration, as does closing the iterator; batches that have not begun are then dropped.
        """
        if ahead < 1:
            raise ValueError(f"ahead={ahead}, expected at least 1")
        pending: collections.deque[Future[Results]] = collections.deque()
        try:
            for batch in batches:
                pending.append(self.decode_async(*(batch if isinstance(batch, tuple) else (batch,))))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    def _prepared(
        self, log_probs: Any, lengths: Any, boost: Boost | Sequence[Boost | None] | None, graphs: Graph | Sequence[Graph | None] | None
    ) -> Callable[..., Results]:
        """Borrows the scores. Returns a function that decodes them."""
        batch = Batch(log_probs, lengths, self._stream)
        count = len(batch)
        if batch.device is not None and self.config["device"] in (None, "cpu"):
            raise ValueError("the scores are on a GPU, but the decoder is on the CPU: use Decoder(..., device='cuda'), or move the scores (x.cpu())")
        searched = None if graphs is None else _graph_of_each(graphs, count)
        scorers = None
        if boost is not None:
            tables = [self._table if graph is None else graph._table for graph in searched or [None] * count]
            scorers = for_batch(boost, tables, self._boosts)

        def search(progress: Progress | None = None) -> Results:
            with self._exclusive():
                with ProgressGuard(progress) as guard:
                    address = create("wf_batch_decode", self.address, batch.scores, _addresses(scorers), _addresses(searched), count, guard.pointer)
                return self._results(address, searched)

        return search

    def _texts_of(self, graph: Graph | None) -> WordTexts:
        """The texts of labels, for an utterance decoded with this graph."""
        table = None if graph is None else graph._table
        return WordTexts(table, self._texts) if isinstance(table, ExtendedSymbols) else self._texts

    def _take(self, result: Any, graph: Graph | None) -> Result:
        """Takes over a wf_result of a stream."""
        try:
            address = create("wf_batch_results_take", ctypes.byref(result), 1)
        except BaseException:
            lib.wf_result_free(result)
            raise
        return self._results(address, [graph])[0]

    def _results(self, address: int, graphs: Sequence[Graph | None] | None = None) -> Results:
        return Results(address, self._texts, self.graph, graphs, self._completing, self._num_nbest)

    def plan(self) -> dict[str, int]:
        """Bytes on each GPU of the largest batch so far (wf_plan). All 0 on the CPU."""
        plan = _abi.wf_plan()
        lib.wf_decoder_get_plan(self.address, ctypes.byref(plan))
        return as_dict(plan)

    def lm_stats(self) -> dict[str, float]:
        """Counters of n-gram models that GPUs read while decoding (`Scorer.from_lm(..., placement="hybrid")`); see wf_lm_stats. All 0 on the CPU.

        gpu_bytes, host_bytes     memory in use
        cache_hits, host_reads    n-grams found in the cache, and n-grams read from host memory
        bus_bytes                 bytes moved by these reads
        stall_cycles, stall_s     time that warps waited for them
        """
        stats = _abi.wf_lm_stats()
        lib.wf_decoder_get_lm_stats(self.address, ctypes.byref(stats))
        return as_dict(stats)

    def transducer_stats(self) -> dict[str, float]:
        """Where the time of batches went, of transducers on a GPU or behind functions; see wf_transducer_stats. All 0 for others.

        num_rounds, num_rows, num_contexts   rounds of requests, and rows of the joiner and of the predictor in them
        search_s, submit_s, wait_s           seconds that threads searched, that requests were sent (or functions ran), that nobody searched
        """
        stats = _abi.wf_transducer_stats()
        lib.wf_decoder_get_transducer_stats(self.address, ctypes.byref(stats))
        return as_dict(stats)

    def __repr__(self) -> str:
        return f"<Decoder: {self.graph!r}, {self.config!r}>" if self._address else "<Decoder, closed>"


def _addresses(objects: Sequence[Handle | None] | None) -> Any:
    """An array of C pointers, or None."""
    return None if objects is None else (ctypes.c_void_p * len(objects))(*(None if one is None else one.address for one in objects))


def _graph_of_each(graphs: Graph | Sequence[Graph | None], count: int) -> list[Graph | None]:
    if not isinstance(graphs, Sequence):
        return [check(graphs, Graph, "graphs")] * count
    each = [one if one is None else check(one, Graph, f"graphs[{i}]") for i, one in enumerate(check_list(graphs, "graphs"))]
    if len(each) != count:
        raise ValueError(f"{len(each)} graphs for {count} utterances")
    return each


def _restore(graph: Graph, config: DecoderConfig, words: Symbols | None, lattice_results: dict[str, Any]) -> Decoder:
    return Decoder(graph, config, words=words, **lattice_results)


def cuda_available() -> bool:
    """Whether decoding works on GPU 0. `cuda_reason` says why not."""
    return cuda_reason() is None


def cuda_reason() -> str | None:
    """None if decoding works on GPU 0, else the reason as text: no GPU backend (libwarpfst-cuda), no driver, no GPU."""
    loop = Graph(Fst.from_arcs([(0, 0, 1, 0, 0.0)], {0: 0.0}))
    try:
        Decoder(loop, device="cuda").close()
    except Error as error:
        return str(error)
    return None


def spot(decoder: Decoder, log_probs: Any, words: Iterable[str], *, lengths: Any = None, threshold: float = 0.5) -> list[list[Word]]:
    """Decodes a batch and returns the hits of listed words in each utterance (Result.spot). The decoder needs lattice_beam.

    `log_probs`, `lengths`: as in Decoder.decode. Raises the error of the first utterance that failed.
    """
    listed = words if isinstance(words, str) else list(words)
    return [result.spot(listed, threshold) for result in check(decoder, Decoder, "decoder").decode(log_probs, lengths)]
