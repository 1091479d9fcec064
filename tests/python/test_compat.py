"""The interfaces of pyctcdecode and torchaudio. Results are checked without these packages."""

import itertools
import math
import re
import warnings

import numpy as np
import pytest
from conftest import CTC, ROOT
from fake_tensors import FakeTensor

import warpfst as wf
from warpfst.compat import build_ctcdecoder, cuda_ctc_decoder


def log_softmax(x):
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True)) if x.size else x


def greedy(scores, blank=0):
    return [int(token) for token, _ in itertools.groupby(scores.argmax(axis=1)) if token != blank]


def spelled(text, labels, wrong=()):
    """Log-probabilities that spell a text, with a blank frame before each character. `wrong`: pairs (place, other character); the other one is a little likelier."""
    rows = []
    for i, character in enumerate(text):
        row = np.full(len(labels), -8.0)
        row[labels.index(character)] = 0
        for place, other in wrong:
            if place == i:
                row[labels.index(other)] = 0.5
        blank = np.full(len(labels), -8.0)
        blank[labels.index("")] = 0
        rows += [blank, row]
    return log_softmax(np.array(rows))


LETTERS = ["", " ", *"abcdefghijklmnopqrstuvwxyz'"]


def test_tokens_alone_are_the_greedy_text(rng):
    for columns in (2, 7, 60):
        tokens = ["<blk>", *(f"t{i}" for i in range(1, columns))]
        decoder = wf.Decoder(wf.build_ctc_graph(tokens))
        for _ in range(30):
            scores = log_softmax(rng.normal(0, 2, (40, columns)) * 4).astype(np.float32)
            result = decoder.decode(scores)[0]
            best = scores.max(axis=1).astype(np.float64).sum()
            assert [word.label - 1 for word in result.words] == greedy(scores) or abs(best + result.acoustic_cost) < 0.04
            assert math.isclose(-result.acoustic_cost, best, abs_tol=0.04)


def test_doubled_letters_need_a_blank():
    decoder = wf.Decoder(wf.build_ctc_graph(["<blk>", "a"]))
    a, blank = [-9.0, 0.0], [0.0, -9.0]
    for frames, count in (([a, a, a], 1), ([a, blank, a], 2), ([a, blank, blank, a, a], 2), ([blank], 0)):
        assert len(decoder.decode(np.array(frames, np.float32))[0].words) == count


def test_cuda_ctc_decoder(rng, tmp_path):
    tokens = ["<blk>", "a", "b", "c"]
    (tmp_path / "tokens.txt").write_text("".join(f"{token}\n" for token in tokens))
    scores = log_softmax(np.round(rng.normal(0, 5, (3, 20, 4)), 1)).astype(np.float32)
    for decoder in (cuda_ctc_decoder(tokens), cuda_ctc_decoder(str(tmp_path / "tokens.txt"), nbest=1, beam_size=20)):
        for log_prob in (scores, FakeTensor(scores)):
            hypotheses = decoder(log_prob, np.array([20, 7, 0], np.int32))
            assert [len(one) for one in hypotheses] == [1, 1, 1]
            for (one,), frames, length in zip(hypotheses, scores, (20, 7, 0)):
                assert one.words == [tokens[token] for token in one.tokens]
                assert math.isclose(one.score, frames[:length].max(axis=1, initial=-99).sum(), abs_tol=0.02)
                if not np.isclose(np.sort(frames, axis=1)[:, -1], np.sort(frames, axis=1)[:, -2], atol=0.05).any():
                    assert one.tokens == greedy(frames[:length])
    with pytest.raises(ValueError):
        cuda_ctc_decoder(tokens, nbest=0)


def test_several_hypotheses_are_the_best_of_all_alignments(rng):
    tokens = ["<blk>", "a", "b"]
    for _ in range(20):
        scores = log_softmax(rng.normal(0, 1, (5, 3))).astype(np.float32)
        best = {}
        for alignment in itertools.product(range(3), repeat=5):
            collapsed = tuple(token for token, _ in itertools.groupby(alignment) if token)
            best[collapsed] = max(best.get(collapsed, -math.inf), sum(scores[t, token] for t, token in enumerate(alignment)))
        expected = sorted(best.items(), key=lambda item: -item[1])[:4]
        (found,) = cuda_ctc_decoder(tokens, nbest=4)(scores[None], [5])
        assert np.allclose([one.score for one in found], [score for _, score in expected], atol=0.01)
        for one in found:
            assert math.isclose(best[tuple(one.tokens)], one.score, abs_tol=0.01) and one.words == [tokens[token] for token in one.tokens]


@pytest.mark.parametrize("labels", [LETTERS, [*LETTERS[1:], ""], ["<pad>", "|", *LETTERS[2:]]])
def test_build_ctcdecoder_without_words(labels):
    plain = ["" if label in ("", "<pad>") else " " if label == "|" else label for label in labels]
    decoder = build_ctcdecoder(labels)
    assert decoder.decode(spelled("hello wordd", plain)) == "hello wordd"
    assert decoder.decode(spelled("hello wordd", plain) * 1.0 + 3) == "hello wordd"  # logits, not log-probabilities
    ((text, state, frames, logit_score, score),) = decoder.decode_beams(spelled("hi you", plain))
    assert text == "hi you" and state is None and [word for word, _ in frames] == ["hi", "you"] and logit_score <= 0 and score <= logit_score + 1e-6
    assert frames[0][1][0] <= frames[0][1][1] <= frames[1][1][0] <= 12
    assert decoder.decode_batch(None, [spelled("ab", plain), spelled("", plain).reshape(0, len(plain))]) == ["ab", ""]


