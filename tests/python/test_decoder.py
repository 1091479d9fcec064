"""Decoding against an exhaustive search in numpy; every form of input; hostile input."""

import concurrent.futures
import itertools
import json
import math
import pathlib
import pickle
import subprocess
import threading

import numpy as np
import pytest
from conftest import CTC, ROOT
from fake_tensors import FakeTensor

import warpfst as wf

WIDE = {"beam": 1e9, "max_active": 100000, "max_tokens": 100000, "min_active": 0}


def random_graph(rng, num_states=5, num_arcs=14, num_columns=4):
    """A decoding graph with words and epsilon arcs (upwards only, so that there are no cycles of them)."""
    arcs = []
    for _ in range(num_arcs):
        source, target = (int(x) for x in rng.integers(0, num_states, 2))
        ilabel = int(rng.integers(0 if target > source else 1, num_columns + 1))
        arcs.append((source, target, ilabel, int(rng.integers(0, 4)), float(rng.integers(0, 128)) / 64))
    arcs.append((0, 0, 1, 0, 1.0))
    return arcs, {0: 0.25, num_states - 1: 0.0}


def every_path(arcs, finals, scores, frame=0, state=0):
    """(cost, words) of every path: plain recursion."""
    if frame == len(scores) and state in finals:
        yield finals[state], ()
    for source, target, ilabel, olabel, weight in arcs:
        if source != state or (ilabel and frame == len(scores)):
            continue
        cost = weight - (float(scores[frame][ilabel - 1]) if ilabel else 0.0)
        for rest, words in every_path(arcs, finals, scores, frame + bool(ilabel), target):
            yield cost + rest, ((olabel, *words) if olabel else words)


def test_best_path_of_all_paths(rng):
    found = 0
    for _ in range(150):
        arcs, finals = random_graph(rng)
        scores = -rng.integers(0, 640, (int(rng.integers(0, 5)), 4)).astype(np.float32) / 64
        everything = sorted(every_path(arcs, finals, scores))
        result = wf.Decoder(wf.Fst.from_arcs(arcs, finals), **WIDE).decode(scores)[0]
        if not everything:
            assert "not_final" in result.flags
            continue
        found += 1
        best = everything[0][0]
        assert math.isclose(result.cost, best, abs_tol=1e-4) and math.isclose(result.graph_cost + result.acoustic_cost, result.cost, abs_tol=1e-6)
        assert tuple(word.label for word in result.words) in {words for cost, words in everything if cost < best + 1e-4}
        assert len(result.alignment) == result.num_decoded == len(scores)
        assert math.isclose(-sum(scores[t][label - 1] for t, label in enumerate(result.alignment)), result.acoustic_cost, abs_tol=1e-4)
    assert found > 100


def test_boosted_words_by_all_paths(rng):
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
    for bad, kind in (({"no such word": 1.0}, ValueError), ({0: 1.0}, ValueError), ({"MARK": math.nan}, ValueError), ([{}, {}], ValueError), ({2**40: 1.0}, ValueError)):
        with pytest.raises(kind):
            decoder.decode(matrix, boost=bad)


def test_boosted_phrases(ctc_graph, ctc_scores):
    matrix = ctc_scores["000030012"]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    result = decoder.decode(matrix, boost={"GOING TO SEE": 2.0, "IS": 0.5, "TO GOING": 9.0})[0]
    assert result.text == "MARK IS GOING TO SEE ELEPHANT" and math.isclose(result.scorer_cost, -2.5, abs_tol=1e-4)
    with pytest.raises(ValueError, match="nonsense"):
        decoder.decode(matrix, boost={"GOING nonsense": 1.0})


