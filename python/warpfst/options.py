"""Option tables, read from the C library: names, defaults, ranges and help texts are not repeated in Python."""

from __future__ import annotations

import ctypes
import difflib
import inspect
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import call, encode_path, encode_text, lib
from .errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import DecoderOptions

_TYPES: dict[int, tuple[Any, str]] = {
    _abi.WF_OPTION_F32: (ctypes.c_float, "float"),
    _abi.WF_OPTION_I32: (ctypes.c_int32, "int"),
    _abi.WF_OPTION_I64: (ctypes.c_int64, "int"),
    _abi.WF_OPTION_BOOL: (ctypes.c_bool, "bool"),
    _abi.WF_OPTION_ENUM: (ctypes.c_int32, "str"),
    _abi.WF_OPTION_STR: (ctypes.c_char_p, "str"),
}


class Option(NamedTuple):
    """One row of a table. `default` of a text option is None. `choices` is empty except for options with a fixed set of values. str() gives its line in `describe`."""

    name: str
    type: str
    default: Any
    minimum: float
    maximum: float
    unit: str
    choices: tuple[str, ...]
    help: str

    def __str__(self) -> str:
        kind = "|".join(self.choices) or self.unit or self.type
        default = f"{self.default:g}" if isinstance(self.default, float) else "" if self.default is None else str(self.default)
        return f"  {self.name:28} {default:9} {kind:12} {self.help}"


class Table(list[Option]):
    """The options of a table. Printed with a line for each: name, default, unit, help."""

    def __init__(self, name: str, options: Iterable[Option]) -> None:
        super().__init__(options)
        self.name = name

    def __repr__(self) -> str:
        return "\n".join([f'Options of the table "{self.name}": name, default, unit', *map(str, self)])


def _option(row: Any) -> Option:
    unit = row.unit.decode()
    choices = tuple(unit.split("|")) if row.type == _abi.WF_OPTION_ENUM else ()
    default: Any = {"float": float, "int": int, "bool": bool}.get(_TYPES[row.type][1], lambda _: None)(getattr(row, "def"))
    return Option(
        row.name.decode(),
        _TYPES[row.type][1],
        choices[int(getattr(row, "def"))] if choices else default,
        row.min,
        row.max,
        "" if choices else unit,
        choices,
        row.help.decode(),
    )


def tables() -> list[str]:
    """Names of all option tables."""
    names, i = [], 0
    while table := lib.wf_option_table_at(i):
        names.append(table.contents.name.decode())
        i += 1
    return names


def describe(table: str) -> Table:
    """The options of a table, in order: a list, which prints as a table."""
    found = lib.wf_option_table_find(encode_text(table))
    if not found:
        raise ValueError(f"no option table named {table!r}, expected one of {', '.join(tables())}")
    return Table(table, (_option(found.contents.rows[i]) for i in range(found.contents.num_rows)))


_COMBINED = {  # types of options, without "Options" at their end, that are made of several tables
    "AlignHmm": ("hmm_align", "lexicon"), "Ctc": ("ctc_graph", "lexicon", "arpa"), "Hmm": ("hmm_graph", "lexicon", "arpa"),
    **dict.fromkeys(("Loader", "Model", "Table"), ("decoder", "ctc_graph")),
}


def document(things: Iterable[Any]) -> None:
    """Adds the options to the docstrings of functions and of methods of classes that take them (`**options: Unpack[DecoderOptions]`), so that `help` lists them."""
    by_type = {**_COMBINED, **{name.title().replace("_", ""): (name,) for name in tables()}}
    for thing in things:
        for member in vars(thing).values() if isinstance(thing, type) else (thing,):
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function):
                kind = re.fullmatch(r"Unpack\[(?:types\.)?(\w+)Options\]", str(function.__annotations__.get("options")))
                if kind and function.__doc__ and "\nOptions of the table" not in function.__doc__:
                    function.__doc__ = "\n\n".join([inspect.cleandoc(function.__doc__), *(repr(describe(name)) for name in by_type[kind[1]])])


_names: dict[str, frozenset[str]] = {}


