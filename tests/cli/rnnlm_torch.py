#!/usr/bin/env python3
"""Writes random LSTM and GRU language models as safetensors files in the layout of PyTorch's state_dict, with the scores that they must give. The scores come
from the equations of torch.nn.LSTM, GRU, Embedding and Linear in numpy, in float64.
    rnnlm_torch.py make              writes NAME.safetensors, NAME.words, NAME.text, NAME.expected for each kind, number type and variant; prints the names
    rnnlm_torch.py compare NAME...   compares NAME.out with NAME.expected"""
import json
import struct
import sys

import numpy as np


def half(x, dtype):
    """Rounds x to dtype. Returns the rounded values and their bytes."""
    if dtype == "BF16":
        bits = (x.astype("<f4").view("<u4") >> 16).astype("<u2")
        return (bits.astype("<u4") << 16).view("<f4").astype(np.float64), bits.tobytes()
    stored = x.astype({"F32": "<f4", "F16": "<f2"}[dtype])
    return stored.astype(np.float64), stored.tobytes()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, tensors, layer, x, h, c):
    zero = np.zeros(tensors[f"rnn.weight_hh_l{layer}"].shape[0])
    a = tensors[f"rnn.weight_ih_l{layer}"] @ x + tensors.get(f"rnn.bias_ih_l{layer}", zero)
    b = tensors[f"rnn.weight_hh_l{layer}"] @ h + tensors.get(f"rnn.bias_hh_l{layer}", zero)
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    (ar, az, an), (br, bz, bn) = np.split(a, 3), np.split(b, 3)
    r, z = sigmoid(ar + br), sigmoid(az + bz)
    return (1 - z) * np.tanh(an + r * bn) + z * h, c


def make(name, seed, kind, layers, dtype, variant):
    """variant: full; tied (no output.weight, no biases); example (names of PyTorch's word language model example)"""
    random = np.random.default_rng(seed)
    gates = 4 if kind == "lstm" else 3
    words, hidden = int(random.integers(5, 600)), int(random.integers(3, 40))
    embed = hidden if variant == "tied" else int(random.integers(3, 40))
    shapes = {"embedding.weight": (words, embed)}
    for l in range(layers):
        shapes[f"rnn.weight_ih_l{l}"] = (gates * hidden, embed if l == 0 else hidden)
        shapes[f"rnn.weight_hh_l{l}"] = (gates * hidden, hidden)
        if variant != "tied":
            shapes[f"rnn.bias_ih_l{l}"] = shapes[f"rnn.bias_hh_l{l}"] = (gates * hidden,)
    if variant != "tied":
        shapes["output.weight"], shapes["output.bias"] = (words, hidden), (words,)
    rename = {"embedding": "encoder", "output": "decoder"} if variant == "example" else {}
    tensors, header, data = {}, {"__metadata__": {"made by": "a \\ test \" of ours"}}, b""
    for key, shape in shapes.items():
        tensors[key], raw = half(random.uniform(-1, 1, shape), dtype)
        first, _, rest = key.partition(".")
        header[f"{rename.get(first, first)}.{rest}"] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(header).encode()
    with open(name + ".safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)
    names = ["<unk>", "</s>"] + (["<s>"] if variant != "tied" else []) + [f"w{i}" for i in range(words)]
    names = names[:words]
    with open(name + ".words", "w") as file:
        file.writelines(f"{word} {i}\n" for i, word in enumerate(names))
    bos = names.index("<s>") if "<s>" in names else 1
    output, bias = tensors.get("output.weight", tensors["embedding.weight"]), tensors.get("output.bias", 0)
    with open(name + ".text", "w") as text, open(name + ".expected", "w") as expected:
        for _ in range(15):
            sentence = [int(w) for w in random.integers(0, words, random.integers(1, 12))]
            spoken = [names[w] if w else "never-seen" for w in sentence]
            print(*spoken, file=text)
            h, c, total = [np.zeros(hidden)] * layers, [np.zeros(hidden)] * layers, 0
            for last, word in zip([bos] + sentence, sentence + [1]):
                x = tensors["embedding.weight"][last]
                for l in range(layers):
                    h[l], c[l] = step(kind, tensors, l, x, h[l], c[l])
                    x = h[l]
                scores = output @ x + bias
                log10p = (scores[word] - scores.max() - np.log(np.exp(scores - scores.max()).sum())) / np.log(10)
                total += log10p
                print("w", names[word], f"{log10p:.9g}", file=expected)
            print(f"{total:.6f}", file=expected)


def make_all():
    seed = 0
    for kind in ("lstm", "gru"):
        for dtype in ("F32", "F16", "BF16"):
            for variant in ("full", "tied", "example"):
                seed += 1
                make(f"torch{seed}", seed, kind, seed % 3 + 1, dtype, variant)
                print(f"torch{seed}")


def compare(name):
    a, b, worst = open(name + ".expected").read().split("\n"), open(name + ".out").read().split("\n"), 0
    assert len(a) == len(b), (name, len(a), len(b))
    for x, y in zip(a, b):
        x, y = x.split(), y.split()
        assert x[:-1] == y[:-1], (name, x, y)
        if len(x) == 3:
            worst = max(worst, abs(float(x[2]) - float(y[2])))
    assert worst < 1e-5, (name, worst)
    print(f"{name}: {len(a)} lines, largest difference {worst:.2g}")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make_all()
    else:
        for model in sys.argv[2:]:
            compare(model)
