"""Drop-in replacements for pyctcdecode's build_ctcdecoder and torchaudio's cuda_ctc_decoder. Docstrings and docs/migrating/ describe the differences.

Both replacements search for the best path; they do not sum over alignments.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ._library import encode_text
from .decoder import Decoder
from .errors import IgnoredOptionWarning, UnsupportedError
from .graphs import Graph, build_ctc_graph
from .lexicon import Lexicon
from .lm import LM
from .results import Result
from .symbols import Symbols

_BLANK, _SPACE, _WORD_START = "<blk>", "|", "\u2581"
_BLANKS = ("", "<pad>", "[PAD]", "<blank>", "<blk>", "<s>")
_EXTRA_FRAME = 1
_TOKEN_BEAM = 12.0


def _warn_ignored(why: str, **given: tuple[Any, Any]) -> None:
    """Options are given as (value, default). Warns that an option has no effect if its value is not the default."""
    for name, (value, default) in given.items():
        if value is not default and value != default:
            warnings.warn(f"{name}={value!r} has no effect: {why}", IgnoredOptionWarning, stacklevel=3)


_OWN_SEARCH = "the search is controlled by beam_prune_logp alone"


class _Alphabet:
    """Labels in pyctcdecode's convention: "" (or a name such as <pad>) is the blank; " " or "|" separates words, or tokens that begin words start with U+2581."""

    def __init__(self, labels: Sequence[str]) -> None:
        found = [name for name in _BLANKS if name in labels]
        self.labels = list(labels) + ([] if found else [""])  # pyctcdecode also appends the blank
        self.blank = self.labels.index(found[0] if found else "")
        names = [_SPACE if label == " " else label for label in self.labels]
        names[self.blank] = _BLANK
        if len(set(names)) != len(names):
            raise ValueError("a label is given twice")
        for name in names:
            encode_text(name)
        self.tokens = Symbols(names)
        self.by_pieces = any(name.startswith(_WORD_START) for name in names)
        self.space = names.index(_SPACE) if _SPACE in names else None
        self.delimited = self.space is not None and not self.by_pieces

    def text(self, tokens: Iterable[str]) -> str:
        joined = "".join(tokens).replace(_WORD_START, " ").replace(_SPACE, " ")
        return " ".join(joined.split())

    def lexicon(self, words: Iterable[str]) -> Lexicon:
        """Spells the words: with pieces, longest first; or with characters, followed by the token that separates words."""
        if self.by_pieces:
            return Lexicon.spell(["<eps>", *words], self.tokens, blank=_BLANK, unknown="skip")
        end = [] if self.space is None else [_SPACE]
        known = {word: [*word, *end] for word in words if all(character in self.tokens for character in word)}
        if not known:
            raise ValueError("none of the words can be spelled with the labels")
        return Lexicon.from_dict(known, self.tokens, blank=_BLANK)


