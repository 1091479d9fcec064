"""Grammars of words as grammars of tokens: words -> bytes -> every sequence of tokens with these bytes."""

from __future__ import annotations

from .._library import create
from ..errors import ArgumentError
from ..fst.container import Fst
from ..fst.operations import connect, determinize, minimize, project, rmepsilon
from .tokens import TokenTexts


def _plain(fst: Fst) -> Fst:
    """A deterministic acceptor of the same texts."""
    return minimize(determinize(rmepsilon(fst)))


def _spelled(words: Fst) -> Fst:
    """An acceptor of bytes (labels byte + 1): the words with a space between them, and one before the first or not. `words` has no epsilons."""
    symbols = words.isymbols or words.osymbols
    if symbols is None:
        raise ArgumentError("grammar: the fst has no symbol table of words; an fst of tokens is token_grammar")
    arcs: list[tuple[int, int, int, int, float]] = []
    start, num_states = words.num_states, words.num_states + 1  # the start, where no space is needed
    finals = {state: cost for state, cost in enumerate(words.final_costs) if cost != float("inf")}
    begin = words.start
    assert begin is not None
    for source in range(words.num_states):
        for arc in words.arcs_of(source):
            word = symbols.text(arc.ilabel)
            if not word:
                raise ArgumentError(f"grammar: label {arc.ilabel} is not in its symbol table")
            text = word.encode("utf-8", "surrogateescape")
            for state, spelled in ((source, b" " + text), (start, text)) if source == begin else ((source, b" " + text),):
                inner = [*range(num_states, num_states + len(spelled) - 1)]
                num_states += len(inner)
                weights = [arc.weight] + [0.0] * len(inner)
                arcs += [(one, to, byte + 1, byte + 1, weight) for one, to, byte, weight in zip([state, *inner], [*inner, arc.nextstate], spelled, weights)]
    arcs.append((start, begin, 0, 0, 0.0))
    return Fst.from_arcs(arcs, finals, start=start)


def token_grammar(grammar: Fst, texts: TokenTexts) -> Fst:
    """A grammar of tokens from one of words. The words are the input labels, with their texts in the symbol table."""
    words = connect(rmepsilon(project(grammar, project_type="input")))
    if words.start is None:
        raise ArgumentError("grammar: it accepts no text")
    spelled = _plain(_spelled(words))
    return Fst(create("wf_token_texts_to_fst", texts.address, spelled.address))


def deterministic(grammar: Fst) -> Fst:
    """A grammar whose labels are a token + 1, as a bias needs it."""
    plain = connect(project(grammar, project_type="input"))
    if plain.start is None:
        raise ArgumentError("token_grammar: it accepts no text")
    known = plain.properties
    return plain if {"ideterministic", "no_iepsilons"} <= known else _plain(plain)
