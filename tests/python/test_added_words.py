"""Words added to a graph at run time give the same results as the same graph written out, and as the C program."""

import math
import pathlib
import pickle
import subprocess

import numpy as np
import pytest
from conftest import CTC

import warpfst as wf

TOKENS = ["<blk>", *"abcdefgh"]


@pytest.fixture(scope="module", params=["auto", "compact"])
def call_graph(request):
    """A graph like `call <contact> (now)`; its words are spelled with letters as tokens."""
    words = wf.Symbols(["<eps>", "ab", "<contact>", "gh"])
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (1, 2, 2, 2, 1.0), (2, 3, 3, 3, 0.25)], {2: 0.5, 3: 0.0}, isymbols=words, osymbols=words)
    return wf.build_ctc_graph(TOKENS, {"ab": "a b", "gh": "g h"}, grammar=grammar, words=words, topology=request.param, classes="<contact>")


def spoken(text):
    """Scores that spell the tokens of `text`: a frame for each, followed by a blank frame."""
    columns = [c for token in text for c in (TOKENS.index(token), 0)]
    scores = np.full((len(columns), len(TOKENS)), -6, np.float32)
    scores[range(len(columns)), columns] = -0.1
    return scores


def test_a_class_without_words_matches_nothing(call_graph):
    assert call_graph.classes == ("<contact>",)
    assert "not_final" in wf.Decoder(call_graph).decode(spoken("abcdgh"))[0].flags


def test_words_added_for_single_utterances(call_graph):
    first = call_graph.add_words(["cd", "ef d"])
    second = call_graph.add_words({"fe": 0.75, "cd": 2.0}, "<contact>", pronunciations={"cd": ["e d", "e"]})
    decoder = wf.Decoder(call_graph)
    scores = [spoken(text) for text in ("abcdgh", "abefd", "abfegh", "abedgh", "abegh", "abcdgh")]
    results = decoder.decode(scores, graphs=[first, first, second, second, second, None])
    assert [r.text for r in results[:5]] == ["ab cd gh", "ab ef d", "ab fe gh", "ab cd gh", "ab cd gh"]
    assert "not_final" in results[5].flags and "cd" not in results[5].text
    # The graph cost is the cost in the grammar plus that of the phrase.
    assert [r.graph_cost for r in results[:5]] == [1.75, 2.0, 2.5, 3.75, 3.75]
    # The same as with the graph written out, whose symbol table has the added words.
    for graph, scored, result in zip((first, first, second, second, second), scores, results):
        whole = wf.Decoder(wf.Graph(graph.to_fst())).decode(scored)[0]
        assert (whole.text, list(whole.alignment), [w[1:3] for w in whole.words]) == (result.text, list(result.alignment), [w[1:3] for w in result.words])
        assert whole.cost == pytest.approx(result.cost, rel=1e-6)
    assert [decoder.decode(one, graphs=second)[0].text for one in scores[2:4]] == ["ab fe gh", "ab cd gh"]
    assert wf.Decoder(first).decode(scores[0])[0].text == "ab cd gh" and {"ef", "d"} <= {text for text, _ in wf.Decoder(first).words}


def separated_graph(separator, lexicon, phrase, topology="auto", **options):
    """ "ab <contact> gh", or with the phrase in place of the class."""
    said = phrase.split() if phrase else ["<contact>"]
    words = wf.Symbols(["<eps>", *dict.fromkeys(["ab", *said, "gh"])])
    path = ["ab", *said, "gh"]
    arcs = [(i, i + 1, words.find(word), words.find(word), 0.5) for i, word in enumerate(path)]
    grammar = wf.Fst.from_arcs(arcs, {len(path): 0.0}, isymbols=words, osymbols=words)
    classes = {} if phrase else {"classes": "<contact>"}
    return wf.build_ctc_graph(["<blk>", *"abcdefgh", separator], lexicon=lexicon, grammar=grammar, words=words, topology=topology, **classes, **options)


