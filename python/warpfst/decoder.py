"""The decoder and its results."""

from __future__ import annotations

import array
import contextlib
import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, Progress, ProgressGuard, as_dict, call, create, decode_text, exception_of, lib, report_warnings
from .errors import ArgumentError, Error, LimitError, StateError
from .fst import Fst
from .graphs import Graph, Path
from .lattice import CompactLattice, Lattice, LatticePath, WordAligner
from .options import DecoderConfig, c_options
from .scorers import AnyLM, Boost, BoostCache, for_batch, lm_scorer
from .scores import LEGACY_STREAM, Batch
from .streams import Partial, Stream, StreamEvent, event_of
from .symbols import ExtendedSymbols, Symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import DecoderOptions, StreamOptions

_FLAGS = {name[len("WF_RESULT_") :].lower(): bit for name, bit in vars(_abi).items() if name.startswith("WF_RESULT_")}


class Word(NamedTuple):
    """A word of the best path. Frames are half-open: [start, end). `confidence`: its posterior in the lattice; None without a lattice (lattice_beam)."""

    text: str
    start: int
    end: int
    label: int
    confidence: float | None = None


class Hypothesis(NamedTuple):
    """One of the n best word sequences. `words` has times, like Result.words; it is None if the graph has no word aligner (Graph.word_aligner)."""

    text: str
    labels: list[int]
    cost: float
    words: list[Word] | None = None


class Result:
    """The result of one utterance.

    An utterance can fail without affecting the others, for example because of NaN scores. Then `error` is the exception, and reading any attribute except
    `num_frames` raises it:
    ArgumentError for NaN scores or a matrix that does not fit the graph, OutOfMemoryError, LimitError.

    text            str: the words, separated by spaces
    words           list of Word(text, start, end, label, confidence): frames [start, end), from the first frame of the word's first token to the last frame of its
                    last token. With a lattice, `confidence` is the word's posterior; it is computed when `words` is first read
    cost            float, nats: graph_cost + acoustic_cost + scorer_cost of the best path; lower is better
    graph_cost      float, nats: arc weights and the final cost, minus word_score for each word
    acoustic_cost   float, nats: -acoustic_scale times the sum of the scores on the path
    scorer_cost     float, nats: costs from boosts and from language models used while decoding
    flags           frozenset of str:
                    "not_final"        no final state was reached
                    "narrowed"         max_active cut the beam in some frame
                    "overflow"         max_tokens cut the beam in some frame
                    "died"             no token was left at frame num_decoded
                    "times_estimated"  the graph has no word aligner for some words, so their times are estimates (Graph.word_aligner)
    alignment       array("i"): the input label of each frame; 0 for frames that blank_skip_threshold skipped
    lattice         Lattice of all paths within lattice_beam of the best; None without lattice_beam. Not included in pickles
    error           the exception, or None
    num_frames      number of frames of the scores
    num_decoded     number of frames decoded: num_frames, unless "died"
    num_tokens      tokens kept, summed over frames
    num_expanded    tokens expanded, summed over frames
    num_arcs        arcs expanded
    num_narrowed    frames in which max_active cut the beam
    nbest(n)        the n best word sequences
    """

    __slots__ = ("_aligner", "_compact", "_text_of", "_values", "error", "num_frames")

    text: str
    words: list[Word]
    cost: float
    graph_cost: float
    acoustic_cost: float
    scorer_cost: float
    flags: frozenset[str]
    alignment: array.array[int]
    num_decoded: int
    num_tokens: int
    num_expanded: int
    num_arcs: int
    num_narrowed: int
    lattice: Lattice | None

    def __init__(
        self, num_frames: int, values: dict[str, Any], error: Error | None, text_of: Callable[[int], str] = str, aligner: WordAligner | None = None
    ) -> None:
        self._text_of = text_of
        self._aligner = aligner
        self.num_frames = num_frames
        self.error = error
        self._values = values
        self._compact: CompactLattice | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in Result.__annotations__:
            raise AttributeError(f"Result has no attribute {name!r}")
        if self.error is not None:
            raise self.error
        if name == "words" and self._values["lattice"] is not None and self._compact is None:
            self._add_confidences()
        return self._values[name]

    def __reduce__(self) -> Any:
        """Pickles everything except the lattice."""
        return Result, (self.num_frames, {**self._values, "words": self.words, "lattice": None} if self._values else {}, self.error)

    def _determinized(self) -> CompactLattice:
        if self._compact is None:
            self._compact = self._values["lattice"].determinize(beam=self._values["lattice_beam"])
        return self._compact

    def _add_confidences(self) -> None:
        words: list[Word] = self._values["words"]
        try:
            confidences = self._determinized().confidences([word.label for word in words])
        except LimitError:  # the lattice is too large: leave out the confidences, like `warpfst decode --confidence`
            return
        self._values["words"] = [word._replace(confidence=confidence) for word, confidence in zip(words, confidences)]

    def nbest(self, n: int) -> list[Hypothesis]:
        """The n best word sequences, or fewer if fewer are within the decoder's lattice_beam of the best. Needs lattice_beam."""
        if self.lattice is None:
            raise ArgumentError("nbest needs a lattice: set lattice_beam, as in Decoder(..., lattice_beam=8)")
        return [
            Hypothesis(" ".join(self._text_of(label) for label in path.words), path.words, path.cost, self._timed(path)) for path in self._determinized().nbest(n)
        ]

    def _timed(self, path: LatticePath) -> list[Word] | None:
        if self._aligner is None:
            return None
        return [Word(self._text_of(word.label), word.start, word.end, word.label) for word in self._aligner.words(path.words, path.alignment)]

    def __repr__(self) -> str:
        return f"<Result: {self.error}>" if self.error is not None else f"<Result: {self.text!r}, cost {self.cost:.3f}>"


