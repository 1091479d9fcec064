"""Graphs, language models, lexicons, word error rates: checked against the command-line program and against their definitions."""

import itertools
import math
import pathlib
import subprocess
import warnings

import numpy as np
import pytest
from conftest import CTC, ROOT

import warpfst as wf

PROGRAM = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
SPHINX = pathlib.Path("/usr/share/pocketsphinx/model/en-us")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True)


@pytest.mark.parametrize("topology", ["correct", "compact", "minimal", "eesen"])
def test_graphs_and_results_equal_those_of_the_program(tmp_path, topology, ctc_scores):
    run("mkgraph", "ctc", f"--tokens={CTC}/tokens_phone.txt", f"--lexicon={CTC}/lexicon_phone.txt", f"--lm={CTC}/lm3.arpa.gz", f"--topology={topology}", "-q", "-o", tmp_path / "g.wfst")
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz", topology=topology)
    assert wf.fst.equal(graph.fst, wf.Fst.read(tmp_path / "g.wfst"))
    run("decode", tmp_path / "g.wfst", *(CTC / "logp_phone" / f"{key}.npy" for key in ctc_scores), "--acoustic-scale=0.7", "-o", tmp_path / "hyp")
    results = wf.Decoder(graph, acoustic_scale=0.7).decode(list(ctc_scores.values()))
    assert (tmp_path / "hyp").read_text() == "".join(f"{key} {result.text}".rstrip() + "\n" for key, result in zip(ctc_scores, results))


def test_graphs_without_a_language_model_equal_those_of_the_program(tmp_path):
    tokens, lexicon, words = tmp_path / "tokens.txt", tmp_path / "lexicon.txt", tmp_path / "words.txt"
    tokens.write_text("<blk> 0\na 1\nb 2\n#m 3\n")
    lexicon.write_text("ab a b\nba b a\n#mab #m a b\nab a a\n")
    words.write_text("<eps> 0\nba 1\n#mab 2\nab 3\n")
    for given, flags in (
        ({"lexicon": lexicon}, [f"--lexicon={lexicon}"]),
        ({"words": words}, [f"--words={words}"]),
        ({"lexicon": lexicon, "words": words}, [f"--lexicon={lexicon}", f"--words={words}"]),
        ({"lexicon": lexicon, "classes": "<c>"}, [f"--lexicon={lexicon}", "--classes=<c>"]),
    ):
        run("mkgraph", "ctc", f"--tokens={tokens}", *flags, "-q", "-o", tmp_path / "g.wfst")
        program, graph = wf.Fst.read(tmp_path / "g.wfst"), wf.build_ctc_graph(tokens, **given)
        assert wf.fst.equal((graph._given or graph.fst), program)
        assert dict(graph.words) == dict(program.osymbols)
        scores = np.full((4, 4), -9, np.float32)
        scores[range(4), [3, 1, 2, 0]] = 0
        assert wf.Decoder(graph).decode(scores)[0].text == "#mab"
    added = graph.add_words({"mab": 0.0}, pronunciations={"mab": "#m a b"})
    assert wf.Decoder(added).decode(scores[[0, 1, 2, 3, 0, 1, 2]])[0].text == "#mab #mab"


def test_word_error_rate_of_the_shipped_utterances(ctc_graph, references):
    reader = wf.ScoreReader(CTC / "logp_phone")
    scores = {key: data for key, data in reader}
    assert len(scores) == 200
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, max_active=7000).decode(list(scores.values()))
    counts = wf.wer({key: references[key] for key in scores}, {key: result.text for key, result in zip(scores, results)})
    assert (counts.num_errors, counts.num_words) == (389, 1040), counts


def test_types_of_graph_arguments(ctc_graph):
    tokens = wf.Symbols.read(CTC / "tokens_phone.txt")
    lexicon = wf.Lexicon.read(CTC / "lexicon_phone.txt", tokens)
    lm = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    assert wf.fst.equal(wf.build_ctc_graph(tokens, lexicon, lm).fst, ctc_graph.fst)
    assert wf.fst.equal(wf.build_ctc_graph(dict(tokens), lexicon, lm).fst, ctc_graph.fst)
    with pytest.raises(TypeError, match="not several of them"):
        wf.build_ctc_graph(tokens, lexicon, lm, grammar=lm.to_fst())
    with pytest.raises(ValueError, match="no option named 'topolgy'"):
        wf.build_ctc_graph(tokens, lexicon, lm, topolgy="compact")


