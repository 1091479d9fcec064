"""warpfst: weighted finite-state transducers and speech decoding, on CPUs and NVIDIA GPUs.

    import warpfst as wf
    graph = wf.build_ctc_graph(tokens="tokens.txt", lexicon="lexicon.txt", lm="lm.arpa.gz")
    for result in wf.Decoder(graph, acoustic_scale=0.7).decode(log_probs, lengths):
        print(result.text)

Costs are negative natural logarithms. Label 0 is epsilon. Options are keyword arguments with the names of the C library's options; `describe("decoder")` lists
them. Graph, Fst, LM and Lexicon objects are immutable and can be shared by threads. A Decoder runs one call at a time; calls from other threads wait.
The package has no dependencies: log_probs may be any object with DLPack or the buffer protocol.
"""

import typing as _typing

from ._library import set_log
from ._library import version as _version
from .align import AlignedToken, AlignedUnit, Alignment, HmmAlignment, align, align_hmm
from .archives import FarReader, FarWriter
from .batches import Composer, DeviceArray, DeviceFst, FstBatch
from .decoder import Decoder, cuda_available, cuda_reason, spot
from .error_rate import Counts, Wer, read_transcripts, wer
from .errors import (
    ArgumentError,
    CancelledError,
    DeviceError,
    Error,
    FileError,
    FormatError,
    IgnoredOptionWarning,
    InputWarning,
    LimitError,
    NegativeCycleError,
    NotDeterminizableError,
    OutOfMemoryError,
    StateError,
    UnsupportedError,
)
from .fst import Arc, Fst
from .graphs import Graph, build_ctc_graph, build_hmm_graph
from .lattice import (
    CompactLattice,
    ConfidentWord,
    Lattice,
    LatticeArc,
    LatticePath,
    LatticeReader,
    LatticeWriter,
    Mbr,
    ScorerCosts,
    TimedLabel,
    WordAligner,
    determinize_lattices,
)
from .lexicon import Hmm, Lexicon, ctc_topology, token_blank
from .lm import LM
from .operations import (
    Encoder,
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
    isomorphic,
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
from .options import DecoderConfig, Option, Options, describe, tables
from .options import document as _document
from .rescoring import Rescored, Rescorer
from .results import Hypothesis, Result, Results, Word
from .rnnlm import Epoch, RnnLM
from .scorers import Scorer, boost_by_length
from .scores import Matrix, ScoreReader, ScoreWriter
from .streams import Partial, Stream, StreamEvent
from .symbols import Symbols
from .transducer import Transducer

if _typing.TYPE_CHECKING:
    from .aio import AsyncStream, AsyncStreams
    from .integrations import from_espnet, from_huggingface, from_icefall, from_nemo, from_sentencepiece, from_torchaudio, from_wenet

__version__ = _version()
__all__ = [
    "LM",
    "AlignedToken",
    "AlignedUnit",
    "Alignment",
    "Arc",
    "ArgumentError",
    "AsyncStream",
    "AsyncStreams",
    "CancelledError",
    "CompactLattice",
    "Composer",
    "ConfidentWord",
    "Counts",
    "Decoder",
    "DecoderConfig",
    "DeviceArray",
    "DeviceError",
    "DeviceFst",
    "Encoder",
    "Epoch",
    "Error",
    "FarReader",
    "FarWriter",
    "FileError",
    "FormatError",
    "Fst",
    "FstBatch",
    "Graph",
    "Hmm",
    "HmmAlignment",
    "Hypothesis",
    "IgnoredOptionWarning",
    "InputWarning",
    "Lattice",
    "LatticeArc",
    "LatticePath",
    "LatticeReader",
    "LatticeWriter",
    "Lexicon",
    "LimitError",
    "Matrix",
    "Mbr",
    "NegativeCycleError",
    "NotDeterminizableError",
    "Option",
    "Options",
    "OutOfMemoryError",
    "Partial",
    "Rescored",
    "Rescorer",
    "Result",
    "Results",
    "RnnLM",
    "ScoreReader",
    "ScoreWriter",
    "Scorer",
    "ScorerCosts",
    "StateError",
    "Stream",
    "StreamEvent",
    "Symbols",
    "TimedLabel",
    "Transducer",
    "UnsupportedError",
    "Wer",
    "Word",
    "WordAligner",
    "__version__",
    "add_self_loops",
    "align",
    "align_hmm",
    "arcmap",
    "arcsort",
    "boost_by_length",
    "build_ctc_graph",
    "build_hmm_graph",
    "closure",
    "compose",
    "compose_batch",
    "compose_with_origins",
    "concat",
    "condense",
    "connect",
    "ctc_topology",
    "cuda_available",
    "cuda_reason",
    "describe",
    "determinize",
    "determinize_lattices",
    "difference",
    "disambiguate",
    "epsilons_last",
    "epsnormalize",
    "equal",
    "equivalent",
    "factor_weight",
    "forward_score",
    "forward_score_gradients",
    "from_espnet",
    "from_huggingface",
    "from_icefall",
    "from_nemo",
    "from_sentencepiece",
    "from_torchaudio",
    "from_wenet",
    "invert",
    "isomorphic",
    "minimize",
    "project",
    "prune",
    "push",
    "randequivalent",
    "randgen",
    "read_transcripts",
    "relabel",
    "remove_disambig",
    "replace",
    "reverse",
    "reweight",
    "rmepsilon",
    "set_log",
    "shortest_distance",
    "shortest_path",
    "spot",
    "synchronize",
    "tables",
    "token_blank",
    "topsort",
    "union",
    "wer",
]

_document(globals()[name] for name in __all__ if name in globals())
_LATE = {"AsyncStream": "aio", "AsyncStreams": "aio", **dict.fromkeys(("from_espnet", "from_huggingface", "from_icefall", "from_nemo", "from_sentencepiece", "from_torchaudio", "from_wenet"), "integrations")}


def __getattr__(name: str) -> _typing.Any:
    """Imports names on first use whose modules import much: asyncio, or readers of other toolkits' files."""
    from importlib import import_module

    if name == "integrations":
        return import_module(".integrations", __name__)
    if name == "LargeLM":
        import warnings

        warnings.warn("warpfst.LargeLM is now warpfst.LM; the old name goes in version 0.4", DeprecationWarning, stacklevel=2)
        return LM
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    """What completion shows: the public names, also those that are imported on first use, and nothing that only this file needs."""
    return sorted({*__all__, "integrations", *(name for name in globals() if name.startswith("__"))})
