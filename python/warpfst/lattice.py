"""Lattices: raw ones, as the search makes them, and compact ones, which are acceptors of words; archives of both."""

from __future__ import annotations

import array
import ctypes
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, overload

from . import _abi, notebook
from ._library import (
    Handle,
    as_dict,
    call,
    check,
    check_list,
    create,
    decode_text,
    encode_path,
    encode_text,
    exception_of,
    int32_array,
    lib,
    sized,
    take_numbers,
)
from .errors import ArgumentError, Error
from .fst.container import Fst, Records, array_view
from .lexicon import Hmm, Lexicon
from .lm import LM
from .options import c_options
from .scorers import Scorer
from .symbols import ExtendedSymbols, Symbols, SymbolsLike, as_symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import (
        LatticeAlignOptions,
        LatticeDeterminizeOptions,
        LatticeDrawOptions,
        LatticeReaderOptions,
        LatticeRescoreOptions,
        LatticeScaleOptions,
        LatticeWriterOptions,
        MbrOptions,
        SpotOptions,
    )


Words = Union[Symbols, ExtendedSymbols]
_UNKNOWN = 2**31 - 1  # a label that no lattice contains


class LatticePath(NamedTuple):
    """One path. `frames`: for each word, the number of alignment labels before the arc that carries it. `text`: None if the lattice has no symbol table of its words."""

    words: list[int]
    frames: list[int]
    alignment: list[int]
    graph_cost: float
    acoustic_cost: float
    text: str | None = None

    @property
    def cost(self) -> float:
        return self.graph_cost + self.acoustic_cost


def raw_paths(nbest: int) -> list[Any]:
    """The paths of a wf_nbest, as wf_lattice_path."""
    return [lib.wf_nbest_at(nbest, i) for i in range(lib.wf_nbest_count(nbest))]


class Nbest(Handle):
    """A wf_nbest."""

    _free = lib.wf_nbest_free

    def paths(self, words: Words | None = None) -> list[LatticePath]:
        return [
            LatticePath(
                *(one.words[: one.num_words], one.frames[: one.num_words], one.alignment[: one.num_labels]),
                *(one.graph_cost, one.acoustic_cost),
                None if words is None else " ".join(text_of(label, words) for label in one.words[: one.num_words]),
            )
            for one in raw_paths(self.address)
        ]


def text_of(label: int, words: Words) -> str:
    """The text of a label, or its number if the table lacks it."""
    return words.text(label) or str(label)


def _determinized(out: Any, lattice: _Words, aligned: bool = True) -> CompactLattice:
    """`lattice`: the one that was determinized."""
    if out.status != _abi.WF_OK:
        raise exception_of(out.status, decode_text(out.message) or "")
    made = lattice._made(CompactLattice, out.lattice, aligned)
    made.complete_beam = out.beam
    return made


def _phones_of(hmm: Hmm | None) -> Any:
    """wf_lattice_phones for C, or None."""
    if hmm is None:
        return None
    starts = check(hmm, Hmm, "hmm").phone_starts()
    labels = (ctypes.c_int32 * len(starts))(*starts)
    phones = _abi.wf_lattice_phones(labels, len(starts))
    phones.labels = labels  # keeps the labels alive as long as `phones`
    return phones


def determinize_lattices(lattices: Sequence[Lattice], *, hmm: Hmm | None = None, **options: Unpack[LatticeDeterminizeOptions]) -> list[CompactLattice | Error]:
    """Lattice.determinize for several lattices, on num_threads threads. For a lattice that fails, the list has its error."""
    out = (_abi.wf_determinized * len(lattices))()
    phones = _phones_of(hmm)
    addresses = (ctypes.c_void_p * len(lattices))(*map(Lattice._address_of, lattices))
    call("wf_lattices_determinize", addresses, len(lattices), phones and ctypes.byref(phones), c_options("lattice_determinize", options), out)
    made = zip(out, lattices)
    return [_determinized(one, lattice) if one.status == _abi.WF_OK else exception_of(one.status, decode_text(one.message) or "") for one, lattice in made]


