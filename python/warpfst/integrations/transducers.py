"""Predictors and joiners of icefall's and NeMo's transducers, written as the .safetensors files that Transducer.open reads. Needs numpy; checkpoints need torch.

Names and shapes are those of the toolkits' state dicts:

    icefall (zipformer, pruned_transducer_stateless*)              NeMo (EncDecRNNTModel, also TDT)
    decoder.embedding.weight [V, P]                                decoder.prediction.embed.weight [V + 1, P]
    decoder.conv.weight [P, P / groups, context]                   decoder.prediction.dec_rnn.lstm.weight_ih_l0 ...
    joiner.encoder_proj, joiner.decoder_proj                       joint.enc, joint.pred
    joiner.output_linear [V, J]                                    joint.joint_net.N [V + 1 + durations, J], the last layer

transformers has other names for Parakeet's (_PARAKEET).
"""

from __future__ import annotations

import json
import os
import pathlib
import struct
import tempfile
from collections.abc import Mapping
from typing import Any

from .._library import write_output
from ..errors import FormatError, UnsupportedError
from . import files

_MOST_VALUES = 1 << 28  # of a matrix that is made from a smaller one: 1 GB


def export_icefall_transducer(model: Any, path: str | os.PathLike[str], *, blank: int = 0, padded: bool = True) -> None:
    """Writes the predictor and the joiner of an icefall transducer with a stateless decoder.

    model   a checkpoint (.pt), a state dict, or a model
    padded  at the start, places before the blank are zeros, as since 2023; False: more blanks
    """
    weights = _Weights(_state(model, "model"))
    embedding = weights.take("decoder.embedding.weight", "decoder.embedding.scale")
    size = embedding.shape[1]
    if "decoder.conv.weight" in weights.state:
        conv = _dense(weights.numpy, weights.take("decoder.conv.weight", "decoder.conv.weight_scale"), size)
    else:
        conv = weights.numpy.eye(size, dtype="float32")  # one token of context
    if conv.shape[1] == size:
        padded = False
    tensors = {
        "pred.emb.weight": weights.numpy.concatenate([embedding, weights.numpy.zeros_like(embedding[:1])]) if padded else embedding,
        "pred.conv.weight": conv,
        **weights.linear("joiner.enc", "joiner.encoder_proj"),
        **weights.linear("joiner.pred", "joiner.decoder_proj"),
        **weights.linear("joiner.out", "joiner.output_linear"),
    }
    if "decoder.conv.bias" in weights.state:
        tensors["pred.conv.bias"] = weights.take("decoder.conv.bias", "decoder.conv.bias_scale")
    if tensors["joiner.out.weight"].shape[0] != embedding.shape[0]:
        raise FormatError(f"{tensors['joiner.out.weight'].shape[0]} outputs of the joiner for {embedding.shape[0]} tokens")
    _write(path, tensors, {"blank": str(blank), "activation": "tanh"})


def export_nemo_transducer(model: Any, path: str | os.PathLike[str], *, durations: list[int] | None = None, activation: str | None = None) -> None:
    """Writes the predictor and the joiner of a NeMo transducer with an LSTM (EncDecRNNTModel and its kin, TDT). The blank is the last token.

    model       an archive (.nemo), a state dict, or a model; also transformers' ParakeetForRNNT and ParakeetForTDT
    durations   of a TDT model; default: as the archive or the model says, else none
    activation  of the joint network, "relu" or "tanh"; default: as the archive or the model says, else "relu"
    """
    state, config = _nemo(model)
    if "encoder_projector.weight" in state:
        state, config = _as_nemo(state, getattr(model, "config", None))
    if durations is None:
        found = _section(config, "model_defaults").get("tdt_durations") or _section(config, "loss", "tdt_kwargs").get("durations") or []
        durations = [int(one) for one in found]
    if activation is None:
        activation = str(_section(config, "joint", "jointnet").get("activation", "relu"))
    if durations != list(range(len(durations))):
        raise UnsupportedError(f"durations {durations}: expected 0, 1, 2, ...")
    if activation not in ("relu", "tanh"):
        raise UnsupportedError(f"activation {activation!r} of the joint network: expected relu or tanh")
    weights = _Weights(state)
    embedding = weights.take("decoder.prediction.embed.weight")
    outputs = [name.removesuffix(".weight") for name in state if name.startswith("joint.joint_net.") and name.endswith(".weight")]
    if len(outputs) != 1:
        raise FormatError(f"the joint network has {len(outputs)} layers with weights, expected 1")
    tensors = {**weights.linear("joiner.enc", "joint.enc"), **weights.linear("joiner.pred", "joint.pred"), **weights.linear("joiner.out", outputs[0])}
    num_tokens = tensors["joiner.out.weight"].shape[0] - len(durations)
    if embedding.shape[0] == num_tokens - 1:  # blank_as_pad: false
        embedding = weights.numpy.concatenate([embedding, weights.numpy.zeros_like(embedding[:1])])
    if embedding.shape[0] != num_tokens:
        raise FormatError(f"an embedding of {embedding.shape[0]} tokens, and a joint network of {num_tokens} tokens and {len(durations)} durations")
    tensors["pred.emb.weight"] = embedding
    prefix = "decoder.prediction.dec_rnn.lstm."
    for name in [name for name in state if name.startswith(prefix)]:
        tensors["pred.lstm." + name.removeprefix(prefix)] = weights.take(name)
    if not any(name.startswith("pred.lstm.weight_hh") for name in tensors):
        raise UnsupportedError(f"no {prefix}weight_hh_l0: only LSTM predictors are supported")
    _write(path, tensors, {"blank": str(num_tokens - 1), "activation": activation})


