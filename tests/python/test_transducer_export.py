"""Exporters of transducers: small random models with the names and shapes of icefall and NeMo, against what these toolkits compute, in numpy."""

import io
import sys
import tarfile
import types

import numpy as np
import pytest

import warpfst as wf
from warpfst import integrations

FRAMES, ENCODER, JOINER = 12, 6, 8


def linear(state, name, x):
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def random_linear(rng, state, name, out, inner):
    state[f"{name}.weight"], state[f"{name}.bias"] = rng.normal(size=(out, inner)).astype(np.float32), rng.normal(size=out).astype(np.float32)


def log_softmax(x):
    return x - np.logaddexp.reduce(x)


def greedy(score, num_frames, blank, most=3):
    """(tokens, cost) of greedy decoding. score(t, tokens) gives log-probabilities of tokens, and of durations or None."""
    t, n, tokens, cost = 0, 0, [], 0.0
    while t < num_frames:
        log_probs, durations = score(t, tokens)
        token = blank if durations is None and n == most else int(log_probs.argmax())
        d = int(token == blank) if durations is None else int(durations.argmax())
        if token != blank:
            tokens, n = [*tokens, token], n + 1
        if d == 0 and (token == blank or (durations is not None and n == most)):
            d = 1
        cost -= log_probs[token] + (0 if durations is None else durations[d])
        if d:
            t, n = t + d, 0
    return tokens, cost


def decode(path, names, blank, frames):
    graph = wf.build_ctc_graph(tokens=names, topology="transducer")
    model = wf.Transducer.open(path)
    assert model.info()["blank"] == blank
    result = wf.Decoder(graph, transducer=model, greedy=True).decode(frames)[0]
    return [names.index(word.text) for word in result.words], result.cost


