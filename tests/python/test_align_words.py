"""Words of any text by alignment: real scores of byte pairs, against alignments of the tokens, with punctuation, numbers, wrong words, and long recordings."""

import random

import numpy as np
import pytest
from conftest import CTC

import warpfst as wf
from warpfst.align import spoken_words
from warpfst.integrations import ModelTokens

FRAME = 0.04


@pytest.fixture(scope="module")
def tokens():
    table = [line.split() for line in (CTC / "tokens_bpe.txt").read_text().splitlines()]
    return ModelTokens([name for name, _ in table], 0, "tokens_bpe.txt")


@pytest.fixture(scope="module")
def spoken(references):
    """Scores and the texts that were said, of utterances that have both."""
    names = [path.stem for path in sorted((CTC / "logp_pieces").glob("*.npy"))]
    return [np.load(CTC / "logp_pieces" / f"{name}.npy").astype(np.float32) for name in names], [" ".join(references[name]) if not isinstance(references[name], str) else references[name] for name in names]


def times(result):
    assert result.error is None
    return [(word.start, word.end) for word in result.words]


def test_words_are_those_of_the_tokens(tokens, spoken):
    scores, texts = spoken
    results = wf.align_words(scores, texts, tokens)
    for matrix, text, result in zip(scores, texts, results):
        spelled = [[tokens.names.index(name) for name in tokens.spell(word)] for word in text.split()]
        (plain,) = wf.align(matrix, [[column for word in spelled for column in word]])
        at = 0
        for word, own, found in zip(text.split(), spelled, result.words):
            mine, at = plain.tokens[at : at + len(own)], at + len(own)
            assert (found.text, found.start, found.end) == (word, mine[0].start, mine[-1].end)
            assert 0 < found.confidence <= 1
        assert len(result.words) == len(text.split()) and result.num_frames == len(matrix)


def test_punctuation_and_capitals_are_kept(tokens, spoken):
    scores, texts = spoken
    written = [" ".join(f"\u201c{word.capitalize()}\u201d," if i % 2 else f"({word.lower()})" for i, word in enumerate(text.split())) + " \u2013 !" for text in texts]
    for plain, result, text in zip(wf.align_words(scores, texts, tokens), wf.align_words(scores, written, tokens), written):
        assert [word.text for word in result.words] == text.split()
        assert times(result)[:-2] == times(plain)
        assert result.words[-1].start == result.words[-1].end == result.words[-3].end and result.words[-1].confidence == 0


def test_numbers_get_the_time_of_the_speech(tokens, spoken):
    """A word is written as a number. Its time is near the word's, and the other words keep theirs."""
    scores, texts = spoken
    plain, near, kept, total = wf.align_words(scores, texts, tokens), 0, 0, 0
    for place in range(3):
        written = [" ".join("42" if i == place + 1 else word for i, word in enumerate(text.split())) for text in texts]
        for before, after, text in zip(plain, wf.align_words(scores, written, tokens), written):
            if "42" not in text.split()[:-1]:
                continue
            old, new = times(before), times(after)
            near += abs(old[place + 1][0] - new[place + 1][0]) <= 10
            kept += sum(a == b for i, (a, b) in enumerate(zip(old, new)) if i != place + 1) / (len(old) - 1)
            total += 1
    assert total > 15 and near > 0.9 * total and kept > 0.9 * total
    normalized = wf.align_words(scores, [text.replace("IS", "1") for text in texts], tokens, normalize=lambda word: spoken_words(word.replace("1", "IS")))
    assert [times(one) for one in normalized] == [times(one) for one in plain]


def test_wrong_words(tokens, spoken):
    """A share of the words are others. With garbage and words that may be left out, nearly all right words keep their times."""
    scores, texts = spoken
    plain, rng, right, total = wf.align_words(scores, texts, tokens), random.Random(1), [], 0
    others = sorted({word for text in texts for word in text.split()})
    for _ in range(20):
        changed = [[rng.choice(others) if rng.random() < 0.15 else word for word in text.split()] for text in texts]
        results = wf.align_words(scores, [" ".join(words) for words in changed], tokens, garbage=2, skip_words=6)
        right += [(a, b) for before, after, words in zip(plain, results, changed) for a, b, word in zip(before.words, after.words, words) if a.text == word]
        total += sum(map(len, changed))
    assert 0.8 < len(right) / total < 0.95
    assert sum(abs(a.start - b.start) * FRAME <= 0.2 for a, b in right) > 0.85 * len(right)


def test_long_recordings(tokens, spoken):
    """The utterances one after the other, forty times: each word is where it is in its utterance."""
    scores, texts = spoken
    expected, offset, rows, words = [], 0, [], []
    for _ in range(40):
        for matrix, text, result in zip(scores, texts, wf.align_words(scores, texts, tokens)):
            expected += [(start + offset, end + offset) for start, end in times(result)]
            offset += len(matrix)
            rows.append(matrix)
            words.append(text)
    (long,) = wf.align_words([np.concatenate(rows)], [" ".join(words)], tokens)
    found = times(long)
    assert len(found) == len(expected) and long.num_frames == offset
    assert sum(abs(a[0] - b[0]) * FRAME <= 0.1 for a, b in zip(found, expected)) > 0.97 * len(found)


def test_separators(rng):
    """A model with a token between words."""
    names = ["<blk>", "|", "A", "B"]
    tokens = ModelTokens(names, 0, "test", separator="|")
    scores = np.full((9, 4), -9, np.float32)
    for frame, column in enumerate([2, 0, 3, 1, 1, 3, 0, 2, 2]):
        scores[frame, column] = -0.01
    (result,) = wf.align_words([scores], ["Ab, 'ba'?"], tokens)
    assert [(word.text, word.start, word.end) for word in result.words] == [("Ab,", 0, 3), ("'ba'?", 3, 9)]


def test_errors(tokens, spoken):
    scores, texts = spoken
    with pytest.raises(ValueError, match="list of 8"):
        wf.align_words(scores, texts[:1], tokens)
    with pytest.raises(TypeError, match="blank"):
        wf.align_words(scores, texts, tokens, blank=0)
    short, good = wf.align_words([scores[0][:2], scores[1]], [texts[0], texts[1]], tokens, keys=["a", "b"])
    assert "utterance a" in str(short.error) and short.words == [] and good.error is None
    (empty,) = wf.align_words(scores[:1], [""], tokens)
    assert empty.words == [] and empty.error is None
