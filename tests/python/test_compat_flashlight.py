"""The interfaces of flashlight-text and of torchaudio's ctc_decoder. test_trie_search.c compares the search with all alignments; here are the binding, dictionaries, tries and models."""

import ctypes
import itertools
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from conftest import CTC
from fake_tensors import FakeTensor
from test_compat import ARPA, check_ignored_options, greedy, log_softmax

import warpfst as wf
from warpfst.compat import CTCDecoderLM, CTCDecoderLMState, ctc_decoder, flashlight
from warpfst.compat.flashlight.decoder import (
    LM,
    CriterionType,
    DecodeResult,
    LexiconDecoder,
    LexiconDecoderOptions,
    LexiconFreeDecoder,
    LexiconFreeDecoderOptions,
    LMState,
    SmearingMode,
    Trie,
    ZeroLM,
)
from warpfst.compat.flashlight.decoder.kenlm import KenLM
from warpfst.compat.flashlight.dictionary import Dictionary, create_word_dict, load_words, pack_replabels, unpack_replabels

TOKENS = ["-", "|", *"abcdefghijklmnopqrstuvwxyz"]
NUM_TOKENS = len(TOKENS)
LEXICON = {word: [[*word, "|"]] for word in ("hello", "help", "word", "world", "zoo")}
LEXICON["word"].append(["w", "e", "r", "d", "|"])


def lexicon_options(**changes):
    values = {
        "beam_size": 50,
        "beam_size_token": len(TOKENS),
        "beam_threshold": 50.0,
        "lm_weight": 1.0,
        "word_score": 0.5,
        "unk_score": -math.inf,
        "sil_score": 0.25,
        "log_add": False,
        "criterion_type": CriterionType.CTC,
    }
    return LexiconDecoderOptions(**{**values, **changes})


def free_options(**changes):
    values = {"beam_size": 50, "beam_size_token": 100, "beam_threshold": 100.0, "lm_weight": 1.0, "sil_score": 0.0, "log_add": False, "criterion_type": CriterionType.CTC}
    return LexiconFreeDecoderOptions(**{**values, **changes})


def words_and_tokens():
    return create_word_dict({**LEXICON, "<unk>": []}), Dictionary(TOKENS)


def trie_of(lm, words, tokens):
    trie, start = Trie(tokens.index_size(), tokens.get_index("|")), lm.start(False)
    for word, spellings in LEXICON.items():
        for spelling in spellings:
            trie.insert(tokens.map_entries_to_indices(spelling), words.get_index(word), lm.score(start, words.get_index(word))[1])
    trie.smear(SmearingMode.MAX)
    return trie


def decoder_of(lm, words, tokens, **changes):
    return LexiconDecoder(lexicon_options(**changes), trie_of(lm, words, tokens), lm, tokens.get_index("|"), 0, words.get_index("<unk>"), [], False)


class ModelInPython(LM):
    """The n-gram model of ARPA, in Python."""

    def __init__(self, model, words):
        super().__init__()
        self.model, self.words, self.texts, self.calls = model, words, {}, 0

    def start(self, start_with_nothing):
        assert not start_with_nothing
        state = LMState()
        self.texts = {state: ()}
        return state

    def score(self, state, usr_token_idx):
        self.calls += 1
        after = state.child(usr_token_idx)
        self.texts[after] = (*self.texts[state], self.words.get_entry(usr_token_idx))
        return after, -self.model.costs(self.texts[after])[-2] / math.log(10)

    def finish(self, state):
        return state, -self.model.costs(self.texts[state])[-1] / math.log(10)


@pytest.fixture
def arpa(tmp_path):
    path = tmp_path / "lm.arpa"
    path.write_text(ARPA)
    return path


def random_scores(rng, frames=30, columns=NUM_TOKENS):
    return log_softmax(rng.normal(0, 2, (frames, columns))).astype(np.float32)


def parts(result):
    return result.score, result.emittingModelScore, result.lmScore, result.words, result.tokens


