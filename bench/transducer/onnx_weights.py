"""onnx_weights.py - reads the weights of an ONNX file without the package onnx: the protocol buffers' fields that they take.

A file is ModelProto {graph 7}; GraphProto {node 1, initializer 5}; NodeProto {input 1, output 2}; TensorProto {dims 1, data_type 2, float_data 4, name 8, raw_data 9}
(onnx.proto3 of ONNX).
"""
import numpy as np

TYPES = {1: np.float32, 10: np.float16}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(field number, value) of a message: integers, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def dims(values):
    """Numbers one by one, or packed."""
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            yield number


def tensor(message):
    """(name, array), or None for other types than floats."""
    found = {}
    for number, value in fields(message):
        found.setdefault(number, []).append(value)
    dtype = TYPES.get(found.get(2, [0])[0])
    data = bytes(found.get(9, found.get(4, [b""]))[0])
    if dtype is None:
        return None
    return bytes(found[8][0]).decode(), np.frombuffer(data, dtype).reshape(tuple(dims(found.get(1, []))))


class Onnx:
    """weights: name -> array; nodes: (inputs, outputs), in the file's order."""

    def __init__(self, path):
        self.weights, self.nodes = {}, []
        with open(path, "rb") as file:
            graph = next(value for number, value in fields(memoryview(file.read())) if number == 7)
        for number, value in fields(graph):
            if number == 1:
                strings = [(n, bytes(text).decode()) for n, text in fields(value) if n in (1, 2)]
                self.nodes.append(([text for n, text in strings if n == 1], [text for n, text in strings if n == 2]))
            elif number == 5 and (named := tensor(value)) is not None:
                self.weights[named[0]] = named[1]

    def weight(self, name):
        """The weights of this name, or that a cast turns into it; None: there are none."""
        if name in self.weights:
            return self.weights[name].astype(np.float32)
        casts = [inputs[0] for inputs, outputs in self.nodes if name in outputs and len(inputs) == 1]
        return self.weights[casts[0]].astype(np.float32) if casts and casts[0] in self.weights else None

    def layer_before(self, output):
        """(weight [in, out], bias) of the linear layer that an output comes from."""
        found, at = [], output
        while len(found) < 2:
            inputs = next(inputs for inputs, outputs in self.nodes if at in outputs)
            known = {name: self.weight(name) for name in inputs}
            found += [weight for weight in known.values() if weight is not None]
            at = next((name for name, weight in known.items() if weight is None), None)
        bias, weight = found
        return weight, bias
