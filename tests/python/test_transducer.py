"""Decoding with transducers: built-in models and functions against numpy, graphs with words against every word sequence, and bad input."""

import functools
import itertools
import math
import os
import pathlib

import numpy as np
import pytest
from conftest import write_safetensors

import warpfst as wf

DATA = os.environ.get("WARPFST_TRANSDUCER_DATA")  # a folder as docs/how-to/transducers.md describes, for the test with real models
NAMES = ["<blk>", "a", "b", "c"]


class Reference:
    """A random model, and its formulas in float64."""

    def __init__(self, rng, context=2, layers=0, durations=0, blank=0, relu=False, padded=False, biased=True, num_tokens=4):
        self.context, self.layers, self.durations, self.blank, self.relu, self.padded = (0 if layers else context), layers, durations, blank, relu, padded
        self.num_tokens, self.encoder_size, embedding, predictor, joiner = num_tokens, 5, 3, 6, 7

        def random(*shape):
            return (rng.normal(size=shape) * 1.2).astype(np.float32)

        w = {"pred.emb.weight": random(num_tokens + padded, embedding)}
        if layers:
            for layer in range(layers):
                end = f"_l{layer}" if layers > 1 else ""
                w[f"pred.lstm.weight_ih{end}"] = random(4 * predictor, predictor if layer else embedding)
                w[f"pred.lstm.weight_hh{end}"] = random(4 * predictor, predictor)
                w[f"pred.lstm.bias_ih{end}"], w[f"pred.lstm.bias_hh{end}"] = random(4 * predictor), random(4 * predictor)
        else:
            w["pred.conv.weight"] = random(predictor, context * embedding)
            if biased:
                w["pred.conv.bias"] = random(predictor)
        w["joiner.enc.weight"], w["joiner.pred.weight"], w["joiner.out.weight"] = random(joiner, 5), random(joiner, predictor), random(num_tokens + durations, joiner)
        if biased:
            w["joiner.enc.bias"], w["joiner.pred.bias"], w["joiner.out.bias"] = random(joiner), random(joiner), random(num_tokens + durations)
        self.tensors = w
        self.w = {name: value.astype(np.float64) for name, value in w.items()}
        self.states = {}

    def save(self, path):
        return write_safetensors(path, self.tensors, {"blank": str(self.blank), "activation": "relu" if self.relu else "tanh"})

    def bias(self, name):
        return self.w.get(name, 0.0)

    def step(self, token, state):
        """LSTM: one token."""
        x, after = self.w["pred.emb.weight"][token], []
        for layer, (h, c) in enumerate(state):
            end = f"_l{layer}" if self.layers > 1 else ""
            gates = self.w[f"pred.lstm.weight_ih{end}"] @ x + self.w[f"pred.lstm.bias_ih{end}"] + self.w[f"pred.lstm.weight_hh{end}"] @ h + self.w[f"pred.lstm.bias_hh{end}"]
            i, f, g, o = np.split(gates, 4)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            x = np.tanh(c) / (1 + np.exp(-o))
            after.append((x, c))
        return after

    def state(self, history):
        """LSTM: the state after a history."""
        if history not in self.states:
            token, before = (history[-1], self.state(history[:-1])) if history else (self.blank, [(np.zeros(6), np.zeros(6))] * self.layers)
            self.states[history] = self.step(token, before)
        return self.states[history]

    def predictor(self, history):
        if self.layers:
            return self.state(tuple(history))[-1][0]
        start = [self.num_tokens if self.padded else self.blank] * (self.context - 1) + [self.blank]
        last = [*start, *history][-self.context :]
        return np.maximum(self.w["pred.conv.weight"] @ np.concatenate([self.w["pred.emb.weight"][y] for y in last]) + self.bias("pred.conv.bias"), 0)

    def log_probs(self, encoder, history):
        hidden = self.w["joiner.enc.weight"] @ encoder + self.bias("joiner.enc.bias") + self.w["joiner.pred.weight"] @ self.predictor(history) + self.bias("joiner.pred.bias")
        hidden = np.maximum(hidden, 0) if self.relu else np.tanh(hidden)
        z = self.w["joiner.out.weight"] @ hidden + self.bias("joiner.out.bias")
        tokens, durations = z[: self.num_tokens], z[self.num_tokens :]
        return tokens - np.logaddexp.reduce(tokens), durations - np.logaddexp.reduce(durations) if self.durations else None

    def arcs(self, encoder, history, n, most):
        """(cost, token, duration) of everything that may follow; n tokens were emitted in the frame."""
        tokens, durations = self.log_probs(encoder, history)
        for token in range(self.num_tokens):
            for d in range(self.durations or 2):
                if self.durations == 0 and (d != (token == self.blank) or (d == 0 and n == most)):
                    continue
                if self.durations > 0 and d == 0 and (token == self.blank or n + 1 == most):
                    continue
                yield -tokens[token] - (durations[d] if self.durations else 0), token, d

    def best(self, frames, most, boost=lambda t, token: 0.0):
        """The best path: (cost, tokens). Histories are never recombined. `boost`: of a token in a frame."""
        end = len(frames)
        waiting = [{} for _ in range(end + 1)]
        waiting[0][()] = 0.0
        for t in range(end):
            now = waiting[t]
            for n in range(most + 1):
                later = {}
                for history, cost in now.items():
                    for added, token, d in self.arcs(frames[t], history, n, most):
                        to, pool = history if token == self.blank else (*history, token), later if d == 0 else waiting[min(t + d, end)]
                        pool[to] = min(pool.get(to, math.inf), cost + added - boost(t, token))
                now = later
        return min((cost, history) for history, cost in waiting[end].items())

    def greedy(self, frames, most):
        t, n, history, cost = 0, 0, (), 0.0
        while t < len(frames):
            tokens, durations = self.log_probs(frames[t], history)
            token = self.blank if self.durations == 0 and n == most else int(tokens.argmax())
            d = int(durations.argmax()) if self.durations else int(token == self.blank)
            if token != self.blank:
                history, n = (*history, token), n + 1
            if self.durations and d == 0 and (token == self.blank or n == most):
                d = 1
            cost -= tokens[token] + (durations[d] if self.durations else 0)
            if d:
                t, n = t + d, 0
        return cost, history