def test_large_language_model_on_the_fly(ctc_scores, references, tmp_path):
    """A graph with a small model and the difference to the large one costs what a graph with the large one does."""
    lexicon = wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt")
    large = wf.LM.read(CTC / "lm3.arpa.gz", lexicon.words())
    large.prune(max_ngrams="0,0").write_arpa(tmp_path / "small.arpa")
    small = wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, tmp_path / "small.arpa", backoff="failure")
    whole = wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, large, backoff="failure")
    model = wf.LargeLM.build(CTC / "lm3.arpa.gz", tmp_path / "difference.wlm", subtract=tmp_path / "small.arpa")
    assert model.info()["difference"] and model.info()["order"] == 3
    matrices, wide = list(ctc_scores.values())[:8], {"beam": 20, "max_active": 100000, "max_tokens": 400000, "acoustic_scale": 0.7}
    expected = wf.Decoder(whole, **wide).decode(matrices)
    rescored = wf.Decoder(small, lm=model, **wide)
    assert [r.text for r in rescored.decode(matrices)] == [r.text for r in expected]
    assert np.allclose([r.cost for r in rescored.decode(matrices)], [r.cost for r in expected], atol=1e-2)
    model.make_table()
    assert [(r.text, r.cost) for r in wf.Decoder(small, lm=model, **wide).decode(matrices)] == [(r.text, r.cost) for r in rescored.decode(matrices)]
    boosted = rescored.decode(matrices, boost={"ELEPHANT": 1.0})  # on top of the model
    assert math.isclose(boosted[0].cost, expected[0].cost - 1, abs_tol=1e-2) and math.isclose(boosted[1].cost, expected[1].cost, abs_tol=1e-2)
    assert [r.text for r in wf.Decoder(small, lm=tmp_path / "difference.wlm", **wide).decode(matrices)] == [r.text for r in expected]
    with pytest.raises(TypeError, match="scorer"):
        pickle.dumps(rescored)


def test_n_best_by_all_paths(rng):
    checked = 0
    for _ in range(60):
        arcs, finals = random_graph(rng)
        scores = -rng.integers(0, 640, (3, 4)).astype(np.float32) / 64
        best = {}
        for cost, words in every_path(arcs, finals, scores):
            best[words] = min(cost, best.get(words, math.inf))
        expected = sorted(best.values())[:5]
        result = wf.Decoder(wf.Fst.from_arcs(arcs, finals), lattice_beam=1e6, **WIDE).decode(scores)[0]
        if not expected or "not_final" in result.flags:
            continue
        found = result.nbest(5)
        assert np.allclose([one.cost for one in found], expected, atol=1e-3)
        assert all(math.isclose(best[tuple(one.labels)], one.cost, abs_tol=1e-3) for one in found) and len({one.text for one in found}) == len(found)
        checked += len(found) > 1
    assert checked > 20
    with pytest.raises(wf.ArgumentError, match="lattice_beam"):
        wf.Decoder(wf.Fst.from_arcs(arcs, finals)).decode(scores)[0].nbest(2)


def test_lattice_operations(ctc_graph, ctc_scores):
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6).decode(list(ctc_scores.values())[:6])
    for result in results:
        lattice = result.lattice
        compact = lattice.determinize()
        assert compact.complete_beam == 8 and lattice.determinize(max_bytes=65536).complete_beam <= 8
        for path in (lattice.best_path(), compact.best_path(), compact.nbest(3)[0], compact.determinize().best_path()):
            assert path.words == [word.label for word in result.words] and math.isclose(path.cost, result.cost, abs_tol=1e-2)
            assert len(path.alignment) == result.num_frames
        costs = [path.cost for path in compact.nbest(20)]
        assert costs == sorted(costs)
        assert lattice.prune(1.0).num_arcs <= lattice.num_arcs and len(compact.prune(0.5).nbest(50)) == sum(cost <= costs[0] + 0.5 for cost in costs[:50] or costs)
        assert math.isclose(compact.scale(lm_scale=2).best_path().cost, min(2 * path.graph_cost + path.acoustic_cost for path in compact.nbest(1000)), abs_tol=1e-2)
        assert lattice.scale(acoustic_scale=0).best_path().acoustic_cost == 0
    lm = wf.LM.read(CTC / "lm3.arpa.gz", ctc_graph.words)
    assert math.isclose(compact.rescore(lm, lm).best_path().cost, compact.best_path().cost, abs_tol=1e-2)
    assert math.isclose(compact.rescore(None, lm).best_path().cost, min(p.cost + sum(lm.costs([ctc_graph.words.text(w) for w in p.words])) for p in compact.nbest(1000)), abs_tol=0.05)