class BeamSearchDecoderCTC:
    """Returned by `build_ctcdecoder`: the methods decode, decode_beams and decode_batch of pyctcdecode. Needs numpy."""

    def __init__(self, alphabet: _Alphabet, graph: Graph, alpha: float | None, beta: float, device: str) -> None:
        """`alpha` None: no language model; the graph's words are tokens."""
        self._alphabet, self.graph, self._words = alphabet, graph, alpha is not None
        self._alpha = alpha or 1.0
        self._beta, self._device = beta, device
        self._decoders: dict[float, Decoder] = {}
        # The lexicon allows an optional delimiter between words (silence_prob = 0.5), so each word costs ln 2 for the choice. pyctcdecode has no such cost: it is subtracted.
        self._silence_cost = math.log(2) if self._words and alphabet.delimited else 0.0

    def _decoder(self, beam: float) -> Decoder:
        if beam not in self._decoders:
            word_score = self._beta / self._alpha + self._silence_cost if self._words else 0.0
            options = {"acoustic_scale": 1 / self._alpha, "word_score": word_score, "beam": beam / self._alpha, "blank": self._alphabet.blank}
            self._decoders[beam] = Decoder(self.graph, device=self._device, **options)  # type: ignore[arg-type]
        return self._decoders[beam]

    def _scores(self, logits: Any) -> Any:
        """float32 log-probabilities, followed by a frame in which only the blank and the token between words are possible; it ends the last word."""
        import numpy as np

        scores = np.asarray(logits, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] != len(self._alphabet.labels):
            raise ValueError(f"logits of shape {scores.shape}, expected [frames, {len(self._alphabet.labels)}]")
        if len(scores) and not math.isclose(np.exp(np.minimum(scores, 80)).sum(axis=1).mean(), 1, abs_tol=1e-3):
            scores = scores - scores.max(axis=1, keepdims=True)
            scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        last = np.full((_EXTRA_FRAME, scores.shape[1]), -np.inf)
        last[:, [column for column in (self._alphabet.blank, self._alphabet.space) if column is not None]] = 0
        return np.concatenate([scores, last]).astype(np.float32)

    def _decode(
        self, logits_list: Sequence[Any], beam_prune_logp: float, hotwords: Iterable[str] | None, hotword_weight: float, lm_start_state: Any = None
    ) -> Sequence[Result]:
        if lm_start_state is not None:
            raise UnsupportedError("lm_start_state is not supported: utterances start with <s>")
        boost = dict.fromkeys(hotwords or (), hotword_weight / self._alpha)
        if boost and not self._words:
            raise UnsupportedError("hotwords need words: a language model or unigrams")
        results = self._decoder(-beam_prune_logp).decode([self._scores(logits) for logits in logits_list], boost=boost or None)
        for result in results:
            if result.error is not None:
                raise result.error
        return results

    def _text(self, result: Result) -> str:
        return result.text if self._words else self._alphabet.text(word.text for word in result.words)

    def decode(
        self,
        logits: Any,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: Any = None,
    ) -> str:
        """The best text for logits or log-probabilities [frames, labels]. beam_width and token_min_logp have no effect (IgnoredOptionWarning)."""
        _warn_ignored(_OWN_SEARCH, beam_width=(beam_width, 100), token_min_logp=(token_min_logp, -5.0))
        return self._text(self._decode([logits], beam_prune_logp, hotwords, hotword_weight, lm_start_state)[0])

    def decode_batch(
        self,
        pool: Any,
        logits_list: Sequence[Any],
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
    ) -> list[str]:
        """The best text of each utterance. `pool` is not used: the batch is decoded by the library's threads, or on the GPU."""
        _warn_ignored(_OWN_SEARCH, beam_width=(beam_width, 100), token_min_logp=(token_min_logp, -5.0))
        _warn_ignored("the batch is decoded by the library's threads, or on the GPU", pool=(pool, None))
        return [self._text(result) for result in self._decode(logits_list, beam_prune_logp, hotwords, hotword_weight)]

    def decode_beams(
        self,
        logits: Any,
        beam_width: int = 100,
        beam_prune_logp: float = -10.0,
        token_min_logp: float = -5.0,
        prune_history: bool = False,
        hotwords: Iterable[str] | None = None,
        hotword_weight: float = 10.0,
        lm_start_state: Any = None,
    ) -> list[tuple[str, None, list[tuple[str, tuple[int, int]]], float, float]]:
        """Only the best beam: (text, None, [(word, (first frame, last frame + 1))], logit score, combined score)."""
        _warn_ignored(_OWN_SEARCH, beam_width=(beam_width, 100), token_min_logp=(token_min_logp, -5.0), prune_history=(prune_history, False))
        result = self._decode([logits], beam_prune_logp, hotwords, hotword_weight, lm_start_state)[0]
        frames = result.num_frames - _EXTRA_FRAME
        words = [(word.text, (min(word.start, frames), min(word.end, frames))) for word in result.words] if self._words else self._spans(result, frames)
        logit_score = -result.acoustic_cost * self._alpha
        return [(self._text(result), None, words, logit_score, (self._silence_cost - result.cost) * self._alpha)]

    def _spans(self, result: Result, frames: int) -> list[tuple[str, tuple[int, int]]]:
        """Words and their frames, for a result whose words are tokens."""
        spans: list[tuple[str, tuple[int, int]]] = []
        fresh = True
        for token in result.words:
            fresh = fresh or token.text == _SPACE or token.text.startswith(_WORD_START)
            piece = token.text.replace(_SPACE, "").replace(_WORD_START, "")
            if piece and fresh:
                spans.append((piece, (token.start, min(token.end, frames))))
                fresh = False
            elif piece:
                spans[-1] = (spans[-1][0] + piece, (spans[-1][1][0], min(token.end, frames)))
        return spans


