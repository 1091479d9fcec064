"""Transducers with graphs of words, against every word sequence; words added for an utterance; the internal language model; lattices."""

import functools
import itertools
import math

import numpy as np
import pytest
from transducer_model import KINDS, LEXICON, NAMES, Reference

import warpfst as wf

ARPA = """\\data\\
ngram 1=7
ngram 2=4

\\1-grams:
-99 <s> -0.3
-0.6 </s>
-0.7 ab -0.2
-0.9 ba -0.1
-0.8 c -0.4
-1.1 cc -0.2
-1.2 aab -0.25

\\2-grams:
-0.3 <s> ab
-0.5 ab c
-0.2 c </s>
-0.4 ba ba

\\end\\
"""


def lm_log10(history, word):
    unigrams = {"</s>": -0.6, "ab": -0.7, "ba": -0.9, "c": -0.8, "cc": -1.1, "aab": -1.2}
    backoff = {"<s>": -0.3, "ab": -0.2, "ba": -0.1, "c": -0.4, "cc": -0.2, "aab": -0.25}
    bigrams = {("<s>", "ab"): -0.3, ("ab", "c"): -0.5, ("c", "</s>"): -0.2, ("ba", "ba"): -0.4}
    return bigrams.get((history, word), backoff[history] + unigrams[word])


def forced_cost(model, frames, tokens, most):
    """Cost of the best path that emits these tokens."""

    @functools.cache
    def rest(t, u, n):
        if t >= len(frames):
            return 0.0 if u == len(tokens) else math.inf
        best = math.inf
        for added, token, d in model.arcs(frames[t], tokens[:u], n, most):
            if token != model.blank and (u == len(tokens) or tokens[u] != token):
                continue
            emitted = token != model.blank
            best = min(best, added + rest(min(t + d, len(frames)), u + emitted, 0 if d else n + 1))
        return best

    return rest(0, 0, 0)


def sentences(frames, most):
    for count in range(4):
        for words in itertools.product(LEXICON, repeat=count):
            if sum(len(LEXICON[word].split()) for word in words) <= frames * most:
                yield words


@pytest.mark.parametrize("kind", [1, 4, 5])
def test_words(kind, rng, tmp_path):
    """A graph of lexicon and LM, and the same LM and boosts on the fly over the lexicon alone, against every word sequence."""
    arpa = tmp_path / "lm.arpa"
    arpa.write_text(ARPA)
    lm_graph = wf.build_ctc_graph(tokens=NAMES, lexicon=LEXICON, lm=arpa, topology="transducer", backoff="failure")
    plain_graph = wf.build_ctc_graph(tokens=NAMES, lexicon=LEXICON, words=["<eps>", *LEXICON], topology="transducer")
    found = 0
    for _ in range(6):
        model, most = Reference(rng, **KINDS[kind]), 2
        frames = (rng.normal(size=(3, 5)) * 2).astype(np.float32)
        loaded = wf.Transducer.open(model.save(tmp_path / "m.safetensors"))
        options = {"beam": 1e30, "max_hypotheses": 100000, "max_symbols": most, "num_threads": 1}
        costs = {}
        for sentence in sentences(len(frames), most):
            tokens = tuple(NAMES.index(token) for word in sentence for token in LEXICON[word].split())
            costs[sentence] = forced_cost(model, frames, tokens, most)
        with_lm = {s: c - math.log(10) * sum(lm_log10(*pair) for pair in itertools.pairwise(("<s>", *s, "</s>"))) for s, c in costs.items()}
        runs = {s: [word for word, _ in itertools.groupby(s)] for s in with_lm}  # a word that follows itself earns one boost
        boosted = {s: c - 2.5 * runs[s].count("cc") for s, c in with_lm.items()}
        wanted = [min((cost, s) for s, cost in table.items()) for table in (with_lm, boosted)]
        for graph, word_cost in ((lm_graph, 0), (plain_graph, 2**-10)):
            decoder = wf.Decoder(graph, lm=None if graph is lm_graph else str(arpa), transducer=loaded, **options)
            for (cost, sentence), boost in zip(wanted, (None, {"cc": 2.5})):
                result = decoder.decode(frames, boost=boost)[0]
                assert result.cost == pytest.approx(cost + word_cost * len(sentence), abs=3e-4) and tuple(result.text.split()) == sentence
                assert all(0 <= word.start < word.end <= len(frames) for word in result.words)
                found += len(sentence)
    assert found > 3


