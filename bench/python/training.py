#!/usr/bin/env python3
"""training [--device=cpu|cuda] [--batch=16] [--frames=400] [--columns=500] [--labels=60] [--repeat=N] [--json] [--record]

Time of a training step with the losses of warpfst.torch beside torch's ctc_loss: log_softmax of random logits, loss, backward. Needs torch and the package
(PYTHONPATH, WARPFST_LIBRARY). Milliseconds: medians of wall time. Before that, the CTC losses and their gradients are compared.

  torch ctc_loss, warpfst ctc_loss   the same loss; ours composes
  MMI                                reference minus a denominator: a graph of --states states with an arc for each of --branches columns, composed whole
  MMI, lattices                      the same denominator, searched with beam 10 and lattice beam 6
"""

import argparse
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure

import warpfst as wf
from warpfst import torch as wft


def make_denominator(states, branches, columns, generator):
    """Like a phone language model; each state has a self-loop on the blank."""
    draw = lambda low, high: int(torch.randint(low, high, (), generator=generator))
    arcs = [(s, draw(0, states), column, column, 1.0 + draw(0, 100) / 50) for s in range(states) for column in {draw(2, columns + 1) for _ in range(branches)}]
    return wf.Fst.from_arcs(arcs + [(s, s, 1, 1, 0.5) for s in range(states)], dict.fromkeys(range(states), 0.0), semiring="log")


def make_losses(arguments):
    """Losses by name: functions of log-probabilities [B, T, V]."""
    generator = torch.Generator().manual_seed(1)
    targets = torch.randint(1, arguments.columns, (arguments.batch, arguments.labels), generator=generator)
    sizes, lengths = torch.full((arguments.batch,), arguments.labels), torch.full((arguments.batch,), arguments.frames)
    references = [wft.ctc_alignments(row.tolist()) for row in targets]
    denominator = make_denominator(arguments.states, arguments.branches, arguments.columns, generator)
    decoder = wf.Decoder(denominator.with_semiring("tropical"), beam=10, lattice_beam=6, max_active=10000, device=arguments.device)
    on_device = targets.to(arguments.device)
    return {
        "torch ctc_loss": lambda x: torch.nn.functional.ctc_loss(x.transpose(0, 1), on_device, lengths, sizes, reduction="sum"),
        "warpfst ctc_loss": lambda x: wft.ctc_loss(x.transpose(0, 1), targets, lengths, sizes, reduction="sum"),
        "MMI": lambda x: (wft.composition_cost(x, None, references) - wft.composition_cost(x, None, denominator)).sum(),
        "MMI, lattices": lambda x: (wft.composition_cost(x, None, references) - wft.lattice_costs(decoder, x)[0]).sum(),
    }


def step(loss, logits):
    """Milliseconds, value and gradient of one step."""
    wait = torch.cuda.synchronize if logits.is_cuda else lambda: None
    logits.grad = None
    wait()
    begin = time.perf_counter()
    value = loss(logits.log_softmax(2))
    value.backward()
    wait()
    return 1e3 * (time.perf_counter() - begin), value.item(), logits.grad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    for name, default in (("batch", 16), ("frames", 400), ("columns", 500), ("labels", 60), ("states", 200), ("branches", 10), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(2)
    logits = (2 * torch.randn((arguments.batch, arguments.frames, arguments.columns), generator=generator)).to(arguments.device).requires_grad_()
    losses = make_losses(arguments)
    _, theirs, wanted = step(losses["torch ctc_loss"], logits.detach().double().requires_grad_())  # its float32 is off by 0.003 here
    _, ours, found = step(losses["warpfst ctc_loss"], logits)
    if abs(ours - theirs) > 1e-4 * abs(theirs) or (found - wanted).abs().max() > 1e-3:
        sys.exit(f"losses {ours} and {theirs}, gradients differ by {(found - wanted).abs().max()}")
    times = {name: [] for name in losses}
    for _ in range(arguments.repeat + 1):
        for name, loss in losses.items():
            times[name].append(step(loss, logits)[0])
    medians = {name: statistics.median(each[1:]) for name, each in times.items()}
    setup = f"training step, {arguments.device}, batch {arguments.batch}, {arguments.frames} frames, {arguments.columns} columns, {arguments.labels} labels"
    machine = measure.machine() if arguments.device == "cpu" else measure.machine_with_gpu()
    if arguments.json:
        import json

        print(json.dumps({"setup": setup, "machine": machine, "torch": torch.__version__, "ms": medians}))
    else:
        print(setup, "torch", torch.__version__, machine, file=sys.stderr)
        print(measure.table(["loss", "ms"], [[name, measure.figure(value)] for name, value in medians.items()]))
    if arguments.record:
        measure.record([(name, setup, measure.figure(value), "ms") for name, value in medians.items()], "./run bench training", machine=machine)


if __name__ == "__main__":
    main()