def test_recurrent_model_on_the_fly(rng):
    model = wf.RnnLM.open(ROOT / "tests" / "data" / "rnnlm" / "sigmoid")
    texts = [text for text, _ in model.words if not text.startswith("<")][:12]
    words = wf.Symbols(["<eps>", *texts])
    graph = wf.Graph(wf.Fst.from_arcs([(0, 0, i, i, 0.0) for i in range(1, 13)], {0: 0.0}, osymbols=words))
    scores = rng.normal(0, 2, (4, 12)).astype(np.float32)
    scorer = wf.Scorer.from_rnnlm(model, words=words)
    with wf.Decoder(graph, rnnlm=model, **WIDE) as named, wf.Decoder(graph, lm=wf.Scorer.boost({1: 0.5}), rnnlm=scorer, **WIDE) as both:
        assert math.isclose(named.decode(scores)[0].cost, wf.Decoder(graph, lm=wf.Scorer.from_rnnlm(model, words=words), **WIDE).decode(scores)[0].cost, abs_tol=1e-6)
        boosted = both.decode(scores)[0]
        assert math.isclose(boosted.scorer_cost, sum(model.costs([boosted.text])[0]) - 0.5 * boosted.text.split().count(texts[0]), abs_tol=1e-3)
    scorer = wf.Scorer.from_rnnlm(model, words=words)
    with wf.Decoder(graph, lm=scorer, **WIDE) as decoder:
        result = decoder.decode(scores)[0]
    assert len(result.words) == 4 and math.isclose(result.scorer_cost, sum(model.costs([result.text])[0]), abs_tol=1e-3)
    # None of the 12^4 sentences costs less.
    sentences = [" ".join(sentence) for sentence in itertools.product(texts, repeat=4)]
    columns = {text: i for i, text in enumerate(texts)}
    acoustic = [-sum(float(scores[t, columns[word]]) for t, word in enumerate(sentence.split())) for sentence in sentences]
    assert math.isclose(result.cost, min(a + sum(costs) for a, costs in zip(acoustic, model.costs(sentences))), abs_tol=1e-3)
    assert scorer.rnn_stats()["num_utterances"] == 1  # counted when the decoder lets go of it
    with pytest.raises(wf.Error):
        wf.Scorer.boost({1: 1.0}).rnn_stats()


def test_streams_are_the_whole(ctc_graph, ctc_scores, rng):
    matrices = [matrix.astype(np.float32) for matrix in ctc_scores.values()][:6]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, blank=0, lattice_beam=4)
    expected = decoder.decode(matrices)
    stream = decoder.stream(frame_seconds=0.04)
    for matrix, result in zip(matrices, expected):
        begin, stable = 0, []
        while begin < len(matrix):
            count = int(rng.integers(0, 20))
            event = stream.accept(matrix[begin : begin + count])
            begin = min(begin + count, len(matrix))
            partial = stream.partial()
            assert event.num_frames == partial.num_frames == begin and partial.num_stable <= len(partial.words)
            stable = [word.text for word in partial.words[: partial.num_stable]]
            assert result.text.split()[: len(stable)] == stable
        final = stream.finish()
        assert same([final], [result]) and final.lattice.num_arcs == result.lattice.num_arcs
        with pytest.raises(wf.StateError):
            stream.accept(matrix)
        stream.reset()
    # Several at one time.
    streams = [decoder.stream() for _ in matrices]
    for begin in range(0, max(map(len, matrices)), 16):
        events = decoder.advance(streams, [matrix[begin : begin + 16] for matrix in matrices])
        assert [event.num_frames for event in events] == [min(begin + 16, len(matrix)) for matrix in matrices]
    assert same([one.finish() for one in streams], expected)
    assert stream.num_bytes > 0
    with pytest.raises(ValueError, match="1 chunks"):
        decoder.advance(streams, [matrices[0]])
    decoder.close()  # and its streams before it
    for use in (lambda: stream.partial(), lambda: streams[0].reset(), lambda: decoder.stream()):
        with pytest.raises(wf.StateError):
            use()


def test_streams_that_forget(ctc_graph, ctc_scores):
    matrix = np.concatenate([m.astype(np.float32) for m in list(ctc_scores.values())[:8]])
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    stream = decoder.stream(forget=True)
    for begin in range(0, len(matrix), 20):
        stream.accept(matrix[begin : begin + 20])
        stream.partial()
    assert len(stream.finish().alignment) == 0
    for _ in range(100):  # dropped in the middle of utterances, in any order
        decoder.stream().accept(matrix[:3])
    del decoder, stream


