"""Biasing: phrases, language models and grammars for a batch of hypotheses of a generator."""

from __future__ import annotations

import collections
import ctypes
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union, overload

import numpy as np

from .. import _abi
from .._library import call, check, create, lib, sized
from ..errors import ArgumentError
from ..fst.container import Fst
from ..lm import LM
from ..scorers import Boosts, Scorer, phrases_of
from ..symbols import Symbols
from .gpu import STATE, Bias, GpuHypotheses
from .grammar import deterministic, token_grammar
from .phrases import phrase_scorer
from .tokens import TokenTexts, Vocabulary, read_vocabulary

_KEPT_LISTS = 256
PER_LETTER = 0.3
Path = Union[str, "os.PathLike[str]"]


def _opened(lm: LM | Path) -> LM:
    return check(LM.open(lm) if isinstance(lm, (str, os.PathLike)) else lm, LM, "lm")


def _texts_for_words(vocabulary: Vocabulary, words: Iterable[str]) -> list[bytes]:
    """The tokens' texts as a model of these words writes them: its case, and spaces in place of punctuation that is in none of its words."""
    known = [word for word in words if not word.startswith("<")]
    letters = set().union(*known)
    fold = str.lower if not any(letter.isupper() for letter in letters) else str.upper if not any(letter.islower() for letter in letters) else str
    texts = []
    for text in vocabulary.texts:
        if text.isascii() or _is_whole(text):
            written = fold(text.decode())
            texts.append("".join(letter if letter.isalnum() or letter in letters else " " for letter in written).encode())
        else:
            texts.append(text)  # a part of a letter
    return texts


def _is_whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class Biasing:
    """What a model that writes tokens one after another should prefer: phrases, language models, a grammar. Immutable; any number of threads and batches may use it.

    tokenizer      of transformers, tokenizers or sentencepiece
    phrases        {phrase: boost in nats}; None for a boost, or a list of phrases: by length. Each is spelled in every way that the tokenizer
                   may write it. It counts as a whole word; a part that is not completed is refunded
    lm             an n-gram model of words, or its path; words are compared in the model's case, without punctuation
    token_lm       an n-gram model of tokens, by their names, or its path
    lm_scale       factor of the models' costs
    grammar        an fst of words (Fst.from_jsgf, from_phrases, ...): only its texts can be written. The text ends where it ends
    token_grammar  instead, an fst whose labels are a token + 1
    ends           tokens that end the text (default: the tokenizer's)
    cases          whether phrases are also spelled in lower and upper case and with capitals
    per_letter     boost in nats of each letter of a phrase without a boost (boost_by_length); with much more, models repeat a phrase for its boost
    """

    def __init__(
        self,
        tokenizer: Any,
        phrases: Boosts | None = None,
        *,
        lm: LM | Path | None = None,
        token_lm: LM | Path | None = None,
        lm_scale: float = 0.3,
        grammar: Fst | None = None,
        token_grammar: Fst | None = None,
        ends: Iterable[int] | None = None,
        cases: bool = True,
        per_letter: float = PER_LETTER,
    ) -> None:
        self.vocabulary = read_vocabulary(tokenizer, ends)
        self.phrases: Mapping[str, float | None] = dict(phrases_of(phrases or {}))
        self._cases, self._per_letter = cases, per_letter
        self._texts = TokenTexts.of(self.vocabulary.texts, self.vocabulary.kinds())
        self._lists: collections.OrderedDict[tuple[Any, ...], Bias] = collections.OrderedDict()
        self._lock = threading.Lock()
        if grammar is not None and token_grammar is not None:
            raise TypeError("give either grammar or token_grammar, not both")
        if (grammar or token_grammar) is not None and not self.vocabulary.ends:
            raise ArgumentError("a grammar needs tokens that end the text: ends=")
        self._scorer = self._scorer_of(self.phrases) if self.phrases else None
        if token_lm is not None:
            model = Scorer.from_lm(_opened(token_lm), self._table(), lm_scale=lm_scale)
            self._scorer = model if self._scorer is None else self._scorer + model
        parts = self._parts(self._scorer)
        keep: list[Any] = []
        if lm is not None:
            words = _opened(lm)
            keep += [words, TokenTexts.of(_texts_for_words(self.vocabulary, (text for text, _ in words.words)), self.vocabulary.kinds())]
            parts.lm, parts.lm_texts, parts.lm_scale = keep[0].address, keep[1].address, lm_scale
        if grammar is not None or token_grammar is not None:
            keep.append(self._grammar(grammar, token_grammar))
            parts.grammar = keep[-1].address
        self._bias = Bias(create("wf_bias_create", ctypes.byref(parts)))

    def _grammar(self, words: Fst | None, tokens: Fst | None) -> Fst:
        return token_grammar(check(words, Fst, "grammar"), self._texts) if words is not None else deterministic(check(tokens, Fst, "token_grammar"))

    def _table(self) -> Symbols:
        """Names of tokens and their labels. Those that no table can have are left out."""
        named = {name: token + 1 for token, name in enumerate(self.vocabulary.names) if name and not any(letter.isspace() or letter == "\0" for letter in name)}
        return Symbols(named)

    def _scorer_of(self, phrases: Mapping[str, float | None]) -> Scorer:
        return phrase_scorer(self.vocabulary, phrases, self._cases, self._per_letter)

    def _parts(self, scorer: Scorer | None) -> Any:
        parts = sized(_abi.wf_bias_parts)
        parts.tokens, parts.scorer = self._texts.address, scorer and scorer.address
        return parts

    def _of_list(self, phrases: Boosts | None) -> Bias:
        """The bias with the phrases of a request besides the others. Lists that were used last are kept."""
        listed = phrases_of(phrases or {})
        if not listed:
            return self._bias
        key = tuple(listed.items())
        with self._lock:
            kept = self._lists.pop(key, None)
            if kept is None:
                own = self._scorer_of(listed)
                scorer = own if self._scorer is None else own + self._scorer
                parts = self._parts(scorer)
                parts.base = self._bias.address
                kept = Bias(create("wf_bias_create", ctypes.byref(parts)), self._bias)
            self._lists[key] = kept
            if len(self._lists) > _KEPT_LISTS:
                self._lists.popitem(last=False)
        return kept

    @overload
    def begin(self, batch: int | Sequence[Boosts | None] = 1, device: None = None) -> Hypotheses: ...

    @overload
    def begin(self, batch: int | Sequence[Boosts | None] = 1, *, device: str) -> GpuHypotheses: ...

    def begin(self, batch: int | Sequence[Boosts | None] = 1, device: str | None = None) -> Hypotheses | GpuHypotheses:
        """Hypotheses without tokens: so many, or one for each list of phrases, which are added to those of all requests. `device`: "cuda:N", where the logits are."""
        biases = [self._bias] * batch if isinstance(batch, int) else [self._of_list(phrases) for phrases in batch]
        return Hypotheses(biases) if device is None else GpuHypotheses(biases, device)

    def processor(self, phrases: Sequence[Boosts | None] | None = None) -> Any:
        """A logits processor for `generate` of transformers (`logits_processor=[biasing.processor()]`), for one call after another. `phrases`: a list for each
        request of the batch.
        """
        from .huggingface import BiasingProcessor

        return BiasingProcessor(self, phrases)


