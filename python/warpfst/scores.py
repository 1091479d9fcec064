"""Acoustic scores: borrowed without a copy from objects with the buffer protocol or DLPack, on the CPU or a CUDA GPU; and files of score matrices.

The buffer protocol is tried first, because numpy's read-only arrays have no unversioned DLPack. Objects without a suitable buffer (torch, cupy, bfloat16) are read through
DLPack. Of a list of torch tensors, only the first one on a GPU, because that makes the decoder's stream wait for torch's current one; the others are read through their
attributes. float64 is copied as float32. The producer keeps ownership of a borrowed tensor: its DLPack capsule is not consumed, only kept until the call returns.
"""

from __future__ import annotations

import array
import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, call, create, encode_path, encode_text, lib, python_borrow
from .options import c_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import MatrixWriterOptions, ScoreReaderOptions

LEGACY_STREAM = 1  # DLPack's and CUDA's number for the legacy default stream
_DLPACK, _DLPACK_DEVICE = "__dlpack__", "__dlpack_device__"
_TORCH_ATTRIBUTES = ("is_cpu", "is_cuda", "requires_grad", "dtype", "shape", "stride", "data_ptr", "get_device")
_TORCH_NAMES = (ctypes.c_void_p * len(_TORCH_ATTRIBUTES))(*map(id, _TORCH_ATTRIBUTES))
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
_DLPACK_DTYPES = {(2, 32): _abi.WF_FLOAT32, (2, 16): _abi.WF_FLOAT16, (4, 16): _abi.WF_BFLOAT16}  # (DLDataTypeCode, bits)
_BUFFER_DTYPES = {"f": _abi.WF_FLOAT32, "e": _abi.WF_FLOAT16}


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


_python = ctypes.pythonapi
_python.PyObject_GetBuffer.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
_python.PyBuffer_Release.argtypes = [ctypes.c_void_p]
_python.PyBuffer_Release.restype = None
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_STRIDED_WITH_FORMAT = 0x1C  # PyBUF_STRIDES | PyBUF_FORMAT


class _Buffer:
    """The fields of a Py_buffer. They are valid as long as the memoryview holds the memory."""

    def __init__(self, source: Any) -> None:
        self.view = memoryview(source)
        self.raw = _PyBuffer()
        _python.PyObject_GetBuffer(self.view, ctypes.byref(self.raw), _STRIDED_WITH_FORMAT)
        _python.PyBuffer_Release(ctypes.byref(self.raw))


class Tensor(NamedTuple):
    """Borrowed memory. Strides are in elements. `owner` keeps the memory alive. `device` is the number of the GPU, or None for host memory."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: int
    device: int | None
    owner: Any


def _get_buffer(source: Any) -> _Buffer | None:
    try:
        return _Buffer(source)
    except (BufferError, TypeError, ValueError):  # no buffer, or a type that buffers cannot describe
        return None


def _format(buffer: _Buffer) -> str:
    return (buffer.raw.format or b"B").decode()


def _typecode(buffer: _Buffer) -> str:
    return _format(buffer).lstrip("@=<" if sys.byteorder == "little" else "@=>")


def _buffer_dtype(buffer: _Buffer) -> int | None:
    return _BUFFER_DTYPES.get(_typecode(buffer))


def _as_float32(source: Any) -> Any:
    """Copies float64 to float32, with the array's own library if possible."""
    if hasattr(source, "astype"):
        try:
            return source.astype("float32", order="C")  # numpy's default keeps the order of axes of which one is expanded
        except TypeError:  # a library with one order
            return source.astype("float32")
    if hasattr(source, "float"):
        return source.float()
    view = memoryview(source)
    numbers = memoryview(array.array("f", view.cast("B").cast("d") if view.nbytes else ()))
    return numbers.cast("B").cast("f", view.shape or ()) if view.nbytes else numbers