def separated_scores(text):
    """Two frames for each letter, the second blank; " " is the separator."""
    rows = np.full((2 * len(text), 10), -9.0, np.float32)
    rows[1::2, 0] = -0.01
    for i, letter in enumerate(text):
        rows[2 * i, " abcdefgh".index(letter) or 9] = -0.01
    return rows


SPELLED = {word: " ".join(word) for word in ("ab", "cd", "ef", "gh")}


@pytest.mark.parametrize("separator", ["|", "<space>", " ", "<0x20>", "\u2581"])
def test_phrases_have_separators_between_their_words(separator):
    graph = separated_graph(separator, SPELLED, None).add_words(["cd ef"])
    whole = separated_graph(separator, SPELLED, "cd ef")
    for text, cost in (("ab cd ef gh", 2.2), ("ab cdef gh", 11.1), (" ab cd ef gh ", 2.3)):
        added, built = (wf.Decoder(one).decode(separated_scores(text))[0] for one in (graph, whole))
        assert added.text == built.text == "ab cd ef gh"
        # The class is one word of the grammar: one arc of 0.5 less.
        assert math.isclose(added.cost + 0.5, built.cost, abs_tol=1e-4) and math.isclose(built.cost, cost, abs_tol=0.1), (text, added.cost, built.cost)
        assert [(word.text, word.start, word.end) for word in added.words] == [(word.text, word.start, word.end) for word in built.words]


def test_phrases_have_separators_only_where_the_graph_has_them():
    free = separated_graph("|", SPELLED, None, silence="").add_words(["cd ef"])
    assert wf.Decoder(free).decode(separated_scores("abcdefgh"))[0].cost < 3
    # The words bring their separators.
    brought = separated_graph("|", {word: f"{letters} |" for word, letters in SPELLED.items()}, None)
    graph = brought.add_words(["cd ef"], pronunciations={"cd": "c d |", "ef": "e f |"})
    assert wf.Decoder(graph).decode(separated_scores("ab cd ef gh "))[0].cost < 3
    # They bring them, though the graph has them between words.
    graph = separated_graph("|", SPELLED, None).add_words(["cd ef"], pronunciations={"cd": "| c d |", "ef": "e f |"})
    assert wf.Decoder(graph).decode(separated_scores("ab cd ef gh"))[0].cost < 3
    with pytest.raises(wf.ArgumentError, match="without a pronunciation"):
        separated_graph("|", SPELLED, None).add_words(["cd"], pronunciations={"cd": "| |"})
    # With a transducer, likewise.
    graph = separated_graph("|", SPELLED, None, topology="transducer")
    apart, joined = (sum(arc.ilabel == 10 for arc in graph.add_words([phrase]).to_fst().arcs) for phrase in ("cd ef", "cdef"))
    assert apart == joined + 1


def test_default_costs_of_unknown_words():
    words = wf.Symbols(["<eps>", "ab", "<unk>", "<contact>"])
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (1, 2, 2, 2, 1.0), (1, 2, 3, 3, 1.0)], {2: 0.0}, isymbols=words, osymbols=words)
    graph = wf.build_ctc_graph(TOKENS, {"ab": "a b"}, grammar=grammar, words=words, classes="<unk>,<contact>")

    def cost(word_class, phrases):
        return wf.Decoder(graph.add_words(phrases, word_class)).decode(spoken("abcdef"))[0].graph_cost

    assert math.isclose(cost("<unk>", ["cd ef"]), 1.5 - 4 * 0.6, abs_tol=1e-6) and cost("<unk>", {"cd ef": None}) == cost("<unk>", ["cd ef"])
    assert cost("<unk>", {"cd ef": 0.25}) == 1.75 and cost("<contact>", ["cd ef"]) == cost("<contact>", {"cd ef": None}) == 1.5


