"""The Python package on a GPU: scores in GPU memory (from a plain DLPack producer, torch, cupy and jax, on several CUDA streams), fst operations, training.

Needs only the package and fake_tensors.py, so that it runs from a packed folder (`./run pack-gpu DIR`) on a machine where nothing can be installed:

    cd DIR && PYTHONPATH=python WARPFST_LIBRARY=$PWD/libwarpfst.so.0.3 python3 -m pytest -rs test_gpu.py

Without a GPU all tests are skipped with the reason; tests of a framework are also skipped if it is not installed.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from fake_tensors import FakeTensor

import warpfst as wf

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # jax would take most of the GPU's memory
WHY_NOT = wf.cuda_reason()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"no GPU: {WHY_NOT}")

NUM_COLUMNS = 30


def framework(name):
    """Returns the framework. Skips the test if it is not installed or cannot use a GPU."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch without CUDA")
        return torch
    if name == "cupy":
        cupy = pytest.importorskip("cupy")
        if cupy.cuda.runtime.getDeviceCount() == 0:
            pytest.skip("cupy without a GPU")
        return cupy
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax without a GPU")
    return jax


class Device:
    """The primary context of GPU 0, as the CUDA runtime uses it."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.check(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def check(status):
        assert status == 0, status

    def upload(self, array):
        address = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1))))
        self.check(self.cuda.cuMemcpyHtoD_v2(address, array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)))
        return FakeTensor(array, device=(2, 0), address=address.value)

    def stream(self):
        stream = ctypes.c_void_p()
        self.check(self.cuda.cuStreamCreate(ctypes.byref(stream), 1))  # does not wait for the default stream
        return stream.value


@pytest.fixture(scope="module")
def device():
    return Device()


@pytest.fixture(scope="module")
def graph():
    """A loop of 300 words of two to six tokens, with random costs."""
    rng = np.random.default_rng(1)
    tokens = ["<blk>", *(f"t{i}" for i in range(1, NUM_COLUMNS))]
    lexicon = {f"w{i}": [f"t{t}" for t in rng.integers(1, NUM_COLUMNS, rng.integers(2, 7))] for i in range(300)}
    words = wf.Symbols(["<eps>", *lexicon])
    grammar = wf.Fst.from_arcs([(0, 0, i, i, float(cost)) for i, cost in enumerate(rng.uniform(1, 8, 300), 1)], {0: 0.0}, isymbols=words, osymbols=words)
    return wf.build_ctc_graph(tokens, lexicon, grammar=grammar, words=words)


@pytest.fixture(scope="module")
def matrices():
    """Peaked float32 scores like those of CTC models, with 0 to 150 frames."""
    rng = np.random.default_rng(2)
    made = []
    for frames in (150, 1, 77, 0, *rng.integers(20, 120, 20)):
        logits = rng.normal(0, 2, (int(frames), NUM_COLUMNS))
        logits[:, 0] += 4 * (rng.random(int(frames)) < 0.6)
        made.append((logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32))
    return made


def padded(matrices):
    batch = np.zeros((len(matrices), max(map(len, matrices)), NUM_COLUMNS), np.float32)
    for row, matrix in zip(batch, matrices):
        row[: len(matrix)] = matrix
    return batch, [len(matrix) for matrix in matrices]


def values(results):
    return [(r.text, r.cost, [w[1:] for w in r.words], list(r.alignment)) for r in results]


def test_graphs_built_on_the_gpu_have_the_same_bytes(device, tmp_path, matrices):
    lexicon = {f"w{i}": [f"t{t}" for t in row] for i, row in enumerate(np.random.default_rng(3).integers(1, NUM_COLUMNS, (200, 4)))}
    tokens = ["<blk>", *(f"t{i}" for i in range(1, NUM_COLUMNS))]
    words = wf.Symbols(["<eps>", *lexicon])
    grammar = wf.Fst.from_arcs([(0, 0, i, i, 0.5 * (i % 7)) for i in range(1, 201)], {0: 0.0}, isymbols=words, osymbols=words)
    for topology in ("correct", "compact"):
        graphs = {
            name: wf.build_ctc_graph(tokens, lexicon, grammar=grammar, words=words, topology=topology, device=name.split(",")[0], keep_on_device=name == "cuda, kept")
            for name in ("cpu", "cuda", "cuda, kept")
        }
        found = [values(wf.Decoder(graphs[name], device="cuda", acoustic_scale=0.7).decode(matrices)) for name in ("cuda, kept", "cpu")]
        assert found[0] == found[1]
        for name, graph in graphs.items():
            graph.save(tmp_path / f"{name}.wfst")
        assert (tmp_path / "cpu.wfst").read_bytes() == (tmp_path / "cuda.wfst").read_bytes() == (tmp_path / "cuda, kept.wfst").read_bytes()
    with pytest.raises(wf.Error, match="cuda:0,0: a batch is on one GPU"):
        wf.build_ctc_graph(tokens, lexicon, grammar=grammar, words=words, device="cuda:0,0")


def test_gpu_and_cpu_agree_bit_for_bit(device, graph, matrices):
    expected = values(wf.Decoder(graph, acoustic_scale=0.7).decode(matrices))
    assert len({text for text, *_ in expected}) > 10
    for name in ("cuda", "cuda:0,0"):
        with wf.Decoder(graph, acoustic_scale=0.7, device=name) as decoder:
            assert values(decoder.decode(matrices)) == expected
            assert values(decoder.decode([device.upload(matrix) for matrix in matrices])) == expected
            pairs = [matrices[i : i + 2] for i in range(0, len(matrices), 2)]
            assert [one for results in decoder.decode_batches([device.upload(matrix) for matrix in pair] for pair in pairs) for one in values(results)] == expected
            batch, lengths = padded(matrices)
            tensor = device.upload(batch)
            assert values(decoder.decode(tensor, lengths)) == expected
            assert all(stream == 1 for stream, _ in tensor.calls)
            assert decoder.plan()["total_bytes"] > 0


def test_decoding_waits_for_the_stream_of_the_user(device, graph, matrices):
    """The stream copies the scores only after a host function that takes 0.2 s. Decoding must wait for the copy."""
    matrix = matrices[0]
    tensor, stream = device.upload(np.zeros_like(matrix)), device.stream()
    gate = threading.Event()
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(0.2) and None)
    address, copied = ctypes.c_uint64(tensor.managed.tensor.data), ctypes.c_size_t(matrix.nbytes)
    device.check(device.cuda.cuLaunchHostFunc(ctypes.c_void_p(stream), hold, None))
    device.check(device.cuda.cuMemcpyHtoDAsync_v2(address, matrix.ctypes.data_as(ctypes.c_void_p), copied, ctypes.c_void_p(stream)))
    decoder = wf.Decoder(graph, device="cuda")
    decoder.set_stream(stream)
    assert values(decoder.decode(tensor)) == values(wf.Decoder(graph).decode(matrix))
    assert tensor.calls[-1][0] == stream


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch(graph, matrices, dtype):
    torch = framework("torch")
    batch, lengths = padded(matrices)
    tensor = torch.from_numpy(batch).cuda().to(getattr(torch, dtype))
    expected = values(wf.Decoder(graph).decode(tensor.float().cpu(), lengths))
    decoder = wf.Decoder(graph, device="cuda")
    wide = torch.cat([tensor, tensor], 2)[:, :, :NUM_COLUMNS]
    for scores, sizes in ((tensor, torch.tensor(lengths)), (tensor, torch.tensor(lengths, device="cuda")), (wide, lengths), ([row[:n] for row, n in zip(tensor, lengths)], None)):
        assert values(decoder.decode(scores, sizes)) == expected
    with pytest.raises(ValueError, match="device='cuda'"):
        wf.Decoder(graph).decode(tensor, lengths)


@pytest.mark.parametrize("stream_given", [False, True])
def test_torchs_streams_are_respected(graph, matrices, stream_given):
    """A side stream writes the scores after a slow kernel. Decoding must wait, both by DLPack's stream protocol alone and with set_stream."""
    torch = framework("torch")
    batch, lengths = padded(matrices)
    wanted = torch.from_numpy(batch).pin_memory()
    expected = values(wf.Decoder(graph).decode(batch, lengths))
    decoder = wf.Decoder(graph, device="cuda")
    scores, side = torch.zeros(batch.shape, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000_000)  # about 0.2 s
        scores.copy_(wanted, non_blocking=True)
        if stream_given:
            decoder.set_stream(torch.cuda.current_stream())
        assert values(decoder.decode(scores, lengths)) == expected


