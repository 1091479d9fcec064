"""The searches that are compared. Each makes texts of the same scores: greedy, warpfst, and the peers that are installed.

A search is named KIND or KIND:OPTION=VALUE,OPTION=VALUE, such as warpfst:acoustic_scale=0.7,beam=12.
"""

from __future__ import annotations

import importlib.util
import math
import pathlib
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from fetch import unpacked

import warpfst as wf
from warpfst import integrations
from warpfst.integrations.tokens import WORD_START

_MAX_GRAPH_BYTES = 100 << 20  # larger models are read while decoding, from a file of the cache
_STRESS = re.compile(r"[0-9]+$")
Spellings = dict[str, list[list[str]]]  # word -> tokens, one list for each pronunciation


class NotApplicable(Exception):
    """A search that this model or this machine has not. The message says why."""


class Vocabulary:
    """The words of the search, spelled with the model's tokens, and the language model. `transducer`: the file of a transducer's predictor and joiner."""

    def __init__(self, tokens: integrations.ModelTokens, lm: pathlib.Path | None, lexicon: pathlib.Path | None, cache: pathlib.Path, transducer: pathlib.Path | None = None) -> None:
        self.tokens, self.lm_path, self.transducer = tokens, lm, transducer
        self.lm: Any = None if lm is None else self._open(lm, cache)
        self.phones = None if lexicon is None else pronunciations(lexicon, tokens)
        words = [word for word, _ in self.lm.words] if self.lm is not None else [] if lexicon is None else words_of(lexicon)
        words = [word for word in words if not re.fullmatch(r"<.+>|#\d+", word)]
        if self.phones is not None:
            self.spellings: Spellings = {word: self.phones[word] for word in words if word in self.phones} if self.lm is not None else self.phones
        else:
            spelled = {word: tokens.spell(word) for word in words}
            self.spellings = {word: [pieces] for word, pieces in spelled.items() if pieces}
        self.num_missing = len(words) - len(self.spellings)
        self._graphs: dict[str, wf.Graph] = {}
        if words and not self.spellings:
            raise SystemExit(f"{tokens.source}: none of the words of {lm or lexicon} can be spelled with the tokens; a phone model needs a lexicon of its phones")

    @staticmethod
    def _open(path: pathlib.Path, cache: pathlib.Path) -> Any:
        """A small model becomes a part of the graph. A large one is converted once, and read while decoding."""
        if path.stat().st_size <= _MAX_GRAPH_BYTES or path.suffix == ".wlm":
            return wf.LM.open(path)
        made = cache / f"{path.name}.wlm"
        if not made.exists():
            wf.LM.convert(path, made.with_suffix(".part")).close()
            made.with_suffix(".part").replace(made)
        return wf.LM.open(made)

    def graph(self, options: dict[str, Any]) -> wf.Graph:
        """The decoding graph. Searches with the same options of wf.build_ctc_graph share it."""
        options = {"topology": "transducer", **options} if self.transducer is not None else options
        key = repr(sorted(options.items()))
        if key not in self._graphs:
            self._graphs[key] = self.tokens.graph(self.lm, lexicon=self.spellings or None, **options)
        return self._graphs[key]

    @property
    def in_graph(self) -> bool:
        """Whether the language model, if there is one, is a part of the graph."""
        return self.lm is not None and not self.lm.info().get("mapped", True)

    def phrases(self, path: pathlib.Path) -> list[str]:
        """The phrases of a file, one a line, in the case of the words. Those with words that the search has not are left out."""
        texts = [" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        found = [next((text for text in (one, one.upper(), one.lower()) if all(word in self.spellings for word in text.split())), None) for one in texts]
        known = [one for one in found if one is not None]
        if not known:
            raise ValueError(f"{path}: no phrase whose words are among the {len(self.spellings):,} of the search")
        if len(known) < len(texts):
            print(f"{path}: {len(texts) - len(known)} of {len(texts)} phrases have words that the search has not, and are left out", file=sys.stderr)
        return known

    def case(self) -> Any:
        """str.upper or str.lower if the words are written in another case than the tokens, as LibriSpeech's are for models of lower case; else str."""
        for word, (pieces, *_) in self.spellings.items():
            text = self.tokens.text(pieces)
            if text != word:
                return str.upper if text.upper() == word else str.lower if text.lower() == word else str
        return str


def words_of(lexicon: pathlib.Path) -> list[str]:
    return list(dict.fromkeys(line.split(maxsplit=1)[0] for line in lexicon.read_text(encoding="utf-8").splitlines() if line.strip()))


def pronunciations(lexicon: pathlib.Path, tokens: integrations.ModelTokens) -> Spellings | None:
    """Those of a lexicon of phones if the tokens are its phones, with or without their marks of stress (AH0); else None, and words are spelled with the tokens."""
    found: Spellings = {}
    for line in lexicon.read_text(encoding="utf-8").splitlines():
        word, *phones = line.split()[:1] + line.split()[1:]
        if phones:
            found.setdefault(word, []).append(phones)
    phones_used = {phone for several in found.values() for phones in several for phone in phones}
    known = set(tokens.names)
    if not phones_used <= known:
        if not {_STRESS.sub("", phone) for phone in phones_used} <= known:
            return None
        found = {word: [[_STRESS.sub("", phone) for phone in phones] for phones in several] for word, several in found.items()}
    return {word: list(map(list, dict.fromkeys(map(tuple, several)))) for word, several in found.items()}


class Search:
    """Makes texts of scores, float32 [frames, tokens]. `about`: what the table says of it."""

    about = ""
    has_weights = False  # can `set_weights` be called?

    def decode(self, scores: Sequence[np.ndarray]) -> list[str]:
        raise NotImplementedError

    def set_weights(self, lm_weight: float, word_score: float) -> None:
        """Ranks texts by log P(scores) + lm_weight * log P(text) + word_score * number of words, in natural logarithms."""
        raise NotImplementedError


class Greedy(Search):
    """The best token of each frame, without repetitions and blanks."""

    about = "no language model"

    def __init__(self, vocabulary: Vocabulary, **options: Any) -> None:
        self._tokens = tokens = vocabulary.tokens
        if vocabulary.phones is not None:
            raise NotApplicable("the model's tokens are phones")
        self._transducer = None
        if vocabulary.transducer is not None:  # the best symbol of each step, by warpfst
            self._transducer = wf.Decoder(tokens.graph(topology="transducer"), transducer=vocabulary.transducer, greedy=True, **options)

    def decode(self, scores: Sequence[np.ndarray]) -> list[str]:
        if self._transducer is not None:
            return [self._tokens.text(word.text for word in result.words) for result in self._transducer.decode(list(scores))]
        return [self._text(one.argmax(axis=1)) for one in scores]

    def _text(self, best: np.ndarray) -> str:
        changed = np.concatenate([[True], best[1:] != best[:-1]])
        return self._tokens.text(self._tokens.names[column] for column in best[changed & (best != self._tokens.blank)])


class Warpfst(Search):
    """Options: those of wf.Decoder and wf.build_ctc_graph, and phrases=FILE: phrases to favour in all utterances, with the usual boosts."""

    def __init__(self, vocabulary: Vocabulary, phrases: str | None = None, **options: Any) -> None:
        self._phrases = None if phrases is None else vocabulary.phrases(pathlib.Path(phrases))
        graph_names = {option.name for option in wf.describe("ctc_graph")}
        self._graph = vocabulary.graph({name: value for name, value in options.items() if name in graph_names})
        self._vocabulary, self._options = vocabulary, {name: value for name, value in options.items() if name not in graph_names}
        self._decoder = self._made(self._options)
        self.has_weights = vocabulary.lm is not None
        threads, device = options.get("num_threads", 1), options.get("device", "cpu")
        place = "" if vocabulary.lm is None else ", model in the graph" if vocabulary.in_graph else ", model read while decoding"
        self.about = f"{f'{threads} threads' if device == 'cpu' and threads != 1 else '1 thread' if device == 'cpu' else device}{place}"

    def _made(self, options: dict[str, Any]) -> wf.Decoder:
        vocabulary = self._vocabulary
        if vocabulary.transducer is None:
            return vocabulary.tokens.decoder(vocabulary.lm, graph=self._graph, **options)
        return wf.Decoder(self._graph, lm=None if vocabulary.in_graph else vocabulary.lm, transducer=vocabulary.transducer, **options)

    def set_weights(self, lm_weight: float, word_score: float) -> None:
        """The language model's weight is 1 here, so all is divided by lm_weight. The beam is in the same scale, but gets no narrower. The decoder scales a transducer's itself."""
        beam = self._options.get("beam", wf.DecoderConfig()["beam"]) * max(1, 1 / lm_weight)
        given = beam if self._vocabulary.transducer is None else beam * lm_weight
        weights = {"acoustic_scale": 1 / lm_weight, "word_score": word_score / lm_weight, "beam": given}
        self._decoder = self._made({**self._options, **weights})

    def decode(self, scores: Sequence[np.ndarray]) -> list[str]:
        results, tokens = self._decoder.decode(list(scores), boost=self._phrases), self._vocabulary.tokens
        return [result.text if self._vocabulary.spellings else tokens.text(word.text for word in result.words) for result in results]


class Pyctcdecode(Search):
    """Options: those of build_ctcdecoder (alpha, beta, ...) and of decode (beam_width, ...). Defaults are pyctcdecode's."""

    about = "1 thread"
    _BUILD = ("alpha", "beta", "unk_score_offset", "lm_score_boundary")

    def __init__(self, vocabulary: Vocabulary, **options: Any) -> None:
        if vocabulary.phones is not None or vocabulary.transducer is not None:
            raise NotApplicable("it has no lexicon, and the model's tokens are phones" if vocabulary.phones is not None else "the model is a transducer")
        from pyctcdecode import build_ctcdecoder

        build = {name: options.pop(name) for name in self._BUILD if name in options}
        self._options, model = options, kenlm_file(vocabulary.lm_path)
        unigrams = list(vocabulary.spellings) if model else None
        self.has_weights = model is not None
        self._decoder = build_ctcdecoder(self._labels(vocabulary), str(model) if model else None, unigrams, **build)

    @staticmethod
    def _labels(vocabulary: Vocabulary) -> list[str]:
        """The tokens in its convention, and in the case of the words."""
        tokens, case = vocabulary.tokens, vocabulary.case()
        labels = ["" if column == tokens.blank else " " if name == tokens.separator else name for column, name in enumerate(tokens.names)]
        if [name for name in labels if name.startswith(WORD_START)] == [WORD_START]:  # no pieces: a token of its own begins each word
            labels[labels.index(WORD_START)] = " "
        labels = [name if re.fullmatch(r"<.+>|\[.+\]", name) else case(name) for name in labels]
        if len(set(labels)) < len(labels):
            raise NotApplicable("the model has tokens of both cases, and the words of the language model have one")
        return labels

    def set_weights(self, lm_weight: float, word_score: float) -> None:
        self._decoder.reset_params(alpha=lm_weight, beta=word_score)

    def decode(self, scores: Sequence[np.ndarray]) -> list[str]:
        return [self._decoder.decode(one, **self._options) for one in scores]


class Flashlight(Search):
    """flashlight-text's LexiconDecoder, as torchaudio's ctc_decoder makes it, with its defaults; options are those of ctc_decoder."""

    about = "1 thread"
    _DEFAULTS = {"beam_size": 50, "beam_size_token": 0, "beam_threshold": 50.0, "lm_weight": 2.0, "word_score": 0.0, "unk_score": -math.inf, "sil_score": 0.0, "log_add": False}  # noqa: RUF012

    def __init__(self, vocabulary: Vocabulary, **options: Any) -> None:
        unknown = set(options) - set(self._DEFAULTS)
        if unknown:
            raise TypeError(f"{', '.join(sorted(unknown))}: expected {', '.join(self._DEFAULTS)}")
        if not vocabulary.spellings or vocabulary.transducer is not None:
            raise NotApplicable("it needs words: a language model or a lexicon" if vocabulary.transducer is None else "the model is a transducer")
        from flashlight.lib.text import decoder as flashlight
        from flashlight.lib.text.dictionary import Dictionary

        tokens, given = vocabulary.tokens, {**self._DEFAULTS, **options}
        given["beam_size_token"] = given["beam_size_token"] or len(tokens.names)
        self._words = Dictionary([*vocabulary.spellings, "<unk>"])
        model = kenlm_file(vocabulary.lm_path)
        self._lm = flashlight.ZeroLM() if model is None else self._kenlm(model)
        silence = tokens.blank if tokens.separator is None else tokens.names.index(tokens.separator)
        self.has_weights = model is not None
        self._given, trie, unknown_word = given, self._trie(flashlight, vocabulary, silence), self._words.get_index("<unk>")

        def make(options: dict[str, Any]) -> Any:
            settings = flashlight.LexiconDecoderOptions(**options, criterion_type=flashlight.CriterionType.CTC)
            return flashlight.LexiconDecoder(settings, trie, self._lm, silence, tokens.blank, unknown_word, [], False)

        self._make, self._decoder = make, make(given)

    def _kenlm(self, model: pathlib.Path) -> Any:
        try:
            from flashlight.lib.text.decoder.kenlm import KenLM
        except ImportError as error:
            raise NotApplicable(f"it reads language models with KenLM's package: pip install kenlm ({error})") from error
        return KenLM(str(model), self._words)

    def _trie(self, flashlight: Any, vocabulary: Vocabulary, silence: int) -> Any:
        column = {name: number for number, name in enumerate(vocabulary.tokens.names)}
        end = [] if vocabulary.tokens.separator is None else [silence]  # words of characters end with the token between words
        trie, start = flashlight.Trie(len(column), silence), self._lm.start(False)
        for word, several in vocabulary.spellings.items():
            label = self._words.get_index(word)
            _, score = self._lm.score(start, label)
            for pieces in several:
                trie.insert([*(column[piece] for piece in pieces), *end], label, score)
        trie.smear(flashlight.SmearingMode.MAX)
        return trie

    def set_weights(self, lm_weight: float, word_score: float) -> None:
        """KenLM's package gives flashlight logarithms to base 10."""
        self._decoder = self._make({**self._given, "lm_weight": lm_weight * math.log(10), "word_score": word_score})

    def decode(self, scores: Sequence[np.ndarray]) -> list[str]:
        return [self._text(np.ascontiguousarray(one, dtype=np.float32)) for one in scores]

    def _text(self, scores: np.ndarray) -> str:
        found = self._decoder.decode(scores.ctypes.data, *scores.shape)
        return " ".join(self._words.get_entry(label) for label in found[0].words if label >= 0) if found else ""


def kenlm_file(lm: pathlib.Path | None) -> pathlib.Path | None:
    """The language model in a form that KenLM's package reads: it reads no compressed files."""
    if lm is not None and lm.suffix == ".wlm":
        raise NotApplicable("it does not read .wlm files")
    return unpacked(lm) if lm is not None and lm.suffix == ".gz" else lm


_KINDS = {"greedy": (Greedy, ()), "warpfst": (Warpfst, ()), "pyctcdecode": (Pyctcdecode, ("pyctcdecode", "kenlm")), "flashlight": (Flashlight, ("flashlight.lib.text",))}


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # of the package that it is in
        return False


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def open_search(spec: str, vocabulary: Vocabulary, defaults: dict[str, Any]) -> Search:
    """The search of a SPEC. `defaults`: options of warpfst that SPEC may overrule. NotApplicable if it cannot run here; SystemExit for a wrong SPEC."""
    kind, _, listed = spec.partition(":")
    options = dict(pair.partition("=")[::2] for pair in listed.split(",") if pair)
    if kind not in _KINDS:
        raise SystemExit(f"no search {kind!r}: expected {', '.join(_KINDS)}")
    made, modules = _KINDS[kind]
    missing = [module for module in modules if not _installed(module)]
    if missing:
        raise NotApplicable(f"not installed: {', '.join(missing)}")
    values = {name: _value(text) for name, text in options.items()}
    try:
        ours = kind == "warpfst" or (kind == "greedy" and vocabulary.transducer is not None)
        return made(vocabulary, **{**(defaults if ours else {}), **values})
    except (TypeError, ValueError, wf.Error) as error:
        raise SystemExit(f"{spec}: {error}") from error


def open_searches(specs: Iterable[str], vocabulary: Vocabulary, defaults: dict[str, Any]) -> tuple[dict[str, Search], dict[str, str]]:
    """The searches by SPEC, and why the others are left out."""
    opened, left_out = {}, {}
    for spec in specs:
        try:
            opened[spec] = open_search(spec, vocabulary, defaults)
        except NotApplicable as error:
            left_out[spec] = str(error)
    return opened, left_out
