"""Batches: results against those of plain C calls, arrays of the whole batch, how long memory lives, lists of tensors, what is made of lattices while decoding."""

import asyncio
import concurrent.futures
import copy
import ctypes
import gc
import math
import pickle
import sys
import threading
import types

import numpy as np
import pytest
from conftest import CTC, same
from fake_tensors import FakeTensor

import warpfst as wf
import warpfst.decoder
import warpfst.results
from warpfst import _abi
from warpfst._library import lib

COSTS = ("cost", "graph_cost", "acoustic_cost", "scorer_cost")
NUMBERS = ("num_frames", "num_decoded", "num_tokens", "num_expanded", "num_arcs", "num_narrowed")


@pytest.fixture(scope="module")
def matrices():
    """All public utterances, as float32."""
    return [np.load(path).astype(np.float32) for path in sorted((CTC / "logp_phone").glob("*.npy"))]


def decoded_by_c(decoder, matrices):
    """The fields of each wf_result, from wf_decode called with plain structures. No code of the package but the declarations."""
    utterances, results, error = (_abi.wf_utterance * len(matrices))(), (ctypes.POINTER(_abi.wf_result) * len(matrices))(), _abi.wf_error()
    for utterance, matrix in zip(utterances, matrices):
        utterance.scores = _abi.wf_scores(matrix.ctypes.data, *matrix.shape, matrix.shape[1], _abi.WF_FLOAT32, False)
    assert lib.wf_decode(decoder.address, utterances, len(matrices), None, results, ctypes.byref(error)) == 0, error.message
    rows = []
    for result in results:
        raw = result.contents
        fields = {name: getattr(raw, name) for name in (*COSTS, *NUMBERS, "status", "flags", "num_estimated")}
        fields["message"] = raw.message.decode()
        fields["words"] = [(word.label, word.start_frame, word.end_frame) for word in raw.words[: raw.num_words]]
        fields["alignment"] = list(raw.alignment[: raw.num_decoded]) if raw.alignment else []
        fields["lattice_arcs"] = wf.Lattice(lib.wf_lattice_ref(raw.lattice)).num_arcs if raw.lattice else None
        rows.append(fields)
        lib.wf_result_free(result)
    return rows


@pytest.mark.parametrize("options", [{}, {"lattice_beam": 4, "blank": 0}, {"max_active": 5, "min_active": 0, "beam": 4, "check_scores": "off"}], ids=str)
def test_every_field_is_that_of_c(ctc_graph, matrices, options):
    assert len(matrices) >= 60
    bad, silent = matrices[1].copy(), np.full((4, 40), -math.inf, np.float32)
    bad[5, 7] = math.nan
    batch = [*matrices[:30], bad, silent, matrices[0][:0], *matrices[30:]]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, **options)
    wanted, results = decoded_by_c(decoder, batch), decoder.decode(batch)
    text_of = decoder.words.text
    flags = {"not_final": 1, "narrowed": 2, "died": 4, "overflow": 8}
    seen = set()
    for row, result in zip(wanted, results):
        assert result.num_frames == row["num_frames"]
        if row["status"] != 0:
            assert isinstance(result.error, wf.ArgumentError) and str(result.error) == row["message"] and result.error is result.error
            continue
        assert result.error is None
        assert {name: getattr(result, name) for name in (*COSTS, *NUMBERS)} == {name: row[name] for name in (*COSTS, *NUMBERS)}
        assert [(word.label, word.start, word.end) for word in result.words] == row["words"]
        assert [word.text for word in result.words] == [text_of(label) for label, *_ in row["words"]]
        assert result.text == " ".join(text_of(label) for label, *_ in row["words"])
        assert result.alignment.tolist() == row["alignment"] and result.alignment.typecode == "i"
        assert result.flags == {name for name, bit in flags.items() if row["flags"] & bit} | ({"times_estimated"} if row["num_estimated"] else set())
        assert (None if result.lattice is None else result.lattice.num_arcs) == row["lattice_arcs"]
        seen |= result.flags
    assert {"died"} < seen if "max_active" in options else {"died"} <= seen

    # The arrays of the whole batch.
    good = [row if row["status"] == 0 else {**dict.fromkeys(COSTS, math.nan), **row, "words": []} for row in wanted]
    for name in COSTS:
        np.testing.assert_array_equal(np.asarray(getattr(results, f"{name}s")), [row[name] if row["status"] == 0 else math.nan for row in wanted])
    for name in NUMBERS:
        assert getattr(results, name).tolist() == [row[name] for row in wanted]
    assert np.diff(results.offsets).tolist() == [len(row["words"]) for row in good] and results.offsets[0] == 0
    flat = [word for row in good for word in row["words"]]
    assert list(zip(results.words, results.starts, results.ends)) == flat and len(flat) > 300
    assert results.texts == [None if row["status"] else " ".join(text_of(label) for label, *_ in row["words"]) for row in wanted]
    if "lattice_beam" not in options:
        assert results.confidences is None
    else:
        confidences = [word.confidence for row, result in zip(wanted, results) if row["status"] == 0 for word in result.words]
        assert results.confidences.tolist() == confidences and all(0 <= confidence <= 1 for confidence in confidences)


