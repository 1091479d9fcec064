"""The interfaces of pyctcdecode and torchaudio. Results are checked without these packages."""

import itertools
import json
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from conftest import ROOT
from fake_tensors import FakeTensor

import warpfst as wf
from warpfst.compat import Alphabet, BeamSearchDecoderCTC, build_ctcdecoder, cuda_ctc_decoder


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


def sums_of_alignments(scores, skip):
    """ln of the summed probability of each token sequence. Frames whose blank has at least the probability `skip` have no other token."""
    sums, blank_alone = {}, scores[:, 0] >= math.log(skip)
    for alignment in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        if any(token and alone for token, alone in zip(alignment, blank_alone)):
            continue
        collapsed = tuple(token for token, _ in itertools.groupby(alignment) if token)
        sums[collapsed] = np.logaddexp(sums.get(collapsed, -math.inf), sum(float(scores[t, token]) for t, token in enumerate(alignment)))
    return sorted(sums.items(), key=lambda item: -item[1])


def test_cuda_ctc_decoder(rng, tmp_path):
    tokens = ["<blk>", "a", "b", "c"]
    (tmp_path / "tokens.txt").write_text("".join(f"{token}\n" for token in tokens))
    scores = log_softmax(rng.normal(0, 1, (30, 6, 4))).astype(np.float32)
    lengths = np.array([6, 3, 0] * 10, np.int32)
    assert (scores[:, :, 0] >= math.log(0.4)).any()
    for decoder, skip in ((cuda_ctc_decoder(tokens, beam_size=5000, nbest=3, blank_skip_threshold=0.4), 0.4), (cuda_ctc_decoder(str(tmp_path / "tokens.txt"), 3, 5000, 1), 1)):
        for log_prob in (scores, FakeTensor(scores)):
            found = decoder(log_prob, lengths)
            for hypotheses, frames, length in zip(found, scores, lengths):
                expected = sums_of_alignments(frames[:length], skip)
                assert np.allclose([one.score for one in hypotheses], [score for _, score in expected[:3]], atol=1e-3)
                assert all(math.isclose(one.score, dict(expected)[tuple(one.tokens)], abs_tol=1e-3) for one in hypotheses)
                assert all(one.words == [tokens[token] for token in one.tokens] for one in hypotheses)


def test_cuda_ctc_decoder_skips_blanks():
    tokens = ["<blk>", "a"]
    scores = np.log(np.array([[[0.1, 0.9], [0.9, 0.1], [0.1, 0.9]]], np.float32))
    for threshold in (0.85, 1):
        (best,) = cuda_ctc_decoder(tokens, beam_size=4, blank_skip_threshold=threshold)(scores, [3])[0]
        assert best.words == ["a", "a"] and math.isclose(best.score, math.log(0.9**3), abs_tol=1e-5)
    # "a" with a blank in the middle: a, blank, blank, or blank, blank, a.
    (_, second) = cuda_ctc_decoder(tokens, 2, 4, 0.85)(scores, [3])[0]
    assert second.words == ["a"] and math.isclose(second.score, math.log(2 * 0.9 * 0.9 * 0.1), abs_tol=1e-5)


def test_cuda_ctc_decoder_refuses():
    for arguments, text in (({"nbest": 0}, "nbest is 0"), ({"nbest": 11}, "beam_size, which is 10")):
        with pytest.raises(ValueError, match=text):
            cuda_ctc_decoder(["<blk>", "a"], **arguments)
    with pytest.raises(ValueError, match="3 columns"):
        cuda_ctc_decoder(["<blk>", "a"])(np.zeros((1, 2, 3), np.float32), [2])
    with pytest.raises(wf.Error, match="utterance 1: .*nan"):
        cuda_ctc_decoder(["<blk>", "a"])(np.array([[[0, 0]], [[0, np.nan]]], np.float32), [1, 1])


class GradientTensor:
    """Like a tensor on a GPU that requires gradients: an array after detach and cpu."""

    def __init__(self, array, steps=("detach", "cpu")):
        self.array, self.steps = array, steps

    def __getattr__(self, name):
        assert name == self.steps[0]
        return lambda: GradientTensor(self.array, self.steps[1:]) if self.steps[1:] else self.array