def test_words_tokens_and_scores_fit(arpa, rng):
    words, tokens = words_and_tokens()
    lm = KenLM(arpa, words)
    decoder = decoder_of(lm, words, tokens, beam_size=1000)
    for _ in range(5):
        scores = random_scores(rng)
        results = decoder.decode(scores.ctypes.data, *scores.shape)
        assert len(results) > 5 and [one.score for one in results] == sorted((one.score for one in results), reverse=True)
        for one in results:
            assert len(one.words) == len(one.tokens) == len(scores) + 2 and one.tokens[0] == one.tokens[-1] == 1
            emitting = sum(float(row[token]) for row, token in zip(scores, one.tokens[1:-1]))
            assert math.isclose(one.emittingModelScore, emitting, abs_tol=1e-3)
            said = [words.get_entry(word) for word in one.words if word >= 0]
            assert math.isclose(one.lmScore, lm.model.score(said), abs_tol=1e-4)
            silence = one.tokens[1:-1].count(1)
            assert math.isclose(one.score, emitting + one.lmScore + 0.5 * len(said) + 0.25 * silence, abs_tol=1e-3)
            spelled = "".join(TOKENS[token] for token, _ in itertools.groupby(one.tokens[1:-1]) if token)
            spelled = re.sub(r"\|+", " ", spelled).split()
            assert len(spelled) == len(said) and all(list(text) in [spelling[:-1] for spelling in LEXICON[word]] for text, word in zip(spelled, said))


def test_emissions_are_addresses_or_arrays(arpa, rng):
    words, tokens = words_and_tokens()
    decoder = decoder_of(KenLM(arpa, words), words, tokens)
    scores = random_scores(rng)
    wanted = [parts(one) for one in decoder.decode(scores.ctypes.data, *scores.shape)]
    pointer = scores.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    for emissions in (ctypes.c_void_p(scores.ctypes.data), pointer, scores, scores.astype(np.float64), FakeTensor(scores), np.ascontiguousarray(np.tile(scores, 2))[:, : len(TOKENS)]):
        assert [parts(one) for one in decoder.decode(emissions, *scores.shape)] == wanted
    assert [parts(one) for one in decoder.decode(scores)] == wanted
    fewer = [parts(one) for one in decoder.decode(scores[:9])]
    assert [parts(one) for one in decoder.decode(scores, 9)] == fewer != wanted
    with pytest.raises(ValueError, match="needs T and N"):
        decoder.decode(scores.ctypes.data)
    with pytest.raises(ValueError, match="T and N are 31 and 28"):
        decoder.decode(scores, 31, 28)
    with pytest.raises(ValueError, match="columns"):
        decoder.decode(scores[:, :5].copy())


def test_a_model_in_python_is_the_same_as_kenlm(arpa, rng):
    words, tokens = words_and_tokens()
    kenlm = KenLM(arpa, words)
    mine = ModelInPython(kenlm.model, words)
    for changes in ({}, {"unk_score": -1.0}, {"log_add": True, "lm_weight": 0.3}, {"beam_size": 3, "beam_size_token": 4, "beam_threshold": 8.0}):
        a, b = decoder_of(kenlm, words, tokens, **changes), decoder_of(mine, words, tokens, **changes)
        assert b.calls_python and not a.calls_python
        for _ in range(3):
            scores = random_scores(rng)
            calls = mine.calls
            for one, other in itertools.zip_longest(a.decode(scores), b.decode(scores)):
                assert np.allclose(parts(one)[:3], parts(other)[:3], atol=1e-4) and parts(one)[3:] == parts(other)[3:]
            assert mine.calls > calls
    # On real scores, with homophones and more than one spelling.
    lexicon = load_words(CTC / "lexicon_phone.txt")
    many = create_word_dict(lexicon)
    large = KenLM(CTC / "lm3.arpa.gz", many)
    results = []
    for lm in (large, ModelInPython(large.model, many)):
        decoder = ctc_decoder(CTC / "lexicon_phone.txt", CTC / "tokens_phone.txt", lm, beam_size=10, beam_threshold=20, lm_weight=2, blank_token="<blk>", sil_token="<blk>")
        results.append([decoder(np.load(path)[None])[0][0] for path in sorted((CTC / "logp_phone").glob("*.npy"))[:4]])
    for one, other in zip(*results):
        assert len(one.words) > 2 and one.words == other.words and math.isclose(one.score, other.score, abs_tol=1e-3)


