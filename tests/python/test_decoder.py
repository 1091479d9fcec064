"""Decoding: against an exhaustive search, every form of input, bad input, threads."""

import array
import concurrent.futures
import itertools
import logging
import math
import pickle
import threading
import warnings

import numpy as np
import pytest
from conftest import CTC, WIDE, every_path, padded, random_graph, same
from fake_tensors import FakeTensor

import warpfst as wf


def test_the_result_is_the_best_of_all_paths(rng):
    found = 0
    for _ in range(150):
        arcs, finals = random_graph(rng)
        scores = -rng.integers(0, 640, (int(rng.integers(0, 5)), 4)).astype(np.float32) / 64
        everything = sorted(every_path(arcs, finals, scores))
        result = wf.Decoder(wf.Fst.from_arcs(arcs, finals), **WIDE).decode(scores)[0]
        if not everything:
            assert "not_final" in result.flags
            continue
        found += 1
        best = everything[0][0]
        assert math.isclose(result.cost, best, abs_tol=1e-4) and math.isclose(result.graph_cost + result.acoustic_cost, result.cost, abs_tol=1e-6)
        assert tuple(word.label for word in result.words) in {words for cost, words in everything if cost < best + 1e-4}
        assert len(result.alignment) == result.num_decoded == len(scores)
        assert math.isclose(-sum(scores[t][label - 1] for t, label in enumerate(result.alignment)), result.acoustic_cost, abs_tol=1e-4)
    assert found > 100


def test_a_decoder_cannot_be_used_from_its_own_callback(ctc_graph, ctc_scores):
    decoder, seen = wf.Decoder(ctc_graph, num_threads=1), []

    def again(*_):
        for use in (lambda: decoder.decode([]), decoder.close, decoder.stream, lambda: decoder.set_boost({"MARK": 1.0})):
            with pytest.raises(wf.StateError, match="callback"):
                use()
        seen.append(1)

    assert len(decoder.decode(list(ctc_scores.values()), progress=again)) == len(ctc_scores) and seen


def test_results_can_be_pickled(ctc_graph, ctc_scores):
    bad = np.full((2, 40), math.nan, np.float32)
    results = wf.Decoder(ctc_graph, lattice_beam=2).decode([next(iter(ctc_scores.values())).astype(np.float32), bad])
    good, failed = pickle.loads(pickle.dumps(results))
    assert same([good], results[:1]) and good.lattice is None and len(pickle.dumps(results)) < 5000
    with pytest.raises(wf.ArgumentError, match="NaN"):
        _ = failed.text


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_form_of_scores(ctc_graph, ctc_scores, dtype):
    matrices = [matrix.astype(dtype) for matrix in ctc_scores.values()]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    expected = decoder.decode(matrices)
    batch, lengths = padded(matrices)
    wide = np.full((*batch.shape[:2], batch.shape[2] + 5), np.nan, dtype)
    wide[..., : batch.shape[2]] = batch
    forms = {
        "padded": (batch, lengths),
        "lengths of numpy": (batch, np.array(lengths, dtype=np.int32)),
        "a view with strides": (wide[..., : batch.shape[2]], lengths),
        "time-major": (np.ascontiguousarray(batch.transpose(1, 0, 2)).transpose(1, 0, 2), lengths),
        "time-major with strides": (np.ascontiguousarray(wide.transpose(1, 0, 2)).transpose(1, 0, 2)[..., : batch.shape[2]], lengths),
        "time-major by DLPack": (FakeTensor(np.ascontiguousarray(batch.transpose(1, 0, 2)).transpose(1, 0, 2)), lengths),
        "tuple": (tuple(matrices), None),
        "longer matrices with lengths": (list(batch), lengths),
        "memoryviews": ([memoryview(matrix) for matrix in matrices], None),
        "read-only": ([np.frombuffer(matrix.tobytes(), dtype).reshape(matrix.shape) for matrix in matrices], None),
        "DLPack": (FakeTensor(batch), lengths),
        "DLPack 1.0": (FakeTensor(batch, version=(1, 1)), lengths),
        "DLPack without strides": (FakeTensor(batch, strides=None), lengths),
        "DLPack with an offset": (FakeTensor(batch, offset=64), lengths),
        "DLPack on page-locked memory": (FakeTensor(batch, device=(3, 0)), lengths),
        "list of DLPack": ([FakeTensor(matrix) for matrix in matrices], None),
    }
    for name, (scores, frames) in forms.items():
        assert same(decoder.decode(scores, frames), expected), name
    for matrix, result in zip(matrices, expected):
        assert same(decoder.decode(matrix), [result])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_one_recording_as_a_batch(ctc_graph, ctc_scores, dtype):
    """Utterances may share memory: nothing beyond it is read."""
    matrix = next(iter(ctc_scores.values())).astype(dtype)
    decoder = wf.Decoder(ctc_graph)
    expected, short = decoder.decode(matrix)[0], decoder.decode(matrix[:5])[0]
    apart = np.full((3, *matrix.shape), np.nan, dtype)
    apart[0] = matrix
    many = np.broadcast_to(apart[:1], apart.shape)
    assert same(decoder.decode(many), [expected] * 3)
    assert same(decoder.decode(FakeTensor(many) if dtype != "float64" else many, [5, len(matrix), 5]), [short, expected, short])
    assert same(decoder.decode(list(many)), [expected] * 3)
    windows = np.lib.stride_tricks.sliding_window_view(matrix, len(matrix) - 2, axis=0).transpose(0, 2, 1)  # utterances that overlap
    assert same(decoder.decode(windows), decoder.decode([window.copy() for window in windows]))
    aligned = wf.align(np.broadcast_to(matrix[None, :20], (4, 20, matrix.shape[1])), [[1]] * 4)
    assert len({(one.tokens[0].start, one.tokens[0].end) for one in aligned}) == 1


