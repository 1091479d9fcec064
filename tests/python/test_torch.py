"""warpfst.torch against torch's CTC loss and against finite differences; torch tensors as scores; torch models on many machines. Skipped if torch is not installed.

`./run test` runs this file with Debian's Python, because Debian's torch is built for it (tools/run/python.sh: test_python_torch).
"""

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pages import CTC, ROOT, check_page

import warpfst as wf
from warpfst import torch as wft
from warpfst.transcribe.pipeline import decode_pieces


def random_batch(seed, count=6, frames=12, columns=5):
    """Random float64 logits, lengths, and targets short enough to fit. Neighbouring targets are often equal."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn((count, frames, columns), generator=generator, dtype=torch.float64)
    lengths = torch.randint(frames // 2, frames + 1, (count,), generator=generator)
    targets = [torch.randint(1, 3, (int(torch.randint(0, 3, (1,), generator=generator)),), generator=generator) for _ in range(count)]
    return logits.requires_grad_(), lengths, targets


def torch_loss(logits, lengths, targets, **options):
    sizes = torch.tensor([len(target) for target in targets])
    return torch.nn.functional.ctc_loss(logits.log_softmax(2).transpose(0, 1), torch.cat(targets), lengths, sizes, **options)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_ctc_loss_equals_torchs(seed, reduction):
    logits, lengths, targets = random_batch(seed)
    sizes = torch.tensor([len(target) for target in targets])
    theirs = torch_loss(logits, lengths, targets, reduction=reduction)
    factor = torch.linspace(0.5, 2, theirs.numel(), dtype=torch.float64).reshape(theirs.shape)
    wanted = torch.autograd.grad((factor * theirs).sum(), logits)[0]
    padded = torch.nn.utils.rnn.pad_sequence(targets, batch_first=True)
    for form in (torch.cat(targets), padded):
        ours = wft.ctc_loss(logits.log_softmax(2).transpose(0, 1), form, lengths, sizes, reduction=reduction)
        assert ours.dtype == torch.float64 and torch.allclose(ours, theirs, atol=1e-5)
        assert torch.allclose(torch.autograd.grad((factor * ours).sum(), logits)[0], wanted, atol=1e-5)


def test_other_blanks_and_impossible_targets():
    logits, _, _ = random_batch(9, count=2, frames=6)
    targets, sizes = torch.tensor([0, 2, 1, 1, 1, 1, 1]), torch.tensor([2, 5])  # the second needs 9 frames
    x = logits.log_softmax(2).transpose(0, 1)
    theirs = torch.nn.functional.ctc_loss(x, targets, torch.tensor([6, 6]), sizes, blank=4, reduction="none")
    ours = wft.ctc_loss(x, targets, [6, 6], sizes, blank=4, reduction="none")
    assert torch.allclose(ours, theirs, atol=1e-5) and math.isinf(ours[1])
    ours = wft.ctc_loss(x, targets, [6, 6], sizes, blank=4, reduction="sum", zero_infinity=True)
    gradient = torch.autograd.grad(ours, logits)[0]
    assert torch.allclose(ours, theirs[0], atol=1e-5) and not gradient[1].any() and gradient[0].any()


def lattice_like_graph(seed, columns=3, states=4):
    """An fst with labels up to columns + 1, epsilon arcs only to higher states, and cycles of other labels."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda high: int(torch.randint(0, high, (1,), generator=generator))
    arcs = [(0, 0, 1, 1, 0.5), (states - 1, states - 1, 2, 0, 0.25)]
    for _ in range(8):
        source, target = draw(states), draw(states)
        arcs.append((source, target, draw(columns + 1) if target > source else 1 + draw(columns), draw(3), draw(64) / 32))
    return wf.Fst.from_arcs(arcs + [(0, states - 1, 1, 1, 1.0)], {states - 1: 0.5, 1: 0.0})


