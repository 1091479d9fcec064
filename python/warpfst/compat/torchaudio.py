"""torchaudio's cuda_ctc_decoder, implemented with a decoding graph of the tokens. It searches for best paths and does not sum over alignments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..decoder import Decoder
from ..graphs import Graph, build_ctc_graph
from ..results import Result
from ..symbols import Symbols
from .ignored import warn_ignored

_TOKEN_BEAM = 12.0


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
    warn_ignored("the best path needs no beam, and no frame is skipped", beam_size=(beam_size, 10), blank_skip_threshold=(blank_skip_threshold, 0.95))
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