def test_the_gil_is_free_while_the_gpu_works(graph, matrices):
    torch = framework("torch")
    batch, lengths = padded(matrices)
    decoder, scores = wf.Decoder(graph, device="cuda"), torch.from_numpy(batch).cuda()
    expected = values(decoder.decode(scores, lengths))
    torch.cuda.synchronize()
    torch.cuda._sleep(400_000_000)  # on the default stream, before the decoder's work
    found = []
    worker = threading.Thread(target=lambda: found.append(values(decoder.decode(scores, lengths))))
    worker.start()
    ticks = 0
    while worker.is_alive():
        time.sleep(0.001)
        ticks += 1
    worker.join()
    assert found == [expected] and ticks > 20


def test_cupy(graph, matrices):
    cupy = framework("cupy")
    batch, lengths = padded(matrices)
    expected = values(wf.Decoder(graph).decode(batch, lengths))
    decoder = wf.Decoder(graph, device="cuda")
    with cupy.cuda.Stream(non_blocking=True):
        assert values(decoder.decode(cupy.asarray(batch), cupy.asarray(lengths))) == expected


def test_jax(graph, matrices):
    jax = framework("jax")
    batch, lengths = padded(matrices)
    assert values(wf.Decoder(graph, device="cuda").decode(jax.numpy.asarray(batch), lengths)) == values(wf.Decoder(graph).decode(batch, lengths))