KINDS = [
    {"context": 1},
    {"context": 2},
    {"context": 3, "relu": True, "biased": False},
    {"context": 2, "padded": True},
    {"context": 2, "durations": 3},
    {"layers": 1},
    {"layers": 2, "blank": 3, "relu": True},
    {"layers": 1, "durations": 4},
    {"context": 2, "blank": 3},
]


def names_of(model):
    others = iter(NAMES[1:])
    return [NAMES[0] if i == model.blank else next(others) for i in range(model.num_tokens)]


def tokens_graph(model):
    return wf.build_ctc_graph(tokens=names_of(model), topology="transducer")


def token_ids(model, result):
    return tuple(names_of(model).index(word.text) for word in result.words)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_against_numpy(kind, rng, tmp_path):
    for trial in range(20):
        model = Reference(rng, **KINDS[kind])
        graph, loaded = tokens_graph(model), wf.Transducer.open(model.save(tmp_path / "m.safetensors"))
        frames = (rng.normal(size=(int(rng.integers(0, 4)), 5)) * 2).astype(np.float32)
        most = int(rng.integers(1, 3))
        everything = {"beam": 1e30, "max_hypotheses": 100000, "max_symbols": most}
        result = wf.Decoder(graph, transducer=loaded, num_threads=1, **everything).decode(frames)[0]
        cost, history = model.best(frames, most)
        assert result.cost == pytest.approx(cost, abs=2e-4) and token_ids(model, result) == history, f"trial {trial}"
        result = wf.Decoder(graph, transducer=loaded, greedy=True, max_symbols=most, num_threads=1).decode(frames)[0]
        cost, history = model.greedy(frames, most)
        assert result.cost == pytest.approx(cost, abs=2e-4) and token_ids(model, result) == history, f"trial {trial}"