ARPA = """\\data\\
ngram 1=5
ngram 2=4

\\1-grams:
-1.0 </s>
-99 <s> -0.3
-1.0 hello -0.3
-1.0 world -0.3
-1.5 word -0.3

\\2-grams:
-0.2 <s> hello
-0.1 hello world
-2.0 hello word
-0.1 world </s>

\\end\\
"""


def test_build_ctcdecoder_with_a_language_model(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(ARPA)
    decoder = build_ctcdecoder(LETTERS, path, alpha=0.5, beta=1.0)
    for text in ("hello world", "hello world ", " hello world"):  # spaces at the ends make no difference
        assert decoder.decode(spelled(text, LETTERS)) == "hello world"
    assert decoder.decode(spelled("hellp world", LETTERS)) == "hello world"
    # The score is pyctcdecode's: logits + alpha * ln P + beta * number of words.
    ((_, _, words, logit_score, score),) = decoder.decode_beams(spelled("hello world", LETTERS))
    assert [word for word, _ in words] == ["hello", "world"]
    assert math.isclose(score - logit_score, 0.5 * math.log(10) * -0.4 + 1.0 * 2, abs_tol=1e-3)
    # A hotword bonus decides between "world" and "word": the second-last letter may be d or l.
    unsure = spelled("hello wordd", LETTERS, wrong=[(9, "l")])
    assert decoder.decode(unsure) == "hello world" and decoder.decode(unsure, hotwords=["word"], hotword_weight=30.0) == "hello word"
    with pytest.raises(ValueError, match="zebra"):
        decoder.decode(unsure, hotwords=["zebra"])
    assert build_ctcdecoder(LETTERS, path, unigrams=["hello", "word"]).decode(spelled("hello world", LETTERS)) == "hello word"
    assert build_ctcdecoder(LETTERS, unigrams=["world", "hello", "naïve"]).decode(spelled("hello world hello", LETTERS)) == "hello world hello"


def test_build_ctcdecoder_with_kenlms_trie():
    folder, labels = ROOT / "tests" / "data" / "lm", [" ", *"abcdefg", ""]
    logits = np.log(np.random.default_rng(3).dirichlet(np.full(len(labels), 0.3), 40))
    (text, _, _, _, score), (want, _, _, _, want_score) = (build_ctcdecoder(labels, folder / name).decode_beams(logits)[0] for name in ("kenlm3.qa.bin", "sphinx3.arpa"))
    assert text == want and len(text) > 10 and math.isclose(score, want_score, abs_tol=1e-3)


def test_unsupported_arguments_are_refused(tmp_path):
    decoder = build_ctcdecoder(LETTERS)
    for use in (lambda: build_ctcdecoder(LETTERS, lm_score_boundary=False), lambda: decoder.decode(spelled("a", LETTERS), hotwords=["a"]), lambda: decoder.decode(spelled("a", LETTERS), lm_start_state=1)):
        with pytest.raises(NotImplementedError):
            use()
    with pytest.raises(ValueError, match=re.escape("[frames, 29]")):
        decoder.decode(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="twice"):
        build_ctcdecoder(["", "a", "a"])
    with pytest.raises(wf.FileError):
        build_ctcdecoder(LETTERS, tmp_path / "none.arpa")
    with pytest.raises(ValueError, match="alpha"):
        build_ctcdecoder(LETTERS, CTC / "lm3.arpa.gz", alpha=0)


def test_options_without_effect_give_warnings():
    labels, tokens = ["", "a", "b"], ["<blk>", "a", "b"]
    scores = log_softmax(np.zeros((4, 3)))
    decoder = build_ctcdecoder(labels)
    for call, names in (
        (lambda: decoder.decode(scores, beam_width=5), ["beam_width"]),
        (lambda: decoder.decode(scores, token_min_logp=-1.0), ["token_min_logp"]),
        (lambda: decoder.decode_beams(scores, beam_width=5, prune_history=True), ["beam_width", "prune_history"]),
        (lambda: decoder.decode_batch(object(), [scores]), ["pool"]),
        (lambda: build_ctcdecoder(labels, unk_score_offset=-5.0), ["unk_score_offset"]),
        (lambda: build_ctcdecoder(labels, beta=0.5), ["beta"]),
        (lambda: cuda_ctc_decoder(tokens, beam_size=50), ["beam_size"]),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        told = [str(one.message).partition("=")[0] for one in found if one.category is wf.IgnoredOptionWarning]
        assert told == names and all(one.filename == __file__ for one in found if one.category is wf.IgnoredOptionWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error", wf.IgnoredOptionWarning)
        decoder.decode(scores, beam_prune_logp=-8.0)
        decoder.decode_batch(None, [scores])
        cuda_ctc_decoder(tokens)
