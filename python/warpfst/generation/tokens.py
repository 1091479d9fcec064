"""What a bias must know of a generator's tokens: their texts, which of them end a text, and how its tokenizer spells."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _abi
from .._library import Handle, create, lib
from ..errors import ArgumentError
from ..joining import CONTINUES, WORD_START

_SPECIAL = re.compile(r"<[^<>\s]+>|\[[^\[\]\s]+\]", re.DOTALL)  # names of added tokens that are no text: <|0.00|>, <pad>, [MASK]
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Han and what is written with it.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


def _byte_letters() -> dict[str, int]:
    """The letters that tokenizers of bytes write in place of bytes: printable ones of Latin-1 stand for themselves, the others for U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{chr(byte): byte for byte in plain}, **{chr(0x100 + place): byte for place, byte in enumerate(others)}}


def is_unspaced(letter: str) -> bool:
    """Whether the letter is of a script without spaces between words."""
    return _UNSPACED.match(letter) is not None


def _goes_on(letter: str) -> bool:
    """Whether a word that ends before this letter would not be a whole word, and one that begins after it."""
    return (letter.isalnum() or letter == "_") and not is_unspaced(letter)


class TokenTexts(Handle):
    """wf_token_texts."""

    _free = lib.wf_token_texts_free

    @classmethod
    def of(cls, texts: Sequence[bytes], kinds: Sequence[int]) -> TokenTexts:
        offsets, total = (ctypes.c_uint64 * (len(texts) + 1))(), 0
        for place, text in enumerate(texts, 1):
            total += len(text)
            offsets[place] = total
        return cls(create("wf_token_texts_create", b"".join(texts), offsets, (ctypes.c_uint8 * len(kinds))(*kinds), len(texts)))


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The tokens of a generator.

    names   name of each token; "": the number is not used
    texts   what each token writes, as bytes, with a space where a word begins
    silent  tokens that are no part of a text
    ends    tokens that end a text
    encode  the tokenizer: text -> tokens, without special tokens
    """

    names: Sequence[str]
    texts: Sequence[bytes]
    silent: frozenset[int]
    ends: frozenset[int]
    encode: Callable[[str], list[int]]

    def kinds(self) -> list[int]:
        """Bits WF_TOKEN_..."""
        return [_abi.WF_TOKEN_ENDS if token in self.ends else _abi.WF_TOKEN_SILENT if token in self.silent else _kind(text) for token, text in enumerate(self.texts)]

    def text_of(self, tokens: Iterable[int]) -> str:
        return b"".join(self.texts[token] for token in tokens).decode("utf-8", "replace")


def _kind(text: bytes) -> int:
    letters = text.decode("utf-8", "ignore")
    starts = text[:1] < b"\x80" or text[:1] >= b"\xc0"  # else it goes on with a letter, of any script
    continues = bool(letters) and starts and _goes_on(letters[0])
    breaks = bool(letters) and text.endswith(letters[-1].encode()) and not _goes_on(letters[-1])
    return continues * _abi.WF_TOKEN_CONTINUES | breaks * _abi.WF_TOKEN_BREAKS


def _texts_of(names: Sequence[str]) -> list[bytes]:
    """What tokens write, by the marks in their names."""
    if any(name.startswith(CONTINUES) and name != CONTINUES for name in names) and not any(WORD_START in name for name in names):
        return [(name[len(CONTINUES) :] if name.startswith(CONTINUES) else " " + name).encode() for name in names]
    if any(WORD_START in name for name in names):
        bytes_of = {name: bytes.fromhex(match[1]) for name in names if (match := _BYTE.fullmatch(name))}
        return [bytes_of.get(name, name.replace(WORD_START, " ").encode()) for name in names]
    letters = _byte_letters()
    if any("\u0120" in name for name in names):  # a space, as bytes are written
        return [bytes(map(letters.__getitem__, name)) if all(letter in letters for letter in name) else name.encode() for name in names]
    return [name.encode() for name in names]


def _read_sentencepiece(model: Any) -> tuple[list[str], set[int], set[int], Callable[[str], list[int]]]:
    count = range(model.get_piece_size())
    silent = {token for token in count if model.is_control(token) or model.is_unknown(token) or model.is_unused(token)}
    ends = {model.eos_id()} - {-1}
    return [model.id_to_piece(token) for token in count], silent, ends, lambda text: list(model.encode(text))


def _read_huggingface(tokenizer: Any) -> tuple[list[str], set[int], set[int], Callable[[str], list[int]]]:
    """A tokenizer of transformers, or of tokenizers."""
    vocabulary = tokenizer.get_vocab()
    names = [""] * (max(vocabulary.values()) + 1)
    for name, token in vocabulary.items():
        names[token] = name
    added = tokenizer.get_added_tokens_decoder() if hasattr(tokenizer, "get_added_tokens_decoder") else getattr(tokenizer, "added_tokens_decoder", {})
    silent = {token for token, one in added.items() if one.special or _SPECIAL.fullmatch(one.content)}
    silent.update(getattr(tokenizer, "all_special_ids", ()))
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        return names, silent, set(), lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
    known = (getattr(tokenizer, name, None) for name in ("eos_token_id", "sep_token_id"))
    ends = [int(token) for token in known if token is not None]
    return names, silent, set(ends[:1]), lambda text: list(tokenizer.encode(text, add_special_tokens=False))


def read_vocabulary(tokenizer: Any, ends: Iterable[int] | None = None) -> Vocabulary:
    """The tokens of a tokenizer of transformers, tokenizers or sentencepiece. `ends`: the tokens that end a text (default: the tokenizer's)."""
    if isinstance(tokenizer, Vocabulary):
        return tokenizer if ends is None else dataclasses.replace(tokenizer, ends=frozenset(ends))
    if hasattr(tokenizer, "get_piece_size"):
        names, silent, usual, encode = _read_sentencepiece(tokenizer)
    elif hasattr(tokenizer, "get_vocab") and hasattr(tokenizer, "encode"):
        names, silent, usual, encode = _read_huggingface(tokenizer)
    else:
        raise TypeError(f"tokenizer: expected one of transformers, tokenizers or sentencepiece, found {type(tokenizer).__name__}")
    chosen = frozenset(usual if ends is None else map(int, ends))
    bad = next((token for token in chosen if not 0 <= token < len(names)), None)
    if bad is not None:
        raise ArgumentError(f"ends: token {bad}, but the tokenizer has {len(names)}")
    silent.update(token for token, name in enumerate(names) if name == "")
    ordinary = ["" if token in silent else name for token, name in enumerate(names)]
    return Vocabulary(tuple(names), tuple(_texts_of(ordinary)), frozenset(silent - chosen), chosen, encode)