def functions_of(model, rows_seen=None):
    """The model as functions over arrays."""

    def log_count(count):
        if rows_seen is not None:
            rows_seen.append(count)

    def predict(tokens):
        tokens = np.asarray(tokens)
        log_count(len(tokens))
        return np.array([model.predictor(row) for row in tokens], np.float32)

    def predict_next(tokens, states):
        outputs, after = [], []
        for token, state in zip(np.asarray(tokens), np.asarray(states)):
            layers = np.split(state.astype(np.float64), model.layers)
            new = model.step(token, [tuple(np.split(layer, 2)) for layer in layers])
            outputs.append(new[-1][0])
            after.append(np.concatenate([part for layer in new for part in layer]))
        return np.array(outputs, np.float32), np.array(after, np.float32)

    def join(encoder, predictor):
        hidden = np.asarray(encoder) @ model.tensors["joiner.enc.weight"].T + np.asarray(predictor) @ model.tensors["joiner.pred.weight"].T
        hidden = hidden + model.bias("joiner.enc.bias") + model.bias("joiner.pred.bias")
        hidden = np.maximum(hidden, 0) if model.relu else np.tanh(hidden)
        return (hidden @ model.w["joiner.out.weight"].T + model.bias("joiner.out.bias")).astype(np.float32)

    return (predict_next if model.layers else predict), join


def from_functions(model, predictor=None, joiner=None, **sizes):
    own_predictor, own_joiner = functions_of(model)
    sizes = {
        "num_tokens": model.num_tokens,
        "num_durations": model.durations,
        "blank": model.blank,
        "encoder_size": 5,
        "predictor_size": 6,
        "context_size": model.context,
        "state_size": 12 * model.layers,
        **sizes,
    }
    return wf.Transducer.from_functions(predictor or own_predictor, joiner or own_joiner, **sizes)


@pytest.mark.parametrize("kind", [kind for kind in range(len(KINDS)) if not KINDS[kind].get("padded")])
def test_functions(kind, rng, tmp_path):
    """A model behind functions gives what the built-in one gives."""
    model = Reference(rng, **KINDS[kind])
    graph, loaded, behind = tokens_graph(model), wf.Transducer.open(model.save(tmp_path / "m.safetensors")), from_functions(model)
    info = loaded.info()
    assert info["num_bytes"] > behind.info()["num_bytes"] and {**info, "num_bytes": 0} == {**behind.info(), "num_bytes": 0}
    batch = [(rng.normal(size=(frames, 5)) * 2).astype(np.float32) for frames in (6, 0, 9)]
    for options in ({}, {"max_hypotheses": 2}, {"greedy": True}):
        for ours, theirs in zip(*(wf.Decoder(graph, transducer=one, **options).decode(batch) for one in (loaded, behind))):
            assert ours.text == theirs.text and ours.cost == pytest.approx(theirs.cost, abs=2e-4)


def test_predictor_runs_once_for_each_context(rng):
    model = Reference(rng)
    rows = []
    predictor, joiner = functions_of(model, rows)
    decoder = wf.Decoder(tokens_graph(model), transducer=from_functions(model, predictor, joiner))
    decoder.decode([rng.normal(size=(40, 5)).astype(np.float32) for _ in range(3)])
    assert 3 * 4 < sum(rows) <= 3 * 17  # the pairs of tokens, and the start's, of each utterance
    assert max(rows) > 17  # and those of all utterances at once
    stats = decoder.transducer_stats()
    assert stats["num_contexts"] == sum(rows) and stats["num_rounds"] >= 40 and stats["num_rows"] > sum(rows) and stats["submit_s"] > 0


# --- words --------------------------------------------------------------------------------------------------------------------------------------------------

LEXICON = {"ab": "a b", "ba": "b a", "c": "c", "cc": "c c", "aab": "a a b"}
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
        boosted = {s: c - 2.5 * s.count("cc") for s, c in with_lm.items()}
        wanted = [min((cost, s) for s, cost in table.items()) for table in (with_lm, boosted)]
        for decoder in (wf.Decoder(lm_graph, transducer=loaded, **options), wf.Decoder(plain_graph, lm=str(arpa), transducer=loaded, **options)):
            for (cost, sentence), boost in zip(wanted, (None, {"cc": 2.5})):
                result = decoder.decode(frames, boost=boost)[0]
                assert result.cost == pytest.approx(cost, abs=3e-4) and tuple(result.text.split()) == sentence
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
                stream.accept(row[None])
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
    lm = wf.LargeLM.build(tmp_path / "lm.arpa", tmp_path / "lm.wlm")
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


