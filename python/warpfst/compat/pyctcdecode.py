"""pyctcdecode's interface, implemented with the library's beam search (`beam.py`), whose tokens spell words. Needs numpy."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from .. import _abi
from .._library import encode_text, lib
from ..errors import ArgumentError, FileError
from ..lm import LM
from ..scores import Batch
from . import beam
from .alphabet import Alphabet
from .ignored import warn_ignored

if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]

_SMALLEST_PROBABILITY = 1e-15
_CACHED = 1 << 16  # scores
_ALPHABET_FILE, _LM_FOLDER, _ATTRIBUTES_FILE, _UNIGRAMS_FILE = "alphabet.json", "language_model", "attrs.json", "unigrams.txt"
_LM_SUFFIXES = (".arpa", ".bin", ".binary", ".gz")
_OWN_THREADS = "the batch is decoded by the library's threads"


class LMState(NamedTuple):
    """The words that a language model still depends on, after a text. Immutable."""

    lm: LM
    state: int


class LanguageModel:
    """An n-gram model with the weights of the search. Thread-safe, except `reset_params`.

    kenlm_model       path of an ARPA file, plain or gzipped, or of KenLM's binary trie (not `probing`); a warpfst.LM; or a kenlm.Model, whose file is read again
    unigrams          the known words, of which those that the model lacks are left out; None: all words of the model
    alpha             weight of ln P of the model
    beta              added for each word
    unk_score_offset  added to log10 P of words that are not known
    score_boundary    texts begin with <s> and end with </s>
    """

    def __init__(
        self,
        kenlm_model: Any,
        unigrams: Iterable[str] | None = None,
        alpha: float = 0.5,
        beta: float = 1.5,
        unk_score_offset: float = -10.0,
        score_boundary: bool = True,
    ) -> None:
        self._path = None if isinstance(kenlm_model, LM) else pathlib.Path(os.fsdecode(getattr(kenlm_model, "path", kenlm_model)))
        self.lm = kenlm_model if self._path is None else LM.read(self._path)
        known = {text for text, _ in self.lm.words if text not in ("<s>", "</s>", "<unk>", "<eps>")}
        self.unigrams = sorted(known if unigrams is None else known & set(unigrams))
        self.alpha, self.beta, self.unk_score_offset, self.score_boundary = alpha, beta, unk_score_offset, score_boundary

    @property
    def order(self) -> int:
        """The number of words of the longest n-grams."""
        order = self.lm.info()["order"]
        assert isinstance(order, int)
        return order

    def get_start_state(self) -> LMState:
        """The state after <s>; with score_boundary=False, that of no words."""
        return LMState(self.lm, lib.wf_lm_start(self.lm.address) if self.score_boundary else 0)

    def reset_params(self, alpha: float | None = None, beta: float | None = None, unk_score_offset: float | None = None, score_boundary: bool | None = None) -> None:
        """Changes those that are given. Not while another thread decodes."""
        given = {"alpha": alpha, "beta": beta, "unk_score_offset": unk_score_offset, "score_boundary": score_boundary}
        self.__dict__.update({name: value for name, value in given.items() if value is not None})

    @property
    def serializable_attrs(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "beta": self.beta, "unk_score_offset": self.unk_score_offset, "score_boundary": self.score_boundary}

    def __reduce__(self) -> Any:
        return LanguageModel, (self.lm if self._path is None else self._path, self.unigrams, *self.serializable_attrs.values())

    def save_to_dir(self, filepath: Path) -> None:
        """Writes attrs.json, unigrams.txt and a copy of the model's file. The folder must exist."""
        folder = pathlib.Path(filepath)
        (folder / _ATTRIBUTES_FILE).write_text(json.dumps(self.serializable_attrs), encoding="utf-8")
        (folder / _UNIGRAMS_FILE).write_text("".join(f"{word}\n" for word in self.unigrams), encoding="utf-8")
        if self._path is not None:
            shutil.copy(self._path, folder / self._path.name)
        else:
            self.lm.write_arpa(folder / "lm.arpa")

    @classmethod
    def load_from_dir(cls, filepath: Path, unigram_encoding: str | None = None) -> LanguageModel:
        """Reads a folder that this class or pyctcdecode has written."""
        folder = pathlib.Path(filepath)
        models = [path for path in sorted(folder.iterdir()) if path.name.endswith(_LM_SUFFIXES) and not path.name.startswith(".")]
        if len(models) != 1:
            raise FileError(f"{folder}: {len(models)} files of language models ({', '.join(_LM_SUFFIXES)}), expected one")
        attributes = json.loads((folder / _ATTRIBUTES_FILE).read_text(encoding="utf-8"))
        unigrams = (folder / _UNIGRAMS_FILE).read_text(encoding=unigram_encoding or "utf-8").split() if (folder / _UNIGRAMS_FILE).exists() else []
        return cls(models[0], unigrams or None, **attributes)


