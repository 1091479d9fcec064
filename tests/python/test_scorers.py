"""Boosts and language models on the fly, checked against all paths and against graphs composed with the model."""

import contextlib
import itertools
import math
import pickle
import random
import re
import warnings

import numpy as np
import pytest
from conftest import CTC, ROOT, WIDE, every_path, random_graph

import warpfst as wf


def test_boosted_words_against_all_paths(rng):
    for _ in range(60):
        arcs, finals = random_graph(rng)
        scores = -rng.integers(0, 640, (3, 4)).astype(np.float32) / 64
        boosts = {1: 2.5, 3: -1.0}
        everything = sorted((cost - sum(boosts.get(word, 0) for word in words), words) for cost, words in every_path(arcs, finals, scores))
        decoder = wf.Decoder(wf.Fst.from_arcs(arcs, finals), **WIDE)
        plain = decoder.decode(scores)[0]
        decoder.set_boost(boosts)
        result, again, unboosted, twice = decoder.decode([scores] * 4, boost=[None, boosts, wf.Scorer.boost({1: 0.0}), wf.Scorer.boost({1: 1.0, 3: -1.0}) + wf.Scorer.boost({1: 1.5})])
        assert unboosted.cost == plain.cost
        if everything and "not_final" not in result.flags:
            best = everything[0][0]
            assert all(math.isclose(one.cost, best, abs_tol=1e-4) for one in (result, again, twice))
            assert math.isclose(result.scorer_cost, -sum(boosts.get(word.label, 0) for word in result.words), abs_tol=1e-5)
        with pytest.raises(TypeError, match="scorer"):
            pickle.dumps(decoder)
        decoder.set_boost(None)
        assert decoder.decode(scores)[0].cost == plain.cost


def test_boosts_by_name(ctc_graph, ctc_scores):
    matrix = ctc_scores["000030012"]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    assert "MARK" in decoder.decode(matrix)[0].text and "MARK" not in decoder.decode(matrix, boost={"MARK": -30.0})[0].text
    for bad, kind in (({0: 1.0}, ValueError), ({"MARK": math.nan}, ValueError), ([{}, {}], ValueError), ({2**40: 1.0}, ValueError)):
        with pytest.raises(kind):
            decoder.decode(matrix, boost=bad)


def test_boosts_by_length(ctc_graph, ctc_scores):
    assert wf.boost_by_length("new  york", 0.5) == 3.5 and wf.boost_by_length("Z\u00fcrich", -1) == -6 and wf.boost_by_length("abcdefghijklmn o", 1) == 13
    assert math.isclose(wf.boost_by_length("york"), 4 * 0.6, abs_tol=1e-6) and wf.boost_by_length("new york") == 7 == wf.boost_by_length("\u2581ne w \u2581york") - 2
    matrix, decoder = ctc_scores["000030012"], wf.Decoder(ctc_graph, acoustic_scale=0.7)
    given = decoder.decode(matrix, boost={"MARK": wf.boost_by_length("MARK"), "GOING TO": wf.boost_by_length("GOINGTO", 1.0), "SEE": 1.0})[0]
    free, both = (decoder.decode(matrix, boost=boost)[0] for boost in ({"MARK": None, "GOING TO": None, "SEE": 1.0}, {"GOING TO", "MARK"}))
    assert math.isclose(given.scorer_cost, -4 * 0.6 - 7 - 1, abs_tol=1e-5) and math.isclose(both.scorer_cost, -4 * 0.6 - 7, abs_tol=1e-5)
    assert (free.text, free.cost, free.scorer_cost) == (given.text, given.cost, given.scorer_cost)
    assert [result.scorer_cost for result in decoder.decode([matrix] * 2, boost=[{"GOING TO", "MARK"}, None])] == [both.scorer_cost, 0]
    with pytest.raises(TypeError, match="labels need boosts"):
        wf.Scorer.boost({3: None})


def two_words():
    """A graph, and 2 frames that say "ab", or a little less probably "ac"."""
    scores = np.full((2, 4), -9.0, np.float32)
    scores[[0, 1, 1], [1, 2, 3]] = -0.001, -0.001, -1.0
    return wf.build_ctc_graph(["<blk>", "a", "b", "c"], {"ab": "a b", "ac": "a c"}), scores


