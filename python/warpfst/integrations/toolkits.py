"""ESPnet, icefall (k2), WeNet, sentencepiece and torchaudio."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..decoder import Decoder
from ..errors import ArgumentError, FormatError
from ..joining import WORD_START
from . import files
from .tokens import AnyModel, ModelTokens, Path, default_separator, joiner_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .tokens import LoaderOptions

_SPACES = ("<space>", "|")
_ESPNET_SUBSAMPLING = {"linear": 1, "conv2d1": 1, "conv2d2": 2, "conv2d": 4, "conv2d6": 6, "conv2d8": 8}  # input_layer of the encoder


def _spelling_of(processor: Any, names: Sequence[str]) -> Any:
    """The tokenizer; of icefall's bbpe, whose pieces are strings of bytes, for words in its alphabet."""
    spelling, encode = files.spelling_of(processor), joiner_of(names).encode
    return lambda word: spelling(encode(word))


def _tokens(names: list[str], source: str, bpe_model: Path | None, **known: Any) -> ModelTokens:
    spelling = None if bpe_model is None else _spelling_of(files.open_sentencepiece(bpe_model, os.fspath(bpe_model)), names)
    separator = default_separator(names, *_SPACES)
    if separator is None and spelling is None and [name for name in names if name.startswith(WORD_START)] == [WORD_START]:
        separator = WORD_START  # begins no other token: it is between words, as in WeNet's models of characters
    return ModelTokens(names, files.blank_column(names, source), source, separator, spelling=spelling, **known)


def _beside(folder: pathlib.Path, pattern: str) -> pathlib.Path | None:
    """The only file of a folder that matches; None if there is none, or if there are several."""
    found = list(folder.glob(pattern))
    return found[0] if len(found) == 1 else None


def _named_by(config: pathlib.Path, name: str) -> pathlib.Path:
    """A file that config.yaml names. ESPnet's names are relative to the folder of the recipe, which is one of those above that of config.yaml."""
    return next((folder / name for folder in config.absolute().parents if (folder / name).exists()), config.parent / name)


def _espnet_frame_shift(config: dict[str, Any]) -> float | None:
    """Seconds of a frame of features times the encoder's subsampling. Settings that config.yaml leaves out have ESPnet's defaults."""
    audio, encoder = config.get("frontend_conf") or {}, config.get("encoder_conf") or {}
    if config.get("frontend") != "default" or not isinstance(audio, dict) or not isinstance(encoder, dict):
        return None
    layer = encoder.get("input_layer", "conv2d")
    factor = _ESPNET_SUBSAMPLING.get(layer) if isinstance(layer, str) else None
    return files.product([audio.get("hop_length", 128), factor], audio.get("fs", 16000))


def espnet_tokens(token_list: Path, bpe_model: Path | None = None) -> ModelTokens:
    """Tokens of an ESPnet model.

    token_list  tokens.txt (one token a line), or config.yaml of the trained model, which lists them (token_list, bpemodel)
    bpe_model   bpe.model (default: the file that config.yaml names, relative to its folder or one above it; or the one beside token_list)
    """
    path = pathlib.Path(token_list)
    if path.suffix not in (".yaml", ".yml"):
        return _tokens(files.read_token_list(path), str(path), bpe_model or _beside(path.parent, "bpe.model"))
    config = files.parse_yaml(files.read_text(path), str(path))
    names = config.get("token_list")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f"{path}: token_list: expected a list of texts")
    return _tokens(names, str(path), bpe_model or (_named_by(path, str(config["bpemodel"])) if config.get("bpemodel") else None), frame_shift=_espnet_frame_shift(config))