def build_ctcdecoder(
    labels: Sequence[str],
    kenlm_model_path: str | os.PathLike[str] | None = None,
    unigrams: Iterable[str] | None = None,
    alpha: float = 0.5,
    beta: float = 1.5,
    unk_score_offset: float = -10.0,
    lm_score_boundary: bool = True,
    *,
    device: str = "cpu",
) -> BeamSearchDecoderCTC:
    """pyctcdecode's `build_ctcdecoder`, implemented with a decoding graph.

    The model is an ARPA file, plain or gzipped, or KenLM's binary trie (not `probing`). With a model or `unigrams`, only their words are recognised, so
    unk_score_offset has no effect. Words are spelled with pieces in one way, longest piece first. Scores are those of pyctcdecode: logits + alpha ln P + beta for
    each word. Without model and unigrams, text is made from the labels alone.
    """
    if kenlm_model_path is not None or unigrams is not None:
        _warn_ignored("only the words of the model or of unigrams are recognised", unk_score_offset=(unk_score_offset, -10.0))
    else:
        _warn_ignored("there is no language model", alpha=(alpha, 0.5), beta=(beta, 1.5), unk_score_offset=(unk_score_offset, -10.0))
    if not lm_score_boundary:
        raise UnsupportedError("lm_score_boundary=False is not supported: sentences begin with <s> and end with </s>")
    alphabet = _Alphabet(labels)
    if kenlm_model_path is None and unigrams is None:
        return BeamSearchDecoderCTC(alphabet, build_ctc_graph(alphabet.tokens, blank=_BLANK), None, beta, device)
    if kenlm_model_path is not None and not alpha > 0:
        raise ValueError(f"alpha is {alpha}, expected a positive number")
    lm = None if kenlm_model_path is None else LM.read(kenlm_model_path)
    known = {text for text, _ in lm.words if not text.startswith("<")} if lm is not None else set()
    wanted = known if unigrams is None else known & set(unigrams) if lm is not None else set(unigrams)
    lexicon = alphabet.lexicon(sorted(wanted))
    # The model is read again with the lexicon's words as its word table. n-grams with other words are skipped.
    lm = None if kenlm_model_path is None else LM.read(kenlm_model_path, lexicon.words(), oov="skip")
    silence: dict[str, Any] = {} if not alphabet.delimited else {"silence": _SPACE, "silence_prob": 0.5}
    return BeamSearchDecoderCTC(alphabet, build_ctc_graph(alphabet.tokens, lexicon, lm, **silence), alpha if lm is not None else 1.0, beta, device)


class CUCTCHypothesis(NamedTuple):
    tokens: list[int]
    words: list[str]
    score: float


class CUCTCDecoder:
    """Returned by `cuda_ctc_decoder`. Tensors may be on a GPU or on the CPU; a decoder is created for each device when it is first used."""

    def __init__(self, graph: Graph, nbest: int) -> None:
        self.graph, self._nbest = graph, nbest
        self._decoders: dict[str, Decoder] = {}

    def __call__(self, log_prob: Any, encoder_out_lens: Any) -> list[list[CUCTCHypothesis]]:
        """Decodes log_prob [batch, frames, tokens] with lengths encoder_out_lens [batch]. Returns the hypotheses of each utterance, best first."""
        kind, number = (int(x) for x in log_prob.__dlpack_device__())
        device = f"cuda:{number}" if kind == 2 else "cpu"
        if device not in self._decoders:
            listed: Any = {"lattice_beam": _TOKEN_BEAM, "determinize": True, "confidences": False, "nbest": self._nbest} if self._nbest > 1 else {}
            self._decoders[device] = Decoder(self.graph, beam=_TOKEN_BEAM, device=device, **listed)
        return [self._hypotheses(result) for result in self._decoders[device].decode(log_prob, encoder_out_lens)]

    def _hypotheses(self, result: Result) -> list[CUCTCHypothesis]:
        if self._nbest == 1:
            return [CUCTCHypothesis([word.label - 1 for word in result.words], [word.text for word in result.words], -result.acoustic_cost)]
        return [CUCTCHypothesis([label - 1 for label in one.labels], one.text.split(), -one.cost) for one in result.nbest(self._nbest)]


def cuda_ctc_decoder(tokens: str | os.PathLike[str] | Sequence[str], nbest: int = 1, beam_size: int = 10, blank_skip_threshold: float = 0.95) -> CUCTCDecoder:
    """torchaudio's `cuda_ctc_decoder`. `tokens` is a file with one token per line, or a list; the blank comes first. There are no words and no language model.

    beam_size and blank_skip_threshold, which make torchaudio's search cheaper, have no effect: no frame is skipped, and the best path needs no beam. With nbest > 1,
    hypotheses are those within 12 nats of the best; the score of each is that of its best path.
    """
    _warn_ignored("the best path needs no beam, and no frame is skipped", beam_size=(beam_size, 10), blank_skip_threshold=(blank_skip_threshold, 0.95))
    if nbest < 1:
        raise ValueError(f"nbest is {nbest}, expected at least 1")
    if isinstance(tokens, (str, os.PathLike)):
        with open(tokens, encoding="utf-8") as file:
            tokens = [line.split()[0] for line in file if line.strip()]
    table = Symbols(tokens)
    first = table.text(0)
    if first is None or len(table) != len(tokens):
        raise ValueError("there are no tokens, or a token is given twice")
    # Only the `correct` topology distinguishes a held "a" from "a a" in every path. For the best path alone the cheaper default is enough.
    graph = build_ctc_graph(table, blank=first) if nbest == 1 else build_ctc_graph(table, blank=first, topology="correct")
    return CUCTCDecoder(graph, nbest)