def decode_labels(graph, tokens, text):
    scores = np.full((len(text), len(tokens)), -20, np.float32)
    for t, token in enumerate(text):
        scores[t, tokens.index(token)] = 0
    return wf.Decoder(graph).decode(scores)[0].text


def test_lexicons_from_python():
    tokens = ["<blk>", "a", "b", "c"]
    graph = wf.build_ctc_graph(tokens, {"ab": "a b", "cab": ["c", "a", "b"], "cc": [["c", "c"], "c b c"]})
    for spoken, text in (("ab", "ab"), ("cabab", "cab ab"), ("c.c", "cc"), ("cbcab", "cc ab")):
        assert decode_labels(graph, tokens, ["<blk>" if x == "." else x for x in spoken]) == text
    spelled = wf.build_ctc_graph(tokens, words=["<eps>", "ab", "cab"])
    assert decode_labels(spelled, tokens, "cabab") == "cab ab"
    with pytest.raises(wf.Error, match="^<mapping>:1: .*'?x"):  # no path of a temporary file
        wf.build_ctc_graph(tokens, {"ax": "a x"})
    with pytest.warns(wf.InputWarning, match="^<mapping>: .*left out"):
        lexicon = wf.Lexicon.from_dict({"ab": "a b", "ax": "a x"}, tokens, unknown="skip")
    assert len(lexicon) == 1 and lexicon.num_skipped == 1 and next(iter(lexicon)) == wf.lexicon.Pronunciation("ab", 1.0, (2, 3))


def test_names_of_several_words_keep_the_separator():
    tokens, words = ["<blk>", " ", "j", "o", "a"], ["<eps>", "jo", "a", "o j"]
    graph = wf.build_ctc_graph(tokens, words=words)
    for spoken, text in (("jo a", "jo a"), ("a o j jo", "a o j jo")):
        assert decode_labels(graph, tokens, spoken) == text
    scores = np.full((3, 5), -9, np.float32)
    scores[range(3), [2, 3, 4]] = 0
    assert wf.Decoder(graph).decode([scores])[0].cost > 9  # the separator was not said
    with pytest.warns(wf.InputWarning, match="1 of 2 pronunciations begin or end with the word separator"):
        graph = wf.build_ctc_graph(["<blk>", "|", "j", "o"], {"jo": "j o |", "o": "o"})
    assert decode_labels(graph, ["<blk>", "|", "j", "o"], "jo|o") == "jo o"


@pytest.mark.parametrize("lexicon", [{"o j": "o"}, {"": "o"}, {"jo": ["j", " ", "o"]}, {"jo": [["j", " "]]}, {"jo": [["j", ""]]}])
def test_white_space_in_a_lexicon(lexicon):
    with pytest.raises(ValueError, match="without white space"):
        wf.Lexicon.from_dict(lexicon, ["<blk>", " ", "j", "o"])


def test_grammar_graph():
    tokens, words = ["<blk>", "a", "b"], wf.Symbols({"<eps>": 0, "A": 1, "B": 2, "#0": 3})
    grammar = wf.Fst.from_text("0 1 A\n1 2 B\n2\n", words, words, acceptor=True)
    graph = wf.build_ctc_graph(tokens, {"A": "a", "B": "b"}, grammar=grammar)
    assert decode_labels(graph, tokens, "abb") == "A B"


JSGF = '#JSGF V1.0;\ngrammar g;\npublic <s> = A /* or */ (/3/ B | /1/ A) <s> | "B A";\n'


