"""Lattices, n-best lists and confidences, checked against all paths of small graphs and against the C program."""

import itertools
import json
import math
import pathlib
import pickle
import subprocess

import numpy as np
import pytest
from conftest import CTC, WIDE, every_path, random_graph

import warpfst as wf


def test_nbest_against_all_paths(rng):
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
        assert compact.complete_beam == compact.determinize().complete_beam == 6 and lattice.determinize(max_bytes=65536).complete_beam <= 6
        assert lattice.prune(2).determinize().complete_beam == compact.prune(2).complete_beam == lattice.determinize(beam=2).complete_beam == 2
        assert compact.align(ctc_graph.word_aligner).complete_beam == 6 and lattice.scale(lm_scale=2).determinize().complete_beam == 8  # not known
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


def test_lattices_compact_and_in_files(ctc_graph, ctc_scores, tmp_path):
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=5).decode(list(ctc_scores.values())[:4])
    with wf.LatticeWriter(tmp_path / "lat.ark") as out:
        for i, result in enumerate(results):
            out.put(f"u{i}", result.lattice)
    read = list(wf.LatticeReader(tmp_path / "lat.ark"))
    aligner = wf.WordAligner.from_lexicon(wf.Lexicon.read(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt"), ctc_graph.words)
    assert [key for key, _ in read] == [f"u{i}" for i in range(4)]
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
    with pytest.raises(wf.Error, match="blank"), wf.LatticeWriter(tmp_path / "bad.ark") as out:
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


@pytest.mark.parametrize("options, flags", [({}, []), ({"confidence_scale": 0.6}, ["--confidence-scale=0.6"]), ({"confidence_scale": 0.6}, ["--confidence-scale=0.6", "--chunk=0.4"])], ids=str)
def test_confidences(ctc_graph, ctc_scores, tmp_path, options, flags):
    """The same confidences as `warpfst decode --confidence`. The next test compares with all paths of small graphs."""
    keys, matrices = list(ctc_scores), list(ctc_scores.values())
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6, **options).decode(matrices)
    for key, matrix in ctc_scores.items():
        np.save(tmp_path / f"{key}.npy", matrix)
    ctc_graph.save(tmp_path / "graph.wfst")
    program = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
    command = [program, "decode", "graph.wfst", *(f"{key}.npy" for key in keys), "--acoustic-scale=0.7", "--lattice-beam=6", "--confidence", "--format=json", "-o", "out", *flags]
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


def test_confidences_against_all_paths(rng):
    """Each sequence is one word, so its confidence is its share of the total probability."""
    for i in range(20):
        columns, scale = int(rng.integers(2, 6)), (1.0, 0.5, 0.25)[i % 3]
        arcs = [(0, 1, column + 1, column + 1, float(rng.integers(0, 64)) / 32) for column in range(columns)]
        scores = -rng.integers(0, 96, (1, columns)).astype(np.float32) / 32
        costs = np.array([weight - scores[0, column - 1] for _, _, column, _, weight in arcs])
        result = wf.Decoder(wf.Fst.from_arcs(arcs, {1: 0.0}), lattice_beam=1e6, confidence_scale=scale, **WIDE).decode(scores)[0]
        costs *= scale
        assert math.isclose(result.words[0].confidence, np.exp(-costs.min()) / np.exp(-costs).sum(), abs_tol=1e-5)


def test_scorer_costs_can_be_separated(ctc_graph, ctc_scores):
    """scorer_costs splits the costs of a compact lattice that was decoded with a scorer; `score` adds the scorer's costs to one decoded without it."""
    matrices = list(ctc_scores.values())[:6]
    scorer = wf.Scorer.boost({"GOING TO SEE": 2.0, "IS": 0.5, "ELEPHANT": -1.25}, ctc_graph.words)
    with_scorer = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6).decode(matrices, boost=scorer)
    without = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6).decode(matrices)
    found = 0
    for result, plain in zip(with_scorer, without):
        compact = result.lattice.determinize(beam=6)
        split = compact.scorer_costs(scorer)
        assert (len(split.arcs), len(split.finals)) == (split.lattice.num_arcs, split.lattice.num_states)
        wanted, found_paths = compact.nbest(20), split.lattice.determinize(beam=6).nbest(20)
        assert [path.words for path in found_paths] == [path.words for path in wanted] and np.allclose([p.cost for p in found_paths], [p.cost for p in wanted], atol=1e-3)
        found += any(cost != 0 for cost in [*split.arcs, *split.finals])
        scored = plain.lattice.determinize(beam=6).score(scorer)
        by_words = {tuple(path.words): path.cost for path in scored.determinize(beam=20).nbest(500)}
        for path in wanted:
            if tuple(path.words) in by_words:
                assert math.isclose(by_words[tuple(path.words)], path.cost, abs_tol=1e-2)
        best = tuple(word.label for word in result.words)
        assert best not in by_words or math.isclose(by_words[best], result.cost, abs_tol=1e-2)
        with pytest.raises(wf.LimitError):
            compact.scorer_costs(scorer, max_states=1)
    assert found