def test_a_decoder_cannot_be_used_from_its_own_callback(ctc_graph, ctc_scores):
    decoder, seen = wf.Decoder(ctc_graph, num_threads=1), []

    def again(*_):
        for use in (lambda: decoder.decode([]), decoder.close, decoder.stream, lambda: decoder.set_boost({"MARK": 1.0})):
            with pytest.raises(wf.StateError, match="callback"):
                use()
        seen.append(1)

    assert len(decoder.decode(list(ctc_scores.values()), progress=again)) == len(ctc_scores) and seen


def test_results_travel(ctc_graph, ctc_scores):
    bad = np.full((2, 40), math.nan, np.float32)
    results = wf.Decoder(ctc_graph, lattice_beam=2).decode([next(iter(ctc_scores.values())).astype(np.float32), bad])
    good, failed = pickle.loads(pickle.dumps(results))
    assert same([good], results[:1]) and good.lattice is None and len(pickle.dumps(results)) < 5000
    with pytest.raises(wf.ArgumentError, match="NaN"):
        _ = failed.text


def test_streams_boost_and_fail(ctc_graph, ctc_scores):
    matrix = ctc_scores["000030012"].astype(np.float32)
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    with decoder.stream() as stream:
        stream.set_boost({"MARK": -30.0})
        stream.accept(matrix)
        assert same([stream.finish()], decoder.decode(matrix, boost={"MARK": -30.0}))
    bad = matrix.copy()
    bad[3, 3] = math.nan
    with decoder.stream() as stream:
        stream.accept(bad)
        with pytest.raises(wf.ArgumentError, match="NaN"):
            _ = stream.finish().text
    with pytest.raises(ValueError):
        decoder.stream(silence="x")


def test_lattices_compact_and_in_files(ctc_graph, ctc_scores, tmp_path):
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=5).decode(list(ctc_scores.values())[:8])
    with wf.LatticeWriter(tmp_path / "lat.ark") as out:
        for i, result in enumerate(results):
            out.put(f"u{i}", result.lattice)
    read = list(wf.LatticeReader(tmp_path / "lat.ark"))
    aligner = wf.WordAligner.from_lexicon(wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt"), ctc_graph.words)
    assert [key for key, _ in read] == [f"u{i}" for i in range(8)]
    for (_, again), result in zip(read, results):
        assert np.allclose(np.asarray(again.arcs)["graph_cost"], np.asarray(result.lattice.arcs)["graph_cost"]) and again.num_states == result.lattice.num_states
        compact = result.lattice.to_compact()
        stats, (arcs, finals, total) = compact.stats(), compact.posteriors()
        assert math.isclose(stats["best_cost"], result.cost, abs_tol=1e-3) and math.isclose(total, stats["total_cost"], abs_tol=1e-6) and total <= stats["best_cost"]
        assert math.isclose(sum(finals), 1, abs_tol=1e-6) and len(arcs) == compact.num_arcs
        assert compact.oracle([word.label for word in result.words])[1] == 0
        mbr = compact.mbr(decode=False)
        assert [word.label for word in mbr.words] == [word.label for word in result.words] and all(0 < word.confidence <= 1 for word in mbr.words)
        aligned = compact.align(aligner).mbr(decode=False)
        assert [word.label for word in aligned.words] == [word.label for word in result.words]
        assert all(0 <= word.start < word.end <= result.num_frames for word in aligned.words)
        assert compact.to_raw().num_arcs >= result.lattice.num_arcs
    with pytest.raises(ZeroDivisionError), wf.LatticeWriter(tmp_path / "dropped.ark") as out:
        out.put("u", results[0].lattice)
        _ = 1 / 0
    assert not (tmp_path / "dropped.ark").exists()
    with pytest.raises(wf.Error, match="blank"):
        with wf.LatticeWriter(tmp_path / "bad.ark") as out:
            out.put("two words", results[0].lattice)
    (tmp_path / "cut.ark").write_bytes((tmp_path / "lat.ark").read_bytes()[:500])
    with pytest.raises(wf.FormatError):
        list(wf.LatticeReader(tmp_path / "cut.ark"))


def test_words_flags_and_lattice(ctc_graph, ctc_scores):
    scores = list(ctc_scores.values())
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=4).decode(scores)
    for matrix, result in zip(scores, results):
        assert result.text == " ".join(word.text for word in result.words)
        assert all(ctc_graph.words.text(word.label) == word.text for word in result.words)
        ends = [0, *(frame for word in result.words for frame in (word.start, word.end))]
        assert ends == sorted(ends) and ends[-1] <= len(matrix) == result.num_frames == result.num_decoded
        arcs, lattice = np.asarray(result.lattice.arcs), result.lattice
        assert lattice.num_states == len(lattice.frames) == len(lattice.arc_offsets) - 1 and arcs.shape == (lattice.num_arcs,)
        # The best path of the lattice is the result.
        cost = np.asarray(lattice.final_graph_costs, dtype=np.float64) + np.asarray(lattice.final_acoustic_costs)
        for state in reversed(range(lattice.num_states)):
            for i in range(lattice.arc_offsets[state], lattice.arc_offsets[state + 1]):
                cost[state] = min(cost[state], arcs[i]["graph_cost"] + arcs[i]["acoustic_cost"] + cost[arcs[i]["nextstate"]])
        assert math.isclose(cost[0], result.cost, abs_tol=1e-2)
    assert wf.Decoder(ctc_graph).decode(scores[0])[0].lattice is None
    assert "narrowed" in wf.Decoder(ctc_graph, max_active=5, min_active=0).decode(scores[0])[0].flags