def test_results_are_used_like_a_list(ctc_graph, matrices):
    results = wf.Decoder(ctc_graph).decode(matrices[:5])
    texts = [result.text for result in results]
    assert isinstance(results, wf.Results) and len(results) == 5 and bool(results) and not wf.Decoder(ctc_graph).decode([])
    assert [results[i].text for i in range(-5, 5)] == texts * 2 and results[np.int64(2)].text == texts[2]
    assert [one.text for one in results[1:4]] == texts[1:4] and [one.text for one in results[::-2]] == texts[::-2] and isinstance(results[1:4], list)
    assert [one.text for one in reversed(results)] == texts[::-1]
    assert results[2] in results and results.index(results[3]) == 3 and results.count(results[0]) == 1 and len({*results, *results}) == 5
    assert results == list(results) and list(results) == results and results != [] and results != "x" and results[0] != results[1]
    assert [one.text for one in results + results[:1]] == texts + texts[:1] and [one.text for one in [*results[:1]] + results] == texts[:1] + texts
    first, *_rest = results
    assert first.words is first.words and first.alignment is results[0].alignment
    for i in (5, -6):
        with pytest.raises(IndexError):
            results[i]
    with pytest.raises(AttributeError, match="no_such"):
        _ = results.no_such
    for again in (pickle.loads(pickle.dumps(results)), copy.deepcopy(results)):
        assert isinstance(again, list) and same(again, results) and [one.flags for one in again] == [one.flags for one in results]
    with pytest.raises(wf.ArgumentError, match="pickles"):
        again[0].nbest(2)


def test_results_outlive_all_they_came_from(matrices):
    def decode():
        graph = wf.build_ctc_graph(tokens=CTC / "tokens_phone.txt", lexicon=CTC / "lexicon_phone.txt", lm=CTC / "lm3.arpa.gz")
        mine = [matrix.copy() for matrix in matrices[:10]]
        with wf.Decoder(graph, lattice_beam=4) as decoder:
            results = decoder.decode(mine)
        graph.words.close()
        graph.close()
        return results

    results = decode()
    gc.collect()
    one, starts, costs, lattice = results[3], np.asarray(results.starts), np.asarray(results.costs), results[3].lattice
    kept = (one.text, [word.start for word in one.words], one.cost, lattice.num_arcs, starts.tolist(), costs.tolist(), results.offsets.tolist())
    del results
    gc.collect()
    wf.Decoder(wf.build_ctc_graph(["<blk>", "a"])).decode([np.zeros((50, 2), np.float32)] * 200)  # would use freed memory again
    offsets = kept[6]
    assert kept[1] == kept[4][offsets[3] : offsets[4]] == starts[offsets[3] : offsets[4]].tolist() and costs[3] == kept[2] == one.cost
    assert (one.text, [word.start for word in one.words]) == kept[:2] and one.lattice.num_arcs == kept[3] and one.nbest(2)[0].text == one.text
    with pytest.raises(TypeError, match="read-only"):
        one._batch.costs[0] = 1.0


def test_a_batch_is_freed_with_its_last_view(ctc_graph, matrices):
    """No cycle keeps it: garbage collection is off. The block's capsule holds the C memory."""
    import weakref

    gc.disable()
    try:
        results = wf.Decoder(ctc_graph, lattice_beam=2).decode(matrices[:3])
        block = weakref.ref(results._block)
        kept, view = [result.words for result in results], results.costs
        results[1].alignment, results[2].nbest(1), results.texts, [*results]
        del results
        assert block() is not None and len(kept) == 3
        del view
        assert block() is None
    finally:
        gc.enable()