def test_grammars_in_jsgf(tmp_path):
    tokens, lexicon, path = ["<blk>", "a", "b"], {"A": "a", "B": "b"}, tmp_path / "any name"
    path.write_text(JSGF.replace("\n", "\r\n"), encoding="utf-8-sig")
    grammar = wf.Fst.from_jsgf(JSGF)
    assert wf.fst.equal(wf.Fst.read_grammar(path), grammar) and grammar.properties >= {"acceptor", "no_epsilons"}
    assert dict(grammar.osymbols) == {"<eps>": 0, "A": 1, "B": 2}
    for graph in (wf.build_ctc_graph(tokens, lexicon, grammar=part) for part in (path, grammar)):
        assert decode_labels(graph, tokens, ["a", "b", "<blk>", "b", "a"]) == "A B B A"
    assert decode_labels(wf.build_ctc_graph([*"_AB"], grammar=path, blank="_"), [*"_AB"], "AB_BA") == "A B B A"
    words = wf.Symbols({"<eps>": 0, "B": 1, "A": 7})
    assert {arc.ilabel for arc in wf.Fst.read_grammar(path, words).arcs} == {1, 7}
    with pytest.raises(wf.FormatError, match="any name:3: the word 'B' is not in the word table words"):
        wf.build_ctc_graph(tokens, lexicon, grammar=path, words=["<eps>", "A"])
    with pytest.raises(wf.FormatError, match="text:1: found the end of the file, expected 'grammar NAME;'"):
        wf.Fst.from_jsgf("#JSGF V1.0;")
    with pytest.raises(wf.FormatError, match="expected '#JSGF V1.0;'"):
        wf.Fst.from_jsgf("public <a> = b;")
    with pytest.raises(wf.UnsupportedError, match="text:1: the rule <a> uses itself before its end"):
        wf.Fst.from_jsgf("#JSGF V1.0; grammar g; public <a> = b | <a> c;")


def test_phrases(tmp_path):
    tokens, lexicon, path = ["<blk>", "a", "b"], {"A": "a", "B": "b"}, tmp_path / "phrases.txt"
    path.write_text("A B\n\nB\nA B\n")
    for phrases in (path, str(path), [" A\nB ", "B", "", "A B"], (text for text in ("B", "A  B"))):
        graph = wf.build_ctc_graph(tokens, lexicon, phrases=phrases)
        assert decode_labels(graph, tokens, "ab") == "A B" and decode_labels(graph, tokens, "b") == "B"
        assert decode_labels(graph, tokens, "bab") in ("A B", "B")  # one sentence
    said = wf.Fst.from_phrases(["A B", "B", "A"])
    assert [(arc.ilabel, said.final_costs[arc.nextstate]) for arc in said.arcs_of(said.start)] == [(1, 0), (2, 0)] and said.num_arcs == 3
    with pytest.raises(wf.FormatError, match="phrases: no sentence"):
        wf.build_ctc_graph(tokens, lexicon, phrases=[])
    for parts in ({"lm": "x", "phrases": []}, {"grammar": "x", "phrases": []}, {"lm": "x", "grammar": "x"}):
        with pytest.raises(TypeError, match="a language model, a grammar or phrases"):
            wf.build_ctc_graph(tokens, lexicon, **parts)


@pytest.mark.skipif(not SPHINX.exists(), reason="no pocketsphinx-en-us")
def test_one_source_of_sentences_for_a_hybrid_graph():
    for parts in ({"lm": "x", "phrases": []}, {"grammar": "x", "phrases": []}, {"lm": "x", "grammar": "x"}):
        with pytest.raises(TypeError, match="a language model, a grammar or phrases"):
            wf.build_hmm_graph(SPHINX / "en-us", {"A": "AH"}, **parts)


def test_progress_of_building_can_cancel():
    with pytest.raises(KeyError, match="stop"):
        wf.LM.read(CTC / "lm3.arpa.gz").prune(threshold=1e-7, progress=lambda *_: (_ for _ in ()).throw(KeyError("stop")))


def test_language_model_from_a_kenlm_trie(tmp_path):
    folder = ROOT / "tests" / "data" / "lm"
    arpa, trie = wf.LM.read(folder / "endings.arpa"), wf.LM.read(folder / "endings.a.bin")
    assert trie.info()["order"] == 4 and trie.info()["num_ngrams"] == [9, 42, 157, 170]
    for sentence in ("a b c d e f", "f f e zebra a c a c", ""):
        assert math.isclose(trie.score(sentence), arpa.score(sentence), abs_tol=1e-5)
    tokens = ["<blk>", *"abcdefg"]
    graphs = [wf.build_ctc_graph(tokens, {letter: letter for letter in tokens[1:]}, lm=folder / name) for name in ("sphinx3.arpa", "kenlm3.trie.bin")]
    assert wf.fst.equal(graphs[0].fst, graphs[1].fst, delta=1e-5)
    large = wf.LM.convert(folder / "endings.a.bin", tmp_path / "large.wlm")
    assert large.info()["order"] == 4
    probing = bytearray((folder / "kenlm3.trie.bin").read_bytes())
    probing[96] = 0  # the type of model: probing
    (tmp_path / "probing.bin").write_bytes(probing)
    with pytest.raises(wf.FormatError, match="probing.bin.*'build_binary trie"):
        wf.build_ctc_graph(tokens, lm=tmp_path / "probing.bin")