@pytest.mark.parametrize("kind", [1, 4, 5])
def test_added_words(kind, rng, tmp_path):
    """Each utterance and each stream with its own words, against every sentence; and <unk> as any spelling."""
    words = wf.Symbols(["<eps>", "ab", "<name>"])
    grammar = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (0, 1, 2, 2, 0.75), (1, 2, 2, 2, 1.0)], {2: 0.25}, isymbols=words, osymbols=words)
    graph = wf.build_ctc_graph(NAMES, {"ab": "a b"}, grammar=grammar, words=words, topology="transducer", classes="<name>")
    lists = [{"ba": 0.5, "c": 0.0, "cc": 0.25, "ba c": 0.125}, {"aab": -0.5, "ba": 0.0}]
    graphs = [graph.add_words(phrases, pronunciations={"cc": ["c c"]} if "cc" in phrases else None) for phrases in lists]
    model, most, found = Reference(rng, **KINDS[kind]), 2, 0
    loaded = wf.Transducer.open(model.save(tmp_path / "m.safetensors"))
    decoder = wf.Decoder(graph, transducer=loaded, beam=1e30, max_hypotheses=100000, max_symbols=most)
    for _ in range(4):
        batch = [(rng.normal(size=(4, 5)) * 2).astype(np.float32) for _ in lists]
        results = decoder.decode(batch, graphs=graphs)
        for frames, phrases, given, result in zip(batch, lists, graphs, results):
            costs = {}
            for first, second in itertools.product([("ab", 0.5), *((p, 0.75 + c) for p, c in phrases.items())], phrases.items()):
                tokens = tuple(NAMES.index(letter) for letter in (first[0] + second[0]).replace(" ", ""))
                sentence = f"{first[0]} {second[0]}"
                cost = first[1] + 1.25 + second[1] + forced_cost(model, frames, tokens, most)
                costs[sentence] = min(cost, costs.get(sentence, math.inf))
            best = min(costs.values())  # "c cc" and "cc c" cost the same
            assert costs[result.text] == pytest.approx(best, abs=3e-4) and result.cost == pytest.approx(best, abs=3e-4)
            found += any(word in result.text.split() for word in phrases)
            stream = decoder.stream()
            stream.set_graph(given)
            for row in frames:
                stream.advance(row[None])
            assert stream.finish().cost == result.cost
    assert found > 2
    (tmp_path / "spelling.arpa").write_text("\\data\\\nngram 1=5\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.5 a\n-0.75 b\n-0.25 c\n\n\\end\\\n")
    spelled = graph.add_spelling(tmp_path / "spelling.arpa")
    frames = (rng.normal(size=(3, 5)) * 2).astype(np.float32)
    result = wf.Decoder(spelled, transducer=loaded, beam=1e30, max_hypotheses=100000, max_symbols=most).decode(frames)[0]
    log10 = {"a": -0.5, "b": -0.75, "c": -0.25}
    costs = [math.inf]
    for size in range(1, 7):
        for letters in itertools.product("abc", repeat=size):
            base = forced_cost(model, frames, tuple(NAMES.index(letter) for letter in letters), most)
            for cut in range(1, size):
                spell = [-math.log(10) * (sum(log10[letter] for letter in part) - 0.5) for part in (letters[:cut], letters[cut:])]
                starts = [0.75 + spell[0]] + ([0.5] if letters[:cut] == ("a", "b") else [])
                costs.append(base + min(starts) + 1.25 + spell[1])
    assert result.cost == pytest.approx(min(costs), abs=3e-4)
    ctc = wf.build_ctc_graph(NAMES, {"ab": "a b"}, grammar=grammar, words=words, topology="compact", classes="<name>")
    with pytest.raises(wf.ArgumentError, match="the classes of the graph are those of CTC"):
        wf.Decoder(ctc, transducer=loaded).decode(frames, graphs=ctc.add_words(["ba"]))


