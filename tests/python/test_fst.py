"""Fsts and symbol tables: views, files, and operations checked against an enumeration of all paths."""

import gc
import math
import pickle
import struct
import threading
import warnings

import numpy as np
import pytest
from conftest import arcs_of, best_by_strings, paths, random_fst

import warpfst as wf


def strings(fst):
    return best_by_strings(paths(*arcs_of(fst)))


def close(a, b):
    return a.keys() == b.keys() and all(math.isclose(a[key], b[key], abs_tol=1e-4) for key in a)


def test_arrays_are_views_of_what_was_built(rng):
    arcs, finals, fst = random_fst(rng)
    by_source = sorted(arcs, key=lambda arc: arc[0])
    view = np.asarray(fst.arcs)
    assert [tuple(row) for row in view[["nextstate", "ilabel", "olabel", "weight"]]] == [(t, i, o, np.float32(w)) for _, t, i, o, w in by_source]
    offsets = np.asarray(fst.arc_offsets)
    assert [len(fst.arcs_of(s)) for s in range(fst.num_states)] == list(np.diff(offsets)) and fst.num_arcs == len(arcs)
    assert {s: c for s, c in enumerate(fst.final_costs) if c < math.inf} == finals
    with pytest.raises(ValueError):
        view["weight"][0] = 1


def test_arcs_are_a_sequence(rng):
    _, _, fst = random_fst(rng)
    listed = [arc for state in range(fst.num_states) for arc in fst.arcs_of(state)]
    assert list(fst.arcs) == listed and isinstance(fst.arcs[0], wf.fst.Arc) and len(fst.arcs) == fst.num_arcs
    assert fst.arcs[2] == listed[2] and fst.arcs[-1] == listed[-1] and fst.arcs[3:5] == listed[3:5] and listed[1] in fst.arcs
    with pytest.raises(IndexError):
        fst.arcs[fst.num_arcs]
    with pytest.raises(TypeError):
        fst.arcs[0] = listed[1]
    assert bytes(fst.arcs) == np.asarray(fst.arcs).tobytes() and np.array(fst.arcs).flags.owndata and not np.asarray(fst.arcs).flags.writeable
    empty = wf.Fst.from_text("").arcs
    assert len(empty) == 0 and list(empty) == [] and len(np.asarray(empty)) == 0


def test_views_outlive_the_fst(rng):
    _, _, fst = random_fst(rng)
    view, records = np.asarray(fst.arcs), fst.arcs
    before, listed = view.copy(), list(records)
    fst.close()
    del fst
    gc.collect()
    [random_fst(rng) for _ in range(50)]  # would reuse the memory if it had been freed
    assert np.array_equal(view, before) and list(records) == listed


def test_closed_objects_raise(rng):
    _, _, fst = random_fst(rng)
    fst.close()
    fst.close()
    operations = (lambda: wf.fst.connect(fst), lambda: wf.fst.compose(fst, fst), lambda: wf.Graph(fst), lambda: pickle.dumps(fst))
    for use in (lambda: fst.num_states, lambda: fst.arcs, *operations):
        with pytest.raises(wf.StateError, match="closed"):
            use()
    assert "closed" in repr(fst)


@pytest.mark.parametrize("format", ["native", "vector", "const"])
def test_files_and_pickles(rng, tmp_path, format):
    words = wf.Symbols(["<eps>", "a", "b", "c"])
    for _ in range(20):
        _, _, fst = random_fst(rng, acyclic=False)
        acyclic = random_fst(rng)[2]
        fst = fst.with_symbols(words, words)
        fst.write(tmp_path / "x.fst", format)
        for again in (wf.Fst.read(tmp_path / "x.fst"), pickle.loads(pickle.dumps(fst))):
            assert wf.fst.equal(fst, again)
        assert strings(wf.Fst.from_text(acyclic.with_symbols(words, words).to_text(), words, words)) == strings(acyclic)
        assert dict(pickle.loads(pickle.dumps(fst)).osymbols) == dict(words)