class _Words(Handle):
    """What raw and compact lattices share: the word aligner of the graph that they were decoded with, and the symbol table of their words. Both may be missing."""

    def __init__(self, address: int, aligner: WordAligner | None = None, words: Words | None = None) -> None:
        super().__init__(address)
        self._aligner = aligner
        self._words = words

    def _made(self, kind: type[_AnyLattice], address: int, aligned: bool = True) -> _AnyLattice:
        """A lattice made from this one, with the same words. `aligned`: and with the same word aligner."""
        return kind(address, self._aligner if aligned else None, self._words)

    @property
    def words(self) -> Symbols | None:
        """The symbol table of the words. Lattices of results have the decoder's, those of a LatticeReader the one it was given; None: words are labels."""
        return self._words.whole() if isinstance(self._words, ExtendedSymbols) else self._words

    def _labels(self, words: str | Sequence[str] | Sequence[int], unknown: int | None = None) -> Any:
        """Labels of words, for C. A word that is not in the table has the label `unknown`. ArgumentError: there is none, or no table."""
        given: Sequence[str | int] = words.split() if isinstance(words, str) else words
        labels = [self._label(word, unknown) for word in given]
        return int32_array(labels)

    def _label(self, word: str | int, unknown: int | None) -> int:
        if not isinstance(word, str):
            return word
        if self._words is None:
            raise ArgumentError(f"{word!r}: the lattice has no symbol table of words, so they must be given as labels")
        label = self._words.find(word) or unknown
        if label is None:
            raise ArgumentError(f"{word!r} is not a word of the lattice")
        return label

    def _text(self, label: int) -> str | None:
        return None if self._words is None else text_of(label, self._words)


_AnyLattice = TypeVar("_AnyLattice", bound=_Words)


class LatticeArc(NamedTuple):
    """An arc of a raw lattice. Costs are in nats."""

    ilabel: int
    olabel: int
    graph_cost: float
    acoustic_cost: float
    scorer_cost: float
    nextstate: int


class Lattice(_Words):
    """A raw lattice: all paths within lattice_beam of the best. States are in topological order from 0. Words are labels of `words`. Immutable.

    Views (no copies; numpy.asarray takes them): `arcs` is a sequence of LatticeArc; the other views are indexed by state.
    """

    _free = lib.wf_lattice_free

    @property
    def _view(self) -> Any:
        return lib.wf_lattice_get_view(self.address)

    def _share(self) -> Lattice:
        """A new reference, so that views stay valid after close()."""
        return self._made(Lattice, lib.wf_lattice_ref(self.address))

    @property
    def num_states(self) -> int:
        return int(self._view.num_states)

    @property
    def num_arcs(self) -> int:
        return int(self._view.num_arcs)

    @property
    def arcs(self) -> Records[LatticeArc]:
        return Records(self._view.arcs, self.num_arcs, self._share(), LatticeArc)

    @property
    def arc_offsets(self) -> memoryview:
        """uint64 [num_states + 1]."""
        return array_view(self._view.arc_off, self.num_states + 1 if self.num_states else 0, self._share(), "Q")

    @property
    def frames(self) -> memoryview:
        """int32 [num_states]: number of frames consumed before the state."""
        return array_view(self._view.frames, self.num_states, self._share(), "i")

    @property
    def final_graph_costs(self) -> memoryview:
        """float32 [num_states]; infinity for states that are not final."""
        return array_view(self._view.final_graph_cost, self.num_states, self._share(), "f")

    @property
    def final_acoustic_costs(self) -> memoryview:
        return array_view(self._view.final_acoustic_cost, self.num_states, self._share(), "f")

    @property
    def final_scorer_costs(self) -> memoryview:
        return array_view(self._view.final_scorer_cost, self.num_states, self._share(), "f")

    def determinize(self, *, hmm: Hmm | None = None, **options: Unpack[LatticeDeterminizeOptions]) -> CompactLattice:
        """The word sequences within `beam` (default: 8) of the best, with one path for each. `complete_beam` of the result is smaller than `beam` if max_bytes was reached.

        `hmm`: a Kaldi model; the lattice is then determinized over phones first, with the same result.
        """
        out, phones = _abi.wf_determinized(), _phones_of(hmm)
        call("wf_lattice_determinize", self.address, phones and ctypes.byref(phones), c_options("lattice_determinize", options), ctypes.byref(out))
        return _determinized(out, self)

    def best_path(self) -> LatticePath | None:
        paths = Nbest(create("wf_lattice_best_path", self.address)).paths(self._words)
        return paths[0] if paths else None

    def prune(self, beam: float) -> Lattice:
        """The arcs on paths within `beam` nats of the best."""
        return self._made(Lattice, create("wf_lattice_prune", self.address, beam))

    def scale(self, **options: Unpack[LatticeScaleOptions]) -> Lattice:
        """The same lattice with scaled costs."""
        return self._made(Lattice, create("wf_lattice_scale", self.address, c_options("lattice_scale", options)))

    def draw(self, path: str | os.PathLike[str], **options: Unpack[LatticeDrawOptions]) -> None:
        """Draws the determinized lattice: CompactLattice.draw."""
        self.determinize().draw(path, **options)

    def _repr_svg_(self) -> str | None:
        small = self._address and self.num_arcs <= 100 * notebook.MOST_ARCS  # determinization makes it smaller
        return notebook.picture(lambda path: self.draw(path, max_arcs=notebook.MOST_ARCS)) if small else None

    def to_compact(self) -> CompactLattice:
        """The same states and arcs as a compact lattice, without determinization."""
        return self._made(CompactLattice, create("wf_compact_lattice_from_raw", self.address), aligned=False)

    def __repr__(self) -> str:
        return f"<Lattice: {self.num_states} states, {self.num_arcs} arcs>" if self._address else "<Lattice, closed>"