def test_objects_closed_in_a_callback():
    """What C uses is freed when the call has returned. The decoder itself refuses."""
    matrix = np.full((20, 2), -0.7, np.float32)

    def graph():
        return wf.Graph(wf.Fst.from_arcs([(0, 0, 1, 1, 0.1), (0, 0, 2, 2, 0.2)], {0: 0.0}))

    decoder = wf.Decoder(graph(), check_scores="off", num_threads=1)
    boost, calls = wf.Scorer.boost({2: 0.5}), []
    expected = decoder.decode([matrix] * 40, boost={2: 0.5})

    def close(*_):
        calls.append(1)
        decoder.graph.close()
        boost.close()
        with pytest.raises(wf.StateError, match="callback of the same decoder"):
            decoder.close()

    assert same(decoder.decode([matrix] * 40, boost=boost, progress=close), expected) and calls
    for closed in (boost, decoder.graph):
        with pytest.raises(wf.StateError, match="was closed"):
            _ = closed.address
    assert same(decoder.decode(matrix, boost={2: 0.5}), expected[:1])
    decoder.close()


def test_utterances_without_frames(ctc_graph, ctc_scores):
    decoder = wf.Decoder(ctc_graph)
    matrix = next(iter(ctc_scores.values()))
    empty = FakeTensor(matrix[:0], strides=(0, 0))  # as numpy 2 exports an empty array
    assert same(decoder.decode([matrix, empty]), decoder.decode([matrix, matrix[:0]]))


