"""torchaudio's decoders (torchaudio.models.decoder).

Both are implemented with the library's beam search, as in compat.flashlight.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ..scores import Batch
from .flashlight.decoder import (
    LM,
    CriterionType,
    DecodeResult,
    KenLM,
    LexiconDecoder,
    LexiconDecoderOptions,
    LexiconFreeDecoder,
    LexiconFreeDecoderOptions,
    LMState,
    SmearingMode,
    Trie,
    ZeroLM,
)
from .flashlight.dictionary import Dictionary, create_word_dict, load_words
from .ignored import warn_ignored

if TYPE_CHECKING:
    Path = Union[str, os.PathLike[str]]
    Lexicon = Mapping[str, Sequence[Sequence[str]]]

CTCDecoderLM, CTCDecoderLMState = LM, LMState  # a language model of your own is a subclass of CTCDecoderLM

_TOKEN_BEAM = 12.0  # of cuda_ctc_decoder, whose beam_size is the other limit


class CTCHypothesis(NamedTuple):
    """tokens: indices, without blanks and repetitions; timesteps: the first frame of each, counted from 1, 0 before the first frame. Tensors if the emissions were."""

    tokens: Any
    words: list[str]
    score: float
    timesteps: Any


class CTCDecoder:
    """Returned by `ctc_decoder`, which has the arguments. One thread at a time."""

    def __init__(
        self,
        nbest: int,
        lexicon: Lexicon | None,
        word_dict: Dictionary | None,
        tokens_dict: Dictionary,
        lm: Any,
        decoder_options: LexiconDecoderOptions | LexiconFreeDecoderOptions,
        blank_token: str,
        sil_token: str,
        unk_word: str,
    ) -> None:
        if nbest < 1:
            raise ValueError(f"nbest is {nbest}, expected at least 1")
        self.nbest, self.word_dict, self.tokens_dict = nbest, word_dict, tokens_dict
        self.blank = tokens_dict.get_index(blank_token)
        silence = tokens_dict.get_index(sil_token)
        self.decoder: LexiconDecoder | LexiconFreeDecoder
        if isinstance(decoder_options, LexiconDecoderOptions):
            assert lexicon is not None and word_dict is not None
            trie = _trie(lexicon, word_dict, tokens_dict, lm, silence)
            self.decoder = LexiconDecoder(decoder_options, trie, lm, silence, self.blank, word_dict.get_index(unk_word), [], False)
        else:
            self.decoder = LexiconFreeDecoder(decoder_options, lm, silence, self.blank, [])
        self._tensors = False

    def __call__(self, emissions: Any, lengths: Any = None) -> list[list[CTCHypothesis]]:
        """The `nbest` hypotheses of each utterance, best first. All processors decode, unless the language model is a function in Python.

        emissions  scores [utterances, frames, tokens], float32, float16 or bfloat16 in host memory: tensor or array. CTC's are log-probabilities
        lengths    frames of each utterance [utterances]; None: all
        """
        if len(emissions.shape) != 3:
            raise ValueError(f"emissions have shape {list(emissions.shape)}, expected [utterances, frames, tokens]")
        tensors = _is_tensor(emissions)
        return [self._hypotheses(results, tensors) for results in self.decoder.decode_batch(Batch(_detached(emissions), lengths), self.nbest)]

    def decode_begin(self) -> None:
        """Begins an utterance that is given step by step."""
        self.decoder.decode_begin()

    def decode_step(self, emissions: Any) -> None:
        """Goes on with frames [frames, tokens]."""
        self._tensors = _is_tensor(emissions)
        self.decoder.decode_step(_detached(emissions))

    def decode_end(self) -> None:
        """Ends the utterance."""
        self.decoder.decode_end()

    def get_final_hypothesis(self) -> list[CTCHypothesis]:
        """The `nbest` hypotheses of the utterance."""
        return self._hypotheses(self.decoder.get_all_final_hypothesis(), self._tensors)

    def idxs_to_tokens(self, idxs: Any) -> list[str]:
        """The texts of token indices."""
        return [self.tokens_dict.get_entry(int(index)) for index in idxs]

    def _hypotheses(self, results: Sequence[DecodeResult], tensors: bool) -> list[CTCHypothesis]:
        return [self._hypothesis(result, tensors) for result in results[: self.nbest]]

    def _hypothesis(self, result: DecodeResult, tensors: bool) -> CTCHypothesis:
        tokens, times, frame = [], [], 0
        for token, run in itertools.groupby(result.tokens):
            if token != self.blank:
                tokens.append(token)
                times.append(frame)
            frame += sum(1 for _ in run)
        words = [] if self.word_dict is None else [self.word_dict.get_entry(word) for word in result.words if word >= 0]
        return CTCHypothesis(_numbers(tokens, "int64", tensors), words, result.score, _numbers(times, "int32", tensors))


def _is_tensor(emissions: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(emissions, torch.Tensor)


def _detached(emissions: Any) -> Any:
    return emissions.detach() if _is_tensor(emissions) else emissions


def _numbers(values: Sequence[int], dtype: str, tensor: bool) -> Any:
    if tensor:
        import torch

        return torch.tensor(values, dtype=getattr(torch, dtype))
    import numpy as np

    return np.array(values, dtype=dtype)


def _trie(lexicon: Lexicon, words: Dictionary, tokens: Dictionary, lm: Any, silence: int) -> Trie:
    trie, start = Trie(tokens.index_size(), silence), lm.start(False)
    for word, spellings in lexicon.items():
        label = words.get_index(word)
        _, score = lm.score(start, label)
        for spelling in spellings:
            trie.insert(tokens.map_entries_to_indices(spelling), label, score)
    trie.smear(SmearingMode.MAX)
    return trie


def _words_of(lexicon: Lexicon | None, lm: Any, lm_dict: Path | None, tokens: Dictionary, unknown: str) -> Dictionary | None:
    """The words that the language model is asked for."""
    if lm_dict is not None:
        return Dictionary(lm_dict)
    if lexicon is not None:
        return create_word_dict(lexicon)
    if isinstance(lm, (str, os.PathLike)):
        return Dictionary([*(tokens.get_entry(i) for i in range(tokens.index_size())), *([] if tokens.contains(unknown) else [unknown])])
    return None


def ctc_decoder(
    lexicon: Path | Lexicon | None,
    tokens: Path | Sequence[str],
    lm: Any = None,
    lm_dict: Path | None = None,
    nbest: int = 1,
    beam_size: int = 50,
    beam_size_token: int | None = None,
    beam_threshold: float = 50,
    lm_weight: float = 2,
    word_score: float = 0,
    unk_score: float = -math.inf,
    sil_score: float = 0,
    log_add: bool = False,
    blank_token: str = "-",
    sil_token: str = "|",
    unk_word: str = "<unk>",
) -> CTCDecoder:
    """torchaudio's `ctc_decoder`.

    lexicon          file with a word and its tokens on each line, or {word: spellings}; None: any tokens
    tokens           file with a token on each line, or a list
    lm               an n-gram model of words, or without a lexicon of tokens: ARPA, plain or gzipped, or KenLM's binary trie; a CTCDecoderLM; None
    lm_dict          file with a word on each line: the numbers by which a CTCDecoderLM is asked
    nbest            hypotheses to return
    beam_size        hypotheses that are kept in each frame
    beam_size_token  best tokens of a frame with which words go on; None: all
    beam_threshold   hypotheses whose score is this much lower than the best one's are dropped
    lm_weight, word_score, unk_score, sil_score  weight of the language model, what is added for each word, unknown word (-inf: none), frame of silence
    log_add          sum over alignments; else the best one counts
    blank_token, sil_token, unk_word  token of the CTC blank, token that may stand between words, word that stands for unknown ones
    """
    token_dict = Dictionary(tokens)
    common: dict[str, Any] = {
        "beam_size": beam_size,
        "beam_size_token": beam_size_token or token_dict.index_size(),
        "beam_threshold": beam_threshold,
        "lm_weight": lm_weight,
        "sil_score": sil_score,
        "log_add": log_add,
        "criterion_type": CriterionType.CTC,
    }
    options: LexiconDecoderOptions | LexiconFreeDecoderOptions
    spellings: Lexicon | None = None
    if lexicon is not None:
        spellings = load_words(lexicon) if isinstance(lexicon, (str, os.PathLike)) else {**lexicon, unk_word: lexicon.get(unk_word, [])}
        options = LexiconDecoderOptions(word_score=word_score, unk_score=unk_score, **common)
    else:
        warn_ignored("there is no lexicon", word_score=(word_score, 0), unk_score=(unk_score, -math.inf))
        options = LexiconFreeDecoderOptions(**common)
    words = _words_of(spellings, lm, lm_dict, token_dict, unk_word)
    if isinstance(lm, (str, os.PathLike)):
        assert words is not None
        lm = KenLM(lm, words)
    elif lm is None:
        warn_ignored("there is no language model", lm_weight=(lm_weight, 2))
        lm = ZeroLM()
    return CTCDecoder(nbest, spellings, words, token_dict, lm, options, blank_token, sil_token, unk_word)


class CUCTCHypothesis(NamedTuple):
    tokens: list[int]
    words: list[str]
    score: float


class CUCTCDecoder:
    """Returned by `cuda_ctc_decoder`, which has the arguments. Log-probabilities may be on a GPU or in host memory; the search is one on the CPU, by all processors."""

    def __init__(
        self,
        vocab_list: Sequence[str],
        blank_id: int = 0,
        beam_size: int = 10,
        nbest: int = 1,
        blank_skip_threshold: float = 0.95,
        cuda_stream: Any = None,
    ) -> None:
        """`cuda_stream`: the stream on which the scores are made, an object or a number; None: torch's current one."""
        if not 1 <= nbest <= beam_size:
            raise ValueError(f"nbest is {nbest}, expected 1 to beam_size, which is {beam_size}")
        if not 0 <= blank_id < len(vocab_list):
            raise ValueError(f"blank_id is {blank_id}, there are {len(vocab_list)} tokens")
        self.vocab_list, self.blank_id, self.nbest, self.cuda_stream = list(vocab_list), blank_id, nbest, cuda_stream
        # A prefix is two hypotheses: one that ends with a blank, and one that does not.
        options = LexiconFreeDecoderOptions(
            beam_size=2 * beam_size, beam_size_token=len(vocab_list), beam_threshold=_TOKEN_BEAM, lm_weight=0, sil_score=0, log_add=True, criterion_type=CriterionType.CTC
        )
        self._decoder = LexiconFreeDecoder(options, ZeroLM(), blank_id, blank_id, [], blank_skip=blank_skip_threshold if blank_skip_threshold < 1 else 0)

    def __call__(self, log_prob: Any, encoder_out_lens: Any) -> list[list[CUCTCHypothesis]]:
        """The `nbest` hypotheses of each utterance, best first, of log_prob [utterances, frames, tokens] with lengths encoder_out_lens [utterances]."""
        if self.cuda_stream is not None:
            _wait_for(self.cuda_stream)
        if log_prob.shape[-1] != len(self.vocab_list):
            raise ValueError(f"log_prob has {log_prob.shape[-1]} columns, there are {len(self.vocab_list)} tokens")
        return [[self._hypothesis(result) for result in results] for results in self._decoder.decode_batch(Batch(_detached(log_prob), encoder_out_lens), self.nbest)]

    def _hypothesis(self, result: DecodeResult) -> CUCTCHypothesis:
        tokens = [token for token, _ in itertools.groupby(result.tokens) if token != self.blank_id]
        return CUCTCHypothesis(tokens, [self.vocab_list[token] for token in tokens], result.score)


def _wait_for(stream: Any) -> None:
    if not hasattr(stream, "synchronize"):
        import torch

        stream = torch.cuda.ExternalStream(stream)
    stream.synchronize()


def cuda_ctc_decoder(tokens: Path | Sequence[str], nbest: int = 1, beam_size: int = 10, blank_skip_threshold: float = 0.95) -> CUCTCDecoder:
    """torchaudio's `cuda_ctc_decoder`: a beam search for any tokens, which sums over the alignments of a prefix. There are no words and no language model.

    tokens                file with a token on each line, or a list; the blank comes first
    nbest                 hypotheses to return, at most beam_size
    beam_size             prefixes that are kept in each frame, if they are within 12 nats of the best
    blank_skip_threshold  frames in which the blank's probability is at least this high take no other token; 1: none
    """
    if isinstance(tokens, (str, os.PathLike)):
        with open(tokens, encoding="utf-8") as file:
            tokens = [line.split()[0] for line in file if line.strip()]
    return CUCTCDecoder(tokens, nbest=nbest, beam_size=beam_size, blank_skip_threshold=blank_skip_threshold)