@pytest.mark.parametrize("labels", [LETTERS, [*LETTERS[1:], ""], ["<pad>", "|", *LETTERS[2:]]])
def test_build_ctcdecoder_without_words(labels):
    plain = ["" if label in ("", "<pad>") else " " if label == "|" else label for label in labels]
    decoder = build_ctcdecoder(labels)
    assert decoder.decode(spelled("hello wordd", plain)) == "hello wordd"
    assert decoder.decode(spelled("hello wordd", plain) * 1.0 + 3) == "hello wordd"  # logits, not log-probabilities
    assert decoder.decode(np.exp(spelled("hello wordd", plain))) == "hello wordd"
    text, state, frames, logit_score, score = decoder.decode_beams(spelled("hi you", plain))[0]
    assert text == "hi you" and state is None and logit_score <= 0 and score == logit_score
    assert frames == [("hi", (1, 4)), ("you", (7, 12))]
    assert decoder.decode_batch(None, [spelled("ab", plain), spelled("", plain).reshape(0, len(plain))]) == ["ab", ""]
    assert decoder.decode(GradientTensor(spelled("ab", plain))) == "ab"


ARPA = """\\data\\
ngram 1=6
ngram 2=4

\\1-grams:
-1.0 </s>
-99 <s> -0.3
-2.0 <unk>
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
LN10 = math.log(10)


@pytest.fixture
def arpa(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(ARPA)
    return path


def test_build_ctcdecoder_with_a_language_model(arpa):
    decoder = build_ctcdecoder(LETTERS, arpa, alpha=0.5, beta=1.0)
    for text in ("hello world", "hello world ", " hello  world"):  # spaces at the ends make no difference
        assert decoder.decode(spelled(text, LETTERS)) == "hello world"
    assert decoder.decode(spelled("hello wordd", LETTERS, wrong=[(9, "l")])) == "hello world"
    # The score is pyctcdecode's: logits + alpha * ln P + beta * number of words.
    _, _, words, logit_score, score = decoder.decode_beams(spelled("hello world", LETTERS))[0]
    assert [word for word, _ in words] == ["hello", "world"]
    assert math.isclose(score - logit_score, 0.5 * LN10 * -0.4 + 1.0 * 2, abs_tol=1e-5)
    # Words that the model lacks are possible.
    _, _, _, logit_score, score = decoder.decode_beams(spelled("hello zorblax", LETTERS))[0]
    assert decoder.decode(spelled("hello zorblax", LETTERS)) == "hello zorblax"
    assert math.isclose(score - logit_score, 0.5 * LN10 * (-0.2 - 0.3 - 2.0 - 10 - 1.0) + 1.0 * 2, abs_tol=1e-5)
    known = build_ctcdecoder(LETTERS, arpa, unigrams=["hello", "word"])
    assert known.decode(spelled("hello wordd", LETTERS, wrong=[(10, " ")])) == "hello word"
    decoder.reset_params(alpha=0.0, beta=0.0)
    _, _, _, logit_score, score = decoder.decode_beams(spelled("hello world", LETTERS))[0]
    assert score == logit_score


def test_hotwords(arpa):
    decoder = build_ctcdecoder(LETTERS, arpa, alpha=0.5, beta=1.0)
    unsure = spelled("hello wordd", LETTERS, wrong=[(9, "l")])
    assert decoder.decode(unsure) == "hello world" and decoder.decode(unsure, hotwords=["wordd"], hotword_weight=30.0) == "hello wordd"
    for hotwords, count in ((["hello world"], 2), (["world", "zebra"], 1), (["worl"], 0)):
        _, _, _, logit_score, score = decoder.decode_beams(spelled("hello world", LETTERS), hotwords=hotwords, hotword_weight=7.0)[0]
        assert math.isclose(score - logit_score, 0.5 * LN10 * -0.4 + 1.0 * 2 + 7.0 * count, abs_tol=1e-5)
    alone = build_ctcdecoder(LETTERS)
    heard = spelled("a cat", LETTERS, wrong=[(2, "k")])
    assert alone.decode(heard) == "a kat" and alone.decode(heard, hotwords=["cat"], hotword_weight=2.0) == "a cat"


def all_texts(scores, labels):
    """{text: ln of the summed probability of its alignments}."""
    sums = {}
    for alignment in itertools.product(range(len(labels)), repeat=len(scores)):
        joined = "".join(labels[token] for token, _ in itertools.groupby(alignment)).replace("\u2581", " ")
        text = " ".join(joined.split())
        if joined.endswith(" ") and any(label.startswith("\u2581") for label in labels):
            text += " \u2581"  # a word has begun
        log_prob = sum(scores[t, token] for t, token in enumerate(alignment))
        sums[text] = np.logaddexp(sums.get(text, -math.inf), log_prob)
    return sums


@pytest.mark.parametrize("labels", [["", " ", "a", "b"], ["\u2581a", "a", "\u2581", "", "\u2581ab"], ["", "b", "\u2581a", "\u2581ab"]])
def test_scores_are_sums_over_all_alignments_and_spellings(labels, arpa, rng):
    arpa.write_text(ARPA.replace("hello", "a").replace("world", "ab").replace("word", "b"))
    alone, decoder, lm = build_ctcdecoder(labels), build_ctcdecoder(labels, arpa, alpha=0.7, beta=0.4, unk_score_offset=-1.0), wf.LM.read(arpa)
    wide = {"beam_width": 100000, "beam_prune_logp": -1e6, "token_min_logp": -1e6}
    for _ in range(5):
        scores = log_softmax(rng.normal(0, 1, (5, len(labels))))
        expected = all_texts(scores, labels)
        plain = {}
        for text, log_prob in expected.items():
            known = text.replace("\u2581", "").strip()
            plain[known] = np.logaddexp(plain.get(known, -math.inf), log_prob)
        found = {text: log_prob for text, _, _, log_prob, _ in alone.decode_beams(scores, **wide)}
        assert found.keys() == plain.keys() and all(math.isclose(found[text], plain[text], abs_tol=1e-4) for text in plain)
        totals = {}
        for text, log_prob in expected.items():
            words = text.split()
            cost = sum(lm.costs(words)) + LN10 * sum(word not in ("a", "ab", "b") for word in words)
            known = text.replace("\u2581", "").strip()
            totals[known] = max(totals.get(known, -math.inf), log_prob - 0.7 * cost + 0.4 * len(words))
        beams = decoder.decode_beams(scores, **wide)
        assert {text for text, *_ in beams} == totals.keys() and [score for *_, score in beams] == sorted((score for *_, score in beams), reverse=True)
        assert all(math.isclose(score, totals[text], abs_tol=1e-4) for text, _, _, _, score in beams)


def test_frames_of_words_do_not_overlap(rng):
    decoder = build_ctcdecoder(LETTERS)
    for text, _, frames, _, _ in decoder.decode_beams(log_softmax(rng.normal(0, 3, (40, len(LETTERS))))):
        bounds = [bound for _, span in frames for bound in span]
        assert " ".join(word for word, _ in frames) == text and bounds == sorted(bounds) and all(start < end for _, (start, end) in frames)


def test_state_of_the_language_model_is_carried_on(arpa):
    decoder = build_ctcdecoder(LETTERS, arpa, alpha=0.5, beta=0.0, lm_score_boundary=False)
    first, second = spelled("hello", LETTERS), spelled("world", LETTERS)
    text, state, _, logit_score, score = decoder.decode_beams(first)[0]
    assert text == "hello" and math.isclose(score - logit_score, 0.5 * LN10 * -1.0, abs_tol=1e-5)  # the unigram: without <s>
    _, _, _, logit_score, score = decoder.decode_beams(second, lm_start_state=state)[0]
    assert math.isclose(score - logit_score, 0.5 * LN10 * -0.1, abs_tol=1e-5)  # P(world | hello)
    assert decoder.decode(second, lm_start_state=state) == "world"
    assert build_ctcdecoder(LETTERS, arpa)._language_model.order == 2
    for other in (build_ctcdecoder(LETTERS), build_ctcdecoder(LETTERS, arpa)):
        with pytest.raises(ValueError, match="lm_start_state"):
            other.decode(second, lm_start_state=state)


def test_beam_options(arpa, rng):
    decoder = build_ctcdecoder(LETTERS, arpa)
    scores = log_softmax(rng.normal(0, 2, (30, len(LETTERS))))
    assert len(decoder.decode_beams(scores, beam_width=7)) <= 7 < len(decoder.decode_beams(scores))
    assert len(decoder.decode_beams(scores, prune_history=True)) <= len(decoder.decode_beams(scores))
    narrow = [score for *_, score in decoder.decode_beams(scores, beam_prune_logp=-1.5)]
    assert len(narrow) > 1 and min(narrow) >= narrow[0] - 1.5
    greedy_text = "".join(LETTERS[token] for token in greedy(scores))
    assert build_ctcdecoder(LETTERS).decode(scores, token_min_logp=0.0) == " ".join(greedy_text.split())
    batch = [scores[:20], scores[10:]]
    several = decoder.decode_beams_batch(None, batch, beam_width=20, hotwords=["world"])
    assert several == [[(text, *rest) for text, _, *rest in decoder.decode_beams(one, beam_width=20, hotwords=["world"])] for one in batch]
    assert decoder.decode_batch(None, batch) == [decoder.decode(one) for one in batch]


def test_folders(arpa, tmp_path, rng):
    scores = log_softmax(rng.normal(0, 2, (30, len(LETTERS))))
    decoder = build_ctcdecoder(LETTERS, arpa, unigrams=["hello", "word"], alpha=0.3, beta=0.2, unk_score_offset=-4.0, lm_score_boundary=False)
    wanted = [beam[4] for beam in decoder.decode_beams(scores)]
    (tmp_path / "saved").mkdir()
    decoder.save_to_dir(tmp_path / "saved")
    for copy in (BeamSearchDecoderCTC.load_from_dir(tmp_path / "saved"), pickle.loads(pickle.dumps(decoder))):
        assert [beam[4] for beam in copy.decode_beams(scores)] == wanted
    # A folder of pyctcdecode 0.5.0.
    folder = tmp_path / "theirs" / "language_model"
    folder.mkdir(parents=True)
    (tmp_path / "theirs" / "alphabet.json").write_text(json.dumps({"labels": LETTERS, "is_bpe": False}))
    (folder / "attrs.json").write_text('{"alpha": 0.3, "beta": 0.2, "unk_score_offset": -4.0, "score_boundary": false}')
    (folder / "unigrams.txt").write_text("hello\nword")
    (folder / "lm.arpa").write_text(ARPA)
    assert [beam[4] for beam in BeamSearchDecoderCTC.load_from_dir(tmp_path / "theirs").decode_beams(scores)] == wanted
    (tmp_path / "alone").mkdir()
    build_ctcdecoder(LETTERS).save_to_dir(tmp_path / "alone")
    assert BeamSearchDecoderCTC.load_from_dir(tmp_path / "alone").decode(scores) == build_ctcdecoder(LETTERS).decode(scores)
    (folder / "second.bin").write_text("")
    with pytest.raises(wf.FileError, match="2 files"):
        BeamSearchDecoderCTC.load_from_dir(tmp_path / "theirs")


def test_alphabets():
    for labels, wanted, is_bpe in (
        (["[PAD]", "the", "##ing", "[UNK]"], ["", "\u2581the", "ing", "\u2581\u2047\u2581"], True),
        (["<pad>", "|", "A", "<unk>", "<s>"], ["", " ", "A", "\u2047", "<s>"], False),
        (["\u2581a", "b"], ["\u2581a", "b", ""], True),
        (["<PAD>", "a", "[Unk]"], ["", "a", "\u2047"], False),
        (["a", "<pad>", "<unk>", "[UNK]", "[PAD]"], ["a", "", "\u2047", "\u2047", ""], False),
        (["a", "<pad>", "_"], ["a", "", "_"], False),
    ):
        alphabet = Alphabet.build_alphabet(labels)
        assert (alphabet.labels, alphabet.is_bpe) == (wanted, is_bpe) and Alphabet.loads(alphabet.dumps()).labels == wanted
    pieces = ["[PAD]", "the", "##ing", "[UNK]"]
    steps = log_softmax(np.eye(4)[[1, 2, 0, 3, 2, 1]] * 30)
    assert build_ctcdecoder(pieces).decode_beams(steps)[0][2] == [("theing", (0, 2)), ("\u2047", (3, 4)), ("ing", (4, 5)), ("the", (5, 6))]


def test_several_blanks():
    """Columns of the blank count together: the result is that of one column with the sum of their probabilities."""
    probabilities = np.random.default_rng(5).dirichlet(np.full(6, 0.4), 30)
    both = build_ctcdecoder(["a", "<pad>", "b", "|", "[PAD]", "c"]).decode_beams(np.log(probabilities))
    probabilities[:, 1] += probabilities[:, 4]
    one = build_ctcdecoder(["a", "<pad>", "b", "|", "c"]).decode_beams(np.log(probabilities[:, [0, 1, 2, 3, 5]]))
    assert len(both[0][0]) > 3 and [beam[0] for beam in both[:5]] == [beam[0] for beam in one[:5]]
    assert np.allclose([beam[3] for beam in both[:5]], [beam[3] for beam in one[:5]], atol=1e-4)


def test_build_ctcdecoder_with_kenlms_trie():
    folder, labels = ROOT / "tests" / "data" / "lm", [" ", *"abcdefg", ""]
    logits = np.log(np.random.default_rng(3).dirichlet(np.full(len(labels), 0.3), 40))
    (text, _, _, _, score), (want, _, _, _, want_score) = (build_ctcdecoder(labels, folder / name).decode_beams(logits)[0] for name in ("kenlm3.qa.bin", "sphinx3.arpa"))
    assert text == want and len(text) > 10 and math.isclose(score, want_score, abs_tol=1e-3)


def test_wrong_arguments_are_refused(tmp_path):
    decoder = build_ctcdecoder(LETTERS)
    with pytest.raises(ValueError, match=re.escape("[frames, 29]")):
        decoder.decode(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="'a' is given twice, in columns 1 and 2"):
        build_ctcdecoder(["", "a", "a"])
    with pytest.raises(wf.FileError):
        build_ctcdecoder(LETTERS, tmp_path / "none.arpa")
    with pytest.raises(ValueError, match="beam_width"):
        decoder.decode(spelled("a", LETTERS), beam_width=0)
    with pytest.raises(ValueError, match="score is nan"):
        decoder.decode(np.full((3, len(LETTERS)), math.nan))
    with pytest.raises(TypeError, match="LanguageModel"):
        BeamSearchDecoderCTC(Alphabet([""], False), object())
    decoder.cleanup()
    with pytest.raises(wf.StateError):
        decoder.decode(spelled("a", LETTERS))


def check_ignored_options(cases, file):
    """cases: (call, the names of its options without effect). The warnings name lines of `file`."""
    for call, names in cases:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        told = [str(one.message).partition("=")[0] for one in found if one.category is wf.IgnoredOptionWarning]
        assert told == names and all(one.filename == file for one in found if one.category is wf.IgnoredOptionWarning)


def test_options_without_effect_give_warnings():
    labels, tokens = ["", "a", "b"], ["<blk>", "a", "b"]
    scores = log_softmax(np.zeros((4, 3)))
    decoder = build_ctcdecoder(labels)
    cases = (
        (lambda: decoder.decode_batch(object(), [scores]), ["pool"]),
        (lambda: build_ctcdecoder(labels, unk_score_offset=-5.0), ["unk_score_offset"]),
        (lambda: build_ctcdecoder(labels, unigrams=["a"], beta=0.5), ["unigrams", "beta"]),
    )
    check_ignored_options(cases, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error", wf.IgnoredOptionWarning)
        decoder.decode(scores, 50, beam_prune_logp=-8.0, token_min_logp=-1.0)
        decoder.decode_batch(None, [scores])
        cuda_ctc_decoder(tokens, beam_size=50, blank_skip_threshold=0.5)
