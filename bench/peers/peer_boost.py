"""Decodes character scores with a peer's boosts, for `./run bench boost --part=peers`: peer_boost.py JOB.json prints {utterance: words} as JSON.

pyctcdecode runs as it is. Of NeMo the wheel's context_graph_universal.py runs (ContextGraph, which is plain Python); the greedy search around it is written here after NeMo's
documentation and package: in frames in which the best label is a new token, the token with the best sum of log-probability and weighted tree score is taken; the tree's state then moves on. A token that
leaves a branch pays back what the branch had given, unless a phrase was completed there.
"""
import json
import pathlib
import sys

import nemo_modules
import numpy as np

WORD_START = "\u2581"


def with_pyctcdecode(job, tokens):
    from pyctcdecode import build_ctcdecoder

    words = sorted({word for listed in job["lists"].values() for word in listed} | set(job["words"]))
    decoder = build_ctcdecoder(["", *(" " if token == WORD_START else token for token in tokens[1:])], job["lm"], words, alpha=1 / 0.7, beta=0.0)

    def decode(scores, listed):
        return decoder.decode(scores, beam_width=100, beam_prune_logp=-15, hotwords=listed or None, hotword_weight=job["strength"]).split()

    return decode


class Tree:
    """NeMo's boosting tree of the listed words, spelled with characters."""

    def __init__(self, graph_type, tokens, listed):
        self.num_tokens, self.moves = len(tokens) - 1, {}
        number = {token: i for i, token in enumerate(tokens[1:])}
        graph = graph_type(context_score=1.0, depth_scaling=2.0)
        graph.build(token_ids=[[number[token] for token in (WORD_START, *word)] for word in listed], phrases=list(listed), uniform_weights=False)
        self.root = graph.root

    def all_moves(self, state):
        """Scores and next states of all tokens."""
        if state.id not in self.moves:
            moves = [self.move(state, token) for token in range(self.num_tokens)]
            self.moves[state.id] = (np.array([score for score, _ in moves]), [to for _, to in moves])
        return self.moves[state.id]

    def move(self, state, token):
        score = 0.0
        while token not in state.next:
            if state is self.root:
                return score, state
            if not state.is_end:
                score += state.fail.node_score - state.node_score
            state = state.fail
        return score + state.next[token].token_score, state.next[token]


def with_nemo(job, tokens):
    module = nemo_modules.load(job["nemo"], nemo_modules.TREE)
    trees = {}

    def decode(scores, listed):
        if tuple(listed) not in trees:
            trees[tuple(listed)] = Tree(module.ContextGraph, tokens, listed)
        tree = trees[tuple(listed)]
        state, last, text = tree.root, 0, []
        for frame in scores:
            label = int(frame.argmax())
            if label not in (0, last):
                bonus, following = tree.all_moves(state)
                fused = frame[1:] + job["strength"] * bonus
                if last > 0:
                    fused[last - 1] = -np.inf
                label = 1 + int(fused.argmax())
                state = following[label - 1]
                text.append(tokens[label])
            last = label
        return "".join(text).replace(WORD_START, " ").split()

    return decode


def main():
    job = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    tokens = [line.split()[0] for line in open(job["tokens"], encoding="utf-8")]
    decode = {"pyctcdecode": with_pyctcdecode, "nemo": with_nemo}[job["peer"]](job, tokens)
    results = {key: decode(np.load(pathlib.Path(job["scores"], f"{key}.npy")).astype(np.float32), job["lists"].get(key, [])) for key in job["keys"]}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
