"""Rescores n-best lists with a causal language model of transformers, such as GPT-2: word error rates by weight, on the scores of examples/ctc.

    pip install torch transformers
    python examples/rescoring/causal_lm.py gpt2 --weights 0 0.1 0.2 0.3
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from typing import Any

import numpy as np
import torch
import transformers

import warpfst as wf

CTC = pathlib.Path(__file__).parents[1] / "ctc"


class CausalLM:
    """Natural logarithms of the probabilities of texts. A text begins after the model's first special token and ends with its last, as sentences do in training."""

    def __init__(self, name: str, device: str = "cpu", case: Any = str.lower) -> None:
        """`name`: a model of the Hub, or a folder. `case`: makes the words' case the one that the model was trained on."""
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(name)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(name).to(device).eval()
        self._device, self._case = device, case
        self._end = self._tokenizer.eos_token_id
        self._begin = self._tokenizer.bos_token_id if self._tokenizer.bos_token_id is not None else self._end

    def __call__(self, texts: list[str]) -> list[float]:
        rows = [[self._begin, *self._tokenizer(self._case(text), add_special_tokens=False).input_ids, self._end] for text in texts]
        ids = torch.full((len(rows), max(map(len, rows))), self._end)
        mask = torch.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)] = torch.tensor(row), 1
        ids, mask = ids.to(self._device), mask.to(self._device)
        with torch.no_grad():
            log_probs = self._model(input_ids=ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
        of_tokens = log_probs.gather(2, ids[:, 1:, None])[:, :, 0] * mask[:, 1:]
        scores: list[float] = of_tokens.sum(1).tolist()
        return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a causal language model of HuggingFace's Hub, or a folder")
    parser.add_argument("--weights", type=float, nargs="+", default=[0.0, 0.1, 0.2, 0.3, 0.5])
    parser.add_argument("--nbest", type=int, default=20)
    parser.add_argument("--limit", type=int, default=200, help="utterances")
    parser.add_argument("--device", default="cpu", help="of the language model")
    args = parser.parse_args()

    paths = sorted((CTC / "logp_phone").glob("*.npy"))[: args.limit]
    references = wf.read_transcripts(CTC / "text")
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz")
    decoder = wf.Decoder(graph, acoustic_scale=0.7, lattice_beam=8, determinize=True, confidences=False, nbest=args.nbest)
    rescorer = wf.Rescorer(CausalLM(args.model, args.device), nbest=args.nbest)
    lists = rescorer(decoder.decode([np.load(path) for path in paths]))
    for weight in args.weights:
        ranked = dataclasses.replace(rescorer, weight=weight).rank(lists)
        total = wf.wer([references[path.stem] for path in paths], [listed[0].text for listed in ranked])
        print(f"weight {weight:g}: {total}")


if __name__ == "__main__":
    main()