def test_language_model_from_an_arpa_file(tmp_path):
    (tmp_path / "lm.arpa").write_text(
        "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1.0 </s>\n-99 <s> -0.3\n-0.5 a -0.25\n-0.75 b\n\n\\2-grams:\n-0.125 <s> a\n-0.5 a b\n\n\\end\\\n"
    )
    lm = wf.LM.read(tmp_path / "lm.arpa")
    assert lm.info()["order"] == 2 and lm.info()["num_ngrams"] == [4, 2] and "a" in lm.words
    for sentence, score in (("a b", -0.125 - 0.5 - 1.0), ("b a", -0.3 - 0.75 - 0.5 - 0.25 - 1.0), ("", -0.3 - 1.0)):
        assert math.isclose(lm.score(sentence), score, abs_tol=1e-5)
    # Without <s> the first word has no history, without </s> nothing is added for the end.
    for options, score in (({"eos": False}, -0.125 - 0.5), ({"bos": False}, -0.5 - 0.5 - 1.0), ({"bos": False, "eos": False}, -0.5 - 0.5)):
        assert math.isclose(lm.score("a b", **options), score, abs_tol=1e-5)
        large = wf.LM.convert(tmp_path / "lm.arpa", tmp_path / "lm.wlm").costs("a b", **options)
        assert np.allclose(large, lm.costs("a b", **options), atol=1e-5) and len(large) == 2 + options.get("eos", True)
    assert math.isclose(lm.perplexity(["a b"]), 10 ** (1.625 / 3), rel_tol=1e-5) and lm.perplexity(["a zebra"]) == math.inf
    lm.write_arpa(tmp_path / "again.arpa")
    assert math.isclose(wf.LM.read(tmp_path / "again.arpa").score("b a"), lm.score("b a"), abs_tol=1e-5)
    exact = lm.to_fst(backoff="failure", backoff_label=9)
    assert exact.num_states == lm.info()["num_states"] and lm.prune(max_total=4).info()["num_ngrams"][0] == 4
    with pytest.raises(wf.FormatError, match="lm.arpa"):
        (tmp_path / "lm.arpa").write_text("\\data\\\nngram 1=4\n")
        wf.LM.read(tmp_path / "lm.arpa")


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (x != y))
    return row[-1]


def test_word_error_rate(rng, tmp_path):
    total = wf.Wer()
    for _ in range(100):
        left, right = ([str(x) for x in rng.integers(0, 4, rng.integers(0, 9))] for _ in range(2))
        counts = total.add(left, right)
        # With sclite's weights an alignment may have more errors than the Levenshtein distance, but never fewer.
        assert counts.num_errors >= levenshtein(left, right) and counts.num_words == len(left)
        assert [pair.reference for pair in total.alignment if pair.reference is not None] == left
        assert [pair.hypothesis for pair in total.alignment if pair.hypothesis is not None] == right
        assert sum(pair.step != "=" for pair in total.alignment) == counts.num_errors
    assert total.totals.num_utterances == 100
    assert wf.wer(["a b c"], ["a x c d"]).percent == pytest.approx(200 / 3) and "66.67%" in str(wf.wer(["a b c"], ["a x c d"]))
    assert wf.wer({"u": "a b", "v": "c"}, {"u": "a b"}).num_deletions == 1
    assert wf.wer(["Ab"], ["aB"], ignore_case=True).num_errors == 0 and wf.wer(["abc"], ["abd"], cer=True).num_words == 3
    for bad in ((["a"], []), ({"u": "a"}, {"w": "a"})):
        with pytest.raises(ValueError):
            wf.wer(*bad)
    for references, hypotheses in (({"u": "a"}, ["a"]), ("a", ["a"]), (["a"], "a")):
        with pytest.raises(TypeError, match="both be lists, mappings or texts"):
            wf.wer(references, hypotheses)
    assert str(wf.wer("the cat sat", "the cut sat")) == "WER 33.33% (1 of 3 words)"  # two texts are one utterance, not a list of letters
    assert wf.wer("", "").num_utterances == 1 and wf.wer("a b", "").num_deletions == 2
    assert wf.wer(["a b", "c"], [None, "c"]).num_deletions == wf.wer({"u": "a b", "v": "c"}, {"u": None, "v": "c"}).num_deletions == 2  # as Results.texts
    assert wf.wer([["a", "b"]], [("a", "c")]).num_errors == 1