def icefall_state(rng, context, groups, tokens=5, size=8):
    state = {"encoder.something": np.zeros(3, np.float32), "decoder.embedding.weight": rng.normal(size=(tokens, size)).astype(np.float32)}
    if context > 1:
        state["decoder.conv.weight"] = rng.normal(size=(size, size // groups, context)).astype(np.float32)
    random_linear(rng, state, "joiner.encoder_proj", JOINER, ENCODER)
    random_linear(rng, state, "joiner.decoder_proj", JOINER, size)
    random_linear(rng, state, "joiner.output_linear", tokens, JOINER)
    return state


def icefall_score(state, frames, context, groups, padded):
    def score(t, tokens):
        last = [*([-1] * (context - 1) if padded else [0] * (context - 1)), 0, *tokens][-context:]
        x = np.stack([state["decoder.embedding.weight"][y] * (y >= 0) for y in last])  # [context, size]
        if context > 1:
            kernel = state["decoder.conv.weight"]
            width = kernel.shape[1]
            x = np.array([(kernel[c] * x[:, c // width * width : c // width * width + width].T).sum() for c in range(len(kernel))])
        else:
            x = x[0]
        hidden = np.tanh(linear(state, "joiner.encoder_proj", frames[t]) + linear(state, "joiner.decoder_proj", np.maximum(x, 0)))
        return log_softmax(linear(state, "joiner.output_linear", hidden)), None

    return score


@pytest.mark.parametrize("context, groups, padded", [(2, 2, True), (2, 8, True), (3, 1, False), (1, 1, True)])
def test_icefall(context, groups, padded, rng, tmp_path):
    names = ["<blk>", "a", "b", "c", "d"]
    for _ in range(5):
        state, frames = icefall_state(rng, context, groups), rng.normal(size=(FRAMES, ENCODER)).astype(np.float32) * 2
        integrations.export_icefall_transducer({"model": state}, tmp_path / "m.safetensors", padded=padded)
        tokens, cost = greedy(icefall_score(state, frames, context, groups, padded), FRAMES, 0)
        found = decode(tmp_path / "m.safetensors", names, 0, frames)
        assert found[0] == tokens and found[1] == pytest.approx(cost, abs=1e-3)


def test_icefall_scaled(rng, tmp_path):
    """Models before 2023 have the logarithms of factors beside their weights."""
    state = icefall_state(rng, 2, 1)
    scaled = {**state, "joiner.output_linear.weight_scale": np.float32(0.5), "joiner.encoder_proj.bias_scale": np.float32(-1), "decoder.embedding.scale": np.float32(0.25)}
    plain = {**state, "joiner.output_linear.weight": state["joiner.output_linear.weight"] * np.exp(0.5)}
    plain["joiner.encoder_proj.bias"] = state["joiner.encoder_proj.bias"] * np.exp(-1)
    plain["decoder.embedding.weight"] = state["decoder.embedding.weight"] * np.exp(0.25)
    frames = rng.normal(size=(FRAMES, ENCODER)).astype(np.float32)
    costs = []
    for one in (scaled, plain):
        integrations.export_icefall_transducer(one, tmp_path / "m.safetensors")
        costs.append(decode(tmp_path / "m.safetensors", ["<blk>", "a", "b", "c", "d"], 0, frames))
    assert costs[0][0] == costs[1][0] and costs[0][1] == pytest.approx(costs[1][1], abs=1e-4)


def nemo_state(rng, durations, layers, tokens=5, size=7):
    state = {"decoder.prediction.embed.weight": rng.normal(size=(tokens, size)).astype(np.float32), "preprocessor.window": np.zeros(3, np.float32)}
    state["decoder.prediction.embed.weight"][-1] = 0  # padding_idx
    for layer in range(layers):
        for part, shape in (("weight_ih", (4 * size, size)), ("weight_hh", (4 * size, size)), ("bias_ih", (4 * size,)), ("bias_hh", (4 * size,))):
            state[f"decoder.prediction.dec_rnn.lstm.{part}_l{layer}"] = rng.normal(size=shape).astype(np.float32)
    random_linear(rng, state, "joint.enc", JOINER, ENCODER)
    random_linear(rng, state, "joint.pred", JOINER, size)
    random_linear(rng, state, "joint.joint_net.2", tokens + durations, JOINER)
    return state


def nemo_score(state, frames, durations, layers):
    embedding = state["decoder.prediction.embed.weight"].astype(np.float64)

    def predict(tokens):
        states = [(np.zeros(7), np.zeros(7))] * layers
        for x in [np.zeros(7), *(embedding[token] for token in tokens)]:  # the start is a zero vector
            for layer, (h, c) in enumerate(states):
                lstm = {part: state[f"decoder.prediction.dec_rnn.lstm.{part}_l{layer}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
                i, f, g, o = np.split(lstm["weight_ih"] @ x + lstm["bias_ih"] + lstm["weight_hh"] @ h + lstm["bias_hh"], 4)
                c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
                x = np.tanh(c) / (1 + np.exp(-o))
                states = [*states[:layer], (x, c), *states[layer + 1 :]]
        return x

    def score(t, tokens):
        hidden = np.maximum(linear(state, "joint.enc", frames[t]) + linear(state, "joint.pred", predict(tokens)), 0)
        z = linear(state, "joint.joint_net.2", hidden)
        return log_softmax(z[: len(embedding)]), log_softmax(z[len(embedding) :]) if durations else None

    return score


@pytest.mark.parametrize("durations, layers", [(0, 1), (0, 2), (3, 2)])
def test_nemo(durations, layers, rng, tmp_path):
    names = ["a", "b", "c", "d", "<blank>"]
    for _ in range(5):
        state, frames = nemo_state(rng, durations, layers), rng.normal(size=(FRAMES, ENCODER)).astype(np.float32) * 2
        integrations.export_nemo_transducer(state, tmp_path / "m.safetensors", durations=list(range(durations)))
        tokens, cost = greedy(nemo_score(state, frames, durations, layers), FRAMES, 4)
        found = decode(tmp_path / "m.safetensors", names, 4, frames)
        assert found[0] == tokens and found[1] == pytest.approx(cost, abs=1e-3)


def test_nemo_archive_and_model(rng, tmp_path, monkeypatch):
    """Durations and activation come from the configuration. torch reads the weights; here it is a stand-in, which checks that it is asked to be safe."""
    state = nemo_state(rng, 3, 1)

    def load(path, map_location, weights_only):
        assert weights_only and open(path, "rb").read() == b"weights"
        return state

    config = "model_defaults:\n  tdt_durations: [0, 1, 2]\njoint:\n  jointnet:\n    activation: tanh\n"
    with tarfile.open(tmp_path / "model.nemo", "w") as archive:
        for name, content in (("./model_config.yaml", config.encode()), ("./model_weights.ckpt", b"weights")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))
    integrations.export_nemo_transducer(tmp_path / "model.nemo", tmp_path / "a.safetensors")
    model = types.SimpleNamespace(state_dict=lambda: state, cfg={"model_defaults": {"tdt_durations": [0, 1, 2]}, "joint": {"jointnet": {"activation": "tanh"}}})
    integrations.export_nemo_transducer(model, tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    info = wf.Transducer.open(tmp_path / "a.safetensors").info()
    assert info["num_durations"] == 3 and info["num_tokens"] == 5


@pytest.mark.parametrize("durations", [0, 3])
def test_parakeet_of_transformers(durations, rng, tmp_path):
    """Names and configuration of ParakeetForRNNT and ParakeetForTDT; the same file as of NeMo's names."""
    state = nemo_state(rng, durations, 2)
    integrations.export_nemo_transducer(state, tmp_path / "nemo.safetensors", durations=list(range(durations)), activation="tanh")
    names = {"joint.enc": "encoder_projector", "joint.pred": "decoder.decoder_projector", "decoder.prediction.embed": "decoder.embedding", "decoder.prediction.dec_rnn.lstm": "decoder.lstm", "joint.joint_net.2": "joint.head"}
    renamed = {name.replace(theirs, ours): value for name, value in state.items() for theirs, ours in names.items() if name.startswith(theirs)}
    config = types.SimpleNamespace(hidden_act="tanh", **({"durations": tuple(range(durations))} if durations else {}))
    model = types.SimpleNamespace(state_dict=lambda: {**renamed, "encoder.layers.0.bias": np.zeros(3, np.float32)}, config=config)
    integrations.export_nemo_transducer(model, tmp_path / "transformers.safetensors")
    assert (tmp_path / "transformers.safetensors").read_bytes() == (tmp_path / "nemo.safetensors").read_bytes()


def test_models_that_do_not_fit(rng, tmp_path):
    path = tmp_path / "m.safetensors"
    state = icefall_state(rng, 2, 1)
    with pytest.raises(wf.FormatError, match=r"no joiner.encoder_proj.weight in the model"):
        integrations.export_icefall_transducer({name: value for name, value in state.items() if "encoder_proj" not in name}, path)
    with pytest.raises(wf.FormatError, match="decoder.conv.weight of shape"):
        integrations.export_icefall_transducer({**state, "decoder.conv.weight": np.zeros((8, 3, 2), np.float32)}, path)
    state = nemo_state(rng, 3, 1)
    with pytest.raises(wf.FormatError, match="an embedding of 5 tokens, and a joint network of 8 tokens and 0 durations"):
        integrations.export_nemo_transducer(state, path)
    with pytest.raises(wf.UnsupportedError, match=r"durations \[0, 1, 4\]"):
        integrations.export_nemo_transducer(state, path, durations=[0, 1, 4])
    with pytest.raises(wf.UnsupportedError, match="activation 'sigmoid'"):
        integrations.export_nemo_transducer(state, path, durations=[0, 1, 2], activation="sigmoid")
    with pytest.raises(wf.UnsupportedError, match="only LSTM predictors"):
        integrations.export_nemo_transducer({name: value for name, value in state.items() if "lstm" not in name}, path, durations=[0, 1, 2])
    with pytest.raises(TypeError, match="expected a path, a state dict"):
        integrations.export_nemo_transducer(5, path)
    assert not path.exists()