def test_threads_share_results(ctc_graph, matrices):
    results = wf.Decoder(ctc_graph, lattice_beam=4).decode(matrices[:20])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: [(r.text, r.words, r.cost, list(r.alignment), r.compact_lattice.num_arcs) for r in results], range(8)))
    assert all(one == seen[0] for one in seen)


def test_texts_of_words_added_and_words_without_text(ctc_graph, matrices):
    mine = ctc_graph.fst.osymbols
    named = wf.Symbols({text if label % 3 else f"é{label}\u2581": label for text, label in mine if label % 5})  # a fifth has no text
    results = wf.Decoder(ctc_graph, words=named).decode(matrices)
    assert results.texts == [" ".join(word.text for word in result.words) for result in results]
    assert [word.text for result in results for word in result.words] == [named.text(label) or str(label) for label in results.words]
    assert any(text.isdigit() for text in " ".join(results.texts).split()) and "é" in "".join(results.texts)
    bare = wf.Decoder(wf.Fst.from_arcs([(0, 0, 1, 7, 0.0), (0, 0, 2, 2147483647, 0.0)], {0: 0.0})).decode(np.array([[0, -9], [-9, 0]], np.float32))
    assert bare.texts == ["7 2147483647"]


# --- lists of tensors ---------------------------------------------------------------------------------------------


def hostile(rng):
    zeros = np.zeros((3, 40), np.float32)
    return [
        (np.zeros((3, 40), np.int32), TypeError, "float32"),
        (np.zeros((3, 40), ">f4"), TypeError, "float32"),
        (np.zeros((2, 3, 40), np.float32), ValueError, r"shape \(2, 3, 40\)"),
        (np.zeros(40, np.float32), ValueError, r"shape \(40,\)"),
        (np.zeros((3, 80), np.float32)[:, ::2], ValueError, "contiguous"),
        (zeros[::-1], ValueError, "contiguous"),
        (np.zeros((40, 3), np.float32).T, ValueError, "contiguous"),
        (None, TypeError, "NoneType"),
        ([0.5], TypeError, "list"),
        ("scores", TypeError, "neither"),
        (FakeTensor(zeros, strides=(1, 3)), ValueError, "contiguous"),
        (FakeTensor(zeros, strides=(-40, 1)), ValueError, "contiguous"),
        (FakeTensor(zeros, lanes=2), TypeError, "float32"),
        (FakeTensor(zeros, code=0), TypeError, "int32"),
        (FakeTensor(zeros, device=(10, 0)), TypeError, "type 10"),
        (FakeTensor(zeros, version=(2, 0)), TypeError, "version 2.0"),
        (Raising(RuntimeError("requires grad"), zeros), TypeError, "requires grad"),
        (Raising(BufferError("is sparse"), zeros), TypeError, "is sparse"),
        (Raising(None, zeros), TypeError, "capsule"),
    ]


class Raising(FakeTensor):
    """__dlpack__ raises an exception, or returns no capsule."""

    def __init__(self, raised, array):
        super().__init__(array)
        self.raised = raised

    def __dlpack__(self, **_):
        if self.raised is None:
            return "no capsule"
        raise self.raised


def test_a_list_names_the_utterance_that_is_wrong(ctc_graph, matrices, rng):
    decoder, good = wf.Decoder(ctc_graph), matrices[:3]
    for item, kind, message in hostile(rng):
        for position in (0, 2, 3):
            batch = [*good[:position], item, *(FakeTensor(matrix) for matrix in good[position:])]
            with pytest.raises(kind, match=f"^utterance {position}: .*{message}"):
                decoder.decode(batch)
    with pytest.raises(ValueError, match=r"utterance 1: length \d+ of"):
        decoder.decode(good, [1, len(good[1]) + 1, 1])
    with pytest.raises(ValueError, match="utterance 2: length -1 of"):
        decoder.decode(good, [1, 2, -1])
    with pytest.raises(ZeroDivisionError):
        decoder.decode([good[0], Raising(ZeroDivisionError(), good[0])])
    with pytest.raises(KeyboardInterrupt):
        decoder.decode([good[0], Raising(KeyboardInterrupt(), good[0])])
    on_gpus = [FakeTensor(good[0], device=(2, 1)), good[1], FakeTensor(good[1], device=(2, 0))]
    with pytest.raises(ValueError, match=r"several GPUs: \[0, 1\]"):
        decoder.decode(on_gpus)


