"""Decoding graphs, made from tokens, lexicon and language model, or from any Fst with acoustic labels as input and words as output."""

from __future__ import annotations

import ctypes
import itertools
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from . import _abi
from ._library import Handle, Progress, ProgressGuard, as_dict, call, create, decode_text, encode_text, int32_array, lib, sized
from .errors import ArgumentError
from .fst.container import Fst
from .lattice import WordAligner
from .lexicon import Hmm, Lexicon, Pronunciations
from .lm import LM
from .options import CStruct, check_options, split
from .scorers import boost_by_length
from .symbols import ExtendedSymbols, Symbols, SymbolsLike, as_symbols

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._option_types import ArpaOptions, CtcGraphOptions, DecoderOptions, HmmGraphOptions, LexiconOptions

    class CtcOptions(CtcGraphOptions, LexiconOptions, ArpaOptions):
        """Options of build_ctc_graph besides its named arguments."""

    class HmmOptions(HmmGraphOptions, LexiconOptions, ArpaOptions):
        """Options of build_hmm_graph besides its named arguments."""


Path = Union[str, "os.PathLike[str]"]


class _Spoken(NamedTuple):
    """A phrase to add: its cost, and for each word (label of the word, labels of its tokens)."""

    cost: float
    words: tuple[tuple[int, tuple[int, ...]], ...]


