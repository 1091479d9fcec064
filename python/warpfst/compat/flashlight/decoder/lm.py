"""Language models: of n-grams, none, and functions in Python."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from .... import _abi
from ...._library import PythonCall, lib
from ....lm import LM as NgramLM
from ..dictionary import Dictionary

_LN10 = 2.302585092994046
_MISSING = -100.0  # log10 P of what a model has no probability for, as in KenLM


class LMState:
    """The history of a hypothesis. `child` gives the same object for the same word. Attributes are the model's to set."""

    def __init__(self) -> None:
        self.children: dict[int, Any] = {}

    def child(self, usr_index: int) -> Any:
        """The history after one more word."""
        if usr_index not in self.children:
            self.children[usr_index] = type(self)()
        return self.children[usr_index]

    def compare(self, state: LMState) -> int:
        """0 if it is this object, else -1 or 1."""
        return 0 if self is state else -1 if id(self) < id(state) else 1


class LM:
    """A language model of your own: a subclass that overrides the three methods.

    Hypotheses whose states are the same object are merged. Scores of a state and a word are asked for once in an utterance and must not change.
    """

    def start(self, start_with_nothing: bool) -> Any:
        """The state at the start of an utterance; with start_with_nothing, of no words."""
        raise NotImplementedError("a subclass of LM has start")

    def score(self, state: Any, usr_token_idx: int) -> tuple[Any, float]:
        """The state after a word, which is the same object for the same arguments, and the word's score."""
        raise NotImplementedError("a subclass of LM has score")

    def finish(self, state: Any) -> tuple[Any, float]:
        """The state and the score of the end."""
        raise NotImplementedError("a subclass of LM has finish")


class ZeroLM(LM):
    """No language model: all scores are 0."""

    def start(self, start_with_nothing: bool) -> LMState:
        return LMState()

    def score(self, state: LMState, usr_token_idx: int) -> tuple[LMState, float]:
        return state.child(usr_token_idx), 0.0

    def finish(self, state: LMState) -> tuple[LMState, float]:
        return state, 0.0


class _NgramState(LMState):
    number = 0  # of the library's model


class KenLM(LM):
    """An n-gram model: ARPA, plain or gzipped, or KenLM's binary trie (not `probing`). Scores are log10 P. `usr_token_dict`: the word of each index."""

    def __init__(self, path: str | os.PathLike[str], usr_token_dict: Dictionary) -> None:
        self.model = NgramLM.read(path)
        table = self.model.words
        labels = [table.find(usr_token_dict.get_entry(index)) for index in range(usr_token_dict.index_size())]
        self.labels = (ctypes.c_int32 * len(labels))(*(-1 if label is None else label for label in labels))

    def start(self, start_with_nothing: bool) -> _NgramState:
        state = _NgramState()
        state.number = 0 if start_with_nothing else lib.wf_lm_start(self.model.address)
        return state

    def score(self, state: _NgramState, usr_token_idx: int) -> tuple[_NgramState, float]:
        if not 0 <= usr_token_idx < len(self.labels):
            raise ValueError(f"word {usr_token_idx}, expected 0 to {len(self.labels) - 1}")
        number = ctypes.c_uint32()
        cost = lib.wf_lm_step(self.model.address, state.number, self.labels[usr_token_idx], ctypes.byref(number), None)
        after = state.child(usr_token_idx)
        after.number = number.value
        return after, _log10(cost)

    def finish(self, state: _NgramState) -> tuple[_NgramState, float]:
        return state, _log10(lib.wf_lm_final(self.model.address, state.number, None))


def _log10(cost: float) -> float:
    return _MISSING if cost == float("inf") else -cost / _LN10


class LmCall(PythonCall):
    """A language model in Python, as C calls it. Histories are numbers of states, from 0 at the start."""

    def __init__(self, lm: Any) -> None:
        super().__init__(self._score)
        self._lm = lm
        self.value = _abi.wf_python_lm(call=self._value)
        self._value = self.value.call  # the same memory, which C sets
        self.pointer = ctypes.addressof(self.value)
        self.restart()

    def restart(self) -> None:
        """Forgets the states of the utterance before."""
        self._states = [self._lm.start(False)]
        self._numbers = {id(self._states[0]): 0}

    def _score(self, history: int, word: int) -> bool:
        if word < 0:
            _, self.value.score = self._lm.finish(self._states[history])
            return True
        state, self.value.score = self._lm.score(self._states[history], word)
        number = self._numbers.setdefault(id(state), len(self._states))
        if number == len(self._states):
            self._states.append(state)
        self.value.next = number
        return True
