"""Differentiable total costs for torch: sums over all paths of a composition, such as the CTC loss. `import warpfst.torch`. Needs torch; does not need numpy.

    emissions (a state per frame, an arc per column)  o  graph (input label = column + 1)  ->  total cost = -ln sum over paths of exp(-cost)
                   ^ gradient                            ^ gradient

Compositions run on the device of the tensors. Emissions are copied through host memory, with the columns that a graph reads. Arc costs are float32; sums are computed in double.
Gradients are computed together with the cost. Second derivatives are not supported.
"""

from __future__ import annotations

import array
import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch

from .decoder import Decoder
from .errors import ArgumentError
from .fst.batches import FstBatch
from .fst.container import Fst
from .lattice import Lattice
from .results import Results


def _host(tensor: Any) -> Any:
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()


def _records(records: Any, numbers: int) -> Any:
    """A copy of an array of C structures of so many 32-bit numbers: int32 [count, numbers]."""
    return torch.frombuffer(bytearray(bytes(records)), dtype=torch.int32).reshape(-1, numbers) if len(records) else torch.empty((0, numbers), dtype=torch.int32)


def _log_fst(num_states: int, finals: dict[int, float], sources: Any, arcs: Any) -> Fst:
    """sources int32 [num_arcs]; arcs int32 [num_arcs, 4], as wf_arc: nextstate, weight, ilabel, olabel. Both contiguous."""
    return Fst._built("log", num_states, 0, finals, len(sources), ctypes.c_void_p(sources.data_ptr()), ctypes.c_void_p(arcs.data_ptr()))


def _columns_read(graph: Fst, count: int) -> Any:
    """The columns below `count` that the graph reads, in order."""
    labels = _records(graph.arcs, 4)[:, 2].unique().to(torch.int64)
    return labels[(labels > 0) & (labels <= count)] - 1


def _emissions(log_probs: Any, columns: Any) -> Fst:
    """[frames, columns] in host memory as an acceptor: from each state t to t + 1, arcs with label columns[v] + 1 and cost -log_probs[t, columns[v]]."""
    frames, count = len(log_probs), len(columns)
    arcs = torch.empty((frames, count, 4), dtype=torch.int32)
    arcs[..., 0] = torch.arange(1, frames + 1, dtype=torch.int32)[:, None]
    arcs[..., 1] = (-log_probs.index_select(1, columns)).view(torch.int32)
    arcs[..., 2:] = (columns + 1).to(torch.int32)[None, :, None]
    sources = torch.arange(frames, dtype=torch.int32)[:, None].expand(frames, count).flatten().contiguous()
    return _log_fst(frames + 1, {frames: 0.0}, sources, arcs)


def _reweighted(graph: Fst, weights: Any) -> Fst:
    numbers = array.array("f")
    numbers.frombytes(ctypes.string_at(weights.data_ptr(), 4 * weights.numel()) if weights.numel() else b"")
    return graph.with_weights(numbers)


def _tensor(numbers: array.array[float]) -> Any:
    return torch.frombuffer(numbers, dtype=torch.float64) if len(numbers) else torch.zeros(0, dtype=torch.float64)


def _in_log_semiring(graphs: Fst | Sequence[Fst]) -> list[Fst]:
    return [graph.with_semiring("log") for graph in ([graphs] if isinstance(graphs, Fst) else graphs)]