def test_a_list_may_mix_everything(ctc_graph, matrices):
    some = matrices[:8]
    wanted = wf.Decoder(ctc_graph).decode(some)
    wide = np.full((len(some[2]), 50), np.nan, np.float32)
    wide[:, :40] = some[2]
    mixed = [some[0], FakeTensor(some[1]), wide[:, :40], some[3].astype(np.float64), FakeTensor(some[4], version=(1, 0)), memoryview(some[5]), np.asfortranarray(some[6][:1])]
    mixed += [FakeTensor(some[7], strides=None), some[7][:0]]
    for arranged in (mixed, tuple(mixed)):
        results = wf.Decoder(ctc_graph).decode(arranged)
        assert same(results[:6], wanted[:6]) and same(results[7:8], wanted[7:]) and results[8].num_frames == 0 and results[6].num_frames == 1
    plain = [np.asarray(item.array if isinstance(item, FakeTensor) else item) for item in mixed]
    frames = [len(matrix) // 2 for matrix in plain]
    results = wf.Decoder(ctc_graph).decode(mixed, np.array(frames))
    assert results.num_frames.tolist() == frames and same(results, wf.Decoder(ctc_graph).decode([matrix[:count] for matrix, count in zip(plain, frames)]))


def test_borrowing_keeps_objects_until_the_batch_ends_and_not_longer(matrices):
    from warpfst.scores import Batch

    array, tensor, versioned, wrong = matrices[0], FakeTensor(matrices[0]), FakeTensor(matrices[0], version=(1, 0)), matrices[0].astype(np.int32)

    class Holder(FakeTensor):
        capsule = None

        def __dlpack__(self, **_):
            self.capsule = self.capsule or super().__dlpack__()
            return self.capsule

    holder = Holder(matrices[0])

    def counted():
        return [sys.getrefcount(one) for one in (array, tensor, versioned, wrong, holder, FakeTensor)]

    gc.collect()  # what exceptions of earlier tests hold
    before = counted()
    batch = Batch([array, tensor, versioned, holder] * 50)
    during, capsules = counted(), sys.getrefcount(holder.capsule)
    assert all(now >= then + 50 for now, then in zip(during[:3], before)) and capsules == 52  # also the holder's, and the argument
    del batch
    for _ in range(50):
        with pytest.raises(TypeError):
            Batch([array, tensor, versioned, holder, wrong])
    gc.collect()
    after, capsules = counted(), sys.getrefcount(holder.capsule)
    assert after == before and capsules == 2
    changing = bytearray(matrices[0].tobytes())
    view = memoryview(changing).cast("f", matrices[0].shape)
    batch = Batch([view])
    del view
    with pytest.raises(BufferError):  # the batch holds the memory
        changing.extend(b"x")
    del batch
    changing.extend(b"x")


class TorchTensor:
    """What torch.Tensor has, as far as batches use it."""

    requires_grad, dtype = False, "float32"
    is_cpu, is_cuda = property(lambda self: self.device[0] == 1), property(lambda self: self.device[0] == 2)

    def __init__(self, array, *, device, version, number=0):
        self.array, self.shape, self.device, self.calls = array, array.shape, (device[0], number), []
        self.tensor = FakeTensor(array, device=self.device, version=version)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **arguments):
        self.calls.append(stream)
        return self.tensor.__dlpack__(stream, **arguments)

    def stride(self):
        return tuple(stride // 4 for stride in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data

    def get_device(self):
        return -1 if self.is_cpu else self.device[1]


def test_a_list_on_a_gpu_is_synchronised_as_its_producer_needs(monkeypatch):
    """torch waits for its current stream, so the first tensor does it for all; other producers are asked for every tensor."""
    from warpfst.scores import Batch

    def batch_of(tensors, stream=1):
        batch = Batch(tensors, None, stream)
        assert batch.device == 0 and [one.on_device for one in batch.scores] == [tensor.device[0] == 2 for tensor in tensors]
        assert [one.data for one in batch.scores] == [tensor.array.ctypes.data for tensor in tensors]
        return [tensor.calls for tensor in tensors]

    def make(kind, version=(1, 0), **more):
        return [kind(np.zeros((3, 40), np.float32), device=device, version=version, **more) for device in ((1, 0), (2, 0), (2, 0), (2, 0))]

    asked = (1, {"max_version": (1, 1)})
    assert batch_of(make(FakeTensor)) == [[(None, {"max_version": (1, 1)})], [asked], [asked], [asked]]
    fake = types.SimpleNamespace(Tensor=TorchTensor, float32=TorchTensor.dtype, float16="float16", bfloat16="bfloat16")
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert batch_of(make(TorchTensor), 0x1234) == [[], [0x1234], [], []]
    assert batch_of(make(TorchTensor, version=None)) == [[], [1, 1], [], []]  # before DLPack 1.0: the first call, with max_version, fails
    assert batch_of([*make(FakeTensor)[1:2], *make(TorchTensor)[1:], *make(FakeTensor)[1:2]]) == [[asked], [1], [], [], [asked]]
    with pytest.raises(ValueError, match=r"several GPUs: \[0, 1\]"):
        _ = Batch([*make(TorchTensor), *make(TorchTensor, number=1)]).device
    for name, value in (("requires_grad", True), ("dtype", "float64"), ("is_cuda", False), ("stride", lambda _: (1, 40)), ("data_ptr", lambda _: 1 / 0)):
        with monkeypatch.context() as changed:
            changed.setattr(TorchTensor, name, value)
            if name == "data_ptr":
                with pytest.raises(ZeroDivisionError):
                    Batch(make(TorchTensor))
            else:  # left to DLPack
                assert all(tensor for tensor in batch_of(make(TorchTensor))[1:])


# --- lattices determinized while decoding -------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_made_while_decoding_equals_what_is_made_later(ctc_graph, matrices, threads):
    bad, scale = np.full((2, 40), math.nan, np.float32), 0.24 / math.sqrt(0.7)
    batch = [*matrices[:20], bad, matrices[0][:0], *matrices[20:]]
    later = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6, num_threads=threads).decode(batch)
    options = {"determinize": True, "nbest": 5, "mbr": True}
    at_once = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6, num_threads=threads, **options).decode(batch)
    slim = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=6, num_threads=threads, keep_raw=False, **options).decode(batch)
    for one, two, three in zip(later, at_once, slim):
        if one.error is not None:
            assert type(two.error) is type(three.error) is type(one.error)
            continue
        assert one.words == two.words == three.words and all(0 <= word.confidence <= 1 for word in two.words)
        best, *others = one.nbest(5, confidences=True)
        assert [word.confidence for word in best.words] == [word.confidence for word in one.words] and best == two.nbest(3, confidences=True)[0]
        assert [[word._replace(confidence=None) for word in other.words] for other in (best, *others)] == [other.words for other in one.nbest(5)]
        for other in others:
            assert all(0 <= word.confidence <= 1 for word in other.words) and other.words != best.words
        assert one.nbest(3) == two.nbest(3) == three.nbest(3) and one.nbest(9) == two.nbest(9) and len(two.nbest(5)) <= 5
        assert one.mbr() == two.mbr() == three.mbr() == one.compact_lattice.mbr(scale=scale) == two.compact_lattice.mbr(scale=scale)
        assert [word.confidence for word in one.words] == one.compact_lattice.confidences(one.text, scale)
        assert one.lattice.num_arcs == two.lattice.num_arcs and three.lattice is None
        assert one.compact_lattice.stats() == two.compact_lattice.stats() == three.compact_lattice.stats() and two.compact_lattice is two.compact_lattice
        assert one.compact_lattice.complete_beam == two.compact_lattice.complete_beam == 6
    flat = [word.confidence for result in later if result.error is None for word in result.words]
    assert at_once.confidences.tolist() == slim.confidences.tolist() == flat and len(flat) > 300