@pytest.mark.parametrize("seed", range(4))
def test_gradcheck_of_scores_and_weights(seed):
    """torch.autograd.gradcheck uses finite differences. Weights of arcs are float32, so its steps must be large."""
    graph = lattice_like_graph(seed)
    generator = torch.Generator().manual_seed(100 + seed)
    scores = torch.randn((2, 4, 3), generator=generator, dtype=torch.float64).requires_grad_()
    weights = torch.tensor([arc.weight for s in range(graph.num_states) for arc in graph.arcs_of(s)], dtype=torch.float64).requires_grad_()
    cost = lambda x, w: wft.composition_cost(x, [4, 3], graph, w)
    assert torch.isfinite(cost(scores, weights)).all()
    assert torch.autograd.gradcheck(cost, (scores, weights), eps=1e-2, atol=2e-3, nondet_tol=0)
    alone = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0), (0, 1, 2, 2, 0.0), (1, 1, 3, 3, 0.0), (1, 2, 1, 1, 0.0)], {2: 0.5, 1: 0.0})
    free = (torch.rand(4, generator=generator, dtype=torch.float64) + 1).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: wft.forward_score(alone, w), (free,), eps=1e-2, atol=2e-3)


def test_the_cost_is_the_sum_over_paths():
    """A graph with two paths, whose sum is computed by hand."""
    graph = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (0, 1, 2, 2, 1.0)], {1: 0.25})
    x = torch.tensor([[[-0.1, -2.0]]], dtype=torch.float64, requires_grad=True)
    expected = -math.log(math.exp(-0.5 - 0.1 - 0.25) + math.exp(-1.0 - 2.0 - 0.25))
    cost = wft.composition_cost(x, None, graph)
    assert math.isclose(cost.item(), expected, abs_tol=1e-6)
    cost.sum().backward()
    share = math.exp(-0.85) / (math.exp(-0.85) + math.exp(-3.25))
    assert torch.allclose(x.grad, torch.tensor([[[-share, share - 1]]], dtype=torch.float64), atol=1e-6)