class Graph(Handle):
    """A decoding graph: an fst that was checked and stored in the layout that the decoder needs. Immutable; any number of decoders and threads can share it.

    `columns`: score column of each input label (entry 0 is ignored). None: column = label - 1.
    """

    _free = lib.wf_graph_free

    def __init__(self, fst: Fst, columns: Sequence[int] | None = None) -> None:
        table = None if columns is None else int32_array(columns)
        super().__init__(create("wf_graph_create", Fst._address_of(fst), table, 0 if table is None else len(table)))
        self._columns = None if columns is None else tuple(columns)
        self._given = fst if self.classes else None  # in the C graph the arcs of classes are disabled; pickling and saving need the original
        self._base: Graph = self  # the graph without added words
        self._added: tuple[tuple[str | None, tuple[_Spoken, ...]], ...] = ()
        self._table: Symbols | ExtendedSymbols | None = self.fst.osymbols

    @classmethod
    def load(cls, path: Path, columns: Sequence[int] | None = None) -> Graph:
        """Reads a graph from any file that Fst.read can read. If PATH.columns exists, columns are read from its lines `label column`."""
        beside = pathlib.Path(f"{os.fspath(path)}.columns")
        if columns is None and beside.exists():
            columns = _read_columns(beside)
        return cls(Fst.read(path), columns)

    def save(self, path: Path) -> None:
        """Writes the graph, with added words expanded into it, and its column table, if it has one, to PATH.columns."""
        (self._given or self.to_fst()).write(path)
        beside = pathlib.Path(f"{os.fspath(path)}.columns")
        if self._columns is not None:
            beside.write_text("".join(f"{label} {column}\n" for label, column in enumerate(self._columns) if label and column >= 0), encoding="utf-8")
        else:
            beside.unlink(missing_ok=True)

    @property
    def fst(self) -> Fst:
        """The fst that is searched, without added words (`to_fst` includes them). Of a CTC graph of topology `correct` it is the token graph."""
        return Fst(lib.wf_fst_ref(lib.wf_graph_fst(self.address)))

    def to_fst(self) -> Fst:
        """The fst that is searched, with added words expanded into it."""
        if not self._added:
            return self.fst
        return Fst(create("wf_graph_to_fst", self.address)).with_symbols(self.fst.isymbols, self.words)

    @property
    def words(self) -> Symbols | None:
        """The symbol table of the output labels, including added words; None: no table. With added words, the first call copies the table."""
        return self._table.whole() if isinstance(self._table, ExtendedSymbols) else self._table

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes to which words can be added: `build_ctc_graph(..., classes="<contact>")`."""
        return tuple(decode_text(lib.wf_graph_class(self.address, i)) or "" for i in range(lib.wf_graph_num_classes(self.address)))

    def add_words(
        self,
        phrases: Mapping[str, float | None] | Iterable[str],
        word_class: str | None = None,
        *,
        pronunciations: Pronunciations | None = None,
        **options: Unpack[LexiconOptions],
    ) -> Graph:
        """Returns the graph with words added to a class. It shares memory with this graph, so each utterance or stream can have its own (`decode(..., graphs=)`).

        phrases         words or phrases (words separated by spaces); or a mapping phrase -> cost in nats, -ln P(phrase | class), which is added to the language
                        model's cost of the class. None or not given: 0, or for the class <unk> -boost_by_length(phrase, 0.6), because models give <unk> too low a
                        probability for words that are likely to be said
        word_class      name of the class, such as "<contact>"; None: the graph's only class. To add to several classes, call add_words on the result
        pronunciations  mapping word -> tokens: "AH B", ["AH", "B"], or a list of several of these. Other words are spelled with the tokens
        options         options of spelling: word_start=, merges=, ... (table "lexicon")
        """
        if self._table is None:
            raise ArgumentError("the graph has no symbol table of words")
        given = dict(phrases) if isinstance(phrases, Mapping) else dict.fromkeys([phrases] if isinstance(phrases, str) else phrases)
        unknown = (word_class or next(iter(self.classes), "")) in ("<unk>", "<UNK>")
        costs = {phrase: cost if cost is not None else -boost_by_length(phrase, 0.6) if unknown else 0.0 for phrase, cost in given.items()}
        split_phrases = {phrase: phrase.split() for phrase in costs}
        texts = list(dict.fromkeys(word for words in split_phrases.values() for word in words))
        table = ExtendedSymbols.of(self._table, texts)
        tokens = _tokens_of(texts, pronunciations or {}, self.fst.isymbols, options)
        spoken = []
        for phrase, words in split_phrases.items():
            labels = [table.find(word) or 0 for word in words]
            for variant in itertools.product(*(tokens[word] for word in words)):
                spoken.append(_Spoken(costs[phrase], tuple(zip(labels, variant))))
        return self._with(word_class, tuple(spoken), table)

    def add_spelling(self, lm: Path | LM, word_class: str | None = None, *, lm_scale: float = 1.0, word_cost: float = 0.0) -> Graph:
        """Returns a graph in which a class, such as <unk>, stands for every word that the tokens can spell. The new graph is a copy.

        lm          model over tokens whose sentences are words, or its path: "<s> ▁MA RK </s>"
        word_class  as in add_words
        lm_scale    factor on the costs of `lm`
        word_cost   nats for each such word, besides the cost of the class and that of its spelling; less than 0 for more such words

        The words of the result are tokens; Decoder(graph, join=True) joins them. Which tokens begin words: wf_graph_add_spelling in warpfst_graph.h.
        """
        if self.words is None:
            raise ArgumentError("the graph has no symbol table of words")
        model, words = lm if isinstance(lm, LM) else LM.read(lm), Symbols(dict(self.words), self.words.name)
        name = None if word_class is None else encode_text(word_class)
        with _SpelledGraph(create("wf_graph_add_spelling", self.address, name, model.address, lm_scale, word_cost, words.address)) as spelled:
            return Graph(Fst(create("wf_graph_to_fst", spelled.address)).with_symbols(self.fst.isymbols, words), self._columns)

    def _with(self, word_class: str | None, spoken: tuple[_Spoken, ...], table: ExtendedSymbols) -> Graph:
        phrases = (_abi.wf_added_phrase * len(spoken))()
        kept: list[Any] = []  # keeps the arrays that C borrows alive during the call
        for phrase, (cost, words) in zip(phrases, spoken):
            c_words = (_abi.wf_spoken_word * len(words))()
            for c_word, (label, tokens) in zip(c_words, words):
                labels = (ctypes.c_int32 * len(tokens))(*tokens)
                kept.append(labels)
                c_word.word, c_word.labels, c_word.num_labels = label, labels, len(tokens)
            kept.append(c_words)
            phrase.words, phrase.num_words, phrase.cost = c_words, len(words), cost
        name = None if word_class is None else encode_text(word_class)
        graph = Graph.__new__(Graph)
        Handle.__init__(graph, create("wf_graph_add_phrases", self.address, name, phrases, len(spoken)))
        graph._columns, graph._base, graph._table, graph._given = self._columns, self._base, table, None
        graph._added = (*self._added, (word_class, spoken))
        return graph

    @property
    def word_aligner(self) -> WordAligner | None:
        """The word aligner of the graph, which also covers added words. None: there is none, so word times are estimates."""
        address = lib.wf_graph_word_aligner(self.address)
        return WordAligner(lib.wf_word_aligner_ref(address)) if address else None

    @property
    def columns(self) -> tuple[int, ...] | None:
        return self._columns

    @property
    def min_columns(self) -> int:
        """The number of columns that score matrices need at least."""
        return int(lib.wf_graph_min_columns(self.address))

    def plan(self, num_utterances: int, max_frames: int, *, sum_frames: int = 0, num_processors: int = 0, **options: Unpack[DecoderOptions]) -> dict[str, int]:
        """Bytes that decoding such a batch takes on each GPU (wf_plan). Nothing is allocated on a GPU.

        `num_processors`: plan for a GPU with this many multiprocessors (H200: 132), which need not be present.
        """
        shape = _abi.wf_batch_shape(num_utterances=num_utterances, max_frames=max_frames, sum_frames=sum_frames, num_processors=num_processors)
        out = _abi.wf_plan()
        call("wf_plan_batch", self.address, CStruct("decoder", options).pointer, ctypes.byref(shape), ctypes.byref(out))
        return as_dict(out)

    def plan_streams(self, num_streams: int = 0, *, scored: bool = False, num_processors: int = 0, **options: Unpack[DecoderOptions]) -> dict[str, int]:
        """Bytes that this many open streams take on each GPU, and how many fit (wf_stream_plan). Nothing is allocated on a GPU.

        `scored`: the streams have scorers or added words.
        """
        shape = _abi.wf_stream_shape(num_streams=num_streams, scored=scored, num_processors=num_processors)
        out = _abi.wf_stream_plan()
        call("wf_plan_streams", self.address, CStruct("decoder", options).pointer, ctypes.byref(shape), ctypes.byref(out))
        return as_dict(out)

    def __reduce__(self) -> Any:
        if self._added:
            assert isinstance(self._table, ExtendedSymbols)
            return _restore, (self._base, self._added, self._table.texts)
        return Graph, (self._given or self.fst, self._columns)

    def __repr__(self) -> str:
        if not self._address:
            return "<Graph, closed>"
        added = sum(len(spoken) for _, spoken in self._added)
        return f"<Graph: {self.fst.num_states} states, {self.fst.num_arcs} arcs, {self.min_columns} columns{f', {added} phrases added' if added else ''}>"


class _SpelledGraph(Handle):
    """A wf_graph that becomes an Fst."""

    _free = lib.wf_graph_free


def _restore(graph: Graph, added: Sequence[tuple[str | None, tuple[_Spoken, ...]]], texts: Sequence[str]) -> Graph:
    assert graph._table is not None
    table = ExtendedSymbols.of(graph._table, texts)
    for word_class, spoken in added:
        graph = graph._with(word_class, spoken, table)
    return graph


def _tokens_of(words: Sequence[str], pronunciations: Pronunciations, tokens: Symbols | None, options: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    """The pronunciations of each word as token labels: those given, else the spelling of the word."""
    if tokens is None:
        raise ArgumentError("the graph has no symbol table of tokens")
    given = {word: pronunciations[word] for word in words if word in pronunciations}
    spelled = [word for word in words if word not in given]
    for word in spelled:
        if re.fullmatch(r"#\d+|<.*>", word):
            raise ArgumentError(f"added words: {word!r} cannot be spelled: names in angle brackets and #0, #1, ... stand for no text")
    found: dict[str, list[tuple[int, ...]]] = {word: [] for word in words}
    settings = {"blank": "", **options}
    for source in ([Lexicon.from_dict(given, tokens, blank="")] if given else []) + ([Lexicon.spell(spelled, tokens, **settings)] if spelled else []):
        for word, _, labels in source:
            found[word].append(labels)
    return found


def _read_columns(path: pathlib.Path) -> list[int]:
    pairs = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not all(field.isdecimal() for field in fields) or int(fields[0]) == 0:
            raise ValueError(f"{path}:{number}: {line!r}, expected `label column`")
        pairs[int(fields[0])] = int(fields[1])
    if pairs and max(pairs) > 100 * len(pairs) + 1000:
        raise ValueError(f"{path}: label {max(pairs)} is far larger than the number of labels listed, {len(pairs)}")
    return [pairs.get(label, -1) for label in range(max(pairs, default=0) + 1)]


def as_lexicon(source: Path | Lexicon | Pronunciations, tokens: Symbols, options: Mapping[str, Any]) -> Lexicon:
    if isinstance(source, Lexicon):
        if options:
            raise TypeError(f"{', '.join(options)}: options of reading a lexicon cannot be used with a Lexicon object")
        return source
    if isinstance(source, Mapping):
        return Lexicon.from_dict(source, tokens, **options)
    return Lexicon.read(source, tokens, **options)


def _read_rules(grammar: Path | Fst | None, phrases: Iterable[str] | Path | None, words: Symbols | None) -> Fst | None:
    if phrases is not None:
        return Fst.from_phrases(phrases, words)
    return grammar if isinstance(grammar, Fst) or grammar is None else Fst.read_grammar(grammar, words)


def _words_of(lexicon: Any, lm: Any, classes: str | None, garbage: float) -> Symbols | None:
    """The table with which the language model of a CTC graph is read: the words of the lexicon, the classes, and <unk> if it stands for any sequence."""
    if lexicon is None or lm is None:
        return None
    words: Symbols = lexicon.words()
    for name in (*(classes or "").split(","), "<unk>" if garbage >= 0 else ""):
        if name and words.find(name) is None:
            words.add(name)
    return words


def _build(
    kind: str,
    tokens: Symbols,
    lexicon: Any,
    lm: Any,
    grammar: Any,
    phrases: Any,
    words: SymbolsLike | None,
    options: Mapping[str, Any],
    *,
    hmm: Hmm | None = None,
    defaults: Mapping[str, Any] | None = None,
    progress: Progress | None,
    keep_on_device: bool,
) -> Fst:
    """Makes the graph of wf_graph_build. `defaults`: of options of reading a lexicon, which differ between kinds."""
    if sum(part is not None for part in (lm, grammar, phrases)) > 1:
        raise TypeError("give a language model, a grammar or phrases, not several of them")
    graph_options, lexicon_options, arpa_options = split(options, f"{kind}_graph", "lexicon", "arpa")
    settings = CStruct(f"{kind}_graph", graph_options)
    l_fst = lexicon if isinstance(lexicon, Fst) else None
    table = None if words is None else as_symbols(words, "words")
    if l_fst is not None:
        table = l_fst.osymbols if table is None else table
        if table is None:
            raise TypeError("the lexicon fst has no symbol table of words: give words=")
        lexicon = None
    elif lexicon is not None:
        # For a Lexicon object, the options of reading were given when it was made.
        lexicon = as_lexicon(lexicon, tokens, lexicon_options if isinstance(lexicon, Lexicon) else {**(defaults or {}), **lexicon_options})
    rules = _read_rules(grammar, phrases, table)
    if kind == "ctc" and table is None:
        table = _words_of(lexicon, lm, graph_options.get("classes"), settings.values()["garbage"])
    model = lm if isinstance(lm, LM) or lm is None else LM.read(lm, table, **arpa_options)
    inputs, result = sized(_abi.wf_graph_inputs), _abi.wf_graph_result()
    settings.set_of("graph", "kind", kind)
    reading = CStruct("lexicon", lexicon_options if lexicon is None else {})
    inputs.tokens, inputs.lexicon, inputs.lexicon_fst, inputs.lm, inputs.grammar, inputs.words, inputs.hmm = (
        None if part is None else part.address for part in (tokens, lexicon, l_fst, model, rules, table, hmm)
    )  # by `is None`, because tables and lexicons without entries are false
    inputs.lexicon_options, inputs.keep_on_device = ctypes.cast(reading.pointer, type(inputs.lexicon_options)), keep_on_device
    with ProgressGuard(progress) as guard:
        if guard.pointer is not None:
            inputs.progress = guard.value
        call("wf_graph_build", ctypes.byref(inputs), settings.pointer, ctypes.byref(result))
    try:
        return Fst(lib.wf_fst_ref(result.graph))
    finally:
        lib.wf_graph_result_clear(ctypes.byref(result))


def build_ctc_graph(
    tokens: SymbolsLike,
    lexicon: Path | Lexicon | Pronunciations | None = None,
    lm: Path | LM | None = None,
    *,
    grammar: Path | Fst | None = None,
    phrases: Iterable[str] | Path | None = None,
    words: SymbolsLike | None = None,
    progress: Progress | None = None,
    keep_on_device: bool = False,
    **options: Unpack[CtcOptions],
) -> Graph:
    """A decoding graph for a CTC model.

    tokens   the tokens of the score columns: a token table or its path, or a list with the token of each column
    lexicon  path, Lexicon, or mapping word -> pronunciation. Without it, the words of the LM (or of `words`) are spelled with the tokens
    lm       file as for LM.read, or LM. Alternatively `grammar`, the path of a grammar in JSGF or of an fst over words, or an Fst. Or `phrases`, a list
             of sentences or the path of a file with one in each line, one of which is said. Without, every sequence of words is allowed. If G has no costs,
             each word costs 2^-10 nats, so that of equal paths the one with fewer words wins: of n words, a path that is better by less than n / 1024 may lose
    keep_on_device  with device="cuda": the graph stays in the GPU's memory, from where a decoder on that GPU takes it; other readers read it there, too
    options  topology="auto|correct|compact|minimal|eesen", or "transducer" for Decoder(transducer=), silence=, backoff=, ...: tables "ctc_graph", "lexicon" and "arpa"

    With `tokens` alone, the words of the graph are the tokens, in any order: without lexicon and language model, the result is the best path with repeats
    collapsed. `device` has no effect then: there is nothing to compute. For a language model over tokens, see Decoder(lm=, join=True).
    """
    table = as_symbols(tokens, "tokens")
    kind = "tokens" if lexicon is lm is grammar is phrases is words is None else "ctc"
    check_options(options, "ctc_graph", "lexicon", "arpa")
    if kind == "tokens" and (without := {*options} - {"topology", "blank", "device"}):
        raise TypeError(f"{', '.join(sorted(without))}: needs words (a lexicon, a language model, a grammar or words=)")
    return Graph(_build(kind, table, lexicon, lm, grammar, phrases, words, options, progress=progress, keep_on_device=keep_on_device))


def read_hmm(am: Path | Hmm, tree: Path | None = None, lang: Path | None = None) -> Hmm:
    """Reads the HMMs of an acoustic model: a model folder of CMU Sphinx (mdef), a folder of Kaldi (final.mdl, tree), or Kaldi's final.mdl."""
    if isinstance(am, Hmm):
        return am
    folder = pathlib.Path(am)
    if (folder / "mdef").exists():
        return Hmm.read_sphinx(folder)
    model = folder / "final.mdl" if folder.is_dir() else folder
    beside = model.parent / "tree"
    return Hmm.read_kaldi(model, tree if tree is not None else beside if beside.exists() else None, lang)