def test_truncated_files_are_refused(rng, tmp_path):
    _, _, fst = random_fst(rng)
    data = fst.to_bytes()
    for size in range(0, len(data) - 1, 37):
        with pytest.raises(wf.Error):
            wf.Fst.from_bytes(data[:size])


def test_compose_is_the_join_of_paths(rng):
    for _ in range(100):
        a_arcs, a_finals, a = random_fst(rng)
        b_arcs, b_finals, b = random_fst(rng)
        expected = best_by_strings((i, o2, c1 + c2) for i, o, c1 in paths(a_arcs, a_finals) for i2, o2, c2 in paths(b_arcs, b_finals) if o == i2)
        for order in ("openfst", "canonical"):
            assert close(strings(wf.fst.compose(a, b, order=order)), expected)
    composed, origins = wf.fst.compose_with_origins(a, b)
    assert len(origins) == 2 * composed.num_arcs


def test_compose_several_at_once(rng):
    for _ in range(100):
        a, b, c, d = (random_fst(rng)[2] for _ in range(4))
        for order in ("openfst", "canonical"):
            both = wf.fst.compose(a, b, order=order, connect=False)
            assert wf.fst.equal(wf.fst.compose(a, b, c, order=order), wf.fst.compose(both, c, order=order))
        by_pairs = wf.fst.compose(wf.fst.compose(wf.fst.compose(a, b), c), d)
        assert close(strings(wf.fst.compose(a, b, c, d)), strings(by_pairs))
    with pytest.raises(wf.UnsupportedError, match="order=canonical"):
        wf.fst.compose(a, b, c, device="cuda")


def test_compose_batch(rng):
    fsts = [random_fst(rng)[2] for _ in range(6)]
    batch = wf.fst.compose_batch(fsts[0], fsts[1:])
    assert all(wf.fst.equal(one, wf.fst.compose(fsts[0], other)) for one, other in zip(batch, fsts[1:]))
    assert wf.fst.compose_batch([], []) == []
    with pytest.raises(ValueError, match="pairs"):
        wf.fst.compose_batch(fsts[:2], fsts[:3])


def test_operations_keep_the_paths(rng):
    for _ in range(60):
        arcs, finals, fst = random_fst(rng)
        everything = best_by_strings(paths(arcs, finals))
        for operation in (wf.fst.connect, wf.fst.topsort, wf.fst.arcsort, wf.fst.rmepsilon, wf.fst.push, wf.fst.epsilons_last):
            assert close(strings(operation(fst)), everything), operation
        assert close(strings(wf.fst.invert(fst)), {(o, i): c for (i, o), c in everything.items()})
        assert close(strings(wf.fst.reverse(fst)), {(i[::-1], o[::-1]): c for (i, o), c in everything.items()})
        acceptor = wf.fst.project(fst)
        expected = best_by_strings((i, i, c) for (i, _), c in everything.items())
        assert close(strings(wf.fst.minimize(wf.fst.determinize(wf.fst.rmepsilon(acceptor)))), expected)
        assert wf.fst.equivalent(wf.fst.determinize(wf.fst.rmepsilon(acceptor)), wf.fst.minimize(wf.fst.determinize(wf.fst.rmepsilon(acceptor))), 1e-3)


def test_union_concat_closure(rng):
    (a_arcs, a_finals, a), (b_arcs, b_finals, b) = random_fst(rng), random_fst(rng)
    left, right = list(paths(a_arcs, a_finals)), list(paths(b_arcs, b_finals))
    assert close(strings(wf.fst.union(a, b)), best_by_strings(left + right))
    assert close(strings(wf.fst.concat(a, b)), best_by_strings((i + i2, o + o2, c + c2) for i, o, c in left for i2, o2, c2 in right))
    assert "acyclic" not in wf.fst.closure(a).properties
    with pytest.raises(wf.ArgumentError):
        wf.fst.union()