def test_what_was_made_while_decoding_is_used(ctc_graph, matrices, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("computed again")

    decoder = wf.Decoder(ctc_graph, lattice_beam=6, determinize=True, nbest=3, mbr=True)
    monkeypatch.setattr(wf.Lattice, "determinize", refuse)
    monkeypatch.setattr(wf.CompactLattice, "confidences", refuse)
    monkeypatch.setattr(wf.CompactLattice, "mbr", refuse)
    result = decoder.decode(matrices[:1])[0]
    monkeypatch.setattr(warpfst.results, "create", refuse)
    assert result.words[0].confidence and result.nbest(2) and result.mbr() and result.compact_lattice
    with pytest.raises(AssertionError):
        result.nbest(4)
    monkeypatch.undo()
    slow = wf.Decoder(ctc_graph, lattice_beam=6, determinize=True, confidences=False).decode(matrices[:1])
    assert slow.confidences is None and [word.confidence for word in slow[0].words] == [word.confidence for word in result.words] and slow.confidences is None


@pytest.mark.parametrize("read", [lambda one: one.words, lambda one: one.nbest(3, confidences=True), lambda one: one.compact_lattice.num_arcs])
def test_the_first_that_is_read_makes_those_of_the_batch(ctc_graph, matrices, monkeypatch, read):
    """All of the batch's are made by one call into C, also with threads that read at the same time."""
    wanted = [read(wf.Decoder(ctc_graph, lattice_beam=6).decode([matrix])[0]) for matrix in matrices[:12]]
    calls, real = [], warpfst.results.call
    monkeypatch.setattr(warpfst.results, "call", lambda name, *arguments: (calls.append(name), real(name, *arguments))[1])
    results = wf.Decoder(ctc_graph, lattice_beam=6).decode(matrices[:12])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, results)) == wanted
    assert calls.count("wf_batch_results_complete") == 1