def test_unknown_words_cost_as_much_as_words_on_average(tmp_path):
    """The class <unk> costs the mean of the unigrams (-1 and -2) instead of its own -5; n-grams with <unk> are shifted by as much."""
    path = tmp_path / "lm.arpa"
    path.write_text("\\data\\\nngram 1=5\nngram 2=1\n\n\\1-grams:\n-99 <s> 0\n-0.25 </s>\n-5 <unk>\n-1 ab -0.5\n-2 gh 0\n\n\\2-grams:\n-0.75 ab <unk>\n\n\\end\\\n")
    graph = wf.build_ctc_graph(TOKENS, {"ab": "a b", "gh": "g h"}, path, classes="<unk>").add_words({"cd": 0.0})
    results = wf.Decoder(graph).decode([spoken("cd"), spoken("abcd")])
    assert [result.text for result in results] == ["cd", "ab cd"]
    for result, cost in zip(results, (1.5 + 0.25, 1 + 0.75 + (1.5 - 5) + 0.25)):
        assert math.isclose(result.graph_cost, cost * math.log(10), rel_tol=1e-6)


def test_added_words_can_be_boosted(call_graph):
    graph = call_graph.add_words({"cd": 0.0, "ce": 0.1})
    scores = spoken("abcdgh")
    scores[6, TOKENS.index("e")] = -0.3
    decoder = wf.Decoder(call_graph)
    plain, boosted = (decoder.decode(scores, graphs=graph, boost=boost)[0] for boost in (None, {"ce": 2.0}))
    assert (plain.text, boosted.text) == ("ab cd gh", "ab ce gh") and boosted.scorer_cost == -2
    with pytest.warns(wf.errors.InputWarning, match="lacks 'ce'"):
        decoder.decode(scores, boost={"ce": 2.0})
    assert wf.Decoder(graph).decode(scores, boost={"ce": 2.0})[0].text == "ab ce gh"


def test_doubled_letters_of_added_words():
    """Before, between and after added words: frames say a letter twice only with a blank between."""
    words = wf.Symbols(["<eps>", "ab", "<contact>"])
    grammar = wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.0)], {0: 0.0}, isymbols=words, osymbols=words)
    graph = wf.build_ctc_graph(TOKENS, {"ab": "a b"}, grammar=grammar, words=words, classes="<contact>").add_words(["b", "ba", "bba", "bb"])
    for frames, text in (("ab", "ab"), ("abb", "ab"), ("ab-b", "ab b"), ("bb", "b"), ("b-b", "bb"), ("b--bb-b", "bb b"), ("bba", "ba"), ("b-ba", "bba"), ("baab", "b ab"), ("ba-ab", "ba ab")):
        scores = np.full((len(frames), len(TOKENS)), -20, np.float32)
        scores[range(len(frames)), ["-abcdefgh".index(letter) for letter in frames]] = -0.1
        found = wf.Decoder(graph, word_score=-0.01).decode(scores)[0]
        assert found.text == text, frames
        assert found.cost == pytest.approx(0.1 * len(frames) + 0.01 * len(text.split()), abs=0.005)


def test_words_added_to_two_classes():
    words = wf.Symbols(["<eps>", "<x>", "<y>", "gh"])
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0), (1, 2, 2, 2, 0.0), (2, 2, 3, 3, 0.0)], {2: 0.0}, isymbols=words, osymbols=words)
    graph = wf.build_ctc_graph(TOKENS, {"gh": "g h"}, grammar=grammar, words=words, classes="<x>,<y>")
    both = graph.add_words(["ab", "b"], "<x>").add_words(["cd", "b"], "<y>")
    assert [wf.Decoder(one).decode(spoken(text))[0].text for one in (both, pickle.loads(pickle.dumps(both))) for text in ("abcd", "bb", "bcd")] == ["ab cd", "b b", "b cd"] * 2
    with pytest.raises(wf.ArgumentError):
        graph.add_words(["ab"])  # ambiguous: no class is given
    with pytest.raises(wf.ArgumentError):
        both.add_words(["ef"], "<x>")


