"""Language models: scores of sentences with and without their ends estimation, mixtures."""

import collections
import fractions
import math
import pathlib
import random

import pytest

import warpfst as wf

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARPA = ROOT / "tests/data/lm/sphinx3.arpa"


def written(path, sentences):
    path.write_text("".join(f"{' '.join(sentence)}\n" for sentence in sentences))
    return path


def random_sentences(seed, words, count):
    """Sentences whose words tend to follow each other in the same way."""
    rng = random.Random(seed)
    sentences = []
    for _ in range(count):
        at = rng.randrange(len(words))
        sentences.append([])
        for _ in range(rng.randrange(9)):
            sentences[-1].append(words[at])
            at = (at * 2 + rng.randrange(3)) % len(words)
    return sentences


def read_arpa(path):
    """{n-gram: (log10 p, log10 back-off weight)}"""
    grams = {}
    for line in path.read_text().splitlines():
        fields = line.split()
        if fields and fields[0].lstrip("-").replace(".", "").isdigit():
            words = [field for field in fields[1:] if field.isalpha() or field[0] == "<"]
            grams[tuple(words)] = float(fields[0]), float(fields[-1]) if len(fields) > len(words) + 1 else 0.0
    return grams


def log10_p(grams, history, word):
    if (*history, word) in grams:
        return grams[(*history, word)][0]
    return grams.get(history, (0, 0.0))[1] + log10_p(grams, history[1:], word) if history else -math.inf


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("eos", [True, False])
def test_scores_by_the_definition_of_back_off(bos, eos):
    """As KenLM's score(sentence, bos, eos)."""
    grams, lm = read_arpa(ARPA), wf.LM.read(ARPA)
    rng = random.Random(1)
    for _ in range(50):
        words = rng.choices(sorted({word for gram in grams for word in gram if word.isalpha()}), k=rng.randrange(6))
        history, want = ("<s>",) if bos else (), 0
        for word in [*words, "</s>"] if eos else words:
            want += log10_p(grams, history, word)
            history = (*history, word)[-2:]
        assert lm.score(words, bos=bos, eos=eos) == pytest.approx(want, abs=1e-4)
        assert lm.score(" ".join(words), bos, eos) == lm.score(words, bos=bos, eos=eos)
        assert len(lm.costs(words, bos, eos)) == len(words) + eos


def test_the_ends_of_a_sentence_are_what_bos_and_eos_leave_out():
    lm = wf.LM.read(ARPA)
    assert lm.score("a b", eos=False) + lm.score("", bos=False) != pytest.approx(lm.score("a b"))  # </s> depends on the words
    assert lm.score("a b", eos=False) == pytest.approx(-sum(lm.costs("a b")[:-1]) / math.log(10))
    assert lm.score("a b", bos=False) != pytest.approx(lm.score("a b"))
    assert lm.score("", bos=False, eos=False) == 0


def test_a_bigram_model_by_hand(tmp_path):
    """Kneser-Ney with exact fractions, and the fallback discounts, since the text is small."""
    sentences = [["a", "b"], ["a", "b", "a"], ["b"], []]
    with pytest.warns(match="discount_fallback 0.5,1,1.5"):
        lm = wf.LM.estimate(written(tmp_path / "text", sentences), order=2)
    bigrams = collections.Counter()
    for sentence in sentences:
        tokens = ["<s>", *sentence, "</s>"]
        bigrams.update(zip(tokens, tokens[1:]))
    befores = collections.Counter(word for _, word in bigrams)
    discount = [0, fractions.Fraction(1, 2), 1, fractions.Fraction(3, 2)]

    def unigram(word):
        shares = sum(discount[min(3, count)] for count in befores.values()) / fractions.Fraction(sum(befores.values()))
        return (befores[word] - discount[min(3, befores[word])]) / fractions.Fraction(sum(befores.values())) + shares / 4  # a, b, </s>, <unk>

    def bigram(history, word):
        counts = {last: count for (first, last), count in bigrams.items() if first == history}
        total = fractions.Fraction(sum(counts.values()))
        count = counts.get(word, 0)
        return (count - discount[min(3, count)]) / total + sum(discount[min(3, n)] for n in counts.values()) / total * unigram(word)

    assert lm.costs("a x", bos=False, eos=False)[0] == pytest.approx(-math.log(unigram("a")))
    assert lm.costs("b a x", eos=False)[:2] == pytest.approx([-math.log(bigram("<s>", "b")), -math.log(bigram("b", "a"))])
    assert lm.costs("b")[1] == pytest.approx(-math.log(bigram("b", "</s>")))
    assert lm.costs("x", bos=False, eos=False) == pytest.approx([-math.log(unigram("<unk>"))])


