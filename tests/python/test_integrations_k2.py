"""Graphs of k2, saved as k2 saves them (k2 itself is not needed): docs/how-to/models.md#icefall."""

import sys
import types

import numpy as np
import pytest

import warpfst as wf
from warpfst import integrations

torch = pytest.importorskip("torch")


class RaggedTensor:
    """Pickled like k2's: the class _k2.ragged.RaggedTensor with the state (row splits, "row_ids1", values)."""

    def __init__(self, rows):
        self.rows = rows

    def __getstate__(self):
        splits = np.cumsum([0, *map(len, self.rows)]).astype(np.int32)
        values = np.array([word for row in self.rows for word in row], dtype=np.int32)
        return torch.from_numpy(splits), "row_ids1", torch.from_numpy(values)

    def __setstate__(self, state):
        raise AssertionError("made from the file")


RaggedTensor.__module__ = "_k2.ragged"


@pytest.fixture
def ragged(monkeypatch):
    """Lets pickle find the class under k2's name while a file is written."""
    module = types.ModuleType("_k2.ragged")
    module.RaggedTensor = RaggedTensor
    monkeypatch.setitem(sys.modules, "_k2", types.ModuleType("_k2"))
    monkeypatch.setitem(sys.modules, "_k2.ragged", module)
    return RaggedTensor


def random_graph(rng, states, tokens):
    """Arcs (source, target, label, score, words) without epsilons; all states reach the final one, the last."""
    arcs = [(s, s + 1, int(rng.integers(tokens)), -float(rng.exponential()), []) for s in range(states - 1)]
    arcs += [(int(rng.integers(states)), int(rng.integers(states)), int(rng.integers(tokens)), -float(rng.exponential()), []) for _ in range(4 * states)]
    arcs = [(*arc[:4], [int(word) for word in rng.integers(1, 6, rng.choice([0, 0, 1, 2, 3]))]) for arc in arcs]
    arcs += [(int(s), states, -1, -float(rng.exponential()), []) for s in {states - 1, *rng.integers(states, size=2)}]
    return sorted(arcs, key=lambda arc: arc[0])


def save(path, arcs, aux):
    scores = np.array([arc[3] for arc in arcs], dtype=np.float32).view(np.int32)
    table = np.array([[*arc[:3], score] for arc, score in zip(arcs, scores)], dtype=np.int32)
    torch.save({"arcs": torch.from_numpy(table), **({} if aux is None else {"aux_labels": aux}), "lm_scores": torch.zeros(len(arcs))}, path)


def plain_fst(arcs):
    """The same graph, arc by arc."""
    final, made, ends = max(arc[1] for arc in arcs), [], {}
    extra = final + 1
    for source, target, label, score, words in arcs:
        if label < 0:
            ends[source] = min(ends.get(source, np.inf), float(-np.float32(score)))
            continue
        place = source
        for i, word in enumerate(words or [0]):
            after = target if i + 1 >= len(words) else extra
            extra += after != target or (i + 1 < len(words))
            made.append((place, after, label + 1 if i == 0 else 0, word, float(-np.float32(score)) if i == 0 else 0.0))
            place = after
    return wf.Fst.from_arcs(made, ends)


def results(fst, scores):
    decoder = wf.Decoder(wf.Graph(fst), beam=1000)
    return [([word.label for word in result.words], result.cost, sorted(result.flags)) for result in decoder.decode(scores)]


@pytest.mark.parametrize("zipped", [True, False])
def test_decodes_as_the_same_graph(tmp_path, ragged, monkeypatch, zipped):
    rng = np.random.default_rng(7)
    if not zipped:  # as old versions of torch save
        monkeypatch.setattr(torch, "save", lambda what, path, write=torch.save: write(what, path, _use_new_zipfile_serialization=False))
    for trial in range(20):
        arcs = random_graph(rng, int(rng.integers(2, 12)), 4)
        scores = [np.log(rng.dirichlet(np.ones(4), frames)).astype(np.float32) for frames in (3, 8, 20)]
        save(tmp_path / "HLG.pt", arcs, RaggedTensor([arc[4] if arc[2] >= 0 else [-1] for arc in arcs]))
        assert results(integrations.k2_fst(tmp_path / "HLG.pt"), scores) == results(plain_fst(arcs), scores), trial
        single = [(*arc[:4], arc[4][:1]) for arc in arcs]  # a tensor has one word for each arc
        save(tmp_path / "HLG.pt", single, torch.tensor([arc[4][0] if arc[4] else min(arc[2], 0) for arc in single], dtype=torch.int32))
        assert results(integrations.k2_fst(tmp_path / "HLG.pt"), scores) == results(plain_fst(single), scores), trial


def test_words_and_acceptors(tmp_path):
    arcs = [(0, 1, 2, -0.5, []), (1, 1, 0, 0.0, []), (1, 2, -1, 0.0, [])]
    save(tmp_path / "A.pt", arcs, None)
    words = wf.Symbols(["<eps>", "one", "two"])
    fst = integrations.k2_fst(tmp_path / "A.pt", words)
    scores = np.full((3, 3), -9, dtype=np.float32)
    scores[[0, 1, 2], [2, 0, 0]] = 0
    (result,) = wf.Decoder(wf.Graph(fst), words=words).decode(scores)
    assert (result.text, result.cost) == ("two", 0.5)
    words.write(tmp_path / "words.txt")
    assert integrations.k2_fst(tmp_path / "A.pt", tmp_path / "words.txt").osymbols.text(2) == "two"


def test_files_that_are_no_graph(tmp_path, ragged):
    good = [(0, 1, 2, -0.5, []), (1, 2, -1, 0.0, [])]
    for arcs, aux, message in (
        ([(0, 2, 1, 0.0, []), (1, 2, -1, 0.0, [])], None, "label -1"),
        ([(0, 1, -1, 0.0, []), (1, 2, -1, 0.0, [])], None, "label -1"),
        ([(0, 1, -3, 0.0, []), (1, 2, -1, 0.0, [])], None, "below 0"),
        (good, RaggedTensor([[1]]), "aux_labels"),
        (good, RaggedTensor([[1], [2]]), "final state has a word"),
    ):
        save(tmp_path / "bad.pt", arcs, aux)
        with pytest.raises(wf.FormatError, match=message):
            integrations.k2_fst(tmp_path / "bad.pt")
    for saved in ({"arcs": torch.zeros(9, dtype=torch.int32)}, {"model": {}}, [1]):  # the first is a vector of fsas
        torch.save(saved, tmp_path / "bad.pt")
        with pytest.raises(wf.FormatError, match="one fsa"):
            integrations.k2_fst(tmp_path / "bad.pt")
    torch.save({"arcs": print}, tmp_path / "bad.pt")
    with pytest.raises(wf.FormatError, match="print"):
        integrations.k2_fst(tmp_path / "bad.pt")
    with pytest.raises(FileNotFoundError):
        integrations.k2_fst(tmp_path / "none.pt")