def test_same_everywhere(rng, tmp_path):
    """Results do not depend on threads, the batch, or its order."""
    model = Reference(rng, layers=1)
    loaded, graph = wf.Transducer.open(model.save(tmp_path / "m.safetensors")), tokens_graph(model)
    batch = [rng.normal(size=(int(frames), 5)).astype(np.float16) for frames in rng.integers(0, 30, 12)]

    def outcome(results):
        return [(r.text, r.cost, [(w.text, w.start, w.end) for w in r.words]) for r in results]

    alone = [outcome(wf.Decoder(graph, transducer=loaded, num_threads=1).decode([one]))[0] for one in batch]
    assert outcome(wf.Decoder(graph, transducer=loaded, num_threads=4).decode(batch)) == alone
    assert outcome(wf.Decoder(graph, transducer=loaded, num_threads=2).decode(batch[::-1])) == alone[::-1]


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
        wanted = sorted((cost, s) for s, cost in costs.items() if cost < min(costs.values()) + 3)
        found = [(h.graph_cost + h.acoustic_cost, tuple(h.text.split())) for h in result.nbest(1000)]
        assert [s for _, s in found] == [s for _, s in wanted] and len(found) > 1
        assert [cost for cost, _ in found] == pytest.approx([cost for cost, _ in wanted], abs=3e-4)
        assert all(0 < word.confidence <= 1 for word in result.words)
        assert result.cost == pytest.approx(found[0][0], abs=1e-4)


def test_streams(rng, tmp_path):
    """Chunks give what the whole utterance gives, also through functions, and partial results on the way."""
    model = Reference(rng, layers=1)
    graph = tokens_graph(model)
    frames = (rng.normal(size=(40, 5)) * 2).astype(np.float32)
    for loaded in (wf.Transducer.open(model.save(tmp_path / "m.safetensors")), from_functions(model)):
        decoder = wf.Decoder(graph, transducer=loaded)
        whole = decoder.decode(frames)[0]
        streams = [decoder.stream(frame_seconds=0.04) for _ in range(3)]
        for t in range(0, 40, 8):
            events = decoder.advance(streams, [frames[t : t + 8]] * 3)
            partials = decoder.partials(streams)
            assert all(event.num_frames == t + 8 for event in events)
            assert len({partial.text for partial in partials}) == 1 and partials[0].num_frames == t + 8
        for stream in streams:
            result = stream.finish()
            assert result.text == whole.text and result.cost == whole.cost and list(result.alignment) == list(whole.alignment)
            assert [(w.start, w.end) for w in result.words] == [(w.start, w.end) for w in whole.words]


@pytest.mark.parametrize("kind", [1, 4, 5])
def test_boosts_in_mid_utterance(kind, rng, tmp_path):
    """Tokens that are emitted from a frame on are boosted, others are not: against all paths."""
    boosts, changed = {"a": 3.0, "c": -1.0}, 0
    for _ in range(8):
        model, most, since = Reference(rng, **KINDS[kind]), 2, 2
        frames = (rng.normal(size=(4, 5)) * 2).astype(np.float32)
        decoder = wf.Decoder(tokens_graph(model), transducer=model.save(tmp_path / "m.safetensors"), beam=1e30, max_hypotheses=100000, max_symbols=most)

        def boost_of(t, token, since=since, model=model):
            return boosts.get(names_of(model)[token], 0.0) if t >= since else 0.0

        _, history = model.best(frames, most, boost_of)
        stream = decoder.stream()
        stream.accept(frames[:since])
        stream.set_boost(boosts)
        for row in frames[since:]:
            stream.accept(row[None])
        result = stream.finish()
        assert token_ids(model, result) == history
        changed += history != model.best(frames, most)[1]
    assert changed > 1


# --- bad input ----------------------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(rng, tmp_path):
    model = Reference(rng)
    return model, tmp_path / "bad.safetensors"