@pytest.mark.parametrize("form", [["ac"], ("ac",), {"ac"}, {"ac": None}, {"ac": 3}, "ac", ["ac", "xx"], {"xx", "ac"}, {"ac": 3, "ac xx": None}, [["ac", "xx"]], [{"ac"}], dict.fromkeys(["ac"]).keys()])
def test_forms_of_lists_and_their_unknown_words(form):
    graph, scores = two_words()
    decoder = wf.Decoder(graph)
    stream = decoder.stream()
    assert decoder.decode(scores)[0].text == "ab"
    unknown = "xx" in str(form)
    one = form[0] if isinstance(form, list) and not isinstance(form[0], str) else form
    for attempt in range(2):  # the list is made once, so it warns once
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert decoder.decode(scores, boost=form)[0].text == "ac"
            assert decoder.decode([scores, scores], boost=[one, None]).texts == ["ac", "ab"]
            stream.set_boost(one)
            decoder.set_boost(one)
            assert decoder.decode(scores)[0].text == "ac"
            decoder.set_boost(None)
        assert len(said) == (unknown and attempt == 0)
        assert all(w.category is wf.errors.InputWarning and w.filename == __file__ and "'xx'" in str(w.message) and "'ac'" not in str(w.message) for w in said)
    stream.advance(scores)
    assert stream.finish().text == "ac"


def test_lists_of_no_form():
    graph, scores = two_words()
    decoder = wf.Decoder(graph)
    for bad in (["ac", 3], [1], 3.0, {"ac": 1.0, 2: 1.0}, [{"ac"}, {"ac"}]):
        with pytest.raises((TypeError, ValueError), match="boost"):
            decoder.decode(scores, boost=bad)
    assert decoder.decode(scores, boost=[])[0].text == "ab"
    with warnings.catch_warnings():
        warnings.simplefilter("error", wf.errors.InputWarning)
        with pytest.raises(wf.errors.InputWarning, match="'zz'"):
            decoder.decode(scores, boost=["zz"])
    assert decoder.decode(scores)[0].text == "ab"


def test_texts_over_tokens_are_spelled():
    names = ["<blk>", "▁m", "ar", "k", "c", "h", "▁"]
    scores = np.full((3, 7), -9.0, np.float32)
    scores[[0, 1, 2, 2], [1, 2, 3, 4]] = -0.001, -0.001, -0.001, -1.0
    graph = wf.build_ctc_graph(names)
    joined, tokens = wf.Decoder(graph, join=True), wf.Decoder(graph)
    for boost in ({"marc": 3.0}, ["marc"], {"▁m ar c": 3}):
        assert joined.decode(scores)[0].text == "mark"
        assert joined.decode(scores, boost=boost)[0].text == "marc"
        assert tokens.decode(scores, boost=boost)[0].text == "▁m ar c"
    with pytest.warns(wf.errors.InputWarning, match="graph lacks 'xyz'"):
        assert joined.decode(scores, boost={"xyz", "marc"})[0].text == "marc"


def test_boosted_phrases(ctc_graph, ctc_scores):
    matrix = ctc_scores["000030012"]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    result = decoder.decode(matrix, boost={"GOING TO SEE": 2.0, "IS": 0.5, "TO GOING": 9.0})[0]
    assert result.text == "MARK IS GOING TO SEE ELEPHANT" and math.isclose(result.scorer_cost, -2.5, abs_tol=1e-4)
    with pytest.warns(wf.errors.InputWarning, match="lacks 'nonsense'"):
        assert decoder.decode(matrix, boost={"GOING nonsense": 1.0})[0].scorer_cost == 0


