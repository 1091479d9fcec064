"""Models of HuggingFace, NeMo, icefall, and of `warpfst transcribe`, behind one interface: tokens, and scores of samples. CTC models and transducers."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

import warpfst as wf
from warpfst import integrations
from warpfst.integrations.files import read_token_table

_TRANSDUCERS = ("parakeet_rnnt", "parakeet_tdt")  # of transformers


class AcousticModel:
    """A model. `tokens`: a warpfst.integrations.ModelTokens; `sample_rate`: of the audio that it takes; `transducer`: the file of a transducer's predictor and joiner."""

    tokens: integrations.ModelTokens
    sample_rate: int
    transducer: pathlib.Path | None = None

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Of each piece, float32 [samples]: log-probabilities, float32 [frames, tokens]; of a transducer outputs of its encoder, float32 [frames, size]."""
        raise NotImplementedError

    def _export(self, export: Any, model: Any) -> None:
        """Writes predictor and joiner to a file that lives as long as this object."""
        self._folder = tempfile.TemporaryDirectory()
        self.transducer = pathlib.Path(self._folder.name, "transducer.safetensors")
        export(model, self.transducer)


def _torch(what: str) -> Any:
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"{what} needs torch ({error}): pip install torch") from error
    return torch


def _rows(matrix: Any, frames: Sequence[int]) -> list[np.ndarray]:
    return [row[:count].copy() for row, count in zip(matrix.float().cpu().numpy(), frames)]


class HuggingFaceModel(AcousticModel):
    """A model of transformers: a name on the Hub, or a folder. `language`: of a model with several, such as MMS."""

    def __init__(self, name: str, device: str, half: bool, language: str | None = None) -> None:
        self._torch = _torch(name)
        try:
            import transformers
        except ImportError as error:
            raise SystemExit(f"{name} needs transformers ({error}): pip install transformers") from error
        chosen = {} if language is None else {"target_lang": language}
        try:
            config = transformers.AutoConfig.from_pretrained(name)
            kind = getattr(transformers, config.architectures[0]) if config.model_type in _TRANSDUCERS else transformers.AutoModelForCTC
            self._features = transformers.AutoFeatureExtractor.from_pretrained(name)
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **chosen)
            model = kind.from_pretrained(name, **chosen, ignore_mismatched_sizes=language is not None)  # each language has tokens of its own
        except (OSError, ValueError) as error:  # not on the Hub, no CTC model
            raise SystemExit(f"{name}: {error}") from error
        self._device, self._dtype = device, self._torch.float16 if half else self._torch.float32
        self.sample_rate = self._features.sampling_rate
        tokens, size = integrations.huggingface_tokens(tokenizer), model.config.vocab_size
        if size < len(tokens.names):  # the tokenizer may have <s> and </s> that the model has no columns for
            tokens = dataclasses.replace(tokens, names=tokens.names[:size])
        if config.model_type in _TRANSDUCERS:
            blank = config.blank_token_id
            tokens = dataclasses.replace(tokens, names=[*tokens.names[:blank], *(["<blank>"] if len(tokens.names) <= blank else tokens.names[blank:])], blank=blank)
            self._export(integrations.export_nemo_transducer, model)
        self.tokens, self._model = tokens, model.to(device, self._dtype).eval()

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        inputs = self._features(list(pieces), sampling_rate=self.sample_rate, padding=True, return_tensors="pt")
        inputs = {name: value.to(self._device, self._dtype) if value.is_floating_point() else value.to(self._device) for name, value in inputs.items()}
        with self._torch.no_grad():
            output = self._model(**inputs).logits.float().log_softmax(-1) if self.transducer is None else self._model.encoder(**inputs).last_hidden_state
        return _rows(output, self._frames([len(piece) for piece in pieces], inputs, output.shape[1]))

    def _frames(self, samples: list[int], inputs: dict[str, Any], most: int) -> list[int]:
        """The number of frames of each piece: by the model's own rule if it has one, else in proportion."""
        rules = [getattr(part, name, None) for name in ("_get_feat_extract_output_lengths", "_get_subsampling_output_length") for part in (self._model, getattr(self._model, "encoder", None))]
        lengths = self._torch.tensor(samples) if "input_values" in inputs else inputs["attention_mask"].sum(-1).cpu() if "attention_mask" in inputs else None
        for rule in rules:
            if rule is not None and lengths is not None:
                return [min(int(count), most) for count in rule(lengths)]
        return [math.ceil(count * most / max(samples)) for count in samples]


