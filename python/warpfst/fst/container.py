"""Weighted finite-state transducers: the immutable container and its file formats."""

from __future__ import annotations

import array
import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from .. import _abi, notebook
from .._library import Handle, as_dict, call, check_mapping, create, encode_path, lib, sized, take_bytes
from ..errors import FormatError
from ..options import c_options
from ..symbols import Symbols, SymbolsLike, as_symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._option_types import TextOptions

Semiring = Literal["tropical", "log"]
Format = Literal["native", "vector", "const", "vector_log64", "const_log64"]
SEMIRINGS: tuple[Semiring, ...] = ("tropical", "log")
_FORMATS: tuple[Format, ...] = ("native", "vector", "const", "vector_log64", "const_log64")


class Arc(NamedTuple):
    """An arc of an fst: its labels, its cost, and the state that it leads to."""

    ilabel: int
    olabel: int
    weight: float
    nextstate: int


def choose(value: str, names: tuple[str, ...], what: str) -> int:
    if value not in names:
        raise ValueError(f"{what} {value!r} is none of {', '.join(names)}")
    return names.index(value)


def array_view(pointer: Any, count: int, owner: object, typecode: Any = "") -> memoryview:
    """A read-only view of the memory at a ctypes pointer. It keeps `owner` alive. numpy.asarray takes it without a copy.

    With `typecode`, elements are plain numbers, which Python can also index.
    """
    if not count or not pointer:
        return memoryview(array.array(typecode)) if typecode else memoryview((pointer._type_ * 0)())
    values = (pointer._type_ * count).from_address(ctypes.addressof(pointer.contents))
    values.owner = owner
    view = memoryview(values).toreadonly()
    return view.cast("B").cast(typecode) if typecode else view


T = TypeVar("T")


class Records(Sequence[T]):
    """A read-only view of an array of C structures. Items are named tuples; numpy.asarray gives a structured array without a copy."""

    def __init__(self, pointer: Any, count: int, owner: object, kind: type[T]) -> None:
        """As for array_view. `kind`: class of the items, whose fields are named like those of the structure."""
        self._view, self._kind = array_view(pointer, count, owner), kind

    def __len__(self) -> int:
        return len(self._view)

    @overload
    def __getitem__(self, i: int) -> T: ...
    @overload
    def __getitem__(self, i: slice) -> list[T]: ...
    def __getitem__(self, i: int | slice) -> T | list[T]:
        raw: Any = self._view.obj
        return [self._item(one) for one in raw[i]] if isinstance(i, slice) else self._item(raw[i])

    def _item(self, raw: Any) -> T:
        names: tuple[str, ...] = self._kind._fields  # type: ignore[attr-defined]
        return self._kind(*(getattr(raw, name) for name in names))

    def __bytes__(self) -> bytes:
        return bytes(self._view)

    def __buffer__(self, flags: int, /) -> memoryview:
        """From Python 3.12 on, memoryview(records)."""
        return self._view

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy as np

        return np.array(self._view, dtype=dtype, copy=copy)  # None: only if needed

    def __repr__(self) -> str:
        return f"<{len(self)} records ({', '.join(self._kind._fields)})>"  # type: ignore[attr-defined]


