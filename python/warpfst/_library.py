"""The shared library: found beside this file, declared from the generated _abi.py, called through `call`.

Every call into C releases the GIL (ctypes.CDLL does). Text goes over as UTF-8, paths as the file system has them.
"""

from __future__ import annotations

import array
import collections
import ctypes
import os
import pathlib
import sys
import threading
import warnings
from typing import Any, Callable

from . import _abi, errors

FOLDER = pathlib.Path(__file__).parent
LIBRARY_VARIABLE = "WARPFST_LIBRARY"  # path of libwarpfst, where the package lies without it: builds under test, folders packed for a GPU machine
Progress = Callable[[str, float], "bool | None"]


def _load() -> ctypes.CDLL:
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return ctypes.CDLL(named)
    for name in ("libwarpfst.so", "libwarpfst.dylib"):
        if (FOLDER / name).exists():
            return ctypes.CDLL(str(FOLDER / name))
    raise ImportError(f"{FOLDER} holds no libwarpfst: this is the source tree, or a broken installation (`pip install .` builds the library)")


lib = _load()
for _name, (_result, _arguments) in _abi.FUNCTIONS.items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, _arguments

_STATUS = {value: name[3:] for name, value in vars(_abi).items() if name == "WF_OK" or name.startswith("WF_ERR_")}


def version() -> str:
    """Version of the C library: the package's own."""
    return str(lib.wf_version().decode())


_log_callback: Any = None  # C calls it for as long as the process lives
_unsaid: collections.deque[str] = collections.deque()  # warnings of C, from any thread; `tell_warnings` is called when C has returned


def _keep(level: str, message: str) -> None:
    if level == "warning":
        _unsaid.append(message)


def tell_warnings() -> None:
    """Hands C's warnings to Python's `warnings`, for the line that called this package. Raises the first if the user has made errors of them."""
    while _unsaid:
        frame, depth = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("warpfst", "contextlib"):
            frame, depth = frame.f_back, depth + 1
        warnings.warn(_unsaid.popleft(), errors.InputWarning, stacklevel=depth)


def set_log(callback: Callable[[str, str], object] | None) -> None:
    """Warnings and notes of the C library go to callback(level, message), level "debug", "info" or "warning". None, as at first: warnings become Python's (InputWarning), the rest
    goes nowhere. Set it before other threads use the package."""
    global _log_callback
    levels, call_back = ("debug", "info", "warning"), callback or _keep
    previous = _log_callback
    _log_callback = _abi.wf_log_fn(lambda _user, level, message: call_back(levels[level], decode_text(message) or "") and None)
    lib.wf_set_log(_log_callback, None)
    del previous  # not before C has let go of it


set_log(None)


def exception_of(status: int, message: str) -> errors.Error:
    cls = errors.BY_STATUS.get(_STATUS.get(status, ""), errors.Error)
    return cls(message or lib.wf_status_text(status).decode())


def call(name: str, *arguments: Any) -> str:
    """Calls a C function whose last argument is `wf_error *`; raises what it reports, else returns the error's message (a few calls leave a remark there)."""
    err = _abi.wf_error()
    status = getattr(lib, name)(*arguments, ctypes.byref(err))
    message: str = err.message.decode("utf-8", "replace")
    if status != _abi.WF_OK:
        raise exception_of(status, message)
    return message


def create(name: str, *arguments: Any, after: tuple[Any, ...] = ()) -> int:
    """`call` for functions with a `T **out` behind their arguments, and perhaps others `after` it: returns the new object's address."""
    out = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(out), *after)
    if out.value is None:
        raise errors.Error(f"{name} made nothing")
    return out.value


def encode_text(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"expected str, not {type(text).__name__}")
    if "\0" in text:
        raise ValueError("text holds a NUL character")
    return text.encode("utf-8")


def encode_path(path: str | os.PathLike[str]) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("path holds a NUL character")
    return data


def decode_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def as_dict(struct: Any, skip: int = 0) -> dict[str, Any]:
    """Fields of a C structure, but for the first `skip`."""
    return {field[0]: getattr(struct, field[0]) for field in struct._fields_[skip:]}


def take_numbers(address: int | None, typecode: str, count: int) -> array.array[Any]:
    """An array over a copy of memory that C handed out, which goes back to C."""
    numbers = array.array(typecode)
    if count and address:
        numbers.frombytes(ctypes.string_at(address, numbers.itemsize * count))
    lib.wf_free(address)
    return numbers


class Handle:
    """Owner of one C object. Freed when Python forgets it, or by close(); using it after that raises StateError."""

    _free: Callable[[int], None]

    def __init__(self, address: int) -> None:
        self._address: int | None = address
        if _unsaid:
            tell_warnings()

    @property
    def address(self) -> int:
        """The C pointer, for functions that this package does not wrap."""
        if self._address is None:
            raise errors.StateError(f"{type(self).__name__} was closed")
        return self._address

    def close(self) -> None:
        """Frees the memory now. Views of it become invalid; using the object raises StateError."""
        address, self._address = getattr(self, "_address", None), None
        if address is not None:
            type(self)._free(address)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ProgressGuard:
    """A wf_progress that runs a Python callback, and lets Ctrl-C through: exceptions in the callback cancel the C call and are raised behind it.

    with ProgressGuard(callback) as guard:
        call("wf_decode", ..., guard.pointer, ...)
    """

    def __init__(self, callback: Progress | None) -> None:
        self._callback, self._raised = callback, None  # type: tuple[Progress | None, BaseException | None]
        self._fn = _abi.wf_progress_fn(self._run)
        self.value = _abi.wf_progress(fn=self._fn, user=None)
        # Without a callback only the main thread, which gets the signals, has reason to come back to Python now and then.
        wanted = callback is not None or threading.current_thread() is threading.main_thread()
        self.pointer = ctypes.byref(self.value) if wanted else None

    def _run(self, _user: int | None, stage: bytes | None, fraction: float) -> bool:
        try:
            return self._callback is None or self._callback(decode_text(stage) or "", fraction) is not False
        except BaseException as exception:  # noqa: BLE001 - raised again in __exit__
            self._raised = exception
            return False

    def __enter__(self) -> ProgressGuard:
        return self

    def __exit__(self, *_: object) -> None:
        if self._raised is not None:
            raise self._raised
