"""Exceptions: one class a status of the C library, each also a builtin kind where one fits, so that `except ValueError` works too.

The message is the C library's: it names file, line or frame, what was found and what was expected.
"""

from __future__ import annotations


class Error(Exception):
    """Anything the library refuses or fails at. `status` is the C status name, such as "ERR_FORMAT"."""

    status = "ERR"


class InputWarning(UserWarning):
    """Input that is likely wrong: scores that are no log-probabilities, words that differ in case, lines left out. `warnings.filterwarnings` silences them or makes them errors."""


class IgnoredOptionWarning(UserWarning):
    """An option of warpfst.compat was given that has no effect here."""


class ArgumentError(Error, ValueError):
    """Among others: scores with NaN."""

    status = "ERR_ARGUMENT"


class OutOfMemoryError(Error, MemoryError):
    status = "ERR_MEMORY"


class FileError(Error, OSError):
    status = "ERR_IO"


class FormatError(Error, ValueError):
    """A malformed file."""

    status = "ERR_FORMAT"


class LimitError(Error):
    """An option's limit, or one of the formats', is exceeded."""

    status = "ERR_LIMIT"


class UnsupportedError(Error, NotImplementedError):
    status = "ERR_UNSUPPORTED"


class NotDeterminizableError(Error):
    """The message holds a witness: two outputs for one input."""

    status = "ERR_NOT_DETERMINIZABLE"


class NegativeCycleError(Error, ArithmeticError):
    status = "ERR_NEGATIVE_CYCLE"


class StateError(Error):
    """Called in the wrong state, such as on an object that was closed."""

    status = "ERR_STATE"


class DeviceError(Error):
    """No such GPU, a library built without CUDA, or a failing device."""

    status = "ERR_DEVICE"


class CancelledError(Error):
    """A progress callback asked to stop."""

    status = "ERR_CANCELLED"


BY_STATUS = {
    cls.status: cls
    for cls in (ArgumentError, OutOfMemoryError, FileError, FormatError, LimitError, UnsupportedError, NotDeterminizableError, NegativeCycleError)
    + (StateError, DeviceError, CancelledError)
}