def write_arpa(path, rng):
    """Writes a trigram model of the graph's words with all unigrams and some bigrams and trigrams."""
    names = [f"w{i}" for i in range(300)]
    grams = [[("<s>",), ("</s>",), *((name,) for name in names)]]
    for order in (2, 3):
        begun = [gram for gram in grams[-1] if gram[-1] != "</s>"]
        chosen = rng.choice(len(begun), 200, replace=order == 2)
        grams.append(sorted({(*begun[i], names[int(rng.integers(300))]) for i in chosen}))
    lines = ["", "\\data\\", *(f"ngram {order}={len(some)}" for order, some in enumerate(grams, 1))]
    for order, some in enumerate(grams, 1):
        lines += ["", f"\\{order}-grams:"]
        for gram in some:
            prob = -99 if gram == ("<s>",) else -float(rng.uniform(0.5, 3))
            backoff = f"\t{-float(rng.uniform(0, 0.5)):.4f}" if order < 3 and gram != ("</s>",) else ""
            lines.append(f"{prob:.4f}\t{' '.join(gram)}{backoff}")
    path.write_text("\n".join([*lines, "", "\\end\\", ""]))


def test_boosts_and_language_models_as_on_the_cpu(graph, matrices, tmp_path):
    """The same bits as on the CPU for every placement of the model."""
    write_arpa(tmp_path / "lm.arpa", np.random.default_rng(5))
    model = wf.LM.convert(tmp_path / "lm.arpa", tmp_path / "lm.wlm")
    boosts = [None, {f"w{i}": 5.0 for i in range(0, 300, 7)}, {**{f"w{i}": -3.0 for i in range(0, 300, 5)}, "w1 w2": 4.0}]
    each = [boosts[i % 3] for i in range(len(matrices))]
    expected = values(wf.Decoder(graph).decode(matrices, boost=each))
    assert sum(a != b for a, b in zip(expected, values(wf.Decoder(graph).decode(matrices)))) > len(matrices) // 3  # boosts have an effect
    assert values(wf.Decoder(graph, device="cuda").decode(matrices, boost=each)) == expected
    expected = values(wf.Decoder(graph, lm=model).decode(matrices, boost=each))
    for placement, options in (("device", {}), ("hybrid", {"lm_gpu_bytes": 1 << 20}), ("host", {})):
        with wf.Decoder(graph, device="cuda", lm=wf.Scorer.from_lm(model, graph.words, placement=placement, **options)) as decoder:
            assert values(decoder.decode(matrices, boost=each)) == expected, placement
            stats = decoder.lm_stats()
            assert (stats["gpu_bytes"] > 0 or placement == "host") and (stats["host_bytes"] > 0) == (placement != "device"), stats
            for name in ("host_reads", "bus_bytes", "stall_cycles", "stall_s"):
                assert (stats[name] > 0) == (placement != "device"), stats