def test_large_language_model_on_the_fly(ctc_scores, references, tmp_path):
    """A graph with a small model, decoded with the difference to the large one, gives the costs of a graph with the large model."""
    lexicon = wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")
    large = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    large.prune(max_ngrams="0,0").write_arpa(tmp_path / "small.arpa")
    small = wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, tmp_path / "small.arpa", backoff="failure")
    whole = wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, large, backoff="failure")
    model = wf.LM.convert(CTC / "lm3.arpa.gz", tmp_path / "difference.wlm", subtract=tmp_path / "small.arpa")
    assert model.info()["difference"] and model.info()["order"] == 3
    matrices, wide = list(ctc_scores.values())[:8], {"beam": 20, "max_active": 100000, "max_tokens": 400000, "acoustic_scale": 0.7}
    expected = wf.Decoder(whole, **wide).decode(matrices)
    rescored = wf.Decoder(small, lm=model, **wide)
    assert [r.text for r in rescored.decode(matrices)] == [r.text for r in expected]
    assert np.allclose([r.cost for r in rescored.decode(matrices)], [r.cost for r in expected], atol=1e-2)
    model.make_table()
    assert [(r.text, r.cost) for r in wf.Decoder(small, lm=model, **wide).decode(matrices)] == [(r.text, r.cost) for r in rescored.decode(matrices)]
    boosted = rescored.decode(matrices, boost={"ELEPHANT": 1.0})  # in addition to the model
    assert math.isclose(boosted[0].cost, expected[0].cost - 1, abs_tol=1e-2) and math.isclose(boosted[1].cost, expected[1].cost, abs_tol=1e-2)
    assert [r.text for r in wf.Decoder(small, lm=tmp_path / "difference.wlm", **wide).decode(matrices)] == [r.text for r in expected]
    with pytest.raises(TypeError, match="scorer"):
        pickle.dumps(rescored)


def test_language_models_of_any_kind(ctc_scores, tmp_path):
    arpa, tokens, lexicon = CTC / "lm3.arpa.gz", CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt"
    large = wf.LM.convert(arpa, tmp_path / "lm.wlm")
    recurrent = ROOT / "tests" / "data" / "rnnlm" / "sigmoid"
    kinds = {arpa: wf.LM, tmp_path / "lm.wlm": wf.LM, recurrent: wf.RnnLM}
    for path, kind in kinds.items():
        assert type(wf.LM.open(path)) is kind
    assert wf.LM.open(arpa).costs("THE END") == pytest.approx(large.costs("THE END"), abs=1e-3)
    with pytest.raises(wf.FileError, match="nothing.arpa"):
        wf.LM.open(tmp_path / "nothing.arpa")
    graph = wf.build_ctc_graph(tokens, lexicon)  # a graph without a language model
    matrices = list(ctc_scores.values())[:4]
    expected = [(r.text, r.cost) for r in wf.Decoder(graph, lm=large, acoustic_scale=0.7).decode(matrices)]
    for lm in (arpa, str(tmp_path / "lm.wlm"), wf.LM.read(arpa), wf.LM.open(arpa), [large], wf.Scorer.from_lm(large, graph.words)):
        results = wf.Decoder(graph, lm=lm, acoustic_scale=0.7).decode(matrices)
        assert [r.text for r in results] == [text for text, _ in expected]
        assert [r.cost for r in results] == pytest.approx([cost for _, cost in expected], rel=1e-6)
    assert [r.text for r in wf.Decoder(graph, acoustic_scale=0.7).decode(matrices)] != [text for text, _ in expected]
    for wrong in (3, [], {"lm": 1}):
        with pytest.raises(TypeError, match="lm: expected"):
            wf.Decoder(graph, lm=wrong)


def arpa_of(path, costs):
    lines = "".join(f"{value}\t{word}\n" for word, value in costs.items())
    path.write_text(f"\\data\\\nngram 1={len(costs)}\n\n\\1-grams:\n{lines}\n\\end\\\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("num_known", "unk", "says"),
    [(20, True, None), (11, True, None), (19, False, None), (10, True, "lacks 10 of the graph's 20 words .50%.: 'w10', 'w11', .*They cost what its"), (18, False, "lacks 2 .*'w19'. .*impossible")],
)
def test_a_model_of_other_words_is_said_aloud(tmp_path, num_known, unk, says):
    words = [f"w{i}" for i in range(20)]
    graph = wf.build_ctc_graph(["<blk>", *(chr(97 + i) for i in range(20))], {word: chr(97 + i) for i, word in enumerate(words)})
    model = arpa_of(tmp_path / "m.arpa", {"<s>": -99, "</s>": -1, **({"<unk>": -2} if unk else {}), **dict.fromkeys(words[:num_known], -1)})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        wf.Decoder(graph, lm=model)
    assert len(said) == (says is not None)
    for one in said:
        assert re.search(says, str(one.message)) and one.filename == __file__


