"""Parts of decoding graphs: lexicons, HMMs of acoustic models, CTC topologies."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._library import Handle, as_dict, call, check_mapping, create, decode_text, encode_path, encode_text, lib, sized, take_numbers
from .fst.container import Fst
from .options import c_options
from .symbols import Symbols, SymbolsLike, as_symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import LexiconFstOptions, LexiconOptions, TopologyOptions

Pronunciations = Mapping[str, "str | Sequence[str] | Sequence[Sequence[str]]"]


class Pronunciation(NamedTuple):
    word: str
    prob: float
    labels: tuple[int, ...]


class Lexicon(Handle):
    """Words and their pronunciations or spellings in tokens. Immutable."""

    _free = lib.wf_lexicon_free

    @classmethod
    def read(cls, path: str | os.PathLike[str], tokens: SymbolsLike, **options: Unpack[LexiconOptions]) -> Lexicon:
        """Reads Kaldi's lexicon.txt, lexiconp.txt or lexiconp_silprob.txt, or a dictionary of the Montreal Forced Aligner. With variants=True, word(2) is another pronunciation of word, as in CMU's dictionaries."""
        table = as_symbols(tokens, "tokens")
        return cls(create("wf_lexicon_read", encode_path(path), table.address, c_options("lexicon", options)))

    @classmethod
    def spell(cls, words: SymbolsLike, tokens: SymbolsLike, **options: Unpack[LexiconOptions]) -> Lexicon:
        """Spells words with the tokens of a character or subword model."""
        table, labels = as_symbols(tokens, "tokens"), as_symbols(words, "words")
        return cls(create("wf_lexicon_spell", labels.address, table.address, c_options("lexicon", options)))

    @classmethod
    def from_dict(cls, pronunciations: Pronunciations, tokens: SymbolsLike, **options: Unpack[LexiconOptions]) -> Lexicon:
        """Makes a lexicon from a mapping word -> tokens: "AH B", ["AH", "B"], or a list of several of these. ["AH", "B AH"] is two
        pronunciations. Words and listed tokens have no white space; else ValueError."""
        lines = []
        for word, value in check_mapping(pronunciations, "pronunciations").items():
            one = isinstance(value, str) or all(isinstance(token, str) and (" " not in token or token.isspace()) for token in value)
            several: Any = [value] if one else value
            for tokens_of in several:
                listed = tokens_of.split() if isinstance(tokens_of, str) else list(tokens_of)
                for what, text in [("a word", word), *(("a token", token) for token in listed)]:
                    if not isinstance(text, str):
                        raise TypeError(f"pronunciations: {what} must be text, found {text!r} in the entry of {word!r}")
                    if text.split() != [text]:
                        raise ValueError(f"pronunciations: {what} must be text without white space, found {text!r} in the entry of {word!r}")
                lines.append(" ".join([word, *listed]) + "\n")
        table, text = as_symbols(tokens, "tokens"), encode_text("".join(lines))
        options.setdefault("lexicon_format", "plain")
        return cls(create("wf_lexicon_read_memory", text, len(text), b"<mapping>", table.address, c_options("lexicon", options)))

    def __len__(self) -> int:
        return int(lib.wf_lexicon_count(self.address))

    def __iter__(self) -> Iterator[Pronunciation]:
        for i in range(len(self)):
            at = lib.wf_lexicon_at(self.address, i)
            yield Pronunciation(decode_text(at.word) or "", at.prob, tuple(at.labels[: at.num_labels]))

    @property
    def num_skipped(self) -> int:
        """Number of lines or words skipped because of unknown tokens."""
        return int(lib.wf_lexicon_skipped(self.address).contents.count)

    def skipped(self) -> list[str]:
        """The first ten skipped entries, as "word (unknown token)"."""
        return [decode_text(name) or "" for name in lib.wf_lexicon_skipped(self.address).contents.names if name]

    def words(self) -> Symbols:
        """The symbol table of the words, like Kaldi's words.txt."""
        return Symbols._adopt(create("wf_lexicon_words", self.address))

    def write(self, path: str | os.PathLike[str]) -> None:
        call("wf_lexicon_write", self.address, encode_path(path))

    def to_fst(self, words: Symbols | None = None, **options: Unpack[LexiconFstOptions]) -> Fst:
        """The lexicon transducer L, from tokens to words."""
        return Fst(create("wf_lexicon_to_fst", self.address, Symbols._address_or_none(words), c_options("lexicon_fst", options), after=(None,)))

    def __repr__(self) -> str:
        return f"<Lexicon: {len(self)} pronunciations>" if self._address else "<Lexicon, closed>"