def test_bfloat16(ctc_graph, ctc_scores):
    matrices = list(ctc_scores.values())[:5]
    bits = [(matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for matrix in matrices]
    rounded = [(b.astype(np.uint32) << 16).view(np.float32) for b in bits]
    decoder = wf.Decoder(ctc_graph)
    assert same(decoder.decode([FakeTensor(b, code=4) for b in bits]), decoder.decode(rounded))


@pytest.mark.parametrize(
    ("scores", "lengths", "kind", "message"),
    [
        (np.zeros((3, 40), np.int32), None, TypeError, "float32"),
        (np.zeros((3, 40), ">f4"), None, TypeError, "float32"),
        (np.zeros((3, 40), np.complex64), None, TypeError, "float32"),
        (np.zeros(40, np.float32), None, ValueError, "expected .frames, columns"),
        (np.zeros((1, 1, 3, 40), np.float32), None, ValueError, "expected .frames, columns"),
        (np.float32(3), None, ValueError, "expected .frames, columns"),
        ([np.zeros((2, 3, 40), np.float32)], None, ValueError, "utterance 0"),
        (np.zeros((3, 80), np.float32)[:, ::2], None, ValueError, "contiguous"),
        (np.zeros((3, 40), np.float32)[:, ::-1], None, ValueError, "contiguous"),
        (np.zeros((3, 40), np.float32)[::-1], None, ValueError, "contiguous"),
        (np.zeros((40, 3), np.float32).T, None, ValueError, "contiguous"),
        (np.zeros((2, 3, 40), np.float32)[::-1], None, ValueError, "contiguous"),
        (np.broadcast_to(np.zeros((1, 40), np.float32), (3, 40)), None, ValueError, "apart"),
        (np.broadcast_to(np.zeros((2, 1, 40), np.float32), (2, 3, 40)), None, ValueError, "apart"),
        ([np.broadcast_to(np.zeros((1, 40), np.float32), (3, 40))], None, ValueError, "utterance 0.*apart"),
        (np.lib.stride_tricks.as_strided(np.zeros(200, np.float32), (2, 3, 40), (160, 80, 4)), None, ValueError, "apart"),
        (np.broadcast_to(np.zeros((1, 3, 1), np.float32), (2, 3, 40)), None, ValueError, "contiguous"),
        (np.zeros((3, 39), np.float32), None, None, "39"),
        (np.zeros((2, 3, 40), np.float32), [3], ValueError, "1 lengths for 2"),
        (np.zeros((2, 3, 40), np.float32), [3, 4], ValueError, "outside 0 to 3"),
        (np.zeros((2, 3, 40), np.float32), [3, -1], ValueError, "outside 0 to 3"),
        (np.zeros((2, 3, 40), np.float32), [3, 1.5], ValueError, "whole numbers"),
        (np.zeros((2, 3, 40), np.float32), ["a", "b"], ValueError, "invalid literal"),
        ([np.zeros((3, 40), np.float32)], [4], ValueError, "length 4 of 3"),
        ("scores.ark", None, TypeError, "neither the buffer protocol nor DLPack"),
        (b"bytes", None, TypeError, "float32"),
        (None, None, TypeError, "NoneType"),
        ([[0.5, 0.5]], None, TypeError, "list"),
        (FakeTensor(np.zeros((3, 40), np.float64)), None, TypeError, "float64"),
        (FakeTensor(np.zeros((3, 40), np.int32), code=0), None, TypeError, "int32"),
        (FakeTensor(np.zeros((3, 40), np.float32), lanes=4), None, TypeError, "float32"),
        (FakeTensor(np.zeros((3, 40), np.float32), strides=(-40, 1)), None, ValueError, "contiguous"),
        (FakeTensor(np.zeros((3, 40), np.float32), strides=(1, 3)), None, ValueError, "contiguous"),
        (FakeTensor(np.zeros((3, 40), np.float32), device=(10, 0)), None, TypeError, "type 10"),
        (FakeTensor(np.zeros((3, 40), np.float32), version=(2, 0)), None, TypeError, "version 2.0"),
        (FakeTensor(np.zeros((3, 40), np.float32), device=(2, 0)), None, ValueError, "device='cuda'"),
        ([FakeTensor(np.zeros((3, 40), np.float32), device=(2, i)) for i in range(2)], None, ValueError, "several GPUs"),
    ],
)
def test_hostile_input(ctc_graph, scores, lengths, kind, message):
    decoder = wf.Decoder(ctc_graph)
    if kind is None:  # only this utterance fails, not the batch
        with pytest.raises(wf.Error, match=message):
            _ = decoder.decode(scores, lengths)[0].text
    else:
        with pytest.raises(kind, match=message):
            decoder.decode(scores, lengths)
    assert decoder.decode(np.zeros((0, 40), np.float32))[0].num_frames == 0  # the decoder still works


def test_dlpack_must_return_a_capsule(ctc_graph):
    class Liar:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            return "no capsule"

    with pytest.raises(TypeError, match="capsule"):
        wf.Decoder(ctc_graph).decode(Liar())


def test_an_utterance_that_fails_leaves_the_others_alone(ctc_graph, ctc_scores):
    good = [matrix.astype(np.float32) for matrix in list(ctc_scores.values())[:3]]
    bad = good[1].copy()
    bad[5, 7] = math.nan
    results = wf.Decoder(ctc_graph).decode([good[0], bad, good[2]])
    assert same([results[0], results[2]], wf.Decoder(ctc_graph).decode([good[0], good[2]]))
    assert isinstance(results[1].error, wf.ArgumentError) and results[1].num_frames == len(bad) and "5" in str(results[1].error)
    for name in ("text", "words", "cost", "lattice"):
        with pytest.raises(wf.ArgumentError, match="frame 5, column 7 is NaN"):
            getattr(results[1], name)
    with pytest.raises(AttributeError):
        _ = results[0].no_such_thing
    for value in (math.inf, 1e30):
        bad[5, 7] = value
        assert wf.Decoder(ctc_graph).decode(bad)[0].error is not None


def test_empty_batches(ctc_graph):
    decoder = wf.Decoder(ctc_graph)
    assert decoder.decode([]) == [] and decoder.decode(np.zeros((0, 5, 40), np.float32)) == []
    assert [r.num_frames for r in decoder.decode(np.zeros((2, 5, 40), np.float32), [0, 5])] == [0, 5]


def test_a_gpu_producer_gets_the_right_stream():
    """The producer's __dlpack__ gets the decoder's CUDA stream (1: the legacy default stream), or None in host memory."""
    from warpfst.scores import Batch

    tensor = FakeTensor(np.zeros((3, 40), np.float32), device=(2, 1), version=(1, 0))
    batch = Batch(tensor)
    assert tensor.calls == [(1, {"max_version": (1, 1)})] and batch.device == 1 and batch.scores[0].on_device
    tensor = FakeTensor(np.zeros((3, 40), np.float32), device=(2, 0))
    Batch(tensor, None, 0x1234)
    assert [stream for stream, _ in tensor.calls] == [0x1234, 0x1234]  # DLPack 1.0 is tried first, then the older protocol
    host = FakeTensor(np.zeros((3, 40), np.float32))
    Batch(host)
    assert all(stream is None for stream, _ in host.calls)


def test_closed_decoders_and_streams(ctc_graph):
    decoder = wf.Decoder(ctc_graph)
    with pytest.raises(wf.UnsupportedError):
        decoder.set_stream(0x1234)
    decoder.close()
    for use in (lambda: decoder.decode([]), lambda: decoder.plan(), lambda: decoder.set_stream(0)):
        with pytest.raises(wf.StateError):
            use()
    with wf.Decoder(ctc_graph) as inside:
        inside.decode([])
    with pytest.raises(wf.StateError):
        inside.decode([])


def test_progress_and_cancelling(ctc_graph, ctc_scores):
    seen = []
    decoder = wf.Decoder(ctc_graph, num_threads=1)
    decoder.decode(list(ctc_scores.values()), progress=lambda stage, fraction: seen.append(fraction))
    assert seen and all(0 <= fraction <= 1 for fraction in seen)
    with pytest.raises(wf.CancelledError):
        decoder.decode(list(ctc_scores.values()), progress=lambda *_: False)
    with pytest.raises(ZeroDivisionError):
        decoder.decode(list(ctc_scores.values()), progress=lambda *_: 1 / 0)
    assert decoder.decode(next(iter(ctc_scores.values())))[0].error is None


def test_threads_share_a_graph_and_even_a_decoder(ctc_graph, ctc_scores):
    matrices = list(ctc_scores.values())[:10]
    shared = wf.Decoder(ctc_graph, num_threads=1)
    expected = shared.decode(matrices)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(decoder.decode, matrices) for decoder in [shared] * 4 + [wf.Decoder(ctc_graph, num_threads=1) for _ in range(4)]]
        assert all(same(job.result(), expected) for job in jobs)