def same(a, b):
    return [(r.text, r.cost, r.words, list(r.alignment)) for r in a] == [(r.text, r.cost, r.words, list(r.alignment)) for r in b]


def padded(matrices, extra=3):
    batch = np.full((len(matrices), max(map(len, matrices)) + extra, matrices[0].shape[1]), np.nan, matrices[0].dtype)  # NaN: padding must not be read
    for row, matrix in zip(batch, matrices):
        row[: len(matrix)] = matrix
    return batch, [len(matrix) for matrix in matrices]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_form_of_a_batch(ctc_graph, ctc_scores, dtype):
    matrices = [matrix.astype(dtype) for matrix in ctc_scores.values()]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    expected = decoder.decode(matrices)
    batch, lengths = padded(matrices)
    wide = np.full((*batch.shape[:2], batch.shape[2] + 5), np.nan, dtype)
    wide[..., : batch.shape[2]] = batch
    forms = {
        "padded": (batch, lengths),
        "lengths of numpy": (batch, np.array(lengths, dtype=np.int32)),
        "a view with strides": (wide[..., : batch.shape[2]], lengths),
        "tuple": (tuple(matrices), None),
        "longer matrices with lengths": (list(batch), lengths),
        "memoryviews": ([memoryview(matrix) for matrix in matrices], None),
        "read-only": ([np.frombuffer(matrix.tobytes(), dtype).reshape(matrix.shape) for matrix in matrices], None),
        "DLPack": (FakeTensor(batch), lengths),
        "DLPack 1.0": (FakeTensor(batch, version=(1, 1)), lengths),
        "DLPack without strides": (FakeTensor(batch, strides=None), lengths),
        "DLPack with an offset": (FakeTensor(batch, offset=64), lengths),
        "DLPack on page-locked memory": (FakeTensor(batch, device=(3, 0)), lengths),
        "list of DLPack": ([FakeTensor(matrix) for matrix in matrices], None),
    }
    for name, (scores, frames) in forms.items():
        assert same(decoder.decode(scores, frames), expected), name
    for matrix, result in zip(matrices, expected):
        assert same(decoder.decode(matrix), [result])


def test_no_frames(ctc_graph, ctc_scores):
    decoder = wf.Decoder(ctc_graph)
    matrix = next(iter(ctc_scores.values()))
    empty = FakeTensor(matrix[:0], strides=(0, 0))  # as numpy 2 exports it
    assert same(decoder.decode([matrix, empty]), decoder.decode([matrix, matrix[:0]]))


