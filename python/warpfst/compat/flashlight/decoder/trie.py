"""The spellings of words, as a trie."""

from __future__ import annotations

import ctypes
import enum
import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from ...._abi import wf_beam_node

_NODE = struct.Struct("=ifIIII")


class SmearingMode(enum.Enum):
    """Which score a node of a trie gets from the words after it: none, their highest, or the logarithm of the sum of their exponentials.

    Words with the same spelling are summed in both modes.
    """

    NONE = 0
    MAX = 1
    LOGADD = 2


class TrieNode:
    """A node: `idx` the token that leads to it, `children` by token, `labels` and `scores` of the words that end at it, `max_score` after `Trie.smear`."""

    __slots__ = ("children", "idx", "labels", "max_score", "scores")

    def __init__(self, idx: int) -> None:
        self.children: dict[int, TrieNode] = {}
        self.idx = idx
        self.labels: list[int] = []
        self.scores: list[float] = []
        self.max_score = 0.0


class Trie:
    """Spellings of words. Decoders copy it when they are made. `root_idx`: token of the root, which is not part of any spelling."""

    def __init__(self, max_children: int, root_idx: int) -> None:
        self._root, self._max_children = TrieNode(root_idx), max_children

    def get_root(self) -> TrieNode:
        return self._root

    def insert(self, indices: Iterable[int], label: int, score: float) -> TrieNode:
        """Adds a spelling of a word. score: what the language model is expected to say of the word."""
        node = self._root
        for token in indices:
            if not 0 <= token < self._max_children:
                raise ValueError(f"token {token}, expected 0 to {self._max_children - 1}")
            child = node.children.get(token)
            if child is None:
                child = node.children[token] = TrieNode(token)
            node = child
        node.labels.append(label)
        node.scores.append(score)
        return node

    def search(self, indices: Iterable[int]) -> TrieNode | None:
        """The node of this beginning of a spelling; None: there is none."""
        node: TrieNode | None = self._root
        for token in indices:
            node = node.children.get(token) if node is not None else None
        return node

    def _by_level(self) -> list[TrieNode]:
        nodes = [self._root]
        for node in nodes:
            nodes.extend(node.children.values())
        return nodes

    def smear(self, smear_mode: SmearingMode) -> None:
        """Sets `max_score` of all nodes."""
        if smear_mode == SmearingMode.NONE:
            return
        for node in reversed(self._by_level()):
            own = [_add_logs(node.scores)] if node.scores else []  # of words with the same spelling, in both modes
            scores = [*own, *(child.max_score for child in node.children.values())] or [0.0]
            node.max_score = max(scores) if smear_mode == SmearingMode.MAX else _add_logs(scores)

    def flat(self) -> tuple[Any, list[int]]:
        """The trie as C takes it: nodes by level, and the words of all nodes."""
        nodes = self._by_level()
        flat = (wf_beam_node * len(nodes))()
        memory = memoryview(flat).cast("B")
        words: list[int] = []
        child, at = 1, 0
        for node in nodes:
            _NODE.pack_into(memory, at, node.idx, node.max_score, child, len(node.children), len(words), len(node.labels))
            words += node.labels
            child += len(node.children)
            at += _NODE.size
        assert ctypes.sizeof(wf_beam_node) == _NODE.size
        return flat, words


def _add_logs(values: Sequence[float]) -> float:
    high = max(values)
    return high + math.log(sum(math.exp(value - high) for value in values))
