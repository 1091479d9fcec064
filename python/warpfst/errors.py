"""Exceptions: one class for each status of the C library. Where a builtin exception fits, the class also derives from it, so `except ValueError` works, too.

Messages come from the C library. They name the file, line or frame, what was found and what was expected.
"""

from __future__ import annotations


class Error(Exception):
    """Base class of all errors of the library. `status` is the name of the C status, such as "ERR_FORMAT"."""

    status = "ERR"


class InputWarning(UserWarning):
    """Input that is probably wrong: scores that are not log-probabilities, words that differ only in case, skipped lines.

    `warnings.filterwarnings` can silence these warnings or turn them into errors.
    """


class IgnoredOptionWarning(UserWarning):
    """An option was given to warpfst.compat that has no effect in this library."""


class ArgumentError(Error, ValueError):
    """An invalid argument, for example scores with NaN."""

    status = "ERR_ARGUMENT"


class OutOfMemoryError(Error, MemoryError):
    status = "ERR_MEMORY"


class FileError(Error, OSError):
    status = "ERR_IO"


class FormatError(Error, ValueError):
    """A malformed file."""

    status = "ERR_FORMAT"


class LimitError(Error):
    """A limit is exceeded: one set by an option, or one of a file format."""

    status = "ERR_LIMIT"


class UnsupportedError(Error, NotImplementedError):
    status = "ERR_UNSUPPORTED"


class NotDeterminizableError(Error):
    """The fst cannot be determinized. The message shows an input string with two outputs."""

    status = "ERR_NOT_DETERMINIZABLE"


class NegativeCycleError(Error, ArithmeticError):
    status = "ERR_NEGATIVE_CYCLE"


class StateError(Error):
    """A call in the wrong state, for example on a closed object."""

    status = "ERR_STATE"


class DeviceError(Error):
    """The GPU does not exist, the library was built without CUDA, or the device failed."""

    status = "ERR_DEVICE"


class CancelledError(Error):
    """A progress callback returned False."""

    status = "ERR_CANCELLED"


BY_STATUS = {
    cls.status: cls
    for cls in (ArgumentError, OutOfMemoryError, FileError, FormatError, LimitError, UnsupportedError, NotDeterminizableError, NegativeCycleError)
    + (StateError, DeviceError, CancelledError)
}
