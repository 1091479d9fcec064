"""Characters of UTF-8 as acceptors over bytes: `utf8.VALID_UTF8_CHAR`, `utf8.characters("a", "z")`."""

from __future__ import annotations

import functools

from ..fst.container import Fst

_LAST_OF_SIZE = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)  # the last characters of 1, 2, 3 and 4 bytes
_SURROGATES = (0xD800, 0xDFFF)


def _pieces(first: int, last: int) -> list[tuple[int, int]]:
    """Ranges of characters of the same number of bytes, without surrogates."""
    edges = sorted({first, last + 1, *(edge for edge in (*(size + 1 for size in _LAST_OF_SIZE), _SURROGATES[0], _SURROGATES[1] + 1) if first < edge <= last)})
    return [(low, high - 1) for low, high in zip(edges, edges[1:]) if not _SURROGATES[0] <= low <= _SURROGATES[1]]


def _sequences(low: bytes, high: bytes) -> list[list[tuple[int, int]]]:
    """The byte sequences from low to high, which have the same length, as products of ranges of bytes."""
    if len(low) == 1:
        return [[(low[0], high[0])]]
    if low[0] == high[0]:
        return [[(low[0], low[0]), *rest] for rest in _sequences(low[1:], high[1:])]
    least, most = bytes([0x80] * (len(low) - 1)), bytes([0xBF] * (len(low) - 1))
    found = []
    begin, end = low[0], high[0]
    if low[1:] != least:
        found += [[(begin, begin), *rest] for rest in _sequences(low[1:], most)]
        begin += 1
    if high[1:] != most:
        end -= 1
    if begin <= end:
        found.append([(begin, end), *((0x80, 0xBF) for _ in least)])
    if high[1:] != most:
        found += [[(high[0], high[0]), *rest] for rest in _sequences(least, high[1:])]
    return found


def characters(first: str, last: str) -> Fst:
    """Accepts one character from `first` to `last`, as its bytes. ValueError: not two characters in this order, or the character 0."""
    if len(first) != 1 or len(last) != 1 or not 0 < ord(first) <= ord(last):
        raise ValueError(f"characters from {first!r} to {last!r}, expected two in this order")
    # state 0: the start; 1: the end; the others are behind a sequence's bytes
    arcs: list[tuple[int, int, int, int, float]] = []
    num_states = 2
    for low, high in _pieces(ord(first), ord(last)):
        for sequence in _sequences(chr(low).encode(), chr(high).encode()):
            state = 0
            for k, (least, most) in enumerate(sequence):
                to = 1 if k == len(sequence) - 1 else num_states
                num_states += to == num_states
                arcs += [(state, to, b, b, 0.0) for b in range(least, most + 1)]
                state = to
    return Fst.from_arcs(sorted(arcs), {1: 0.0})


@functools.cache
def _any() -> Fst:
    return characters("\x01", chr(_LAST_OF_SIZE[-1]))


def __getattr__(name: str) -> Fst:
    """VALID_UTF8_CHAR: any character but 0, made on first use."""
    if name != "VALID_UTF8_CHAR":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _any()