def test_the_gil_is_free_while_decoding(ctc_graph, ctc_scores):
    """The main thread counts to more than 20 while another thread decodes one utterance.

    The utterance is doubled in length until it takes long enough to decode. If decoding held the GIL, no length would be enough: the main thread
    could count only during the Python code around the call, and that takes the same time at any length."""
    decoder = wf.Decoder(ctc_graph, num_threads=1)
    utterance = np.tile(next(iter(ctc_scores.values())), (16, 1))
    for _ in range(10):
        done = threading.Event()
        worker = threading.Thread(target=lambda scores=utterance, done=done: (decoder.decode(scores), done.set()))
        worker.start()
        ticks = 0
        while not done.wait(0.001):
            ticks += 1
        worker.join()
        if ticks > 20:
            break
        utterance = np.tile(utterance, (2, 1))
    assert ticks > 20


def test_two_calls_run_at_the_same_time(ctc_graph, ctc_scores):
    """Each call waits in its progress callback until the other call has arrived. If calls ran one after the other, the barrier would time out."""
    barrier = threading.Barrier(2, timeout=30)

    def decode_and_meet(_):
        met = []
        results = wf.Decoder(ctc_graph, num_threads=1).decode(list(ctc_scores.values()), progress=lambda *_: None if met else met.append(barrier.wait()))
        return met[0], results

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        (first, left), (second, right) = pool.map(decode_and_meet, range(2))
    assert {first, second} == {0, 1} and same(left, right)


