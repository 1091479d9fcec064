"""Scores in GPU memory, from a producer on a stream of its own: no framework, only the driver. Skipped where there is no GPU."""

import ctypes
import threading

import numpy as np
import pytest
from fake_tensors import FakeTensor

import warpfst as wf

WHY_NOT = wf.cuda_available()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"no GPU: {WHY_NOT}")


class Device:
    """The primary context of GPU 0, as the CUDA runtime uses it."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def check(status):
        assert status == 0, status

    def upload(self, array):
        address = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1))))
        self.check(self.cuda.cuMemcpyHtoD_v2(address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)))
        return FakeTensor(array, device=(2, 0), address=address.value)

    def stream(self):
        stream = ctypes.c_void_p()
        self.check(self.cuda.cuStreamCreate(ctypes.byref(stream), 1))  # does not wait for the default stream
        return stream.value


@pytest.fixture(scope="module")
def device():
    return Device()


def values(results):
    return [(r.text, r.cost, [w[1:] for w in r.words], list(r.alignment)) for r in results]


def test_gpu_and_cpu_agree_bit_for_bit(device, ctc_graph, ctc_scores):
    matrices = [matrix.astype(np.float32) for matrix in ctc_scores.values()]
    expected = values(wf.Decoder(ctc_graph, acoustic_scale=0.7).decode(matrices))
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, device="cuda")
    assert values(decoder.decode(matrices)) == expected
    assert values(decoder.decode([device.upload(matrix) for matrix in matrices])) == expected
    batch = np.zeros((len(matrices), max(map(len, matrices)), 40), np.float32)
    for row, matrix in zip(batch, matrices):
        row[: len(matrix)] = matrix
    tensor = device.upload(batch)
    assert values(decoder.decode(tensor, [len(matrix) for matrix in matrices])) == expected
    assert all(stream == 1 for stream, _ in tensor.calls)
    assert decoder.plan()["total_bytes"] > 0


def test_stream_of_the_user(device, ctc_graph, ctc_scores):
    """The scores arrive on the stream only after a host function has slept: decoding must wait for them."""
    matrix = next(iter(ctc_scores.values())).astype(np.float32)
    tensor, stream = device.upload(np.zeros_like(matrix)), device.stream()
    gate = threading.Event()
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(0.2))
    device.check(device.cuda.cuLaunchHostFunc(ctypes.c_void_p(stream), hold, None))
    device.check(device.cuda.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(tensor.managed.tensor.data), matrix.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(matrix.nbytes), ctypes.c_void_p(stream)))
    decoder = wf.Decoder(ctc_graph, device="cuda")
    decoder.set_stream(stream)
    assert values(decoder.decode(tensor)) == values(wf.Decoder(ctc_graph).decode(matrix))
    assert tensor.calls[-1][0] == stream