def test_token_models_in_the_writing_of_nemo(tmp_path):
    names = ["<unk>", "▁v", "e", "▁n", "ew", "s", "▁the", "t", "h", "▁ve", "▁new", "<blank>"]  # "d" and "e" of the model are "<unk>" and "▁v"
    model = arpa_of(tmp_path / "t.arpa", {"<s>": -99, "</s>": -1, "<unk>": -2, **{chr(100 + i): -0.1 if i in (9, 10) else -3 for i in range(11)}})
    scores = np.full((2, 12), -9, np.float32)
    scores[[0, 1, 1], [9, 6, 10]] = -0.001, -0.001, -0.8
    graph = wf.build_ctc_graph(names)
    with warnings.catch_warnings():
        warnings.simplefilter("error", wf.errors.InputWarning)
        result = wf.Decoder(graph, lm=model, join=True).decode(scores)[0]
    assert result.text == "ve new" and result.scorer_cost == pytest.approx((0.1 + 0.1 + 1) * math.log(10), abs=1e-4)
    plain = arpa_of(tmp_path / "p.arpa", {"<s>": -99, "</s>": -1, **dict.fromkeys(names[:-1], -1)})  # the tokens themselves
    assert wf.Decoder(graph, lm=plain, join=True).decode(scores)[0].text == "ve the"
    letters = wf.build_ctc_graph(["<blank>", *"abcdefgh"])  # a model of letters is none of these
    with pytest.warns(wf.errors.InputWarning, match="lacks 3 of the graph's 8 words.*'a', 'b', 'c'"):
        wf.Decoder(letters, lm=arpa_of(tmp_path / "l.arpa", {"<s>": -99, "</s>": -1, **dict.fromkeys("defgh", -1)}))


def test_recurrent_model_on_the_fly(rng):
    model = wf.RnnLM.open(ROOT / "tests" / "data" / "rnnlm" / "sigmoid")
    texts = [text for text, _ in model.words if not text.startswith("<")][:12]
    words = wf.Symbols(["<eps>", *texts])
    graph = wf.Graph(wf.Fst.from_arcs([(0, 0, i, i, 0.0) for i in range(1, 13)], {0: 0.0}, osymbols=words))
    scores = rng.normal(0, 2, (4, 12)).astype(np.float32)
    scorer = wf.Scorer.from_rnnlm(model, words=words)
    with wf.Decoder(graph, lm=model, **WIDE) as named, wf.Decoder(graph, lm=[wf.Scorer.boost({1: 0.5}), scorer], **WIDE) as both:
        assert math.isclose(named.decode(scores)[0].cost, wf.Decoder(graph, lm=wf.Scorer.from_rnnlm(model, words=words), **WIDE).decode(scores)[0].cost, abs_tol=1e-6)
        boosted = both.decode(scores)[0]
        assert math.isclose(boosted.scorer_cost, sum(model.costs([boosted.text])[0]) - 0.5 * boosted.text.split().count(texts[0]), abs_tol=1e-3)
    scorer = wf.Scorer.from_rnnlm(model, words=words)
    with wf.Decoder(graph, lm=scorer, **WIDE) as decoder:
        result = decoder.decode(scores)[0]
    assert len(result.words) == 4 and math.isclose(result.scorer_cost, sum(model.costs([result.text])[0]), abs_tol=1e-3)
    # The result is the cheapest of all 12^4 sentences.
    sentences = [" ".join(sentence) for sentence in itertools.product(texts, repeat=4)]
    columns = {text: i for i, text in enumerate(texts)}
    acoustic = [-sum(float(scores[t, columns[word]]) for t, word in enumerate(sentence.split())) for sentence in sentences]
    assert math.isclose(result.cost, min(a + sum(costs) for a, costs in zip(acoustic, model.costs(sentences))), abs_tol=1e-3)
    assert scorer.rnn_stats()["num_utterances"] == 1  # counted when the decoder releases the scorer
    with pytest.raises(wf.Error):
        wf.Scorer.boost({1: 1.0}).rnn_stats()