def test_internal_lm(rng, tmp_path):
    """A model chained with itself at a factor below 0 costs what their difference does; both are in the scorer's cost."""
    graph = wf.build_ctc_graph(tokens=NAMES, lexicon=LEXICON, words=["<eps>", *LEXICON], topology="transducer")
    (tmp_path / "lm.arpa").write_text(ARPA)
    lm = wf.LM.convert(tmp_path / "lm.arpa", tmp_path / "lm.wlm")
    batch = [(rng.normal(size=(6, 5)) * 2).astype(np.float32) for _ in range(8)]
    loaded, num_words = wf.Transducer.open(Reference(rng, layers=1).save(tmp_path / "m.safetensors")), 0
    for factor, subtracted in ((1.0, 0.5), (0.7, 0.7), (0.5, 1.0)):
        scorers = [wf.Scorer.from_lm(lm, graph.words, lm_scale=scale) for scale in (factor, -subtracted)]
        for result in wf.Decoder(graph, transducer=loaded, lm=scorers, beam=30, max_hypotheses=200).decode(batch):
            words = ("<s>", *result.text.split(), "</s>")
            log10 = sum(lm_log10(*pair) for pair in itertools.pairwise(words))
            assert result.scorer_cost == pytest.approx((subtracted - factor) * math.log(10) * log10, abs=1e-4)
            num_words += len(words) - 2
    assert num_words > 10
    with pytest.raises(wf.ArgumentError, match="lm_scale"):
        wf.Scorer.from_lm(lm, graph.words, lm_scale=-2e6)


def test_lattices(rng, tmp_path):
    """The lattice's n-best list has the sentences within the beam, at the costs of their best paths."""
    graph = wf.build_ctc_graph(tokens=NAMES, lexicon=LEXICON, words=["<eps>", *LEXICON], topology="transducer")
    for kind in (1, 4, 5):
        model = Reference(rng, **KINDS[kind])
        loaded = wf.Transducer.open(model.save(tmp_path / "m.safetensors"))
        frames = (rng.normal(size=(2, 5)) * 2).astype(np.float32)
        decoder = wf.Decoder(graph, transducer=loaded, beam=1e30, max_hypotheses=100000, max_symbols=2, lattice_beam=3, determinize=True, nbest=1000)
        result = decoder.decode(frames)[0]
        costs = {s: forced_cost(model, frames, tuple(NAMES.index(token) for word in s for token in LEXICON[word].split()), 2) for s in sentences(2, 2)}
        costs = {s: cost + 2**-10 * len(s) for s, cost in costs.items()}
        wanted = sorted((cost, s) for s, cost in costs.items() if cost < min(costs.values()) + 3)
        found = [(h.graph_cost + h.acoustic_cost, tuple(h.text.split())) for h in result.nbest(1000)]
        assert [s for _, s in found] == [s for _, s in wanted] and len(found) > 1
        assert [cost for cost, _ in found] == pytest.approx([cost for cost, _ in wanted], abs=3e-4)
        assert all(0 < word.confidence <= 1 for word in result.words)
        assert result.cost == pytest.approx(found[0][0], abs=1e-4)


NEXT = ["<blk>", "\u2581go", "\u2581on", "ward"]