class Fst(Handle):
    """A weighted transducer. Immutable and thread-safe; operations return new ones."""

    _free = lib.wf_fst_free

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Fst:
        """Reads a file in warpfst's native format, or in OpenFst's vector or const format (standard, log or log64 arcs)."""
        return cls(create("wf_fst_read", encode_path(path)))

    def write(self, path: str | os.PathLike[str], format: Format = "native") -> None:
        """Writes a file. "native" files are memory-mapped when read, so they open at once; "vector" and "const" are OpenFst's formats."""
        call("wf_fst_write", self.address, encode_path(path), choose(format, _FORMATS, "format"))

    @classmethod
    def compile(
        cls, path: str | os.PathLike[str], isymbols: SymbolsLike | None = None, osymbols: SymbolsLike | None = None, **options: Unpack[TextOptions]
    ) -> Fst:
        """Reads AT&T text, like OpenFst's fstcompile."""
        return cls._compiled("wf_fst_compile", (encode_path(path),), isymbols, osymbols, options)

    @classmethod
    def from_text(cls, text: str, isymbols: SymbolsLike | None = None, osymbols: SymbolsLike | None = None, **options: Unpack[TextOptions]) -> Fst:
        """`compile` for text in memory. A line is an arc, `source target ilabel olabel [weight]`, or a final state, `state [weight]`."""
        data = text.encode("utf-8", "surrogateescape")  # as symbols
        return cls._compiled("wf_fst_compile_memory", (data, len(data), b"text"), isymbols, osymbols, options)

    @classmethod
    def _compiled(cls, function: str, source: tuple[Any, ...], isymbols: SymbolsLike | None, osymbols: SymbolsLike | None, options: TextOptions) -> Fst:
        tables = [None if table is None else as_symbols(table, name) for table, name in ((isymbols, "isymbols"), (osymbols, "osymbols"))]
        return cls(create(function, *source, *(table and table.address for table in tables), c_options("text", options)))

    @classmethod
    def read_grammar(cls, path: str | os.PathLike[str], words: SymbolsLike | None = None) -> Fst:
        """Reads a grammar of words: a file in JSGF, as an acceptor, or one that `read` can read. JSGF that cannot be read is explained in wf_grammar_read.

        words  labels of the words of a grammar in JSGF, all of which must be there. None: a table is made of them, in byte order
        """
        return cls._of_words("wf_grammar_read", (encode_path(path),), words)

    @classmethod
    def from_jsgf(cls, text: str, words: SymbolsLike | None = None) -> Fst:
        """`read_grammar` for JSGF in memory: "#JSGF V1.0; grammar g; public <order> = (one | two) coffees;"."""
        data = text.encode("utf-8", "surrogateescape")
        if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"#JSGF"):
            raise FormatError(f"text: found {text[:40]!r}, expected '#JSGF V1.0;'")
        return cls._of_words("wf_grammar_read_memory", (data, len(data), b"text"), words)

    @classmethod
    def from_phrases(cls, phrases: Iterable[str] | str | os.PathLike[str], words: SymbolsLike | None = None) -> Fst:
        """A grammar of sentences, at no cost: a list of texts, or the path of a file with one in each line. White space separates words. `words` as in read_grammar."""
        if isinstance(phrases, (str, os.PathLike)):
            return cls._of_words("wf_grammar_read_phrases", (encode_path(phrases),), words)
        data = "\n".join(" ".join(phrase.split()) for phrase in phrases).encode("utf-8", "surrogateescape")
        return cls._of_words("wf_grammar_read_phrases_memory", (data, len(data), b"phrases"), words)

    @classmethod
    def _of_words(cls, function: str, source: tuple[Any, ...], words: SymbolsLike | None) -> Fst:
        table = None if words is None else as_symbols(words, "words")
        return cls(create(function, *source, Symbols._address_or_none(table)))

    def to_text(self, **options: Unpack[TextOptions]) -> str:
        """AT&T text, like that of OpenFst's fstprint. ArgumentError: an arc has a symbol that text cannot hold, with a blank; `numeric=True` prints numbers."""
        return take_bytes("wf_fst_print_memory", self.address, None, None, c_options("text", options)).decode("utf-8", "surrogateescape")

    @classmethod
    def from_arcs(
        cls,
        arcs: Iterable[tuple[int, int, int, int, float]],
        finals: Mapping[int, float],
        start: int = 0,
        *,
        semiring: Semiring = "tropical",
        isymbols: Symbols | None = None,
        osymbols: Symbols | None = None,
    ) -> Fst:
        """Makes an fst from arcs (source, target, ilabel, olabel, weight) and final costs by state. States are numbered from 0 to the largest state given."""
        arcs = list(arcs)
        states = [start, *check_mapping(finals, "finals"), *(state for arc in arcs for state in arc[:2])]
        if min(states) < 0 or max(states) >= 2**31:
            raise ValueError("states must be numbers from 0 to 2^31 - 1")
        if max(states) > 2 * (len(arcs) + len(finals)) + 1000:
            raise ValueError(f"state {max(states)} is far larger than the number of states that {len(arcs)} arcs can connect: number states from 0")
        sources = (ctypes.c_uint32 * len(arcs))(*(arc[0] for arc in arcs))
        raw = (_abi.wf_arc * len(arcs))(*(_abi.wf_arc(target, weight, _label(ilabel), _label(olabel)) for _, target, ilabel, olabel, weight in arcs))
        return cls._built(semiring, max(states) + 1, start, finals, len(arcs), sources, raw, isymbols, osymbols)

    @classmethod
    def _built(
        cls,
        semiring: Semiring,
        num_states: int,
        start: int,
        finals: Mapping[int, float],
        num_arcs: int,
        sources: Any,
        arcs: Any,
        isymbols: Symbols | None = None,
        osymbols: Symbols | None = None,
    ) -> Fst:
        """`sources` and `arcs`: memory of uint32 and of wf_arc, as ctypes passes it."""
        with _Builder(create("wf_builder_create", choose(semiring, SEMIRINGS, "semiring"))) as builder:
            call("wf_builder_add_states", builder.address, num_states, None)
            call("wf_builder_set_start", builder.address, start)
            for state, cost in finals.items():
                call("wf_builder_set_final", builder.address, state, cost)
            call("wf_builder_add_arcs", builder.address, sources, arcs, num_arcs)
            return cls(create("wf_builder_finish", builder.address, Symbols._address_or_none(isymbols), Symbols._address_or_none(osymbols)))

    @property
    def _view(self) -> Any:
        return lib.wf_fst_get_view(self.address)

    @property
    def start(self) -> int | None:
        """The start state, or None for the empty fst."""
        start = self._view.start
        return None if start < 0 else start

    @property
    def num_states(self) -> int:
        return int(self._view.num_states)

    @property
    def num_arcs(self) -> int:
        return int(self._view.num_arcs)

    @property
    def semiring(self) -> Semiring:
        return SEMIRINGS[int(self._view.semiring)]

    @property
    def isymbols(self) -> Symbols | None:
        return Symbols._share(lib.wf_fst_isymbols(self.address))

    @property
    def osymbols(self) -> Symbols | None:
        return Symbols._share(lib.wf_fst_osymbols(self.address))

    def _share(self) -> Fst:
        """A new reference, so that views stay valid after close()."""
        return Fst(lib.wf_fst_ref(self.address))

    @property
    def arcs(self) -> Records[Arc]:
        """All arcs, state by state: a sequence of Arc. numpy.asarray gives a structured array with nextstate, weight, ilabel, olabel. No copy."""
        return Records(self._view.arcs, self.num_arcs, self._share(), Arc)

    @property
    def arc_offsets(self) -> memoryview:
        """uint64 [num_states + 1]: the arcs of state s are arcs[arc_offsets[s]:arc_offsets[s + 1]]. No copy."""
        return array_view(self._view.arc_off, self.num_states + 1, self._share(), "Q")

    @property
    def final_costs(self) -> memoryview:
        """float32 [num_states]; infinity for states that are not final. No copy."""
        return array_view(self._view.final_cost, self.num_states, self._share(), "f")

    def arcs_of(self, state: int) -> list[Arc]:
        """The arcs of one state as a list, for loops in Python."""
        view = self._view
        if not 0 <= state < view.num_states:
            raise IndexError(f"state {state} of {view.num_states}")
        return [Arc(arc.ilabel, arc.olabel, arc.weight, arc.nextstate) for arc in view.arcs[view.arc_off[state] : view.arc_off[state + 1]]]

    @property
    def properties(self) -> frozenset[str]:
        """The properties that the fst has: "acceptor", "acyclic", "ideterministic" and so on. Computed on the first call."""
        bits = ctypes.c_uint32()
        call("wf_fst_get_properties", self.address, ctypes.byref(bits))
        return frozenset(name[8:].lower() for name, bit in vars(_abi).items() if name.startswith("WF_PROP_") and bits.value & bit)

    def info(self) -> dict[str, int]:
        """Numbers of final states, epsilons, accessible states and so on (`warpfst info`)."""
        info = sized(_abi.wf_fst_info)
        call("wf_fst_get_info", self.address, ctypes.byref(info))
        return as_dict(info)

    def with_symbols(self, isymbols: Symbols | None = None, osymbols: Symbols | None = None) -> Fst:
        """The same arrays with other symbol tables (None: no table). Does not copy the arrays."""
        return Fst(create("wf_fst_with_symbols", self.address, Symbols._address_or_none(isymbols), Symbols._address_or_none(osymbols)))

    def with_word_aligner(self, aligner: Handle | None) -> Fst:
        """The same arrays with a WordAligner (None: without), so that a graph made from the fst gives exact word times."""
        from ..lattice import WordAligner  # which imports this module

        return Fst(create("wf_fst_with_word_aligner", self.address, WordAligner._address_or_none(aligner)))

    def with_semiring(self, semiring: Semiring) -> Fst:
        """The same arrays in another semiring. Weights are not changed. Does not copy the arrays."""
        return Fst(create("wf_fst_with_semiring", self.address, choose(semiring, SEMIRINGS, "semiring")))

    def with_weights(self, weights: Sequence[float]) -> Fst:
        """A copy with other arc weights, given in the order of `arcs` as a list, an array, or another sequence of floats. ArgumentError: not one weight for each arc; a weight is NaN or -inf."""
        numbers = weights if isinstance(weights, array.array) and weights.typecode == "f" else array.array("f", weights)
        return Fst(create("wf_fst_with_weights", self.address, ctypes.c_void_p(numbers.buffer_info()[0]), len(numbers)))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws the fst as an SVG picture, with the texts of its symbol tables. LimitError: more than 1000 states or arcs. Notebooks show pictures of small fsts."""
        call("wf_fst_draw", self.address, encode_path(path))

    def _repr_svg_(self) -> str | None:
        small = self._address and max(self.num_arcs, self.num_states) <= notebook.MOST_ARCS
        return notebook.picture(self.draw) if small else None

    def to_bytes(self) -> bytes:
        """The contents of a native file. Pickling uses it."""
        return take_bytes("wf_fst_write_memory", self.address, choose("native", _FORMATS, "format"))

    @classmethod
    def from_bytes(cls, data: bytes) -> Fst:
        """Makes an fst from the contents of any file that `read` can read."""
        return cls(create("wf_fst_read_memory", data, len(data), b"bytes"))

    def __reduce__(self) -> Any:
        return Fst.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"<Fst: {self.num_states} states, {self.num_arcs} arcs, {self.semiring}>" if self._address else "<Fst, closed>"


class _Builder(Handle):
    _free = lib.wf_builder_free


def _label(label: int) -> int:
    if not 0 <= label < 2**31:  # ctypes would take the low bits
        raise ValueError(f"label {label} is outside 0 to 2^31 - 1")
    return label
