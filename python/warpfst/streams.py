"""Streams: utterances whose scores come in chunks. Made by Decoder.stream; the result is that of Decoder.decode for all scores at once, bit for bit."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, call, create, lib
from .lattice import Lattice, WordAligner
from .scorers import Boost, as_scorer
from .scores import Batch

if TYPE_CHECKING:
    from .decoder import Decoder, Result, Word
    from .graphs import Graph


class StreamEvent(NamedTuple):
    """What there is to know after a chunk. `endpoint`: 0, or 1 to 5, the first endpoint rule that holds; nothing follows from it by itself."""

    endpoint: int
    num_frames: int
    trailing_silence: float
    relative_cost: float


class Partial(NamedTuple):
    """The best hypothesis so far. The first `num_stable` words will not change any more, but for the times of the last of them."""

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
    """One utterance after the other: accept chunks, finish, reset. Calls take turns with those of the decoder and its other streams."""

    _free, _forget = lib.wf_stream_close, lib.wf_stream_abandon

    def __init__(self, decoder: Decoder, options: Any) -> None:
        self._decoder = decoder
        self._graph: Graph | None = None  # with words of its own
        super().__init__(create("wf_stream_open", decoder.address, options))

    def close(self) -> None:
        """Drops what is unfinished."""
        if self._address is not None:
            with self._decoder._turn():
                super().close()

    def set_boost(self, boost: Boost | None) -> None:
        """Words to favour from now on, on top of the decoder's language model; None: none."""
        scorer = as_scorer(boost, self._decoder._table if self._graph is None else self._graph._table, self._decoder._lm)
        with self._decoder._turn():
            call("wf_stream_set_scorer", self.address, scorer and scorer.address)

    def set_graph(self, graph: Graph | None) -> None:
        """The decoder's graph with words added (Graph.add_words), for this stream's utterances from now on; None: without. Not in the middle of an utterance."""
        with self._decoder._turn():
            call("wf_stream_set_graph", self.address, graph and graph.address)
            self._graph = graph

    @property
    def _word_aligner(self) -> WordAligner | None:
        return (self._decoder.graph if self._graph is None else self._graph).word_aligner

    def accept(self, chunk: Any) -> StreamEvent:
        """Decodes the next [frames, columns], any number of frames."""
        event = _abi.wf_stream_event()
        with self._decoder._turn():
            batch = Batch([chunk])
            call("wf_stream_accept", self.address, batch.scores, ctypes.byref(event))
        return event_of(event)

    def partial(self) -> Partial:
        raw = _abi.wf_partial()
        with self._decoder._turn():
            call("wf_stream_partial", self.address, ctypes.byref(raw))
            words = self._decoder._words_of(raw.words, raw.num_words, self._graph)
        return Partial(words, raw.num_stable, raw.num_frames, raw.stable_frames, raw.start_frame)

    def partial_lattice(self) -> Lattice:
        """The lattice of what has come so far, any token being an end (needs lattice_beam)."""
        with self._decoder._turn():
            return Lattice(create("wf_stream_partial_lattice", self.address), self._word_aligner)

    def commit_lattice(self) -> Lattice | None:
        """Takes out the part of the lattice that nothing can change any more, from where the last part ended; None: there is none yet.

        So memory stays bounded while lattices are made of hours of audio. The parts one behind the other, and behind them the result's lattice, are the whole: the last state of each is the
        first of the next. Frames count from the last reset. Needs lattice_beam.
        """
        out = ctypes.c_void_p()
        with self._decoder._turn():
            call("wf_stream_commit_lattice", self.address, ctypes.byref(out))
        return None if out.value is None else Lattice(out.value, self._word_aligner)

    def finish(self) -> Result:
        """Ends the utterance. After that only reset and close are possible."""
        with self._decoder._turn():
            result = ctypes.POINTER(_abi.wf_result)()
            call("wf_stream_finish", self.address, ctypes.byref(result))
            try:
                return self._decoder._take(result.contents, self._graph)
            finally:
                lib.wf_result_free(result)

    def reset(self) -> None:
        """Ready for a new utterance; frames count from 0 again."""
        with self._decoder._turn():
            call("wf_stream_reset", self.address)

    @property
    def num_bytes(self) -> int:
        """Held between chunks."""
        return int(lib.wf_stream_bytes(self.address))