def names(table: str) -> frozenset[str]:
    if table not in _names:
        _names[table] = frozenset(option.name for option in describe(table))
    return _names[table]


def _number(value: Any) -> str | None:
    if isinstance(value, (bool, str, bytes, bytearray)):
        return None
    try:
        return str(operator.index(value))  # also numpy's integers
    except TypeError:
        pass
    try:
        return repr(float(value))  # also numpy's floats
    except (TypeError, ValueError):
        return None


def _text(name: str, kind: str, value: Any) -> str:
    """The value as text for C. `kind` is the type of the option, as in Option.type."""
    if kind == "str":
        text = value if isinstance(value, str) else None
    elif kind == "bool":  # numpy.bool_ is not a subclass of bool
        text = str(bool(value)).lower() if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") else None
    else:
        text = _number(value)
    if text is None:
        wanted = {"str": "text", "bool": "True or False", "int": "a whole number", "float": "a number"}[kind]
        raise TypeError(f"{name}: expected {wanted}, found {type(value).__name__} {value!r:.80}")
    return text


_ARGUMENTS = {"decoder": ("words", "lm", "determinize", "confidences", "nbest", "mbr", "keep_raw", "join", "transducer")}  # beside the options of the table
_FOREIGN = {  # names that other tools use: what to use here
    **dict.fromkeys(("hotwords", "hotword", "context", "phrases", "keywords"), "boost= of decode, set_boost of decoders and streams"),
    **dict.fromkeys(("hotword_weight", "hotwords_score"), "boost= of decode: {phrase: nats}"),
    **dict.fromkeys(("gpu", "cuda", "use_gpu"), "device='cuda'"),
    **dict.fromkeys(("lm_weight", "lm_scale", "alpha", "ngram_lm_alpha", "ngram_lm_scale"), "lm=wf.Scorer.from_lm(model, graph.words, lm_scale=)"),
    **dict.fromkeys(("beta", "ngram_lm_beta", "word_insertion_penalty", "wip", "word_bonus"), "word_score"),
    **dict.fromkeys(("acwt", "am_scale", "am_weight"), "acoustic_scale"),
    **dict.fromkeys(("beam_size", "beam_width", "beam_threshold", "beam_size_token"), "beam (in nats) and max_active"),
    **dict.fromkeys(("kenlm", "kenlm_model", "kenlm_model_path", "arpa", "language_model", "lm_path"), "lm"),
    **dict.fromkeys(("num_paths", "n_best", "num_results"), "nbest, with determinize=True"),
    **dict.fromkeys(("jobs", "num_workers", "workers", "threads", "num_processes"), "num_threads"),
    **dict.fromkeys(("blank_id", "blank_index", "blank_token"), "blank"),
}


def hint(name: str, known: Iterable[str]) -> str:
    """"": no name like this is known; else the end of a message about an unknown option."""
    own = _FOREIGN.get(name.lower())
    near = difflib.get_close_matches(name, list(known), 1)
    found = own if own is not None and name not in near else repr(near[0]) if near else None
    return f"; did you mean {found}?" if found else ""


