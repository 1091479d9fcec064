"""Weighted finite-state transducers: the immutable container and its file formats."""

from __future__ import annotations

import array
import ctypes
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from .. import _abi, notebook
from .._library import Handle, as_dict, call, check_mapping, create, encode_path, lib, sized, take_bytes
from ..errors import ArgumentError, FormatError
from ..labels import TokenType, labels_of, text_of
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


class StringPath(NamedTuple):
    """A successful path: its input, its output, and its cost."""

    input: str
    output: str
    cost: float


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


_PROPERTIES: dict[str, int] = {name[8:].lower(): bit for name, bit in vars(_abi).items() if name.startswith("WF_PROP_")}
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

        if copy is None:  # only if needed; NumPy 1 has no copy=None
            return np.asarray(self._view, dtype=dtype)
        return np.array(self._view, dtype=dtype, copy=copy)

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
        """Makes an fst from arcs (source, target, ilabel, olabel, weight) and final costs by state. States are numbered from 0 to the largest state given.

        arcs  an iterable of tuples, a numpy array [num_arcs, 5], or a structured array with the fields source, target (or nextstate), ilabel, olabel and weight
        """
        sources, raw, largest = packed_array(arcs) if hasattr(arcs, "__array_interface__") else packed_arcs(list(arcs))
        states = [start, *check_mapping(finals, "finals")]
        if min(states) < 0 or max(*states, largest) >= 2**31:
            raise ValueError("states must be numbers from 0 to 2^31 - 1")
        num_states, num_arcs = max(*states, largest) + 1, len(sources) // 4
        if num_states - 1 > 2 * (num_arcs + len(finals)) + 1000:
            raise ValueError(f"state {num_states - 1} is far larger than the number of states that {num_arcs} arcs can connect: number states from 0")
        return cls._built(semiring, num_states, start, finals, num_arcs, sources, raw, isymbols, osymbols)

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
        """`sources` and `arcs`: memory of uint32 and of wf_arc, as bytes or as ctypes passes it."""
        with _Builder(create("wf_builder_create", choose(semiring, SEMIRINGS, "semiring"))) as builder:
            call("wf_builder_add_states", builder.address, num_states, None)
            if num_states:
                call("wf_builder_set_start", builder.address, start)
            for state, cost in finals.items():
                call("wf_builder_set_final", builder.address, state, cost)
            call("wf_builder_add_arcs", builder.address, sources, arcs, num_arcs)
            return cls(create("wf_builder_finish", builder.address, Symbols._address_or_none(isymbols), Symbols._address_or_none(osymbols)))

    @classmethod
    def from_string(cls, text: str = "", weight: float = 0.0, token_type: TokenType = "byte", brackets: bool = True) -> Fst:
        """An acceptor of one text. `brackets`: they stand for labels (`warpfst.strings`)."""
        labels = labels_of(text, token_type, brackets)
        arcs = b"".join(ARC.pack(k + 1, 0.0, label, label) for k, label in enumerate(labels))
        sources = struct.pack(f"={len(labels)}I", *range(len(labels)))
        return cls._built("tropical", len(labels) + 1, 0, {len(labels): weight}, len(labels), sources, arcs)

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
        return frozenset(name for name, bit in _PROPERTIES.items() if bits.value & bit)

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

    # --- operators and strings: those of pynini ---

    def _with(self, other: object, function: str, *, reversed: bool = False) -> Any:
        """An operation on this fst and another, or the acceptor of a text of bytes."""
        if not isinstance(other, (Fst, str)):
            return NotImplemented
        right = Fst.from_string(other) if isinstance(other, str) else other
        a, b = (right.address, self.address) if reversed else (self.address, right.address)
        if function in ("wf_compose", "wf_difference"):
            return Fst(create(function, a, b, None))
        return Fst(create(function, (ctypes.c_void_p * 2)(a, b), 2))

    def __add__(self, other: Fst | str) -> Fst:
        """Concatenation, as `concat`. A text is an acceptor of its bytes, here and in the other operators."""
        return self._with(other, "wf_concat")  # type: ignore[no-any-return]

    def __radd__(self, other: str) -> Fst:
        return self._with(other, "wf_concat", reversed=True)  # type: ignore[no-any-return]

    def __or__(self, other: Fst | str) -> Fst:
        """Union, as `union`."""
        return self._with(other, "wf_union")  # type: ignore[no-any-return]

    def __ror__(self, other: str) -> Fst:
        return self._with(other, "wf_union", reversed=True)  # type: ignore[no-any-return]

    def __matmul__(self, other: Fst | str) -> Fst:
        """Composition, as `compose`."""
        return self._with(other, "wf_compose")  # type: ignore[no-any-return]

    def __rmatmul__(self, other: str) -> Fst:
        return self._with(other, "wf_compose", reversed=True)  # type: ignore[no-any-return]

    def __sub__(self, other: Fst | str) -> Fst:
        """Difference, as `difference`."""
        return self._with(other, "wf_difference")  # type: ignore[no-any-return]

    def __rsub__(self, other: str) -> Fst:
        return self._with(other, "wf_difference", reversed=True)  # type: ignore[no-any-return]

    def closure(self, lower: int = 0, upper: int = 0) -> Fst:
        """At least `lower` repetitions and at most `upper`; 0: any number."""
        if lower < 0 or (upper != 0 and upper < lower):
            raise ValueError(f"{lower} to {upper} repetitions, expected numbers from 0 in this order")
        if upper == 0:
            last = Fst(create("wf_closure", self.address, c_options("closure", {"closure_type": "plus" if lower else "star"})))
            parts = [self] * (lower - 1) + [last]
        else:
            rest = self._empty_string()
            for _ in range(upper - lower):  # nested, so that each number of repetitions counts once in the log semiring
                rest = (self + rest).ques
            parts = [self] * lower + [rest]
        return parts[0] if len(parts) == 1 else Fst(create("wf_concat", (ctypes.c_void_p * len(parts))(*(part.address for part in parts)), len(parts)))

    @property
    def star(self) -> Fst:
        """Any number of repetitions."""
        return self.closure()

    @property
    def plus(self) -> Fst:
        """At least one repetition."""
        return self.closure(1)

    @property
    def ques(self) -> Fst:
        """The fst, or nothing."""
        empty = self._empty_string()
        return Fst(create("wf_union", (ctypes.c_void_p * 2)(self.address, empty.address), 2))

    def _empty_string(self) -> Fst:
        return Fst._built(self.semiring, 1, 0, {0: 0.0}, 0, b"", b"")

    def paths(self, input_token_type: TokenType = "byte", output_token_type: TokenType = "byte") -> Iterator[StringPath]:
        """The successful paths with their texts, in the order of arcs. ArgumentError: there is a cycle, so they are endless."""
        fst = self if {"accessible", "coaccessible"} <= self.properties else Fst(create("wf_connect", self.address))
        if "acyclic" not in fst.properties:
            raise ArgumentError("the fst has a cycle, so it has endlessly many strings; use shortest_path")
        return fst._paths_of_trimmed(input_token_type, output_token_type)

    def _paths_of_trimmed(self, input_token_type: TokenType, output_token_type: TokenType) -> Iterator[StringPath]:
        arcs, offsets, finals = list(ARC.iter_unpack(bytes(self.arcs))), self.arc_offsets.tolist(), self.final_costs.tolist()
        # States to visit: the number of arcs before, the labels of the last of them, the cost. `ins` and `outs` are the labels of the path to the visited state.
        stack: list[tuple[int, int, int, int, float]] = [(self.start, 0, 0, 0, 0.0)] if self.start is not None else []
        ins: list[int] = []
        outs: list[int] = []
        while stack:
            state, length, ilabel, olabel, cost = stack.pop()
            if length > 0:
                ins[length - 1 :] = [ilabel]
                outs[length - 1 :] = [olabel]
            if finals[state] != math.inf:
                output = text_of(outs[:length], output_token_type)
                same = ins[:length] == outs[:length] and input_token_type is output_token_type
                yield StringPath(output if same else text_of(ins[:length], input_token_type), output, cost + finals[state])
            for to, weight, i, o in reversed(arcs[offsets[state] : offsets[state + 1]]):
                stack.append((to, length + 1, i, o, cost + weight))

    def string(self, token_type: TokenType = "byte") -> str:
        """The output of the only path. ArgumentError: there is none, or several."""
        outputs = [path.output for path, _ in zip(self.paths(token_type, token_type), range(2))]
        if len(outputs) != 1:
            raise ArgumentError("the fst has no path" if not outputs else "the fst has several paths; use shortest_path or paths()")
        return outputs[0]

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws the fst as an SVG picture, with the texts of its symbol tables; to a name in .dot or .gv, as text for Graphviz. Notebooks show pictures of small fsts.

        LimitError: a picture of more than 1000 states or arcs.
        """
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


ARC = struct.Struct("=IfII")  # wf_arc: nextstate, weight, ilabel, olabel


def packed_arcs(arcs: list[tuple[int, int, int, int, float]]) -> tuple[bytes, bytes, int]:
    """The memory of the sources and of the wf_arcs, and the largest state; -1: there are no arcs."""
    try:
        raw = b"".join([ARC.pack(target, weight, ilabel, olabel) for _, target, ilabel, olabel, weight in arcs])
        sources = struct.pack(f"={len(arcs)}I", *[arc[0] for arc in arcs])
    except struct.error as error:
        _explain(arcs)
        raise TypeError(f"arcs: {error}") from None
    if any(max(arc[2], arc[3]) >= 2**31 for arc in arcs):
        _explain(arcs)
    return sources, raw, max((max(arc[0], arc[1]) for arc in arcs), default=-1)


def _explain(arcs: list[tuple[int, int, int, int, float]]) -> None:
    """Raises the error of the first arc with a number that does not fit."""
    for source, target, *labels, _ in arcs:
        for label in labels:
            if not 0 <= label < 2**31:
                raise ValueError(f"label {label} is outside 0 to 2^31 - 1")
        if min(source, target) < 0 or max(source, target) >= 2**31:
            raise ValueError("states must be numbers from 0 to 2^31 - 1")


_COLUMNS = ("source", "target", "ilabel", "olabel", "weight")


def packed_array(arcs: Any) -> tuple[bytes, bytes, int]:
    """`packed_arcs` of a numpy array."""
    import numpy as np

    names = arcs.dtype.names
    if names is not None:
        columns = [arcs["nextstate" if name == "target" and "nextstate" in names else name] for name in _COLUMNS if name in names or name == "target" and "nextstate" in names]
    else:
        columns = list(arcs.T) if arcs.ndim == 2 and arcs.shape[1] == 5 else []
    if len(columns) != 5 or any(column.ndim != 1 for column in columns):
        raise ValueError(f"arcs: an array of shape {arcs.shape} and type {arcs.dtype}, expected [num_arcs, 5] or the fields {', '.join(_COLUMNS)}")
    whole = []
    for name, column in zip(_COLUMNS, columns[:4]):
        numbers = column.astype(np.int64)
        wrong = np.flatnonzero((numbers != column) | (numbers < 0) | (numbers >= 2**31))
        if len(wrong):
            raise ValueError(f"arc {wrong[0]}: {name} {column[wrong[0]]} is not a whole number from 0 to 2^31 - 1")
        whole.append(numbers)
    raw = np.empty(len(whole[0]), dtype=[("nextstate", "<u4"), ("weight", "<f4"), ("ilabel", "<i4"), ("olabel", "<i4")])
    raw["nextstate"], raw["ilabel"], raw["olabel"], raw["weight"] = whole[1], whole[2], whole[3], columns[4]
    return whole[0].astype("<u4").tobytes(), raw.tobytes(), int(max(whole[0].max(initial=-1), whole[1].max(initial=-1)))