def test_bfloat16(ctc_graph, ctc_scores):
    matrices = list(ctc_scores.values())[:5]
    bits = [(matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for matrix in matrices]
    rounded = [(b.astype(np.uint32) << 16).view(np.float32) for b in bits]
    decoder = wf.Decoder(ctc_graph)
    assert same(decoder.decode([FakeTensor(b, code=4) for b in bits]), decoder.decode(rounded))


@pytest.mark.parametrize(
    ("scores", "lengths", "kind", "message"),
    [
        (np.zeros((3, 40), np.float64), None, TypeError, "float32"),
        (np.zeros((3, 40), np.int32), None, TypeError, "float32"),
        (np.zeros((3, 40), ">f4"), None, TypeError, "float32"),
        (np.zeros((3, 40), np.complex64), None, TypeError, "float32"),
        (np.zeros(40, np.float32), None, ValueError, "expected .frames, columns"),
        (np.zeros((1, 1, 3, 40), np.float32), None, ValueError, "expected .frames, columns"),
        (np.float32(3), None, ValueError, "expected .frames, columns"),
        ([np.zeros((2, 3, 40), np.float32)], None, ValueError, "utterance 0"),
        (np.zeros((3, 80), np.float32)[:, ::2], None, ValueError, "contiguous"),
        (np.zeros((3, 40), np.float32)[:, ::-1], None, ValueError, "contiguous"),
        (np.zeros((3, 40), np.float32)[::-1], None, ValueError, "contiguous"),
        (np.zeros((40, 3), np.float32).T, None, ValueError, "contiguous"),
        (np.zeros((2, 3, 40), np.float32)[::-1], None, ValueError, "contiguous"),
        (np.broadcast_to(np.zeros((1, 40), np.float32), (3, 40)), None, None, "stride"),
        (np.zeros((3, 39), np.float32), None, None, "39"),
        (np.zeros((2, 3, 40), np.float32), [3], ValueError, "1 lengths for 2"),
        (np.zeros((2, 3, 40), np.float32), [3, 4], ValueError, "outside 0 to 3"),
        (np.zeros((2, 3, 40), np.float32), [3, -1], ValueError, "outside 0 to 3"),
        (np.zeros((2, 3, 40), np.float32), [3, 1.5], ValueError, "whole numbers"),
        (np.zeros((2, 3, 40), np.float32), ["a", "b"], ValueError, "invalid literal"),
        ([np.zeros((3, 40), np.float32)], [4], ValueError, "length 4 of 3"),
        ("scores.ark", None, TypeError, "neither the buffer protocol nor DLPack"),
        (b"bytes", None, TypeError, "float32"),
        (None, None, TypeError, "NoneType"),
        ([[0.5, 0.5]], None, TypeError, "list"),
        (FakeTensor(np.zeros((3, 40), np.float64)), None, TypeError, "float64"),
        (FakeTensor(np.zeros((3, 40), np.int32), code=0), None, TypeError, "int32"),
        (FakeTensor(np.zeros((3, 40), np.float32), lanes=4), None, TypeError, "float32"),
        (FakeTensor(np.zeros((3, 40), np.float32), strides=(-40, 1)), None, ValueError, "contiguous"),
        (FakeTensor(np.zeros((3, 40), np.float32), strides=(1, 3)), None, ValueError, "contiguous"),
        (FakeTensor(np.zeros((3, 40), np.float32), device=(10, 0)), None, TypeError, "type 10"),
        (FakeTensor(np.zeros((3, 40), np.float32), version=(2, 0)), None, TypeError, "version 2.0"),
        (FakeTensor(np.zeros((3, 40), np.float32), device=(2, 0)), None, ValueError, "device='cuda'"),
        ([FakeTensor(np.zeros((3, 40), np.float32), device=(2, i)) for i in range(2)], None, ValueError, "several GPUs"),
    ],
)
def test_hostile_input(ctc_graph, scores, lengths, kind, message):
    decoder = wf.Decoder(ctc_graph)
    if kind is None:  # an utterance of its own may fail without the batch
        with pytest.raises(wf.Error, match=message):
            _ = decoder.decode(scores, lengths)[0].text
    else:
        with pytest.raises(kind, match=message):
            decoder.decode(scores, lengths)
    assert decoder.decode(np.zeros((0, 40), np.float32))[0].num_frames == 0  # and goes on


def test_not_a_capsule(ctc_graph):
    class Liar:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return "no capsule"

    with pytest.raises(TypeError, match="capsule"):
        wf.Decoder(ctc_graph).decode(Liar())


def test_an_utterance_that_fails_leaves_the_others_alone(ctc_graph, ctc_scores):
    good = [matrix.astype(np.float32) for matrix in list(ctc_scores.values())[:3]]
    bad = good[1].copy()
    bad[5, 7] = math.nan
    results = wf.Decoder(ctc_graph).decode([good[0], bad, good[2]])
    assert same([results[0], results[2]], wf.Decoder(ctc_graph).decode([good[0], good[2]]))
    assert isinstance(results[1].error, wf.ArgumentError) and results[1].num_frames == len(bad) and "5" in str(results[1].error)
    for name in ("text", "words", "cost", "lattice"):
        with pytest.raises(wf.ArgumentError, match="frame 5, column 7 is NaN"):
            getattr(results[1], name)
    with pytest.raises(AttributeError):
        _ = results[0].no_such_thing
    for value in (math.inf, 1e30):
        bad[5, 7] = value
        assert wf.Decoder(ctc_graph).decode(bad)[0].error is not None


def test_empty_batches(ctc_graph):
    decoder = wf.Decoder(ctc_graph)
    assert decoder.decode([]) == [] and decoder.decode(np.zeros((0, 5, 40), np.float32)) == []
    assert [r.num_frames for r in decoder.decode(np.zeros((2, 5, 40), np.float32), [0, 5])] == [0, 5]


def test_the_stream_that_a_gpu_producer_is_told():
    """Without a GPU the call must end in an error, but only after the producer was asked for the right order."""
    from warpfst.scores import Batch

    tensor = FakeTensor(np.zeros((3, 40), np.float32), device=(2, 1), version=(1, 0))
    batch = Batch(tensor)
    assert tensor.calls == [(1, {"max_version": (1, 1)})] and batch.device == 1 and batch.scores[0].on_device
    tensor = FakeTensor(np.zeros((3, 40), np.float32), device=(2, 0))
    Batch(tensor, None, 0x1234)
    assert [stream for stream, _ in tensor.calls] == [0x1234, 0x1234]  # 1.0 first, then the older protocol
    host = FakeTensor(np.zeros((3, 40), np.float32))
    Batch(host)
    assert all(stream is None for stream, _ in host.calls)


def test_closed_decoders_and_streams(ctc_graph):
    decoder = wf.Decoder(ctc_graph)
    with pytest.raises(wf.UnsupportedError):
        decoder.set_stream(0x1234)
    decoder.close()
    for use in (lambda: decoder.decode([]), lambda: decoder.plan(), lambda: decoder.set_stream(0)):
        with pytest.raises(wf.StateError):
            use()
    with wf.Decoder(ctc_graph) as inside:
        inside.decode([])
    with pytest.raises(wf.StateError):
        inside.decode([])


def test_progress_and_cancelling(ctc_graph, ctc_scores):
    seen = []
    decoder = wf.Decoder(ctc_graph, num_threads=1)
    decoder.decode(list(ctc_scores.values()), progress=lambda stage, fraction: seen.append(fraction))
    assert seen and all(0 <= fraction <= 1 for fraction in seen)
    with pytest.raises(wf.CancelledError):
        decoder.decode(list(ctc_scores.values()), progress=lambda *_: False)
    with pytest.raises(ZeroDivisionError):
        decoder.decode(list(ctc_scores.values()), progress=lambda *_: 1 / 0)
    assert decoder.decode(next(iter(ctc_scores.values())))[0].error is None


def test_threads_share_a_graph_and_even_a_decoder(ctc_graph, ctc_scores):
    matrices = list(ctc_scores.values())[:10]
    shared = wf.Decoder(ctc_graph, num_threads=1)
    expected = shared.decode(matrices)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(decoder.decode, matrices) for decoder in [shared] * 4 + [wf.Decoder(ctc_graph, num_threads=1) for _ in range(4)]]
        assert all(same(job.result(), expected) for job in jobs)