def test_graphs_with_added_words_can_be_saved_and_pickled(call_graph, tmp_path):
    graph = call_graph.add_words({"fe": 0.75, "cd": 2.0}, pronunciations={"cd": "e d"})
    graph.save(tmp_path / "g.wfst")
    expected = wf.Decoder(graph).decode([spoken("abfe"), spoken("abedgh")])
    for again in (wf.Graph.load(tmp_path / "g.wfst"), pickle.loads(pickle.dumps(graph)), pickle.loads(pickle.dumps(wf.Decoder(graph))).graph):
        found = wf.Decoder(again).decode([spoken("abfe"), spoken("abedgh")])
        assert [r.text for r in found] == [r.text for r in expected] == ["ab fe", "ab cd gh"]
        assert [r.cost for r in found] == pytest.approx([r.cost for r in expected], rel=1e-6)
    assert "2 phrases added" in repr(graph)


def test_streams_with_added_words(call_graph):
    graph = call_graph.add_words(["cd"])
    decoder = wf.Decoder(call_graph)
    stream, scores = decoder.stream(), spoken("abcdgh")
    for searched, text in ((graph, "ab cd gh"), (None, ""), (graph, "ab cd gh")):
        stream.set_graph(searched)
        stream.advance(scores[:9])
        with pytest.raises(wf.StateError):
            stream.set_graph(None)
        if searched is not None:
            assert stream.partial().text.startswith("ab cd")
        stream.advance(scores[9:])
        result, whole = stream.finish(), decoder.decode(scores, graphs=searched)[0]
        assert (result.text, result.cost) == (whole.text, whole.cost) and text in result.text
        stream.reset()
    stream.set_graph(graph)
    stream.set_boost({"cd": 1.5})
    stream.advance(scores)
    assert stream.finish().scorer_cost == -1.5


def test_added_words_give_the_results_of_the_program(ctc_scores, tmp_path):
    """Adds words with the pronunciations of words in real utterances; compares with `warpfst decode --add-words`."""
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz", classes="<unk>")
    said = {word.word: " ".join(graph.fst.isymbols.text(label) for label in word.labels) for word in wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")}
    names = [word for word in ("ELEPHANT", "MARK", "GOING") if word in said]
    assert names
    new = {f"{name}S": said[name] for name in names}
    (tmp_path / "list.txt").write_text("".join(f"{word}\t-9\t{tokens}\n" for word, tokens in new.items()))
    graph.save(tmp_path / "g.wfst")
    for key, matrix in ctc_scores.items():
        np.save(tmp_path / f"{key}.npy", matrix)
    program = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
    command = [program, "decode", "g.wfst", *(f"{key}.npy" for key in ctc_scores), "--add-words=list.txt", "--acoustic-scale=0.7", "--format=text"]
    theirs = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stdout
    added = graph.add_words(dict.fromkeys(new, -9.0), pronunciations=new)
    results = wf.Decoder(graph, acoustic_scale=0.7).decode(list(ctc_scores.values()), graphs=added)
    assert theirs.splitlines() == [f"{key} {result.text}".rstrip() for key, result in zip(ctc_scores, results)]
    assert any(name in result.text for name in new for result in results)


def test_words_that_cannot_be_added(call_graph, ctc_graph):
    for bad, kind, why in (
        (lambda: call_graph.add_words(["xyz"]), ValueError, "xyz"),
        (lambda: call_graph.add_words([""]), ValueError, "phrase"),
        (lambda: call_graph.add_words({"cd": math.nan}), ValueError, "cost"),
        (lambda: call_graph.add_words(["cd"], pronunciations={"cd": "c x"}), ValueError, "x"),
        (lambda: call_graph.add_words(["cd"], "<name>"), ValueError, "<name>"),
        (lambda: wf.build_ctc_graph(TOKENS, {"ab": "a b"}).add_words(["cd"]), ValueError, "no place for added words"),
        (lambda: wf.Graph(wf.Fst.from_arcs([(0, 0, 1, 1, 0.0)], {0: 0.0})).add_words(["a"]), ValueError, "table"),
        (lambda: wf.Decoder(ctc_graph).decode(spoken("ab"), graphs=call_graph), ValueError, "graph"),
        (lambda: wf.Decoder(call_graph).decode([spoken("ab")] * 2, graphs=[None]), ValueError, "1 graphs for 2"),
    ):
        with pytest.raises(kind, match=why):
            bad()