def build_hmm_graph(
    am: Path | Hmm,
    lexicon: Path | Lexicon | Fst | Pronunciations,
    lm: Path | LM | None = None,
    *,
    grammar: Path | Fst | None = None,
    phrases: Iterable[str] | Path | None = None,
    words: SymbolsLike | None = None,
    tree: Path | None = None,
    lang: Path | None = None,
    progress: Progress | None = None,
    keep_on_device: bool = False,
    **options: Unpack[HmmOptions],
) -> Graph:
    """A decoding graph H o C o L o G for a hybrid model. Decode with acoustic_scale = 1 / lm_weight (default of lm_weight: 6.5 for Sphinx, 1 for Kaldi).

    am       model folder of CMU Sphinx or Kaldi, final.mdl, or Hmm. `tree` and `lang` are paths of Kaldi's tree and lang folder
    lexicon  path, Lexicon, mapping word -> phones, or Kaldi's L_disambig.fst as an Fst
    lm       file as for LM.read, or LM. Alternatively `grammar` or `phrases`; without, any words: as for build_ctc_graph (an Fst as lexicon needs one of them)
    keep_on_device  as for build_ctc_graph
    options  lm_weight=, silence_prob=, self_loop_scale=, ...: tables "hmm_graph", "lexicon" and "arpa"
    """
    check_options(options, "hmm_graph", "lexicon", "arpa")
    hmm = read_hmm(am, tree, lang)
    defaults = {"blank": "", "variants": True}
    fst = _build("hmm", hmm.phones, lexicon, lm, grammar, phrases, words, options, hmm=hmm, defaults=defaults, progress=progress, keep_on_device=keep_on_device)
    return Graph(fst, None if hmm.info()["identity"] else hmm.columns())