def test_decoders_can_be_pickled(ctc_graph, ctc_scores, tmp_path):
    matrices = list(ctc_scores.values())[:5]
    decoder = wf.Decoder(ctc_graph, beam=9)
    again = pickle.loads(pickle.dumps(decoder))
    assert again.config == decoder.config and same(again.decode(matrices), decoder.decode(matrices))
    ctc_graph.save(tmp_path / "graph.wfst")
    assert same(wf.Decoder(tmp_path / "graph.wfst", beam=9).decode(matrices), decoder.decode(matrices))


def blank_loops(names, blank=1):
    """A graph without a word aligner for the word A, spelled a: blanks before and after it."""
    a = names.index("a") + 1
    arcs = [(0, 0, blank, 0, 0.0), (0, 1, a, 1, 0.0), (1, 1, a, 0, 0.0), (1, 2, blank, 0, 0.0), (2, 2, blank, 0, 0.0)]
    graph = wf.Fst.from_arcs(arcs, {1: 0.0, 2: 0.0})
    table = wf.Symbols({"<eps>": 0, **{name: i + 1 for i, name in enumerate(names)}}) if names[0] != "-" else None
    return graph.with_symbols(isymbols=table, osymbols=wf.Symbols({"<eps>": 0, "A": 1}))


def blank_scores(blank, token, num_columns):
    """b b a a b b b b."""
    rows = np.full((8, num_columns), -9.0, np.float32)
    rows[:, blank] = -0.01
    rows[2:4, blank], rows[2:4, token] = -9.0, -0.01
    return rows


@pytest.mark.parametrize(
    ("names", "blank", "known"),
    [
        (["<blk>", "a"], 0, True),
        (["a", "<ctc>"], 1, True),
        (["<pad>", "a", "BLANK"], 2, True),  # the loop, not the padding that nothing uses
        (["-", "a"], 0, False),  # no table: nothing is known
    ],
)
def test_the_blank_of_the_graph(names, blank, known):
    token = names.index("a")
    graph, scores = blank_loops(names, blank + 1), blank_scores(blank, token, len(names))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = wf.Decoder(graph, blank=blank).decode(scores)[0]
        default = wf.Decoder(graph).decode(scores)[0]
    assert [(w.start, w.end) for w in given.words] == [(2, 4)]
    assert [(w.start, w.end) for w in default.words] == [(2, 4 if known else 8)]
    assert given.cost == default.cost and given.text == default.text
    if known:
        stream = wf.Decoder(graph).stream()
        stream.advance(scores)
        assert [(w.start, w.end) for w in stream.finish().words] == [(2, 4)]
        assert wf.Decoder(graph, blank_penalty=1.0).decode(scores)[0].cost == wf.Decoder(graph, blank=blank, blank_penalty=1.0).decode(scores)[0].cost
        with pytest.warns(wf.InputWarning, match=f"blank is column {token}, but the blank of the graph is column {blank}") as seen:
            wf.Decoder(graph, blank=token)
        assert seen[0].filename == __file__
    else:
        with pytest.raises(wf.ArgumentError, match="need a blank"):
            wf.Decoder(graph, blank_penalty=1.0)


