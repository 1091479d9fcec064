"""Limits of operations: what they make can be read, and does not grow beyond what the caller allows."""

import math
import time

import numpy as np
import pytest

import warpfst as wf


@pytest.mark.parametrize("costs", [(-3e38, -3e38), (-3.4e38, -1e37)])
def test_sums_of_costs_below_the_lowest_float(costs):
    a, b = (wf.Fst.from_arcs([(0, 1, 1, 1, cost)], {1: 0.0}) for cost in costs)
    for compose in (wf.fst.compose, lambda x, y: wf.fst.compose(x, y, x), lambda x, y: wf.fst.compose_batch([x], [y])):
        with pytest.raises(wf.ArgumentError, match="lowest cost"):
            compose(a, b)
    finals = [wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: cost}) for cost in costs]
    with pytest.raises(wf.ArgumentError, match="lowest cost"):
        wf.fst.compose(*finals)


def test_the_largest_sums_can_be_read(tmp_path):
    for cost in (3e38, -1.7e38):  # the first sum is infinite: an arc on no path
        fst = wf.Fst.from_arcs([(0, 1, 1, 1, cost)], {1: 0.0})
        wf.fst.compose(fst, fst).write(tmp_path / "c.fst", "vector")
        wf.Fst.read(tmp_path / "c.fst")


def test_all_outputs_keep_to_max_states():
    """2^10 outputs of one input; a few outputs that are long."""
    many = wf.Fst.from_arcs([(i, i + 1, 1, olabel, 0.0) for i in range(10) for olabel in (2, 3)], {10: 0.0})
    full = wf.fst.determinize(many, det_type="nonfunctional")
    assert full.num_states > 1000 and wf.fst.determinize(many, det_type="nonfunctional", max_states=full.num_states).num_states == full.num_states
    for limit in (50, 900, full.num_states - 1):
        with pytest.raises(wf.NotDeterminizableError, match="max_states"):
            wf.fst.determinize(many, det_type="nonfunctional", max_states=limit)
    states = 400
    text = "".join(f"{i} {i + 1} 1 {i + 2}\n" for i in range(states)) + "".join(f"{s or 0} {states + 1 + i} 1 {1000 + i}\n" for i, s in enumerate([0, *range(states + 1, 2 * states)]))
    long = wf.Fst.from_text(text + f"{states}\n{2 * states}\n")
    with pytest.raises(wf.NotDeterminizableError, match="max_states"):
        wf.fst.determinize(long, det_type="nonfunctional", max_states=500)


@pytest.mark.parametrize("semiring", ["tropical", "log"])
def test_many_outputs_of_one_input(rng, semiring):
    """Paths with one input and 300 outputs, most of them several times: each output once, with the sum of its costs."""
    paths = [(int(state), int(olabel), float(cost)) for state, olabel, cost in zip(rng.integers(1, 4, 2000), rng.integers(1, 301, 2000), rng.integers(0, 64, 2000) / 8)]
    fst = wf.Fst.from_arcs([(0, state, 1, olabel, cost) for state, olabel, cost in paths], {state: 0.0 for state in (1, 2, 3)}, semiring=semiring)
    want = {}
    for _, olabel, cost in paths:
        before = want.get(olabel, math.inf)
        want[olabel] = min(before, cost) if semiring == "tropical" else -np.logaddexp(-before, -cost)
    full = wf.fst.determinize(fst, det_type="nonfunctional")
    first = full.arcs_of(full.start)
    assert len(first) == 1 and first[0].olabel == 0
    got = {arc.olabel: first[0].weight + arc.weight + full.final_costs[arc.nextstate] for arc in full.arcs_of(first[0].nextstate)}
    assert got == pytest.approx(want, abs=1e-4)


def test_outputs_take_time_by_their_number():
    """200,000 outputs of one input, in both orders; quadratic time would be a minute."""
    count = 200_000
    for step in (1, -1):
        fst = wf.Fst.from_arcs([(0, 1, 1, olabel, 0.0) for olabel in range(1, count + 1)[::step]], {1: 0.0})
        begin = time.process_time()
        assert wf.fst.determinize(fst, det_type="nonfunctional").num_arcs == count + 1
        assert time.process_time() - begin < 10
