"""HuggingFace transformers: processors, tokenizers, and folders of CTC models."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from ..decoder import Decoder
from ..errors import FileError, FormatError
from . import files
from .tokens import SPECIAL, AnyModel, ModelTokens, Path, default_separator, joiner_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .tokens import LoaderOptions

_DELIMITER = "|"


def _settings(folder: pathlib.Path, *names: str) -> dict[str, Any]:
    """The entries of those of the JSON files that exist; later files win."""
    found: dict[str, Any] = {}
    for name in names:
        if (folder / name).exists():
            found.update(files.read_json(folder / name))
    return found


def _text(value: Any) -> str | None:
    """A special token: a text, or {"content": text}."""
    return value.get("content") if isinstance(value, dict) else value


def _frame_shift(folder: pathlib.Path) -> float | None:
    model = _settings(folder, "config.json")
    audio = _settings(folder, "preprocessor_config.json") or _settings(folder, "processor_config.json").get("feature_extractor") or {}
    encoder = model.get("encoder_config") or {}
    if not isinstance(audio, dict) or not isinstance(encoder, dict):
        return None
    # wav2vec2, HuBERT, WavLM: convolutions over samples. Granite: pairs of frames, then a half in each of some layers
    halved, factor = encoder.get("subsample_layers"), encoder.get("subsampling_factor")
    factors = model.get("conv_stride") or [2 << len(halved) if isinstance(halved, list) and len(halved) < 16 else factor, audio.get("hop_length")]
    return files.product(factors, audio.get("sampling_rate"))


def _language(vocabulary: dict[str, Any], language: str | None, source: str) -> dict[str, Any]:
    """The vocabulary of a language, if there is one for each language, as in MMS."""
    if not vocabulary or not all(isinstance(value, dict) for value in vocabulary.values()):
        return vocabulary
    if not isinstance(language, str) or language not in vocabulary:
        raise FormatError(f"{source}: no language {language!r}: give target_lang=, one of {', '.join(sorted(vocabulary)[:8])}, ... ({len(vocabulary)} languages)")
    chosen: dict[str, Any] = vocabulary[language]
    return chosen


def _blank_of(config: dict[str, Any], pad: str | None, names: list[str], source: str) -> int:
    """The column of pad_token_id, which is the model's blank. Configurations that nobody filled in tell 0; if that is a letter, the padding token is the blank."""
    column, has_name = config.get("pad_token_id"), any(name in names for name in ((pad,) if pad is not None else files.BLANKS))
    if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < len(names) and (SPECIAL.fullmatch(names[column]) or not has_name):
        return column
    return files.blank_column(names, source, pad)


def _from_vocabulary(path: pathlib.Path, language: str | None) -> ModelTokens:
    """Of vocab.json: characters, or other tokens that are joined without marks."""
    folder, source = path.parent, str(path)
    settings = _settings(folder, "special_tokens_map.json", "tokenizer_config.json")
    listed = files.read_json(path)
    vocabulary = _language(listed, language or settings.get("target_lang"), source)
    alone = vocabulary is listed  # else config.json tells of the language that the folder was saved for, which may be another
    vocabulary = {**vocabulary, **_settings(folder, "added_tokens.json")}
    names = files.columns(vocabulary, source, files.read_text(path))
    config = _settings(folder, "config.json") if alone else {}
    size = config.get("vocab_size")
    names = names[:size] if isinstance(size, int) and size > 0 else names  # the tokenizer may have <s> and </s> that the model has no columns for
    separator = default_separator(names, _text(settings.get("word_delimiter_token")) or _DELIMITER)
    blank = _blank_of(config, _text(settings.get("pad_token")), names, source)
    return ModelTokens(names, blank, source, separator, frame_shift=_frame_shift(folder))


def _from_tokenizer_file(path: pathlib.Path) -> ModelTokens:
    """Of tokenizer.json: a tokenizer of the library tokenizers."""
    folder, source = path.parent, str(path)
    tokenizers = files.require("tokenizers", source)
    files.read_json(path)  # names the line of a syntax error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(source)
    except Exception as why:  # the library raises Exception itself
        raise FormatError(f"{source}: {why}") from why
    names = files.columns(tokenizer.get_vocab(), source)
    pad = _text(_settings(folder, "special_tokens_map.json", "tokenizer_config.json").get("pad_token"))
    config = _settings(folder, "config.json")
    default = names.index(pad) if pad in names else len(names)
    column = config["blank_token_id"] if "blank_token_id" in config else config.get("pad_token_id", default)  # transducers have another token for padding
    return _subwords(names, column, source, lambda word: tokenizer.encode(word, add_special_tokens=False).tokens, _frame_shift(folder))


def _subwords(names: list[str], blank: Any, source: str, spelling: Any, frame_shift: float | None = None) -> ModelTokens:
    """The blank is the padding token, which is often the column after the last token."""
    if not isinstance(blank, int):
        raise FormatError(f"{source}: pad_token_id: {blank!r}, expected the column of the blank")
    names = [*names, "<blank>"] if blank == len(names) else names
    begins = "" if joiner_of(names).encode(" ") == " " else " "  # in byte-level BPE the space before a word is a part of its first token
    return ModelTokens(names, blank, source, spelling=lambda word: spelling(begins + word), frame_shift=frame_shift)


def _from_object(model: Any, language: str | None) -> ModelTokens:
    tokenizer = getattr(model, "tokenizer", model)
    source = type(tokenizer).__name__
    if not hasattr(tokenizer, "get_vocab"):
        raise TypeError(f"{type(model).__name__}: expected a folder, a processor or a tokenizer of transformers")
    names = files.columns(_language(tokenizer.get_vocab(), language, source), source)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else len(names)
    delimiter = getattr(tokenizer, "word_delimiter_token", None)
    if delimiter is None:
        return _subwords(names, pad, source, tokenizer.tokenize)
    return ModelTokens(names, pad, source, delimiter if delimiter in names else None)


def huggingface_tokens(model: Any, target_lang: str | None = None) -> ModelTokens:
    """Tokens of a model of transformers: wav2vec2, HuBERT, WavLM, MMS, Granite TurboCTC, Parakeet (CTC; a folder also RNN-T and TDT) and others.

    model        folder with vocab.json or tokenizer.json, one of these files, or a processor or tokenizer object
    target_lang  the language of a vocabulary with several, such as MMS's
    """
    if not isinstance(model, (str, os.PathLike)):
        return _from_object(model, target_lang)
    path = pathlib.Path(model)
    if not path.exists():
        raise FileError(f"{path}: no such file or folder. Download models of the hub first (huggingface_hub.snapshot_download)")
    if path.is_dir():
        merges = (path / "merges.txt").exists()  # then vocab.json alone does not tell how words are spelled
        names = ("tokenizer.json", "vocab.json") if merges else ("vocab.json", "tokenizer.json")
        path = next((path / name for name in names if (path / name).exists()), path)
    if path.is_dir():
        raise FileError(f"{path}: neither vocab.json nor tokenizer.json")
    return _from_tokenizer_file(path) if path.name == "tokenizer.json" else _from_vocabulary(path, target_lang)


def from_huggingface(model: Path | Any, lm: AnyModel | None = None, *, target_lang: str | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for a CTC model of transformers. `model` and `target_lang`: `huggingface_tokens`; `lm` and options: `ModelTokens.decoder`.

    Scores are the model's logits after log_softmax.
    """
    return huggingface_tokens(model, target_lang).decoder(lm, **options)