@pytest.mark.parametrize("topology", ["correct", "compact", "minimal", "eesen"])
@pytest.mark.parametrize("lexicon", [None, {"A": "a", "B": "b"}])
@pytest.mark.parametrize("names", [["<blk>", "a", "b"], ["a", "b", "X"]])
def test_a_wrong_blank_is_an_error(topology, lexicon, names):
    blank = 0 if "<blk>" in names else 2
    graph = wf.build_ctc_graph(names, lexicon, topology=topology, blank=names[blank])
    wf.Decoder(graph, blank=blank)
    for wrong in {0, 1, 2} - {blank}:
        with pytest.raises(ValueError, match=f"blank is column {wrong}, but the blank of the graph is column {blank}; leave the option out"):
            wf.Decoder(graph, blank=wrong)
    for wrong, options in itertools.product((3, 99, 2**31 - 1), ({}, {"blank_penalty": 1.0}, {"blank_skip_threshold": 0.9}, {"lattice_beam": 8})):
        with pytest.raises(ValueError, match=f"blank is column {wrong}, but the graph reads columns 0 to 2"):
            wf.Decoder(graph, blank=wrong, **options)


def test_a_blank_that_no_column_has():
    """In a graph of which nothing is known."""
    graph = wf.Graph(wf.Fst.from_arcs([(0, 0, 1, 0, 0.0), (0, 0, 2, 1, 0.0)], {0: 0.0}))
    wf.Decoder(graph, blank=1)
    with pytest.raises(ValueError, match="blank is column 2, but the graph reads columns 0 to 1"):
        wf.Decoder(graph, blank=2)