def test_a_small_model_learns():
    """Trains with the cost of the reference minus the cost of all paths, as in MMI. The loss becomes small, and stays above 0 because probabilities are below 1."""
    torch.manual_seed(3)
    features = torch.randn((4, 10, 6))
    targets = [[1, 2], [2, 2, 1], [3], [1, 3, 1]]
    model = torch.nn.Linear(6, 4)
    anything = wf.Fst.from_arcs([(0, 0, column + 1, column + 1, 0.0) for column in range(4)], {0: 0.0})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    references = [wft.ctc_alignments(target) for target in targets]
    losses = []
    for _ in range(60):
        scores = model(features)
        loss = (wft.composition_cost(scores, None, references) - wft.composition_cost(scores, None, anything)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 20 and 0 < losses[-1] < losses[0] / 4


def dense_cost(graph, scores):
    """Total cost by torch's own operations: a matrix of probabilities for each column. The graph has no epsilons."""
    steps = torch.zeros((scores.shape[1], graph.num_states, graph.num_states), dtype=torch.float64)
    for source in range(graph.num_states):
        for arc in graph.arcs_of(source):
            steps[arc.ilabel - 1, source, arc.nextstate] += math.exp(-arc.weight)
    mass = torch.zeros(graph.num_states, dtype=torch.float64)
    mass[graph.start] = 1
    for row in scores:
        mass = mass @ (row.exp()[:, None, None] * steps).sum(0)
    return -torch.log(mass @ torch.tensor(list(graph.final_costs), dtype=torch.float64).neg().exp())


def denominator(seed, columns=4, states=3):
    """A graph of phones with costs, like a phone language model: every state has an arc for each column."""
    generator = torch.Generator().manual_seed(seed)
    draw = lambda: float(torch.rand((), generator=generator)) + 0.5
    arcs = [(s, int(torch.randint(0, states, (), generator=generator)), column + 1, column + 1, draw()) for s in range(states) for column in range(columns)]
    return wf.Fst.from_arcs(arcs, {0: 0.25, states - 1: 0.0})


@pytest.mark.parametrize("seed", range(4))
def test_mmi_loss_equals_that_of_torchs_operations(seed):
    """Reference minus denominator: values and gradients against sums over dense matrices, and against finite differences."""
    graph, references = denominator(seed), [wft.ctc_alignments([1, 2]), wft.ctc_alignments([3])]
    logits = torch.randn((2, 5, 4), generator=torch.Generator().manual_seed(50 + seed), dtype=torch.float64).requires_grad_()
    lengths = [5, 4]

    def loss(logits):
        x = logits.log_softmax(2)
        return wft.composition_cost(x, lengths, references) - wft.composition_cost(x, lengths, graph)

    x = logits.log_softmax(2)
    theirs = torch.stack([dense_cost(reference, row[:length]) - dense_cost(graph, row[:length]) for reference, row, length in zip(references, x, lengths)])
    ours = loss(logits)
    assert torch.allclose(ours, theirs, atol=1e-5)
    wanted = torch.autograd.grad(theirs[0] + 2 * theirs[1], logits)[0]
    assert torch.allclose(torch.autograd.grad(ours[0] + 2 * ours[1], logits)[0], wanted, atol=1e-5)
    assert torch.autograd.gradcheck(loss, (logits,), eps=1e-2, atol=2e-3)


def cost_along_arcs(lattice, scores, scale):
    """Total cost of a lattice with the scores in place of its acoustic costs, state by state."""
    mass = [torch.tensor(float(s == 0), dtype=torch.float64) for s in range(lattice.num_states)]
    frames, offsets, total = lattice.frames, lattice.arc_offsets, 0
    for s in range(lattice.num_states):
        for arc in lattice.arcs[offsets[s] : offsets[s + 1]]:
            score = scale * scores[frames[s], arc.ilabel - 1] if arc.ilabel else torch.tensor(-arc.acoustic_cost)
            mass[arc.nextstate] = mass[arc.nextstate] + mass[s] * torch.exp(score - arc.graph_cost)
        total = total + mass[s] * math.exp(-lattice.final_graph_costs[s] - lattice.final_acoustic_costs[s])
    return -torch.log(total)


@pytest.mark.parametrize("columns", [None, [-1, 3, 1, 0, 2]])
@pytest.mark.parametrize("seed", range(3))
def test_costs_of_lattices(seed, columns):
    """With narrow beams, against sums over the arcs of the lattices; with wide ones, against the whole composition."""
    graph, scale = denominator(seed), 0.5
    x = torch.randn((3, 9, 4), generator=torch.Generator().manual_seed(seed), dtype=torch.float64).mul(3).log_softmax(2).requires_grad_()
    by_label = x if columns is None else x[:, :, columns[1:]]  # what the graph reads as label - 1
    make = lambda **options: wf.Decoder(wf.Graph(graph, columns), acoustic_scale=scale, **options)
    costs, results = wft.lattice_costs(make(beam=4, lattice_beam=2), x, [9, 4, 9])
    assert sum(result.lattice.num_arcs for result in results) > 22  # more than a path each
    theirs = torch.stack([cost_along_arcs(result.lattice, row, scale) for result, row in zip(results, by_label)])
    assert torch.allclose(costs, theirs, atol=1e-5)
    weights = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64)
    wanted = torch.autograd.grad((weights * theirs).sum(), x, retain_graph=True)[0]
    assert torch.allclose(torch.autograd.grad((weights * costs).sum(), x, retain_graph=True)[0], wanted, atol=1e-5)
    whole, _ = wft.lattice_costs(make(beam=1000, lattice_beam=1000, max_active=100000), x, [9, 4, 9])
    total = wft.composition_cost(scale * by_label, [9, 4, 9], graph)
    assert torch.allclose(whole, total, atol=1e-4) and (costs > whole).all()
    ours, wanted = (torch.autograd.grad((weights * each).sum(), x, retain_graph=True)[0] for each in (whole, total))
    assert torch.allclose(ours, wanted, atol=1e-4)


