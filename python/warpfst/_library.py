"""Loads the shared library from this folder, declares its functions as in the generated _abi.py, and calls them with `call`.

Every call into C releases the GIL, because ctypes.CDLL does. Text is passed as UTF-8, paths in the file system's encoding.
"""

from __future__ import annotations

import array
import collections
import ctypes
import operator
import os
import pathlib
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

from . import _abi, errors

if TYPE_CHECKING:
    import logging

    from typing_extensions import Self

FOLDER = pathlib.Path(__file__).parent
LIBRARY_VARIABLE = "WARPFST_LIBRARY"  # path of libwarpfst if it is not in this folder: builds under test, folders packed for a GPU machine
Progress = Callable[[str, float], "bool | None"]


def _load() -> ctypes.CDLL:
    named = os.environ.get(LIBRARY_VARIABLE)
    if named:
        return ctypes.CDLL(named)
    for name in ("libwarpfst.so", "libwarpfst.dylib", "bin/libwarpfst.dll"):
        if (FOLDER / name).exists():
            return ctypes.CDLL(str(FOLDER / name))
    raise ImportError(f"{FOLDER} holds no libwarpfst: it is the source tree, or the installation is broken (`pip install .` builds the library)")


def _checked(kind: Any) -> Any:
    """The C type of an integer argument, for `argtypes`. It refuses numbers that do not fit, of which ctypes would take the low bits."""
    bits = 8 * ctypes.sizeof(kind)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if kind(-1).value < 0 else (0, 2**bits)

    class Checked(kind):  # type: ignore[misc]
        @classmethod
        def from_param(cls, value: Any) -> Any:
            number = operator.index(value)
            if low <= number < high:
                return kind(number)
            raise OverflowError(f"{number} is outside {low} to {high - 1}")

    return Checked


lib = _load()
_integers: dict[Any, Any] = {kind: _checked(kind) for kind in (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64)}
for _name, (_result, _arguments) in cast(Any, _abi.FUNCTIONS).items():
    _function = getattr(lib, _name)
    _function.restype, _function.argtypes = _result, [_integers.get(argument, argument) for argument in _arguments]

