"""Archives of fsts: OpenFst's FAR files."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Literal

from .._library import Handle, call, create, encode_path, lib
from .container import Fst, choose

FarType = Literal["sttable", "stlist"]
_TYPES: tuple[FarType, ...] = ("sttable", "stlist")


class FarReader(Handle):
    """An archive open for reading: iterate over its pairs (key, fst), or look up a key. Used by one thread at a time."""

    _free = lib.wf_far_free

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> FarReader:
        """Opens an archive, or a file that holds a single fst, whose key is empty."""
        return cls(create("wf_far_open", encode_path(path)))

    @property
    def far_type(self) -> FarType:
        """The layout: "sttable" has an index, "stlist" is read from front to back."""
        return _TYPES[int(lib.wf_far_get_type(self.address))]

    def __iter__(self) -> Iterator[tuple[str, Fst]]:
        """The pairs from the current place on: after the pair that was read last."""
        while True:
            key, fst = ctypes.c_char_p(), ctypes.c_void_p()
            call("wf_far_next", self.address, ctypes.byref(key), ctypes.byref(fst))
            if fst.value is None:
                return
            yield (key.value or b"").decode(errors="surrogateescape"), Fst(fst.value)

    def __getitem__(self, key: str) -> Fst:
        """The fst of a key. ArgumentError: there is none."""
        return Fst(create("wf_far_find", self.address, key.encode(errors="surrogateescape")))


class FarWriter(Handle):
    """Writes an archive. Leaving its `with` block without an exception finishes the file; otherwise there is no file."""

    _free = lib.wf_far_writer_abort

    @classmethod
    def create(cls, path: str | os.PathLike[str], far_type: FarType = "sttable") -> FarWriter:
        return cls(create("wf_far_writer_open", encode_path(path), choose(far_type, _TYPES, "far_type")))

    def add(self, key: str, fst: Fst) -> None:
        """Adds an fst. Keys must be added in sorted order, byte by byte."""
        call("wf_far_writer_put", self.address, key.encode(errors="surrogateescape"), Fst._address_of(fst))

    def finish(self) -> None:
        """Writes the end of the file. The writer is closed, also on failure."""
        call("wf_far_writer_close", self._disown())

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None and self._address is not None:
            self.finish()
        else:
            self.close()