def test_the_gpu_agrees_with_the_cpu_or_refuses(graph, matrices):
    """Lattices, streams and added words give the CPU's results or UnsupportedError."""
    words = wf.Symbols(["<eps>", "a", "<x>"])
    loop = wf.Fst.from_arcs([(0, 0, 1, 1, 1.0), (0, 0, 2, 2, 1.0)], {0: 0.0}, isymbols=words, osymbols=words)
    places = wf.build_ctc_graph(["<blk>", *(f"t{i}" for i in range(1, NUM_COLUMNS))], {"a": "t1 t2"}, grammar=loop, words=words, topology="compact", classes="<x>")
    added = places.add_words(["b", "c d"], pronunciations={"b": "t3", "c": "t4 t5", "d": "t6"})
    for do in (
        lambda device: values(wf.Decoder(places, device=device).decode(matrices[0], graphs=added)),
        lambda device: [(one.text, one.cost) for one in wf.Decoder(graph, device=device, lattice_beam=4).decode(matrices[0])[0].nbest(5)],
        lambda device: wf.Decoder(graph, device=device).stream().advance(matrices[0]).num_frames,
    ):
        try:
            found = do("cuda")
        except wf.UnsupportedError:
            continue
        assert found == do("cpu")
    with pytest.raises(wf.DeviceError):
        wf.Decoder(graph, device="cuda:99")


def log_fst(rng, num_states=6, num_arcs=14):
    sources = rng.integers(0, num_states - 1, num_arcs)
    targets = [int(rng.integers(source + 1, num_states)) for source in sources]
    arcs = [(int(s), t, *(int(x) for x in rng.integers(1, 4, 2)), float(rng.integers(0, 256)) / 64) for s, t in zip(sources, targets)]
    return wf.Fst.from_arcs([*arcs, (0, num_states - 1, 1, 1, 1.0)], {num_states - 1: 0.5}, semiring="log")


def test_compose_several_at_once():
    rng = np.random.default_rng(4)
    for _ in range(10):
        fsts = [log_fst(rng) for _ in range(3)]
        there, here = (wf.fst.compose(*fsts, device=device, order="canonical") for device in ("cuda", "cpu"))
        assert wf.fst.equal(there, here) and here.num_states > 0


