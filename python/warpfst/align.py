"""Forced alignment: when the words and tokens of a known text occur in the scores of CTC and hybrid models."""

from __future__ import annotations

import array
import ctypes
import functools
import itertools
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from . import _abi
from ._library import _pending_warnings, call, encode_text, exception_of, lib, report_warnings
from .errors import Error
from .graphs import as_lexicon, read_hmm
from .lexicon import Lexicon
from .options import c_options, check_options, split
from .scores import Batch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import AlignOptions, HmmAlignOptions, LexiconOptions
    from .graphs import Path
    from .lexicon import Hmm, Pronunciations

    class AlignHmmOptions(HmmAlignOptions, LexiconOptions):
        """Options of align_hmm besides its named arguments."""


class AlignedToken(NamedTuple):
    """A token in the frames [start, end). `log_prob` is the sum of its scores there, in nats. If its word was left out, start equals end."""

    column: int
    start: int
    end: int
    log_prob: float

    @property
    def confidence(self) -> float:
        """The geometric mean of the token's probabilities in its frames, in [0, 1]. 0 if it was left out."""
        return math.exp(self.log_prob / (self.end - self.start)) if self.end > self.start else 0.0


def _copy(tokens: Any, count: int) -> bytes:
    return ctypes.string_at(tokens, count * ctypes.sizeof(_abi.wf_aligned_token)) if count else b""


def _tokens(data: bytes) -> list[AlignedToken]:
    return [AlignedToken(*values) for values in struct.iter_unpack("=iiif", data)]


class Alignment:
    """The best path of one utterance. If the utterance failed, `error` is the exception, and the other attributes are empty."""

    def __init__(self, raw: Any, blank: int) -> None:
        self.error: Error | None = None if raw.status == _abi.WF_OK else exception_of(raw.status, raw.message.decode("utf-8", "replace"))
        self.num_frames: int = 0 if self.error else raw.num_frames
        self.log_prob: float = -math.inf if self.error else raw.log_prob  # of the whole path, minus the costs of gaps
        self._tokens = b"" if self.error else _copy(raw.tokens, raw.num_tokens)
        self._garbage = b"" if self.error else _copy(raw.garbage, raw.num_garbage)
        self._blank = blank

    @functools.cached_property
    def tokens(self) -> list[AlignedToken]:
        """The tokens of the target, in its order."""
        return _tokens(self._tokens)

    @functools.cached_property
    def garbage(self) -> list[AlignedToken]:
        """The spans of garbage, with column -1, if option `garbage` allows it."""
        return _tokens(self._garbage)

    @property
    def path(self) -> list[int]:
        """The column of each frame: a token's, the blank's, or -1 for garbage."""
        path = [self._blank] * self.num_frames
        for token in itertools.chain(self.tokens, self.garbage):
            path[token.start : token.end] = [token.column] * (token.end - token.start)
        return path

    def __repr__(self) -> str:
        return f"<Alignment: {self.error}>" if self.error else f"<Alignment: {len(self.tokens)} tokens in {self.num_frames} frames>"


def _set_tokens(one: Any, target: Any, words: Any) -> None:
    """Sets the tokens and words of an input, which keeps their memory alive."""
    columns = array.array("i", target.tolist() if hasattr(target, "tolist") else target)
    one.num_tokens = len(columns)
    one.tokens = (ctypes.c_int32 * len(columns)).from_buffer(columns) if columns else None
    if words is not None:
        ends = list(itertools.accumulate(words))
        one.word_ends, one.num_words = (ctypes.c_size_t * len(ends))(*ends), len(ends)


def _warn(results: Sequence[Any]) -> None:
    """One warning for all texts that lack much of their speech: the first, and how many more."""
    told = [raw.message.decode("utf-8", "replace") for raw in results if raw.status == _abi.WF_OK and raw.message]
    if told:
        _pending_warnings.append(told[0] + (f" (and {len(told) - 1} more)" if len(told) > 1 else ""))
        report_warnings()