def test_forward_scores_are_sums_over_paths(rng):
    for _ in range(40):
        arcs, finals, fst = random_fst(rng, semiring="log")
        costs = [cost for _, _, cost in paths(arcs, finals)]
        total = -np.logaddexp.reduce([-cost for cost in costs]) if costs else math.inf
        assert math.isclose(wf.fst.forward_score(fst), total, abs_tol=1e-5)
        score, gradients = wf.fst.forward_score_gradients(fst)
        assert math.isclose(score, total, abs_tol=1e-5) and len(gradients) == len(arcs)
        best = min(costs, default=math.inf)
        assert math.isclose(wf.fst.forward_score(fst.with_semiring("tropical")), best, abs_tol=1e-5)
        distances = wf.fst.shortest_distance(fst.with_semiring("tropical"), reverse=True)
        assert math.isclose(distances[0], best, abs_tol=1e-4)
        one = wf.fst.shortest_path(fst.with_semiring("tropical"))
        assert math.isclose(min(strings(one).values(), default=math.inf), best, abs_tol=1e-4)


def test_gradients_by_finite_differences(rng):
    arcs, finals, fst = random_fst(rng, num_arcs=10, semiring="log")
    order = sorted(range(len(arcs)), key=lambda i: arcs[i][0])
    _, gradients = wf.fst.forward_score_gradients(fst)
    for place, i in enumerate(order):
        s, t, a, b, w = arcs[i]
        moved = [wf.fst.forward_score(wf.Fst.from_arcs([*arcs[:i], (s, t, a, b, w + d), *arcs[i + 1 :]], finals, semiring="log")) for d in (1 / 64, -1 / 64)]
        assert math.isclose((moved[0] - moved[1]) * 32, gradients[place], abs_tol=2e-3)


def test_relabel_and_disambiguation():
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.5)], {1: 0.0})
    assert fst.arcs_of(0) == [wf.fst.Arc(1, 2, 0.5, 1)]
    assert wf.fst.relabel(fst, [(1, 7)], [(2, 8)]).arcs_of(0) == [wf.fst.Arc(7, 8, 0.5, 1)]
    assert wf.fst.remove_disambig(fst, [1]).arcs_of(0) == [wf.fst.Arc(0, 2, 0.5, 1)]
    assert wf.fst.Arc(9, 9, 0.0, 1) in wf.fst.add_self_loops(fst, [9], [9]).arcs_of(1)
    with pytest.raises(ValueError, match="2 input labels"):
        wf.fst.add_self_loops(fst, [1, 2], [1])
    with pytest.raises(ValueError, match="32 bits"):
        wf.fst.relabel(fst, [(1, 2**32 + 1)])


def test_not_determinizable_has_a_witness():
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.0), (0, 2, 1, 3, 0.0)], {1: 0.0, 2: 0.0})
    with pytest.raises(wf.NotDeterminizableError, match="1"):
        wf.fst.determinize(fst)


@pytest.mark.parametrize("bad", [(-1, 0, 1, 1, 0.0), (0, -1, 1, 1, 0.0), (0, 1, -1, 1, 0.0), (0, 1, 2**32 + 1, 1, 0.0), (0, 2**31, 1, 1, 0.0), (0, 1, 1, 1, math.nan), (0, 1, 1, 1, -math.inf)])
def test_bad_arcs(bad):
    with pytest.raises(ValueError):
        wf.Fst.from_arcs([bad], {0: 0.0})


def test_comparisons_report_the_difference():
    a, b = (wf.Fst.from_arcs([(0, 1, 1, 1, weight)], {1: 0.0}) for weight in (0.0, 1.0))
    assert wf.fst.equal(a, a) and not wf.fst.equal(a, a).difference
    assert not wf.fst.equal(a, b) and wf.fst.equal(a, b).difference
    assert not wf.fst.equivalent(a, b) and not wf.fst.randequivalent(a, b)