_python = _abi.wf_python(**{field[0]: ctypes.cast(getattr(ctypes.pythonapi, field[0]), ctypes.c_void_p) for field in _abi.wf_python._fields_})
lib.wf_python_use(ctypes.byref(_python))
_objects = _abi.wf_python_objects(**{field[0]: ctypes.cast(getattr(ctypes.pythonapi, field[0]), ctypes.c_void_p) for field in _abi.wf_python_objects._fields_})
lib.wf_python_use_objects(ctypes.byref(_objects))
python_borrow = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("wf_python_borrow", lib))  # keeps the interpreter's lock, and raises exceptions
_api: dict[str, tuple[list[Any], Any]] = {  # functions of the Python interpreter: argument types, result
    "PyErr_Restore": ([ctypes.c_void_p] * 3, None),
    "PyCapsule_New": ([ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object),
    "PyCapsule_SetContext": ([ctypes.py_object, ctypes.c_void_p], ctypes.c_int),
    "PyCapsule_SetDestructor": ([ctypes.py_object, ctypes.c_void_p], ctypes.c_int),
}
_new_capsule, _set_context, _set_destructor, _restore = (
    ctypes.PYFUNCTYPE(_api[name][1], *_api[name][0])((name, ctypes.pythonapi)) for name in ("PyCapsule_New", "PyCapsule_SetContext", "PyCapsule_SetDestructor", "PyErr_Restore")
)
_destroy = ctypes.cast(lib.wf_python_destroy, ctypes.c_void_p)

_STATUS = {value: name[3:] for name, value in vars(_abi).items() if name == "WF_OK" or name.startswith("WF_ERR_")}


def version() -> str:
    """Version of the C library, which is also the version of the package."""
    return str(lib.wf_version().decode())


_log_callback: Any = None  # C may call it until the process ends
_pending_warnings: collections.deque[str] = collections.deque()  # warnings of C, from any thread; `report_warnings` is called after C has returned


def _queue_warning(level: str, message: str) -> None:
    if level == "warning":
        _pending_warnings.append(message)


def report_warnings() -> None:
    """Passes C's warnings to Python's `warnings`, at the line that called this package. Raises the first one if the user has turned warnings into errors."""
    while _pending_warnings:
        frame, depth = sys._getframe(1), 2
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("warpfst", "contextlib"):
            frame, depth = frame.f_back, depth + 1
        warnings.warn(_pending_warnings.popleft(), errors.InputWarning, stacklevel=depth)


def _log_to(logger: logging.Logger) -> Callable[[str, str], object]:
    numbers = {"debug": 10, "info": 20, "warning": 30}  # those of `logging`, which is slow to import
    return lambda level, message: logger.log(numbers[level], "%s", message)


def set_log(callback: Callable[[str, str], object] | logging.Logger | None) -> None:
    """Sends the C library's log messages to callback(level, message), where level is "debug", "info" or "warning"; or to a logger: `set_log(logging.getLogger("warpfst"))`.

    None (the default): warnings become Python warnings (InputWarning), other messages are dropped. Set it before other threads use the package. Messages may come from
    any thread.
    """
    global _log_callback
    if callback is not None and not callable(callback):
        if not hasattr(callback, "log"):
            raise TypeError(f"callback: expected a function, a logger or None, found {type(callback).__name__}")
        callback = _log_to(callback)
    levels, call_back = ("debug", "info", "warning"), callback or _queue_warning
    previous = _log_callback
    _log_callback = _abi.wf_log_fn(lambda _user, level, message: call_back(levels[level], decode_text(message) or "") and None)
    lib.wf_set_log(_log_callback, None)
    del previous  # only after C has stopped using it


set_log(None)


def exception_of(status: int, message: str) -> errors.Error:
    cls = errors.BY_STATUS.get(_STATUS.get(status, ""), errors.Error)
    return cls(message or lib.wf_status_text(status).decode())


def call(name: str, *arguments: Any) -> str:
    """Calls a C function whose last argument is `wf_error *` and raises its error. Otherwise returns the message in wf_error, which a few functions set on success."""
    err = _abi.wf_error()
    main = _is_main_thread()
    if main and not _watched:
        _watch_signals()
    try:
        status = getattr(lib, name)(*arguments, ctypes.byref(err))
    except ctypes.ArgumentError as error:  # of `_checked`, or ctypes' own
        raise (errors.ArgumentError if "OverflowError" in str(error) else TypeError)(f"{name}: {error}") from None
    if main:
        _signals.raise_stored()
    message: str = err.message.decode("utf-8", "replace")
    if status != _abi.WF_OK:
        raise exception_of(status, message)
    return message


def create(name: str, *arguments: Any, after: tuple[Any, ...] = ()) -> int:
    """`call` for functions that take a `T **out` after their other arguments, and before those of `after`. Returns the address of the new object."""
    out = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(out), *after)
    if out.value is None:
        raise errors.Error(f"{name} returned NULL")
    return out.value


def encode_text(text: str, on_error: str = "strict") -> bytes:
    """UTF-8. `on_error`: "surrogateescape" for symbols, see decode_symbol."""
    if not isinstance(text, str):
        raise TypeError(f"expected str, found {type(text).__name__}")
    if "\0" in text:
        raise ValueError("text contains a NUL character")
    return text.encode("utf-8", on_error)


def encode_path(path: str | os.PathLike[str]) -> bytes:
    data = os.fsencode(path)
    if b"\0" in data:
        raise ValueError("path contains a NUL character")
    return data


def decode_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def encode_symbol(text: str) -> bytes:
    return encode_text(text, "surrogateescape")


def decode_symbol(data: bytes | None) -> str | None:
    """A text of a symbol table. Bytes that are not UTF-8 become surrogates, as in file names (os.fsdecode), so that it can be found again."""
    return None if data is None else data.decode("utf-8", "surrogateescape")


def take_bytes(name: str, *arguments: Any) -> bytes:
    """Calls a C function that makes bytes in memory (void **out, size_t *size), copies them and frees them."""
    out, size = ctypes.c_void_p(), ctypes.c_size_t()
    call(name, *arguments, ctypes.byref(out), ctypes.byref(size))
    try:
        return ctypes.string_at(out.value, size.value) if out.value else b""
    finally:
        lib.wf_free(out.value)