def test_errors_of_a_model_in_python_are_raised(arpa, rng):
    words, tokens = words_and_tokens()
    lm = ModelInPython(KenLM(arpa, words).model, words)
    decoder = decoder_of(lm, words, tokens)
    scores = random_scores(rng)
    wanted = [parts(one) for one in decoder.decode(scores)]
    score, finish = lm.score, lm.finish
    lm.score = lambda state, word: 1 / 0
    with pytest.raises(ZeroDivisionError):
        decoder.decode(scores)
    lm.score, lm.finish = score, lambda state: None
    with pytest.raises(TypeError):
        decoder.decode(scores)
    lm.finish = finish
    assert [parts(one) for one in decoder.decode(scores)] == wanted
    with pytest.raises(NotImplementedError, match="subclass of LM"):
        LexiconFreeDecoder(free_options(), LM(), 1, 0, [])
    with pytest.raises(TypeError, match="use KenLM"):
        LexiconFreeDecoder(free_options(), "lm.arpa", 1, 0, [])


def test_no_step_after_a_model_in_python_has_raised(rng):
    """An error within a frame ends the utterance: its whole frames can be read, and the next utterance begins anew."""

    class Failing(LM):
        def start(self, start_with_nothing):
            self.left = self.calls
            return LMState()

        def score(self, state, usr_token_idx):
            self.left -= 1
            if self.left == 0:
                raise LookupError("no score")
            return state.child(usr_token_idx), -0.5 * usr_token_idx

        def finish(self, state):
            return self.score(state, 0)

    scores, lm = random_scores(rng, 6, 5), Failing()
    for lm.calls in range(1, 60, 3):
        decoder = LexiconFreeDecoder(free_options(), lm, 3, 0, [])
        decoder.decode_begin()
        frames = iter(scores)
        with pytest.raises(LookupError):
            for frame in frames:
                decoder.decode_step(frame[None])
            decoder.decode_end()
        for frame in frames:
            with pytest.raises(wf.StateError, match="begin the utterance again"):
                decoder.decode_step(frame[None])
        for call in (decoder.decode_end, decoder.prune):
            with pytest.raises(wf.StateError, match="begin the utterance again"):
                call()
        assert all(len(one.tokens) == decoder.num_frames + 1 for one in decoder.get_all_final_hypothesis()) and decoder.get_best_hypothesis(0).tokens is not None
        lm.calls = 10**6
        assert decoder.decode(scores)


def test_calls_from_within_the_model(rng):
    """The model may not use the decoder that asks it."""
    scores, caught = random_scores(rng, 4, 5), []

    class Curious(ZeroLM):
        def score(self, state, usr_token_idx):
            for call in (decoder.decode_begin, decoder.decode_end, decoder.get_best_hypothesis, lambda: decoder.decode_step(scores), lambda: decoder.decode(scores)):
                with pytest.raises(wf.StateError, match="language model of the same decoder"):
                    call()
                caught.append(call)
            return super().score(state, usr_token_idx)

    decoder = LexiconFreeDecoder(free_options(), Curious(), 3, 0, [])
    wanted = [parts(one) for one in LexiconFreeDecoder(free_options(), ZeroLM(), 3, 0, []).decode(scores)]
    assert [parts(one)[0] for one in decoder.decode(scores)] == [one[0] for one in wanted] and caught


