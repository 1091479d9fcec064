"""Transducers (RNN-T, TDT): models of a decoder whose inputs are encoder outputs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import Handle, PythonCall, as_dict, call, create, encode_path, lib, sized
from .errors import ArgumentError
from .options import c_options
from .scores import borrow

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import TransducerOptions


class Transducer(Handle):
    """A predictor and a joiner, for Decoder(graph, transducer=). Immutable."""

    _free = lib.wf_transducer_free
    _functions: _Functions | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str], **options: Unpack[TransducerOptions]) -> Transducer:
        """Reads a .safetensors file, whose tensors docs/reference/transducers.md lists. Options: describe("transducer")."""
        return cls(create("wf_transducer_open", encode_path(path), c_options("transducer", options)))

    @classmethod
    def from_functions(
        cls,
        predictor: Callable[..., Any],
        joiner: Callable[[Any, Any], Any],
        *,
        num_tokens: int,
        encoder_size: int,
        predictor_size: int,
        num_durations: int = 0,
        blank: int = 0,
        context_size: int = 0,
        state_size: int = 0,
    ) -> Transducer:
        """A model behind two functions, such as modules of torch.

        predictor  stateless (context_size > 0): predictor(tokens), int32 [rows, context_size], oldest first, at the start blanks -> [rows, predictor_size].
                   With states (state_size > 0): predictor(tokens, states), int32 [rows] and float32 [rows, state_size] -> ([rows, predictor_size], new states). The
                   first token is the blank, after a state of zeros
        joiner     joiner(encoder, predictor), float32 [rows, encoder_size] and [rows, predictor_size] -> logits [rows, num_tokens + num_durations], not normalised

        Arguments are memoryviews, valid until the function returns; numpy.asarray takes them without a copy. Results are float32 arrays in host memory, of anything
        with the buffer protocol or DLPack. A row must not depend on the others. An exception ends decoding and is raised by `decode`. Decoding calls the functions on
        one thread, with the rows of all utterances in flight (up to 64) at once, and runs the predictor once for each context of an utterance. num_durations is 0 for RNN-T.
        """
        functions = _Functions(predictor, joiner)
        parts = sized(_abi.wf_transducer_parts)
        parts.num_tokens, parts.num_durations, parts.blank = num_tokens, num_durations, blank
        parts.encoder_size, parts.predictor_size = encoder_size, predictor_size
        parts.context_size, parts.state_size = context_size, state_size
        parts.predict = ctypes.cast(lib.wf_python_predict, _abi.wf_predictor_fn)
        parts.join = ctypes.cast(lib.wf_python_join, _abi.wf_joiner_fn)
        parts.user = functions.pointer
        functions.sizes = parts
        model = cls(create("wf_transducer_create", ctypes.byref(parts)))
        model._functions = functions
        return model

    def info(self) -> dict[str, int]:
        """num_tokens, num_durations (0: RNN-T), blank, encoder_size, context_size (0: the predictor has states), num_bytes."""
        raw = sized(_abi.wf_transducer_info)
        call("wf_transducer_get_info", self.address, ctypes.byref(raw))
        return as_dict(raw)

    @property
    def is_running(self) -> bool:
        """Does this thread run one of the functions of from_functions for a decoder?"""
        return self._functions is not None and self._functions.is_running

    def raise_stored(self) -> None:
        """Raises the exception that a function of from_functions raised during the last call, if any."""
        if self._functions is not None:
            self._functions.raise_stored()


class _Functions(PythonCall):
    """The two functions, as C calls them."""

    sizes: Any

    def __init__(self, predictor: Callable[..., Any], joiner: Callable[[Any, Any], Any]) -> None:
        super().__init__(self._fill)
        self._predictor, self._joiner = predictor, joiner

    def _fill(self, address: int, kind: int) -> bool:
        sizes = self.sizes
        if kind == 1:
            join = _abi.wf_joiner_rows.from_address(address)
            logits = self._joiner(_view(join.encoder, "f", join.count, sizes.encoder_size), _view(join.predictor, "f", join.count, sizes.predictor_size))
            _copy(logits, join.logits, (join.count, sizes.num_tokens + sizes.num_durations), "the joiner's logits")
            return True
        rows = _abi.wf_predictor_rows.from_address(address)
        if sizes.context_size > 0:
            outputs = self._predictor(_view(rows.tokens, "i", rows.count, sizes.context_size))
        else:
            result = self._predictor(_view(rows.tokens, "i", rows.count), _view(rows.states, "f", rows.count, sizes.state_size))
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError("the predictor of a transducer with states must return (outputs, states)")
            outputs, states = result
            _copy(states, rows.next_states, (rows.count, sizes.state_size), "the predictor's states")
        _copy(outputs, rows.outputs, (rows.count, sizes.predictor_size), "the predictor's outputs")
        return True


def _view(pointer: Any, code: str, *shape: int) -> Any:
    """The memory at a ctypes pointer, as an array of 4-byte numbers."""
    size = 1
    for extent in shape:
        size *= extent
    memory = (ctypes.c_char * (4 * size)).from_address(ctypes.cast(pointer, ctypes.c_void_p).value or 0)
    view: Any = memoryview(memory).cast("B")
    return view.cast(code, shape)


def _copy(source: Any, pointer: Any, shape: Sequence[int], what: str) -> None:
    """Copies a float32 array of this shape to the memory at a ctypes pointer."""
    tensor = borrow(source)
    if tensor.shape != tuple(shape):
        raise ArgumentError(f"{what} have the shape {list(tensor.shape)}, expected {list(shape)}")
    if tensor.dtype != _abi.WF_FLOAT32 or tensor.device is not None:
        raise ArgumentError(f"{what} are not float32 in host memory (x.float().cpu())")
    rows, columns = shape
    if columns > 1 and tensor.strides[1] != 1:
        raise ArgumentError(f"{what} have strides {tensor.strides}: columns must be adjacent (make the array contiguous)")
    to = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    for row in range(rows):
        ctypes.memmove(to + 4 * row * columns, tensor.address + 4 * row * tensor.strides[0], 4 * columns)