def test_batches_of_fsts():
    rng = np.random.default_rng(3)
    left, right = [log_fst(rng) for _ in range(30)], [log_fst(rng) for _ in range(30)]
    there = wf.fst.FstBatch.compose(left, right, device="cuda", order="canonical")
    here = wf.fst.FstBatch.compose(left, right, order="canonical")
    assert all(wf.fst.equal(there[i], here[i]) for i in range(30)) and sum(here[i].num_arcs for i in range(30)) > 100
    assert np.allclose(there.forward_score(gradients=True), here.forward_score(gradients=True), rtol=1e-9)
    assert all(np.allclose(there.gradients(i, of), here.gradients(i, of), atol=1e-9) for i in range(30) for of in ("arcs", "first", "second"))
    for name in ("arcsort", "connect", "invert", "project", "reverse"):
        a, b = getattr(there, name)(), getattr(here, name)()
        assert all(wf.fst.equal(a[i], b[i]) for i in range(30)), name
    tropical = [one.with_semiring("tropical") for one in left]
    a, b = (wf.fst.FstBatch.create(tropical, device=device).determinize(allow_nonfunctional=True) for device in ("cuda", "cpu"))
    assert all(wf.fst.equal(a[i], b[i]) for i in range(30))
    for encode_labels in (True, False):  # the CPU does it without encode_labels
        c, d = (batch.minimize(allow_nondet=True, encode_labels=encode_labels) for batch in (a, b))
        assert all(wf.fst.equal(c[i], d[i]) for i in range(30))
    with pytest.raises(wf.UnsupportedError, match="log semiring"):
        there.determinize()