class Hypotheses:
    """The states of a batch of hypotheses. Not for several threads at once."""

    def __init__(self, biases: Sequence[Bias]) -> None:
        self._biases = list(biases)
        self._states = np.zeros(len(self._biases), STATE)
        for i, bias in enumerate(self._biases):
            start = lib.wf_bias_start(bias.address)
            self._states[i] = (start.context, start.history, start.word, start.grammar, start.ended)
        self._addresses = self._pointers()

    def _pointers(self) -> Any:
        return (ctypes.c_void_p * len(self._biases))(*(bias.address for bias in self._biases))

    def __len__(self) -> int:
        return len(self._biases)

    @property
    def ended(self) -> list[bool]:
        """Whether each text has ended."""
        return [bool(one) for one in self._states["ended"]]

    def advance(self, tokens: Any) -> Any:
        """Appends a token to each hypothesis. Returns their costs in nats, float32: the negative of what was added to their logits."""
        given = np.ascontiguousarray(tokens.cpu() if hasattr(tokens, "cpu") else tokens, dtype=np.int32)
        if given.shape != (len(self),):
            raise ValueError(f"tokens of shape {given.shape}, expected ({len(self)},)")
        costs = np.empty(len(self), np.float32)
        states = self._states.ctypes.data_as(ctypes.POINTER(_abi.wf_bias_state))
        call("wf_bias_advance", self._addresses, states, given.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)), len(self), costs.ctypes.data_as(ctypes.POINTER(ctypes.c_float)))
        return costs

    def reorder(self, places: Any) -> None:
        """Hypothesis i goes on from what was hypothesis places[i]. There may be more or fewer than before."""
        chosen = np.asarray(places.cpu() if hasattr(places, "cpu") else places, dtype=np.int64)
        if chosen.ndim != 1 or (chosen.size and not (0 <= chosen.min() and chosen.max() < len(self))):
            raise ValueError(f"places: expected numbers from 0 to {len(self) - 1}")
        self._states = np.ascontiguousarray(self._states[chosen])
        self._biases = [self._biases[place] for place in chosen]
        self._addresses = self._pointers()

    def scores(self, logits: Any, num_threads: int = 1) -> Any:
        """Adds what the phrases, models and the grammar say to logits or log-probabilities [hypotheses, tokens]: a numpy array or a tensor.

        Those of float32 in this machine's memory are changed in place and returned; others are copied. num_threads 0: one per processor.
        """
        if hasattr(logits, "detach"):
            return self._tensor_scores(logits, num_threads)
        rows = np.ascontiguousarray(logits, dtype=np.float32)
        self._add(rows.shape, rows.ctypes.data, num_threads)
        return rows

    def _tensor_scores(self, logits: Any, num_threads: int) -> Any:
        rows = logits.detach().float().cpu().contiguous()
        self._add(tuple(rows.shape), rows.data_ptr(), num_threads)
        return rows.to(device=logits.device, dtype=logits.dtype)

    def _add(self, shape: tuple[int, ...], address: int, num_threads: int) -> None:
        if len(shape) != 2 or shape[0] != len(self):
            raise ValueError(f"logits of shape {shape}, expected {len(self)} rows")
        states = self._states.ctypes.data_as(ctypes.POINTER(_abi.wf_bias_state))
        rows = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
        call("wf_bias_add", self._addresses, states, len(self), rows, shape[1], shape[1], num_threads)
