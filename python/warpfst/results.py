"""The results of a batch. They stay in the memory that C made for the whole batch; Python objects are made when they are read."""

from __future__ import annotations

import array
import ctypes
import functools
import itertools
import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _abi, notebook
from ._library import Handle, call, create, decode_text, exception_of, lib, take_text
from .captions import Spoken, srt, vtt
from .errors import ArgumentError, Error, LimitError
from .fst.container import array_view
from .graphs import Graph
from .joining import Joiner
from .lattice import CompactLattice, Lattice, Mbr, Nbest, WordAligner, mbr_of, raw_paths
from .options import c_options
from .symbols import ExtendedSymbols, Symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import LatticeDrawOptions

_FLAGS = {name[len("WF_RESULT_") :].lower(): bit for name, bit in vars(_abi).items() if name.startswith("WF_RESULT_")}


class Word(NamedTuple):
    """A word of the best path. Frames are half-open: [start, end). `confidence`: how likely it is right, by the lattice; None without a lattice (lattice_beam)."""

    text: str
    start: int
    end: int
    label: int
    confidence: float | None = None


_new_word = functools.partial(tuple.__new__, Word)  # faster than Word(...)


_MOST_CUTS = 32  # token sequences that are looked at for each text of an n-best list


class Hypothesis(NamedTuple):
    """One of the n best word sequences. `words` has times, like Result.words; it is None if the graph has no word aligner (Graph.word_aligner).

    cost = graph_cost + acoustic_cost. graph_cost includes the costs of boosts and of language models used while decoding.
    """

    text: str
    labels: list[int]
    cost: float
    words: list[Word] | None = None
    graph_cost: float = 0.0
    acoustic_cost: float = 0.0


class WordTexts(dict[int, str]):
    """The texts of labels, looked up once each. Labels without text are numbers. Holds its own reference to the table."""

    def __init__(self, table: Symbols | ExtendedSymbols | None, base: WordTexts | None = None, joiner: Joiner | None = None) -> None:
        """`base`: texts that this one shares, except those of added words of `table`. `joiner`: the words are tokens, to be joined."""
        super().__init__()
        self.joiner: Joiner | None = joiner if base is None else base.joiner
        self.table = Symbols._share(table.address) if isinstance(table, Symbols) else table
        self._base = base

    def __missing__(self, label: int) -> str:
        if self._base is None:
            text = (self.table.text(label) if self.table is not None else None) or str(label)
        else:
            text = (self.table.added(label) if isinstance(self.table, ExtendedSymbols) else None) or self._base[label]
        self[label] = text
        return text

    def labels(self, words: Iterable[str]) -> list[int]:
        """The labels of words. ArgumentError: a word that is not in the table."""
        if self.table is None:
            raise ArgumentError("the graph has no symbol table of words")
        found = {word: self.table.find(word) for word in words}
        unknown = [word for word, label in found.items() if not label]
        if unknown:
            raise ArgumentError(f"{len(unknown)} of {len(found)} words are not in the graph's vocabulary: {', '.join(map(repr, unknown[:10]))}{', ...' * (len(unknown) > 10)}")
        return [label for label in found.values() if label]

    def text(self, labels: Iterable[int]) -> str:
        """The text of an utterance with these words."""
        texts = map(self.__getitem__, labels)
        return " ".join(texts) if self.joiner is None else self.joiner.text(texts)

    def joined(self, words: list[Word]) -> list[Word]:
        """The words, or if they are tokens, the words that these make: from the first token to the last, with the lowest confidence and the label of the first."""
        if self.joiner is None:
            return words
        made = []
        for text, first, last in self.joiner.groups(word.text for word in words):
            confidences = [word.confidence for word in words[first : last + 1] if word.confidence is not None]
            made.append(Word(text, words[first].start, words[last].end, words[first].label, min(confidences, default=None)))
        return made

    def of_batch(self, raw: Any) -> list[str] | None:
        """The text of each utterance, made by C. None: only Python has the texts."""
        if isinstance(self.table, ExtendedSymbols) or self._base is not None or self.joiner is not None:
            return None
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        call("wf_batch_results_texts", ctypes.byref(raw), self.table and self.table.address, ctypes.byref(out), ctypes.byref(size))
        return take_text(out.value, size.value).split("\0")[:-1]