def test_compositions_that_stay_on_the_gpu(device):
    rng = np.random.default_rng(6)
    left, right = [log_fst(rng) for _ in range(10)], log_fst(rng)
    composer = wf.fst.Composer(left, right, with_origins=True)
    for _ in range(2):  # repeated with the same inputs
        composer.run()
    expected = [wf.fst.compose_with_origins(one, right, order="canonical") for one in left]
    assert len(composer) == 10 and all(wf.fst.equal(composer[i], expected[i].fst) for i in range(10)) and sum(one.fst.num_arcs for one in expected) > 30
    assert all(composer.with_origins(i).origins == expected[i].origins for i in range(10))
    batch = composer.batch()
    assert np.allclose(batch.forward_score(), [wf.fst.forward_score(one.fst) for one in expected], rtol=1e-9)

    def download(view):
        about = view.__cuda_array_interface__
        stride, (start, _) = about["strides"][0], about["data"]
        raw = np.zeros(len(view) * stride // 4, np.int32)
        if len(view):
            size = (len(view) - 1) * stride + int(about["typestr"][-1])
            device.check(device.cuda.cuMemcpyDtoH_v2(raw.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(start), ctypes.c_size_t(size)))
        return np.lib.stride_tricks.as_strided(raw.view(about["typestr"]), (len(view),), (stride,))

    for i, (fst, origins) in enumerate(expected):
        view, arcs = composer.view(i), np.asarray(fst.arcs)
        assert (view.start, view.num_states, view.num_arcs) == (fst.start, fst.num_states, fst.num_arcs)
        for name, shown in (("nextstate", view.nextstates), ("weight", view.weights), ("ilabel", view.ilabels), ("olabel", view.olabels)):
            assert np.array_equal(download(shown), arcs[name].astype(shown.__cuda_array_interface__["typestr"])), name
        assert np.array_equal(download(view.arc_offsets), np.asarray(fst.arc_offsets).astype(np.int64)[: len(view.arc_offsets)])
        assert np.array_equal(download(view.final_costs), np.asarray(fst.final_costs))
        assert np.array_equal(np.stack([download(side) for side in view.origins], 1).reshape(-1).astype(np.uint32), np.asarray(origins))
    with pytest.raises(IndexError):
        composer.view(10)


def test_views_of_compositions_in_torch():
    torch = framework("torch")
    composer = wf.fst.Composer(log_fst(np.random.default_rng(7)), log_fst(np.random.default_rng(8)))
    composer.run()
    assert np.array_equal(torch.as_tensor(composer.view(0).weights, device="cuda").cpu().numpy(), np.asarray(composer[0].arcs)["weight"])


def test_training_with_torch():
    torch = framework("torch")
    from warpfst import torch as wft

    torch.manual_seed(4)
    logits = (3 * torch.randn((8, 60, 20), dtype=torch.float64, device="cuda")).requires_grad_()
    lengths = torch.tensor([60, 50, 60, 31, 45, 60, 20, 58])
    targets = [torch.randint(1, 5, (size,)) for size in (10, 0, 15, 7, 3, 20, 5, 1)]
    sizes = torch.tensor([len(target) for target in targets])
    x = logits.log_softmax(2).transpose(0, 1)
    theirs = torch.nn.functional.ctc_loss(x.cpu(), torch.cat(targets), lengths, sizes, reduction="none")
    ours = wft.ctc_loss(x, torch.cat(targets), lengths, sizes, reduction="none")
    assert ours.device == logits.device and torch.allclose(ours.cpu(), theirs, rtol=1e-5)
    mine, wanted = (torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (ours, theirs))
    assert torch.allclose(mine, wanted, atol=1e-5)


def test_costs_of_lattices_with_torch():
    """Beams that find every path: the cost and the gradients of the whole composition, on the CPU."""
    torch = framework("torch")
    from warpfst import torch as wft

    graph = wf.Fst.from_arcs([(a, b, b + 1, b + 1, 0.1 * ((a + b) % 7)) for a in range(5) for b in range(5)], dict.fromkeys(range(5), 0.0))
    x = torch.randn((3, 40, 5), generator=torch.Generator().manual_seed(5)).log_softmax(2).requires_grad_()
    decoder = wf.Decoder(graph, device="cuda", beam=200, lattice_beam=200, max_active=100000)
    ours, _ = wft.lattice_costs(decoder, x.cuda(), [40, 0, 33])
    theirs = wft.composition_cost(x, [40, 0, 33], graph)
    assert ours.is_cuda and torch.allclose(ours.cpu(), theirs, rtol=1e-5)
    mine, wanted = (torch.autograd.grad(loss.sum(), x, retain_graph=True)[0] for loss in (ours.cpu(), theirs))
    assert torch.allclose(mine, wanted, atol=1e-4)


if __name__ == "__main__":
    raise SystemExit(pytest.main(["-rs", __file__]))

ENDS = """
import gc, sys
import numpy as np
import warpfst as wf
fst = wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.5)], {{0: 0.0}})
graph = wf.Graph(fst)
decoder = wf.Decoder(graph, device={device!r}, lattice_beam=4)
stream = decoder.stream()
stream.set_boost({{1: 0.5}})
stream.advance(np.zeros((3, 2), np.float32))
result = decoder.decode([np.zeros((3, 2), np.float32)], boost={{2: 0.25}})[0]
class Knot: pass
knot = Knot()
knot.all = [knot, {order}]
if {forget}:
    del fst, graph, decoder, stream, result, knot
    gc.collect()
print("end")
"""


@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("order", ["decoder, stream", "stream, decoder, graph, result", "result, stream, graph, decoder, fst"])
def test_programs_end_without_errors(order, forget):
    """Decoders and streams in a reference cycle, freed by gc or still alive when the interpreter ends."""
    done = subprocess.run([sys.executable, "-c", ENDS.format(device="cuda", order=order, forget=forget)], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


OWN_MODEL = """
import ctypes, os, pathlib, signal
from warpfst.transcribe import ArrayModel

class Own(ArrayModel):
    # Notes the GPU that its process sees as the first. Kills its process in its third batch, once.
    sample_rate, frame_shift, num_calls = 100, 0.01, 0

    def __init__(self, device, num_threads):
        self.folder, gpu = pathlib.Path(__file__).parent, (ctypes.c_char * 16)()
        if device == "cuda":
            cuda = ctypes.CDLL("libcuda.so.1")
            assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetUuid(ctypes.byref(gpu), 0) == 0
        (self.folder / f"gpu.{os.getpid()}").write_text(gpu.raw.hex())

    def scores(self, pieces):
        self.num_calls += 1
        if self.num_calls == 3 and (self.folder / "kill").exists():
            (self.folder / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().scores(pieces)
"""
WORKER = """
import json, pathlib, sys
from warpfst.transcribe.cluster import Settings, transcribe_list, transcribe_part

folder, device, by, part, count = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
settings = Settings(f"{folder}/own_model.py:Own", f"{folder}/out.{device}", graph=f"{folder}/TLG.wfst", options={"device": device}, batch_seconds=0.01)
recordings = [(path.stem, path) for path in sorted((folder / "scores").iterdir())]
if by == "ray":
    import ray
    ray.init(num_cpus=count, num_gpus=count, include_dashboard=False, log_to_driver=False)
    summary = transcribe_list(recordings, settings, actors=count, gpus_per_actor=None if device == "cuda" else 1, batch_size=8)
else:
    summary = transcribe_part(recordings, settings, part, count)
(folder / f"summary.{part}").write_text(json.dumps(summary))
"""


class Workers:
    """A list of utterances, and workers that each see one GPU. One of them kills itself in its work."""

    def __init__(self, folder, graph, matrices):
        self.folder = folder
        (folder / "scores").mkdir()
        graph.save(folder / "TLG.wfst")
        (folder / "own_model.py").write_text(OWN_MODEL)
        for i, matrix in enumerate(matrices * 4):
            if len(matrix) > 0:
                np.save(folder / "scores" / f"{i}.npy", matrix)
        self.keys = {path.stem for path in (folder / "scores").iterdir()}
        (folder / "kill").touch()

    def _start(self, device, by, part, count):
        paths = os.pathsep.join(os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
        gpus = {} if by == "ray" else {"CUDA_VISIBLE_DEVICES": str(part)}
        environment = {**os.environ, **gpus, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
        return subprocess.Popen([sys.executable, "-c", WORKER, str(self.folder), device, by, str(part), str(count)], env=environment)

    def run(self, device, by, parts, count):
        """Runs these parts at once. Returns their exit codes and summaries."""
        started = [self._start(device, by, part, count) for part in parts]
        codes = [process.wait(300) for process in started]
        return codes, [json.loads((self.folder / f"summary.{part}").read_text()) for part, code in zip(parts, codes) if code == 0]

    def files(self, device):
        return {path.name: path.read_text() for path in (self.folder / f"out.{device}").iterdir()}

    def check_files(self, device):
        """They are those of one worker on the CPU, without a kill."""
        found = self.files(device)
        (self.folder / f"out.{device}").rename(self.folder / "found")
        assert self.run("cpu", "part", [0], 1)[0] == [0]
        assert found == self.files("cpu") and len(found) == len(self.keys)

    def gpus(self):
        return {path.read_text() for path in self.folder.glob("gpu.*")}


def check_parts(workers, device, count):
    codes = workers.run(device, "part", [0], count)[0] + workers.run(device, "part", range(1, count), count)[0]
    assert codes == [-signal.SIGKILL] + [0] * (count - 1)
    num_before = len(workers.files(device))
    codes, summaries = workers.run(device, "part", range(count), count)
    done, there, _, failed = zip(*summaries)
    assert codes == [0] * count and not any(failed)
    assert 2 <= num_before == sum(there) < len(workers.keys) == sum(there) + sum(done)
    gpus = workers.gpus()
    workers.check_files(device)
    return gpus


def check_ray(workers, device, count):
    codes, ((done, there, _, failed),) = workers.run(device, "ray", [0], count)
    assert codes == [0] and not (workers.folder / "kill").exists()
    assert (done, there, failed) == (len(workers.keys), 0, [])
    gpus, processes = workers.gpus(), list(workers.folder.glob("gpu.*"))
    assert len(processes) == count + 1  # one was killed and replaced
    workers.check_files(device)
    return gpus


@pytest.mark.parametrize("check", [check_parts, check_ray])
def test_workers_with_a_gpu_each(device, graph, matrices, tmp_path, check):
    """A worker for each GPU of the machine, one of which is killed in its work: in processes as those of torchrun, and as actors of Ray if it is installed."""
    if check is check_ray:
        pytest.importorskip("ray")
    count = ctypes.c_int()
    device.check(device.cuda.cuDeviceGetCount(ctypes.byref(count)))
    assert len(check(Workers(tmp_path, graph, matrices), "cuda", count.value)) == count.value