class _CompositionCost(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Total costs [B] of emissions o graphs. The last arguments are tensors of weights: none, or one for each graph."""

    @staticmethod
    def forward(ctx: Any, log_probs: Any, lengths: list[int], graphs: list[Fst], *weights: Any) -> Any:
        host = _host(log_probs)
        read = [_columns_read(graph, host.shape[2]) for graph in graphs] * (len(lengths) // len(graphs))
        emissions = [_emissions(host[i, :length], read[i]) for i, length in enumerate(lengths)]
        used = [_reweighted(graph, _host(given)) for graph, given in zip(graphs, weights)] if weights else graphs
        on_scores, on_weights = ctx.needs_input_grad[0], any(ctx.needs_input_grad[3:])
        with FstBatch.compose(emissions, used, order="canonical", device=str(log_probs.device)) as batch:
            costs = torch.tensor(list(batch.forward_score(gradients=on_scores or on_weights)), dtype=torch.float64)
            if on_scores:
                gradient = torch.zeros(log_probs.shape, dtype=torch.float64)
                for i, length in enumerate(lengths):
                    gradient[i, :length].index_copy_(1, read[i], -_tensor(batch.gradients(i, "first")).reshape(length, len(read[i])))
                ctx.scores_gradient = gradient.to(log_probs)
            if on_weights:
                ctx.weights_gradients = [_tensor(batch.gradients(i, "second")) for i in range(len(lengths))]
        ctx.weights = weights
        return costs.to(log_probs)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, cost_gradients: Any) -> Any:
        scores = ctx.scores_gradient * cost_gradients[:, None, None] if ctx.needs_input_grad[0] else None
        weights: list[Any] = [None] * len(ctx.weights)
        if any(ctx.needs_input_grad[3:]):
            rows = [factor * row for factor, row in zip(cost_gradients.to(device="cpu", dtype=torch.float64), ctx.weights_gradients)]
            rows = [sum(rows)] if len(ctx.weights) == 1 else rows  # one graph for all utterances
            weights = [row.to(given) if needed else None for row, given, needed in zip(rows, ctx.weights, ctx.needs_input_grad[3:])]
        return (scores, None, None, *weights)


def composition_cost(log_probs: Any, lengths: Any, graphs: Fst | Sequence[Fst], weights: Any = None) -> Any:
    """Total cost of each utterance over all paths of its graph: [B]. If there is no path, the cost is +infinity and its gradients are 0.

    log_probs  [B, T, V] natural logarithms, on the CPU or a GPU; composition runs on that device
    lengths    number of frames of each utterance, [B]; None: T
    graphs     an Fst for each utterance, or one for all. Input labels are columns + 1, as in decoding graphs. Used in the log semiring
    weights    tensor [num_arcs] that replaces the arc weights of the graph and can be trained; for several graphs, a list of tensors

    For training with a reference graph and a denominator graph, as in MMI: composition_cost(x, n, references) - composition_cost(x, n, denominator).
    """
    if log_probs.dim() != 3:
        raise ValueError(f"log_probs of shape {tuple(log_probs.shape)}, expected [utterances, frames, columns]")
    count, frames, _ = log_probs.shape
    sizes = [frames] * count if lengths is None else [int(length) for length in lengths]
    if len(sizes) != count or not all(0 <= size <= frames for size in sizes):
        raise ValueError(f"lengths {sizes} for {count} utterances of at most {frames} frames")
    taken = _in_log_semiring(graphs)
    if len(taken) not in (1, count):
        raise ValueError(f"{len(taken)} graphs for {count} utterances")
    given = [] if weights is None else [weights] if isinstance(weights, torch.Tensor) else list(weights)
    if given and len(given) != len(taken):
        raise ValueError(f"weights of {len(given)} graphs for {len(taken)} graphs")
    return _CompositionCost.apply(log_probs, sizes, taken, *given) if count else log_probs.new_zeros(0)


class _ForwardScore(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    @staticmethod
    def forward(ctx: Any, fst: Fst, weights: Any) -> Any:
        needed = ctx.needs_input_grad[1]
        with FstBatch.create([_reweighted(fst, _host(weights))], str(weights.device)) as batch:
            cost = batch.forward_score(gradients=needed)[0]
            ctx.gradient = _tensor(batch.gradients(0)).to(weights) if needed else None
        return weights.new_tensor(cost)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, cost_gradient: Any) -> Any:
        return None, ctx.gradient * cost_gradient


def forward_score(fst: Fst, weights: Any) -> Any:
    """Total cost of all paths of an fst with the arc weights `weights` [num_arcs] and its own final costs. Like `warpfst.fst.forward_score`, but differentiable."""
    return _ForwardScore.apply(_in_log_semiring(fst)[0], weights)


def _lattice_fst(lattice: Lattice) -> tuple[Fst, Any, Any]:
    """A raw lattice in the log semiring; the frame of each arc and its input label, int64 [num_arcs]."""
    raw = _records(lattice.arcs, 6)  # wf_lattice_arc: ilabel, olabel, graph_cost, acoustic_cost, nextstate, scorer_cost
    costs = raw.view(torch.float32)
    numbers = [torch.frombuffer(bytearray(view), dtype=torch.float32) for view in (lattice.final_graph_costs, lattice.final_acoustic_costs, lattice.final_scorer_costs)]
    final = numbers[0] + numbers[1] + numbers[2]
    ends = torch.isfinite(final).nonzero().flatten().tolist()
    counts = torch.frombuffer(bytearray(lattice.arc_offsets), dtype=torch.int64).diff()
    sources = torch.arange(lattice.num_states, dtype=torch.int32).repeat_interleave(counts)
    arcs = torch.stack((raw[:, 4], (costs[:, 2] + costs[:, 3] + costs[:, 5]).view(torch.int32), raw[:, 0], raw[:, 1]), 1).contiguous()
    frames = torch.frombuffer(bytearray(lattice.frames), dtype=torch.int32)
    return _log_fst(lattice.num_states, {end: final[end].item() for end in ends}, sources, arcs), frames[sources.to(torch.int64)].to(torch.int64), raw[:, 0].to(torch.int64)


class _LatticeCosts(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Total costs [B] of lattices, where each arc reads a score."""

    @staticmethod
    def forward(ctx: Any, log_probs: Any, lattices: list[Lattice | None], columns: Any, scale: float) -> Any:
        costs = torch.full((len(lattices),), math.inf, dtype=torch.float64)
        found = [i for i, lattice in enumerate(lattices) if lattice is not None and lattice.num_states]
        gradient = torch.zeros(log_probs.shape, dtype=torch.float64) if ctx.needs_input_grad[0] else None
        made = [_lattice_fst(lattices[i]) for i in found]  # type: ignore[arg-type]
        if made:
            with FstBatch.create([fst for fst, _, _ in made], str(log_probs.device)) as batch:
                costs[found] = torch.tensor(list(batch.forward_score(gradients=gradient is not None)), dtype=torch.float64)
                for k, (i, (_, frames, labels)) in enumerate(zip(found, made)):
                    if gradient is not None:
                        reads = labels > 0
                        places = frames[reads] * log_probs.shape[2] + (labels[reads] - 1 if columns is None else columns[labels[reads]])
                        gradient[i].view(-1).index_add_(0, places, -scale * _tensor(batch.gradients(k))[reads])
        ctx.gradient = None if gradient is None else gradient.to(log_probs)
        return costs.to(log_probs)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator, unused-ignore]
    def backward(ctx: Any, cost_gradients: Any) -> Any:
        return ctx.gradient * cost_gradients[:, None, None], None, None, None