@pytest.mark.parametrize("name", ["pred.emb.weight", "pred.conv.weight", "joiner.enc.weight", "joiner.pred.weight", "joiner.out.weight"])
def test_missing_tensor(small, name):
    model, path = small
    del model.tensors[name]
    with pytest.raises(wf.FormatError, match=f"no tensor {name}"):
        wf.Transducer.open(model.save(path))


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"joiner.pred.weight": np.zeros((7, 5), np.float32)}, wf.FormatError, r"joiner.pred.weight has 2 dimensions \[7, 5\]; \[7, 6\] expected"),
        ({"joiner.out.bias": np.zeros(3, np.float32)}, wf.FormatError, "joiner.out.bias has 1 dimensions"),
        ({"pred.conv.weight": np.zeros((6, 7), np.float32)}, wf.FormatError, "7 columns, which is no multiple of the embedding size 3"),
        ({"joiner.enc.weight": np.full((7, 5), np.nan, np.float32)}, wf.FormatError, "joiner.enc.weight holds"),
        ({"pred.emb.weight": np.zeros((9, 3), np.float32)}, wf.FormatError, "pred.emb.weight has 9 rows, joiner.out.weight 4"),
        ({"pred.emb.weight": np.zeros(9, np.float32)}, wf.FormatError, "pred.emb.weight is not a matrix"),
        ({"other": np.zeros(1, np.float32)}, wf.UnsupportedError, "tensor other is a duplicate or not part of a transducer"),
    ],
)
def test_bad_tensors(small, change, error, message):
    model, path = small
    model.tensors.update(change)
    with pytest.raises(error, match=message):
        wf.Transducer.open(model.save(path))


def test_bad_files_and_options(small):
    model, path = small
    with pytest.raises(wf.FileError):
        wf.Transducer.open(path)
    write_safetensors(path, model.tensors, {"activation": "gelu"})
    with pytest.raises(wf.UnsupportedError, match="activation 'gelu'"):
        wf.Transducer.open(path)
    write_safetensors(path, model.tensors, {"blank": "x"})
    with pytest.raises(wf.FormatError, match="blank 'x'"):
        wf.Transducer.open(path)
    with pytest.raises(wf.ArgumentError, match="the blank is column 4, the model has 4 tokens"):
        wf.Transducer.open(path, blank=4)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(wf.FormatError, match="data_offsets within the file"):
        wf.Transducer.open(path, blank=0)


def test_graph_and_options_that_do_not_fit(small):
    model, path = small
    loaded = wf.Transducer.open(model.save(path))
    with pytest.raises(wf.ArgumentError, match="the graph has 5 tokens, the transducer 4"):
        wf.Decoder(wf.build_ctc_graph(tokens=[*NAMES, "d"], topology="transducer"), transducer=loaded)
    with pytest.raises(wf.ArgumentError, match="the blank is column 1 of the graph and column 0 of the transducer"):
        wf.Decoder(wf.build_ctc_graph(tokens=["a", "<blk>", "b", "c"], topology="transducer"), transducer=loaded)
    with pytest.raises(wf.ArgumentError, match="no arc of the blank"):
        wf.Decoder(wf.Fst.from_arcs([(0, 0, 2, 2, 0.0)], {0: 0.0}), transducer=loaded)
    graph = tokens_graph(model)
    for options in ({"blank_skip_threshold": 0.9}, {"recombine": "state"}):
        with pytest.raises(wf.UnsupportedError, match="is not available with a transducer"):
            wf.Decoder(graph, transducer=loaded, **options)
    with pytest.raises(wf.UnsupportedError, match="device cuda: a transducer behind functions needs device cpu"):
        wf.Decoder(graph, transducer=from_functions(model), device="cuda")
    with pytest.raises(wf.ArgumentError, match="max_symbols"):
        wf.Decoder(graph, transducer=loaded, max_symbols=0)
    words = wf.build_ctc_graph(tokens=NAMES, lexicon=LEXICON, words=["<eps>", *LEXICON], topology="transducer")
    decoder = wf.Decoder(words, transducer=loaded)
    stream = decoder.stream()
    stream.accept(np.zeros((2, 5), np.float32))
    stream.set_boost({"ab": 1.0})
    stream = wf.Decoder(words, transducer=loaded, lattice_beam=2).stream()
    stream.accept(np.zeros((2, 5), np.float32))
    with pytest.raises(wf.Error, match="a scorer is for a whole utterance"):
        stream.set_boost({"ab": 1.0})