def repeats_at_a_cost(cost):
    """A model that says of a token that was just emitted that it comes again with exp(-cost); encoder outputs are logits."""
    return wf.Transducer.from_functions(
        lambda last: np.asarray(last).astype(np.float32)[:, :1],
        lambda encoder, last: np.asarray(encoder) - np.where(np.arange(len(NEXT)) == np.asarray(last), 2 * cost, 0).astype(np.float32) * (np.arange(len(NEXT)) > 0),
        num_tokens=len(NEXT), encoder_size=len(NEXT), predictor_size=1, context_size=1,
    )  # fmt: skip


def logits(said, cost):
    frames = np.full((len(said), len(NEXT)), -30, np.float32)
    frames[:, 0] = 0
    for frame, token in enumerate(said):
        frames[frame, token] = cost if token else 0
    return frames


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("said", "boost", "told"), [
    ([1, 1, 1, 1], {"go": 5.0}, "go"),
    ([1, 1, 0, 0], {"go": 5.0, "onward": 5.0}, "go"),
    ([2, 3, 2, 3], {"onward": 7.0}, "onward onward"),
    ([1, 2, 3, 0], {"go onward": 6.0}, "go onward"),
])  # fmt: skip
def test_boosts_do_not_repeat_words(said, boost, told, streams):
    """The boost is above what a repetition costs. Without it, the words are the same."""
    cost = 4.0
    graph = wf.build_ctc_graph(NEXT, {"go": ["\u2581go"], "onward": ["\u2581on", "ward"]}, topology="transducer")
    decoder, frames = wf.Decoder(graph, transducer=repeats_at_a_cost(cost)), logits(said, cost)
    for given in (None, boost):
        if streams:
            stream = decoder.stream()
            stream.set_boost(given or {})
            for frame in frames:
                stream.advance(frame[None])
            assert stream.finish().text == told
        else:
            assert decoder.decode(frames, boost=given)[0].text == told


@pytest.mark.parametrize("scale", [0.25, 4.0])  # powers of two round nothing, so ties stay
def test_costs_times_a_number(scale, rng, tmp_path):
    """acoustic_scale and all weights times the same number: the same words, work and lists at costs times it, with the same beams. The internal model's weight is one of them."""
    for name, text in (("lm.arpa", ARPA), ("internal.arpa", ARPA.replace("-0.9 ba", "-1.6 ba"))):
        (tmp_path / name).write_text(text)
    words = wf.Symbols(["<eps>", *LEXICON])
    grammars = {by: wf.Fst.from_arcs([(0, 0, i, i, by * i / 8) for i in range(1, 6)], {0: 0.0}, isymbols=words, osymbols=words) for by in (1.0, scale)}
    graphs = {by: wf.build_ctc_graph(NAMES, LEXICON, grammar=grammar, words=words, topology="transducer") for by, grammar in grammars.items()}

    def decoded(model, frames, by, beam=3.0, streams=False):
        lm, internal = (wf.Scorer.from_lm(str(tmp_path / name), words, lm_scale=weight * by) for name, weight in (("lm.arpa", 0.8), ("internal.arpa", -0.3)))
        options = {"acoustic_scale": 2 * by, "word_score": 0.5 * by, "beam": beam, "lattice_beam": 2.0, "num_threads": 1, "check_scores": "off"}
        decoder = wf.Decoder(graphs[by], transducer=model, lm=[lm, internal], **options, **({} if streams else {"determinize": True, "nbest": 1000}))
        boost = {"cc": 0.7 * by}
        if not streams:
            return list(decoder.decode(frames, boost=boost))
        opened = [decoder.stream() for _ in frames]
        for stream, matrix in zip(opened, frames):
            stream.set_boost(boost)
            for row in matrix:
                stream.advance(row[None])
        return [stream.finish() for stream in opened]

    cut = several = 0
    for kind in (1, 4, 5) * 5:
        model = wf.Transducer.open(Reference(rng, **KINDS[kind]).save(tmp_path / "m.safetensors"))
        frames = [(rng.normal(size=(count, 5)) * 2).astype(np.float32) for count in (5, 9)]
        ways = [decoded(model, frames, 1.0), decoded(model, frames, scale), decoded(model, frames, scale, streams=True), decoded(model, frames, 1.0, beam=100.0)]
        for one, other, stream, wide in zip(*ways):
            assert one.text == other.text == stream.text and one.flags == other.flags
            assert other.cost == pytest.approx(scale * one.cost, abs=1e-4) and stream.cost == other.cost
            assert (one.num_tokens, one.num_expanded, one.num_arcs) == (other.num_tokens, other.num_expanded, other.num_arcs)
            assert one.lattice.num_arcs == other.lattice.num_arcs == stream.lattice.num_arcs
            assert [best.text for best in one.nbest(1000)] == [best.text for best in other.nbest(1000)]
            assert [best.cost * scale for best in one.nbest(1000)] == pytest.approx([best.cost for best in other.nbest(1000)], abs=1e-3)
            cut += wide.num_tokens > one.num_tokens
            several += len(one.nbest(1000)) > 1
    assert cut > 10 and several > 10