def write_output(path: str | os.PathLike[str], *parts: bytes) -> None:
    """Writes a file as the library's writers do: it gets its name when it is complete, even if other processes write the same file. FileError."""
    output = create("wf_output_open", encode_path(os.path.abspath(path)))
    try:
        for part in parts:
            lib.wf_output_write(output, part, len(part))
    except BaseException:
        lib.wf_output_abort(output)
        raise
    call("wf_output_close", output)


def sized(kind: Any) -> Any:
    """A C structure with its struct_size field set, for C to read or to fill."""
    return kind(struct_size=ctypes.sizeof(kind))


def as_dict(struct: Any) -> dict[str, Any]:
    """Fields of a C structure, without struct_size and reserved fields."""
    return {field[0]: getattr(struct, field[0]) for field in struct._fields_ if field[0] not in ("struct_size", "reserved")}


def take_numbers(address: int | None, typecode: str, count: int) -> array.array[Any]:
    """Copies memory that C returned into an array and frees the memory."""
    numbers = array.array(typecode)
    if count and address:
        numbers.frombytes(ctypes.string_at(address, numbers.itemsize * count))
    lib.wf_free(address)
    return numbers


def int32_array(values: Sequence[int]) -> Any:
    """The numbers in an array for C. ArgumentError: one does not fit 32 bits; ctypes alone would take the low bits."""
    try:
        numbers = array.array("i", values)
    except OverflowError:
        raise errors.ArgumentError(f"{next(value for value in values if not -(2**31) <= value < 2**31)} does not fit 32 bits") from None
    return (ctypes.c_int32 * len(numbers)).from_buffer(numbers) if numbers else (ctypes.c_int32 * 0)()


def take_text(address: int | None, num_bytes: int) -> str:
    """Copies a text that C returned and frees it."""
    text = ctypes.string_at(address, num_bytes).decode("utf-8", "replace") if address else ""
    lib.wf_free(address)
    return text


_Kind = TypeVar("_Kind")
_Listed = TypeVar("_Listed")


def check(value: object, kind: type[_Kind], name: str = "") -> _Kind:
    """The value, if it is of this class. TypeError: it is of another. `name` is that of the argument."""
    if isinstance(value, kind):
        return value
    shown = "None" if value is None else f"{type(value).__name__} {value!r:.80}" if isinstance(value, (str, os.PathLike, int, float)) else type(value).__name__
    hint = f" ({kind.__name__}.read reads a file)" if isinstance(value, (str, os.PathLike)) and hasattr(kind, "read") else ""
    raise TypeError(f"{name}{': ' if name else ''}expected {kind.__name__}, found {shown}{hint}")


def check_list(values: _Listed, name: str) -> _Listed:
    """The values, unless they are a single text, whose letters would be taken for texts: TypeError."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name}: expected a list, found {type(values).__name__} {values!r:.80}")
    return values


def check_mapping(values: _Listed, name: str) -> _Listed:
    """The values, if they are a mapping, else TypeError."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name}: expected a mapping, found {type(values).__name__}")
    return values