def words_of(raw: Any, count: int, texts: WordTexts, confidences: Iterable[float | None] | None = None) -> list[Word]:
    """Words from an array of wf_word."""
    given = itertools.repeat(None) if confidences is None else confidences
    return texts.joined([Word(texts[word.label], word.start_frame, word.end_frame, word.label, confidence) for word, confidence in zip(raw[:count], given)])


class Completing(NamedTuple):
    """How Results makes what it lacks when it is read."""

    lattice_beam: float  # 0: there are no lattices
    determinizing: Mapping[str, Any]  # options of lattice_determinize
    confidences: bool  # Results.confidences is wanted
    confidence_scale: float


class _Block(Handle):
    """A wf_batch_results."""

    _free = lib.wf_batch_results_free


class Result:
    """The result of one utterance. It is a view of its batch (Results), whose memory it keeps.

    An utterance can fail without affecting the others, for example because of NaN scores. Then `error` is the exception, and reading any attribute except
    `num_frames` raises it:
    ArgumentError for NaN scores or a matrix that does not fit the graph, OutOfMemoryError, LimitError.

    text            str: the words, separated by spaces
    words           list of Word(text, start, end, label, confidence): frames [start, end), from the first frame of the word's first token to the last frame of its
                    last token. With a lattice, words have a `confidence`. With Decoder(determinize=True) it was computed while decoding; without, those of
                    the whole batch are computed when the words of any result are first read. Both use all threads
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
    compact_lattice CompactLattice: `lattice` determinized within lattice_beam. None without lattice_beam. Made like confidences. Not included in pickles
    error           the exception, or None
    num_frames      number of frames of the scores
    num_decoded     number of frames decoded: num_frames, unless "died"
    num_tokens      tokens kept, summed over frames
    num_expanded    tokens expanded, summed over frames
    num_arcs        arcs expanded
    num_narrowed    frames in which max_active cut the beam
    nbest(n)        the n best word sequences
    mbr()           minimum Bayes risk words
    spot(words)     hits of listed words
    to_srt(frame_shift), to_vtt(frame_shift)
                    captions
    draw(path)      a picture of the lattice
    """

    __slots__ = ("_batch", "_i")

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
    compact_lattice: CompactLattice | None

    def __init__(self, batch: Results | _Saved, i: int) -> None:
        self._batch = batch
        self._i = i

    @property
    def text(self) -> str:
        text = self._batch.texts[self._i]
        return self._batch._value(self._i, "text") if text is None else text

    @property
    def error(self) -> Error | None:
        return self._batch._error(self._i)

    @property
    def num_frames(self) -> int:
        return self._batch.num_frames[self._i]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in Result.__annotations__:
            raise AttributeError(f"Result has no attribute {name!r}")
        return self._batch._value(self._i, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self._batch is other._batch and self._i == other._i

    def __hash__(self) -> int:
        return hash((id(self._batch), self._i))

    def __reduce__(self) -> Any:
        """Pickles everything except lattices."""
        names = [] if self.error is not None else [name for name in Result.__annotations__ if name not in ("lattice", "compact_lattice")]
        values = {name: getattr(self, name) for name in names}
        return _saved_result, (self.num_frames, {**values, "text": self.text} if names else {}, self.error)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Result.__annotations__})

    def nbest(self, n: int, confidences: bool = False) -> list[Hypothesis]:
        """The n best word sequences, or fewer if fewer are within the decoder's lattice_beam of the best. Needs lattice_beam.

        `confidences`: words also have theirs, which the calling thread computes for each sequence.

        The first call makes the lists of the whole batch, on all threads; Decoder(determinize=True, nbest=N) makes lists of up to N while decoding. A longer list than those is
        made by the calling thread. With Decoder(join=), of the token sequences that make one text the best is in the list. The objects and the times of the words are made here,
        some 40 us for each sequence; `compact_lattice.nbest` has no times.
        """
        return self._batch._nbest(self._i, n, confidences)

    def mbr(self) -> Mbr:
        """The minimum Bayes risk words with confidences and times, and their risk. Needs lattice_beam.

        Decoder(determinize=True, mbr=True) makes them while decoding, by all threads; without, the calling thread makes them here. Times are exact if the graph has a word aligner (Graph.word_aligner).
        """
        return self._batch._mbr(self._i)

    def to_srt(self, frame_shift: float, start: float = 0.0) -> str:
        """The words as SRT captions of at most two lines and 6 seconds, as `warpfst transcribe` makes them.

        frame_shift  seconds from one frame of the scores to the next, such as 0.04
        start        seconds at which the scores begin in the recording
        """
        return srt(self._spoken(frame_shift, start))

    def to_vtt(self, frame_shift: float, start: float = 0.0) -> str:
        """Like to_srt, as WebVTT."""
        return vtt(self._spoken(frame_shift, start))

    def _spoken(self, frame_shift: float, start: float) -> list[Spoken]:
        if not 0 < frame_shift < math.inf:
            raise ValueError(f"frame_shift is {frame_shift}, expected seconds")
        return [Spoken(word.text, start + word.start * frame_shift, start + word.end * frame_shift) for word in self.words]

    def spot(self, words: Iterable[str], threshold: float = 0.5) -> list[Word]:
        """Hits of listed words anywhere in the lattice, sorted by start frame. `confidence` is the probability of the hit, at least `threshold`. Needs lattice_beam.

        The words must be in the vocabulary of the graph (ArgumentError); phrases are not supported. How hits are made: docs/how-to/spotting.md.
        """
        if isinstance(words, str):
            raise TypeError("words: expected a list of words, found a str")
        return self._batch._spot(self._i, words, threshold)

    def draw(self, path: str | os.PathLike[str], **options: Unpack[LatticeDrawOptions]) -> None:
        """Draws the paths of the result: CompactLattice.draw. Needs lattice_beam (ArgumentError)."""
        lattice = self.compact_lattice
        if lattice is None:
            raise ArgumentError("draw needs a lattice: Decoder(lattice_beam=), and a result that was not unpickled")
        lattice.draw(path, **options)

    def __repr__(self) -> str:
        return f"<Result: {self.error}>" if self.error is not None else f"<Result: {self.text!r}, cost {self.cost:.3f}>"

    def _repr_html_(self) -> str:
        """A table of the words, for notebooks."""
        return notebook.table(repr(self), Word._fields, [] if self.error is not None else self.words)


