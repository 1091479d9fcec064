"""Transducers: bad models, options, utterances and functions."""

import numpy as np
import pytest
from conftest import write_safetensors
from transducer_model import LEXICON, NAMES, Reference, from_functions, functions_of, tokens_graph

import warpfst as wf


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
    stream.advance(np.zeros((2, 5), np.float32))
    stream.set_boost({"ab": 1.0})
    stream = wf.Decoder(words, transducer=loaded, lattice_beam=2).stream()
    stream.advance(np.zeros((2, 5), np.float32))
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
        streams = [wf.Decoder(graph, transducer=from_functions(model, **functions)).stream() for _ in range(2)]
        for stream in streams:
            with pytest.raises(error, match=message):
                stream.advance(frames)
            assert stream.advance(frames).num_frames == 6  # the exception was raised once; the utterance has failed
            assert stream.finish().error is not None
            stream.reset()
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


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("where", ["predictor", "joiner"])
def test_calls_from_within_a_function(small, rng, num_threads, where):
    """The functions may not use the decoder that calls them, in whatever thread they run. What else they close is freed when C no longer uses it."""
    model, _ = small
    graph, frames, caught = tokens_graph(model), rng.normal(size=(3, 5)).astype(np.float32), []
    functions = dict(zip(("predictor", "joiner"), functions_of(model)))
    inner = functions[where]

    def use(*arguments):
        calls = (decoder.close, decoder.stream, lambda: decoder.decode(frames), streams[0].close, streams[-1].finish, lambda: streams[0].advance(frames))
        for call in calls:
            with pytest.raises(wf.StateError, match="of the same decoder"):
                call()
            caught.append(call)
        transducer.close()
        extra.close()
        return inner(*arguments)

    transducer = from_functions(model, **{**functions, where: use})
    plain = wf.Decoder(graph, transducer=from_functions(model))
    decoder = wf.Decoder(graph, transducer=transducer, num_threads=num_threads)
    extra, streams = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5)], {1: 0.0}), [decoder.stream() for _ in range(8)]
    expected = plain.decode(frames)[0]
    decoder.advance(streams, [frames] * 8)
    assert [stream.finish().cost for stream in streams] == [expected.cost] * 8 and len(caught) >= 6
    assert decoder.decode([frames] * 3)[2].cost == expected.cost
    decoder.close()
    with pytest.raises(wf.StateError):
        streams[0].reset()
