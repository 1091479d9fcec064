"""Decoding with transducers: built-in models and functions against numpy; on request real models."""

import os
import pathlib

import numpy as np
import pytest
from transducer_model import KINDS, Reference, from_functions, functions_of, names_of, token_ids, tokens_graph

import warpfst as wf

DATA = os.environ.get("WARPFST_TRANSDUCER_DATA")  # a folder as docs/how-to/transducers.md describes, for the test with real models


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


@pytest.mark.parametrize("layers", [0, 1])
def test_weights_of_16_bits(layers, rng, tmp_path):
    """Weights of float16 and bfloat16 are what they are as float32."""
    model = Reference(rng, layers=layers)
    graph, frames = tokens_graph(model), (rng.normal(size=(20, 5)) * 2).astype(np.float32)
    halves = {name: value.astype(np.float16) for name, value in model.tensors.items()}
    bits = {name: (value.view(np.uint32) >> 16).astype(np.uint16) for name, value in model.tensors.items()}
    wide = {name: (value.astype(np.uint32) << 16).view(np.float32) for name, value in bits.items()}
    for short, long in ((halves, {name: value.astype(np.float32) for name, value in halves.items()}), (bits, wide)):
        costs = []
        for tensors in (short, long):
            model.tensors = tensors
            costs.append(wf.Decoder(graph, transducer=model.save(tmp_path / "m.safetensors")).decode(frames)[0].cost)
        assert costs[0] == costs[1]


def test_streams(rng, tmp_path):
    """Chunks give what the whole utterance gives, also through functions, and partial results on the way."""
    model = Reference(rng, layers=1)
    graph = tokens_graph(model)
    frames = (rng.normal(size=(40, 5)) * 2).astype(np.float32)
    for loaded in (wf.Transducer.open(model.save(tmp_path / "m.safetensors")), from_functions(model)):
        decoder = wf.Decoder(graph, transducer=loaded)
        whole = decoder.decode(frames)[0]
        streams = [decoder.stream(frame_shift=0.04) for _ in range(3)]
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
    for _ in range(4):
        model, most, since = Reference(rng, **KINDS[kind]), 2, 2
        frames = (rng.normal(size=(4, 5)) * 2).astype(np.float32)
        decoder = wf.Decoder(tokens_graph(model), transducer=model.save(tmp_path / "m.safetensors"), beam=1e30, max_hypotheses=100000, max_symbols=most)

        def boost_of(t, token, since=since, model=model):
            return boosts.get(names_of(model)[token], 0.0) if t >= since else 0.0

        _, history = model.best(frames, most, boost_of)
        stream = decoder.stream()
        stream.advance(frames[:since])
        stream.set_boost(boosts)
        for row in frames[since:]:
            stream.advance(row[None])
        result = stream.finish()
        assert token_ids(model, result) == history
        changed += history != model.best(frames, most)[1]
    assert changed > 0


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