def icefall_tokens(lang: Path, bpe_model: Path | None = None) -> ModelTokens:
    """Tokens of an icefall (k2) model: the folder lang_bpe_500 or lang_phone, or its tokens.txt.

    The folder's bpe.model spells words; without one, the words are those of its lexicon.txt. <eps> in column 0 is the blank.
    """
    path = pathlib.Path(lang)
    path = path / "tokens.txt" if path.is_dir() else path
    names = files.read_token_table(path)
    if names[0] == "<eps>":
        names[0] = "<blk>"
    model = bpe_model or _beside(path.parent, "bpe.model")
    return _tokens(names, str(path), model, lexicon=None if model else _beside(path.parent, "lexicon.txt"))


def wenet_tokens(units: Path, bpe_model: Path | None = None) -> ModelTokens:
    """Tokens of a WeNet model: units.txt or its folder. `bpe_model`: the sentencepiece model (default: the folder's only *.model)."""
    path = pathlib.Path(units)
    path = path / "units.txt" if path.is_dir() else path
    return _tokens(files.read_token_table(path), str(path), bpe_model or _beside(path.parent, "*.model"))


def sentencepiece_tokens(model: Any, blank: str | int = "last") -> ModelTokens:
    """Tokens of a sentencepiece model: its path, or a SentencePieceProcessor.

    blank  "last": the column after the pieces; "first": before them; or the column of a piece that is the blank
    """
    source = os.fspath(model) if isinstance(model, (str, os.PathLike)) else type(model).__name__
    processor = files.open_sentencepiece(model, source) if isinstance(model, (str, os.PathLike)) else model
    names = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    if blank == "first":
        names, blank = ["<blank>", *names], 0
    elif blank == "last":
        names, blank = [*names, "<blank>"], len(names)
    elif isinstance(blank, str):
        raise ArgumentError(f'blank: {blank!r} is none of "first", "last", or the column of a piece')
    return ModelTokens(names, int(blank), source, spelling=_spelling_of(processor, names))


def torchaudio_tokens(bundle: Any) -> ModelTokens:
    """Tokens of a bundle of torchaudio.pipelines, or its labels (`bundle.get_labels()`). Column 0 is the blank, "|" is between words."""
    if isinstance(bundle, (str, os.PathLike)):
        raise TypeError("torchaudio: expected a bundle or the list of its labels, found a path or a text")
    names = list(bundle.get_labels() if hasattr(bundle, "get_labels") else bundle)
    if not names:
        raise ArgumentError("torchaudio: no labels")
    return ModelTokens(names, 0, "torchaudio's labels", default_separator(names, *_SPACES), ignored=frozenset("*"))


def from_espnet(token_list: Path, bpe_model: Path | None = None, lm: AnyModel | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for an ESPnet model. Files: `espnet_tokens`; `lm` and options: `ModelTokens.decoder`."""
    return espnet_tokens(token_list, bpe_model).decoder(lm, **options)


def from_icefall(lang: Path, bpe_model: Path | None = None, lm: AnyModel | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for an icefall (k2) model. Files: `icefall_tokens`; `lm` and options: `ModelTokens.decoder`."""
    return icefall_tokens(lang, bpe_model).decoder(lm, **options)


def from_wenet(units: Path, bpe_model: Path | None = None, lm: AnyModel | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for a WeNet model. Files: `wenet_tokens`; `lm` and options: `ModelTokens.decoder`."""
    return wenet_tokens(units, bpe_model).decoder(lm, **options)


def from_sentencepiece(model: Any, blank: str | int = "last", lm: AnyModel | None = None, **options: Any) -> Decoder:
    """A decoder for a model whose columns are the pieces of a sentencepiece model. `model` and `blank`: `sentencepiece_tokens`; others: `ModelTokens.decoder`.

    Scores have a column for the blank besides those of the pieces, or `blank` is the column of a piece. Type checkers do not check the options, because one of them is a
    `blank`, too.
    """
    return sentencepiece_tokens(model, blank).decoder(lm, **options)


def from_torchaudio(bundle: Any, lm: AnyModel | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for a bundle of torchaudio.pipelines or its labels. `lm` and options: `ModelTokens.decoder`."""
    return torchaudio_tokens(bundle).decoder(lm, **options)
