"""The acoustic model of examples/ctc as a torch module, with the weights of model.onnx. Needs torch and onnx."""

from __future__ import annotations

import pathlib
from typing import Any

import onnx.numpy_helper
import torch
import torch.nn.functional as F

HEADS, BLOCKS, INTERMEDIATE = 4, 8, 4  # after block 4 the phones that it would recognise are fed back


def read_weights(path: pathlib.Path) -> dict[str, torch.Tensor]:
    """The weights by their names in training. The exporter kept the names of all but the matrices; each of those is followed by an addition of its layer's bias."""
    graph = onnx.load(str(path)).graph
    stored = {one.name: torch.tensor(onnx.numpy_helper.to_array(one)).float() for one in graph.initializer}
    stored.update({node.output[0]: stored[node.input[0]] for node in graph.node if node.op_type == "Cast" and node.input[0] in stored})  # saved as float16
    weights = {name.removeprefix("net."): value for name, value in stored.items() if name.startswith("net.")}
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul" and node.input[1] in stored}
    for node in graph.node:
        if node.op_type == "Add" and node.input[1] in products:
            weights[node.input[0].removeprefix("net.").replace(".bias", ".weight")] = stored[products[node.input[1]]].T.contiguous()
    return weights


def within(lengths: torch.Tensor, frames: int) -> torch.Tensor:
    """bool [utterances, frames]: which frames are not padding."""
    return torch.arange(frames, device=lengths.device) < lengths[:, None]


class Conformer(torch.nn.Module):
    """Log-mel features [utterances, frames, 80] and lengths (on the same device) give log-probabilities of phones [utterances, ceil(frames / 4), 40], float32."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        named = {name.replace(".", "_"): torch.nn.Parameter(value, requires_grad=False) for name, value in read_weights(path).items()}
        self.weights = torch.nn.ParameterDict(named)

    def _of(self, layer: str) -> tuple[torch.Tensor, torch.Tensor]:
        return self.weights[layer + "_weight"], self.weights[layer + "_bias"]

    def _linear(self, layer: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, *self._of(layer))

    def _norm(self, layer: str, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], *self._of(layer))

    def _feed_forward(self, layer: str, x: torch.Tensor) -> torch.Tensor:
        return x + 0.5 * self._linear(layer + "_4", F.silu(self._linear(layer + "_1", self._norm(layer + "_0", x))))

    def _attention(self, block: str, x: torch.Tensor, valid: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        count, frames, size = x.shape
        parts = self._linear(block + "_qkv", self._norm(block + "_na", x)).reshape(count, frames, 3, HEADS, size // HEADS).transpose(1, 3)
        query, key, value = parts.unbind(2)
        scores = rotate(query, rotation) @ rotate(key, rotation).transpose(2, 3) * (size // HEADS) ** -0.5
        heard = scores.masked_fill(~valid[:, None, None], -1e4).softmax(-1) @ value
        return x + self._linear(block + "_o", heard.transpose(1, 2).reshape(count, frames, size))

    def _convolution(self, block: str, x: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        gated = F.glu(self._linear(block + "_p1", self._norm(block + "_nc", x)), -1) * valid[..., None]
        spread = F.conv1d(gated.transpose(1, 2), *self._of(block + "_dw"), padding="same", groups=x.shape[2]).transpose(1, 2)
        return x + self._linear(block + "_p2", F.silu(self._norm(block + "_nd", spread)))

    def _subsample(self, x: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Two convolutions with stride 2 and one between: a frame of 40 ms for four of 10 ms."""
        x = F.conv2d(x[:, None], *self._of("front_a1"), stride=2, padding=1).relu()
        half = (lengths + 1) // 2
        valid = within(half, x.shape[2])[:, None, :, None]
        x = F.conv2d(x * valid, *self._of("front_a2"), padding=1).relu() * valid
        x = F.conv2d(x, *self._of("front_b1"), stride=2, padding=1).relu()
        return self._linear("front_out", self._norm("front_n", x.transpose(1, 2).flatten(2))), (half + 1) // 2

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        valid = within(lengths, features.shape[1])[..., None]
        mean = (features * valid).sum(1, keepdim=True) / lengths[:, None, None]
        scale = self.weights["gstd"]
        x, lengths = self._subsample(((features - mean) * valid).to(scale) / scale, lengths)
        valid, rotation = within(lengths, x.shape[1]), rotation_of(x)
        for number in range(BLOCKS):
            block = f"blocks_{number}"
            x = self._attention(block, self._feed_forward(block + "_f1", x), valid, rotation)
            x = self._norm(block + "_nf", self._feed_forward(block + "_f2", self._convolution(block, x, valid)))
            if number + 1 == INTERMEDIATE:
                x = x + self._linear("ib", self._linear("ih", x).softmax(-1))
        return self._linear("heads_phone", x).float().log_softmax(-1)


def rotation_of(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines [frames, 24] of rotary position embeddings (Su et al., RoFormer, 2021)."""
    pairs = x.shape[2] // HEADS // 2
    rates = 10000.0 ** (-torch.arange(pairs, device=x.device) / pairs)
    angles = torch.arange(x.shape[1], device=x.device)[:, None] * rates
    return angles.cos().to(x), angles.sin().to(x)


def rotate(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> Any:
    (cosine, sine), (left, right) = rotation, x.chunk(2, dim=-1)
    return torch.cat((left * cosine - right * sine, left * sine + right * cosine), -1)
