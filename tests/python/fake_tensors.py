"""DLPack producers without a framework. Tests can set every field of the tensor."""

import ctypes

CAPSULE_NEW = ctypes.pythonapi.PyCapsule_New
CAPSULE_NEW.restype, CAPSULE_NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class DLTensor(ctypes.Structure):
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


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class FakeTensor:
    """Supports only the DLPack protocol. `calls` records the arguments of __dlpack__."""

    def __init__(self, array, *, device=(1, 0), code=2, bits=None, strides="own", version=None, offset=0, address=None, lanes=1):
        self.array, self.device, self.version, self.calls = array, device, version, []
        ndim = array.ndim
        self.shape = (ctypes.c_int64 * ndim)(*array.shape)
        self.strides = None if strides is None else (ctypes.c_int64 * ndim)(*((s // array.itemsize for s in array.strides) if strides == "own" else strides))
        pointer = ctypes.POINTER(ctypes.c_int64)
        tensor = DLTensor(
            (array.ctypes.data if address is None else address) - offset,
            *device,
            ndim,
            code,
            bits or array.itemsize * 8,
            lanes,
            self.shape,
            ctypes.cast(self.strides, pointer) if self.strides else pointer(),
            offset,
        )
        self.managed = Managed(tensor) if version is None else Versioned(*version, tensor=tensor)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **arguments):
        self.calls.append((stream, arguments))
        if self.version is None and arguments:
            raise TypeError("__dlpack__() got an unexpected keyword argument")  # like producers older than DLPack 1.0
        return CAPSULE_NEW(ctypes.addressof(self.managed), b"dltensor" if self.version is None else b"dltensor_versioned", None)
