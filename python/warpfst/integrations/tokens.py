"""What a decoder must know of a CTC model's tokens. Every loader fills this structure; graphs and decoders are made from it."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from .._library import _pending_warnings, report_warnings
from ..decoder import Decoder
from ..errors import ArgumentError, FormatError
from ..graphs import Graph, build_ctc_graph
from ..joining import CONTINUES, WORD_START, Joiner
from ..lexicon import Lexicon, Pronunciations
from ..lm import LM
from ..options import split
from ..rnnlm import RnnLM
from ..scorers import AnyLM
from ..symbols import Symbols, first_repeated

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._option_types import CtcGraphOptions, DecoderOptions, LatticeDeterminizeOptions, LatticeResultsOptions

    class TableOptions(DecoderOptions, CtcGraphOptions):
        """Options of the tables "decoder" and "ctc_graph"."""

    class ModelOptions(TableOptions, LatticeResultsOptions, total=False):
        """Options of ModelTokens.decoder."""

        determinize: bool | LatticeDeterminizeOptions

    class LoaderOptions(ModelOptions, total=False):
        """Keywords of from_huggingface and the other loaders, which pass them to ModelTokens.decoder."""

        token_lm: AnyLM | None
        lexicon: AnyLexicon | None
        words: Iterable[str] | None
        graph: Graph | None


Path = Union[str, "os.PathLike[str]"]
AnyModel = Union[LM, RnnLM, Path]
AnyLexicon = Union[Lexicon, Pronunciations, Path]

_LATTICE_RESULTS = ("determinize", "confidences", "nbest", "mbr", "keep_raw", "confidence_scale")  # keywords of Decoder that are in no table
SPECIAL = re.compile(r"(?!(<0x[0-9A-Fa-f]{2}>)+$)(<.+>|\[.+\])")  # names that are no part of a text: <unk>, <sos/eos>, [UNK]; not those of bytes, <0xE7>
_UNSAFE = re.compile(r"|<eps>|#\d+|.*[\s\0\ud800-\udfff].*", re.DOTALL)  # names that token tables reserve or cannot store


@functools.lru_cache(maxsize=8)
def _joiner(names: tuple[str, ...], separator: str | None) -> Joiner:
    return Joiner(Symbols(names), separator)


def _safe_name(name: str, column: int, names: Sequence[str]) -> str:
    """A name that token tables can store: white space by its bytes, so that it stays white space."""
    if not _UNSAFE.fullmatch(name):
        return name
    by_bytes = "".join(f"<0x{byte:02X}>" for byte in name.encode()) if name and name.isspace() else ""
    return by_bytes if by_bytes and by_bytes not in names else f"<column{column}>"


def joiner_of(names: Sequence[str]) -> Joiner:
    """A joiner of the tokens that token tables can store."""
    return Joiner(Symbols({name: column for column, name in enumerate(names) if not _UNSAFE.fullmatch(name)}))


def default_separator(names: Sequence[str], *usual: str) -> str | None:
    """The first of the usual separators that is a token; None if the model marks the beginnings of words, where | is a character like others."""
    marked = any(name.startswith((WORD_START, CONTINUES)) and name not in (WORD_START, CONTINUES) for name in names)
    return None if marked or joiner_of(names).encode(" ") != " " else next((name for name in usual if name in names), None)


def _opened(lm: AnyModel | None) -> LM | RnnLM | None:
    if lm is None or isinstance(lm, (LM, RnnLM)):
        return lm
    if not isinstance(lm, (str, os.PathLike)):
        raise TypeError(f"lm: expected a language model or its path, found {type(lm).__name__}")
    return LM.open(lm)


def _in_graph(model: LM | RnnLM | None) -> bool:
    """Whether the model becomes a part of the graph; the cost of others is added while decoding."""
    return isinstance(model, LM) and not model.info()["mapped"]


@dataclasses.dataclass(frozen=True)
class ModelTokens:
    """The tokens of a CTC model.

    names        the token of each score column. Names that token tables cannot store are replaced: white space by its bytes, such as <0x20>, which still
                 separates words, and others, such as <eps>, by <columnN>
    blank        column of the blank
    source       file or object from which they were read, for messages
    separator    token between words, such as "|"; None: words are not separated, or tokens that begin words start with U+2581
    ignored      tokens that no word is spelled with, besides the blank and names like <unk> and [UNK]
    spelling     the model's tokenizer: word -> tokens. None: words are cut into the longest tokens, from the left
    lexicon      path of the lexicon that belongs to the model, or None
    frame_shift  seconds from one frame of scores to the next; None: the files do not tell
    """

    names: Sequence[str]
    blank: int
    source: str
    separator: str | None = None
    ignored: frozenset[str] = frozenset()
    spelling: Callable[[str], Sequence[str]] | None = None
    lexicon: Path | None = None
    frame_shift: float | None = None

    def __post_init__(self) -> None:
        safe = [_safe_name(name, column, self.names) for column, name in enumerate(self.names)]
        twice = first_repeated(safe)
        if twice is not None:
            raise FormatError(f"{self.source}: the token {safe[twice[0]]!r} is listed twice, in columns {twice[0]} and {twice[1]}")
        if not 0 <= self.blank < len(safe):
            raise ArgumentError(f"{self.source}: blank in column {self.blank} of {len(safe)}")
        if self.separator is not None:
            object.__setattr__(self, "separator", safe[list(self.names).index(self.separator)])
        object.__setattr__(self, "names", tuple(safe))

    @functools.cached_property
    def _spellable(self) -> frozenset[str]:
        return frozenset(name for name in self.names if not SPECIAL.fullmatch(name)) - {self.names[self.blank], self.separator or ""} - self.ignored

    @functools.cached_property
    def _longest(self) -> int:
        return max(map(len, self._spellable), default=0)

    @functools.cached_property
    def _prefix(self) -> str:
        """What begins words: U+2581, or a space in the alphabet of tokens that are strings of bytes. A lone U+2581 beside a separator is a character like others."""
        alone = {WORD_START} if self.separator is not None else set()
        mark = next((mark for mark in (WORD_START, self._encode(" ")) if any(name.startswith(mark) for name in self._spellable - alone)), "")
        return mark if mark.strip() else ""

    def _encode(self, text: str) -> str:
        return _joiner(tuple(self.names), self.separator).encode(text)

    def _longest_tokens(self, text: str) -> list[str]:
        pieces = []
        while text:
            piece = next((text[:size] for size in range(self._longest, 0, -1) if text[:size] in self._spellable), None)
            pieces += [piece] if piece is not None else [f"<0x{byte:02X}>" for byte in text[0].encode()]
            text = text[len(piece or text[0]) :]
        return pieces

    def spell(self, word: str) -> list[str] | None:
        """The tokens of a word; None if the model has no tokens for it.

        A word that has none as it is written is spelled in the other Unicode form (NFC, NFD), then likewise in upper and in lower case.
        """
        cases = (word, word.upper(), word.lower())
        for text in dict.fromkeys(form for case in cases for form in (case, unicodedata.normalize("NFC", case), unicodedata.normalize("NFD", case))):
            pieces = list(self.spelling(text)) if self.spelling else self._longest_tokens(self._prefix + self._encode(text))
            if pieces and all(piece in self._spellable for piece in pieces):
                return pieces
        return None

    def spell_text(self, text: str) -> list[str]:
        """The tokens of a text, with the token between words: a line of the text that a language model over tokens is estimated from. ArgumentError: a word has none."""
        tokens: list[str] = []
        for word in text.split():
            pieces = self.spell(word)
            if pieces is None:
                raise ArgumentError(f"{self.source}: {word!r} cannot be spelled with the tokens")
            tokens += ([self.separator] if tokens and self.separator is not None else []) + pieces
        return tokens

    def text(self, tokens: Iterable[str]) -> str:
        """The text of tokens, without special tokens: for the results of a graph without words, `tokens.text(word.text for word in result.words)`."""
        silent = self.ignored | {self.names[self.blank]}
        return _joiner(tuple(self.names), self.separator).text(name for name in tokens if name not in silent)

    def spell_all(self, words: Iterable[str]) -> Lexicon:
        """Spells words, except those in brackets, such as <unk>. Words without tokens are left out with an InputWarning; ArgumentError if all are."""
        spelled = {word: None if _UNSAFE.fullmatch(word) else self.spell(word) for word in words if not SPECIAL.fullmatch(word)}
        missing = [word for word, tokens in spelled.items() if tokens is None]
        known = {word: tokens for word, tokens in spelled.items() if tokens is not None}
        if missing or not known:
            told = f"{self.source}: {len(missing)} of {len(spelled)} words cannot be spelled with the tokens: {', '.join(map(repr, missing[:5]))}"
            if not known:
                raise ArgumentError(told)
            _pending_warnings.append(told)
            report_warnings()
        return Lexicon.from_dict(known, Symbols(self.names), blank=self.names[self.blank])

    def graph(self, lm: AnyModel | None = None, *, lexicon: AnyLexicon | None = None, words: Iterable[str] | None = None, **options: Unpack[CtcGraphOptions]) -> Graph:
        """A decoding graph.

        lm       n-gram model or its path. A .wlm file or an RnnLM only gives the words; its cost is added while decoding (`Decoder(lm=)`), as `decoder` does
        lexicon  path, Lexicon, or mapping word -> tokens (default: the model's own lexicon, if it has one)
        words    instead of a lexicon: words, which are spelled with the tokens. Without both, the words are those of the language model
        options  of build_ctc_graph: topology=, silence=, ...: table "ctc_graph"

        Without words, the words of the graph are the tokens; `text` makes a text of them.
        """
        table, blank = Symbols(self.names), self.names[self.blank]
        model = _opened(lm)
        if lexicon is not None and words is not None:
            raise TypeError("give either a lexicon or words, not both")
        lexicon = self.lexicon if lexicon is None and words is None else lexicon
        if lexicon is None and words is None and model is None:
            return build_ctc_graph(table, blank=blank, **options)
        if isinstance(lexicon, (str, os.PathLike)):
            lexicon = Lexicon.read(lexicon, table, blank=blank)
        elif lexicon is None:
            lexicon = self.spell_all([words] if isinstance(words, str) else words if words is not None else (word for word, _ in model.words))  # type: ignore[union-attr]
        elif not isinstance(lexicon, Lexicon):
            lexicon = Lexicon.from_dict(lexicon, table, blank=blank)
        if self.separator is not None and "silence" not in options:
            options["silence"] = self.separator
            if not any(self.names.index(self.separator) + 1 in one.labels for one in lexicon):  # else words bring their separators
                options.setdefault("silence_prob", 1)
        if isinstance(model, LM) and _in_graph(model):
            return build_ctc_graph(table, lexicon, model, words=model.words, **options)
        return build_ctc_graph(table, lexicon, **options)

    def decoder(
        self,
        lm: AnyModel | None = None,
        *,
        token_lm: AnyLM | None = None,
        lexicon: AnyLexicon | None = None,
        words: Iterable[str] | None = None,
        graph: Graph | None = None,
        **options: Unpack[ModelOptions],
    ) -> Decoder:
        """A decoder for the model's scores. `lm`, `lexicon` and `words` are those of the method `graph`; or `graph` is what it made with the same `lm`.

        token_lm  instead of these, a language model over the tokens (of texts like `spell_text`), for any words; results have words. Beam 8 and min_active 0 unless given

        Options: tables "decoder" and "ctc_graph", and what Decoder makes of lattices: determinize, confidences, nbest, mbr, keep_raw,
        confidence_scale.
        """
        given: dict[str, Any] = {**options}
        lattice_results = {name: given.pop(name) for name in _LATTICE_RESULTS if name in given}
        decoder_options, graph_options = split(given, "decoder", "ctc_graph")
        if token_lm is not None:
            if lm is not None or lexicon is not None or words is not None or graph is not None:
                raise TypeError("token_lm: no lm, lexicon, words or graph besides it")
            graph = build_ctc_graph(Symbols(self.names), blank=self.names[self.blank], **graph_options)
            defaults = {"blank": self.blank, "beam": 8.0, "min_active": 0}
            return Decoder(graph, lm=token_lm, join=self.separator or True, **{**defaults, **lattice_results, **decoder_options})
        model = _opened(lm)
        if graph is None:
            graph = self.graph(model, lexicon=lexicon, words=words, **graph_options)
        elif lexicon is not None or words is not None or graph_options:
            raise TypeError("the graph is given: lexicon, words and options of graphs have no effect")
        return Decoder(graph, lm=None if _in_graph(model) else model, **{"blank": self.blank, **lattice_results, **decoder_options})
