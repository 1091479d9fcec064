"""Classes of bytes as acceptors of one byte: `byte.DIGIT`, `byte.ALPHA`, `byte.NOT_SPACE`. Made on first use.

BYTE (1 to 255), ALNUM, ALPHA, DIGIT, GRAPH, LOWER, PUNCT, SPACE, UPPER and HEX are those of C's ctype.h for ASCII; NOT_ALPHA and so on have the other bytes.
"""

from __future__ import annotations

import functools
import string

from ..fst.container import Fst

_CLASSES = {
    "ALNUM": string.ascii_letters + string.digits,
    "ALPHA": string.ascii_letters,
    "DIGIT": string.digits,
    "GRAPH": string.ascii_letters + string.digits + string.punctuation,
    "LOWER": string.ascii_lowercase,
    "PUNCT": string.punctuation,
    "SPACE": " \t\n\r\v\f",
    "UPPER": string.ascii_uppercase,
    "HEX": string.hexdigits,
}
_NAMES = ("BYTE", *_CLASSES, *(f"NOT_{name}" for name in _CLASSES))


@functools.cache
def _made(name: str) -> Fst:
    members = set(map(ord, _CLASSES.get(name.removeprefix("NOT_"), "")))
    chosen = [b for b in range(1, 256) if name == "BYTE" or (b in members) != name.startswith("NOT_")]
    return Fst.from_arcs([(0, 1, b, b, 0.0) for b in chosen], {1: 0.0})


def __getattr__(name: str) -> Fst:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _made(name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
