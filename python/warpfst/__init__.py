"""warpfst: weighted finite-state transducers and speech decoding, on CPUs and NVIDIA GPUs.

    import warpfst as wf
    graph = wf.build_ctc_graph(tokens="tokens.txt", lexicon="lexicon.txt", lm="lm.arpa.gz")
    for result in wf.Decoder(graph, acoustic_scale=0.7).decode(log_probs, lengths):
        print(result.text)

The names here are those that decoding needs. More is in modules:

    warpfst.fst           operations on transducers: compose, determinize, minimize, ...
    warpfst.strings       transducers made from strings, and rules for text
    warpfst.compat        replacements for pyctcdecode, flashlight-text and torchaudio's decoders
    warpfst.integrations  decoders for models of HuggingFace, NeMo, ESPnet, icefall, WeNet, torchaudio
    warpfst.transcribe    audio to text
    warpfst.torch         costs of transducers with gradients, for torch

Costs are negative natural logarithms. Label 0 is epsilon. Options are keyword arguments with the
names of the C library's options; `describe("decoder")` and `help(Decoder)` list them. Graph, Fst, LM
and Lexicon objects are immutable and can be shared by threads. A Decoder runs one call at a time;
calls from other threads wait. The package has no dependencies: log_probs may be any object with
DLPack or the buffer protocol.
"""

import typing as _typing

from . import fst
from ._library import set_log
from ._library import version as _version
from .align import AlignedToken, AlignedUnit, AlignedWord, Alignment, HmmAlignment, WordAlignment, align, align_hmm, align_words
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
from .fst.container import Fst
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
from .option_calls import document as _document
from .option_tables import Option, describe, tables
from .options import DecoderConfig, Options
from .rescoring import Rescored, Rescorer
from .results import Hypothesis, Result, Results, Word
from .rnnlm import Epoch, RnnLM
from .scorers import Scorer, boost_by_length
from .scores import Matrix, ScoreReader, ScoreWriter
from .streams import Partial, Stream, StreamEvent
from .symbols import Symbols
from .transducer import Transducer

if _typing.TYPE_CHECKING:
    from . import compat as compat
    from . import generation as generation
    from . import integrations as integrations
    from . import strings as strings
    from . import torch as torch
    from . import transcribe as transcribe
    from .aio import AsyncStream, AsyncStreams
    from .integrations import from_espnet, from_huggingface, from_icefall, from_nemo, from_sentencepiece, from_torchaudio, from_wenet

__version__ = _version()
__all__ = [
    "LM",
    "AlignedToken",
    "AlignedUnit",
    "AlignedWord",
    "Alignment",
    "ArgumentError",
    "AsyncStream",
    "AsyncStreams",
    "CancelledError",
    "CompactLattice",
    "ConfidentWord",
    "Counts",
    "Decoder",
    "DecoderConfig",
    "DeviceError",
    "Epoch",
    "Error",
    "FileError",
    "FormatError",
    "Fst",
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
    "WordAlignment",
    "__version__",
    "align",
    "align_hmm",
    "align_words",
    "boost_by_length",
    "build_ctc_graph",
    "build_hmm_graph",
    "ctc_topology",
    "cuda_available",
    "cuda_reason",
    "describe",
    "determinize_lattices",
    "from_espnet",
    "from_huggingface",
    "from_icefall",
    "from_nemo",
    "from_sentencepiece",
    "from_torchaudio",
    "from_wenet",
    "fst",
    "read_transcripts",
    "set_log",
    "spot",
    "tables",
    "token_blank",
    "wer",
]

_document(globals()[name] for name in __all__ if name in globals())
_LATE = {  # names that are imported on first use: their modules import much, such as asyncio
    **dict.fromkeys(("AsyncStream", "AsyncStreams"), "aio"),
    **dict.fromkeys(("from_espnet", "from_huggingface", "from_icefall", "from_nemo", "from_sentencepiece", "from_torchaudio", "from_wenet"), "integrations"),
}
_MODULES = ("compat", "generation", "integrations", "strings", "torch", "transcribe")  # modules of their own, imported on first use
_NEVER_HERE = ("Comparison", "Composition", "Fst", "FstBuilder", "StringPath", "Sums", "Weight", "is_stochastic", "lenient_compose")
_OLD = {name: f"fst.{name}" for name in fst.__all__ if name not in _NEVER_HERE}  # old names: the new ones
_OLD["LargeLM"] = "LM"

if not _typing.TYPE_CHECKING:  # type checkers would take every name for one of the package

    def __getattr__(name: str) -> _typing.Any:
        """Imports what is imported on first use. Old names give their objects, with a warning."""
        from importlib import import_module

        if name in _MODULES:
            return import_module(f".{name}", __name__)
        if name in _LATE:
            return getattr(import_module(f".{_LATE[name]}", __name__), name)
        if name not in _OLD:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import warnings

        new = _OLD[name]
        warnings.warn(f"warpfst.{name} is now warpfst.{new}; the old name goes in version 0.4", DeprecationWarning, stacklevel=2)
        return LM if new == "LM" else getattr(fst, name)


def __dir__() -> list[str]:
    """What completion shows: the public names, also those that are imported on first use, and nothing that only this file needs."""
    modules = {name for name in _MODULES if name != "torch" or name in globals()}  # torch may not be installed
    return sorted({*__all__, *modules, *(name for name in globals() if name.startswith("__"))})