class Handle:
    """Owns one C object, which is freed by close() or when this object is garbage collected. Using it after close() raises StateError.

    A capsule's destructor frees it rather than __del__, because a KeyboardInterrupt that arrives during __del__ would be lost.
    """

    _free: Callable[[int], None]
    _finalize: Callable[[int], None] | None = None  # called instead of _free when the object is garbage collected

    def __init__(self, address: int) -> None:
        if type(address) is not int:  # C would take the address of a text's bytes, and crash later
            kind = type(self)
            reads = next((f": {kind.__name__}.{name}(path) reads a file" for name in ("read", "open", "load") if hasattr(kind, name)), "")
            raise TypeError(f"{kind.__name__}({address!r:.80}) needs the address of a C object{reads}")
        self._owner = _new_capsule(address, None, _destroy)
        _set_context(self._owner, ctypes.cast(cast(Any, self._finalize or self._free), ctypes.c_void_p))
        self._address: int | None = address
        if _pending_warnings:
            report_warnings()

    def __reduce__(self) -> Any:
        """Classes that can be pickled have their own."""
        raise TypeError(f"{type(self).__name__} cannot be pickled; Fst, Graph, Symbols, Decoder, Result and Results can. Write it to a file, or make it anew")

    @property
    def address(self) -> int:
        """The C pointer, for calling functions that this package does not wrap."""
        if self._address is None:
            raise errors.StateError(f"{type(self).__name__} was closed")
        return self._address

    @classmethod
    def _address_of(cls, value: object, name: str = "") -> int:
        """The C pointer of an argument. Every object that C takes as an argument passes here: C would read another class's memory as one of its own."""
        return check(value, cls, name).address

    @classmethod
    def _address_or_none(cls, value: object, name: str = "") -> int | None:
        """`_address_of` for arguments that may be None."""
        return None if value is None else cls._address_of(value, name)

    def _disown(self) -> int:
        """Gives up ownership and returns the address; the caller must free the object."""
        address, self._address = self.address, None
        _set_destructor(self._owner, None)
        return address

    def close(self) -> None:
        """Frees the memory now. Views of it become invalid; using the object raises StateError. In a function that C calls, the memory is freed after that call of C."""
        running = PythonCall.running()
        if self._address is not None and running is not None:  # C may be using the object
            running.keep(self._owner)
            self._address = None
        elif self._address is not None:
            type(self)._free(self._disown())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PythonCall:
    """A Python callable that C calls. An exception in it, or in a signal handler that ran just before, ends the C call and is stored; raise_stored raises it.

    With function=None only signal handlers are run.
    """

    _threads = threading.local()  # `calls`: those that run in this thread, the newest last

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self._function = function
        self._callable = None if function is None else self._run  # keeps the object that C borrows alive
        self._value = _abi.wf_python_call(callable=None if function is None else id(self._callable))
        self.pointer = ctypes.addressof(self._value)
        self._kept: list[Any] = []

    def _run(self, *arguments: Any) -> Any:
        assert self._function is not None
        calls = self._threads.__dict__.setdefault("calls", [])
        depth = len(calls)
        try:
            calls.append(self)
            return self._function(*arguments)
        finally:  # whether a KeyboardInterrupt came before or after it was appended
            del calls[depth:]

    @property
    def is_running(self) -> bool:
        """In this thread?"""
        return self in getattr(self._threads, "calls", ())

    @classmethod
    def running(cls) -> PythonCall | None:
        """The function that C has called in this thread, if any."""
        calls = getattr(cls._threads, "calls", ())
        return calls[-1] if calls else None

    def keep(self, owner: Any) -> None:
        """Keeps an object alive until C has returned."""
        self._kept.append(owner)

    @property
    def has_raised(self) -> bool:
        return self._value.raised[0] is not None

    def raise_stored(self) -> None:
        """After C has returned."""
        self._kept.clear()
        if self.has_raised:
            stored = tuple(self._value.raised)
            self._value.raised = (ctypes.c_void_p * 3)()
            _restore(*stored)


_signals = PythonCall()  # stores what signal handlers raise while the main thread is in C


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _watch_signals() -> None:
    """Lets signal handlers run, and Ctrl-C end the call, while the main thread is in C. Called in the main thread."""
    global _watched
    lib.wf_set_interrupt(ctypes.cast(lib.wf_python_check, _abi.wf_interrupt_fn), _signals.pointer)
    _watched = True


def _reset_watch() -> None:
    global _watched
    _watched = False


_watched = False
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_reset_watch)  # in the child, another thread may be the main thread


class ProgressGuard:
    """A wf_progress that runs a Python callback. An exception in the callback cancels the C call and is raised after it.

    with ProgressGuard(callback) as guard:
        call("wf_decode", ..., guard.pointer, ...)
    """

    def __init__(self, callback: Progress | None) -> None:
        self.pointer = None
        if callback is not None:
            self._call = PythonCall(lambda stage, fraction: callback(decode_text(stage) or "", fraction) is not False)
            self.value = _abi.wf_progress(fn=ctypes.cast(lib.wf_python_progress, _abi.wf_progress_fn), user=self._call.pointer)
            self.pointer = ctypes.byref(self.value)

    def __enter__(self) -> ProgressGuard:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pointer is not None:
            self._call.raise_stored()