def test_the_blank_of_the_lexicon():
    """A graph that was made with the blank X, though its table has a <pad>, too."""
    tokens = wf.Symbols(["<pad>", "a", "X"])
    graph = wf.build_ctc_graph(tokens, lexicon=wf.Lexicon.from_dict({"A": ["a"]}, tokens, blank="X"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = wf.Decoder(graph, blank_penalty=0.5).decode(blank_scores(2, 1, 3))[0]
    assert result.text == "A" and result.cost == wf.Decoder(graph, blank=2, blank_penalty=0.5).decode(blank_scores(2, 1, 3))[0].cost


def test_columns_of_labels(tmp_path):
    fst = wf.Fst.from_arcs([(0, 1, 5, 1, 0.0), (0, 1, 2, 2, 0.0)], {1: 0.0})
    columns = [-1, 1, 0, 1, 1, 1]
    graph = wf.Graph(fst, columns)
    graph.save(tmp_path / "g.wfst")
    for one in (graph, wf.Graph.load(tmp_path / "g.wfst"), pickle.loads(pickle.dumps(graph))):
        assert wf.Decoder(one).decode(np.array([[-1, -9]], np.float32))[0].words[0].label == 2
        assert wf.Decoder(one).decode(np.array([[-9, -1]], np.float32))[0].words[0].label == 1
        assert one.min_columns == 2
    with pytest.raises(wf.ArgumentError):
        wf.Graph(fst, [-1, 0])
    (tmp_path / "g.wfst.columns").write_text("2 0\nx 1\n")
    with pytest.raises(ValueError, match="columns:2"):
        wf.Graph.load(tmp_path / "g.wfst")


def test_graphs_that_cannot_be_decoded():
    with pytest.raises(wf.NegativeCycleError):
        wf.Graph(wf.Fst.from_arcs([(0, 0, 0, 0, -1.0)], {0: 0.0}))
    with pytest.raises(wf.ArgumentError):
        wf.Graph(wf.Fst.from_text("", arc_type="standard"))


def test_errors_without_cuda(ctc_graph):
    reason = wf.cuda_reason()
    assert wf.cuda_available() is (reason is None)
    if reason is not None:
        assert "GPU" in reason or "without CUDA" in reason
        with pytest.raises(wf.DeviceError, match="cuda"):
            wf.Decoder(ctc_graph, device="cuda")
    with pytest.raises(wf.Error, match="tpu"):
        wf.Decoder(ctc_graph, device="tpu")


def test_plans_without_a_gpu(ctc_graph):
    try:
        plan = ctc_graph.plan(64, 500, device="cuda", num_processors=132, gpu_memory=2**34)
    except wf.DeviceError:  # built without CUDA
        assert not wf.cuda_available()
    else:
        assert plan["num_lanes"] > 0 and plan["total_bytes"] <= 2**34
    assert ctc_graph.plan(64, 500)["num_gpus"] == 0


def test_float64(ctc_graph, ctc_scores):
    """float64 scores from numpy, from array.array, and from a DLPack producer with a float() method."""
    matrices = list(ctc_scores.values())[:3]
    decoder = wf.Decoder(ctc_graph)
    expected = decoder.decode([matrix.astype(np.float32) for matrix in matrices])
    assert same(decoder.decode([matrix.astype(np.float64) for matrix in matrices]), expected)
    plain = [memoryview(array.array("d", matrix.astype(float).ravel())).cast("B").cast("d", matrix.shape) for matrix in matrices]
    assert same(decoder.decode(plain), expected)

    class Tensor(FakeTensor):
        def float(self):
            return FakeTensor(self.array.astype(np.float32))

    assert same(decoder.decode([Tensor(matrix.astype(np.float64)) for matrix in matrices]), expected)
    padded = np.zeros((2, 90, 40))
    padded[:, :20] = matrices[0][:20]
    assert same(decoder.decode(padded, [20, 20]), decoder.decode([matrices[0][:20]] * 2))
    assert decoder.decode([memoryview(array.array("d"))])[0].num_frames == 0


def test_suspicious_scores_give_a_warning(ctc_graph, ctc_scores):
    """There is one warning for each cause and decoder, at the caller's line. `check_scores` and Python's warning filters can make it an error or disable it."""
    base_10 = [matrix.astype(np.float32) / np.float32(np.log(10)) for matrix in list(ctc_scores.values())[:2]]
    decoder = wf.Decoder(ctc_graph, beam=3, max_active=50)
    with pytest.warns(wf.InputWarning, match="look like logarithms to base 10") as said:
        decoder.decode(base_10)
    assert [warning.filename for warning in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder.decode(base_10)
        with pytest.raises(wf.InputWarning, match="look like logarithms to base 10"):
            wf.Decoder(ctc_graph, beam=3, max_active=50).decode(base_10)
        wf.Decoder(ctc_graph, beam=3, max_active=50, check_scores="off").decode(base_10)
        wf.Decoder(ctc_graph).decode(list(ctc_scores.values()))
        failed = wf.Decoder(ctc_graph, check_scores="error").decode(base_10)[0]
    assert isinstance(failed.error, wf.ArgumentError) and "look like logarithms to base 10" in str(failed.error)
    with pytest.warns(wf.InputWarning, match="look like logarithms to base 10"), wf.Decoder(ctc_graph, beam=3, max_active=50).stream() as stream:
        stream.advance(base_10[0])
    with pytest.warns(wf.InputWarning, match="max_active=5 tokens were reached"):
        wf.Decoder(ctc_graph, max_active=5).decode(list(ctc_scores.values()))


def test_probabilities_are_an_error(ctc_graph, ctc_scores):
    """So are costs: a result raises at its first use, and so does that of a stream."""
    scores = next(iter(ctc_scores.values())).astype(np.float32)
    for wrong, said in ((np.exp(scores), "look like probabilities.*take the natural logarithm"), (-scores, "look like costs.*negate the scores")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bad, good = wf.Decoder(ctc_graph).decode([wrong, scores])
            with pytest.raises(wf.ArgumentError, match=said):
                print(bad.text)
            assert good.text == wf.Decoder(ctc_graph).decode([scores])[0].text
            with wf.Decoder(ctc_graph).stream() as stream:
                with pytest.warns(wf.InputWarning, match=said):
                    stream.advance(wrong[:20])
                with pytest.raises(wf.ArgumentError, match=f"from frame 0: the scores {said}"):
                    print(stream.finish().text)
            assert wf.Decoder(ctc_graph, beam=3, max_active=50, check_scores="off").decode([wrong])[0].error is None


def test_words_in_another_case_give_a_warning(tmp_path):
    """Building a graph warns of words that the LM has only in another case; `check_words` can make it an error."""
    lines = (CTC / "lexicon_phone.txt").read_text(encoding="utf-8").splitlines()
    half = [line.lower() if i % 2 else line for i, line in enumerate(lines)]
    (tmp_path / "half.txt").write_text("".join(f"{line.split()[0]} {' '.join(full.split()[1:])}\n" for line, full in zip(half, lines)), encoding="utf-8")
    build = {"tokens": CTC / "tokens_phone.txt", "lexicon": tmp_path / "half.txt", "lm": CTC / "lm3.arpa.gz"}
    with pytest.warns(wf.InputWarning, match="only in another case"):
        wf.build_ctc_graph(**build)
    with pytest.warns(wf.InputWarning, match="not in the word table"), pytest.raises(wf.ArgumentError, match="only in another case"):
        wf.build_ctc_graph(**build, check_words="error")


def test_warnings_of_the_library_go_to_the_callback(tmp_path):
    """Warnings go to the callback of set_log if there is one, else to Python's warnings. A positive log-probability in an ARPA file gives a warning."""
    (tmp_path / "odd.arpa").write_text("\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>\n0.0001 a\n-1 </s>\n\n\\end\\\n")
    said = []
    wf.set_log(lambda level, message: said.append((level, message)))
    try:
        wf.LM.read(tmp_path / "odd.arpa")
    finally:
        wf.set_log(None)
    assert any(level == "warning" and "odd.arpa" in message for level, message in said), said
    before = len(said)
    with pytest.warns(wf.InputWarning, match="odd.arpa"):
        wf.LM.read(tmp_path / "odd.arpa")
    assert len(said) == before


def test_messages_of_the_library_go_to_a_logger(tmp_path, caplog):
    (tmp_path / "odd%s.arpa").write_text("\\data\\\nngram 1=3\n\n\\1-grams:\n-99 <s>\n0.0001 a\n-1 </s>\n\n\\end\\\n")
    logger = logging.getLogger("warpfst.test")
    for given in (logger, logging.LoggerAdapter(logger, {})):
        caplog.clear()
        wf.set_log(given)
        try:
            with caplog.at_level("INFO", "warpfst.test"):
                wf.LM.read(tmp_path / "odd%s.arpa")
        finally:
            wf.set_log(None)
        assert [(one.levelname, "odd%s.arpa" in one.getMessage()) for one in caplog.records if one.name == "warpfst.test"] == [("WARNING", True)]
    with pytest.raises(TypeError, match="expected a function, a logger or None, found str"):
        wf.set_log("warpfst")


def test_scores_are_written_and_read(ctc_scores, tmp_path):
    matrices = {key: matrix.astype(np.float32) for key, matrix in ctc_scores.items()}
    with wf.ScoreWriter(tmp_path / "scores.ark", scp=tmp_path / "scores.scp") as out:
        for key, matrix in matrices.items():
            out.put(key, matrix)
    for source in ("scores.ark", "scores.scp"):
        assert all(np.array_equal(np.asarray(data), matrices[key]) for key, data in wf.ScoreReader(tmp_path / source))
    assert len(list(wf.ScoreReader(tmp_path / "scores.ark"))) == len(matrices)
    with pytest.raises(ZeroDivisionError), wf.ScoreWriter(tmp_path / "dropped.ark") as out:
        out.put("u", matrix)
        _ = 1 / 0
    assert not (tmp_path / "dropped.ark").exists()
    with wf.ScoreWriter(tmp_path / "no.ark") as out:
        for bad in (matrix[:, ::2], matrix.astype(np.float16), matrix[0]):
            with pytest.raises(ValueError):
                out.put("u", bad)
