"""NeMo: .nemo archives and model objects with a CTC decoder."""

from __future__ import annotations

import lzma
import os
import tarfile
import zlib
from typing import Any

from ..decoder import Decoder
from ..errors import FileError, FormatError, UnsupportedError
from ..joining import CONTINUES, WORD_START
from . import files
from .tokens import AnyModel, ModelTokens, Path

_MAX_BYTES = 100 << 20  # of a configuration or tokenizer within an archive


def _content(archive: tarfile.TarFile, name: str, source: str) -> bytes:
    """The content of a member, which may be named NAME or ./NAME."""
    member = next((one for one in archive.getmembers() if one.isfile() and one.name in (name, f"./{name}")), None)
    if member is None:
        raise FormatError(f"{source}: no file {name} in the archive")
    if member.size > _MAX_BYTES:
        raise FormatError(f"{source}: {name} has {member.size} bytes")
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _section(config: Any, *names: str) -> dict[str, Any]:
    for name in names:
        config = config.get(name) if isinstance(config, dict) else None
    return config if isinstance(config, dict) else {}


def _frame_shift(config: dict[str, Any]) -> float | None:
    """Seconds of a frame of features times the encoder's subsampling."""
    stride, factor = _section(config, "preprocessor").get("window_stride"), _section(config, "encoder").get("subsampling_factor")
    return stride * factor if isinstance(stride, (int, float)) and isinstance(factor, int) else None


def _tokens(vocabulary: Any, source: str, processor: Any, spelling: Any, frame_shift: float | None) -> ModelTokens:
    """The blank follows the vocabulary. Without a tokenizer, tokens are characters; the space is between words."""
    if processor is not None:
        vocabulary = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    if not isinstance(vocabulary, list) or not vocabulary or not all(isinstance(name, str) for name in vocabulary):
        raise FormatError(f"{source}: decoder.vocabulary: expected a list of texts")
    if any(name.startswith(CONTINUES) for name in vocabulary) and not any(name.startswith(WORD_START) for name in vocabulary):
        raise UnsupportedError(f"{source}: a WordPiece tokenizer; expected sentencepiece or characters")
    separator = " " if " " in vocabulary else None
    return ModelTokens([*vocabulary, "<blank>"], len(vocabulary), source, separator, spelling=spelling, frame_shift=frame_shift)


def _from_archive(path: str) -> ModelTokens:
    if not os.path.exists(path):
        raise FileError(f"{path}: no such file")
    try:
        with tarfile.open(path) as archive:
            name = "model_config.yaml"
            config = files.parse_yaml(files.decode_utf8(_content(archive, name, path), f"{path}: {name}"), f"{path}: {name}")
            kept = str(_section(config, "tokenizer").get("model_path") or "").removeprefix("nemo:")
            content = _content(archive, kept, path) if kept else None
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as why:
        raise FormatError(f"{path}: not a .nemo archive: {why}") from why
    processor = None if content is None else files.open_sentencepiece(content, f"{path}: {kept}")
    spelling = None if processor is None else files.spelling_of(processor)
    decoder = _section(config, "aux_ctc", "decoder") or _section(config, "decoder")  # aux_ctc: of hybrid models
    return _tokens(decoder.get("vocabulary"), path, processor, spelling, _frame_shift(config))


def nemo_tokens(model: Path | Any) -> ModelTokens:
    """Tokens of a NeMo model with a CTC decoder, also of the CTC part of a hybrid model: a .nemo archive, or a model object."""
    if isinstance(model, (str, os.PathLike)):
        return _from_archive(os.fspath(model))
    decoder: Any = getattr(model, "ctc_decoder", None) or getattr(model, "decoder", None)
    if not hasattr(decoder, "vocabulary"):
        raise TypeError(f"{type(model).__name__}: expected a .nemo archive or a model with decoder.vocabulary")
    tokenizer = getattr(model, "tokenizer", None)
    return _tokens(list(decoder.vocabulary), type(model).__name__, None, tokenizer and tokenizer.text_to_tokens, None)


def from_nemo(model: Path | Any, lm: AnyModel | None = None, **options: Any) -> Decoder:
    """A decoder for a NeMo model. `model`: `nemo_tokens`; `lm` and options: `ModelTokens.decoder`."""
    return nemo_tokens(model).decoder(lm, **options)
