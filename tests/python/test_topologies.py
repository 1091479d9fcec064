"""What the default topology gives: CTC exactly; boosts and word scores do not repeat words."""

import itertools
import subprocess
import warnings

import numpy as np
import pytest

import warpfst as wf


def frames(path, columns, rest=-9.0):
    """Scores that say one column in each frame."""
    scores = np.full((len(path), columns), rest, np.float32)
    scores[range(len(path)), path] = -0.001
    return scores


def text(graph, path, columns, **options):
    return wf.Decoder(graph, **options).decode(frames(path, columns))[0].text


def cautions(call):
    """What a call warns of topologies."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught if "topology" in str(w.message)]


def test_words_alone_are_said_as_often_as_they_were():
    graph = wf.build_ctc_graph(["<blk>", "L", "R"], {"left": "L", "right": "R"})
    assert [text(graph, path, 3) for path in ([1, 1, 1, 2, 2], [0, 1, 0, 1, 1], [0, 2, 2, 0, 2, 2], [1, 2, 2, 2, 0, 1])] == [
        "left right",
        "left left",
        "right right",
        "left right left",
    ]


def test_a_grammar_without_costs(tmp_path):
    words = ["<eps>", "on", "off"]
    grammar = wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.0)], {0: 0.0})
    graph = wf.build_ctc_graph(["<blk>", "A", "B"], {"on": "A", "off": "B"}, grammar=grammar, words=words)
    assert text(graph, [1, 1, 2, 2, 2, 0], 3) == "on off"


@pytest.mark.parametrize("boost", [None, 1.0, 4.0])
def test_a_boost_repeats_nothing(tmp_path, boost):
    graph = wf.build_ctc_graph(["<blk>", "A", "B"], {"on": "A", "off": "B"})
    told = ["on", "on off", "on on", "off"]
    said = [[0, 1, 1, 1], [1, 1, 2, 2], [1, 1, 0, 1], [2, 2, 2]]
    assert [wf.Decoder(graph).decode(frames(path, 3), boost={"on": boost, "off": boost})[0].text for path in said] == told
    assert [text(graph, path, 3, word_score=2.5) for path in said] == told
    phrases = wf.Decoder(graph).decode([frames(path, 3) for path in said], boost={"on": 4.0, "on off": 4.0})
    assert phrases.texts == told


def test_a_boost_above_the_cost_of_the_language_model(tmp_path):
    (tmp_path / "lm.arpa").write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99\t<s>\n-1\t</s>\n-1.2\ton\n-0.2\toff\n\n\\end\\\n", encoding="utf-8")
    graph = wf.build_ctc_graph(["<blk>", "A", "B"], {"on": "A", "off": "B"}, tmp_path / "lm.arpa")
    assert [wf.Decoder(graph).decode(frames([1, 1, 1, 0], 3), boost={"on": boost})[0].text for boost in (2.0, 3.5, 6.0)] == ["on"] * 3


def test_boosts_of_tokens():
    """Graphs of tokens alone are exact for any number of them; compact doubles the held token that is boosted."""
    for columns in (3, 20, 300):
        names = ["<blk>", *(f"\u2581t{i}" for i in range(1, columns))]
        graph = wf.build_ctc_graph(names)
        path = [1, 1, 1, 0, columns - 1, columns - 1, 1, 2, 2]
        told = f"t1 t{columns - 1} t1 t2"
        for boost in (0.0, 5.0):
            result = wf.Decoder(graph, join=True).decode(frames(path, columns), boost={names[1]: boost})[0]
            assert result.text == told
    compact = wf.Decoder(wf.build_ctc_graph(names, topology="compact"), join=True)
    assert compact.decode(frames([1, 1, 1], columns), boost={names[1]: 5.0})[0].text == "t1 t1 t1"


def test_a_list_of_many_words():
    """2,300 words of one token each: any may follow any other, which would be 5.3 million arcs if arcs were copied."""
    names = ["<blk>", *(f"t{i}" for i in range(2300))]
    lexicon = {f"w{i}": [f"t{i}"] for i in range(2300)}
    made = []
    assert cautions(lambda: made.append(wf.build_ctc_graph(names, lexicon))) == []
    assert made[0].fst.num_arcs < 5000
    assert text(made[0], [5, 5, 5, 6, 6, 0, 6], len(names)) == "w4 w5 w5"
    compact = wf.build_ctc_graph(names, lexicon, topology="compact")
    assert text(compact, [5, 5, 5, 6], len(names), word_score=0.01) != "w4 w5"


def test_classes_have_the_topology_of_other_graphs():
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0), (1, 0, 2, 2, 0.0)], {0: 0.0})
    build = {"tokens": ["<blk>", "A", "B"], "lexicon": {"call": "A"}, "grammar": grammar, "words": ["<eps>", "call", "<name>"], "classes": "<name>"}
    made = []
    for more in ({}, {"topology": "correct"}, {"topology": "compact"}):
        assert cautions(lambda more=more: made.append(wf.build_ctc_graph(**build, **more))) == []
    assert wf.fst.equal(made[0].fst, made[1].fst) and not wf.fst.equal(made[0].fst, made[2].fst)
    named = [graph.add_words({"name": 0.0}, pronunciations={"name": "B B"}) for graph in made]
    assert [[text(graph, path, 3) == "call name" for path in ([1, 2, 2], [1, 2, 0, 2])] for graph in named] == [[False, True], [False, True], [True, True]]
    with pytest.raises(wf.UnsupportedError, match="need 'compact'"):
        wf.build_ctc_graph(**build, topology="minimal")


def test_only_native_files_have_classes(tmp_path):
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0), (1, 0, 2, 2, 0.0)], {0: 0.0})
    graph = wf.build_ctc_graph(["<blk>", "A", "B"], {"call": "A"}, grammar=grammar, words=["<eps>", "call", "<name>"], classes="<name>")
    graph.save(tmp_path / "g.wfst")
    named = wf.Graph.load(tmp_path / "g.wfst").add_words({"name": 0.0}, pronunciations={"name": "B"})
    assert text(named, [1, 2, 2], 3) == "call name"
    with pytest.raises(wf.UnsupportedError, match="only native files hold it"):
        wf.Fst.read(tmp_path / "g.wfst").write(tmp_path / "g.fst", "vector")


def test_the_program_says_what_it_took(tmp_path):
    (tmp_path / "tokens.txt").write_text("<blk> 0\n" + "".join(f"t{i} {i}\n" for i in range(1, 2100)), encoding="utf-8")
    (tmp_path / "lexicon.txt").write_text("".join(f"w{i} t{i}\n" for i in range(1, 2100)), encoding="utf-8")
    (tmp_path / "words.txt").write_text("<eps> 0\n" + "".join(f"w{i} {i}\n" for i in range(1, 2100)), encoding="utf-8")
    wf.Fst.from_arcs([(0, 0, i, i, 0.0) for i in range(1, 2100)], {0: 0.0}).write(tmp_path / "loop.fst")
    program = [wf.__path__[0] + "/bin/warpfst", "mkgraph", "ctc", "--tokens=tokens.txt", "--lexicon=lexicon.txt", "--grammar=loop.fst", "--words=words.txt", "-q", "-o", "g.wfst", "--json"]
    for more, topology in (([], "correct"), (["--topology=minimal"], "minimal")):
        ran = subprocess.run([*program, *more], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert f'"topology": "{topology}"' in ran.stdout and ran.stderr == ""


def test_words_pronounced_alike():
    """Of equal costs the smallest label wins, whatever the order of the lexicon."""
    for order, lexicon in itertools.product(itertools.permutations(["two", "to", "too"]), itertools.permutations(["two", "to", "too"])):
        graph = wf.build_ctc_graph(["<blk>", "t", "o"], {**{word: "t o" for word in lexicon}, "toe": "t o o"}, words=["<eps>", "toe", *order])
        assert text(graph, [1, 2, 2, 0, 1, 2], 3) == f"{order[0]} {order[0]}"


def test_fewer_words():
    """Of equal costs the cut with fewer words wins, from the program's graphs, too; costs of a grammar decide before that."""
    names, lexicon = ["<blk>", "a", "b", "c"], {"a": "a", "b": "b", "c": "c", "ab": "a b", "bc": "b c", "abc": "a b c", "cab": "c a b"}
    graph = wf.build_ctc_graph(names, lexicon)
    for order, expected in (([1, 2], "ab"), ([1, 2, 3], "abc"), ([3, 1, 2], "cab"), ([1, 1, 0, 1, 2, 2], "a ab"), ([3, 3, 2, 3], "c bc")):
        assert text(graph, order, len(names)) == expected
        result = wf.Decoder(graph).decode(frames(order, len(names)))[0]
        assert result.graph_cost == len(expected.split()) / 1024
    cheap = wf.Fst.from_arcs([(0, 0, label, label, 0.5 * (len(word) > 1)) for label, word in enumerate(lexicon, 1)], {0: 0.0})
    assert text(wf.build_ctc_graph(names, lexicon, grammar=cheap, words=["<eps>", *lexicon]), [1, 2, 3], len(names)) == "a b c"


