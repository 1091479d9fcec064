"""Decoding as transformers' Wav2Vec2ProcessorWithLM does it: from logits to texts with scores and word offsets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..decoder import Decoder
from ..errors import ArgumentError
from ..rescoring import Rescorer, TextScorer
from ..results import Hypothesis, Result, Results, Word
from .huggingface import huggingface_tokens
from .tokens import AnyLexicon, AnyModel, Path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .tokens import TableOptions

_PADDING = -100.0  # of logits, as in transformers
_LATTICE_BEAM = 8.0


@dataclasses.dataclass(frozen=True)
class ProcessorOutput:
    """Fields of transformers' Wav2Vec2DecoderWithLMOutput, also as output["text"].

    Each is a value for `decode` and a list of values for `batch_decode`, and with n_best > 1 lists of these, best first.

    text          str
    logit_score   natural logarithm of the probability of the text's best path
    lm_score      logit_score plus what the language model, word scores and rescoring add; higher is better
    word_offsets  [{"word": text, "start_offset": frame, "end_offset": frame}, ...]; None without output_word_offsets=True
    """

    text: Any
    logit_score: Any
    lm_score: Any
    word_offsets: Any = None

    def __getitem__(self, name: str) -> Any:
        if name not in (field.name for field in dataclasses.fields(self)):
            raise KeyError(name)
        return getattr(self, name)


class ProcessorWithLM:
    """A processor that decodes logits with a language model, in place of Wav2Vec2ProcessorWithLM.

        processor = wf.integrations.ProcessorWithLM(transformers.AutoProcessor.from_pretrained(name), lm="lm.arpa.gz", acoustic_scale=0.7)
        inputs = processor(audio, sampling_rate=16000, return_tensors="pt")
        print(processor.batch_decode(model(**inputs).logits).text)

    model    a processor or tokenizer of transformers, or a folder: `huggingface_tokens`
    lm       language model, as for `from_huggingface`; with `lexicon` or `words` it may be missing
    rescore  a function that scores texts, or a Rescorer with weights: its best texts are the results
    nbest    the largest n_best that `decode` can be asked for, beside those that `rescore` takes
    options  tables "decoder" and "ctc_graph". lattice_beam (default 8, if there are several texts): texts that are worse than the best by more are not found

    Any number of threads may use it; calls are made one after the other.
    """

    def __init__(
        self,
        model: Path | Any,
        lm: AnyModel | None = None,
        *,
        lexicon: AnyLexicon | None = None,
        words: Iterable[str] | None = None,
        target_lang: str | None = None,
        rescore: TextScorer | Rescorer | None = None,
        nbest: int = 1,
        **options: Unpack[TableOptions],
    ) -> None:
        if lm is None and lexicon is None and words is None:
            raise ArgumentError("ProcessorWithLM needs words: lm=, lexicon= or words=")
        if nbest < 1:
            raise ArgumentError(f"nbest is {nbest}, expected at least 1")
        self.processor = None if isinstance(model, str) or not callable(model) else model
        self.rescorer = rescore if isinstance(rescore, Rescorer) or rescore is None else Rescorer(rescore)
        self.nbest = max(nbest, 1 if self.rescorer is None else self.rescorer.nbest)
        several = self.nbest > 1 or self.rescorer is not None
        listed: dict[str, Any] = {"lattice_beam": _LATTICE_BEAM, "determinize": True, "confidences": False, "nbest": self.nbest} if several else {}
        tokens = huggingface_tokens(model, target_lang)
        listed.update(options)
        self.decoder: Decoder = tokens.decoder(lm, lexicon=lexicon, words=words, **listed)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Calls the processor: audio to the model's inputs."""
        if self.processor is None:
            raise TypeError("made of a folder, not of a processor")
        return self.processor(*arguments, **options)

    def batch_decode(self, logits: Any, lengths: Sequence[int] | None = None, *, n_best: int = 1, output_word_offsets: bool = False) -> ProcessorOutput:
        """Decodes logits or log-probabilities [utterances, frames, tokens], an array of numpy or torch.

        lengths  frames of each utterance (default: those before frames whose logits are all -100, transformers' padding)
        """
        if not 1 <= n_best <= self.nbest:
            raise ArgumentError(f"n_best is {n_best}, expected 1 to {self.nbest} (ProcessorWithLM(..., nbest=))")
        results = self.decoder.decode(*_log_probs(logits, lengths))
        scale = float(self.decoder.config["acoustic_scale"]) or 1.0
        rows = [[one.fields(scale) for one in listed[:n_best]] for listed in self._texts(results, n_best)]
        columns = [[listed[0][i] if n_best == 1 else [row[i] for row in listed] for listed in rows] for i in range(4 if output_word_offsets else 3)]
        return ProcessorOutput(*columns)

    def _texts(self, results: Results, count: int) -> list[list[_Text]]:
        """The texts of each utterance, best first."""
        if self.rescorer is not None:
            return [[_Text.of(one.hypothesis, one.total) for one in listed] for listed in self.rescorer(results)]
        if self.nbest > 1:
            return [[_Text.of(one, -one.cost) for one in result.nbest(count)] for result in results]
        return [[_Text.of(result, -result.cost)] for result in results]

    def decode(self, logits: Any, *, n_best: int = 1, output_word_offsets: bool = False) -> ProcessorOutput:
        """`batch_decode` of one utterance, [frames, tokens]."""
        batch = self.batch_decode(logits[None], n_best=n_best, output_word_offsets=output_word_offsets)
        return ProcessorOutput(*(None if column is None else column[0] for column in (batch.text, batch.logit_score, batch.lm_score, batch.word_offsets)))


class _Text(NamedTuple):
    """A text and its costs; `total` is in the scale of the search."""

    text: str
    acoustic_cost: float
    total: float
    words: list[Word] | None

    @classmethod
    def of(cls, one: Result | Hypothesis, total: float) -> _Text:
        return cls(one.text, one.acoustic_cost, total, one.words)

    def fields(self, scale: float) -> tuple[Any, ...]:
        """Those of ProcessorOutput. Divided by acoustic_scale, scores are on the scale of the model's log-probabilities."""
        offsets = [{"word": word.text, "start_offset": word.start, "end_offset": word.end} for word in self.words or ()]
        return self.text, -self.acoustic_cost / scale, self.total / scale, offsets


def _log_probs(logits: Any, lengths: Sequence[int] | None) -> tuple[Any, Any]:
    """Log-probabilities of logits on their device, and the number of frames of each utterance."""
    if lengths is None:
        lengths = (logits != _PADDING).any(-1).sum(-1).tolist()
    if hasattr(logits, "log_softmax"):  # torch
        return logits.detach().float().log_softmax(-1), lengths
    import numpy as np

    scores = np.asarray(logits, dtype=np.float32)
    scores = scores - scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)), lengths