def lattice_costs(decoder: Decoder, log_probs: Any, lengths: Any = None) -> tuple[Any, Results]:
    """Decodes, and returns the total cost of the paths in each lattice, [B], and the results. As k2's intersect_dense_pruned, then get_tot_scores(log_semiring=True), negated.

    decoder    with lattice_beam, which is k2's output_beam; `beam` is its search_beam. The search runs on the decoder's device
    log_probs  [B, T, V] as for `decode`; may need gradients. Scores are multiplied by the decoder's acoustic_scale, and so are the gradients
    lengths    number of frames of each utterance, [B]; None: T

    The gradient of a score is how often the paths of the lattice take it, weighted by their probabilities. Where nothing was found the cost is +infinity and gradients are 0.
    With a wide beam and lattice_beam this is `composition_cost` of the graph.
    """
    if decoder.config["lattice_beam"] <= 0 or decoder.transducer is not None:
        raise ArgumentError("lattice_costs needs a decoder of log-probabilities with lattice_beam")
    given = log_probs.detach()
    results = decoder.decode(given.float() if given.dtype == torch.float64 else given, lengths)
    columns = None if decoder.graph._columns is None else torch.tensor(decoder.graph._columns, dtype=torch.int64)
    lattices = [None if result.error is not None or "not_final" in result.flags else result.lattice for result in results]
    return _LatticeCosts.apply(log_probs, lattices, columns, float(decoder.config["acoustic_scale"])), results


def ctc_alignments(labels: Sequence[int], blank: int = 0) -> Fst:
    """The CTC topology of one label sequence (columns of the scores, without blanks), as an acceptor of columns + 1.

    In state s, the last symbol read was number s of blank, label, blank, ... The last state is the start: nothing was read. Between different labels the blank can be
    skipped.
    """
    symbols = [blank] + [symbol for label in labels for symbol in (int(label), blank)]
    count = len(symbols)
    arcs = [(count, s) for s in range(min(2, count))]
    for s in range(count):
        skips = s + 2 < count and symbols[s + 2] not in (blank, symbols[s])
        arcs += [(s, to) for to in range(s, min(count, s + (3 if skips else 2)))]
    finals = dict.fromkeys(range(max(0, count - 2), count), 0.0)
    return Fst.from_arcs([(s, to, symbols[to] + 1, symbols[to] + 1, 0.0) for s, to in arcs], {**finals, **({count: 0.0} if not labels else {})}, start=count, semiring="log")


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
) -> Any:
    """torch.nn.functional.ctc_loss, computed by composition. Arguments (log_probs is [T, B, V]) and values are the same; gradients are the same after a log_softmax.

    It is slower than torch's function. It is an example of how to write other losses: call `composition_cost` with your own graphs.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction {reduction!r}, expected none, mean or sum")
    sizes = [int(size) for size in target_lengths]
    if targets.dim() == 1:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        rows = [targets[end - size : end].tolist() for size, end in zip(sizes, ends)]
    else:
        rows = [row[:size].tolist() for row, size in zip(targets, sizes)]
    costs = composition_cost(log_probs.transpose(0, 1), input_lengths, [ctc_alignments(row, blank) for row in rows])
    if zero_infinity:
        costs = torch.where(torch.isinf(costs), torch.zeros_like(costs), costs)
    if reduction == "mean":
        return (costs / torch.tensor(sizes, dtype=costs.dtype, device=costs.device).clamp(min=1)).mean()
    return costs.sum() if reduction == "sum" else costs
