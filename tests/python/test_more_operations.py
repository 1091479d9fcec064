"""The operations of warpfst_ops.h and archives: checked against an enumeration of all paths, and against each other."""

import math

import numpy as np
import pytest
from conftest import arcs_of, best_by_strings, paths, random_fst

import warpfst as wf


def strings(fst):
    return best_by_strings(paths(*arcs_of(fst)))


def close(a, b):
    return a.keys() == b.keys() and all(math.isclose(a[key], b[key], abs_tol=1e-3) for key in a)


def test_operations_that_keep_the_paths(rng):
    for _ in range(60):
        _, _, fst = random_fst(rng)
        want = strings(fst)
        distances = wf.fst.shortest_distance(fst, reverse=True)
        encoder = wf.fst.Encoder.create(labels=True)
        kept = [
            wf.fst.arcmap(fst, map_type="arc_sum"),
            wf.fst.arcmap(fst, map_type="superfinal"),
            wf.fst.epsnormalize(fst),
            wf.fst.epsnormalize(fst, eps_norm_type="output"),
            wf.fst.synchronize(fst),
            wf.fst.condense(fst),
            wf.fst.reweight(fst, distances),
            wf.fst.reweight(fst, list(distances), to_final=True),
            wf.fst.determinize(fst, det_type="nonfunctional"),
            wf.fst.replace({7: fst}),
            encoder.decode(encoder.encode(fst)),
        ]
        for k, one in enumerate(kept):
            assert close(strings(one), want), k


def test_disambiguate_leaves_one_path(rng):
    for _ in range(40):
        _, _, fst = random_fst(rng, epsilons=False)  # epsilon would be an ordinary label
        acceptor = wf.fst.project(fst)
        single = wf.fst.disambiguate(acceptor)
        assert close(strings(single), strings(acceptor))
        inputs = [string for string, _, _ in paths(*arcs_of(single))]
        assert len(inputs) == len(set(inputs))


def test_difference_and_its_errors():
    a = wf.Fst.from_text("0 0 1 1 0.5\n0 1 2 2\n1\n")
    b = wf.Fst.from_text("0 1 1 1\n0 1 2 2\n1\n")
    rest = wf.fst.difference(a, b)
    assert wf.fst.randequivalent(wf.fst.union(rest, wf.fst.compose(a, b)), a)
    with pytest.raises(wf.ArgumentError, match="without weights"):
        wf.fst.difference(b, a)


def test_replace_calls():
    root = wf.Fst.from_text("0 1 5 101\n1\n")
    inner = wf.Fst.from_text("0 1 6 7 2\n1\n")
    fst = wf.fst.replace({100: root, 101: inner}, call_arc_labeling="neither")
    assert wf.fst.rmepsilon(fst).to_text() == "0\t1\t6\t7\t2\n1\n"
    assert wf.fst.replace({101: inner, 100: root}, root=100, call_arc_labeling="neither").to_text() == fst.to_text()
    with pytest.raises(wf.ArgumentError, match="calls itself"):
        wf.fst.replace({101: root})


def test_encoder_files(tmp_path):
    fst = wf.Fst.from_text("0 1 1 2 0.5\n1 0.25\n")
    encoder = wf.fst.Encoder.create(labels=True, weights=True)
    encoded = encoder.encode(fst)
    assert len(encoder) == 2 and "acceptor" in encoded.properties
    encoder.write(tmp_path / "table")
    assert wf.fst.Encoder.read(tmp_path / "table").decode(encoded).to_text() == fst.to_text()
    with pytest.raises(wf.FormatError):
        (tmp_path / "bad").write_bytes((tmp_path / "table").read_bytes()[:-1])
        wf.fst.Encoder.read(tmp_path / "bad")


def test_isomorphic():
    a = wf.Fst.from_arcs([(0, 1, 1, 1, 0.5)], {1: 0.0})
    b = wf.Fst.from_arcs([(1, 0, 1, 1, 0.5)], {0: 0.0}, start=1)
    assert wf.fst.isomorphic(a, b) and not wf.fst.equal(a, b)
    found = wf.fst.isomorphic(a, wf.fst.arcmap(b, map_type="rmweight"))
    assert not found and "different arcs" in found.difference


def test_factor_weight_makes_chains(rng):
    fst = wf.Fst.from_text("0 1 1 0 0.5\n1 1 2 4 0.25\n1 2\n")
    chains = wf.fst.factor_weight(fst, [[7, 8], []], {1: [9]}, final_ilabel=11)
    assert chains.to_text() == "0\t3\t1\t7\t0.5\n1\t1\t2\t4\t0.25\n1\t2\t11\t9\t2\n2\n3\t1\t0\t8\n"
    assert wf.fst.factor_weight(fst).to_text() == fst.to_text() == wf.fst.factor_weight(fst, [(), ()], {}).to_text()
    for _ in range(20):  # labels that are written in order, as one path after the other
        _, _, fst = random_fst(rng)
        labels = [[1 + (k + j) % 3 for j in range(k % 3)] for k in range(fst.num_arcs)]
        longer = wf.fst.factor_weight(fst, labels)
        assert longer.num_arcs == fst.num_arcs + longer.num_states - fst.num_states
        assert close(strings(wf.fst.arcmap(longer, map_type="output_epsilon")), strings(wf.fst.arcmap(fst, map_type="output_epsilon")))
    for arguments, error in ((([[1]],), ValueError), (([[1], [0]],), wf.ArgumentError), ((None, {9: [1]}), ValueError), (([[1], [2**31]],), ValueError)):
        with pytest.raises(error):
            wf.fst.factor_weight(wf.Fst.from_text("0 1 1 0\n1 1 2 4\n1\n"), *arguments)


def test_reweight_needs_a_potential_per_state():
    fst = wf.Fst.from_text("0 1 1 1\n1\n")
    with pytest.raises(wf.ArgumentError, match="1 potentials for 2 states"):
        wf.fst.reweight(fst, np.zeros(1, dtype=np.float32))


@pytest.mark.parametrize("far_type", ["sttable", "stlist"])
def test_archives(tmp_path, rng, far_type):
    fsts = {f"key {k}": random_fst(rng)[2] for k in range(5)}
    path = tmp_path / "all.far"
    with wf.fst.FarWriter.create(path, far_type) as writer:
        for key, fst in fsts.items():
            writer.add(key, fst)
        with pytest.raises(wf.ArgumentError, match="sorted"):
            writer.add("a", fst)
    with wf.fst.FarReader.open(path) as reader:
        assert reader.far_type == far_type
        found = dict(reader)
        assert list(found) == list(fsts) and all(wf.fst.equal(found[key], fsts[key]) for key in fsts)
        assert wf.fst.equal(reader["key 3"], fsts["key 3"])
        assert [key for key, _ in reader] == ["key 4"]  # goes on behind the fst that was looked up
        with pytest.raises(wf.ArgumentError, match="no fst"):
            reader["nothing"]


def test_an_exception_leaves_no_archive(tmp_path):
    with pytest.raises(RuntimeError), wf.fst.FarWriter.create(tmp_path / "none.far") as writer:
        writer.add("a", wf.Fst.from_text("0\n"))
        raise RuntimeError
    assert not list(tmp_path.iterdir())
