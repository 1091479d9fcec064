"""Differentiable total costs for torch: sums over all paths of a composition, such as the CTC loss. `import warpfst.torch`. Needs torch; does not need numpy.

    emissions (a state per frame, an arc per column)  o  graph (input label = column + 1)  ->  total cost = -ln sum over paths of exp(-cost)
                   ^ gradient                            ^ gradient

Compositions run on the device of the tensors. Emissions are copied through host memory. Arc costs are float32; sums are computed in double.
Gradients are computed together with the cost. Second derivatives are not supported.
"""

from __future__ import annotations

import array
import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from .fst.batches import FstBatch
from .fst.container import Fst


def _host(tensor: Any) -> Any:
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()


def _emissions(log_probs: Any) -> Fst:
    """[frames, columns] in host memory as an acceptor: from each state t to t + 1, arcs with label v + 1 and cost -log_probs[t, v]."""
    frames, columns = log_probs.shape
    arcs = torch.empty((frames, columns, 4), dtype=torch.int32)  # wf_arc: nextstate, weight, ilabel, olabel
    arcs[..., 0] = torch.arange(1, frames + 1, dtype=torch.int32)[:, None]
    arcs[..., 1] = (-log_probs).view(torch.int32)
    arcs[..., 2:] = torch.arange(1, columns + 1, dtype=torch.int32)[None, :, None]
    sources = torch.arange(frames, dtype=torch.int32)[:, None].expand(frames, columns).contiguous()
    return Fst._built("log", frames + 1, 0, {frames: 0.0}, frames * columns, ctypes.c_void_p(sources.data_ptr()), ctypes.c_void_p(arcs.data_ptr()))


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
        emissions = [_emissions(host[i, :length]) for i, length in enumerate(lengths)]
        used = [_reweighted(graph, _host(given)) for graph, given in zip(graphs, weights)] if weights else graphs
        on_scores, on_weights = ctx.needs_input_grad[0], any(ctx.needs_input_grad[3:])
        with FstBatch.compose(emissions, used, order="canonical", device=str(log_probs.device)) as batch:
            costs = torch.tensor(list(batch.forward_score(gradients=on_scores or on_weights)), dtype=torch.float64)
            if on_scores:
                gradient = torch.zeros(log_probs.shape, dtype=torch.float64)
                for i, length in enumerate(lengths):
                    gradient[i, :length] = -_tensor(batch.gradients(i, "first")).reshape(length, host.shape[2])
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
