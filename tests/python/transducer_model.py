"""A transducer in numpy, in float64, with searches over all paths; and the same model behind functions. Shared by the tests of transducers."""

import math

import numpy as np
from conftest import write_safetensors

import warpfst as wf

NAMES = ["<blk>", "a", "b", "c"]
LEXICON = {"ab": "a b", "ba": "b a", "c": "c", "cc": "c c", "aab": "a a b"}  # words of these tokens


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
        """The best path: (cost, tokens). Histories are never recombined. `boost`: of a token in a frame; a token that follows itself earns none."""
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
                        pool[to] = min(pool.get(to, math.inf), cost + added - (min(boost(t, token), 0.0) if history[-1:] == (token,) else boost(t, token)))
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
