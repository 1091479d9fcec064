"""The calls of the package that take options.

Their docstrings list the options. An error about an unknown option names the one that was meant, and the call that has it.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple

from .option_tables import describe, names, tables


class Call(NamedTuple):
    """A function or method as users call it (`Decoder`, `LM.prune`, `fst.compose`), its arguments besides options, and the tables of its options."""

    name: str
    arguments: tuple[str, ...]
    tables: tuple[str, ...]

    def names(self) -> list[str]:
        """Everything that may be given by name, options last."""
        return [*self.arguments, *sorted(name for table in self.tables for name in names(table))]


_LOADER = ("determinize", "confidences", "nbest", "mbr", "keep_raw", "confidence_scale")  # of Decoder
# Types of options, without "Options" at their end, that are no table's: their tables, and other names.
_COMBINED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "AlignHmm": (("hmm_align", "lexicon"), ()),
    "Ctc": (("ctc_graph", "lexicon", "arpa"), ()),
    "Hmm": (("hmm_graph", "lexicon", "arpa"), ()),
    "Table": (("decoder", "ctc_graph"), ()),
    "Model": (("decoder", "ctc_graph"), _LOADER),
    "Loader": (("decoder", "ctc_graph"), (*_LOADER, "token_lm", "lexicon", "words", "graph")),
}
_UNTYPED = {"from_sentencepiece": "Loader"}  # calls whose options have a name that is an argument, too, so that they have no type
_FIRST = ("Decoder", "build_ctc_graph", "build_hmm_graph", "Decoder.stream")  # messages name these before other calls with the same options
_FOREIGN = {  # names that other tools use: what to use here
    **dict.fromkeys(("hotwords", "hotword", "context", "phrases", "keywords"), "boost= of decode, set_boost of decoders and streams"),
    **dict.fromkeys(("hotword_weight", "hotwords_score"), "boost= of decode: {phrase: nats}"),
    **dict.fromkeys(("gpu", "cuda", "use_gpu"), "device='cuda'"),
    **dict.fromkeys(("lm_weight", "lm_scale", "alpha", "ngram_lm_alpha", "ngram_lm_scale"), "lm=wf.Scorer.from_lm(model, graph.words, lm_scale=)"),
    **dict.fromkeys(("beta", "ngram_lm_beta", "word_insertion_penalty", "wip", "word_bonus"), "word_score"),
    **dict.fromkeys(("acwt", "am_scale", "am_weight"), "acoustic_scale"),
    **dict.fromkeys(("beam_size", "beam_width", "beam_threshold", "beam_size_token"), "beam (in nats) and max_active"),
    **dict.fromkeys(("kenlm", "kenlm_model", "kenlm_model_path", "arpa", "language_model", "lm_path"), "lm"),
    **dict.fromkeys(("num_paths", "n_best", "num_results"), "nbest(n) of a result"),
    **dict.fromkeys(("jobs", "num_workers", "workers", "threads", "num_processes"), "num_threads"),
    **dict.fromkeys(("blank_id", "blank_index", "blank_token"), "blank"),
}
_calls: dict[CodeType, Call] = {}


@functools.cache
def _printed(table: str) -> str:
    return repr(describe(table))


def _functions(things: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of functions, and the object that has their docstring: for `__init__` its class."""
    for thing in things:
        for name, member in vars(thing).items() if isinstance(thing, type) else [("", thing)]:
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function):
                yield function, thing if name == "__init__" else function


def document(things: Iterable[Any], prefix: str = "") -> None:
    """Registers the public functions, and methods of classes. Adds options (`**options: Unpack[DecoderOptions]`) to docstrings, so that `help` lists them.

    prefix  of the names, such as "fst."
    """
    by_type = {**{name.title().replace("_", ""): ((name,), ()) for name in tables()}, **_COMBINED}
    for function, owner in _functions(things):
        code = function.__code__
        if function.__name__.startswith("_") and function is owner:
            continue
        kind = re.fullmatch(r"Unpack\[(?:types\.)?(\w+)Options\]", str(function.__annotations__.get("options")))
        type_name = kind[1] if kind else _UNTYPED.get(function.__name__)
        of_tables, others = by_type[type_name] if type_name else ((), ())
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        _calls[code] = Call(prefix + owner.__qualname__, (*(name for name in arguments if name not in ("self", "cls")), *others), of_tables)
        if of_tables and owner.__doc__:
            owner.__doc__ = "\n\n".join([inspect.cleandoc(owner.__doc__), *map(_printed, of_tables)])


def calls_with_options() -> dict[str, tuple[str, ...]]:
    """The tables of every call that takes options, by name of the call."""
    return {call.name: call.tables for call in _calls.values() if call.tables}


def _running() -> Call | None:
    """The call of the user that runs."""
    frame, found = sys._getframe(1), None
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("warpfst", "contextlib"):
        found = _calls.get(frame.f_code, found)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _elsewhere(name: str) -> list[str]:
    """The calls that have an option of this name, one for each table; else those with such an argument."""
    first = sorted(_calls.values(), key=lambda call: _FIRST.index(call.name) if call.name in _FIRST else len(_FIRST))
    by_table: dict[str, str] = {}
    for call in first:
        for table in call.tables:
            if name in names(table):
                by_table.setdefault(table, call.name)
    return [*dict.fromkeys(by_table.values())] or [call.name for call in first if name in call.arguments]


def _listed(calls: list[str]) -> str:
    return f"{', '.join(calls[:3])} and others" if len(calls) > 3 else " and ".join(filter(None, [", ".join(calls[:-1]), calls[-1]]))


def _hint(name: str, known: list[str]) -> str:
    foreign = _FOREIGN.get(name.lower(), "")
    meant = re.split(r"\W", foreign)[0]
    if foreign and ("max_active" in known or meant == "boost" or (meant in known and meant != "lm")):
        return f"; did you mean {foreign}?"
    if others := _elsewhere(name):
        return f"; {_listed(others)} {'has' if len(others) == 1 else 'have'} it"
    near = difflib.get_close_matches(name, known, 1)
    every = {other for call in _calls.values() if call.tables for other in call.names()}
    if closer := difflib.get_close_matches(name, [*near, *sorted(every.difference(known))], 1, 0.8):  # of equal ones the first
        near = closer
    return "" if not near else f"; did you mean {near[0]!r}?" if near[0] in known else f"; did you mean {near[0]!r} of {_listed(_elsewhere(near[0]))}?"


def unknown(table: str, name: str) -> str:
    """The message about an option of this name for a table that lacks it."""
    call = _running()
    if call is not None and table in call.tables:
        return f"{call.name}: no option named {name!r}{_hint(name, call.names())}"
    return f"{table}: no option named {name!r}{_hint(name, sorted(names(table)))}"
