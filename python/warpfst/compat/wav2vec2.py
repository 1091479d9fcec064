"""transformers' Wav2Vec2ProcessorWithLM with the decoder of this package in place of pyctcdecode's. transformers is imported only to read a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Union

from ..integrations.processor import ProcessorOutput
from .alphabet import Alphabet
from .ignored import warn_ignored
from .pyctcdecode import BeamSearchDecoderCTC, LanguageModel

_EXTRACTORS = ("Wav2Vec2FeatureExtractor", "SeamlessM4TFeatureExtractor")
_PADDING = -100.0  # of logits in a batch
_LM_SETTINGS = ("alpha", "beta", "unk_score_offset", "score_boundary")
_DEFAULTS = {"beam_width": 100, "beam_prune_logp": -10.0, "token_min_logp": -5.0, "hotword_weight": 10.0}
Number = Union[float, None]
Path = Union[str, "os.PathLike[str]"]


class Wav2Vec2ProcessorWithLM:
    """A feature extractor and a tokenizer of transformers, and a decoder of `build_ctcdecoder`. The calls, arguments and results of transformers' class of this name."""

    def __init__(self, feature_extractor: Any, tokenizer: Any, decoder: BeamSearchDecoderCTC) -> None:
        if not isinstance(decoder, BeamSearchDecoderCTC):
            raise TypeError(f"`decoder`: expected a warpfst.compat.BeamSearchDecoderCTC, found {type(decoder).__name__}")
        if type(feature_extractor).__name__ not in _EXTRACTORS:
            raise ValueError(f"`feature_extractor`: expected {' or '.join(_EXTRACTORS)}, found {type(feature_extractor).__name__}")
        missing = self.get_missing_alphabet_tokens(decoder, tokenizer)
        if missing:
            raise ValueError(f"The tokens {missing} are defined in the tokenizer's vocabulary, but not in the decoder's alphabet.")
        self.feature_extractor, self.tokenizer, self.decoder = feature_extractor, tokenizer, decoder

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Path, **kwargs: Any) -> Wav2Vec2ProcessorWithLM:
        """Reads a folder that `save_pretrained` of this class or of transformers' has written. alpha=, beta=, unk_score_offset= and score_boundary= set the language model's weights."""
        from transformers import AutoFeatureExtractor, AutoTokenizer  # type: ignore[import-not-found, unused-ignore]

        weights = {name: kwargs.pop(name) for name in _LM_SETTINGS if kwargs.get(name) is not None}
        encoding = kwargs.pop("unigram_encoding", "utf-8")
        folder = os.fspath(pretrained_model_name_or_path)
        decoder = BeamSearchDecoderCTC.load_from_dir(folder, encoding)
        if weights and decoder._language_model is not None:
            decoder._language_model.reset_params(**weights)
        return cls(AutoFeatureExtractor.from_pretrained(folder, **kwargs), AutoTokenizer.from_pretrained(folder, **kwargs), decoder)

    def save_pretrained(self, save_directory: Path) -> None:
        """Writes the feature extractor, the tokenizer and the decoder to a folder, which is made."""
        os.makedirs(save_directory, exist_ok=True)
        self.feature_extractor.save_pretrained(save_directory)
        self.tokenizer.save_pretrained(save_directory)
        self.decoder.save_to_dir(save_directory)

    @property
    def language_model(self) -> LanguageModel | None:
        return self.decoder._language_model

    @staticmethod
    def get_missing_alphabet_tokens(decoder: BeamSearchDecoderCTC, tokenizer: Any) -> set[str]:
        """The tokens of the tokenizer, as the alphabet writes them, that the alphabet lacks."""
        names = [" " if name == tokenizer.word_delimiter_token else name for name in tokenizer.get_vocab()]
        written = Alphabet.build_alphabet(names).labels[: len(names)]
        return set(written) - set(decoder._alphabet.labels)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Audio to the model's inputs, text to labels, or both."""
        audio, rate, text = kwargs.pop("audio", None), kwargs.pop("sampling_rate", None), kwargs.pop("text", None)
        if args:
            audio, args = args[0], args[1:]
        if audio is None and text is None:
            raise ValueError("You need to specify either an `audio` or `text` input to process.")
        inputs = None if audio is None else self.feature_extractor(audio, *args, sampling_rate=rate, **kwargs)
        labels = None if text is None else self.tokenizer(text, **kwargs)
        return _joined(inputs, labels)

    def pad(self, *args: Any, **kwargs: Any) -> Any:
        """Pads `input_features` with the feature extractor, `labels` with the tokenizer."""
        features, labels = kwargs.pop("input_features", None), kwargs.pop("labels", None)
        if args:
            features, args = args[0], args[1:]
        padded = None if features is None else self.feature_extractor.pad(features, *args, **kwargs)
        return _joined(padded, None if labels is None else self.tokenizer.pad(labels, **kwargs))

    def batch_decode(
        self,
        logits: Any,
        pool: Any = None,
        num_processes: int | None = None,
        beam_width: int | None = None,
        beam_prune_logp: Number = None,
        token_min_logp: Number = None,
        hotwords: Iterable[str] | None = None,
        hotword_weight: Number = None,
        alpha: Number = None,
        beta: Number = None,
        unk_score_offset: Number = None,
        lm_score_boundary: bool | None = None,
        output_word_offsets: bool = False,
        n_best: int = 1,
    ) -> ProcessorOutput:
        """Decodes logits [utterances, frames, tokens], in which frames of -100 are padding. `pool` and `num_processes` have no effect: the library's threads decode."""
        warn_ignored("the library's threads decode", pool=(pool, None), num_processes=(num_processes, None))
        self.decoder.reset_params(alpha, beta, unk_score_offset, lm_score_boundary)
        arrays = [array[(array != _PADDING).all(axis=-1)] for array in logits]
        given = _given(beam_width=beam_width, beam_prune_logp=beam_prune_logp, token_min_logp=token_min_logp, hotword_weight=hotword_weight)
        beams = self.decoder.decode_beams_batch(None, arrays, hotwords=hotwords, **given)
        outputs = [_columns([(beam[0], beam[-2], beam[-1], beam[1]) for beam in found], n_best) for found in beams]
        text, logit_score, lm_score, offsets = ([output[i] for output in outputs] for i in range(4))
        return ProcessorOutput(text, logit_score, lm_score, offsets if output_word_offsets else None)

    def decode(
        self,
        logits: Any,
        beam_width: int | None = None,
        beam_prune_logp: Number = None,
        token_min_logp: Number = None,
        hotwords: Iterable[str] | None = None,
        hotword_weight: Number = None,
        alpha: Number = None,
        beta: Number = None,
        unk_score_offset: Number = None,
        lm_score_boundary: bool | None = None,
        output_word_offsets: bool = False,
        n_best: int = 1,
    ) -> ProcessorOutput:
        """Decodes logits [frames, tokens]."""
        self.decoder.reset_params(alpha, beta, unk_score_offset, lm_score_boundary)
        given = _given(beam_width=beam_width, beam_prune_logp=beam_prune_logp, token_min_logp=token_min_logp, hotword_weight=hotword_weight)
        beams = self.decoder.decode_beams(logits, hotwords=hotwords, **given)
        text, logit_score, lm_score, offsets = _columns([(beam[0], beam[-2], beam[-1], beam[2]) for beam in beams], n_best)
        return ProcessorOutput(text, logit_score, lm_score, offsets if output_word_offsets else None)


def _given(**options: Any) -> dict[str, Any]:
    return {name: _DEFAULTS[name] if value is None else value for name, value in options.items()}


def _joined(inputs: Any, labels: Any) -> Any:
    if inputs is not None and labels is not None:
        inputs["labels"] = labels["input_ids"]
    return labels if inputs is None else inputs


def _columns(beams: Sequence[tuple[str, float, float, Any]], n_best: int) -> tuple[Any, ...]:
    """Texts, scores and word offsets: those of the best beam, or with n_best > 1 lists."""
    rows = [(text, logit, lm, [{"word": word, "start_offset": start, "end_offset": end} for word, (start, end) in words]) for text, logit, lm, words in beams[:n_best]]
    return rows[0] if n_best == 1 else tuple([row[i] for row in rows] for i in range(4))