class Hmm(Handle):
    """The HMMs of a hybrid acoustic model. Building a graph modifies it, so it is not thread-safe."""

    _free = lib.wf_hmm_free

    @classmethod
    def read_sphinx(cls, folder: str | os.PathLike[str]) -> Hmm:
        """Reads a model folder of CMU Sphinx, with mdef and transition_matrices. Score columns are senones."""
        return cls(create("wf_hmm_read_sphinx", encode_path(folder)))

    @classmethod
    def read_kaldi(cls, model: str | os.PathLike[str], tree: str | os.PathLike[str] | None = None, lang: str | os.PathLike[str] | None = None) -> Hmm:
        """Reads Kaldi's final.mdl, tree and lang folder. Score columns are pdfs, labels are transition-ids. Without a tree, no graph can be built."""
        return cls(create("wf_hmm_read_kaldi", encode_path(model), *(None if path is None else encode_path(path) for path in (tree, lang))))

    @property
    def phones(self) -> Symbols:
        """The symbol table of the phones."""
        phones = Symbols._share(lib.wf_hmm_phones(self.address))
        assert phones is not None
        return phones

    def info(self) -> dict[str, Any]:
        info = sized(_abi.wf_hmm_info)
        call("wf_hmm_get_info", self.address, ctypes.byref(info))
        return as_dict(info)

    def columns(self) -> list[int]:
        """Score column of each input label of the model's graphs; entry 0 is -1."""
        out, count = ctypes.c_void_p(), ctypes.c_size_t()
        call("wf_hmm_columns", self.address, ctypes.byref(out), ctypes.byref(count))
        return take_numbers(out.value, "i", count.value).tolist()

    def phone_starts(self) -> list[int]:
        """For each input label of the model's graphs, the phone that it begins; 0: it does not begin a phone. Only for Kaldi models."""
        out, count = ctypes.c_void_p(), ctypes.c_size_t()
        call("wf_hmm_phone_starts", self.address, ctypes.byref(out), ctypes.byref(count))
        return take_numbers(out.value, "i", count.value).tolist()


def token_blank(tokens: SymbolsLike, name: str | None = None) -> int:
    """Column of the blank in a token table: the token `name`, or the first of <blk>, <blank>, <b>, <pad>, [PAD], <ctc> that is in the table."""
    column, table = ctypes.c_int32(), as_symbols(tokens, "tokens")
    call("wf_token_blank", table.address, None if name is None else encode_text(name), ctypes.byref(column))
    return column.value


def token_labels(tokens: SymbolsLike) -> tuple[Symbols, int]:
    """(symbol table of the labels: <eps> is 0, then the tokens; number of tokens)."""
    out, count, table = ctypes.c_void_p(), ctypes.c_int32(), as_symbols(tokens, "tokens")
    call("wf_token_labels", table.address, 0, ctypes.byref(out), ctypes.byref(count))
    assert out.value is not None
    return Symbols._adopt(out.value), count.value


def ctc_topology(num_tokens: int, blank: int = 0, **options: Unpack[TopologyOptions]) -> Fst:
    """A CTC topology T: a transducer from frame labels to token labels. `num_tokens` includes the blank, `blank` is its column of the scores."""
    for name, value in (("num_tokens", num_tokens), ("blank", blank)):
        if not hasattr(value, "__index__"):
            raise TypeError(f"{name}: expected a number, found {type(value).__name__}; of a list of names: ctc_topology(len(names), names.index('<blk>'))")
    return Fst(create("wf_ctc_topology", num_tokens, blank, c_options("topology", options)))