class NemoModel(AcousticModel):
    """A model of NeMo: a .nemo archive, or a name on the Hub or in NVIDIA's catalogue. Of a hybrid model the CTC decoder is taken."""

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
        if self._ctc is None and hasattr(self._model, "joint"):
            self._export(integrations.export_nemo_transducer, self._model)

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        torch = self._torch
        lengths = torch.tensor([len(piece) for piece in pieces])
        signal = torch.nn.utils.rnn.pad_sequence([torch.from_numpy(piece) for piece in pieces], batch_first=True)
        with torch.no_grad(), torch.autocast(torch.device(self._device).type, dtype=torch.float16, enabled=self._half):
            output, frames = self._model.forward(input_signal=signal.to(self._device), input_signal_length=lengths.to(self._device))[:2]
            output = output.transpose(1, 2) if self.transducer is not None else output if self._ctc is None else self._ctc(encoder_output=output)
        return _rows(output, [int(count) for count in frames])


class IcefallModel(AcousticModel):
    """A transducer of icefall with a stateless decoder, as it is released: a folder, or a name on the Hub, with exp/jit_script.pt and data/lang_*/tokens.txt."""

    _FILES = ("exp/jit_script.pt", "data/lang_*/tokens.txt", "data/lang_*/bpe.model")

    def __init__(self, name: str, device: str) -> None:
        self._torch = _torch(name)
        folder = pathlib.Path(name)
        if not folder.is_dir():
            import huggingface_hub

            folder = pathlib.Path(huggingface_hub.snapshot_download(name, allow_patterns=list(self._FILES)))
        languages = sorted(folder.glob("data/lang_*/tokens.txt"))
        if not (folder / "exp/jit_script.pt").exists() or len(languages) != 1:
            raise SystemExit(f"{name}: expected {' and one '.join(self._FILES[:2])}")
        self._device, self.sample_rate = device, 16000
        self._model = self._torch.jit.load(str(folder / "exp/jit_script.pt"), map_location=device).eval()
        self.tokens = integrations.icefall_tokens(languages[0].parent)
        self._export(integrations.export_icefall_transducer, self._model)

    def _features(self, samples: np.ndarray) -> np.ndarray:
        """As icefall's recipes compute them: 80 bins up to 7,600 Hz, samples between -1 and 1."""
        import kaldi_native_fbank

        options = kaldi_native_fbank.FbankOptions()
        options.frame_opts.samp_freq, options.frame_opts.dither, options.frame_opts.snip_edges = self.sample_rate, 0.0, False
        options.mel_opts.num_bins, options.mel_opts.high_freq = 80, -400.0
        fbank = kaldi_native_fbank.OnlineFbank(options)
        fbank.accept_waveform(self.sample_rate, samples.tolist())
        fbank.input_finished()
        return np.stack([fbank.get_frame(frame) for frame in range(fbank.num_frames_ready)])

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        torch = self._torch
        features = [torch.from_numpy(self._features(piece)) for piece in pieces]
        padded = torch.nn.utils.rnn.pad_sequence(features, batch_first=True, padding_value=math.log(1e-10)).to(self._device)
        lengths = torch.tensor([len(one) for one in features], device=self._device)
        with torch.no_grad():
            output, frames = self._model.encoder(features=padded, feature_lengths=lengths)
        return _rows(output, [int(count) for count in frames])


class FolderModel(AcousticModel):
    """A model folder of `warpfst transcribe` (docs/how-to/transcribe.md) with an ONNX model, such as examples/ctc."""

    def __init__(self, folder: pathlib.Path, device: str, num_threads: int) -> None:
        from warpfst.transcribe.config import read_config
        from warpfst.transcribe.models import open_model

        config = read_config(folder / "config.json")
        self._model = open_model(folder, device, num_threads)
        self.sample_rate = self._model.sample_rate
        self.transducer = getattr(self._model, "transducer", None)
        names = read_token_table(config.tokens)
        self.tokens = integrations.ModelTokens(names, int(config.decoder.get("blank", 0)), str(config.tokens))

    def scores(self, pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
        log_probs, lengths = self._model.scores(pieces)
        return [np.asarray(row[:count]) for row, count in zip(log_probs, lengths)]


def open_acoustic(name: str, toolkit: str, device: str, half: bool, num_threads: int, language: str | None = None) -> AcousticModel:
    """`toolkit`: huggingface, nemo, icefall, folder, or auto: .nemo archives are NeMo's, folders with exp/jit_script.pt icefall's, folders with a config.json of
    `warpfst transcribe` are that, all others HuggingFace's."""
    folder = pathlib.Path(name)
    if toolkit == "auto":
        config = folder / "config.json"
        own = config.exists() and "acoustic_model" in config.read_text(encoding="utf-8")
        toolkit = "nemo" if name.endswith(".nemo") else "icefall" if (folder / "exp/jit_script.pt").exists() else "folder" if own else "huggingface"
    if toolkit == "folder":
        try:
            return FolderModel(folder, device, num_threads)
        except (OSError, ValueError, wf.Error) as error:
            raise SystemExit(f"{name}: {error}") from error
    if toolkit == "icefall":
        return IcefallModel(name, device)
    return NemoModel(name, device, half) if toolkit == "nemo" else HuggingFaceModel(name, device, half, language)
