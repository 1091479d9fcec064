"""The option tables of the C library: names, defaults, ranges and help texts are not repeated in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _abi
from ._library import encode_text, lib

TYPES: dict[int, tuple[Any, str]] = {
    _abi.WF_OPTION_F32: (ctypes.c_float, "float"),
    _abi.WF_OPTION_I32: (ctypes.c_int32, "int"),
    _abi.WF_OPTION_I64: (ctypes.c_int64, "int"),
    _abi.WF_OPTION_BOOL: (ctypes.c_bool, "bool"),
    _abi.WF_OPTION_ENUM: (ctypes.c_int32, "str"),
    _abi.WF_OPTION_STR: (ctypes.c_char_p, "str"),
}
_NO_LIMIT = float(2**30)  # limits beyond are those of the C type
_WIDTH = 92  # of printed tables


class Option(NamedTuple):
    """One row of a table. str() gives its entry in `describe`.

    default           of a text option: None
    minimum, maximum  of numbers
    unit              such as "nats"; of a text option what it is, such as "FILE"
    choices           the values of an option with a fixed set of values; else empty
    """

    name: str
    type: str
    default: Any
    minimum: float
    maximum: float
    unit: str
    choices: tuple[str, ...]
    help: str

    @property
    def _values(self) -> str:
        """Which values it takes, beyond its type."""
        if self.choices:
            return either(self.choices)
        if self.type in ("bool", "str"):
            return self.unit
        low, high = (f"{limit:.12g}" if abs(limit) < _NO_LIMIT else "" for limit in (self.minimum, self.maximum))
        return f"{low} to {high}" if low and high else f"{low} or more" if low else f"{high} or less" if high else ""

    def __str__(self) -> str:
        default = f"{self.default:g}" if self.type == "float" else f'"{self.default}"' if self.choices else str(self.default)
        unit = f" {self.unit}" if self.unit and self.type != "str" else ""
        head = f"  {self.name}: {self.type} = {default}{unit}{f' ({self._values})' if self._values else ''}"
        return "\n".join([*_wrapped(head, "    "), *_wrapped(f"      {self.help}", "      ")])


def either(texts: Iterable[str]) -> str:
    """'"a", "b" or "c"'."""
    *first, last = (f'"{text}"' for text in texts)
    return f"{', '.join(first)} or {last}" if first else last


def _wrapped(line: str, indent: str) -> list[str]:
    lines = []
    while len(line) > _WIDTH and (at := line.rfind(" ", len(indent) + 1, _WIDTH + 1)) > 0:
        lines.append(line[:at])
        line = f"{indent}{line[at + 1 :]}"
    return [*lines, line]


class Table(list[Option]):
    """The options of a table. Printed with an entry for each: name, type, default, unit, values; help."""

    def __init__(self, name: str, options: Iterable[Option]) -> None:
        super().__init__(options)
        self.name = name

    def __repr__(self) -> str:
        return "\n".join([f'Options of the table "{self.name}":', *map(str, self)])


def _option(row: Any) -> Option:
    unit, default = row.unit.decode(), getattr(row, "def")
    kind = TYPES[row.type][1]
    choices = tuple(unit.split("|")) if row.type == _abi.WF_OPTION_ENUM else ()
    value = choices[int(default)] if choices else None if kind == "str" else {"float": float, "int": int, "bool": bool}[kind](default)
    return Option(row.name.decode(), kind, value, row.min, row.max, "" if choices else unit, choices, row.help.decode())


def tables() -> list[str]:
    """Names of all option tables."""
    names, i = [], 0
    while table := lib.wf_option_table_at(i):
        names.append(table.contents.name.decode())
        i += 1
    return names


def describe(table: str) -> Table:
    """The options of a table, in order: a list, which prints as a table. `tables()` has the names of the tables."""
    found = lib.wf_option_table_find(encode_text(table))
    if not found:
        raise ValueError(f"no option table named {table!r}, expected one of {', '.join(tables())}")
    return Table(table, (_option(found.contents.rows[i]) for i in range(found.contents.num_rows)))


_names: dict[str, frozenset[str]] = {}


def names(table: str) -> frozenset[str]:
    """The names of a table's options."""
    if table not in _names:
        _names[table] = frozenset(option.name for option in describe(table))
    return _names[table]