def test_words_and_tokens_of_a_path(ctc_graph, ctc_scores):
    tokens = wf.Symbols.read(CTC / "tokens_phone.txt")
    lexicon = wf.Lexicon.read(CTC / "lexicon_phone.txt", tokens)
    aligner = wf.WordAligner.from_lexicon(lexicon, ctc_graph.words)
    result = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=4, blank=0).decode(ctc_scores["000030012"])[0]
    path = result.lattice.best_path()
    words = aligner.words(path.words, path.alignment)
    assert [word.label for word in words] == path.words
    units = aligner.units(path.alignment)
    # Collapse repeats and drop blanks independently.
    by_hand = [(label, list(group)) for label, group in itertools.groupby(enumerate(path.alignment), key=lambda pair: pair[1])]
    blank = wf.token_blank(tokens) + 1
    expected = [(ctc_graph.fst.isymbols.text(label), group[0][0], group[-1][0] + 1) for label, group in by_hand if label not in (0, blank)]
    assert [(aligner.unit_text(unit.label), unit.start, unit.end) for unit in units] == expected
    # A word spans its first to its last token, and its tokens are one of its pronunciations.
    entries = {(one.word, one.labels) for one in lexicon}
    for word in words:
        inside = [unit for unit in units if word.start <= unit.start < word.end]
        assert (inside[0].start, inside[-1].end) == (word.start, word.end) and (ctc_graph.words.text(word.label), tuple(unit.label for unit in inside)) in entries


def test_many_lattices_at_once(ctc_graph, ctc_scores, tmp_path):
    lattices = [result.lattice for result in wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6).decode(list(ctc_scores.values()))]
    together = wf.determinize_lattices(lattices, beam=6)
    for lattice, compact in zip(lattices, together):
        assert [path.words for path in compact.nbest(10)] == [path.words for path in lattice.determinize(beam=6).nbest(10)]
    together[0].draw(tmp_path / "lattice.html", "u", ctc_graph.words)
    together[0].draw(tmp_path / "lattice.dot", words=ctc_graph.words, format="dot")
    best = " ".join(ctc_graph.words.text(word) for word in together[0].best_path().words)
    assert all(word in (tmp_path / "lattice.html").read_text() for word in best.split()) and "digraph" in (tmp_path / "lattice.dot").read_text()
    assert wf.determinize_lattices([]) == []


def test_listed_words(ctc_graph, ctc_scores, references):
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=8, determinize=True)
    results = decoder.decode(list(ctc_scores.values()))
    listed = sorted({word for key in ctc_scores for word in references[key] if ctc_graph.words.find(word)})
    num_hits = 0
    for result in results:
        hits = result.spot(listed, threshold=0)
        num_hits += len(hits)
        assert hits == sorted(hits, key=lambda hit: (hit.start, hit.label)) and all(0 <= hit.start < hit.end <= result.num_frames for hit in hits)
        likely = [hit for hit in hits if hit.confidence >= 0.5]
        assert likely == result.spot(listed) == result.spot(tuple(listed) * 2) and all(hit.text in listed and ctc_graph.words.find(hit.text) == hit.label for hit in hits)
        # The most probable hit of a word has the largest probability of the word in a frame.
        lattice = result.compact_lattice.align(ctc_graph.word_aligner)
        view, spans, posteriors = lattice._view, {}, lattice.posteriors()[0]
        for state in range(lattice.num_states):
            for i in range(view.arc_off[state], view.arc_off[state + 1]):
                arc = view.arcs[i]
                frames = spans.setdefault(arc.word, np.zeros(result.num_frames))
                frames[view.frames[state] : view.frames[state] + arc.weight.num_labels] += posteriors[i]
        for label in {hit.label for hit in hits}:
            assert math.isclose(max(hit.confidence for hit in hits if hit.label == label), min(1, spans[label].max()), abs_tol=1e-8)
        assert {hit.label for hit in hits} == {ctc_graph.words.find(word) for word in listed} & set(spans)
    assert num_hits > 100
    assert wf.spot(decoder, list(ctc_scores.values()), iter(listed), threshold=0.3) == [result.spot(listed, 0.3) for result in results]
    assert results[0].spot([]) == []
    wrong = [(["THE", "XYZZY"], "1 of 2 words are not in the graph's vocabulary: 'XYZZY'"), (["<eps>"], "vocabulary"), (["THE THE"], "vocabulary")]
    for words, message in wrong:
        with pytest.raises(wf.ArgumentError, match=message):
            results[0].spot(words)
    with pytest.raises(TypeError, match="a list of words"):
        wf.spot(decoder, ctc_scores[next(iter(ctc_scores))], "THE")
    with pytest.raises(wf.ArgumentError, match="threshold is 2"):
        results[0].spot(["THE"], 2)
    with pytest.raises(wf.ArgumentError, match="word 1 is 0"):
        results[0].compact_lattice.spot([5, 0])
    with pytest.raises(wf.ArgumentError, match="spot needs a lattice: set lattice_beam"):
        wf.spot(wf.Decoder(ctc_graph), ctc_scores[next(iter(ctc_scores))], ["THE"])
    with pytest.raises(wf.ArgumentError, match="not included in pickles"):
        pickle.loads(pickle.dumps(results[0])).spot(["THE"])
    with pytest.raises(wf.ArgumentError, match="no symbol table"):
        wf.spot(wf.Decoder(ctc_graph.fst.with_symbols(None, None), lattice_beam=4), ctc_scores[next(iter(ctc_scores))], ["THE"])


