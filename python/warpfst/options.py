"""Options as structures of C, filled from keywords, and as immutable objects."""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import call, encode_path, encode_text, lib
from .errors import ArgumentError
from .option_calls import unknown
from .option_tables import TYPES, describe, either, names

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import DecoderOptions

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


def _text(name: str, kind: str, value: Any, choices: str = "") -> str:
    """The value as text for C. `kind` is the type of the option, as in Option.type. `choices`: the allowed values, for a message."""
    if kind == "str":
        text = value if isinstance(value, str) else None
    elif kind == "bool":  # numpy.bool_ is not a subclass of bool
        text = str(bool(value)).lower() if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") else None
    else:
        text = _number(value)
    if text is None:
        wanted = choices or {"str": "text", "bool": "True or False", "int": "a whole number", "float": "a number"}[kind]
        raise TypeError(f"{name}: expected {wanted}, found {type(value).__name__} {value!r:.80}")
    return text



class CStruct:
    """The structure `wf_TABLE_options`, filled from keywords and checked by C."""

    def __init__(self, table: str, values: Mapping[str, Any]) -> None:
        self._table = lib.wf_option_table_find(encode_text(table))
        buffer: Any = ctypes.create_string_buffer(self._table.contents.struct_size)
        buffer.texts = []  # C borrows the texts, so they are kept with the memory that is passed
        self.pointer = buffer
        lib.wf_options_init(self._table, buffer, len(buffer))
        self._types = {row.name.decode(): row.type for row in self._rows()}
        for name, value in values.items():
            self._set(name, value)
        call("wf_options_check", self._table, self.pointer)

    def _rows(self) -> Iterator[Any]:
        return (self._table.contents.rows[i] for i in range(self._table.contents.num_rows))

    def _set(self, name: str, value: Any) -> None:
        row_type = self._types.get("frame_shift" if name == "frame_seconds" else name)  # C knows the old name until 0.4, and warns
        if row_type is None:
            raise ArgumentError(unknown(self._table.contents.name.decode(), name))
        if row_type == _abi.WF_OPTION_STR:
            if value is None:
                return
            if not isinstance(value, (str, os.PathLike)):
                raise TypeError(f"{name}: expected text, found {type(value).__name__}")
            text = encode_path(value)
        else:
            text = encode_text(_text(name, TYPES[row_type][1], value, self._choices(name) if row_type == _abi.WF_OPTION_ENUM else ""))
        self.pointer.texts.append(text)
        call("wf_options_set", self._table, self.pointer, encode_text(name), text)

    def _choices(self, name: str) -> str:
        return either(next(row.unit.decode().split("|") for row in self._rows() if row.name.decode() == name))

    def set_of(self, table: str, name: str, text: str) -> None:
        """Sets an option that only another table of the same structure has."""
        call("wf_options_set", lib.wf_option_table_find(encode_text(table)), self.pointer, encode_text(name), encode_text(text))

    def values(self) -> dict[str, Any]:
        """The values of all options as C has them."""
        result: dict[str, Any] = {}
        for row in self._rows():
            value = TYPES[row.type][0].from_buffer(self.pointer, row.offset).value
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
    call("wf_options_set", lib.wf_option_table_find(encode_text(table)), made.pointer, encode_text(name), borrowed)
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


def check_options(given: Mapping[str, Any], *tables_in_order: str) -> None:
    """Checks the options of a call, before it reads files. ArgumentError, ValueError, TypeError: one is wrong."""
    for table, part in zip(tables_in_order, split(given, *tables_in_order)):
        CStruct(table, part)


def split(given: Mapping[str, Any], *tables_in_order: str) -> list[dict[str, Any]]:
    """Distributes keywords over the tables that have them. ArgumentError: none has it."""
    parts: list[dict[str, Any]] = [{} for _ in tables_in_order]
    for name, value in given.items():
        known = [part for part, table in zip(parts, tables_in_order) if name in names(table)]
        if not known:
            raise ArgumentError(unknown(tables_in_order[0], name))
        for part in known:
            part[name] = value
    return parts
