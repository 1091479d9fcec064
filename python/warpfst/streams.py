"""Streams: utterances whose scores arrive in chunks. Made by Decoder.stream. The result equals that of Decoder.decode with all scores at once, bit for bit."""

from __future__ import annotations

import ctypes
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, call, create, lib
from .graphs import Graph
from .lattice import Lattice
from .results import Result, Word, words_of
from .scorers import Boost
from .scores import Batch

if TYPE_CHECKING:
    from .decoder import Decoder


class StreamEvent(NamedTuple):
    """Status after a chunk. `endpoint`: the first endpoint rule that fired, 1 to 5; 0: none. The caller decides whether to finish the utterance."""

    endpoint: int
    num_frames: int
    trailing_silence: float
    relative_cost: float


class Partial(NamedTuple):
    """The best hypothesis so far. The first `num_stable` words will not change, except for the times of the last of them.

    Frames count from the last reset of the stream. `num_frames` were accepted since then; the path of the first `stable_frames` will not change. `start_frame`: frames
    accepted before the last reset, so `start_frame + word.start` counts from the opening of the stream.
    """

    words: list[Word]
    num_stable: int
    num_frames: int
    stable_frames: int
    start_frame: int

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


def event_of(raw: Any) -> StreamEvent:
    return StreamEvent(raw.endpoint, raw.num_frames, raw.trailing_silence, raw.relative_cost)


class Stream(Handle):
    """Decodes utterances one after the other: advance with each chunk, finish, reset. Calls wait until running calls of the decoder and its other streams have ended."""

    _free, _finalize = lib.wf_stream_free, lib.wf_stream_abandon

    def __init__(self, decoder: Decoder, options: Any) -> None:
        self._decoder = decoder
        self._graph: Graph | None = None  # a graph with added words; None: the decoder's
        super().__init__(create("wf_stream_create", decoder.address, options))

    def close(self) -> None:
        """Frees the stream and drops an unfinished utterance."""
        if self._address is not None:
            with self._decoder._exclusive():
                super().close()

    def set_boost(self, boost: Boost | None) -> None:
        """Sets the boosts from the next chunk on, in addition to the decoder's language model. None: no boosts."""
        scorer = self._decoder._boosts.scorer(boost, self._decoder._table if self._graph is None else self._graph._table)
        with self._decoder._exclusive():
            call("wf_stream_set_scorer", self.address, scorer and scorer.address)

    def set_graph(self, graph: Graph | None) -> None:
        """Sets the graph of the next utterances: the decoder's graph with added words (Graph.add_words); None: without. Not allowed within an utterance."""
        with self._decoder._exclusive():
            call("wf_stream_set_graph", self.address, Graph._address_or_none(graph))
            self._graph = graph

    def _lattice(self, address: int) -> Lattice:
        aligner = (self._decoder.graph if self._graph is None else self._graph).word_aligner
        return Lattice(address, aligner, self._decoder._texts_of(self._graph).table)

    def advance(self, chunk: Any) -> StreamEvent:
        """Decodes the next chunk, [frames, columns] with any number of frames."""
        event = _abi.wf_stream_event()
        with self._decoder._exclusive():
            batch = Batch([chunk])
            call("wf_stream_advance", self.address, batch.scores, ctypes.byref(event))
        return event_of(event)

    def accept(self, chunk: Any) -> StreamEvent:
        """The old name of `advance`."""
        warnings.warn("warpfst.Stream.accept is now warpfst.Stream.advance; the old name goes in version 0.4", DeprecationWarning, stacklevel=2)
        return self.advance(chunk)

    def partial(self) -> Partial:
        raw = _abi.wf_partial()
        with self._decoder._exclusive():
            call("wf_stream_partial", self.address, ctypes.byref(raw))
            return self._partial_of(raw)

    def _partial_of(self, raw: Any) -> Partial:
        texts = self._decoder._texts_of(self._graph)
        words, num_stable = words_of(raw.words, raw.num_words, texts), raw.num_stable
        if texts.joiner is not None:  # the last of the stable tokens may be continued
            num_stable = max(0, len(words_of(raw.words, raw.num_stable, texts)) - 1)
        return Partial(words, num_stable, raw.num_frames, raw.stable_frames, raw.start_frame)

    def partial_lattice(self) -> Lattice:
        """The lattice of the frames so far; all tokens are treated as final. Needs lattice_beam."""
        with self._decoder._exclusive():
            return self._lattice(create("wf_stream_partial_lattice", self.address))

    def commit_lattice(self) -> Lattice | None:
        """Removes and returns the part of the lattice that will not change, starting at the end of the previous part; None: no new part.

        This bounds memory for hours of audio. The parts and the result's lattice, concatenated, are the whole lattice: the last state
        of a part is the first state of the next. Frames count from the last reset. Needs lattice_beam.
        """
        out = ctypes.c_void_p()
        with self._decoder._exclusive():
            call("wf_stream_commit_lattice", self.address, ctypes.byref(out))
        return None if out.value is None else self._lattice(out.value)

    def finish(self) -> Result:
        """Ends the utterance. After that only reset and close are possible."""
        with self._decoder._exclusive():
            result = ctypes.c_void_p(create("wf_stream_finish", self.address))
            return self._decoder._take(result, self._graph)

    def reset(self) -> None:
        """Prepares the stream for a new utterance. Frames are counted from 0 again."""
        with self._decoder._exclusive():
            call("wf_stream_reset", self.address)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that the stream keeps between chunks."""
        return int(lib.wf_stream_bytes(self.address))
