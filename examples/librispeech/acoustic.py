"""CTC models of HuggingFace, NeMo, and of `warpfst transcribe`, behind one interface: tokens, and scores of samples."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import warpfst as wf
from warpfst import integrations
from warpfst.integrations.files import read_token_table


class AcousticModel:
    """A CTC model. `tokens`: a warpfst.integrations.ModelTokens; `sample_rate`: of the audio that it takes."""

    tokens: integrations.ModelTokens
    sample_rate: int

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Log-probabilities, float32 [frames, tokens], of each piece, float32 [samples]."""
        raise NotImplementedError


def _torch(what: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"{what} needs torch ({error}): pip install torch") from error
    return torch


def _rows(log_probs: Any, frames: Sequence[int]) -> list[np.ndarray]:
    matrix = log_probs.float().cpu().numpy()
    return [row[:count].copy() for row, count in zip(matrix, frames)]


class HuggingFaceModel(AcousticModel):
    """A model of transformers: a name on the Hub, or a folder."""

    def __init__(self, name: str, device: str, half: bool) -> None:
        self._torch = _torch(name)
        try:
            import transformers
        except ImportError as error:
            raise SystemExit(f"{name} needs transformers ({error}): pip install transformers") from error
        try:
            self._features = transformers.AutoFeatureExtractor.from_pretrained(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(name)
            model = transformers.AutoModelForCTC.from_pretrained(name)
        except (OSError, ValueError) as error:  # not on the Hub, no CTC model
            raise SystemExit(f"{name}: {error}") from error
        self._device, self._dtype = device, self._torch.float16 if half else self._torch.float32
        self._model = model.to(device, self._dtype).eval()
        self.sample_rate = self._features.sampling_rate
        self.tokens = integrations.huggingface_tokens(tokenizer)
        if model.config.vocab_size < len(self.tokens.names):  # the tokenizer may have <s> and </s> that the model has no columns for
            self.tokens = dataclasses.replace(self.tokens, names=self.tokens.names[: model.config.vocab_size])

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        inputs = self._features(list(pieces), sampling_rate=self.sample_rate, padding=True, return_tensors="pt")
        inputs = {name: value.to(self._device, self._dtype) if value.is_floating_point() else value.to(self._device) for name, value in inputs.items()}
        with self._torch.no_grad():
            log_probs = self._model(**inputs).logits.float().log_softmax(-1)
        return _rows(log_probs, self._frames([len(piece) for piece in pieces], inputs, log_probs.shape[1]))

    def _frames(self, samples: list[int], inputs: dict[str, Any], most: int) -> list[int]:
        """The number of frames of each piece: by the model's own rule if it has one, else in proportion."""
        rules = [getattr(part, name, None) for name in ("_get_feat_extract_output_lengths", "_get_subsampling_output_length") for part in (self._model, getattr(self._model, "encoder", None))]
        lengths = self._torch.tensor(samples) if "input_values" in inputs else inputs["attention_mask"].sum(-1).cpu() if "attention_mask" in inputs else None
        for rule in rules:
            if rule is not None and lengths is not None:
                return [min(int(count), most) for count in rule(lengths)]
        return [math.ceil(count * most / max(samples)) for count in samples]


class NemoModel(AcousticModel):
    """A model of NeMo with a CTC decoder, also a hybrid one: a .nemo archive, or a name on the Hub or in NVIDIA's catalogue."""

    def __init__(self, name: str, device: str, half: bool) -> None:
        self._torch = _torch(name)
        try:
            import nemo.collections.asr as nemo_asr
        except ImportError as error:
            raise SystemExit(f"{name} needs NeMo ({error}): pip install 'nemo_toolkit[asr]'") from error
        load = nemo_asr.models.ASRModel.restore_from if name.endswith(".nemo") else nemo_asr.models.ASRModel.from_pretrained
        self._device, self._half = device, half
        self._model = load(name, map_location=device).eval()
        self.sample_rate = int(self._model.cfg.sample_rate if "sample_rate" in self._model.cfg else self._model.cfg.preprocessor.sample_rate)
        self._ctc = getattr(self._model, "ctc_decoder", None)  # of a hybrid model, whose first decoder is a transducer
        self.tokens = integrations.nemo_tokens(self._model)

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        torch = self._torch
        lengths = torch.tensor([len(piece) for piece in pieces])
        signal = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(piece) for piece in pieces], batch_first=True)
        with torch.no_grad(), torch.autocast(torch.device(self._device).type, dtype=torch.float16, enabled=self._half):
            output, frames = self._model.forward(input_signal=signal.to(self._device), input_signal_length=lengths.to(self._device))[:2]
            log_probs = output if self._ctc is None else self._ctc(encoder_output=output)
        return _rows(log_probs, [int(count) for count in frames])


class FolderModel(AcousticModel):
    """A model folder of `warpfst transcribe` (docs/how-to/transcribe.md) with an ONNX model, such as examples/ctc."""

    def __init__(self, folder: pathlib.Path, device: str, num_threads: int) -> None:
        from warpfst.transcribe.config import read_config
        from warpfst.transcribe.models import open_model

        config = read_config(folder / "config.json")
        self._model = open_model(folder, device, num_threads)
        self.sample_rate = self._model.sample_rate
        names = read_token_table(config.tokens)
        self.tokens = integrations.ModelTokens(names, int(config.decoder.get("blank", 0)), str(config.tokens))

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        log_probs, lengths = self._model.scores(pieces)
        return [np.asarray(row[:count]) for row, count in zip(log_probs, lengths)]


def open_acoustic(name: str, toolkit: str, device: str, half: bool, num_threads: int) -> AcousticModel:
    """`toolkit`: huggingface, nemo, folder, or auto: .nemo archives are NeMo's, folders with a config.json of `warpfst transcribe` are that, all others HuggingFace's."""
    folder = pathlib.Path(name)
    if toolkit == "auto":
        config = folder / "config.json"
        own = config.exists() and "acoustic_model" in config.read_text(encoding="utf-8")
        toolkit = "nemo" if name.endswith(".nemo") else "folder" if own else "huggingface"
    if toolkit == "folder":
        try:
            return FolderModel(folder, device, num_threads)
        except (OSError, ValueError, wf.Error) as error:
            raise SystemExit(f"{name}: {error}") from error
    return NemoModel(name, device, half) if toolkit == "nemo" else HuggingFaceModel(name, device, half)