class TimedLabel(NamedTuple):
    """A word, phone or token of a path. Frames are half-open: [start, end)."""

    label: int
    start: int
    end: int


class ScorerCosts(NamedTuple):
    """A compact lattice, and the part of its graph costs that comes from a scorer: for each arc, and for ending in each state."""

    lattice: CompactLattice
    arcs: array.array[float]
    finals: array.array[float]


class ConfidentWord(NamedTuple):
    """A word with its posterior. Frames are half-open: [start, end). `text`: None if the lattice has no symbol table of its words."""

    label: int
    start: int
    end: int
    confidence: float
    text: str | None = None


class Mbr(NamedTuple):
    """Minimum Bayes risk words, and their risk: the expected number of errors."""

    words: list[ConfidentWord]
    risk: float


def mbr_of(address: int, lattice: CompactLattice) -> Mbr:
    """The contents of a wf_mbr_result of a lattice."""
    raw = _abi.wf_mbr_result.from_address(address)
    words = zip(raw.words[: raw.num_words], raw.confidences[: raw.num_words])
    return Mbr([ConfidentWord(word.label, word.start_frame, word.end_frame, confidence, lattice._text(word.label)) for word, confidence in words], raw.risk)


class WordAligner(Handle):
    """Finds where words begin and end in an alignment (one label per frame). Immutable.

    Graphs made by build_ctc_graph and build_hmm_graph have one (`Graph.word_aligner`), from which the decoder takes word times. For other graphs, make one and use
    `Graph(fst.with_word_aligner(aligner))`.
    """

    _free = lib.wf_word_aligner_free

    @classmethod
    def from_hmm(cls, hmm: Hmm) -> WordAligner:
        """For Kaldi models that were read with a lang folder that has phones/word_boundary.txt."""
        return cls(create("wf_word_aligner_from_hmm", Hmm._address_of(hmm)))

    @classmethod
    def from_hmm_lexicon(cls, hmm: Hmm, lexicon: Lexicon, words: Symbols) -> WordAligner:
        """For models whose labels determine their phone (CMU Sphinx, Kaldi), with a lexicon over `hmm.phones`. `words`: symbol table of the graph's words."""
        return cls(create("wf_word_aligner_from_hmm_lexicon", Hmm._address_of(hmm), Lexicon._address_of(lexicon), Symbols._address_of(words)))

    @classmethod
    def from_fst(cls, fst: Fst) -> WordAligner:
        """The word aligner of a graph's fst. Raises UnsupportedError if it has none."""
        return cls(create("wf_word_aligner_from_fst", Fst._address_of(fst)))

    @classmethod
    def from_tokens(cls, tokens: SymbolsLike, blank: str | None = None) -> WordAligner:
        """For CTC tokens that say whether they begin a word: by U+2581, by the space of byte-level BPE (Ġ), or by the lack of ## that the others have."""
        table = as_symbols(tokens, "tokens")
        return cls(create("wf_word_aligner_from_tokens", table.address, None if blank is None else encode_text(blank)))

    @classmethod
    def from_lexicon(cls, lexicon: Lexicon, words: Symbols) -> WordAligner:
        """For CTC tokens with a lexicon over them. `words`: symbol table of the lattice's words."""
        return cls(create("wf_word_aligner_from_lexicon", Lexicon._address_of(lexicon), Symbols._address_of(words)))

    def words(self, words: Sequence[int], alignment: Sequence[int]) -> list[TimedLabel]:
        """The words of a path (`path.words`, `path.alignment`) with their frames."""
        labels, frames = int32_array(words), int32_array(alignment)
        return [TimedLabel(word.label, word.start_frame, word.end_frame) for word in self._raw_words(labels, len(words), frames, len(alignment))]

    def _raw_words(self, labels: Any, num_words: int, alignment: Any, num_labels: int) -> Any:
        """An array of wf_word, from C arrays."""
        out = (_abi.wf_word * num_words)()
        call("wf_word_aligner_words", self.address, labels, num_words, alignment, num_labels, out, None)
        return out

    def units(self, alignment: Sequence[int]) -> list[TimedLabel]:
        """The phones or tokens of a path with their frames, without blanks."""
        frames, out, count = int32_array(alignment), ctypes.c_void_p(), ctypes.c_size_t()
        call("wf_word_aligner_units", self.address, frames, len(frames), ctypes.byref(out), ctypes.byref(count))
        numbers = take_numbers(out.value, "i", 3 * count.value)
        return [TimedLabel(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]

    def unit_text(self, unit: int) -> str | None:
        """The name of a phone or token."""
        return decode_text(lib.wf_word_aligner_unit_text(self.address, unit))


class CompactLattice(_Words):
    """A compact lattice: an acyclic acceptor of words, with costs and alignments on its arcs. Immutable.

    Methods that take words take their texts, as a list or with spaces between them, if the lattice knows them (`words`), or their labels.
    """

    _free = lib.wf_compact_lattice_free
    complete_beam = float("inf")  # set by determinization, kept by align and prune: all word sequences within this beam of the best are in the lattice

    def _beam(self) -> float:
        return min(self.complete_beam, 1e30)  # the largest value in C: no limit

    def _timed(self) -> CompactLattice:
        """The lattice with arcs aligned to the frames of their words, if there is a word aligner; else the times of words are those of the arcs."""
        return self if self._aligner is None else self.align(self._aligner)

    @property
    def _view(self) -> Any:
        return lib.wf_compact_lattice_get_view(self.address)

    @property
    def num_states(self) -> int:
        return int(self._view.num_states)

    @property
    def num_arcs(self) -> int:
        return int(self._view.num_arcs)

    def to_raw(self) -> Lattice:
        return self._made(Lattice, create("wf_lattice_from_compact", self.address), aligned=False)

    def determinize(self, **options: Unpack[LatticeDeterminizeOptions]) -> CompactLattice:
        """Like Lattice.determinize."""
        out = _abi.wf_determinized()
        call("wf_compact_lattice_determinize", self.address, c_options("lattice_determinize", options), ctypes.byref(out))
        made = _determinized(out, self, aligned=False)
        made.complete_beam = min(made.complete_beam, self.complete_beam)
        return made

    def nbest(self, n: int) -> list[LatticePath]:
        """The n best word sequences, without duplicates. The lattice must be deterministic (`determinize`)."""
        return Nbest(create("wf_compact_lattice_nbest", self.address, n)).paths(self._words)

    def best_path(self) -> LatticePath | None:
        paths = Nbest(create("wf_compact_lattice_best_path", self.address)).paths(self._words)
        return paths[0] if paths else None

    def prune(self, beam: float) -> CompactLattice:
        """The arcs on paths within `beam` nats of the best."""
        made = self._made(CompactLattice, create("wf_compact_lattice_prune", self.address, beam))
        made.complete_beam = min(beam, self.complete_beam)
        return made

    def scale(self, **options: Unpack[LatticeScaleOptions]) -> CompactLattice:
        """The same lattice with scaled costs."""
        return self._made(CompactLattice, create("wf_compact_lattice_scale", self.address, c_options("lattice_scale", options)))

    def rescore(self, old_lm: LM | None, new_lm: LM, **options: Unpack[LatticeRescoreOptions]) -> CompactLattice:
        """Subtracts the costs of `old_lm` (None: of nothing) and adds those of `new_lm`. The word labels of both models must be those of the lattice."""
        models = LM._address_or_none(old_lm), LM._address_of(new_lm)
        address = create("wf_compact_lattice_rescore", self.address, *models, c_options("lattice_rescore", options), after=(None,))
        return self._made(CompactLattice, address, aligned=False)

    def score(self, scorer: Scorer, max_states: int = 10_000_000) -> CompactLattice:
        """Adds the costs of a scorer to the graph costs. For the paths in the lattice, the result is that of decoding with the scorer."""
        return self._made(CompactLattice, create("wf_compact_lattice_score", self.address, Scorer._address_of(scorer), max_states), aligned=False)

    def scorer_costs(self, scorer: Scorer, max_states: int = 10_000_000) -> ScorerCosts:
        """For a lattice that was decoded with the scorer: a lattice with the same paths and costs, and the part of the costs that comes from the scorer."""
        costs = _abi.wf_scorer_costs()
        address = create("wf_compact_lattice_scorer_costs", self.address, Scorer._address_of(scorer), max_states, after=(ctypes.byref(costs),))
        lattice = self._made(CompactLattice, address, aligned=False)
        arcs, finals = (array.array("f", pointer[:count] if count else []) for pointer, count in ((costs.arcs, lattice.num_arcs), (costs.finals, lattice.num_states)))
        lib.wf_scorer_costs_clear(ctypes.byref(costs))
        return ScorerCosts(lattice, arcs, finals)

    def draw(self, path: str | os.PathLike[str], key: str = "lattice", words: Symbols | None = None, **options: Unpack[LatticeDrawOptions]) -> None:
        """Draws the lattice, as the end of the name says: .svg; .dot or .gv for Graphviz; else an HTML page with the picture. `words`: symbol table of the words (default: the lattice's own)."""
        timed, table = self._timed(), Symbols._address_or_none(self.words if words is None else words)
        call("wf_compact_lattice_draw", timed.address, encode_text(key), table, c_options("lattice_draw", options), encode_path(path))

    def _repr_svg_(self) -> str | None:
        return notebook.picture(lambda path: self.draw(path, max_arcs=notebook.MOST_ARCS))

    def align(self, aligner: WordAligner, **options: Unpack[LatticeAlignOptions]) -> CompactLattice:
        """The same paths, with one arc for each word over exactly the word's frames."""
        address = create("wf_compact_lattice_align", self.address, WordAligner._address_of(aligner), c_options("lattice_align", options), after=(None,))
        made = self._made(CompactLattice, address, aligned=False)
        made.complete_beam = self.complete_beam
        return made

    def stats(self) -> dict[str, Any]:
        """Sizes, depth, best and total cost (`warpfst lattice stats`)."""
        stats = sized(_abi.wf_lattice_stats)
        call("wf_compact_lattice_get_stats", self.address, ctypes.byref(stats))
        return as_dict(stats)

    def posteriors(self) -> tuple[array.array[float], array.array[float], float]:
        """(posteriors of arcs, posteriors of ending in each state, total cost). A posterior is a share of the probability of all paths. Costs are not scaled."""
        view = self._view
        arcs, finals, total = (ctypes.c_double * view.num_arcs)(), (ctypes.c_double * view.num_states)(), ctypes.c_double()
        call("wf_compact_lattice_posteriors", self.address, arcs, finals, ctypes.byref(total))
        return array.array("d", bytes(arcs)), array.array("d", bytes(finals)), total.value

    def mbr(self, **options: Unpack[MbrOptions]) -> Mbr:
        """Minimum Bayes risk words with confidences. `scale`: factor on the costs of paths (default: 1). Confidences leave room for the paths beyond complete_beam (default: that of the lattice).

        Times are means over the paths; they are -1 if the paths differ in their number of frames. For a lattice that was read from a file, they are those of its arcs.
        """
        timed = self._timed()
        address = create("wf_compact_lattice_mbr", timed.address, None, 0, c_options("mbr", {"complete_beam": self._beam(), **options}))
        made = mbr_of(address, self)
        lib.wf_mbr_result_free(address)
        return made

    def confidences(self, words: str | Sequence[str] | Sequence[int], scale: float = 1.0) -> list[float]:
        """Confidence of each word of a sequence, such as that of the best path. Computed like `mbr`, but the words are not changed. `scale`: as for `mbr`."""
        labels = self._labels(words)
        address = create("wf_compact_lattice_mbr", self.address, labels, len(labels), c_options("mbr", {"decode": False, "scale": scale, "complete_beam": self._beam()}))
        result = _abi.wf_mbr_result.from_address(address)
        confidences = list(result.confidences[: result.num_words])
        lib.wf_mbr_result_free(address)
        return confidences

    def spot(self, words: Sequence[str] | Sequence[int], **options: Unpack[SpotOptions]) -> list[ConfidentWord]:
        """Finds listed words: hits sorted by start frame, with the probability as `confidence`. Costs are not scaled.

        How hits are made: docs/how-to/spotting.md. ArgumentError: a label below 1, or paths to a listed word differ in their number of frames.
        """
        timed, labels = self._timed(), self._labels(check_list(words, "words"))
        out, count = ctypes.c_void_p(), ctypes.c_size_t()
        call("wf_compact_lattice_spot", timed.address, labels, len(labels), c_options("spot", options), ctypes.byref(out), ctypes.byref(count))
        hits = (_abi.wf_spot_hit * count.value).from_address(out.value) if out.value else ()
        made = [ConfidentWord(hit.label, hit.start_frame, hit.end_frame, hit.probability, self._text(hit.label)) for hit in hits]
        lib.wf_free(out)
        return made

    @overload
    def oracle(self, reference: str | Sequence[str]) -> tuple[list[str], int]: ...
    @overload
    def oracle(self, reference: Sequence[int]) -> tuple[list[int], int]: ...
    def oracle(self, reference: str | Sequence[str] | Sequence[int]) -> tuple[list[str], int] | tuple[list[int], int]:
        """(words of the path with the fewest errors against a reference, number of these errors). The words are texts if the reference is, else labels."""
        count, errors = ctypes.c_size_t(), ctypes.c_uint64()
        labels = self._labels(reference, unknown=_UNKNOWN)
        out = ctypes.c_void_p()
        call("wf_compact_lattice_oracle", self.address, labels, len(labels), ctypes.byref(out), ctypes.byref(count), ctypes.byref(errors))
        found: list[int] = take_numbers(out.value, "i", count.value).tolist()
        if not isinstance(reference, str) and not any(isinstance(word, str) for word in reference):
            return found, errors.value
        assert self._words is not None or not labels
        return [text_of(label, self._words) for label in found] if self._words else [str(label) for label in found], errors.value

    def __repr__(self) -> str:
        return f"<CompactLattice: {self.num_states} states, {self.num_arcs} arcs>" if self._address else "<CompactLattice, closed>"


class LatticeReader(Handle):
    """Iterates over the lattices of Kaldi archives: `for key, lattice in LatticeReader("lat.gz")`. Not thread-safe."""

    _free = lib.wf_lattice_reader_free

    def __init__(self, *sources: str | os.PathLike[str], words: Symbols | None = None, **options: Unpack[LatticeReaderOptions]) -> None:
        """`words`: symbol table of the lattices' words, which text archives may contain instead of numbers."""
        self._words = words
        paths = (ctypes.c_char_p * len(sources))(*(encode_path(source) for source in sources))
        super().__init__(create("wf_lattice_reader_open", paths, len(sources), Symbols._address_or_none(words), c_options("lattice_reader", options)))

    def __iter__(self) -> Iterator[tuple[str, Lattice | CompactLattice]]:
        return self

    def __next__(self) -> tuple[str, Lattice | CompactLattice]:
        entry, done = _abi.wf_lattice_entry(), ctypes.c_bool()
        try:
            call("wf_lattice_reader_next", self.address, ctypes.byref(entry), ctypes.byref(done))
            if done.value:
                raise StopIteration
            key = decode_text(entry.key) or ""
            raw, table = entry.raw, self._words
            return key, Lattice(lib.wf_lattice_ref(raw), None, table) if raw else CompactLattice(lib.wf_compact_lattice_ref(entry.compact), None, table)
        finally:
            lib.wf_lattice_entry_clear(ctypes.byref(entry))


class LatticeWriter(Handle):
    """Writes a Kaldi lattice archive: `with LatticeWriter("lat.ark") as out: out.put(key, lattice)`. If the block raises an exception, no file is written."""

    _free = lib.wf_lattice_writer_abort

    def __init__(self, path: str | os.PathLike[str], words: Symbols | None = None, **options: Unpack[LatticeWriterOptions]) -> None:
        """`words`: symbol table for text archives that contain words instead of numbers."""
        super().__init__(create("wf_lattice_writer_open", encode_path(path), Symbols._address_or_none(words), c_options("lattice_writer", options)))

    def put(self, key: str, lattice: Lattice | CompactLattice) -> None:
        raw, compact = (lattice.address, None) if isinstance(lattice, Lattice) else (None, CompactLattice._address_of(lattice))
        entry = _abi.wf_lattice_entry(encode_text(key), raw, compact)
        call("wf_lattice_writer_put", self.address, ctypes.byref(entry))

    def finish(self) -> None:
        """Completes the file. Without this call, no file is written."""
        address = self._disown()
        call("wf_lattice_writer_close", address)

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None and self._address is not None:
            self.finish()
        else:
            self.close()