def test_equal_states_are_merged(rng):
    class TwoStates(LM):
        """Knows only whether the last word was word 0."""

        def start(self, start_with_nothing):
            self.states = [LMState(), LMState()]
            return self.states[0]

        def score(self, state, usr_token_idx):
            return self.states[usr_token_idx == 0], -0.1 * usr_token_idx - 0.3 * self.states.index(state)

        def finish(self, state):
            return state, 0.0

    words, tokens = words_and_tokens()
    assert 1 <= len(decoder_of(TwoStates(), words, tokens, beam_size=1000).decode(random_scores(rng))) <= 2


def test_without_a_lexicon(rng):
    scores = random_scores(rng, 12, 4)
    best = LexiconFreeDecoder(free_options(), ZeroLM(), 3, 0, []).decode(scores)[0]
    assert [token for token, _ in itertools.groupby(best.tokens[1:-1]) if token] == greedy(scores)
    assert set(best.words) == {-1} and math.isclose(best.score, scores.max(axis=1).sum(), abs_tol=1e-3)
    scores = random_scores(rng, 5, 4)
    sums = {}
    for alignment in itertools.product(range(4), repeat=5):
        # The token before the first frame is silence.
        collapsed = tuple(token for token, _ in itertools.groupby((3, *alignment)) if token)
        sums[collapsed] = np.logaddexp(sums.get(collapsed, -np.inf), sum(scores[t, token] for t, token in enumerate(alignment)))
    found = LexiconFreeDecoder(free_options(beam_size=1000, log_add=True), ZeroLM(), 3, 0, []).decode(scores)
    assert np.allclose([one.score for one in found], sorted(sums.values(), reverse=True), atol=1e-4)


def test_step_by_step(arpa, rng):
    words, tokens = words_and_tokens()
    decoder = decoder_of(KenLM(arpa, words), words, tokens)
    scores = random_scores(rng)
    wanted = [parts(one) for one in decoder.decode(scores)]
    decoder.decode_begin()
    assert decoder.get_all_final_hypothesis() == [] and parts(decoder.get_best_hypothesis()) == (0.0, 0.0, 0.0, [], [])
    for begin in range(0, 30, 7):
        decoder.decode_step(scores[begin : begin + 7])
    best = decoder.get_best_hypothesis()
    assert best.words[-2] >= 0 and len(best.words) < 31  # it ends one frame after a word
    decoder.decode_end()
    assert [parts(one) for one in decoder.get_all_final_hypothesis()] == wanted
    with pytest.raises(wf.StateError, match="ended"):
        decoder.decode_step(scores)
    # Words do not change when what is before them is freed.
    decoder.decode_begin()
    heard = []
    for begin in range(0, 30, 5):
        decoder.decode_step(scores[begin : begin + 5])
        heard += decoder.get_best_hypothesis(2).words[1:]
        decoder.prune(2)
        assert decoder.num_frames + len(heard) == begin + 5
    decoder.decode_end()
    heard += decoder.get_all_final_hypothesis()[0].words[1:]
    assert heard == wanted[0][3][1:]
    with pytest.raises(wf.StateError, match="decode_begin"):
        decoder_of(ZeroLM(), words, tokens).decode_step(scores)


def test_asg(rng):
    transitions = rng.normal(0, 1, (3, 3)).astype(np.float32)
    scores = rng.normal(0, 2, (6, 3)).astype(np.float32)
    options = free_options(criterion_type=CriterionType.ASG, beam_size=1000)
    decoder = LexiconFreeDecoder(options, ZeroLM(), 2, -1, transitions.ravel().tolist())

    def score(alignment):
        return scores[0, alignment[0]] + sum(scores[t, b] + transitions[b, a] for t, (a, b) in enumerate(zip(alignment, alignment[1:]), 1))

    best = max(itertools.product(range(3), repeat=6), key=score)
    found = decoder.decode(scores)[0]
    assert tuple(found.tokens[1:-1]) == best and math.isclose(found.score, score(best), abs_tol=1e-4)
    assert decoder.get_options() is options and decoder.get_sil_idx() == 2 and decoder.get_blank_idx() == -1 and len(decoder.get_transitions()) == 9