class Decoder(Handle):
    """Beam search over a graph.

        decoder = Decoder(graph, beam=15, max_active=10000, acoustic_scale=0.7, device="cuda")
        for result in decoder.decode(log_probs, lengths): print(result.text)

    Options are the library's (`describe("decoder")`), given as keywords or as a DecoderConfig. A decoder runs one call at a time; calls from other threads wait.
    For threads that decode at the same time, make one decoder for each; they can share the graph. Pickling stores the graph and the options.
    """

    _free = lib.wf_decoder_free

    def __init__(
        self,
        graph: Graph | Fst | Path,
        config: DecoderConfig | None = None,
        *,
        words: Symbols | None = None,
        lm: AnyLM | Sequence[AnyLM] | None = None,
        **options: Unpack[DecoderOptions],
    ) -> None:
        """`words`: symbol table of the output labels (default: the graph's own; without one, words are numbers).

        `lm`: a language model of any kind (LM, LargeLM, RnnLM), its path, a Scorer, or a list of these. Its cost is added to each word while decoding. If the graph
        already contains a language model, that model's costs must be subtracted: with a difference (`LargeLM.build(..., subtract=)`) or a Scorer
        (`Scorer.from_rnnlm(..., small=)`). An ARPA file or an LM is first converted to a LargeLM in a temporary file; to convert it only once, use `LargeLM.build`.
        """
        self.graph = graph if isinstance(graph, Graph) else Graph(graph) if isinstance(graph, Fst) else Graph.load(graph)
        base = config if config is not None else DecoderConfig()
        self.config: DecoderConfig = base.replace(**options) if options else base  # type: ignore[assignment]
        self._own_words = words
        self._table = words if words is not None else self.graph._table
        self._texts: dict[int, str] = {}
        self._lock = threading.RLock()  # re-entrant, so that a call from a progress callback is detected instead of blocking
        self._busy = False
        self._stream = LEGACY_STREAM
        self._scored = False
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._boosts = BoostCache(None if lm is None else lm_scorer(lm, self.words))
        super().__init__(create("wf_decoder_create", self.graph.address, self.config.as_c().pointer))
        self.set_boost(None)

    @property
    def words(self) -> Symbols | None:
        """The table of the output labels."""
        return self._table.whole() if isinstance(self._table, ExtendedSymbols) else self._table

    def __reduce__(self) -> Any:
        if self._scored:
            raise TypeError("a decoder with a scorer cannot be pickled: set language model and boosts after unpickling")
        return _restore, (self.graph, self.config, self._own_words)

    def close(self) -> None:
        """Frees the decoder. Waits for a running call of another thread."""
        for stream in list(self._streams):
            stream.close()
        if self._address is not None:
            with self._exclusive():
                super().close()

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Runs one call at a time. Raises StateError for a call from within a progress callback."""
        with self._lock:
            if self._busy:
                raise StateError("called from a progress callback of the same decoder")
            yield
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
            addresses = (ctypes.c_void_p * len(streams))(*(stream.address for stream in streams))
            events = (_abi.wf_stream_event * len(streams))()
            call("wf_streams_advance", self.address, addresses, batch.scores, len(streams), events)
            return [event_of(event) for event in events]

    def partials(self, streams: Sequence[Stream]) -> list[Partial]:
        """The partial result of each stream, made by all threads of the decoder. That of a stream that has failed has no words and no frames."""
        with self._exclusive():
            addresses = (ctypes.c_void_p * len(streams))(*(stream.address for stream in streams))
            raw = (_abi.wf_partial * len(streams))()
            call("wf_streams_partials", self.address, addresses, len(streams), raw)
            return [stream._partial_of(one) for stream, one in zip(streams, raw)]

    def decode(
        self,
        log_probs: Any,
        lengths: Any = None,
        *,
        boost: Boost | Sequence[Boost | None] | None = None,
        graphs: Graph | Sequence[Graph | None] | None = None,
        progress: Progress | None = None,
    ) -> list[Result]:
        """Decodes a batch. Returns one Result per utterance, which does not depend on the other utterances.

        log_probs  natural logarithms: [frames, columns], [utterances, frames, columns], or a list of [frames, columns]. float32, float16 or bfloat16 arrays of numpy,
                   torch, cupy, jax, or any other object with the buffer protocol or DLPack, on the CPU or (if the decoder is on a GPU) on that GPU. Host memory is not
                   copied, except float64, which is converted to float32. Scores that look wrong give an InputWarning (check_scores=)
        lengths    number of frames of each utterance (default: all frames)
        boost      words and phrases to favour, {"word": nats, "two words": None}, a set of them (see Scorer.boost), or a Scorer, for all utterances; or a list with
                   one of these or None per utterance
        graphs     the decoder's graph with added words (Graph.add_words), for all utterances; or a list with one or None per utterance
        progress   called from time to time with (stage, fraction); if it returns False, CancelledError is raised
        """
        with self._exclusive():
            batch = Batch(log_probs, lengths, self._stream)
            if batch.device is not None and self.config["device"] in (None, "cpu"):
                raise ValueError("the scores are on a GPU, but the decoder is on the CPU: use Decoder(..., device='cuda'), or move the scores (x.cpu())")
            searched = _graph_of_each(graphs, len(batch))
            scorers = [] if boost is None else for_batch(boost, [self._table if graph is None else graph._table for graph in searched], self._boosts)
            utterances = (_abi.wf_utterance * len(batch))()
            for i, (utterance, graph) in enumerate(zip(utterances, searched)):
                scorer = scorers[i] if scorers else None
                utterance.scores = batch.scores[i]
                utterance.scorer = None if scorer is None else scorer.address
                utterance.graph = None if graph is None else graph.address
            results = (ctypes.POINTER(_abi.wf_result) * len(batch))()
            try:
                with ProgressGuard(progress) as guard:
                    self._busy = True
                    call("wf_decode", self.address, utterances, len(batch), guard.pointer, results)
                self._busy = False
                return [self._take(pointer.contents, graph) for pointer, graph in zip(results, searched)]
            finally:
                self._busy = False
                for pointer in results:
                    lib.wf_result_free(pointer)

    def _text(self, label: int) -> str:
        text = self._texts.get(label)
        if text is None:
            text = (self._table.text(label) if self._table is not None else None) or str(label)
            self._texts[label] = text
        return text

    def _texts_of(self, graph: Graph | None) -> Callable[[int], str]:
        """A function from labels to texts, for an utterance decoded with this graph."""
        table = None if graph is None else graph._table
        return (lambda label: table.added(label) or self._text(label)) if isinstance(table, ExtendedSymbols) else self._text

    def _words_of(self, words: Any, count: int, graph: Graph | None) -> list[Word]:
        text_of = self._texts_of(graph)
        return [Word(text_of(word.label), word.start_frame, word.end_frame, word.label) for word in words[:count]]

    def _take(self, raw: Any, graph: Graph | None = None) -> Result:
        if raw.status != _abi.WF_OK:
            return Result(raw.num_frames, {}, exception_of(raw.status, decode_text(raw.message) or ""))
        words = self._words_of(raw.words, raw.num_words, graph)
        alignment = array.array("i")
        if raw.num_decoded and raw.alignment:  # streams with forget=True have no alignment
            alignment.frombytes(ctypes.string_at(raw.alignment, 4 * raw.num_decoded))
        values = {
            name: getattr(raw, name)
            for name in ("cost", "graph_cost", "acoustic_cost", "scorer_cost", "num_decoded", "num_tokens", "num_expanded", "num_arcs", "num_narrowed")
        }
        values.update(
            text=" ".join(word.text for word in words),
            words=words,
            flags=frozenset([name for name, bit in _FLAGS.items() if raw.flags & bit] + ["times_estimated"] * (raw.num_estimated > 0)),
            alignment=alignment,
            lattice=None,
            lattice_beam=self.config["lattice_beam"],
        )
        aligner = None
        if raw.lattice:
            aligner = (self.graph if graph is None else graph).word_aligner
            values["lattice"] = Lattice(lib.wf_lattice_ref(raw.lattice), aligner)
        return Result(raw.num_frames, values, None, self._texts_of(graph), aligner)

    def plan(self) -> dict[str, int]:
        """Bytes on each GPU of the largest batch so far (wf_plan). All 0 on the CPU."""
        plan = _abi.wf_plan()
        lib.wf_decoder_plan(self.address, ctypes.byref(plan))
        return as_dict(plan)

    def lm_stats(self) -> dict[str, float]:
        """Counters of n-gram models that GPUs read while decoding (`Scorer.from_lm(..., placement="hybrid")`); see wf_lm_stats. All 0 on the CPU.

        gpu_bytes, host_bytes     memory in use
        cache_hits, host_reads    n-grams found in the cache, and n-grams read from host memory
        bus_bytes                 bytes moved by these reads
        stall_cycles, stall_s     time that warps waited for them
        """
        stats = _abi.wf_lm_stats()
        lib.wf_decoder_lm_stats(self.address, ctypes.byref(stats))
        return as_dict(stats)

    def __repr__(self) -> str:
        return f"<Decoder: {self.graph!r}, {self.config!r}>" if self._address else "<Decoder, closed>"


def _graph_of_each(graphs: Graph | Sequence[Graph | None] | None, count: int) -> list[Graph | None]:
    each = [graphs] * count if graphs is None or isinstance(graphs, Graph) else list(graphs)
    if len(each) != count:
        raise ValueError(f"{len(each)} graphs for {count} utterances")
    return each


def _restore(graph: Graph, config: DecoderConfig, words: Symbols | None) -> Decoder:
    return Decoder(graph, config, words=words)


def cuda_available() -> str | None:
    """None if decoding works on GPU 0, else the reason as text: built without CUDA, no driver, no GPU."""
    loop = Graph(Fst.from_arcs([(0, 0, 1, 0, 0.0)], {0: 0.0}))
    try:
        Decoder(loop, device="cuda").close()
    except Error as error:
        return str(error)
    return None