def test_a_text_is_not_taken_for_a_list_of_letters(tmp_path):
    lm = wf.LM.read(CTC / "lm3.arpa.gz")
    calls = (lambda: wf.Wer(ignore="<unk>"), lambda: wf.Symbols("abc"), lambda: lm.perplexity("CHAPTER TWENTY"))
    for call in calls:
        with pytest.raises(TypeError, match="expected a list, found str"):
            call()
    (tmp_path / "t.txt").write_text("u a b\nv\n")
    assert wf.read_transcripts(tmp_path / "t.txt") == {"u": ["a", "b"], "v": []}


def test_score_files(tmp_path, ctc_scores):
    matrices = {key: matrix.astype(np.float32) for key, matrix in ctc_scores.items()}
    for key, matrix in matrices.items():
        np.save(tmp_path / f"{key}.npy", matrix)
    run("matrix", "copy", tmp_path, "-o", tmp_path / "all.ark", "--format=ark")
    read = {key: np.asarray(data) for key, data in wf.ScoreReader(tmp_path / "all.ark")}
    assert read.keys() == matrices.keys() and all(np.array_equal(read[key], matrices[key]) for key in read)
    assert np.allclose(np.asarray(next(wf.ScoreReader(tmp_path / "all.ark", scale=-2)).data), -2 * next(iter(matrices.values())))
    np.save(tmp_path / "empty.npy", np.zeros((0, 40), np.float32))
    empty = next(wf.ScoreReader(tmp_path / "empty.npy"))
    assert len(empty.data) == 0 and wf.Decoder(wf.build_ctc_graph(CTC / "tokens_phone.txt")).decode([empty.data])[0].num_frames == 0
    with pytest.raises(wf.Error, match="none.ark"):
        wf.ScoreReader(tmp_path / "none.ark")
    (tmp_path / "bad.ark").write_bytes((tmp_path / "all.ark").read_bytes()[:1000])
    with pytest.raises(wf.FormatError):
        list(wf.ScoreReader(tmp_path / "bad.ark"))


@pytest.mark.skipif(not SPHINX.exists(), reason="no pocketsphinx-en-us")
def test_hybrid_graph_of_spoken_commands():
    """Builds the graph of spoken commands with the Sphinx model (Debian's pocketsphinx-en-us), as `warpfst mkgraph hmm` does."""
    folder = ROOT / "examples" / "hybrid" / "coffee"
    hmm = wf.Hmm.read_sphinx(SPHINX / "en-us")
    assert hmm.info()["num_columns"] == 5126 and "AH" in hmm.phones and len(hmm.columns()) > 5126
    words = wf.Symbols.read(folder / "words.txt")
    if "#0" not in words:
        words.add("#0")
    grammar = wf.Fst.compile(folder / "grammar.txt", words, words, acceptor=len((folder / "grammar.txt").read_text().split("\n")[0].split()) < 4)
    graph = wf.build_hmm_graph(SPHINX / "en-us", SPHINX / "cmudict-en-us.dict", grammar=grammar)
    assert graph.min_columns <= 5126 and graph.fst.num_states > 1000


def test_the_package_contains_the_program():
    assert run("--version").stdout.split()[-1] == wf.__version__ or run("help").stdout.startswith(f"warpfst {wf.__version__}")
    assert subprocess.run([PROGRAM, "nonsense"], capture_output=True).returncode == 2


@pytest.mark.parametrize("name", ["sigmoid", "relu2_maxent2"])
def test_recurrent_models_against_faster_rnnlm(name, tmp_path):
    folder = ROOT / "tests" / "data" / "rnnlm"
    model = wf.RnnLM.open(folder / name)
    assert model.info()["num_words"] == len(model.words) and model.info()["layer_type"]
    lines = [line.split() for line in (folder / f"{name}.expected").read_text().splitlines() if line.startswith("w ")]
    sentences = " ".join(word for _, word, _ in lines).split("</s>")[:-1]
    costs = [cost for sentence in model.costs(sentences) for cost in sentence]
    assert np.allclose(np.array(costs) / -math.log(10), [float(value) for _, _, value in lines], atol=2e-5)
    with pytest.raises(wf.Error):
        model.costs(["no_such_word"])
    with pytest.raises(wf.Error):
        wf.RnnLM.open(tmp_path / "nothing")