def test_bad_utterances(small, rng):
    """Only the utterance with the error fails."""
    model, path = small
    decoder = wf.Decoder(tokens_graph(model), transducer=wf.Transducer.open(model.save(path)))
    good = rng.normal(size=(4, 5)).astype(np.float32)
    bad = good.copy()
    bad[2, 3] = np.nan
    results = decoder.decode([good, bad, good[:, :4].copy(), good])
    assert [result.error is None for result in results] == [True, False, False, True]
    assert "frame 2, column 3 is NaN" in str(results[1].error)
    assert "4 columns, the transducer expects 5" in str(results[2].error)
    assert results[0].cost == results[3].cost


def test_bad_functions(small, rng):
    model, _ = small
    graph, frames = tokens_graph(model), rng.normal(size=(3, 5)).astype(np.float32)
    predictor, joiner = functions_of(model)

    def fail(*_):
        raise ZeroDivisionError("in the joiner")

    for functions, error, message in (
        ({"joiner": fail}, ZeroDivisionError, "in the joiner"),
        ({"predictor": fail}, ZeroDivisionError, "in the joiner"),
        ({"joiner": lambda e, p: joiner(e, p)[:, :3]}, wf.ArgumentError, r"the joiner's logits have the shape \[1, 3\], expected \[1, 4\]"),
        ({"predictor": lambda y: predictor(y)[0]}, wf.ArgumentError, r"the predictor's outputs have the shape \[6\]"),
        ({"joiner": lambda e, p: joiner(e, p).astype(np.float16)}, wf.ArgumentError, "not float32"),
        ({"joiner": lambda e, p: None}, TypeError, "NoneType"),
    ):
        decoder = wf.Decoder(graph, transducer=from_functions(model, **functions))
        with pytest.raises(error, match=message):
            decoder.decode(frames)
        with pytest.raises(error, match=message):  # and again
            decoder.decode(frames)
    nan = wf.Decoder(graph, transducer=from_functions(model, joiner=lambda e, p: joiner(e, p) * np.nan)).decode([frames, frames[:0]])
    assert "frame 0: the logit of token 0 is" in str(nan[0].error) and nan[1].error is None
    for sizes, message in (
        ({"context_size": 0}, "either states or a context"),
        ({"num_tokens": 0}, "a transducer of 0 tokens"),
        ({"num_durations": 1}, "1 durations"),
        ({"blank": 4}, "the blank is column 4"),
        ({"encoder_size": 0}, "encoder size of 0"),
        ({"predictor_size": 0}, "predictor_size 0"),
    ):
        with pytest.raises(wf.ArgumentError, match=message):
            from_functions(model, **sizes)


# --- real models --------------------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(DATA is None, reason="WARPFST_TRANSDUCER_DATA names no folder of models, encoder outputs and expected results")
@pytest.mark.parametrize("name", ["rnnt", "lstm", "tdt"])
def test_real_models(name):
    """Greedy results equal the expected ones of another decoder; those of the beam are never dearer."""
    folder = pathlib.Path(DATA)
    graph = wf.build_ctc_graph(tokens=folder / "tokens.txt", topology="transducer")
    ids = {line.split()[0]: line.split()[1] for line in (folder / "tokens.txt").read_text(encoding="utf-8").splitlines()}
    for how, options in (("greedy", {"greedy": True}), ("beam", {"max_hypotheses": 8})):
        lines = (folder / f"expected_{'' if name == 'rnnt' else name + '_'}{how}.txt").read_text(encoding="utf-8").splitlines()
        expected = {key: (tokens, float(cost)) for key, _, tokens, cost in (line.split("\t") for line in lines)}
        decoder = wf.Decoder(graph, transducer=folder / f"{name}.safetensors", **options)
        results = decoder.decode([np.load(folder / "enc" / f"{key}.npy") for key in expected])
        assert len(results) == 300
        for (tokens, cost), result in zip(expected.values(), results):
            if how == "greedy":
                assert " ".join(ids[word.text] for word in result.words) == tokens and result.cost == pytest.approx(cost, abs=1e-3)
            else:
                assert result.cost < cost + 1e-3