def test_the_gil_is_free_while_decoding(ctc_graph, ctc_scores):
    matrices = list(ctc_scores.values()) * 4
    decoder = wf.Decoder(ctc_graph, num_threads=1)
    done = threading.Event()
    worker = threading.Thread(target=lambda: (decoder.decode(matrices), done.set()))
    worker.start()
    ticks = 0
    while not done.is_set():
        done.wait(0.001)
        ticks += 1
    worker.join()
    assert ticks > 20


def test_two_calls_are_under_way_at_one_time(ctc_graph, ctc_scores):
    """Each call waits, from within C, until the other is there too: with one behind the other the barrier would break."""
    barrier = threading.Barrier(2, timeout=30)

    def decode_and_meet(_):
        met = []
        results = wf.Decoder(ctc_graph, num_threads=1).decode(list(ctc_scores.values()), progress=lambda *_: None if met else met.append(barrier.wait()))
        return met[0], results

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        (first, left), (second, right) = pool.map(decode_and_meet, range(2))
    assert {first, second} == {0, 1} and same(left, right)


def test_confidences(ctc_graph, ctc_scores, tmp_path):
    """Those of `warpfst decode --confidence`; and by all paths of small graphs below."""
    keys, matrices = list(ctc_scores), list(ctc_scores.values())
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6).decode(matrices)
    for key, matrix in ctc_scores.items():
        np.save(tmp_path / f"{key}.npy", matrix)
    ctc_graph.save(tmp_path / "graph.wfst")
    program = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
    command = [program, "decode", "graph.wfst", *(f"{key}.npy" for key in keys), "--acoustic-scale=0.7", "--lattice-beam=6", "--confidence", "--format=json", "-o", "out"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    theirs = {row["key"]: row for row in map(json.loads, (tmp_path / "out").read_text().splitlines())}
    for key, result in zip(keys, results):
        words = theirs[key]["words"]
        assert [word.text for word in result.words] == [word["word"] for word in words]
        assert all(math.isclose(word.confidence, other["confidence"], abs_tol=1e-4) for word, other in zip(result.words, words))
        assert all(0 <= word.confidence <= 1 for word in result.words)
        assert pickle.loads(pickle.dumps(result)).words == result.words
    assert any(word.confidence < 0.9 for result in results for word in result.words)
    assert all(word.confidence is None for word in wf.Decoder(ctc_graph).decode(matrices[0])[0].words)


def test_confidences_by_all_paths(rng):
    """Graphs of one word a sequence: a confidence is the share of the probability of all sequences."""
    for _ in range(20):
        columns = int(rng.integers(2, 6))
        arcs = [(0, 1, column + 1, column + 1, float(rng.integers(0, 64)) / 32) for column in range(columns)]
        scores = -rng.integers(0, 96, (1, columns)).astype(np.float32) / 32
        costs = np.array([weight - scores[0, column - 1] for _, _, column, _, weight in arcs])
        result = wf.Decoder(wf.Fst.from_arcs(arcs, {1: 0.0}), lattice_beam=1e6, **WIDE).decode(scores)[0]
        assert math.isclose(result.words[0].confidence, np.exp(-costs.min()) / np.exp(-costs).sum(), abs_tol=1e-5)


def test_pickles(ctc_graph, ctc_scores, tmp_path):
    matrices = list(ctc_scores.values())[:5]
    decoder = wf.Decoder(ctc_graph, beam=9)
    again = pickle.loads(pickle.dumps(decoder))
    assert again.config == decoder.config and same(again.decode(matrices), decoder.decode(matrices))
    ctc_graph.save(tmp_path / "graph.wfst")
    assert same(wf.Decoder(tmp_path / "graph.wfst", beam=9).decode(matrices), decoder.decode(matrices))


def test_columns_of_labels(tmp_path):
    fst = wf.Fst.from_arcs([(0, 1, 5, 1, 0.0), (0, 1, 2, 2, 0.0)], {1: 0.0})
    columns = [-1, 1, 0, 1, 1, 1]
    graph = wf.Graph(fst, columns)
    graph.save(tmp_path / "g.wfst")
    for one in (graph, wf.Graph.load(tmp_path / "g.wfst"), pickle.loads(pickle.dumps(graph))):
        assert wf.Decoder(one).decode(np.array([[-1, -9]], np.float32))[0].words[0].label == 2
        assert wf.Decoder(one).decode(np.array([[-9, -1]], np.float32))[0].words[0].label == 1
        assert one.min_columns == 2
    with pytest.raises(wf.ArgumentError):
        wf.Graph(fst, [-1, 0])
    (tmp_path / "g.wfst.columns").write_text("2 0\nx 1\n")
    with pytest.raises(ValueError, match="columns:2"):
        wf.Graph.load(tmp_path / "g.wfst")


def test_graphs_that_cannot_be_decoded():
    with pytest.raises(wf.NegativeCycleError):
        wf.Graph(wf.Fst.from_arcs([(0, 0, 0, 0, -1.0)], {0: 0.0}))
    with pytest.raises(wf.ArgumentError):
        wf.Graph(wf.Fst.from_text("", arc_type="standard"))


def test_without_cuda_the_answer_is_clear(ctc_graph):
    reason = wf.cuda_available()
    if reason is not None:
        with pytest.raises(wf.DeviceError, match="cuda"):
            wf.Decoder(ctc_graph, device="cuda")
    with pytest.raises(wf.Error, match="tpu"):
        wf.Decoder(ctc_graph, device="tpu")