class _Saved:
    """The batch of a Result that was unpickled."""

    def __init__(self, num_frames: int, values: dict[str, Any], error: Error | None) -> None:
        self.num_frames, self._values, self._raised = [num_frames], values, error
        self.texts = [values.get("text")]

    def _error(self, _i: int) -> Error | None:
        return self._raised

    def _value(self, _i: int, name: str) -> Any:
        if self._raised is not None:
            raise self._raised
        return self._values.get(name)

    def _nbest(self, _i: int, _n: int, _confidences: bool) -> list[Hypothesis]:
        raise ArgumentError("nbest needs a lattice, which is not included in pickles")

    def _mbr(self, _i: int) -> Mbr:
        raise ArgumentError("mbr needs a lattice, which is not included in pickles")

    def _spot(self, _i: int, _words: Iterable[str], _threshold: float) -> list[Word]:
        raise ArgumentError("spot needs a lattice, which is not included in pickles")


def _saved_result(num_frames: int, values: dict[str, Any], error: Error | None) -> Result:
    return Result(_Saved(num_frames, values, error), 0)


_COSTS = ("cost", "graph_cost", "acoustic_cost", "scorer_cost")
_NUMBERS = ("num_frames", "num_decoded", "num_tokens", "num_expanded", "num_arcs", "num_narrowed")
_ARRAYS = {f"{name}s": (name, "d") for name in _COSTS} | {name: (name, "q") for name in _NUMBERS} | {f"_{name}": (name, "q") for name in ("status", "flags", "num_estimated")}