def test_results_that_end_within_a_word():
    """The path that ends the word costs 8 nats of the model more for a frame: the beam of 15 keeps it at any acoustic scale; with a smaller one the decoder says so, once."""
    graph = wf.build_ctc_graph(NEXT, {"go": ["\u2581go"], "onward": ["\u2581on", "ward"]}, topology="transducer")
    frames = logits([1, 2, 0], 12.0)
    frames[1, 0], frames[2, 0], frames[2, 3] = 0, 10, 2
    model = repeats_at_a_cost(12.0)
    scaled = wf.Decoder(graph, transducer=model, acoustic_scale=3).decode(frames)[0]
    assert scaled.text == "go onward" and "not_final" not in scaled.flags
    decoder = wf.Decoder(graph, transducer=model, acoustic_scale=3, beam=5)
    with pytest.warns(wf.InputWarning, match="ends within a word.*raise beam=5 or") as told:
        cut = decoder.decode([frames, frames])
    assert len(told) == 1 and all("not_final" in one.flags for one in cut)


def test_texts_of_joined_tokens_come_once():
    """n-best lists of a transducer and of CTC over tokens: a text once, at its best cost, and as many texts as were asked for."""
    names = ["<blk>", "\u2581a", "b", "\u2581ab", "c"]
    scores = np.full((3, 5), -4, np.float32)
    scores[0, [1, 3]], scores[1, [0, 2]], scores[2, [0, 4]] = [-0.8, -0.9], [-0.8, -0.9], [-0.7, -1.2]
    model = wf.Transducer.from_functions(lambda last: np.zeros((len(last), 1), np.float32), lambda encoder, _: np.asarray(encoder),
                                         num_tokens=5, encoder_size=5, predictor_size=1, context_size=1)  # fmt: skip
    for options in ({"transducer": model}, {}):
        graph = wf.build_ctc_graph(names, **({"topology": "transducer"} if options else {}))
        plain, joined = (wf.Decoder(graph, lattice_beam=12, join=join, check_scores="off", **options) for join in (False, True))
        best = {}
        for one in plain.decode(scores)[0].nbest(2000):
            text = "".join(names[label - 1] for label in one.labels).replace("\u2581", " ").strip()
            best.setdefault(text, one.cost)
        lists = joined.decode(scores)[0]
        assert [(one.text, one.cost) for one in lists.nbest(30)] == list(best.items())[:30] and len(best) > 9
        assert all([one.text for one in lists.nbest(n)] == list(best)[:n] for n in range(1, 8))
        ready = wf.Decoder(graph, lattice_beam=12, join=True, determinize=True, nbest=4, check_scores="off", **options).decode(scores)[0]
        assert [one.text for one in ready.nbest(4)] == list(best)[:4]