def test_confidence_scale(ctc_graph, matrices):
    """A number is a factor on the costs of paths. Smaller ones give less certain words."""
    means = []
    for scale in (0.1, 1.0):
        results = wf.Decoder(ctc_graph, lattice_beam=6, confidence_scale=scale).decode(matrices[:12])
        for one in results:
            scaled = one.compact_lattice.scale(lm_scale=scale, acoustic_scale=scale)
            posteriors = np.array(scaled.confidences(one.text))
            room = 3 * (1 + (1 - posteriors).sum()) / (3 + len(posteriors)) * math.exp(-scale * 6)  # for paths beyond the beam
            np.testing.assert_allclose([word.confidence for word in one.words], posteriors / (1 + room), atol=1e-4)
            assert math.isclose(one.mbr().risk, scaled.mbr().risk, abs_tol=1e-3)
        means.append(np.mean(results.confidences))
    default = np.mean(wf.Decoder(ctc_graph, lattice_beam=6).decode(matrices[:12]).confidences)
    assert means[0] < default < means[1] - 0.05
    assert pickle.loads(pickle.dumps(wf.Decoder(ctc_graph, lattice_beam=6, confidence_scale=0.1))).decode(matrices[:12]).confidences.tolist() != results.confidences.tolist()
    for wrong in (-1, math.nan, "x"):
        with pytest.raises((wf.ArgumentError, TypeError)):
            wf.Decoder(ctc_graph, lattice_beam=6, confidence_scale=wrong)


def test_options_of_determinization(ctc_graph, matrices):
    narrow = wf.Decoder(ctc_graph, lattice_beam=6, determinize={"beam": 1.0}, nbest=2)
    assert narrow.decode(matrices[0])[0].compact_lattice.complete_beam == 1
    again = pickle.loads(pickle.dumps(narrow))
    assert again.decode(matrices[0])[0].compact_lattice.complete_beam == 1 and same(again.decode(matrices[:3]), narrow.decode(matrices[:3]))
    tiny = wf.Decoder(ctc_graph, lattice_beam=6, determinize={"max_bytes": 65536})
    assert len(tiny.decode(matrices)) == len(matrices)
    assert wf.Decoder(ctc_graph, lattice_beam=6, determinize={}).decode(matrices[0]).confidences is not None
    with pytest.raises(TypeError, match="determinize"):
        wf.Decoder(ctc_graph, lattice_beam=6, determinize="yes")
    with pytest.raises(wf.ArgumentError, match="lattice_beam is 0"):
        wf.Decoder(ctc_graph, determinize=True)
    for options in ({"nbest": 3}, {"mbr": True}, {"keep_raw": False}):
        with pytest.raises(wf.ArgumentError, match="determinize=True"):
            wf.Decoder(ctc_graph, lattice_beam=6, **options)
    with pytest.raises((wf.ArgumentError, TypeError)):
        wf.Decoder(ctc_graph, lattice_beam=6, determinize={"baem": 1})
    with pytest.raises((wf.ArgumentError, TypeError)):
        wf.Decoder(ctc_graph, lattice_beam=6, determinize=True, nbest=-1)
    stream = narrow.stream()
    stream.advance(matrices[0])
    assert stream.finish().words[0].confidence is not None  # made when it is read


