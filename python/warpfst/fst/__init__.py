"""Weighted finite-state transducers: the class Fst, and operations on transducers.

    import warpfst as wf
    both = wf.fst.determinize(wf.fst.compose(a, b), max_states=1000)

Fsts have operators, too: `a + b`, `a | b`, `a @ b`, `a - b`, `a.closure(1, 3)`, `a.star`, `a.plus`, `a.ques`, `a.paths()`.
Operations return new fsts; their inputs stay as they are. Options are keyword arguments with the names and defaults of
the C library: `warpfst.describe("compose")` and `help(warpfst.fst.compose)` list them. Costs are in nats, labels are
whole numbers, and label 0 is epsilon. Fsts can be shared by threads. Errors are those of the package (`warpfst.Error`).
Rules for text are in `warpfst.strings`, gradients for torch in `warpfst.torch`.
"""

from ..option_calls import document as _document
from .archives import FarReader, FarWriter
from .batches import Composer, DeviceArray, DeviceFst, FstBatch
from .builder import FstBuilder
from .container import Arc, Fst, StringPath
from .operations import (
    Comparison,
    Composition,
    Encoder,
    Sums,
    add_self_loops,
    arcmap,
    arcsort,
    closure,
    compose,
    compose_batch,
    compose_with_origins,
    concat,
    condense,
    connect,
    determinize,
    difference,
    disambiguate,
    epsilons_last,
    epsnormalize,
    equal,
    equivalent,
    factor_weight,
    forward_score,
    forward_score_gradients,
    invert,
    is_stochastic,
    isomorphic,
    lenient_compose,
    minimize,
    project,
    prune,
    push,
    randequivalent,
    randgen,
    relabel,
    remove_disambig,
    replace,
    reverse,
    reweight,
    rmepsilon,
    shortest_distance,
    shortest_path,
    synchronize,
    topsort,
    union,
)
from .weights import Weight

__all__ = [
    "Arc",
    "Comparison",
    "Composer",
    "Composition",
    "DeviceArray",
    "DeviceFst",
    "Encoder",
    "FarReader",
    "FarWriter",
    "Fst",
    "FstBatch",
    "FstBuilder",
    "StringPath",
    "Sums",
    "Weight",
    "add_self_loops",
    "arcmap",
    "arcsort",
    "closure",
    "compose",
    "compose_batch",
    "compose_with_origins",
    "concat",
    "condense",
    "connect",
    "determinize",
    "difference",
    "disambiguate",
    "epsilons_last",
    "epsnormalize",
    "equal",
    "equivalent",
    "factor_weight",
    "forward_score",
    "forward_score_gradients",
    "invert",
    "is_stochastic",
    "isomorphic",
    "lenient_compose",
    "minimize",
    "project",
    "prune",
    "push",
    "randequivalent",
    "randgen",
    "relabel",
    "remove_disambig",
    "replace",
    "reverse",
    "reweight",
    "rmepsilon",
    "shortest_distance",
    "shortest_path",
    "synchronize",
    "topsort",
    "union",
]

_document((globals()[name] for name in __all__ if name != "Fst"), "fst.")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