def _from_buffer(buffer: _Buffer) -> Tensor:
    raw, dtype = buffer.raw, _buffer_dtype(buffer)
    assert dtype is not None
    shape = tuple(raw.shape[: raw.ndim])
    if any(stride % raw.itemsize for stride in raw.strides[: raw.ndim]):
        raise ValueError("strides of the scores are not multiples of the element size")
    return Tensor(raw.buf or 0, shape, tuple(stride // raw.itemsize for stride in raw.strides[: raw.ndim]), dtype, None, buffer)


def _capsule(source: Any, on_gpu: bool, stream: int) -> Any:
    arguments = {"stream": stream} if on_gpu else {}
    try:
        return source.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # a producer from before DLPack 1.0
        return source.__dlpack__(**arguments)


def _from_dlpack(source: Any, stream: int) -> Tensor:
    kind, device = (int(number) for number in source.__dlpack_device__())
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise TypeError(f"scores on a device of DLPack's type {kind}: neither the CPU nor a CUDA GPU")
    on_gpu = kind in (_CUDA, _CUDA_MANAGED)
    try:
        capsule = _capsule(source, on_gpu, stream)
    except (BufferError, RuntimeError) as why:  # RuntimeError: torch before 2.9
        raise TypeError(f"{type(source).__name__} cannot be shared: {why} (expected float32, float16 or bfloat16, without gradients)") from why
    if _python.PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        managed = _DLVersioned.from_address(_python.PyCapsule_GetPointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise TypeError(f"DLPack version {managed.major}.{managed.minor} is not supported, expected 1.x")
        tensor = managed.tensor
    elif _python.PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = _DLTensor.from_address(_python.PyCapsule_GetPointer(capsule, b"dltensor"))
    else:
        raise TypeError("__dlpack__ did not return a DLPack capsule")
    if (tensor.code, tensor.bits, tensor.lanes) == (2, 64, 1) and (hasattr(source, "astype") or hasattr(source, "float")):
        return borrow(_as_float32(source), stream)
    dtype = _DLPACK_DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        names = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
        raise TypeError(f"scores of {names.get(tensor.code, 'unknown type ')}{tensor.bits}: expected float32, float16 or bfloat16 (x.float())")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _packed(shape)
    return Tensor((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, device if on_gpu else None, (source, capsule))


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides)


def borrow(source: Any, stream: int = LEGACY_STREAM) -> Tensor:
    """The memory of an array or tensor. If it is on a GPU, its producer is asked to make `stream` wait for its work."""
    buffer = _get_buffer(source)
    if buffer is not None and _buffer_dtype(buffer) is not None:
        return _from_buffer(buffer)
    if buffer is not None and _typecode(buffer) == "d":
        return borrow(_as_float32(source), stream)
    if hasattr(source, "__dlpack__"):
        return _from_dlpack(source, stream)
    if buffer is None:
        raise TypeError(f"{type(source).__name__} supports neither the buffer protocol nor DLPack")
    raise TypeError(f"scores of buffer format {_format(buffer)!r}: expected float32 or float16 (x.astype('float32'))")


def _checked(tensor: Tensor, what: str) -> Tensor:
    """The tensor, [..., frames, columns], with packed strides of axes that have fewer than two places: the given ones of these mean nothing."""
    if tensor.shape[-1] >= 2**31:
        raise ValueError(f"{what}: {tensor.shape[-1]} columns, expected fewer than 2^31")
    packed, empty = _packed(tensor.shape), 0 in tensor.shape
    strides = tuple(own if empty or size < 2 else stride for size, stride, own in zip(tensor.shape, tensor.strides, packed))
    if min(strides) < 0 or strides[-1] != 1 or strides[-2] < tensor.shape[-1]:
        raise ValueError(
            f"{what}: strides {tensor.strides} of shape {tensor.shape}: the columns of a frame must be adjacent, and frames in order "
            "and apart (make the array contiguous)"
        )
    return tensor._replace(strides=strides)


def _whole_numbers(lengths: Any, count: int) -> array.array[int]:
    values = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    values = values if isinstance(values, list) else [values]
    if len(values) != count:
        raise ValueError(f"{len(values)} lengths for {count} utterances")
    try:
        return array.array("q", values)
    except TypeError:  # not integers
        if any(int(value) != value for value in values):
            raise ValueError("lengths must be whole numbers of frames") from None
        return array.array("q", map(int, values))


def _torch() -> tuple[Any, ...]:
    """torch.Tensor and the types of scores; nothing if torch was not imported."""
    torch = sys.modules.get("torch")
    return (torch.Tensor, torch.float32, torch.float16, torch.bfloat16) if torch is not None and hasattr(torch, "bfloat16") else ()


def _keywords(stream: int | None, versioned: bool) -> dict[str, Any]:
    """Of __dlpack__."""
    return {**({"max_version": (1, 1)} if versioned else {}), **({} if stream is None else {"stream": stream})}


class Batch:
    """Score matrices of a batch as C structures, and the objects whose memory they borrow. Must live until the call that uses it returns."""

    def __init__(self, log_probs: Any, lengths: Any = None, stream: int = LEGACY_STREAM) -> None:
        self._stream = stream
        self._devices: set[int] = set()
        if isinstance(log_probs, (list, tuple)):
            self._matrices(tuple(log_probs), lengths)
            return
        tensor = borrow(log_probs, stream)
        if len(tensor.shape) == 3:
            self._padded(tensor, lengths)
        else:
            self._matrix(tensor, lengths)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def device(self) -> int | None:
        """The number of the GPU that holds the scores; None: they are in host memory."""
        if len(self._devices) > 1:
            raise ValueError(f"scores on several GPUs: {sorted(self._devices)}")
        return next(iter(self._devices), None)

    def _matrix(self, tensor: Tensor, lengths: Any) -> None:
        self._owners: list[Any] = []
        self.scores = (_abi.wf_scores * 1)()
        self._add(0, tensor, None if lengths is None else _whole_numbers(lengths, 1))

    def _matrices(self, items: tuple[Any, ...], lengths: Any) -> None:
        """Borrows the usual matrices with one C call, which stops at each that needs more: a conversion, an error message."""
        count = len(items)
        frames = None if lengths is None else _whole_numbers(lengths, count)
        self.scores = (_abi.wf_scores * count)()
        self._owners = [items]
        keywords = [_keywords(stream, versioned) for versioned in (True, False) for stream in (None, self._stream)]
        torch = _torch()
        raw = _abi.wf_python_borrowing(
            items=id(items),
            owners=id(self._owners),
            no_arguments=id(()),
            dlpack=id(_DLPACK),
            dlpack_device=id(_DLPACK_DEVICE),
            keywords=(ctypes.c_void_p * 4)(*map(id, keywords)),
            torch_tensor=id(torch[0]) if torch else None,
            torch_dtypes=(ctypes.c_void_p * 3)(*map(id, torch[1:])),
            torch_names=_TORCH_NAMES,
            count=count,
            lengths=None if frames is None else ctypes.cast(frames.buffer_info()[0], ctypes.POINTER(ctypes.c_int64)),
            scores=self.scores,
            device=-1,
        )
        while True:
            try:
                python_borrow(ctypes.addressof(raw))
            except TypeError:
                if not raw.unversioned:  # a producer from before DLPack 1.0
                    raw.unversioned = True
                    continue
            except (AttributeError, BufferError, RuntimeError, ValueError):  # `borrow` has the message
                pass
            if raw.device >= 0:
                self._devices.add(raw.device)
            if raw.next == count:
                return
            try:
                tensor = borrow(items[raw.next], self._stream)
            except (TypeError, ValueError) as why:
                raise (TypeError if isinstance(why, TypeError) else ValueError)(f"utterance {raw.next}: {why}") from why
            self._add(raw.next, tensor, frames)
            raw.next += 1

    def _add(self, i: int, tensor: Tensor, frames: Sequence[int] | None) -> None:
        self._owners.append(tensor)
        if tensor.device is not None:
            self._devices.add(tensor.device)
        if tensor.shape == (0,):  # an empty matrix; memoryviews of two dimensions cannot be empty
            return
        if len(tensor.shape) != 2:
            raise ValueError(f"utterance {i}: scores of shape {tensor.shape}, expected [frames, columns]")
        tensor = _checked(tensor, f"utterance {i}")
        num_frames, num_columns = tensor.shape
        if frames is not None:
            if not 0 <= frames[i] <= num_frames:
                raise ValueError(f"utterance {i}: length {frames[i]} of {num_frames} frames")
            num_frames = frames[i]
        self.scores[i] = _abi.wf_scores(tensor.address or None, num_frames, num_columns, tensor.strides[0], tensor.dtype, tensor.device is not None)

    def _padded(self, tensor: Tensor, lengths: Any) -> None:
        tensor = _checked(tensor, "scores")
        self._owners = [tensor]
        if tensor.device is not None:
            self._devices.add(tensor.device)
        count, max_frames, num_columns = tensor.shape
        frames = None if lengths is None else _whole_numbers(lengths, count)
        if frames and not 0 <= min(frames) <= max(frames) <= max_frames:
            raise ValueError(f"lengths outside 0 to {max_frames}: {[value for value in frames if not 0 <= value <= max_frames][:10]}")
        utterance_stride, frame_stride, _ = tensor.strides
        self.scores = (_abi.wf_scores * count)()
        if utterance_stride == 0 and max_frames * num_columns > 0:  # one recording several times (broadcast_to, expand): in wf_padded_scores, 0 means packed
            for i in range(count):
                length = max_frames if frames is None else frames[i]
                self.scores[i] = _abi.wf_scores(tensor.address or None, length, num_columns, frame_stride, tensor.dtype, tensor.device is not None)
            return
        padded = _abi.wf_padded_scores(
            tensor.address or None,
            count,
            max_frames,
            num_columns,
            utterance_stride,
            frame_stride,
            None if frames is None else ctypes.cast(frames.buffer_info()[0], ctypes.POINTER(ctypes.c_int64)),
            tensor.dtype,
            tensor.device is not None,
        )
        call("wf_scores_from_padded", ctypes.byref(padded), self.scores)


class Matrix(NamedTuple):
    """Scores of one utterance from a file. `data` is a float32 memoryview [frames, columns], which `decode` and numpy.asarray accept."""

    key: str
    data: Any


class ScoreReader(Handle):
    """Iterates over score matrices of Kaldi archives or scp files, .npy or .sen files, or folders of these: `for key, data in ScoreReader("scores.ark")`.

    A malformed utterance raises FormatError; after that, `next()` continues with the following one. Not thread-safe.
    """

    _free = lib.wf_score_reader_free

    def __init__(self, *sources: str | os.PathLike[str], **options: Unpack[ScoreReaderOptions]) -> None:
        """`sources`: read one after the other."""
        paths = (ctypes.c_char_p * len(sources))(*(encode_path(source) for source in sources))
        super().__init__(create("wf_score_reader_open", paths, len(sources), c_options("score_reader", options)))

    def __iter__(self) -> Iterator[Matrix]:
        return self

    def __next__(self) -> Matrix:
        matrix, done = _abi.wf_matrix(), ctypes.c_bool()
        try:
            call("wf_score_reader_next", self.address, ctypes.byref(matrix), ctypes.byref(done))
            if done.value:
                raise StopIteration
            count = matrix.num_frames * matrix.num_columns
            data = memoryview(bytearray(ctypes.string_at(matrix.data, 4 * count) if count else b""))
            return Matrix(matrix.key.decode("utf-8", "replace"), data.cast("f", (matrix.num_frames, matrix.num_columns)) if count else data.cast("f"))
        finally:
            lib.wf_matrix_clear(ctypes.byref(matrix))


class ScoreWriter(Handle):
    """Writes score matrices to a Kaldi archive, or with format="npy" to a folder: `with ScoreWriter("scores.ark") as out: out.put(key, matrix)`.

    If the block raises an exception, what was written is removed.
    """

    _free = lib.wf_matrix_writer_abort

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[MatrixWriterOptions]) -> None:
        """`path`: the archive, or the folder for format="npy"."""
        super().__init__(create("wf_matrix_writer_open", encode_path(path), c_options("matrix_writer", options)))

    def put(self, key: str, matrix: Any) -> None:
        """Writes a matrix: float32 [frames, columns] in host memory, contiguous."""
        tensor = borrow(matrix)
        if tensor.device is not None or tensor.dtype != _abi.WF_FLOAT32 or len(tensor.shape) != 2 or tensor.strides != _packed(tensor.shape):
            raise ValueError("expected float32 [frames, columns] in host memory, contiguous")
        data = ctypes.cast(tensor.address, ctypes.POINTER(ctypes.c_float))
        call("wf_matrix_writer_put", self.address, ctypes.byref(_abi.wf_matrix(encode_text(key), data, *tensor.shape)))

    def finish(self) -> None:
        """Completes the output. Without this call, what was written is removed."""
        address = self._disown()
        call("wf_matrix_writer_close", address)

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None and self._address is not None:
            self.finish()
        else:
            self.close()