def test_texts_vocabulary_and_options(tmp_path):
    words = [f"w{i}" for i in range(40)]
    one, two = (written(tmp_path / f"text{seed}", random_sentences(seed, words, 800)) for seed in (1, 2))
    both = wf.LM.estimate([one, str(two)], order=4, prune="0,0,1")
    joined = tmp_path / "joined"
    joined.write_text(one.read_text() + two.read_text())
    same = wf.LM.estimate(joined, order=4, prune="0,0,1")
    assert both.info() == same.info() and both.info()["order"] == 4
    assert both.score("w1 w2 w5") == same.score("w1 w2 w5")
    small = wf.LM.estimate(one, [*words[:10], "missing"])
    assert small.info()["num_words"] == 11
    assert small.costs("w30") == small.costs("nowhere")  # both are <unk>
    with pytest.raises(wf.FormatError, match=r"bad:2: '<unk>'"):
        wf.LM.estimate(written(tmp_path / "bad", [["a"], ["<unk>"]]))
    with pytest.raises(wf.ArgumentError, match="order"):
        wf.LM.estimate(one, order=17)


def test_a_mixture_is_not_worse_than_its_models(tmp_path):
    words = [f"w{i}" for i in range(60)]
    domains = [random_sentences(1, words[:40], 700), random_sentences(2, words[20:], 900)]
    held_out = written(tmp_path / "held-out", random_sentences(3, words[:40], 100) + random_sentences(4, words[20:], 60))
    sentences = held_out.read_text().splitlines()
    lms = [wf.LM.estimate(written(tmp_path / f"text{i}", domain), words, order=3) for i, domain in enumerate(domains)]
    weights = wf.LM.mix_weights(lms, held_out)
    assert sum(weights) == pytest.approx(1) and weights[0] > weights[1] > 0.1
    mixed = wf.LM.mix(lms, weights)
    assert mixed.perplexity(sentences) < 0.9 * min(lm.perplexity(sentences) for lm in lms)
    assert mixed.perplexity(sentences) < 1.02 * min(wf.LM.mix(lms, [i / 10, 1 - i / 10]).perplexity(sentences) for i in range(1, 10))
    assert wf.LM.mix(lms).score("w1 w2") == wf.LM.mix(lms, (3, 3)).score("w1 w2")


def test_wrong_mixtures(tmp_path):
    lm = wf.LM.read(ARPA)
    with pytest.raises(ValueError, match="1 models, but 2 weights"):
        wf.LM.mix([lm], [1, 2])
    with pytest.raises(TypeError, match="expected an LM"):
        wf.LM.mix([lm, "x.arpa"])
    with pytest.raises(wf.ArgumentError, match="weight 2"):
        wf.LM.mix([lm, lm], [1, -1])
    with pytest.raises(wf.ArgumentError, match="needs a model"):
        wf.LM.mix([])


def test_a_mapped_file_and_a_model_in_memory_are_one_class(tmp_path):
    """What each gives is the same; the form that a use needs besides is made when it is used."""
    memory, mapped, again = wf.LM.open(ARPA), wf.LM.convert(ARPA, tmp_path / "lm.wlm"), wf.LM.open(ARPA, mapped=True)
    assert [lm.info()["mapped"] for lm in (memory, mapped, again, wf.LM.open(tmp_path / "lm.wlm"))] == [False, True, True, True]
    for lm in (mapped, again):
        assert lm.costs("a b c") == pytest.approx(memory.costs("a b c"), abs=1e-6) and list(lm.words) == list(memory.words)
        assert lm.prune(max_ngrams="20,20").info()["num_ngrams"] == memory.prune(max_ngrams="20,20").info()["num_ngrams"]
        assert wf.fst.equal(lm.to_fst(), memory.to_fst(), delta=1e-5)
    memory.make_table()
    assert memory.info()["table_bytes"] > 0 and not memory.info()["mapped"]
    memory.verify()
    mapped.verify()
    table = wf.Symbols(["<eps>", "c", "b", "a", "x"])
    scores = [wf.LM.read(path, table).score("a b x") for path in (ARPA, tmp_path / "lm.wlm")]
    assert scores[0] == scores[1] == -math.inf
    assert wf.LM.read(tmp_path / "lm.wlm", table).score("a b c") == pytest.approx(memory.score("a b c"), abs=1e-6)
    with pytest.raises(wf.Error, match="difference.wlm: the difference of two models"):
        wf.LM.convert(ARPA, tmp_path / "difference.wlm", subtract=ARPA).prune()
    with pytest.raises(wf.ArgumentError, match="no perplexity"):
        wf.LM.open(tmp_path / "difference.wlm").perplexity(["a"])
