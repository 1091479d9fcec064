"""NeMo: .nemo archives and model objects with a CTC decoder."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..decoder import Decoder
from ..errors import FileError, FormatError, UnsupportedError
from ..joining import CONTINUES, WORD_START
from . import files
from .tokens import AnyModel, ModelTokens, Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .tokens import LoaderOptions

_MAX_BYTES = 100 << 20  # of a configuration or tokenizer within an archive


def _content(members: Mapping[str, tuple[tarfile.TarFile, tarfile.TarInfo]], name: str, source: str) -> bytes:
    """The content of a member, which may be named NAME or ./NAME."""
    if name not in members:
        raise FormatError(f"{source}: no file {name[:80]} in the archive")
    archive, member = members[name]
    if member.size > _MAX_BYTES:
        raise FormatError(f"{source}: {name} has {member.size} bytes")
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _model_path(section: Mapping[str, Any], source: str) -> str:
    """The tokenizer that a configuration names; "" if it names none."""
    path = section.get("model_path") or ""
    if not isinstance(path, str):
        raise FormatError(f"{source}: model_path: expected a text")
    return path.removeprefix("nemo:")


def _section(config: Any, *names: str) -> Mapping[str, Any]:
    """A part of a configuration: a dict of YAML, or a model's, which is a mapping of omegaconf."""
    for name in names:
        config = config.get(name) if isinstance(config, Mapping) else None
    return config if isinstance(config, Mapping) else {}


def _frame_shift(config: Any) -> float | None:
    """Seconds of a frame of features times the encoder's subsampling."""
    return files.product([_section(config, "preprocessor").get("window_stride"), _section(config, "encoder").get("subsampling_factor")])


def _pieces(processor: Any) -> list[str]:
    return [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]


def _of_language(vocabularies: Mapping[str, list[str]], language: str | None, source: str) -> list[str]:
    """The vocabulary of an aggregate tokenizer: those of its languages in a row. Tokens of other languages are named <LANGUAGE:TOKEN>, and no word has them."""
    if language not in vocabularies:
        raise FormatError(f"{source}: no language {language!r}: give target_lang=, one of {', '.join(vocabularies)}")
    return [name if each == language else f"<{each}:{name}>" for each, names in vocabularies.items() for name in names]


def _tokens(vocabulary: Any, source: str, spelling: Any, frame_shift: float | None) -> ModelTokens:
    """The blank follows the vocabulary. Without a tokenizer, tokens are characters; the space is between words."""
    if not isinstance(vocabulary, list) or not vocabulary or not all(isinstance(name, str) for name in vocabulary):
        raise FormatError(f"{source}: decoder.vocabulary: expected a list of texts")
    if any(name.startswith(CONTINUES) for name in vocabulary) and not any(name.startswith(WORD_START) for name in vocabulary):
        raise UnsupportedError(f"{source}: a WordPiece tokenizer; expected sentencepiece or characters")
    separator = " " if " " in vocabulary else None
    return ModelTokens([*vocabulary, "<blank>"], len(vocabulary), source, separator, spelling=spelling, frame_shift=frame_shift)


def _from_archive(path: str, language: str | None) -> ModelTokens:
    if not os.path.exists(path):
        raise FileError(f"{path}: no such file")
    with files.open_tar(path) as members:
        name = "model_config.yaml"
        config = files.parse_yaml(files.decode_utf8(_content(members, name, path), f"{path}: {name}"), f"{path}: {name}")
        tokenizers = _section(config, "tokenizer", "langs") or {"": _section(config, "tokenizer")}
        kept = {key: _model_path(_section(tokenizers, key), f"{path}: {name}") for key in tokenizers}
        content = {each: _content(members, each, path) for each in dict.fromkeys(kept.values()) if each}
    opened = {each: files.open_sentencepiece(model, f"{path}: {each}") for each, model in content.items()}
    processors = {key: opened[each] for key, each in kept.items() if each}
    if not processors:
        decoder = _section(config, "aux_ctc", "decoder") or _section(config, "decoder")  # aux_ctc: of hybrid models
        return _tokens(decoder.get("vocabulary"), path, None, _frame_shift(config))
    language = "" if "" in processors else language
    vocabulary = _of_language({key: _pieces(each) for key, each in processors.items()}, language, path)
    return _tokens(vocabulary, path, files.spelling_of(processors[str(language)]), _frame_shift(config))


def nemo_tokens(model: Path | Any, target_lang: str | None = None) -> ModelTokens:
    """Tokens of a NeMo model, of a hybrid one those of its CTC part: a .nemo archive, or a model object.

    target_lang  the language of an aggregate tokenizer, which has several; only its tokens are found
    """
    if isinstance(model, (str, os.PathLike)):
        return _from_archive(os.fspath(model), target_lang)
    parts = [getattr(model, name, None) for name in ("ctc_decoder", "decoder", "joint")]  # the last of a transducer
    decoder: Any = next((part for part in parts if hasattr(part, "vocabulary")), None)
    if decoder is None:
        raise TypeError(f"{type(model).__name__}: expected a .nemo archive or a model with decoder.vocabulary or joint.vocabulary")
    tokenizer = getattr(model, "tokenizer", None)
    vocabulary, source = list(decoder.vocabulary), type(model).__name__
    languages = getattr(tokenizer, "tokenizers_dict", None)
    if languages is not None:
        vocabulary = _of_language({key: _pieces(each.tokenizer) for key, each in languages.items()}, target_lang, source)
        tokenizer = languages[target_lang]
    return _tokens(vocabulary, source, tokenizer and tokenizer.text_to_tokens, _frame_shift(getattr(model, "cfg", None)))


def from_nemo(model: Path | Any, lm: AnyModel | None = None, *, target_lang: str | None = None, **options: Unpack[LoaderOptions]) -> Decoder:
    """A decoder for a NeMo model. `model` and `target_lang`: `nemo_tokens`; `lm` and options: `ModelTokens.decoder`."""
    return nemo_tokens(model, target_lang).decoder(lm, **options)