def align(
    log_probs: Any,
    targets: Sequence[Any],
    lengths: Any = None,
    *,
    words: Sequence[Sequence[int]] | None = None,
    keys: Sequence[str] | None = None,
    **options: Unpack[AlignOptions],
) -> list[Alignment]:
    """Finds the best CTC path of given tokens in each utterance: exact, without a beam, on all threads.

    log_probs  log-posteriors, natural logarithm: [frames, columns], a list of these, or [utterance, frame, column] with `lengths`
    targets    the tokens of each utterance as columns of the scores, without blanks: a list of lists; for a single matrix also one list
    lengths    number of frames of each utterance; None: all frames
    words      for options `garbage` and `skip_words`: the number of tokens of each word of each utterance; None: each token is a word
    keys       names of the utterances for messages
    An utterance that fails (fewer frames than its tokens need, NaN, ...) has an `error` in its result. The others are not affected. If a text has no place for much of
    the speech, its words may be far from where they were said: one InputWarning names the first such utterance.
    """
    batch = Batch(log_probs, lengths)
    if len(batch) == 1 and len(targets) > 0 and not hasattr(targets[0], "__len__"):
        targets = [targets]
    for name, given in ("targets", targets), ("words", words), ("keys", keys):
        if given is not None and len(given) != len(batch):
            raise ValueError(f"{len(given)} {name} for {len(batch)} utterances")
    inputs = (_abi.wf_align_input * len(batch))()
    for i, one in enumerate(inputs):
        one.scores = batch.scores[i]
        one.key = None if keys is None else encode_text(keys[i])
        _set_tokens(one, targets[i], None if words is None else words[i])
    results = (ctypes.POINTER(_abi.wf_alignment) * len(batch))()
    try:
        call("wf_align", inputs, len(batch), c_options("align", options), results)
        _warn([pointer.contents for pointer in results])
        return [Alignment(pointer.contents, options.get("blank", 0)) for pointer in results]
    finally:
        for pointer in results:
            lib.wf_alignment_free(pointer)


class AlignedWord(NamedTuple):
    """A word as the text writes it, in the frames [start, end). If it was left out, or is nothing that is said, start equals end."""

    text: str
    start: int
    end: int
    confidence: float  # the geometric mean of the probabilities of its tokens, in [0, 1]


class WordAlignment(NamedTuple):
    """The words of one text. If the utterance failed, `error` is the exception, and there are no words."""

    words: list[AlignedWord]
    num_frames: int
    error: Error | None = None


class TokenTable(Protocol):
    """What align_words needs of tokens, as integrations.ModelTokens has it."""

    names: Sequence[str]
    blank: int
    separator: str | None

    def spell(self, word: str) -> Sequence[str] | None: ...


_STAR_COST = 0.1  # nats a frame, so that the words beside it keep their frames; as in `warpfst align`


def spoken_words(written: str) -> list[str]:
    """The default of align_words: letters, digits and apostrophes, without punctuation around them."""
    return [word for part in re.findall(r"[\w'\u2019]+", written) if (word := part.replace("\u2019", "'").strip("'_"))]


class _Target:
    """A text as columns. Column `num_columns` and the next stand for any speech: words that cannot be spelled."""

    def __init__(self, text: str, tokens: TokenTable, columns: dict[str, int], normalize: Callable[[str], Sequence[str]]) -> None:
        self.written = text.split()
        self.columns: list[int] = []
        self.sizes: list[int] = []  # tokens of each written word, the separator before it included
        separator = [] if tokens.separator is None else [columns[tokens.separator]]
        for written in self.written:
            before = len(self.columns)
            for word in normalize(written):
                spelled = tokens.spell(word)
                star = len(tokens.names) + (self.columns[-1:] == [len(tokens.names)])
                self.columns += (separator if self.columns else []) + ([star] if spelled is None else [columns[name] for name in spelled])
            self.sizes.append(len(self.columns) - before)

    def has_star(self, num_columns: int) -> bool:
        return max(self.columns, default=0) >= num_columns

    def words(self, alignment: Alignment) -> list[AlignedWord]:
        found, at, last = [], 0, 0
        for text, size in zip(self.written, self.sizes):
            tokens = [token for token in alignment.tokens[at : at + size] if token.end > token.start]
            at += size
            if not tokens:
                found.append(AlignedWord(text, last, last, 0.0))
                continue
            frames = sum(token.end - token.start for token in tokens)
            confidence = min(1.0, math.exp(sum(token.log_prob for token in tokens) / frames))
            last = tokens[-1].end
            found.append(AlignedWord(text, tokens[0].start, last, confidence))
        return found


def _with_stars(scores: Any, tokens: TokenTable) -> Any:
    """The scores with two more columns: the best token of the frame that is speech."""
    import numpy as np

    rows = np.asarray(scores.detach().cpu() if hasattr(scores, "detach") else scores, dtype=np.float32)
    silent = [tokens.blank] + ([] if tokens.separator is None else [list(tokens.names).index(tokens.separator)])
    best = np.delete(rows, silent, axis=1).max(axis=1, keepdims=True) - np.float32(_STAR_COST)
    return np.concatenate([rows, best, best], axis=1)