# --- batches in flight --------------------------------------------------------------------------------------------


def test_futures_give_the_results_in_order(ctc_graph, matrices):
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    parts = [matrices[i : i + 7] for i in range(0, 35, 7)]
    wanted = [decoder.decode(part) for part in parts]
    futures = [decoder.decode_async(part, [len(matrix) for matrix in part]) for part in parts]
    assert all(same(future.result(), one) for future, one in zip(futures, wanted))
    boost = {"MARK": 3.0}
    assert same(decoder.decode_async(parts[0], boost=boost).result(), decoder.decode(parts[0], boost=boost))
    with pytest.raises(ValueError, match="utterance 1"):  # bad input is reported at once
        decoder.decode_async([matrices[0], matrices[0][0]])
    decoder.set_boost(None)
    decoder.close()
    with pytest.raises((wf.StateError, RuntimeError)):
        decoder.decode_async(parts[0])


def test_scores_live_until_their_future_is_done(ctc_graph, matrices):
    decoder = wf.Decoder(ctc_graph)
    wanted = decoder.decode(matrices[:4])
    futures = [decoder.decode_async([matrix.copy() for matrix in matrices[:4]]) for _ in range(20)]
    gc.collect()
    assert all(same(future.result(), wanted) for future in futures)


def test_the_next_batch_is_made_while_one_is_decoded(ctc_graph, matrices, monkeypatch):
    """The search of the first batch waits until the second batch was asked for. If it were not overlapped, the wait would time out."""
    decoder, asked, reached = wf.Decoder(ctc_graph), threading.Event(), []
    decode = wf.decoder.create

    def wait_and_create(name, *arguments, **more):
        if name == "wf_batch_decode":
            reached.append(asked.wait(30))
        return decode(name, *arguments, **more)

    def batches():
        yield matrices[:3], [len(matrix) for matrix in matrices[:3]]
        asked.set()
        yield matrices[3:5]
        yield np.zeros((0, 40), np.float32)

    monkeypatch.setattr(wf.decoder, "create", wait_and_create)
    results = list(decoder.decode_batches(batches()))
    assert reached == [True] * 3 and [len(one) for one in results] == [3, 2, 1]
    monkeypatch.undo()
    assert same([*results[0], *results[1]], decoder.decode(matrices[:5]))


@pytest.mark.parametrize("ahead", [1, 3])
def test_batches_end_with_an_error_or_early(ctc_graph, matrices, ahead):
    decoder, taken = wf.Decoder(ctc_graph), []

    def batches(fail):
        for i in range(8):
            taken.append(i)
            if fail and i == 5:
                raise ZeroDivisionError
            yield [matrices[i]]

    iterator = decoder.decode_batches(batches(False), ahead=ahead)
    assert same(next(iterator), decoder.decode([matrices[0]])) and len(taken) == ahead + 1
    iterator.close()
    with pytest.raises(ZeroDivisionError):
        list(decoder.decode_batches(batches(True), ahead=ahead))
    with pytest.raises(TypeError, match="utterance 0"):
        list(decoder.decode_batches([[matrices[0]], ["wrong"]], ahead=ahead))
    with pytest.raises(wf.CancelledError), decoder:  # closed in between
        for _ in decoder.decode_batches([[matrices[0]]] * 3, ahead=ahead):
            raise wf.CancelledError
    with pytest.raises(ValueError, match="ahead=0"):
        next(decoder.decode_batches([], ahead=0))


def test_asyncio_waits_for_futures(ctc_graph, matrices):
    decoder = wf.Decoder(ctc_graph)

    async def both():
        futures = [asyncio.wrap_future(decoder.decode_async([matrix])) for matrix in matrices[:2]]
        return await asyncio.gather(*futures)

    assert [one.texts[0] for one in asyncio.run(both())] == decoder.decode(matrices[:2]).texts