def test_a_model_closed_in_a_callback():
    """C reads the language model until the graph is built: it is freed after that."""
    lm, expected = wf.LM.read(CTC / "lm3.arpa.gz"), wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", wf.LM.read(CTC / "lm3.arpa.gz"))
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", lm, progress=lambda *_: lm.close())
    assert repr(graph) == repr(expected)
    with pytest.raises(wf.StateError, match="was closed"):
        _ = lm.address


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tokens: wf.build_ctc_graph(tokens, words=["a", "b"]), "word table words: label 0 is 'a'; it must be <eps>"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=wf.Symbols(["a", "b"])), "word table (no name): label 0 is 'a'"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=["<eps>", "a", "a"]), "words: 'a' is listed twice, in places 1 and 2"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=["<eps>", "z"]), "the word 'z' cannot be spelled with the tokens of the table tokens"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=["<eps>", "z"], unknown="skip"), "the lexicon has no words: spelling of words (1 left out)"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=["<eps>", "#0", "<unk>"]), "words: no words to spell: <eps>, <s>, </s>, other names in angle brackets"),
        (lambda tokens: wf.build_ctc_graph(tokens, words=[]), "words: no words to spell"),
        (lambda tokens: wf.build_ctc_graph(tokens, {}), "<mapping>: no words"),
        (lambda tokens: wf.build_ctc_graph(tokens, {"x": "z"}), "<mapping>:1: word 'x': 'z' is not in the token table tokens"),
        (lambda tokens: wf.build_ctc_graph(tokens, {"x": "z"}, unknown="skip"), "<mapping>: no word left, because all 1 have tokens that the table tokens lacks"),
        (lambda tokens: wf.build_ctc_graph([]), "token table tokens: no tokens"),
        (lambda tokens: wf.build_ctc_graph(["<blk>"]), "tokens: no token besides the blank"),
        (lambda tokens: wf.build_ctc_graph({"<blk>": 0, "a": 2}), "token table tokens: no token has id 1"),
        (lambda tokens: wf.build_ctc_graph(tokens, {"a": "a"}, words=["<eps>", "c"]), "and the word list have no word in common"),
        (lambda tokens: wf.WordAligner.from_tokens(wf.Symbols(tokens)), "(no name): no token has a mark"),
        (lambda tokens: wf.Lexicon.from_dict({"a": "a"}, tokens).to_fst(wf.Symbols(["<eps>", "a"])), "word table (no name): no '#0'"),
    ],
)
def test_messages_name_what_they_are_about(call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(wf.Error) as error:
            call(["<blk>", "a", "b"])
    assert message in str(error.value)


@pytest.mark.parametrize("word", ["#0", "#12", "<eps>", "<s>", "</s>", "<unk>", "<c>"])
def test_words_that_stand_for_no_text_cannot_be_added(word):
    """They were left out without a word."""
    graph = wf.build_ctc_graph(["<blk>", "a", "b", "#"], {"a": "a"}, classes="<c>")
    for phrases in ([word], ["b", word], {f"a {word}": 0.5}):
        with pytest.raises(wf.ArgumentError, match=f"added words: '{word}' cannot be spelled"):
            graph.add_words(phrases)
    assert graph.add_words(["#a", "a#"]).words.find("#a") is not None


def spoken(tokens, columns):
    scores = np.full((len(tokens), columns), -9, np.float32)
    scores[np.arange(len(tokens)), tokens] = 0
    return scores


def test_unknown_words_are_any_sequence():
    """A sentence <unk> takes what the others do not fit; without garbage= it cannot be said."""
    names, lexicon = ["<blk>", "a", "b", "c"], {"ab": "a b", "c": "c"}
    graph = wf.build_ctc_graph(names, lexicon, phrases=["ab c", "<unk>"], garbage=1)
    texts = [wf.Decoder(graph).decode([spoken(tokens, 4)])[0].text for tokens in ([1, 2, 3], [3, 2, 1], [1])]
    assert texts == ["ab c", "<unk>", "<unk>"]
    with pytest.warns(wf.InputWarning, match="'<unk>'"):
        plain = wf.build_ctc_graph(names, lexicon, phrases=["ab c", "<unk>"])
    assert wf.Decoder(plain).decode([spoken([3, 2, 1], 4)])[0].text == "ab c"
    with pytest.raises(wf.ArgumentError, match="has no <unk>"):
        wf.build_ctc_graph(names, lexicon, phrases=["ab c"], garbage=1)


def test_unknown_words_of_a_language_model_are_any_sequence(tmp_path):
    names, lexicon, path = ["<blk>", "a", "b", "c"], {"ab": "a b"}, tmp_path / "lm.arpa"
    path.write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.5 <unk>\n-0.5 ab\n\n\\end\\\n")
    graph = wf.build_ctc_graph(names, lexicon, path, garbage=1)
    assert wf.Decoder(graph).decode([spoken([1, 2, 3], 4)])[0].text == "ab <unk>"
    path.write_text(path.read_text().replace("-0.5 <unk>\n", "").replace("1=4", "1=3"))
    with pytest.raises(wf.ArgumentError, match="the language model has no <unk>"):
        wf.build_ctc_graph(names, lexicon, path, garbage=1)


@pytest.mark.parametrize("name", ["$NAME", "[NAME]", "#nonterm:name", "name", "<name>"])
def test_classes_of_any_name(name):
    names = ["<blk>", "c", "a", "l", "b"]
    for lexicon in ({"call": "c a l l"}, None):  # None: words are spelled, but for the class
        graph = wf.build_ctc_graph(names, lexicon, phrases=[f"call {name}"], classes=name)
        assert graph.classes == (name,)
        named = graph.add_words({"bab": 0.0}, name)
        assert wf.Decoder(named).decode([spoken([1, 2, 3, 0, 3, 4, 2, 4], 5)])[0].text == "call bab"


def test_missing_words_can_be_an_error():
    with pytest.raises(wf.ArgumentError, match="1 words of the grammar have no pronunciation: 'zorblax'"):
        wf.build_ctc_graph(["<blk>", "a"], {"a": "a"}, phrases=["a", "a zorblax"], missing_words="error")


def test_classes_of_a_language_model_are_filled_by_replace(tmp_path):
    """Costs of all sentences of up to four words, against the best split into words and phrases of the class; the class is nested in another."""
    path, log10 = tmp_path / "lm.arpa", {"</s>": -0.25, "a": -1.0, "b": -0.5, "<name>": -0.75}
    path.write_text("\\data\\\nngram 1=5\n\n\\1-grams:\n-99 <s>\n" + "".join(f"{value} {word}\n" for word, value in log10.items()) + "\n\\end\\\n")
    words = wf.Symbols(["<eps>", "a", "b", "<name>", "<first>"])
    model, firsts = wf.LM.read(path, words).to_fst(), wf.Fst.from_phrases(["a", "b b"], words=words)
    names = wf.Fst.from_arcs([(0, 1, 4, 4, 0.5), (1, 2, 2, 2, 0.25)], {1: 0.125, 2: 0.0}, isymbols=words, osymbols=words)
    filled = wf.fst.replace({5: model, 3: names, 4: firsts}, epsilon_on_replace=True)
    parts = {word: -value * math.log(10) for word, value in log10.items()}
    phrases = {(text + tail).strip(): parts["<name>"] + 0.5 + cost for text in ("a", "b b") for tail, cost in (("", 0.125), (" b", 0.25))}

    def best(rest):
        if not rest:
            return parts["</s>"]
        starts = [("a", parts["a"]), ("b", parts["b"]), *phrases.items()]
        return min((cost + best(rest[len(start) :].lstrip()) for start, cost in starts if f"{rest} ".startswith(f"{start} ")), default=math.inf)

    for length in range(5):
        for sentence in map(" ".join, itertools.product("ab", repeat=length)):
            said = wf.Fst.from_phrases([sentence], words=words) if sentence else wf.Fst.from_arcs([], {0: 0.0}, isymbols=words, osymbols=words)
            found = next(iter(wf.fst.shortest_path(wf.fst.compose(said, filled)).paths()))
            assert found.cost == pytest.approx(best(sentence), abs=1e-4), sentence