# Beginnings of the names in transformers' Parakeet, and in NeMo.
_PARAKEET = {
    "encoder_projector.": "joint.enc.",
    "decoder.decoder_projector.": "joint.pred.",
    "decoder.embedding.": "decoder.prediction.embed.",
    "decoder.lstm.": "decoder.prediction.dec_rnn.lstm.",
    "joint.head.": "joint.joint_net.0.",
}


def _as_nemo(state: Mapping[str, Any], config: Any) -> tuple[Mapping[str, Any], Any]:
    """State dict and configuration of a Parakeet of transformers, as NeMo has them."""
    renamed = {theirs + name.removeprefix(ours): value for name, value in state.items() for ours, theirs in _PARAKEET.items() if name.startswith(ours)}
    durations, activation = list(getattr(config, "durations", [])), getattr(config, "hidden_act", "relu")
    return renamed, {"model_defaults": {"tdt_durations": durations}, "joint": {"jointnet": {"activation": activation}}}


def _section(config: Any, *names: str) -> dict[str, Any]:
    for name in names:
        config = config.get(name) if isinstance(config, Mapping) or hasattr(config, "get") else None
    return dict(config) if config is not None and hasattr(config, "keys") else {}


def _state(model: Any, key: str) -> Mapping[str, Any]:
    """The state dict of a checkpoint, where it may be under `key`, or of a model."""
    if isinstance(model, (str, os.PathLike)):
        model = files.require("torch", "a checkpoint").load(os.fspath(model), map_location="cpu", weights_only=True)
    if isinstance(model, Mapping):
        inner = model.get(key)
        return inner if isinstance(inner, Mapping) else model
    if not hasattr(model, "state_dict"):
        raise TypeError(f"{type(model).__name__}: expected a path, a state dict, or a model with state_dict()")
    state: Mapping[str, Any] = model.state_dict()
    return state


def _nemo(model: Any) -> tuple[Mapping[str, Any], Any]:
    """State dict and configuration."""
    if not isinstance(model, (str, os.PathLike)):
        return _state(model, "state_dict"), getattr(model, "cfg", None)
    with tempfile.TemporaryDirectory() as folder, files.open_tar(os.fspath(model)) as found:
        members = {pathlib.PurePosixPath(name).name: member for name, member in found.items()}
        for name in ("model_weights.ckpt", "model_config.yaml"):
            if name not in members:
                raise FormatError(f"{os.fspath(model)}: no file {name} in the archive")
            archive, member = members[name]
            source = archive.extractfile(member)
            assert source is not None
            with source, open(pathlib.Path(folder, name), "wb") as target:
                while block := source.read(1 << 24):
                    target.write(block)
        config = files.parse_yaml(files.decode_utf8(pathlib.Path(folder, "model_config.yaml").read_bytes(), os.fspath(model)), os.fspath(model))
        return _state(pathlib.Path(folder, "model_weights.ckpt"), "state_dict"), config


class _Weights:
    """Arrays of a state dict, as float32."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.numpy = files.require("numpy", "exporting a model")
        self.state = state

    def take(self, name: str, scale: str | None = None) -> Any:
        """`scale`: name of the logarithm of a factor, which older models of icefall have."""
        if name not in self.state:
            raise FormatError(f"no {name} in the model")
        array = self._array(name)
        return array * self.numpy.exp(self._array(scale)) if scale is not None and scale in self.state else array

    def _array(self, name: str) -> Any:
        value = self.state[name]
        if hasattr(value, "detach"):
            if value.numel() * value.element_size() > value.untyped_storage().nbytes():
                raise FormatError(f"{name} has more values than the file stores for it")
            value = value.detach().cpu().float().numpy()
        return self.numpy.asarray(value, dtype="float32")

    def linear(self, ours: str, theirs: str) -> dict[str, Any]:
        parts = {f"{ours}.weight": self.take(f"{theirs}.weight", f"{theirs}.weight_scale")}
        if f"{theirs}.bias" in self.state:
            parts[f"{ours}.bias"] = self.take(f"{theirs}.bias", f"{theirs}.bias_scale")
        return parts


def _dense(numpy: Any, conv: Any, size: int) -> Any:
    """A convolution in groups [P, P / groups, context] as a matrix [P, context * P], the oldest token's columns first."""
    if conv.ndim != 3 or conv.shape[0] != size or size % conv.shape[1] != 0:
        raise FormatError(f"decoder.conv.weight of shape {list(conv.shape)} for an embedding size of {size}")
    rows, width, context = conv.shape
    if rows * context * size > _MOST_VALUES:
        raise FormatError(f"decoder.conv.weight of shape {list(conv.shape)} is larger than any model's")
    matrix = numpy.zeros((rows, context * size), dtype="float32")
    for row in range(rows):
        first = row // width * width
        for place in range(context):
            matrix[row, place * size + first : place * size + first + width] = conv[row, :, place]
    return matrix


def _write(path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: dict[str, str]) -> None:
    header: dict[str, Any] = {"__metadata__": metadata}
    blobs, at = [], 0
    for name, tensor in tensors.items():
        blob = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_output(path, struct.pack("<Q", len(text)), text, *blobs)