def test_the_program_finds_the_same_listed_words(ctc_graph, ctc_scores, references, tmp_path):
    keys = list(ctc_scores)
    listed = sorted({word for key in keys for word in references[key] if ctc_graph.words.find(word)})
    results = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=8).decode(list(ctc_scores.values()))
    for name in ("lattice", "compact_lattice"):
        with wf.LatticeWriter(tmp_path / f"{name}.ark") as out:
            for key, result in zip(keys, results):
                out.put(key, getattr(result, name))
    ctc_graph.save(tmp_path / "graph.wfst")
    ctc_graph.words.write(tmp_path / "words.txt")
    (tmp_path / "list.txt").write_text("".join(f"{word}\n" for word in listed) + "\n")

    def spot(*flags):
        program = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
        command = [program, "lattice", "spot", "--words=words.txt", "--frame-shift=0.04", "--graph=graph.wfst", *flags]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    expected = [(key, hit) for key, result in zip(keys, results) for hit in result.spot(listed, 0.1)]
    for source in (["compact_lattice.ark"], ["lattice.ark", "--beam=8"]):
        run = spot(*source, "--list=list.txt", "--threshold=0.1")
        assert run.returncode == 0 and run.stderr.splitlines()[-1] == f"16 lattices, {len(listed)} words, {len(expected)} hits"
        lines = [line.split() for line in run.stdout.splitlines()]
        assert [(key, word) for key, _, _, _, word, _ in lines] == [(key, hit.text) for key, hit in expected]
        for (_, _, start, duration, _, confidence), (_, hit) in zip(lines, expected):
            assert math.isclose(float(start), 0.04 * hit.start, abs_tol=2e-3) and math.isclose(float(duration), 0.04 * (hit.end - hit.start), abs_tol=2e-3)
            assert math.isclose(float(confidence), hit.confidence, abs_tol=1e-4)
    (tmp_path / "unknown.txt").write_text("THE\nXYZZY\n")
    (tmp_path / "phrase.txt").write_text("THE THE\n")
    wrong = [
        (["--list=unknown.txt"], "unknown.txt:2: the word 'XYZZY' is not in the word table"),
        (["--list=phrase.txt"], "phrase.txt:1: expected one word in a line"),
        (["--list=none.txt"], "none.txt: cannot open: No such file"),
        ([], "no word list given: --list FILE"),
    ]
    for flags, message in wrong:
        run = spot("compact_lattice.ark", *flags)
        assert run.returncode > 0 and message in run.stderr and run.stdout == ""


