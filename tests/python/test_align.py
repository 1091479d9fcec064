"""Forced alignment. tests/decode/test_align.c has the check against all paths. With torchaudio, paths are compared with its forced_align:
`pip install torch torchaudio`, then `pytest tests/python/test_align.py`."""

import math
import pathlib
import re
import subprocess
import sys
import warnings

import numpy
import pytest

import warpfst as wf

CARDS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "cards"
SPHINX = pathlib.Path("/usr/share/pocketsphinx/model/en-us")


def make(rng, frames, columns, tokens):
    scores = rng.normal(size=(frames, columns)).astype("float32") * 3
    scores -= numpy.log(numpy.exp(scores).sum(1, keepdims=True))
    return scores, rng.integers(1, columns, tokens).tolist()


def test_batch_equals_single():
    rng = numpy.random.default_rng(1)
    made = [make(rng, int(frames), 12, int(frames) // 5) for frames in rng.integers(5, 300, 20)]
    results = wf.align([scores for scores, _ in made], [targets for _, targets in made])
    padded = numpy.zeros((20, 300, 12), "float32")
    for i, (scores, _) in enumerate(made):
        padded[i, : len(scores)] = scores
    again = wf.align(padded, [targets for _, targets in made], [len(scores) for scores, _ in made], num_threads=2)
    for (scores, targets), result, other in zip(made, results, again):
        assert result.error is None
        (alone,) = wf.align(scores, targets)
        assert alone.tokens == result.tokens == other.tokens
        assert [token.column for token in alone.tokens] == targets
        path = alone.path
        assert [column for t, column in enumerate(path) if column != 0 and (t == 0 or path[t - 1] != column)] == targets
        assert math.isclose(alone.log_prob, scores[range(len(path)), path].sum(), rel_tol=1e-4)
        assert all(0 < token.confidence <= 1 for token in alone.tokens)


def test_errors():
    rng = numpy.random.default_rng(2)
    scores, _ = make(rng, 4, 5, 0)
    short, bad, good, outside = wf.align([scores] * 4, [[1, 1, 2, 2], [0], [1, 2], [5]], keys=["a", "b", "c", "d"])
    assert (
        isinstance(short.error, wf.ArgumentError) and str(short.error) == "utterance a: 4 frames, but 4 tokens with blanks between equal ones need at least 6"
    )
    assert "utterance b: token 0 is column 0, the blank" in str(bad.error) and bad.tokens == [] and bad.path == []
    assert good.error is None and len(good.tokens) == 2
    assert "utterance d: token 0 is column 5" in str(outside.error)
    scores[2, 1] = numpy.nan
    assert "utterance 0: score nan in frame 2, column 1" in str(wf.align(scores, [1])[0].error)
    with pytest.raises(ValueError, match="1 targets for 2 utterances"):
        wf.align([scores, scores], [[1]])
    with pytest.raises(wf.ArgumentError, match="blank"):
        wf.align(scores, [1], blank=-1)


def test_gaps():
    scores = numpy.full((7, 4), -9, "float32")
    for frame, column in enumerate([1, 3, 3, 3, 2, 0, 2]):  # column 3 is not in the text
        scores[frame, column] = 0
    (plain,) = wf.align(scores, [[1, 2, 1, 2, 2]])
    assert plain.error is None and plain.garbage == []
    (got,) = wf.align(scores, [[1, 2, 1, 2, 2]], words=[[1, 2, 2]], garbage=0.5, skip_words=1)
    assert got.path == [1, -1, -1, -1, 2, 0, 2]
    assert got.log_prob == -2.5 and got.garbage == [(-1, 1, 4, -1.5)]
    skipped = [token for token in got.tokens if token.start == token.end]
    assert [token.column for token in skipped] == [2, 1] and all(token.confidence == 0 for token in skipped)
    (failed,) = wf.align(scores, [[1, 2]], words=[[1]], garbage=0.5)
    assert "utterance 0: the words end at token 1 of 2" in str(failed.error)
    with pytest.raises(ValueError, match="2 words for 1 utterances"):
        wf.align(scores, [[1, 2]], words=[[1], [1]])
    with pytest.raises(wf.ArgumentError, match="garbage"):
        wf.align(scores, [[1, 2]], garbage=-2)


@pytest.mark.skipif(not SPHINX.exists(), reason="no pocketsphinx-en-us")
def test_hybrid_with_the_graph_of_a_transcript(tmp_path):
    for line in (CARDS / "ref").read_text().splitlines():
        key, *said = line.split()
        words = wf.Symbols(["<eps>", *dict.fromkeys(said)])
        arcs = [(place, place + 1, words.find(word), words.find(word), 0.0) for place, word in enumerate(said)]
        grammar = wf.Fst.from_arcs(arcs, {len(said): 0.0}, isymbols=words, osymbols=words)
        wf.build_hmm_graph(SPHINX / "en-us", SPHINX / "cmudict-en-us.dict", grammar=grammar).save(tmp_path / "said.wfst")
        command = ["transcribe", CARDS / f"{key}.wav", "--model", SPHINX, "--graph", tmp_path / "said.wfst", "--format", "ctm"]
        run = subprocess.run([sys.executable, "-m", "warpfst", *command], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        fields = [line.split() for line in run.stdout.splitlines()]
        assert [word for *_, word in fields] == said
        starts, lengths = ([float(row[column]) for row in fields] for column in (2, 3))
        assert all(length > 0 for length in lengths)
        assert all(start + length <= after + 0.005 for start, length, after in zip(starts, lengths, starts[1:]))


@pytest.mark.skipif(not SPHINX.exists(), reason="no pocketsphinx-en-us")
def test_hybrid():
    rng = numpy.random.default_rng(4)
    scores = [rng.integers(-20, 0, (frames, 5126)).astype(numpy.float32) for frames in (80, 50)]
    texts, hmm = ["the first word", "read a read"], wf.Hmm.read_sphinx(SPHINX / "en-us")
    lexicon = {"the": ["DH", "AH"], "first": ["F", "ER", "S", "T"], "word": ["W", "ER", "D"], "read": ["R", "IY", "D"], "a": ["AH"]}
    found = wf.align_hmm(scores, texts, hmm, lexicon)
    for one, matrix, said in zip(found, scores, texts):
        words = wf.Symbols(["<eps>", *dict.fromkeys(said.split())])
        arcs = [(place, place + 1, words.find(word), words.find(word), 0.0) for place, word in enumerate(said.split())]
        grammar = wf.Fst.from_arcs(arcs, {len(said.split()): 0.0}, isymbols=words, osymbols=words)
        graph = wf.build_hmm_graph(hmm, lexicon, grammar=grammar, words=words, lm_weight=1, word_prob=1)
        (best,) = wf.Decoder(graph, beam=1e6, max_active=100000).decode(matrix)
        assert one.error is None and [word.text for word in one.words] == said.split()
        assert [(word.start, word.end) for word in one.words] == [(word.start, word.end) for word in best.words]
        assert (one.acoustic_cost, one.graph_cost) == (best.acoustic_cost, best.graph_cost)
        assert [0, *(phone.end for phone in one.phones)] == [*(phone.start for phone in one.phones), len(matrix)]
    assert wf.align_hmm(scores, texts, SPHINX / "en-us", lexicon, num_threads=2, beam=500) == found
    failed = wf.align_hmm([scores[0], scores[1][:3], scores[1][:, :9], scores[1]], ["first zzyzzx", *texts, ""], hmm, lexicon, keys=["a", "b", "c", "d"])
    for one, message in zip(failed, ("utterance a: .*zzyzzx", "utterance b: no path", "utterance c: .*columns", "utterance d: .*0 words")):
        assert one.words == [] and re.search(message, str(one.error)), one
    with pytest.raises(ValueError, match="texts"):
        wf.align_hmm(scores, texts[:1], hmm, lexicon)
    with pytest.raises(wf.ArgumentError, match="beam"):
        wf.align_hmm(scores, texts, hmm, lexicon, beam=-1)


def test_like_torchaudio():
    torch = pytest.importorskip("torch")
    torchaudio = pytest.importorskip("torchaudio")
    rng, equal = numpy.random.default_rng(3), 0
    for _ in range(300):
        frames = int(rng.integers(3, 3000))
        scores, targets = make(rng, frames, int(rng.integers(3, 60)), int(rng.integers(1, frames // 3 + 1)))
        path, path_scores = torchaudio.functional.forced_align(torch.from_numpy(scores)[None], torch.tensor([targets], dtype=torch.int32), blank=0)
        (got,) = wf.align(scores, targets)
        assert got.error is None
        total = numpy.add.accumulate(scores[range(frames), path[0].tolist()])[-1]  # in float32, in the order of the frames, as ours
        if got.path == path[0].tolist():
            equal += 1
            assert numpy.array_equal(scores[range(frames), got.path], path_scores[0].numpy())
        else:  # each difference seen was a path of torchaudio with a lower sum
            assert got.log_prob > total
    assert equal >= 295


def test_a_text_that_lacks_the_speech_gives_a_warning():
    said = [1 + t % 3 for t in range(40)]
    scores = numpy.full((160, 4), -9.0, "float32")
    scores[:, 0] = -0.01
    for t, token in enumerate(said):
        scores[4 * t + 1, 0], scores[4 * t + 1, token] = -9.0, -0.01
    for part, share in ((40, 0), (28, 0), (18, 55), (0, 100)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            wf.align([scores, scores], [said[:part], said[:part]], keys=["first", "second"])
        assert len(seen) == (share > 0)
        if share:
            assert f"utterance first: the text has no place for {share}% of the speech" in str(seen[0].message) and str(seen[0].message).endswith("(and 1 more)")
            assert seen[0].category is wf.InputWarning and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.align(scores, [said[:10]], garbage=1.0)
        wf.align(scores[:60], [said[:2]])  # 15 frames of speech are too few to tell