def test_dictionaries(tmp_path):
    (tmp_path / "tokens.txt").write_text("a b\nc\n\nd 3\n")
    tokens = Dictionary(tmp_path / "tokens.txt")
    assert [tokens.get_index(entry) for entry in ("a", "b", "c", "d", "3")] == [0, 0, 1, 2, 2]
    assert (tokens.entry_size(), tokens.index_size(), tokens.get_entry(0), tokens.is_contiguous()) == (5, 3, "a", True)
    words = Dictionary()
    words.add_entry("x", 5)
    words.add_entry("y")
    assert words.get_index("y") == 1 and not words.is_contiguous() and words.contains("x") and not words.contains("z")
    for wrong in (lambda: words.add_entry("x"), lambda: words.get_index("z"), lambda: words.get_entry(3), lambda: create_word_dict({"a": []})):
        with pytest.raises(ValueError):
            wrong()
    words.set_default_index(5)
    assert words.map_entries_to_indices(["y", "z"]) == [1, 5] and words.map_indices_to_entries([5, 1]) == ["x", "y"]
    with pytest.raises(wf.FileError, match="none.txt"):
        Dictionary(tmp_path / "none.txt")


def test_lexicons(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("one o n e\ntwo t w o\none w o n\nthree 3\n")
    assert load_words(path) == {"one": [["o", "n", "e"], ["w", "o", "n"]], "two": [["t", "w", "o"]], "three": [["3"]], "<unk>": []}
    assert load_words(str(path), 1) == {"one": [["o", "n", "e"], ["w", "o", "n"]], "<unk>": []}
    words = create_word_dict(load_words(path))
    assert words.get_index("nine") == words.get_index("<unk>") and words.index_size() == 4
    path.write_text("one o n e\ntwo\n")
    with pytest.raises(ValueError, match=re.escape("lexicon.txt:2")):
        load_words(path)


def test_repetitions_as_labels(rng):
    numbers = Dictionary(["a", "b", "<1>", "<2>"])
    assert pack_replabels([0, 0, 1, 1, 1, 1, 0], numbers, 2) == [0, 2, 1, 3, 1, 0]
    assert unpack_replabels([2, 0, 2, 1, 3, 3, 1], numbers, 2) == [0, 0, 1, 1, 1, 1]
    for most in (1, 2):
        tokens = [int(token) for token in rng.integers(0, 2, 50)]
        assert unpack_replabels(pack_replabels(tokens, numbers, most), numbers, most) == tokens


def test_tries():
    trie = Trie(4, 3)
    for spelling, label, score in (([1, 2], 7, -0.5), ([1], 8, -0.2), ([1], 9, -0.3), ([2, 2, 2], 5, -1.0)):
        node = trie.insert(spelling, label, score)
        assert node.labels[-1] == label and node.scores[-1] == score and node.idx == spelling[-1] and node.max_score == 0
    assert trie.search([1]).labels == [8, 9] and trie.search([3]) is None and trie.search([1, 1, 1]) is None
    both = math.log(math.exp(-0.2) + math.exp(-0.3))
    trie.smear(SmearingMode.MAX)
    assert math.isclose(trie.search([1]).max_score, both) and trie.search([2, 2]).max_score == -1 and math.isclose(trie.get_root().max_score, both)
    trie.smear(SmearingMode.LOGADD)
    assert math.isclose(trie.search([1]).max_score, math.log(math.exp(both) + math.exp(-0.5)))
    with pytest.raises(ValueError, match="token 4"):
        trie.insert([1, 4], 1, 0.0)


def test_models(arpa):
    words, _ = words_and_tokens()
    lm = KenLM(arpa, words)
    state, total = lm.start(False), 0.0
    for word in ("hello", "world", "zoo"):
        state, score = lm.score(state, words.get_index(word))
        total += score
    assert math.isclose(total + lm.finish(state)[1], lm.model.score("hello world zoo"), abs_tol=1e-5)
    nothing = lm.start(True)
    assert math.isclose(lm.score(nothing, words.get_index("hello"))[1], -1.0, abs_tol=1e-6) and lm.score(nothing, 0)[0] is lm.score(nothing, 0)[0]
    with pytest.raises(ValueError, match="word 6"):
        lm.score(nothing, 6)
    zero = ZeroLM()
    first = zero.start(False)
    after, score = zero.score(first, 3)
    assert score == 0 and after is first.child(3) and first.children == {3: after} and after.compare(after) == 0 == -first.compare(after) - after.compare(first)
    assert zero.finish(first) == (first, 0.0) and parts(DecodeResult(2)) == (0.0, 0.0, 0.0, [-1, -1], [-1, -1])
    assert pickle.loads(pickle.dumps(lexicon_options())) == lexicon_options() and flashlight.decoder.LexiconDecoder is LexiconDecoder


def spelled(text, columns=NUM_TOKENS):
    """Log-probabilities that spell a text: each token in two frames, and a blank after it."""
    rows = []
    for character in text:
        row, blank = np.full(columns, -9.0), np.full(columns, -9.0)
        row[TOKENS.index(character)] = blank[0] = 0
        rows += [row, row, blank]
    return log_softmax(np.array(rows)).astype(np.float32)


def test_torchaudio(arpa, tmp_path):
    (tmp_path / "tokens.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    (tmp_path / "lexicon.txt").write_text("".join(f"{word} {' '.join(spelling)}\n" for word, spellings in LEXICON.items() for spelling in spellings))
    scores = spelled("hello|world|")
    for decoder in (ctc_decoder(str(tmp_path / "lexicon.txt"), str(tmp_path / "tokens.txt"), str(arpa), nbest=3), ctc_decoder(LEXICON, TOKENS, arpa, nbest=3)):
        (found,) = decoder(scores[None])
        assert len(found) <= 3 and found[0].words == ["hello", "world"]
        assert decoder.idxs_to_tokens(found[0].tokens) == ["|", *"hello|world|", "|"]
        # The silences before the first frame and after the last count as tokens.
        assert found[0].timesteps.tolist() == [0, *range(1, 37, 3), 37] and found[0].tokens.dtype == np.int64 and found[0].timesteps.dtype == np.int32
        # 2 * log10 P("hello world") = 2 * -0.4
        assert math.isclose(found[0].score, scores.max(axis=1).sum() - 0.8, abs_tol=1e-3)
        decoder.decode_begin()
        for begin in (0, 10, 20, 30):
            decoder.decode_step(scores[begin : begin + 10])
        decoder.decode_end()
        assert [one.words for one in decoder.get_final_hypothesis()] == [one.words for one in found]
    free = ctc_decoder(None, TOKENS)
    (one,) = free(scores[None])[0]
    assert one.words == [] and "".join(free.idxs_to_tokens(one.tokens)) == "|hello|world||"


def test_torchaudio_batches(arpa, rng):
    scores = np.stack([random_scores(rng) for _ in range(7)])
    lengths = np.array([30, 1, 17, 0, 30, 5, 29])
    words = create_word_dict({**LEXICON, "<unk>": []})
    for lm in (arpa, ModelInPython(KenLM(arpa, words).model, words)):
        decoder = ctc_decoder(LEXICON, TOKENS, lm, nbest=4, beam_size=20, log_add=True, sil_score=-0.5, unk_score=-2.0)
        batch = decoder(FakeBatch(scores), lengths)
        alone = [decoder(one[None, :length])[0] for one, length in zip(scores, lengths)]
        for several, same in itertools.zip_longest(batch, alone):
            assert [(one.words, one.score, one.tokens.tolist()) for one in several] == [(one.words, one.score, one.tokens.tolist()) for one in same]
    with pytest.raises(ValueError, match="utterances, frames, tokens"):
        decoder(scores[0])


class FakeBatch(FakeTensor):
    """With a shape, as tensors have."""

    def __init__(self, array):
        super().__init__(array)
        self.c_shape, self.shape = self.shape, array.shape

    def __dlpack__(self, **arguments):
        self.shape, kept = self.c_shape, self.shape
        try:
            return super().__dlpack__(**arguments)
        finally:
            self.shape = kept


def test_models_of_torchaudio(arpa, tmp_path, rng):
    class Words(CTCDecoderLM):
        """Prefers the word number 0."""

        def start(self, start_with_nothing):
            return CTCDecoderLMState()

        def score(self, state, usr_token_idx):
            return state.child(usr_token_idx), 5.0 * (usr_token_idx == 0)

        def finish(self, state):
            return state.child(-1), 0.0

    (tmp_path / "words.txt").write_text("help\nhello\nword\nworld\nzoo\n<unk>\n")
    scores = spelled("hel", len(TOKENS))
    scores = np.concatenate([scores, random_scores(rng, 3) * 0.01, spelled("|")])
    decoder = ctc_decoder(LEXICON, TOKENS, Words(), lm_dict=tmp_path / "words.txt")
    assert decoder.word_dict.get_entry(0) == "help" and decoder(scores[None])[0][0].words == ["help"]
    # Without a lexicon, the model is one of tokens.
    path = tmp_path / "tokens.arpa"
    path.write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-1 </s>\n-99 <s>\n-0.1 a\n-2 b\n\n\\end\\\n")
    flat = log_softmax(np.zeros((3, 4), np.float32))
    found = ctc_decoder(None, ["-", "|", "a", "b"], path, lm_weight=0.01, nbest=1)(flat[None])[0][0]
    assert math.isclose(found.score, 3 * math.log(1 / 4) - 0.01, abs_tol=1e-4) and set(found.tokens.tolist()) <= {1}


def test_wrong_arguments_are_refused(arpa, tmp_path):
    words, tokens = words_and_tokens()
    with pytest.raises(NotImplementedError, match="S2S"):
        LexiconFreeDecoder(free_options(criterion_type=CriterionType.S2S), ZeroLM(), 1, 0, [])
    with pytest.raises(TypeError, match="expected a Trie"):
        LexiconDecoder(lexicon_options(), object(), ZeroLM(), 1, 0, 0, [], False)
    with pytest.raises(ValueError, match="beam_size"):
        decoder_of(ZeroLM(), words, tokens, beam_size=0)
    for silence, blank in ((2**31 - 1, 0), (0, 2**31 - 1), (0, 2**30), (-1, 0), (0, -1)):
        with pytest.raises(ValueError, match=f"silence {silence}, blank {blank}"):
            LexiconFreeDecoder(free_options(), ZeroLM(), silence, blank, [])
    for silence, blank in ((2**32, 0), (0, 2**31)):
        with pytest.raises(ValueError, match="32 bits"):
            LexiconFreeDecoder(free_options(), ZeroLM(), silence, blank, [])
    with pytest.raises(ValueError, match="the tokens need 1001"):
        LexiconFreeDecoder(free_options(), ZeroLM(), 0, 1000, []).decode(np.zeros((2, 5), np.float32))
    with pytest.raises(ValueError, match="transitions"):
        LexiconFreeDecoder(free_options(criterion_type=CriterionType.ASG), ZeroLM(), 1, 0, [1.0, 2.0])
    with pytest.raises(ValueError, match="nbest"):
        ctc_decoder(None, TOKENS, nbest=0)
    with pytest.raises(ValueError, match="'-' is not"):
        ctc_decoder(None, TOKENS[1:])
    with pytest.raises(wf.FileError):
        ctc_decoder(LEXICON, TOKENS, tmp_path / "none.arpa")


def test_options_without_effect_give_warnings():
    cases = (
        (lambda: LexiconFreeDecoder(free_options(), ZeroLM(), 1, 0, [0.5]), ["transitions"]),
        (lambda: ctc_decoder(None, TOKENS, word_score=1.0, lm_weight=3.0), ["word_score", "lm_weight"]),
    )
    check_ignored_options(cases, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error", wf.IgnoredOptionWarning)
        ctc_decoder(LEXICON, TOKENS, word_score=1.0, unk_score=-3.0, beam_size=5, beam_size_token=3)