def align_words(
    log_probs: Sequence[Any],
    texts: Sequence[str],
    tokens: TokenTable,
    *,
    normalize: Callable[[str], Sequence[str]] = spoken_words,
    keys: Sequence[str] | None = None,
    **options: Unpack[AlignOptions],
) -> list[WordAlignment]:
    """When the words of any recogniser's texts were said, by the scores of a CTC model: `align`, with the words as the texts write them, capitals, numbers and punctuation.

    log_probs  log-posteriors of each utterance, natural logarithm: a list of [frames, columns]
    texts      the text of each utterance
    tokens     those of the model: `integrations.huggingface_tokens(...)` or another loader, or an integrations.ModelTokens
    normalize  a written word -> the words that are said (default: without punctuation). What the tokens cannot spell, such as 42, gets the time of the speech in its place
    options    those of `align`, but blank: garbage= for speech that a text lacks, skip_words= for words that were not said
    An utterance that fails has an `error` in its result. The others are not affected.
    """
    if isinstance(texts, str) or len(texts) != len(log_probs):
        raise ValueError(f"texts: expected a list of {len(log_probs)}")
    if "blank" in options:
        raise TypeError("blank: it is that of the tokens")
    given: Any = {**options, "blank": tokens.blank}
    columns = {name: column for column, name in enumerate(tokens.names)}
    targets = [_Target(text, tokens, columns, normalize) for text in texts]
    scores = [_with_stars(one, tokens) if target.has_star(len(columns)) else one for one, target in zip(log_probs, targets)]
    words = [[size for size in target.sizes if size] for target in targets]
    aligned = align(scores, [target.columns for target in targets], words=words, keys=keys, **given)
    return [WordAlignment([], 0, one.error) if one.error else WordAlignment(target.words(one), one.num_frames) for one, target in zip(aligned, targets)]


class AlignedUnit(NamedTuple):
    """A word or phone in the frames [start, end)."""

    text: str
    start: int
    end: int


class HmmAlignment(NamedTuple):
    """The best path of one utterance. If the utterance failed, `error` is the exception, and the other attributes are empty."""

    words: list[AlignedUnit]  # those of the text
    phones: list[AlignedUnit]  # of all frames, silence included
    num_frames: int
    acoustic_cost: float  # minus the sum of the path's scores
    graph_cost: float  # -ln P of transitions, silences and pronunciations
    error: Error | None = None


def _units(raw: Any, count: int) -> list[AlignedUnit]:
    return [AlignedUnit(unit.text.decode("utf-8"), unit.start_frame, unit.end_frame) for unit in raw[:count]]


def _hmm_alignment(raw: Any) -> HmmAlignment:
    if raw.status != _abi.WF_OK:
        return HmmAlignment([], [], 0, math.inf, math.inf, exception_of(raw.status, raw.message.decode("utf-8", "replace")))
    return HmmAlignment(_units(raw.words, raw.num_words), _units(raw.phones, raw.num_phones), raw.num_frames, raw.acoustic_cost, raw.graph_cost)


def align_hmm(
    scores: Any,
    texts: Sequence[str],
    am: Path | Hmm,
    lexicon: Path | Lexicon | Pronunciations,
    lengths: Any = None,
    *,
    tree: Path | None = None,
    lang: Path | None = None,
    keys: Sequence[str] | None = None,
    **options: Unpack[AlignHmmOptions],
) -> list[HmmAlignment]:
    """Finds the best path of a hybrid model through each text, with all pronunciations of the lexicon and optional silence, on all threads.

    scores   log-likelihoods, natural logarithm, without a factor: [frames, columns], a list of these, or [utterance, frame, column] with `lengths`
    texts    the words of each utterance, separated by spaces
    am       model folder of CMU Sphinx or Kaldi, final.mdl, or Hmm. `tree` and `lang` are paths of Kaldi's tree and lang folder
    lexicon  path, Lexicon over the model's phones (Hmm.phones), or mapping word -> phones
    lengths  number of frames of each utterance; None: all frames
    keys     names of the utterances for messages
    options  beam=, silence_prob=, num_threads=, ...: tables "hmm_align" and "lexicon"
    An utterance that fails (a word that the lexicon lacks, too few frames, ...) has an `error` in its result. The others are not affected.
    """
    check_options(options, "hmm_align", "lexicon")
    hmm = read_hmm(am, tree, lang)
    align_options, lexicon_options = split(options, "hmm_align", "lexicon")
    defaults = {} if isinstance(lexicon, Lexicon) else {"blank": "", "variants": True}  # a Lexicon got its options when it was made
    table = as_lexicon(lexicon, hmm.phones, {**defaults, **lexicon_options})
    batch = Batch(scores, lengths)
    for name, given in ("texts", texts), ("keys", keys):
        if given is not None and (isinstance(given, str) or len(given) != len(batch)):
            raise ValueError(f"{name}: expected a list of {len(batch)}")
    inputs = (_abi.wf_hmm_align_input * len(batch))()
    for i, one in enumerate(inputs):
        words = [encode_text(word) for word in texts[i].split()]
        one.scores = batch.scores[i]
        one.key = None if keys is None else encode_text(keys[i])
        one.words, one.num_words = (ctypes.c_char_p * len(words))(*words), len(words)
    results = (ctypes.POINTER(_abi.wf_hmm_alignment) * len(batch))()
    try:
        call("wf_align_hmm", hmm.address, table.address, inputs, len(batch), c_options("hmm_align", align_options), results)
        return [_hmm_alignment(pointer.contents) for pointer in results]
    finally:
        for pointer in results:
            lib.wf_hmm_alignment_free(pointer)
