"""n-gram language models."""

from __future__ import annotations

import ctypes
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _abi
from ._library import Handle, Progress, ProgressGuard, as_dict, call, check_list, create, encode_path, lib, sized
from .errors import ArgumentError
from .fst.container import Fst
from .options import c_options
from .rnnlm import RnnLM
from .symbols import Symbols, SymbolsLike, as_symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import ArpaOptions, LmConvertOptions, LmEstimateOptions, LmFstOptions, LmMixOptions, LmPruneOptions


class LM(Handle):
    """A back-off n-gram model, in memory or in a memory-mapped .wlm file. Immutable and thread-safe. What a use needs besides is made at the first such use, and kept."""

    _free = lib.wf_lm_free

    @staticmethod
    def open(path: str | os.PathLike[str], *, mapped: bool = False) -> LM | RnnLM:
        """Opens a language model of any kind, which is detected from the file: an n-gram model of any format, or a recurrent model (NAME with NAME.nnet in the same folder, or
        NAME.safetensors), which is an RnnLM. `Decoder(lm=...)` accepts both.

        A .wlm file (`LM.convert`, `warpfst lm convert`) is memory-mapped and opens at once. Other n-gram models are read into memory: ARPA, plain or gzipped, KenLM's binary
        trie, CMU Sphinx's binary model. `mapped`: converts these to a memory-mapped file instead, in a temporary folder, which needs little memory at any size of the model.
        """
        if is_recurrent(path):
            return RnnLM.open(path)
        return LM(create("wf_lm_open_mapped", encode_path(path))) if mapped else LM.read(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str], words: SymbolsLike | None = None, *, progress: Progress | None = None, **options: Unpack[ArpaOptions]) -> LM:
        """Opens an n-gram model of any format, as `open` does. `words`: word table that gives the labels (default: the model's words)."""
        table = None if words is None else as_symbols(words, "words")
        with ProgressGuard(progress) as guard:
            return cls(create("wf_lm_open", encode_path(path), table and table.address, c_options("arpa", options), after=(None, guard.pointer)))

    @classmethod
    def convert(cls, source: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Unpack[LmConvertOptions]) -> LM:
        """Makes a memory-mapped file (.wlm) from a model of any format, an ARPA file of any size, and opens it.

        With `subtract`, the path of the small model of a graph, the file has the difference of both: its costs may be negative, and it serves for decoding with that graph.
        """
        with ProgressGuard(progress) as guard:
            call("wf_lm_convert", encode_path(source), encode_path(path), None, c_options("lm_convert", options), None, None, guard.pointer)
        return cls.read(path)

    @classmethod
    def build(cls, arpa: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Progress | None = None, **options: Unpack[LmConvertOptions]) -> LM:
        """The old name of `convert`."""
        warnings.warn("warpfst.LM.build is now warpfst.LM.convert; the old name goes in version 0.4", DeprecationWarning, stacklevel=2)
        return cls.convert(arpa, path, progress=progress, **options)

    @classmethod
    def estimate(
        cls, texts: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], vocabulary: SymbolsLike | None = None, *, progress: Progress | None = None, **options: Unpack[LmEstimateOptions]
    ) -> LM:
        """Estimates a model from text files with interpolated modified Kneser-Ney smoothing, as KenLM's lmplz does.

        `texts`: a path or several, plain or gzipped, with a sentence per line; an empty line is a sentence without words. `vocabulary`: the words of the model; other words
        count as <unk> (default: all words of the texts). A text that is too small for discounts of an order gets those of discount_fallback, with a warning.
        """
        paths = [texts] if isinstance(texts, (str, bytes, os.PathLike)) else list(texts)
        array = (ctypes.c_char_p * len(paths))(*(encode_path(path) for path in paths))
        table = None if vocabulary is None else as_symbols(vocabulary)
        with ProgressGuard(progress) as guard:
            return cls(create("wf_lm_estimate", array, len(paths), table and table.address, c_options("lm_estimate", options), after=(None, guard.pointer)))

    @classmethod
    def mix(cls, lms: Iterable[LM], weights: Iterable[float] | None = None, *, progress: Progress | None = None, **options: Unpack[LmMixOptions]) -> LM:
        """Mixes models by linear interpolation, as SRILM's `ngram -mix-lm` does. `weights`: one per model, scaled to sum to 1 (default: equal); mix_weights finds good ones.

        A word that a model lacks has probability 0 in it.
        """
        models = list(check_list(lms, "lms"))
        shares = None if weights is None else [float(weight) for weight in weights]
        if shares is not None and len(shares) != len(models):
            raise ValueError(f"{len(models)} models, but {len(shares)} weights")
        array = None if shares is None else (ctypes.c_double * len(shares))(*shares)
        with ProgressGuard(progress) as guard:
            return cls(create("wf_lm_mix", addresses(models), len(models), array, c_options("lm_mix", options), after=(None, guard.pointer)))

    @staticmethod
    def mix_weights(lms: Iterable[LM], text: str | os.PathLike[str], *, progress: Progress | None = None, **options: Unpack[LmMixOptions]) -> list[float]:
        """The weights for mix that give a held-out text the highest probability, found by the EM algorithm. Words that no model has do not count."""
        models = list(check_list(lms, "lms"))
        weights = (ctypes.c_double * len(models))()
        with ProgressGuard(progress) as guard:
            call("wf_lm_mix_weights", addresses(models), len(models), encode_path(text), c_options("lm_mix", options), weights, None, guard.pointer)
        return list(weights)

    def info(self) -> dict[str, Any]:
        """order, num_ngrams (a list, by order), num_words, num_states, num_arcs, num_bytes, the labels bos, eos and unk, and what wf_lm_info says of a .wlm file (`mapped`)."""
        info = sized(_abi.wf_lm_info)
        call("wf_lm_get_info", self.address, ctypes.byref(info))
        values = as_dict(info)
        return {**values, "num_ngrams": list(values["num_ngrams"][1 : info.order + 1])}

    @property
    def words(self) -> Symbols:
        words = Symbols._share(lib.wf_lm_words(self.address))
        assert words is not None
        return words

    def costs(self, sentence: str | Sequence[str], bos: bool = True, eos: bool = True) -> list[float]:
        """-ln P of each word of a sentence, and of </s>. Words are given as a text with spaces between them, or as a list.

        bos=False: the words have no history before them, not <s>. eos=False: without </s>. Costs of a difference can be negative.
        """
        words, address = self.words, self.address
        state, next_state = lib.wf_lm_start(address) if bos else 0, ctypes.c_uint32()  # state 0: the empty history
        costs = []
        for text in sentence.split() if isinstance(sentence, str) else sentence:
            label = words.find(text)
            costs.append(lib.wf_lm_step(address, state, -1 if label is None else label, ctypes.byref(next_state), None))
            state = next_state.value
        return [*costs, lib.wf_lm_final(address, state, None)] if eos else costs

    def score(self, sentence: str | Sequence[str], bos: bool = True, eos: bool = True) -> float:
        """log10 P(<s> sentence </s>), like KenLM's score. `bos` and `eos`: as in `costs`."""
        return -sum(self.costs(sentence, bos, eos)) / math.log(10)

    def perplexity(self, sentences: Iterable[str | Sequence[str]]) -> float:
        """exp of the mean cost of words and sentence ends; infinite if a word has probability 0. A difference of two models has none."""
        if self.info()["difference"]:
            raise ArgumentError("the difference of two models has no perplexity")
        costs = [cost for sentence in check_list(sentences, "sentences") for cost in self.costs(sentence)]
        return math.exp(sum(costs) / len(costs)) if costs and max(costs) < math.inf else math.inf

    def write_arpa(self, path: str | os.PathLike[str]) -> None:
        call("wf_lm_write_arpa", self.address, encode_path(path))

    def prune(self, vocabulary: SymbolsLike | None = None, *, progress: Progress | None = None, **options: Unpack[LmPruneOptions]) -> LM:
        """A smaller model, pruned by relative entropy, to numbers of n-grams, or to a vocabulary."""
        table = None if vocabulary is None else as_symbols(vocabulary, "vocabulary")
        with ProgressGuard(progress) as guard:
            return LM(create("wf_lm_prune", self.address, table and table.address, c_options("lm_prune", options), after=(None, guard.pointer)))

    def to_fst(self, **options: Unpack[LmFstOptions]) -> Fst:
        """The model as an acceptor over its words. backoff="failure" with a backoff_label is for compose(graph.fst, ..., phi_label=backoff_label): decoding with the
        composition gives the same costs as decoding with the graph and this model as a scorer."""
        return Fst(create("wf_lm_to_fst", self.address, c_options("lm_fst", options)))

    def verify(self, progress: Progress | None = None) -> None:
        """Checks the checksums, numbers and look-up tables of a .wlm file. Models in memory were checked when they were read."""
        with ProgressGuard(progress) as guard:
            call("wf_lm_verify", self.address, guard.pointer)

    def make_table(self, *, progress: Progress | None = None) -> None:
        """Builds an in-memory table (21 bytes per n-gram) that makes look-ups of a .wlm file, and of scorers, several times faster on the CPU; costs are the same."""
        with ProgressGuard(progress) as guard:
            call("wf_lm_make_table", self.address, guard.pointer)

    def __repr__(self) -> str:
        return f"<LM: order {self.info()['order']}, {self.info()['num_words']} words>" if self._address else "<LM, closed>"


def addresses(lms: Sequence[LM]) -> ctypes.Array[ctypes.c_void_p]:
    for lm in lms:
        if not isinstance(lm, LM):
            raise TypeError(f"expected an LM, found {type(lm).__name__}")
    return (ctypes.c_void_p * len(lms))(*(lm.address for lm in lms))


def is_recurrent(path: str | os.PathLike[str]) -> bool:
    name = os.fspath(path)
    return name.endswith(".safetensors") or any(os.path.exists(f"{name}.nnet{end}") for end in ("", ".gz"))