@pytest.mark.parametrize("topology", ["correct", "compact", "minimal", "eesen", "transducer", "auto"])
@pytest.mark.parametrize("words", [{}, {"lexicon": {"ab": "a b", "c": "c"}}, {"words": ["<eps>", "ab", "c"]}])
def test_a_graph_without_a_blank_is_refused(topology, words):
    """Without one, repeats were not collapsed."""
    with pytest.raises(wf.ArgumentError, match="CTC needs a blank, and the option 'blank' is empty"):
        wf.build_ctc_graph(["a", "b", "c"], blank="", topology=topology, **words)


def test_arguments_of_a_topology():
    for arguments, message in ((["<blk>", "a"], "num_tokens: expected a number, found list; .*len.names."), ("tokens.txt", "found str"), (None, "found NoneType")):
        with pytest.raises(TypeError, match=message):
            wf.ctc_topology(arguments)
    with pytest.raises(TypeError, match="blank: expected a number, found str"):
        wf.ctc_topology(3, "<blk>")
    with pytest.raises(wf.ArgumentError, match="blank is column -1 of 3; CTC needs a blank"):
        wf.ctc_topology(3, -1)
    assert wf.ctc_topology(np.int64(3), np.uint8(2)).num_arcs == 9


def test_ties_of_a_held_token():
    """What the page on topologies says of tokens that are held: of equal costs, correct and compact have one token, eesen two."""
    tokens = ["<blk>", "t", "o"]
    alone = {topology: wf.build_ctc_graph(tokens, topology=topology) for topology in ("correct", "compact", "eesen")}
    assert {topology: text(graph, [1, 1, 1], 3) for topology, graph in alone.items()} == {"correct": "t", "compact": "t", "eesen": "t t t"}
    for topology in ("compact", "eesen"):
        assert text(wf.build_ctc_graph(tokens, {"to": "t o", "too": "t o o"}, topology=topology), [1, 2, 2, 2], 3) == "too"
        graph = wf.build_ctc_graph(tokens, {"T": "t"}, topology=topology)
        assert [text(graph, [1, 1, 1], 3, word_score=score) for score in (0.0, 0.01)] == ["T", "T T T"]