def test_costs_of_lattices_where_nothing_is_found():
    graph = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5), (1, 2, 2, 2, 0.0)], {2: 0.0})
    x = torch.zeros((2, 3, 2)).log_softmax(2).requires_grad_()
    costs, _ = wft.lattice_costs(wf.Decoder(graph, lattice_beam=4), x, [2, 0])
    assert costs[0].item() == pytest.approx(0.5 + 2 * math.log(2)) and math.isinf(costs[1])
    costs[0].backward()
    assert not x.grad[1].any() and x.grad[0, :, :].sum().item() == pytest.approx(-2)
    with pytest.raises(wf.ArgumentError, match="lattice_beam"):
        wft.lattice_costs(wf.Decoder(graph), x)


def test_bad_arguments():
    x = torch.zeros((2, 3, 4))
    graph = wft.ctc_alignments([1])
    for arguments, message in (
        ((x[0], None, graph), "expected .utterances"),
        ((x, [3], graph), "lengths"),
        ((x, [3, 4], graph), "lengths"),
        ((x, None, [graph] * 3), "3 graphs for 2"),
        ((x, None, graph, [torch.zeros(1)] * 2), "weights of 2 graphs"),
        ((x, None, graph, torch.zeros(1)), "1 weights for"),
        ((x + math.nan, None, graph), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            wft.composition_cost(*arguments)
    with pytest.raises(ValueError, match="reduction"):
        wft.ctc_loss(x, torch.tensor([1]), [3], [1], reduction="median")
    assert wft.composition_cost(x[:0], None, []).shape == (0,)
    assert math.isclose(wft.ctc_loss(torch.zeros((0, 1, 4)), torch.zeros(0), [0], [0], reduction="sum").item(), 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_tensors_as_scores(dtype):
    """Tensors are read in place: padded or with strides. Tensors that require gradients are refused; detached ones are accepted."""
    graph = wf.build_ctc_graph(["<blk>", "a", "b"])
    decoder = wf.Decoder(graph, blank=0)
    torch.manual_seed(5)
    whole = torch.randn((3, 20, 8)).log_softmax(2).to(getattr(torch, dtype))
    batch = whole[:, :, :3]
    plain = batch.float().tolist()
    expected = [decoder.decode(memory_of(rows[:length]))[0] for rows, length in zip(plain, (20, 7, 0))]
    for scores, lengths in ((batch, torch.tensor([20, 7, 0])), ([batch[0], batch[1, :7], batch[2, :0]], None), (batch.contiguous(), [20, 7, 0])):
        assert [(r.text, r.cost, r.words) for r in decoder.decode(scores, lengths)] == [(r.text, r.cost, r.words) for r in expected]
    with pytest.raises((ValueError, TypeError), match="contiguous"):
        decoder.decode(whole.transpose(1, 2))
    with pytest.raises(TypeError, match="grad"):
        decoder.decode(batch.clone().requires_grad_())
    assert decoder.decode(batch.clone().requires_grad_().detach(), [20, 7, 0])[0].text == expected[0].text


def memory_of(rows):
    import array

    numbers = array.array("f", [number for row in rows for number in row])
    return memoryview(numbers).cast("B").cast("f", (len(rows), 3)) if rows else memoryview(numbers)


def test_lengths_may_be_a_tensor_and_streams_take_tensors():
    decoder = wf.Decoder(wf.build_ctc_graph(["<blk>", "a", "b"]), blank=0)
    torch.manual_seed(6)
    scores = torch.randn((1, 30, 3)).log_softmax(2)
    stream = decoder.stream()
    for chunk in scores[0].split(7):
        stream.advance(chunk)
    whole = decoder.decode(scores, torch.tensor([30], dtype=torch.int32))[0]
    result = stream.finish()
    assert (result.text, result.cost, result.words) == (whole.text, whole.cost, whole.words)


@pytest.mark.parametrize(("page", "blocks"), [("tutorials/training.md", 5), ("migrating/k2.md", 2)])
def test_code_of_pages(page, blocks, tmp_path):
    assert check_page(ROOT / "docs" / page, tmp_path) >= blocks


def test_lists_of_tensors_are_read_through_their_attributes():
    """torch's __dlpack__ is not called for plain tensors in host memory. Everything else gives what DLPack gives: a result, or an error that names the utterance."""
    graph = wf.build_ctc_graph(["<blk>", "a", "b"])
    decoder = wf.Decoder(graph, check_scores="off")
    generator = torch.Generator().manual_seed(5)
    wide = torch.randn((30, 8), generator=generator).log_softmax(1)
    views = [wide[:, :3], wide[::2, 2:5], wide[:1, 5:], wide[3:9, 1:4].half(), wide[:, :3].to(torch.bfloat16), wide[:0, :3], wide[:, :3].double()]
    wanted = [decoder.decode(view.float().contiguous().numpy())[0] for view in views]

    def values(results):
        return [(result.text, result.cost, result.num_frames) for result in results]

    assert values(decoder.decode(views)) == values(wanted) and values(decoder.decode(tuple(views), [len(view) for view in views])) == values(wanted)
    called = []
    original = torch.Tensor.__dlpack__
    torch.Tensor.__dlpack__ = lambda self, *args, **kwargs: called.append(self) or original(self, *args, **kwargs)
    try:
        assert values(decoder.decode(views[:5])) == values(wanted[:5]) and not called
    finally:
        torch.Tensor.__dlpack__ = original
    good, grad = wide[:, :3], wide[:, :3].clone().requires_grad_()
    bad = [(grad, "grad"), (wide[:, :3].int(), "int32"), (wide[:, ::2], "contiguous"), (wide.T, "contiguous"), (wide[None, :, :3], "shape"), (wide[0], "shape")]
    bad += [(good.to_sparse(), ""), (torch.empty((3, 3), device="meta"), ""), (torch.randn((3, 3), dtype=torch.complex64), "complex64")]
    for tensor, message in bad:
        with pytest.raises((TypeError, ValueError), match=f"utterance 1: .*{message}"):
            decoder.decode([good, tensor, good])
    assert values(decoder.decode([good, torch.nn.Parameter(good, requires_grad=False)])) == values(decoder.decode([good, good]))


MANY_MACHINES = (ROOT / "docs" / "tutorials" / "scale-out.md").read_text(encoding="utf-8")
SCORES = sorted((ROOT / "examples" / "ctc" / "logp_phone").glob("*.npy"))[:12]


class Network(torch.nn.Module):
    """Stands for an acoustic model: "samples" are logits, 40 a frame. [B, T * 40] and lengths give [B, T, 40] and lengths."""

    def forward(self, samples, lengths):
        return samples.reshape(samples.shape[0], -1, 40), lengths // 40


def test_the_pages_own_model(tmp_path):
    """Its class, with another network and the repository's graph. Logits are real scores plus a constant in each frame, which log_softmax takes off."""
    (code,) = re.findall(r"```py\n(# my_model.py.*?)```", MANY_MACHINES, re.DOTALL)
    torch.jit.script(Network()).save(str(tmp_path / "ctc.pt"))
    names = {"/models/ctc.pt": tmp_path / "ctc.pt", "/models/lm.arpa.gz": CTC / "lm3.arpa.gz", "/models/lexicon.txt": CTC / "lexicon_phone.txt", "/models/tokens.txt": CTC / "tokens_phone.txt"}
    for name, path in names.items():
        code = code.replace(name, str(path))
    made = {}
    exec(code, made)  # noqa: S102
    model = made["MyModel"]("cpu", 1)
    logits = [np.load(path).astype(np.float32) + 3 for path in SCORES]
    decoder = model.decoder(None, {})
    parts = decode_pieces(model, decoder, [(0, one.reshape(-1)) for one in logits])
    expected = decoder.decode([torch.from_numpy(one).log_softmax(-1).numpy() for one in logits])
    assert [(" ".join(word.text for word in part.words), part.cost) for part in parts] == [(result.text, result.cost) for result in expected]
    assert sum(len(part.words) for part in parts) > 50


SAVED = f"""
import os, signal, torch
import warpfst as wf
from warpfst.transcribe import ArrayModel

class MyModel(ArrayModel):
    sample_rate, frame_shift = 25, 0.04
    decoder_options = {{"acoustic_scale": 0.7, "blank": 0}}
    num_calls = 0

    def __init__(self, device, num_threads):
        pass

    def scores(self, pieces):
        self.num_calls += 1
        if self.num_calls == 3 and os.environ["RANK"] == "1" and os.path.exists("kill"):
            os.remove("kill")
            os.kill(os.getpid(), signal.SIGKILL)
        with open("scored", "a") as log:
            log.write("." * len(pieces))
        return [torch.tensor(piece, dtype=torch.float32).log_softmax(-1) for piece in pieces], None

    def build_graph(self):
        return wf.build_ctc_graph("{CTC}/tokens_phone.txt", "{CTC}/lexicon_phone.txt", "{CTC}/lm3.arpa.gz")
"""


def test_the_pages_torchrun_goes_on_after_a_kill(tmp_path):
    """The page's command with two processes on the CPU, one of which is killed in the middle of its work."""
    (command,) = re.findall(r"```sh\n(torchrun .*?)```", MANY_MACHINES, re.DOTALL)
    output = "--redirects 1 --tee 1 --log_dir log"  # torch 1.13 fails in Python 3.11 with its defaults
    changes = {"torchrun ": f"{sys.executable} -m torch.distributed.run {output} ", "_node 8": "_node 2", "warpfst transcribe": f"{sys.executable} -m warpfst transcribe --batch-seconds 1"}
    for old, new in {**changes, "cuda:$LOCAL_RANK": "cpu"}.items():
        assert old in command
        command = command.replace(old, new)
    (tmp_path / "recordings.list").write_text("".join(f"{path.stem} {path}\n" for path in SCORES))
    (tmp_path / "my_model.py").write_text(SAVED)
    (tmp_path / "kill").touch()
    run = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert not (tmp_path / "kill").exists()
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz")
    results = wf.Decoder(graph, acoustic_scale=0.7, blank=0).decode([torch.tensor(np.load(path), dtype=torch.float32).log_softmax(-1) for path in SCORES])
    found = {path.stem: json.loads((tmp_path / "out" / f"{path.stem}.json").read_text())["text"] for path in SCORES}
    assert found == {path.stem: result.text for path, result in zip(SCORES, results)}
    assert len((tmp_path / "scored").read_text()) >= len(SCORES) == len(list((tmp_path / "out").iterdir()))


def test_ctc_decoder_gives_tensors():
    from warpfst.compat import ctc_decoder

    emissions = torch.randn((3, 12, 5), generator=torch.Generator().manual_seed(2), requires_grad=True).log_softmax(2)
    decoder = ctc_decoder(None, ["-", "|", "a", "b", "c"], nbest=2)
    lengths = torch.tensor([12, 5, 0])
    for several, scores, length in zip(decoder(emissions, lengths), emissions, lengths):
        same = decoder(scores.detach()[:length].double().numpy()[None])[0] if length else several
        for one, other in zip(several, same):
            assert (one.tokens.dtype, one.timesteps.dtype) == (torch.int64, torch.int32)
            assert one.tokens.tolist() == list(other.tokens) and abs(one.score - other.score) < 1e-4
    decoder.decode_begin()
    decoder.decode_step(emissions[0])
    decoder.decode_end()
    best = decoder.get_final_hypothesis()[0]
    assert torch.equal(best.tokens, decoder(emissions)[0][0].tokens) and decoder.idxs_to_tokens(best.tokens)[0] == "|"