class Results(Sequence[Result]):
    """The results of a batch, in the order of its utterances: a sequence of Result, and arrays of the whole batch.

    results[i], for result in results, len(results), results[a:b] (a list) and list(results) work as for a list. A Result is made when it is read.

    The arrays are read-only views of C memory (numpy.asarray takes them without a copy) and keep the memory of the batch. Words of utterance i are offsets[i] to
    offsets[i + 1] - 1 of `words`, `starts`, `ends` and `confidences`. An utterance that failed has no words, and its costs are NaN.

    texts           list of str: the text of each utterance, made at once by C. None for an utterance that failed
    offsets         int64 [len + 1]
    words           int32: labels of the words
    starts, ends    int32: frames [start, end)
    confidences     float32: those of the words, NaN where they could not be computed. None without lattices (lattice_beam), and with
                    Decoder(confidences=False)
    costs, graph_costs, acoustic_costs, scorer_costs
                    float64 [len], nats
    num_frames, num_decoded, num_tokens, num_expanded, num_arcs, num_narrowed
                    int64 [len]

    Pickling makes a list of Result.
    """

    costs: memoryview
    graph_costs: memoryview
    acoustic_costs: memoryview
    scorer_costs: memoryview
    num_frames: memoryview
    num_decoded: memoryview
    num_tokens: memoryview
    num_expanded: memoryview
    num_arcs: memoryview
    num_narrowed: memoryview
    _status: memoryview
    _flags: memoryview
    _num_estimated: memoryview

    def __init__(
        self, address: int, texts: WordTexts, graph: Graph, graphs: Sequence[Graph | None] | None = None, completing: Completing | None = None, num_nbest: int = 0
    ) -> None:
        """`address`: a wf_batch_results. `graphs`: those of the utterances, where they are not `graph`. `num_nbest`: length of the n-best lists that C made."""
        self._completing = completing or Completing(0, {}, False, 1)
        self._completed: set[str] = set()
        self._lock = threading.Lock()
        self._block = _Block(address)
        self._raw = _abi.wf_batch_results.from_address(address)
        self._count: int = self._raw.count
        self._word_texts, self._graph, self._graphs, self._num_nbest = texts, graph, graphs, num_nbest
        searched = {graph, *(one for one in graphs or () if one is not None)} if self._completing.lattice_beam > 0 else ()
        self._aligners = {one: one.word_aligner for one in searched}  # also for when the graphs are closed
        self._made: dict[tuple[int, str], Any] = {}  # what was made for utterances, by number and name
        self._num_read = 0  # utterances whose words were read
        self._added_texts: dict[Graph, WordTexts] = {}  # of graphs with added words

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, i: int) -> Result: ...
    @overload
    def __getitem__(self, i: slice) -> list[Result]: ...
    def __getitem__(self, i: int | slice) -> Result | list[Result]:
        chosen = range(self._count)[i]
        return Result(self, chosen) if isinstance(chosen, int) else [Result(self, j) for j in chosen]

    def __iter__(self) -> Iterator[Result]:
        return map(Result, itertools.repeat(self), range(self._count))

    def __eq__(self, other: object) -> bool:
        """As for lists. Results are equal if they are the same utterance of the same batch."""
        return list(self) == list(other) if isinstance(other, (list, Results)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Iterable[Result]) -> list[Result]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Result]) -> list[Result]:
        return [*other, *self]

    def __reduce__(self) -> Any:
        return list, (list(self),)

    def __repr__(self) -> str:
        return f"<Results: {self._count} utterance{'s' * (self._count != 1)}>"

    def _repr_html_(self) -> str:
        """A table of the utterances, for notebooks."""
        rows = ((i, one.num_frames, *(("", one.error) if one.error is not None else (f"{one.cost:.3f}", one.text))) for i, one in enumerate(self))
        return notebook.table(repr(self), ("utterance", "frames", "cost", "text"), rows)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in _ARRAYS if not name.startswith("_"))})

    def __getattr__(self, name: str) -> memoryview:
        """Makes an array when it is first read."""
        if name not in _ARRAYS:
            raise AttributeError(f"Results has no attribute {name!r}")
        field, typecode = _ARRAYS[name]
        view = array_view(getattr(self._raw, field), self._count, self._block, typecode)
        setattr(self, name, view)
        return view

    @functools.cached_property
    def offsets(self) -> memoryview:
        return array_view(self._raw.word_off, self._count + 1, self._block, "q")

    @functools.cached_property
    def _fields(self) -> memoryview:
        """The fields of all words, one after the other, as in wf_word."""
        return array_view(self._raw.words, self.offsets[-1], self._block, "i")

    @property
    def words(self) -> memoryview:
        return self._fields[0::3]

    @property
    def starts(self) -> memoryview:
        return self._fields[1::3]

    @property
    def ends(self) -> memoryview:
        return self._fields[2::3]

    def _complete(self, part: str, nbest: int = 0) -> None:
        """Makes for the whole batch, on all threads: "lattices" (determinized), with "confidences", or with "nbest" lists of this length. Each once."""
        if self._completing.lattice_beam == 0 or part in self._completed:
            return
        with self._lock:
            if part in self._completed:
                return
            wanted = {"confidences": part == "confidences", "nbest": nbest, "confidence_scale": self._completing.confidence_scale}
            call("wf_batch_results_complete", ctypes.byref(self._raw), c_options("lattice_determinize", self._completing.determinizing), c_options("lattice_results", wanted))
            if nbest:
                self._num_nbest = nbest
            self._completed |= {part, "lattices"}

    @property
    def confidences(self) -> memoryview | None:
        return self._confidences if self._completing.confidences else None

    @functools.cached_property
    def _confidences(self) -> memoryview | None:
        self._complete("confidences")
        return array_view(self._raw.confidences, self.offsets[-1], self._block, "f") if self._raw.confidences else None

    @functools.cached_property
    def texts(self) -> list[str | None]:
        made = self._word_texts.of_batch(self._raw)
        texts: list[str | None] = [None] * self._count if made is None else list(made)
        for i in range(self._count) if made is None else self._with_added_words():
            texts[i] = self._texts_of(i).text(self._labels(i))
        for i in self._failed():
            texts[i] = None
        return texts

    def _failed(self) -> Iterable[int]:
        return (i for i, status in enumerate(self._status) if status != _abi.WF_OK) if any(self._status) else ()

    def _with_added_words(self) -> Iterable[int]:
        return () if self._graphs is None else (i for i, graph in enumerate(self._graphs) if graph is not None)

    # What Result asks for

    def _error(self, i: int) -> Error | None:
        if self._status[i] == _abi.WF_OK:
            return None
        return self._once(i, "error")  # type: ignore[no-any-return]

    def _value(self, i: int, name: str) -> Any:
        if self._status[i] != _abi.WF_OK:
            raise self._once(i, "error")
        array_name = f"{name}s" if name in _COSTS else name
        return getattr(self, array_name)[i] if array_name in _ARRAYS else self._once(i, name)

    def _once(self, i: int, name: str) -> Any:
        """What the method `_make_NAME` returns, which is called once for each utterance."""
        if (i, name) not in self._made:
            self._made[i, name] = getattr(self, f"_make_{name}")(i)
        return self._made[i, name]

    def _result(self, i: int) -> Any:
        return self._raw.results[i].contents

    def _aligner_of(self, i: int) -> WordAligner | None:
        return self._aligners[(None if self._graphs is None else self._graphs[i]) or self._graph]

    def _texts_of(self, i: int) -> WordTexts:
        graph = None if self._graphs is None else self._graphs[i]
        if graph is None or not isinstance(graph._table, ExtendedSymbols):
            return self._word_texts
        if graph not in self._added_texts:
            self._added_texts[graph] = WordTexts(graph._table, self._word_texts)
        return self._added_texts[graph]

    def _part(self, array: memoryview, i: int) -> list[Any]:
        return array[self.offsets[i] : self.offsets[i + 1]].tolist()

    def _labels(self, i: int) -> list[int]:
        return self._part(self.words, i)

    def _make_error(self, i: int) -> Error:
        return exception_of(self._status[i], decode_text(self._result(i).message) or "")

    def _make_flags(self, i: int) -> frozenset[str]:
        return frozenset([name for name, bit in _FLAGS.items() if self._flags[i] & bit] + ["times_estimated"] * (self._num_estimated[i] > 0))

    def _make_alignment(self, i: int) -> array.array[int]:
        raw, alignment = self._result(i), array.array("i")
        if raw.num_decoded and raw.alignment:  # streams with forget=True have no alignment
            alignment.frombytes(ctypes.string_at(raw.alignment, 4 * raw.num_decoded))
        return alignment

    def _make_words(self, i: int) -> list[Word]:
        self._num_read += 1
        if self._num_read > 1 and self._all_words is not None:  # who reads the words of two utterances will read those of all
            return self._all_words[self.offsets[i] : self.offsets[i + 1]]
        labels = self._labels(i)
        texts = map(self._texts_of(i).__getitem__, labels)
        fields = zip(texts, self._part(self.starts, i), self._part(self.ends, i), labels, self._confidences_of(i, labels))
        return self._word_texts.joined(list(map(_new_word, fields)))

    @functools.cached_property
    def _all_words(self) -> list[Word] | None:
        """The words of all utterances, one after the other: made at once, they take half the time. None: their texts or confidences are not in the arrays."""
        confidences = self._confidences.tolist() if self._confidences is not None else []
        if self._graphs is not None or self._word_texts.joiner is not None or any(map(math.isnan, confidences)):
            return None
        labels = self.words.tolist()
        fields = zip(map(self._word_texts.__getitem__, labels), self.starts.tolist(), self.ends.tolist(), labels, confidences or itertools.repeat(None))
        return list(map(_new_word, fields))

    def _confidences_of(self, i: int, labels: list[int]) -> Iterable[float | None]:
        """None for all if there is no lattice, or if it is too large (as in `warpfst decode --confidence`)."""
        if not labels or self._confidences is None:
            return itertools.repeat(None)
        made = self._part(self._confidences, i)
        if not any(map(math.isnan, made)):
            return made
        try:
            compact = self._once(i, "compact_lattice")
            return itertools.repeat(None) if compact is None else compact.confidences(labels, self._completing.confidence_scale)
        except LimitError:
            return itertools.repeat(None)

    def _make_lattice(self, i: int) -> Lattice | None:
        raw = self._result(i)
        return Lattice(lib.wf_lattice_ref(raw.lattice), self._aligner_of(i), self._texts_of(i).table) if raw.lattice else None

    def _make_compact_lattice(self, i: int) -> CompactLattice | None:
        self._complete("lattices")
        made = self._result(i).determinized
        if not made:
            return None
        raw = _abi.wf_determinized.from_address(made)
        if raw.status != _abi.WF_OK:
            raise exception_of(raw.status, decode_text(raw.message) or "")
        compact = CompactLattice(lib.wf_compact_lattice_ref(raw.lattice), self._aligner_of(i), self._texts_of(i).table)
        compact.complete_beam = raw.beam
        return compact

    def _compact(self, i: int, what: str) -> CompactLattice:
        compact: CompactLattice | None = self._value(i, "compact_lattice")
        if compact is None:
            raise ArgumentError(f"{what} needs a lattice: set lattice_beam, as in Decoder(..., lattice_beam=8)")
        return compact

    def _ready(self, i: int) -> Any:
        """The wf_lattice_results that C made for an utterance, or None."""
        made = self._result(i).lattice_results
        return _abi.wf_lattice_results.from_address(made) if made else None

    def _nbest(self, i: int, n: int, confidences: bool) -> list[Hypothesis]:
        if self._num_nbest == 0 and n > 0:
            self._complete("nbest", n)
        compact, ready = self._compact(i, "nbest"), self._ready(i)
        if ready is not None and ready.nbest and 0 < n <= self._num_nbest:
            paths = raw_paths(ready.nbest)
            chosen = self._distinct(i, paths, n)
            if len(chosen) == n or len(paths) < self._num_nbest:
                return [self._hypothesis(i, path, confidences) for path in chosen]
        size = n
        while True:
            with Nbest(create("wf_compact_lattice_nbest", compact.address, size)) as nbest:
                paths = raw_paths(nbest.address)
                chosen = self._distinct(i, paths, n)
                if len(chosen) == n or len(paths) < size or size > _MOST_CUTS * n:
                    return [self._hypothesis(i, path, confidences) for path in chosen]
            size *= 2

    def _distinct(self, i: int, paths: Sequence[Any], n: int) -> list[Any]:
        """The first n paths; of those whose joined tokens make the same text the first one."""
        texts = self._texts_of(i)
        if texts.joiner is None:
            return list(paths[:n])
        found: dict[str, Any] = {}
        for path in paths:
            found.setdefault(texts.text(path.words[: path.num_words]), path)
            if len(found) == n:
                break
        return list(found.values())

    def _hypothesis(self, i: int, path: Any, with_confidences: bool) -> Hypothesis:
        labels, aligner, texts = path.words[: path.num_words], self._aligner_of(i), self._texts_of(i)
        confidences, words = self._compact(i, "nbest").confidences(labels, self._completing.confidence_scale) if with_confidences else None, None
        if aligner is not None:
            words = words_of(aligner._raw_words(path.words, path.num_words, path.alignment, path.num_labels), path.num_words, texts, confidences)
        return Hypothesis(texts.text(labels), labels, path.graph_cost + path.acoustic_cost, words, path.graph_cost, path.acoustic_cost)

    def _mbr(self, i: int) -> Mbr:
        compact, ready = self._compact(i, "mbr"), self._ready(i)
        return compact.mbr(scale=self._completing.confidence_scale) if ready is None or not ready.mbr else mbr_of(ready.mbr, compact)

    def _spot(self, i: int, words: Iterable[str], threshold: float) -> list[Word]:
        compact, texts = self._compact(i, "spot"), self._texts_of(i)
        hits = compact.spot(texts.labels(words), threshold=threshold)
        return [Word(texts[hit.label], hit.start, hit.end, hit.label, hit.confidence) for hit in hits]
