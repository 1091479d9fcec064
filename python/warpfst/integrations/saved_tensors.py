"""Reads what torch.save wrote, without torch: zip archives (torch 1.6 and later) and the older format. Tensors become numpy arrays.

Pickles can call anything that they name. Here they can name only tensors and what the caller allows. (torch.load takes a pickle module for this, too, but torch 1.13 ignores it.)
"""

from __future__ import annotations

import collections
import io
import math
import os
import pickle
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from ..errors import FileError, FormatError
from .files import require

_DTYPES = {"Double": "<f8", "Float": "<f4", "Half": "<f2", "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?"}
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
Classes = Mapping[tuple[str, str], Any]


def _rebuild(storage: Any, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Any:
    """A tensor as a view of its storage. (_rebuild_tensor_v2 has further arguments, for gradients.)"""
    import numpy as np

    if min((offset, *size, *stride)) < 0 or len(size) != len(stride):
        raise FormatError("a tensor of a negative size")
    if 0 in size:
        return np.zeros(size, storage.dtype)
    if math.prod(size) > len(storage):  # overlapping rows, which torch.save writes for no model
        raise FormatError("a tensor with more values than its storage")
    if offset + sum((n - 1) * step for n, step in zip(size, stride)) >= len(storage):
        raise FormatError("a tensor that is larger than its storage")
    return np.lib.stride_tricks.as_strided(storage[offset:], size, [step * storage.itemsize for step in stride])


def _check_pickle(file: BinaryIO, num_bytes: int) -> None:
    """Places of the pickle's memo must be in proportion to the file, because the unpickler allocates an array up to the highest one. Leaves the position as it was."""
    begin = file.tell()
    for operation, argument, _ in pickletools.genops(file):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and isinstance(argument, int) and argument > num_bytes:
            raise FormatError("a pickle that is not in proportion to the file")
    file.seek(begin)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, classes: Classes, storage: Callable[[Any, str, int], Any]) -> None:
        super().__init__(file, encoding="utf-8")
        self._classes, self._storage = classes, storage

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self._classes:
            return self._classes[module, name]
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return _rebuild
        if module in ("torch", "torch.storage") and name.endswith("Storage") and name[: -len("Storage")] in _DTYPES:
            import numpy as np

            return np.dtype(_DTYPES[name[: -len("Storage")]])
        raise FormatError(f"the file needs {module}.{name}")

    def persistent_load(self, saved: Any) -> Any:
        kind, dtype, key, _, count = saved[:5]
        if kind != "storage" or not hasattr(dtype, "itemsize"):
            raise FormatError("something else than tensors")
        return self._storage(dtype, str(key), int(count))


def _load_zip(file: BinaryIO, classes: Classes) -> Any:
    import numpy as np

    with zipfile.ZipFile(file) as archive:
        root = next(name for name in archive.namelist() if name.endswith("data.pkl"))[: -len("data.pkl")]
        storages: dict[str, Any] = {}

        def storage(dtype: Any, key: str, count: int) -> Any:
            if key not in storages:
                found = archive.getinfo(f"{root}data/{key}")
                if found.compress_type != zipfile.ZIP_STORED or found.file_size != count * dtype.itemsize:
                    raise FormatError(f"storage {key} has {found.file_size} bytes, expected {count * dtype.itemsize}")
                storages[key] = np.frombuffer(archive.read(found), dtype)
            return storages[key]

        pickled = archive.getinfo(f"{root}data.pkl")
        if pickled.compress_type != zipfile.ZIP_STORED:
            raise FormatError("a compressed pickle")
        content = io.BytesIO(archive.read(pickled))
        _check_pickle(content, pickled.file_size)
        return _Unpickler(content, classes, storage).load()


def _load_legacy(file: BinaryIO, classes: Classes, num_bytes: int) -> Any:
    """Four pickles: a number, a version, the machine, the value; then one of the keys of the storages, whose contents follow."""
    import numpy as np

    storages: dict[str, Any] = {}
    left = num_bytes

    def storage(dtype: Any, key: str, count: int) -> Any:
        nonlocal left
        if key not in storages:
            if not 0 <= count * dtype.itemsize <= left:
                raise FormatError(f"storage {key} has {count} values")
            left -= count * dtype.itemsize
            storages[key] = np.zeros(count, dtype)
        return storages[key]

    def part() -> Any:
        _check_pickle(file, num_bytes)
        return _Unpickler(file, classes, storage).load()

    magic, _, _, value, keys = (part() for _ in range(5))
    if magic != _LEGACY_MAGIC:
        raise FormatError("not a file of torch.save")
    for key in keys:
        content = storages[str(key)]
        if int.from_bytes(file.read(8), "little") != len(content):
            raise FormatError(f"storage {key} has another size than expected")
        content[:] = np.frombuffer(file.read(content.nbytes), content.dtype)
    return value


def load(path: str | os.PathLike[str], classes: Classes) -> Any:
    """The value in a file. `classes`: (module, name) -> what stands for a class that the value may have besides tensors.

    FormatError: the file is damaged, or needs other classes. FileError: it cannot be read.
    """
    source = os.fspath(path)
    require("numpy", source)
    try:
        with open(path, "rb") as file:
            if zipfile.is_zipfile(file):
                return _load_zip(file, classes)
            file.seek(0)
            return _load_legacy(file, classes, os.fstat(file.fileno()).st_size)
    except FormatError as why:
        raise FormatError(f"{source}: {why}") from why
    except OSError as why:
        raise FileError(f"{source}: {why.strerror}") from why
    except Exception as why:  # a damaged pickle can raise anything
        raise FormatError(f"{source}: not a file of torch.save: {why}") from why