class CStruct:
    """The structure `wf_TABLE_options`, filled from keywords and checked by C."""

    def __init__(self, table: str, values: Mapping[str, Any]) -> None:
        self._table = lib.wf_option_table_find(encode_text(table))
        buffer: Any = ctypes.create_string_buffer(self._table.contents.struct_size)
        buffer.texts = []  # C borrows the texts, so they are kept with the memory that is passed
        self.pointer = buffer
        lib.wf_config_init(self._table, buffer, len(buffer))
        self._types = {row.name.decode(): row.type for row in self._rows()}
        for name, value in values.items():
            self._set(name, value)
        call("wf_config_check", self._table, self.pointer)

    def _rows(self) -> Iterator[Any]:
        return (self._table.contents.rows[i] for i in range(self._table.contents.num_rows))

    def _set(self, name: str, value: Any) -> None:
        row_type = self._types.get(name)
        if row_type is None:
            table = self._table.contents.name.decode()
            raise ArgumentError(f"{table}: no option named {name!r}{hint(name, [*self._types, *_ARGUMENTS.get(table, ())])}")
        if row_type == _abi.WF_OPTION_STR:
            if value is None:
                return
            if not isinstance(value, (str, os.PathLike)):
                raise TypeError(f"{name}: expected text, found {type(value).__name__}")
            text = encode_path(value)
        else:
            text = encode_text(_text(name, _TYPES[row_type][1], value))
        self.pointer.texts.append(text)
        call("wf_config_set", self._table, self.pointer, encode_text(name), text)

    def set_of(self, table: str, name: str, text: str) -> None:
        """Sets an option that only another table of the same structure has."""
        call("wf_config_set", lib.wf_option_table_find(encode_text(table)), self.pointer, encode_text(name), encode_text(text))

    def values(self) -> dict[str, Any]:
        """The values of all options as C has them."""
        result: dict[str, Any] = {}
        for row in self._rows():
            value = _TYPES[row.type][0].from_buffer(self.pointer, row.offset).value
            if row.type == _abi.WF_OPTION_ENUM:
                value = row.unit.decode().split("|")[value]
            elif row.type == _abi.WF_OPTION_STR and value is not None:
                value = os.fsdecode(value)
            result[row.name.decode()] = value
        return result


def from_text(table: str, name: str, text: str) -> Any:
    """Converts the text of a command-line option to its value. For an option that is not in the table, returns the text."""
    if name not in names(table):
        return text
    made, borrowed = CStruct(table, {}), encode_text(text)
    call("wf_config_set", lib.wf_option_table_find(encode_text(table)), made.pointer, encode_text(name), borrowed)
    return made.values()[name]


def c_options(table: str, values: Mapping[str, Any]) -> Any:
    """The options argument of a C call; None (defaults) if no option is given."""
    return CStruct(table, values).pointer if values else None


class Options(Mapping[str, Any]):
    """An immutable, checked, picklable set of options: `Options("decoder", beam=12)["max_active"]` is 10000.

    Floating-point values are those that C stores (float32).
    """

    __slots__ = ("_given", "_values", "table")

    def __init__(self, table: str, **given: Any) -> None:
        describe(table)
        self.table = table
        self._given = given
        self._values = CStruct(table, given).values()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and (self.table, self._values) == (other.table, other._values)

    def __hash__(self) -> int:
        return hash((self.table, tuple(self._values.items())))

    def __reduce__(self) -> Any:
        return _restore, (type(self), self.table, self._given)

    def __repr__(self) -> str:
        return f"Options({', '.join([repr(self.table), *(f'{name}={value!r}' for name, value in self._given.items())])})"

    def replace(self, **changes: Any) -> Options:
        """A copy with some options changed."""
        return _restore(type(self), self.table, {**self._given, **changes})

    def as_c(self) -> CStruct:
        return CStruct(self.table, self._given)


def _restore(cls: type[Options], table: str, given: dict[str, Any]) -> Options:
    options = cls.__new__(cls)
    Options.__init__(options, table, **given)
    return options


class DecoderConfig(Options):
    """Options of the decoder: `DecoderConfig(beam=12, device="cuda")`. Immutable, checked when created, picklable."""

    __slots__ = ()

    def __init__(self, **options: Unpack[DecoderOptions]) -> None:
        """`options`: those of a Decoder."""
        super().__init__("decoder", **options)

    if TYPE_CHECKING:

        def replace(self, **changes: Unpack[DecoderOptions]) -> DecoderConfig: ...  # type: ignore[override]

    def __repr__(self) -> str:
        return f"DecoderConfig({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"


def split(given: Mapping[str, Any], *tables_in_order: str) -> list[dict[str, Any]]:
    """Distributes keywords over the tables that have them. Unknown keywords go to the first table, which then reports them."""
    parts: list[dict[str, Any]] = [{} for _ in tables_in_order]
    for name, value in given.items():
        known = [part for part, table in zip(parts, tables_in_order) if name in names(table)]
        for part in known or parts[:1]:
            part[name] = value
    return parts