def test_a_large_model_as_a_transducer(ctc_scores, tmp_path):
    """Decoding a graph composed with the model gives the same as decoding the graph with the model as a scorer."""
    lexicon = wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")
    large = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    large.prune(max_ngrams="2000,0").write_arpa(tmp_path / "lm.arpa")
    model = wf.LM.convert(tmp_path / "lm.arpa", tmp_path / "lm.wlm")
    model.verify()
    plain = model.costs("MARK IS GOING")
    model.make_table()
    assert model.costs("MARK IS GOING") == plain and model.info()["table_bytes"] > 0
    words = [text for text, label in lexicon.words() if label and model.words.find(text) is not None and not text.startswith(("<", "#"))][:200]
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, grammar=_loop(lexicon.words(), words), words=lexicon.words())
    phi = 10_000_000
    acceptor = wf.LM.read(tmp_path / "lm.wlm", graph.words, oov="skip").to_fst(backoff="failure", backoff_label=phi)
    exact = wf.Graph(wf.fst.epsilons_last(wf.fst.compose(graph.fst, acceptor, phi_label=phi)))
    matrices, wide = list(ctc_scores.values())[:4], {"beam": 20, "max_active": 100000, "max_tokens": 400000, "acoustic_scale": 0.7}
    on_the_fly, inside = wf.Decoder(graph, lm=model, **wide).decode(matrices), wf.Decoder(exact, **wide).decode(matrices)
    assert [r.text for r in on_the_fly] == [r.text for r in inside] and np.allclose([r.cost for r in on_the_fly], [r.cost for r in inside], atol=1e-2)
    sentence = on_the_fly[0].text
    assert np.allclose(model.costs(sentence), wf.LM.read(tmp_path / "lm.arpa").costs(sentence), atol=1e-5) and math.isclose(sum(model.costs(sentence)), on_the_fly[0].scorer_cost, abs_tol=1e-3)
    damaged = bytearray((tmp_path / "lm.wlm").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.wlm").write_bytes(damaged)
    with pytest.raises(wf.FormatError):
        wf.LM.open(tmp_path / "damaged.wlm").verify()


def _loop(table, words):
    return wf.Fst.from_arcs([(0, 0, label, label, 0.0) for label in map(table.find, words)], {0: 0.0}, isymbols=table, osymbols=table)


def test_placement_has_no_effect_on_the_cpu(ctc_graph, ctc_scores, tmp_path):
    wf.LM.read(CTC / "lm3.arpa.gz").prune(max_ngrams="500,0").write_arpa(tmp_path / "lm.arpa")
    model, matrix = wf.LM.convert(tmp_path / "lm.arpa", tmp_path / "lm.wlm"), ctc_scores["000030012"]
    costs = set()
    for options in ({}, {"placement": "hybrid", "lm_gpu_bytes": 1 << 20}, {"placement": "host"}):
        decoder = wf.Decoder(ctc_graph, lm=wf.Scorer.from_lm(model, ctc_graph.words, **options))
        costs.add(decoder.decode(matrix)[0].cost)
        assert set(decoder.lm_stats().values()) == {0} and "stall_s" in decoder.lm_stats()
    assert len(costs) == 1
    with pytest.raises(ValueError, match="placement"):
        wf.Scorer.from_lm(model, ctc_graph.words, placement="elsewhere")


def test_training_a_recurrent_model(tmp_path, rng):
    """Trains a model of a language in which b always follows a. Each epoch is reported; the model can be written and read again."""
    lines = [" ".join("a b" if rng.random() < 0.5 else "c" for _ in range(4)) for _ in range(400)]
    (tmp_path / "train").write_text("\n".join(lines[:350]) + "\n")
    (tmp_path / "valid").write_text("\n".join(lines[350:]) + "\n")
    epochs = []
    model = wf.RnnLM.train(tmp_path / "train", tmp_path / "valid", hidden=10, max_epochs=4, on_epoch=epochs.append)
    assert [epoch.epoch for epoch in epochs] == list(range(1, len(epochs) + 1)) and epochs[-1].valid_perplexity < epochs[0].valid_perplexity
    costs = model.costs(["a b", "a c"])
    assert costs[0][1] < 0.3 and costs[1][1] > 2
    model.write(tmp_path / "model")
    assert wf.RnnLM.open(tmp_path / "model").costs(["a b c"]) == model.costs(["a b c"])
    assert model.on_device("cpu").costs(["a b c"]) == model.costs(["a b c"])
    if not wf.cuda_available():
        with pytest.raises(wf.DeviceError):
            model.on_device("cuda")
    with pytest.raises(ZeroDivisionError):
        wf.RnnLM.train(tmp_path / "train", tmp_path / "valid", hidden=10, on_epoch=lambda _: 1 / 0)
    with pytest.raises(wf.CancelledError):
        wf.RnnLM.train(tmp_path / "train", tmp_path / "valid", hidden=10, progress=lambda *_: False)


def test_equal_lists_are_made_once(monkeypatch):
    words = wf.Symbols(["<eps>", "a", "b"])
    graph = wf.Graph(wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.0)], {0: 0.0}, osymbols=words))
    scores = np.array([[-1.0, -1.25]], np.float32)
    made = []
    original = wf.Scorer._of_phrases.__func__
    monkeypatch.setattr(wf.Scorer, "_of_phrases", classmethod(lambda cls, boosts, *tables: made.append(dict(boosts)) or original(cls, boosts, *tables)))
    for lm in (None, wf.Scorer(original(wf.Scorer, {"a": 0.0}, words)._disown())):
        with wf.Decoder(graph, lm=lm, **WIDE) as decoder:
            made.clear()
            boosts, streams = {"b": 0.5}, [decoder.stream() for _ in range(3)]
            decoder.set_boost(boosts)
            for stream in streams:
                stream.set_boost(dict(boosts))
            results = decoder.decode([scores] * 2, boost=[boosts, dict(boosts)])
            assert made == [boosts] and {r.text for r in results} == {"b"}
            boosts["b"] = 0.125  # the same mapping with another boost is another list
            assert decoder.decode(scores, boost=boosts)[0].text == "a" and len(made) == 2
            assert decoder.decode(scores, boost={"b": 0.5})[0].text == "b" and len(made) == 2
            scorer = original(wf.Scorer, {"b": 1.0}, words)
            assert decoder._boosts.scorer(scorer, words) is decoder._boosts.scorer(scorer, words)
            assert decoder.decode(scores, boost=scorer)[0].text == "b"
            scorer.close()
            with pytest.raises(wf.StateError):
                decoder.decode(scores, boost=scorer)
            monkeypatch.setattr(type(decoder._boosts), "_CAPACITY", 250)  # room for two lists
            for value in (1.0, 2.0, 3.0):
                decoder.decode(scores, boost={"b": value})
            count = len(made)
            decoder.decode(scores, boost={"b": 3.0})
            assert len(made) == count
            decoder.decode(scores, boost={"b": 1.0})
            assert len(made) == count + 1