def test_symbols(tmp_path):
    table = wf.Symbols({"<eps>": 0, "naïve": 7, "語": 3})
    assert table.find("naïve") == 7 and table.find("x") is None and table.text(3) == "語" and table.text(4) is None
    assert "語" in table and len(table) == 3 and table.add("new") == 8
    table.write(tmp_path / "words.txt")
    assert dict(wf.Symbols.read(tmp_path / "words.txt")) == dict(table) == dict(pickle.loads(pickle.dumps(table)))
    with pytest.raises(wf.FormatError, match="7 and 9"):
        table.add("naïve", 9)
    with pytest.raises(ValueError, match="NUL"):
        table.add("a\0b")


def test_one_fst_in_many_threads(rng):
    _, _, fst = random_fst(rng, num_states=40, num_arcs=200)
    expected = wf.fst.compose(fst, wf.fst.invert(fst))
    wrong = []

    def work():
        for _ in range(20):
            if not wf.fst.equal(wf.fst.compose(fst, wf.fst.invert(fst)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_batch_operations_equal_single_operations(rng):
    ones = [random_fst(rng, num_arcs=10, semiring="log")[2] for _ in range(5)]
    batch = wf.fst.FstBatch.create(ones)
    assert len(batch) == 5 and all(wf.fst.equal(batch[i], one) for i, one in enumerate(ones))
    with pytest.raises(IndexError):
        batch[5]
    for name in ("invert", "connect", "reverse", "rmepsilon"):
        made, function = getattr(batch, name)(), getattr(wf.fst, name)
        assert all(wf.fst.equal(made[i], function(one)) for i, one in enumerate(ones))
    assert all(wf.fst.equal(batch.arcsort(sort_type="olabel")[i], wf.fst.arcsort(one, sort_type="olabel")) for i, one in enumerate(ones))
    assert all(wf.fst.equal(batch.project(project_type="output")[i], wf.fst.project(one, project_type="output")) for i, one in enumerate(ones))
    assert [list(row) for row in batch.shortest_distance()] == [list(wf.fst.shortest_distance(one)) for one in ones]
    determinized = wf.fst.FstBatch.create([one.with_semiring("tropical") for one in ones]).determinize(rmepsilon=True, allow_nonfunctional=True)
    each = [wf.fst.determinize(one.with_semiring("tropical"), rmepsilon=True, allow_nonfunctional=True) for one in ones]
    assert all(wf.fst.equal(determinized[i], one) for i, one in enumerate(each))
    minimized = determinized.minimize(allow_nondet=True)
    assert all(wf.fst.equal(minimized[i], wf.fst.minimize(determinized[i], allow_nondet=True)) for i in range(len(ones)))
    best = wf.fst.FstBatch.create([one.with_semiring("tropical") for one in ones]).shortest_path()
    for i, one in enumerate(ones):
        assert best[i].num_arcs == wf.fst.shortest_path(one.with_semiring("tropical")).num_arcs
    costs = batch.forward_score(gradients=True)
    for i, one in enumerate(ones):
        cost, gradients = wf.fst.forward_score_gradients(one)
        assert np.isclose(costs[i], cost) and np.allclose(batch.gradients(i), gradients)


def test_gradients_of_a_batch_of_compositions(rng):
    """Checks gradients by finite differences in the weights of both inputs."""
    left = [random_fst(rng, num_arcs=8, semiring="log")[2] for _ in range(4)]
    right = random_fst(rng, num_arcs=9, semiring="log")[2]
    batch = wf.fst.FstBatch.compose(left, right)
    costs = batch.forward_score(gradients=True)
    assert np.allclose(costs, [wf.fst.forward_score(wf.fst.compose(one, right)) for one in left])
    checked, step = 0, 1 / 64
    for i, one in enumerate(left):
        if not np.isfinite(costs[i]):
            assert not any(batch.gradients(i, "first")) and not any(batch.gradients(i, "second"))
            continue
        for of, changed in (("first", one), ("second", right)):
            gradients = batch.gradients(i, of)
            weights = np.asarray(changed.arcs)["weight"]
            for arc in range(changed.num_arcs):
                around = []
                for sign in (step, -step):
                    moved = weights.copy()
                    moved[arc] += sign
                    pair = (changed.with_weights(moved), right) if of == "first" else (one, changed.with_weights(moved))
                    around.append(wf.fst.forward_score(wf.fst.compose(*pair)))
                assert np.isclose((around[0] - around[1]) / (2 * step), gradients[arc], atol=1e-3)
                checked += gradients[arc] > 0.01
    assert checked > 10


def test_fsts_with_other_weights(rng):
    _, _, fst = random_fst(rng)
    fst = fst.with_symbols(wf.Symbols(["<eps>", "a", "b", "c"]))
    doubled = fst.with_weights([2 * weight for weight in np.asarray(fst.arcs)["weight"]])
    assert wf.fst.equal(doubled.with_weights(np.asarray(fst.arcs)["weight"]), fst) and doubled.isymbols.text(1) == "a"
    assert np.array_equal(np.asarray(doubled.arcs)["weight"], 2 * np.asarray(fst.arcs)["weight"]) and list(doubled.final_costs) == list(fst.final_costs)
    with pytest.raises(ValueError, match="weights for"):
        fst.with_weights([1.0])
    with pytest.raises(wf.ArgumentError, match="NaN"):
        fst.with_weights([float("nan")] * fst.num_arcs)
    assert wf.Fst.from_text("").with_weights([]).num_states == 0


def test_token_graphs_stay_token_graphs():
    tokens = ["_", "a", "b"]  # the blank's name does not tell that it is one
    graph = wf.build_ctc_graph(tokens, {"ab": "a b", "ba": "b a", "aa": "a a"}, blank="_")
    scores = np.full((8, 3), -9, np.float32)
    scores[range(8), [tokens.index(token) for token in "aa_a_bba"]] = -0.01
    fst = graph.fst
    weights = np.asarray(fst.arcs)["weight"]
    made = {
        "with_weights": fst.with_weights(weights),
        "closure": wf.fst.closure(fst),
        "union": wf.fst.union(fst, fst),
        "concat": wf.fst.concat(fst, fst),
        "epsnormalize": wf.fst.epsnormalize(fst),
        "map": wf.fst.arcmap(fst, map_type="identity"),
        "disambiguate": wf.fst.disambiguate(fst),
        "reversed twice": wf.fst.reverse(wf.fst.reverse(fst)),
    }
    for name, changed in made.items():
        assert (name, changed.info()["ctc_blank"], wf.Decoder(changed).decode([scores])[0].text) == (name, 1, "aa ba")
    assert wf.Graph(made["with_weights"]).word_aligner is not None
    assert wf.fst.invert(fst).info()["ctc_blank"] == 0
    with pytest.raises(wf.ArgumentError, match="reads its blank"):
        wf.fst.union(fst, wf.build_ctc_graph(tokens, blank="_", topology="compact").fst.with_symbols(fst.isymbols, fst.osymbols))


def test_starts_that_fill_max_active():
    # as tokens alone above 65,535, of which the blocks are reached without cost
    arcs = [line for block in range(1, 301) for line in (f"0 {block} 0 0", f"{block} 301 {block} {block}")]
    fst = wf.Fst.from_text("\n".join(sorted(arcs, key=lambda line: int(line.split()[0]))) + "\n301\n")
    with pytest.warns(wf.InputWarning, match="max_active=300 .* its start leads to 300 states without cost.* and 301 more"):
        wf.Decoder(fst, max_active=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.Decoder(fst, max_active=301)
        wf.Decoder(fst, max_active=300, check_scores="off")


def test_composers(rng):
    left, right = ([random_fst(rng)[2] for _ in range(5)] for _ in range(2))
    with wf.fst.Composer(left, right, with_origins=True, device="cpu") as composer:
        with pytest.raises(wf.StateError):
            composer[0]
        for _ in range(2):
            composer.run()
        for i, (a, b) in enumerate(zip(left, right)):
            expected = wf.fst.compose_with_origins(a, b, order="canonical")
            assert wf.fst.equal(composer[i], expected.fst) and composer.with_origins(i).origins == expected.origins
            assert wf.fst.equal(composer.batch()[i], expected.fst)
        with pytest.raises(wf.UnsupportedError, match="copies nothing"):
            composer.view(0)
        with pytest.raises(IndexError):
            composer[5]
    with wf.fst.Composer(left, right, device="cpu") as composer:
        composer.run()
        with pytest.raises(wf.UnsupportedError, match="origins"):
            composer.with_origins(0)
    a, b = left[0], right[0]
    if not wf.cuda_available():
        with pytest.raises((wf.DeviceError, wf.UnsupportedError)):
            wf.fst.Composer(a, b)
    with pytest.raises(ValueError, match="make no pairs"):
        wf.fst.Composer([a, a], [b, b, b])


@pytest.mark.parametrize("format", ["vector_log64", "const_log64"])
def test_log64_files_keep_their_weights(tmp_path, format):
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.1), (0, 1, 3, 4, 0.2), (1, 2, 5, 6, 0.3)], {1: 0.4, 2: 0.5}, semiring="log")
    fst.write(tmp_path / "rounded.fst", format)
    data = (tmp_path / "rounded.fst").read_bytes()
    for number in (0.1, 0.2, 0.3, 0.4):
        rounded = struct.pack("<d", np.float32(number))
        assert data.count(rounded) == 1
        data = data.replace(rounded, struct.pack("<d", number))
    (tmp_path / "exact.fst").write_bytes(data)
    read = wf.Fst.read(tmp_path / "exact.fst")
    assert wf.fst.equal(read, fst)  # operations use float32
    for same in (read, read.with_symbols(), wf.Fst.from_bytes(data)):
        same.write(tmp_path / "again.fst", format)
        assert (tmp_path / "again.fst").read_bytes() == data
    other = "const_log64" if format == "vector_log64" else "vector_log64"
    read.write(tmp_path / "other.fst", other)
    wf.Fst.read(tmp_path / "other.fst").write(tmp_path / "again.fst", format)
    assert (tmp_path / "again.fst").read_bytes() == data
    read.with_weights([0.1, 0.2, 0.3]).write(tmp_path / "again.fst", format)  # made anew: rounded
    assert (tmp_path / "again.fst").read_bytes() == (tmp_path / "rounded.fst").read_bytes()
    for size in range(0, len(data), 7):
        with pytest.raises(wf.FormatError):
            wf.Fst.from_bytes(data[:size])


def test_other_arc_types_are_refused_with_advice(tmp_path):
    wf.Fst.from_arcs([(0, 1, 1, 2, 0.5)], {1: 0.0}).write(tmp_path / "a.fst", "vector")
    data = (tmp_path / "a.fst").read_bytes()
    for name, advice in (
        ("lattice4", "LatticeReader"), ("compactlattice44", "LatticeReader"), ("left_gallic_standard", "output labels"), ("tropical_LT_tropical", "one cost of each pair"),
        ("real", "-ln"), ("minmax", "is no sum"), ("signed_log_tropical", "below 0"), ("tropical64", "fstprint"), ("expectation_log", "first cost"), ("left_standard_string", "output labels"),
    ):  # fmt: skip
        changed = data.replace(struct.pack("<i", 8) + b"standard", struct.pack("<i", len(name)) + name.encode())
        with pytest.raises(wf.UnsupportedError, match=f"arc type '{name}'.*{advice}"):
            wf.Fst.from_bytes(changed)