def _searcher(alphabet: Alphabet, model: LanguageModel | None) -> beam.Searcher:
    tokens = [_abi.wf_beam_text(encode_text(text), starts, ends) for text, starts, ends in alphabet.tokens()]
    known = beam.texts([] if model is None else model.unigrams)
    return beam.Searcher(
        texts=(_abi.wf_beam_text * len(tokens))(*tokens),
        num_texts=len(tokens),
        blank=alphabet.blank,
        known_words=known,
        num_known_words=len(known),
        lm=None if model is None else model.lm.address,
    )


def _log_softmax(logits: Any) -> Any:
    """Log-probabilities of each row; a few rows at a time, so that they stay in the processor's cache."""
    import numpy as np

    scores, rows = np.empty_like(logits), max(1, _CACHED // logits.shape[1])
    room = np.empty((rows, logits.shape[1]), dtype=np.float32)
    for first in range(0, len(logits), rows):
        some, given = scores[first : first + rows], logits[first : first + rows]
        np.subtract(given, given.max(axis=1, keepdims=True), out=some)
        some -= np.log(np.exp(some, out=room[: len(some)]).sum(axis=1, keepdims=True))
    return scores


class _Text(NamedTuple):
    """One of the texts that were found. `spans`: (first frame, last frame + 1) of each word."""

    words: list[str]
    spans: list[tuple[int, int]]
    lm_state: int
    log_prob: float
    score: float

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def frames(self) -> list[tuple[str, tuple[int, int]]]:
        return list(zip(self.words, self.spans))


def _read_text(one: Any) -> _Text:
    words = one.spelled[: one.num_spelled]
    return _Text([word.text.decode() for word in words], [(word.start_frame, word.end_frame) for word in words], one.lm_state, one.token_score, one.score)


class BeamSearchDecoderCTC:
    """pyctcdecode's decoder: made by `build_ctcdecoder`, or of an `Alphabet` and a `LanguageModel`. Any number of threads may use it."""

    def __init__(self, alphabet: Alphabet, language_model: LanguageModel | None = None) -> None:
        if language_model is not None and not isinstance(language_model, LanguageModel):
            raise TypeError(f"expected a warpfst.compat.LanguageModel, found {type(language_model).__name__}")
        self._alphabet, self._language_model = alphabet, language_model
        self._searcher = _searcher(alphabet, language_model)

    def reset_params(
        self, alpha: float | None = None, beta: float | None = None, unk_score_offset: float | None = None, lm_score_boundary: bool | None = None
    ) -> None:
        """Changes weights of the language model. Not while another thread decodes."""
        if self._language_model is not None:
            self._language_model.reset_params(alpha, beta, unk_score_offset, lm_score_boundary)

    def cleanup(self) -> None:
        """Frees the memory. The decoder cannot be used any more."""
        self._searcher.close()

    def _scores(self, logits: Any) -> Any:
        """Log-probabilities, float32. Takes logits, log-probabilities or probabilities; numpy arrays or tensors."""
        import numpy as np

        scores = np.asarray(logits.detach().cpu() if hasattr(logits, "detach") else logits, dtype=np.float32, order="C")
        if scores.ndim != 2 or scores.shape[1] != len(self._alphabet.labels):
            raise ValueError(f"logits of shape {scores.shape}, expected [frames, {len(self._alphabet.labels)}]")
        if len(scores) == 0:
            return scores
        if scores.min() >= 0 and abs(scores.sum(axis=1, dtype=np.float64) - 1).max() < 1e-3:
            scores = np.log(scores.clip(_SMALLEST_PROBABILITY, 1))
        else:
            scores = _log_softmax(scores)
        lowest = np.float32(np.log(_SMALLEST_PROBABILITY))
        if self._alphabet.other_blanks:  # one column of the search has the probability of them all
            columns = [self._alphabet.blank, *self._alphabet.other_blanks]
            scores[:, columns[0]] = np.logaddexp.reduce(scores[:, columns], axis=1)
            scores[:, columns[1:]] = lowest
        return scores.clip(lowest, 0, out=scores)

    def _options(self, beam_width: int, beam_prune_logp: float, token_min_logp: float, prune_history: bool, hotword_weight: float, nbest: int) -> dict[str, Any]:
        if beam_width < 1:
            raise ArgumentError(f"beam_width is {beam_width}, expected at least 1")
        options = {
            "sum_alignments": True,
            "beam_size": beam_width,
            "beam": -beam_prune_logp,
            "min_token_log_prob": token_min_logp,
            "merge_histories": prune_history,
            "hotword_weight": hotword_weight,
            "nbest": nbest,
        }
        model = self._language_model
        if model is not None:
            options.update(lm_weight=model.alpha, word_score=model.beta, unknown_score=model.unk_score_offset, sentence_ends=model.score_boundary)
        return options

    def _start(self, state: Any) -> int:
        if state is None:
            return -1
        if not isinstance(state, LMState) or self._language_model is None or state.lm is not self._language_model.lm:
            raise ValueError("lm_start_state is not a state of this decoder's language model")
        return state.state

    def _decode(self, logits_list: Iterable[Any], hotwords: Iterable[str] | None, options: dict[str, Any], lm_start_state: Any = None) -> list[list[_Text]]:
        """The texts of each utterance, best first."""
        batch = Batch([self._scores(logits) for logits in logits_list])
        listed = beam.texts(sorted({word for phrase in hotwords or () for word in phrase.split()}))
        results = beam.decode(self._searcher, batch, options, listed, self._start(lm_start_state))
        return [[_read_text(path) for path in one.paths] for one in results]

    def decode(
        self,
        logits: Any,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: LMState | None = None,
    ) -> str:
        """The best text for logits, log-probabilities or probabilities [frames, labels].

        beam_width       prefixes that are kept in each frame
        beam_prune_logp  prefixes whose score is this much lower than the best one's are dropped
        token_min_logp   labels with a lower log-probability are left out of a frame, unless they are its best
        hotwords         words, or phrases whose words are taken one by one; they may be unknown to the language model
        hotword_weight   added for each hotword in the text
        lm_start_state   the state of an earlier beam, after which this text goes on
        """
        options = self._options(beam_width, beam_prune_logp, token_min_logp, True, hotword_weight, 1)
        return self._decode([logits], hotwords, options, lm_start_state)[0][0].text

    def decode_batch(
        self,
        pool: Any,
        logits_list: Iterable[Any],
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
    ) -> list[str]:
        """The best text of each utterance, as from `decode`. `pool` has no effect: the library's threads decode."""
        warn_ignored(_OWN_THREADS, pool=(pool, None))
        options = self._options(beam_width, beam_prune_logp, token_min_logp, True, hotword_weight, 1)
        return [texts[0].text for texts in self._decode(logits_list, hotwords, options)]

    def decode_beams(
        self,
        logits: Any,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        prune_history: bool = False,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: LMState | None = None,
    ) -> list[tuple[str, LMState | None, list[tuple[str, tuple[int, int]]], float, float]]:
        """All texts that the search kept, best first: (text, LM state, [(word, (first frame, last frame + 1))], log-probability of the labels, score).

        Texts are all different. prune_history: keep only the best of prefixes with the same last words. Arguments as for `decode`.
        """
        options = self._options(beam_width, beam_prune_logp, token_min_logp, prune_history, hotword_weight, 0)
        lm = None if self._language_model is None else self._language_model.lm
        found = self._decode([logits], hotwords, options, lm_start_state)[0]
        return [(one.text, None if lm is None else LMState(lm, one.lm_state), one.frames, one.log_prob, one.score) for one in found]

    def decode_beams_batch(
        self,
        pool: Any,
        logits_list: Iterable[Any],
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        prune_history: bool = False,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
    ) -> list[list[tuple[str, list[tuple[str, tuple[int, int]]], float, float]]]:
        """`decode_beams` of each utterance, without LM states. `pool` has no effect: the library's threads decode."""
        warn_ignored(_OWN_THREADS, pool=(pool, None))
        options = self._options(beam_width, beam_prune_logp, token_min_logp, prune_history, hotword_weight, 0)
        return [[(one.text, one.frames, one.log_prob, one.score) for one in texts] for texts in self._decode(logits_list, hotwords, options)]

    def save_to_dir(self, filepath: Path) -> None:
        """Writes alphabet.json and the folder language_model, as pyctcdecode does. `filepath` must be an existing folder."""
        folder = pathlib.Path(filepath)
        (folder / _ALPHABET_FILE).write_text(self._alphabet.dumps(), encoding="utf-8")
        if self._language_model is not None:
            (folder / _LM_FOLDER).mkdir()
            self._language_model.save_to_dir(folder / _LM_FOLDER)

    @classmethod
    def load_from_dir(cls, filepath: Path, unigram_encoding: str | None = None) -> BeamSearchDecoderCTC:
        """Reads a folder that `save_to_dir` or pyctcdecode has written."""
        folder = pathlib.Path(filepath)
        alphabet = Alphabet.loads((folder / _ALPHABET_FILE).read_text(encoding="utf-8"))
        has_lm = (folder / _LM_FOLDER).is_dir()
        return cls(alphabet, LanguageModel.load_from_dir(folder / _LM_FOLDER, unigram_encoding) if has_lm else None)

    def __reduce__(self) -> Any:
        return BeamSearchDecoderCTC, (self._alphabet, self._language_model)


def build_ctcdecoder(
    labels: Sequence[str],
    kenlm_model_path: Path | None = None,
    unigrams: Iterable[str] | None = None,
    alpha: float = 0.5,
    beta: float = 1.5,
    unk_score_offset: float = -10.0,
    lm_score_boundary: bool = True,
) -> BeamSearchDecoderCTC:
    """pyctcdecode's `build_ctcdecoder`. `labels`: `Alphabet.build_alphabet`; the model and its weights: `LanguageModel`.

    Without a model, the other arguments have no effect (IgnoredOptionWarning).
    """
    alphabet = Alphabet.build_alphabet(labels)
    if kenlm_model_path is not None:
        return BeamSearchDecoderCTC(alphabet, LanguageModel(kenlm_model_path, unigrams, alpha, beta, unk_score_offset, lm_score_boundary))
    warn_ignored(
        "there is no language model",
        unigrams=(unigrams, None),
        alpha=(alpha, 0.5),
        beta=(beta, 1.5),
        unk_score_offset=(unk_score_offset, -10.0),
        lm_score_boundary=(lm_score_boundary, True),
    )
    return BeamSearchDecoderCTC(alphabet)
