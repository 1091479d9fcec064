#!/usr/bin/env python3
"""python_speed.py BENCH_DECODE GRAPH SCORES [--words=FILE] [--device=cuda] [--batches=1,50,400,1260] [--acoustic-scale=0.7] [--beam=15] [--max-active=7000] [--lattice-beam=8] [--seconds=2]

Measures how much of C's speed the Python package reaches. SCORES: a folder of .npy files, or an archive. Scores are float32, on a GPU in its memory: one padded tensor, or a list of
tensors with a DLPack that costs next to nothing. Needs the package and numpy.

Each row is one way to decode a batch; its time is the median over rounds in which all ways take turns. "C" is wf_decode with structures that are ready, called in this process;
"bench_decode" is the same measured by that program. Freeing results counts for Python, and for C only in the row "freed". Percentages are C's time over that of the row.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import time

import numpy as np

import warpfst as wf
from warpfst import _abi
from warpfst._library import lib


class Gpu:
    """Memory of a GPU, through the CUDA driver."""

    def __init__(self, number=0):
        self.cuda, self.number, context = ctypes.CDLL("libcuda.so.1"), number, ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
        self.check(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def check(status):
        if status != 0:
            raise SystemExit(f"the CUDA driver returned {status}")

    def allocate(self, num_bytes):
        address = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(num_bytes, 1))))
        return address.value

    def upload(self, address, array):
        self.check(self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(address), array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)))

    def free(self, address):
        self.check(self.cuda.cuMemFree_v2(ctypes.c_uint64(address)))


class Host:
    """The same interface for host memory."""

    number = None

    def __init__(self):
        self.arrays = {}

    def allocate(self, num_bytes):
        array = np.zeros(max(num_bytes, 1), np.uint8)
        self.arrays[array.ctypes.data] = array
        return array.ctypes.data

    def upload(self, address, array):
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def free(self, address):
        del self.arrays[address]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]
    _fields_ += [("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Tensor:
    """A float32 tensor in memory that it does not own. __dlpack__ returns a capsule that is ready."""

    def __init__(self, address, shape, gpu):
        self.device = (1, 0) if gpu is None else (2, gpu)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.managed = DLTensor(address, self.device, len(shape), 2, 32, 1, ctypes.addressof(self.shape))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = new(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        return self.capsule


def read_scores(path):
    files = sorted(pathlib.Path(path).glob("*.npy")) if pathlib.Path(path).is_dir() else []
    matrices = [np.load(file) for file in files] or [np.asarray(data) for _, data in wf.ScoreReader(path)]
    return [np.ascontiguousarray(matrix, np.float32) for matrix in matrices]


class Batches:
    """`utterances` utterances in memory, starting over with `matrices` at the end, in batches of `size`: as lists, padded, and as C structures."""

    def __init__(self, matrices, size, utterances, memory):
        columns, self.memory = matrices[0].shape[1], memory
        self.addresses = [memory.allocate(matrix.nbytes) for matrix in matrices[:utterances]]
        for address, matrix in zip(self.addresses, matrices):
            memory.upload(address, matrix)
        chosen = [i % len(matrices) for i in range(utterances)]
        self.frames = [len(matrices[i]) for i in chosen]
        self.lists, self.padded, self.structures = [], [], []
        for first in range(0, utterances, size):
            part = chosen[first : first + size]
            self.lists.append([Tensor(self.addresses[i], matrices[i].shape, memory.number) for i in part])
            longest = max(len(matrices[i]) for i in part)
            block = memory.allocate(4 * len(part) * longest * columns)
            self.addresses.append(block)
            for row, i in enumerate(part):
                memory.upload(block + 4 * row * longest * columns, matrices[i])
            self.padded.append((Tensor(block, (len(part), longest, columns), memory.number), np.array([len(matrices[i]) for i in part])))
            utterance = (_abi.wf_utterance * len(part))()
            for structure, i in zip(utterance, part):
                structure.scores = _abi.wf_scores(self.addresses[i], len(matrices[i]), columns, columns, _abi.WF_FLOAT32, memory.number is not None)
            self.structures.append((utterance, (ctypes.POINTER(_abi.wf_result) * len(part))()))

    def free(self):
        for address in self.addresses:
            self.memory.free(address)


def decode_in_c(decoder, batches, freeing=False):
    """Seconds of wf_decode for all batches; `freeing`: and of freeing the results."""
    error, seconds = _abi.wf_error(), 0.0
    for utterances, results in batches.structures:
        begin = time.perf_counter()
        status = lib.wf_decode(decoder.address, utterances, len(results), None, results, ctypes.byref(error))
        seconds += time.perf_counter() - begin
        if status != 0:
            raise SystemExit(error.message.decode())
        begin = time.perf_counter()
        for result in results:
            lib.wf_result_free(result)
        seconds += freeing * (time.perf_counter() - begin)
    return seconds


def decode_in_python(decode, inputs, read):
    begin = time.perf_counter()
    for one in inputs:
        results = decode(*one)
        read(results)
        del results
    return time.perf_counter() - begin


def nothing(_results):
    pass


def texts(results):
    return [result.text for result in results]


def words(results):
    return [result.words for result in results]


def ways_of(decoder, batches, lattices):
    """Functions that decode all batches and return the seconds they took, by name."""

    def python(inputs, read):
        return lambda: decode_in_python(decoder.decode, inputs, read)

    lists = [(one,) for one in batches.lists]
    if lattices:
        freed = {"C, confidences, freed": lambda: decode_in_c(decoder, batches, freeing=True)}
        return freed | {"C, confidences": lambda: decode_in_c(decoder, batches), "list, words with confidences": python(lists, words)}
    ways = {"C": lambda: decode_in_c(decoder, batches), "padded": python(batches.padded, nothing), "list": python(lists, nothing)}
    return ways | {"padded, texts": python(batches.padded, texts), "list, texts": python(lists, texts), "list, words": python(lists, words)}


def medians(ways, seconds):
    times = {name: [way()][:0] for name, way in ways.items()}  # the first turn does not count
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, way in ways.items():
            times[name].append(way())
    return {name: statistics.median(values) for name, values in times.items()}


def by_bench_decode(options, size, utterances, lattice):
    settings = f"device={options.device},scores={'host' if options.device == 'cpu' else 'device'},batch={size},utterances={utterances},beam={options.beam},max_active={options.max_active}"
    settings += f",lattice_beam={options.lattice_beam},determinize=1,confidences=1" if lattice else ""
    command = [options.bench_decode, options.graph, options.scores, f"--acoustic-scale={options.acoustic_scale}", "--check=1", f"{settings},seconds={options.seconds / 2}"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bench_decode", "graph", "scores"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--words")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batches", default="1,50,400,1260")
    for name, default in (("acoustic-scale", 0.7), ("beam", 15), ("max-active", 7000), ("lattice-beam", 8), ("seconds", 2), ("frame-shift", 0.04)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    matrices, memory = read_scores(options.scores), Host() if options.device == "cpu" else Gpu()
    search = {"beam": options.beam, "max_active": options.max_active, "acoustic_scale": options.acoustic_scale, "device": options.device, "check_scores": "off"}
    table = {"words": wf.Symbols.read(options.words)} if options.words else {}
    graph, sizes = wf.Graph.load(options.graph), [int(size) for size in options.batches.split(",")]
    parts = [("", {})] + ([(", confidences", {"lattice_beam": options.lattice_beam, "determinize": True})] if options.lattice_beam else [])
    for name, more in parts:  # one decoder at a time, so that each has all of the GPU's memory
        alone = {size: by_bench_decode(options, size, max(size, 16), bool(more)) for size in sizes}
        with wf.Decoder(graph, **table, **search, **more) as decoder:
            for size in sizes:
                batches = Batches(matrices, size, max(size, 16), memory)
                audio = sum(batches.frames) * options.frame_shift
                found = {f"bench_decode{name}": alone[size], **medians(ways_of(decoder, batches, bool(more)), options.seconds)}
                batches.free()
                print(f"\nbatch {size}{name}: {max(size, 16)} utterances, {audio:.0f} s of audio")
                for way, seconds in found.items():
                    print(f"{way:30}{seconds * 1e3:10.3f} ms{audio / seconds:12.0f} RTFx{100 * found[f'C{name}'] / seconds:8.1f}%", flush=True)


if __name__ == "__main__":
    main()