@pytest.mark.filterwarnings("ignore::warpfst.InputWarning")
def test_a_cancelled_batch_leaves_nothing_in_a_shared_scorer():
    """Lanes of a batch share the memory of a recurrent model. Those that wait when the call is cancelled have requests in it; a stream then uses the first lane's search, and its contexts are dropped."""
    rng, numbers = random.Random(1), np.random.default_rng(1)
    spellings = zip((16, 0, 3, 5, 7, 2), ("a b", "b a", "c", "c c", "a a b", "d b"))
    graph = wf.build_ctc_graph(["<blk>", *"abcd"], {f"w{number}": tokens for number, tokens in spellings})
    model = wf.RnnLM.open(ROOT / "tests" / "data" / "rnnlm" / "sigmoid")

    def make(num_threads):
        return wf.Decoder(graph, lm=wf.Scorer.from_rnnlm(model, words=graph.words, rnnlm_memory=65536), num_threads=num_threads, beam=8, max_active=40)

    def key(result):
        return result.text, result.cost, tuple(result.alignment)

    utterances = [(numbers.normal(size=(int(frames), 5)) * 2).astype(np.float32) for frames in numbers.integers(0, 40, 150)]
    utterances = [scores - np.logaddexp.reduce(scores, axis=1, keepdims=True) if len(scores) else scores for scores in utterances]
    want = [key(result) for result in make(1).decode(utterances)]
    decoder = make(2)
    for _ in range(12):
        bad = set(rng.sample(range(150), rng.choice((0, 3, 80))))
        batch = [scores.copy() for scores in utterances]
        for i in bad:
            if len(batch[i]):
                batch[i][-1, 1] = np.nan
        results = decoder.decode(batch)
        assert all(key(results[i]) == want[i] for i in range(150) if i not in bad)
        left = iter(range(rng.randint(0, 5)))
        with contextlib.suppress(wf.CancelledError):
            decoder.decode(batch, progress=lambda *_, left=left: next(left, None) is not None)
        stream, i = decoder.stream(), rng.randrange(40)
        stream.advance(utterances[i][:7])
        stream.partial()
        stream.advance(utterances[i][7:])
        assert key(stream.finish()) == want[i]