def test_lattices_of_results_know_their_words(ctc_graph, ctc_scores, tmp_path):
    """Raw and compact lattices of results, those made from them, and those of streams: texts of paths, of minimum Bayes risk words and of hits; words given as texts."""
    scores = next(iter(ctc_scores.values()))
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6)
    result = decoder.decode([scores])[0]
    made = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6, determinize=True, mbr=True).decode([scores])[0]
    stream = decoder.stream()
    stream.advance(scores)
    raw, compact = result.lattice, result.compact_lattice
    lm = wf.LM.read(CTC / "lm3.arpa.gz", ctc_graph.words)
    raws = [raw, raw.prune(3), raw.scale(), compact.to_raw(), made.lattice, stream.partial_lattice()]
    compacts = [compact, raw.determinize(), raw.to_compact().determinize(), compact.determinize(), compact.prune(3), compact.scale(), compact.rescore(lm, lm)]
    compacts += [compact.align(ctc_graph.word_aligner).determinize(), wf.determinize_lattices([raw])[0], made.compact_lattice, stream.finish().compact_lattice]
    for lattice in (*raws, *compacts):
        assert lattice.words.text(1) == ctc_graph.words.text(1) and lattice.best_path().text == result.text
    for lattice in compacts:
        assert lattice.nbest(2)[0].text == result.text and len({path.text for path in lattice.nbest(3)}) == len(lattice.nbest(3))
        assert " ".join(word.text for word in lattice.mbr(decode=False).words) == result.text
        assert lattice.confidences(result.text) == lattice.confidences([word.label for word in result.words]) == lattice.confidences(result.text.split())
        hits = lattice.spot([result.words[0].text])
        assert hits == lattice.spot([result.words[0].label]) and hits[0].text == result.words[0].text
    assert [word.text for word in made.mbr().words] == [ctc_graph.words.text(word.label) for word in result.mbr().words]

    # An oracle against a text: words as texts; a word that the graph lacks is an error, as in `warpfst lattice oracle`.
    reference = [path.text for path in compact.nbest(5)][-1]
    assert compact.oracle(reference) == (reference.split(), 0) == compact.oracle(reference.split())
    assert compact.oracle([ctc_graph.words.find(word) for word in reference.split()]) == ([ctc_graph.words.find(word) for word in reference.split()], 0)
    assert compact.oracle(f"{reference} nonesuch") == (reference.split(), 1) and compact.oracle("")[1] == min(len(path.words) for path in compact.nbest(1000))
    compact.draw(tmp_path / "lattice.html")
    assert result.words[0].text in (tmp_path / "lattice.html").read_text()
    for call in (lambda: compact.spot(["nonesuch"]), lambda: compact.confidences("nonesuch")):
        with pytest.raises(wf.ArgumentError, match="'nonesuch' is not a word of the lattice"):
            call()
    with pytest.raises(TypeError, match="expected a list, found str"):
        compact.spot("A B")


def test_words_of_lattices_without_a_table_and_with_added_words(tmp_path):
    scores = np.log(np.full((4, 3), 1 / 3, np.float32))
    bare = wf.Decoder(wf.Fst.from_arcs([(0, 0, 1, 7, 0.0)], {0: 0.0}), lattice_beam=4).decode(scores)[0]
    assert bare.compact_lattice.words is None and bare.compact_lattice.best_path().text is None and bare.mbr().words[0].text is None
    assert bare.compact_lattice.oracle([7, 7])[0] == [7, 7, 7, 7]
    with pytest.raises(wf.ArgumentError, match="no symbol table of words"):
        bare.compact_lattice.oracle("7")
    words = wf.Symbols(["<eps>", "now", "<name>"])
    grammar = wf.Fst.from_arcs([(0, 1, 2, 2, 0.0), (0, 1, 1, 1, 20.0)], {1: 0.0}, isymbols=words, osymbols=words)
    graph = wf.build_ctc_graph(["<blk>", "a", "b"], {"now": "a"}, grammar=grammar, words=words, topology="compact", classes="<name>")
    mine = graph.add_words(["ab", "ba"])
    result = wf.Decoder(graph, lattice_beam=9).decode(scores, graphs=mine)[0]
    assert result.text in ("ab", "ba") and result.lattice.best_path().text == result.text
    assert {path.text for path in result.compact_lattice.nbest(9)} == {"ab", "ba"} and result.compact_lattice.oracle("ba") == (["ba"], 0)
    result.compact_lattice.draw(tmp_path / "x.html")
    assert ">ab<" in (tmp_path / "x.html").read_text()
    with wf.LatticeWriter(tmp_path / "x.ark") as out:
        out.put("u", result.compact_lattice)
    read = dict(wf.LatticeReader(tmp_path / "x.ark", words=mine.words))["u"]
    assert {path.text for path in read.nbest(9)} == {"ab", "ba"} and dict(wf.LatticeReader(tmp_path / "x.ark"))["u"].nbest(1)[0].text is None
