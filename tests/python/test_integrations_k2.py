"""Graphs of k2, saved as k2 saves them: docs/how-to/models.md#icefall.

Most tests need torch, but not k2. test_hlg_of_k2 needs k2 and kaldilm. PyPI's k2 1.23.4 is for Python 3.9 and torch 1.13.1: there, `pip install k2==1.23.4 kaldilm 'numpy<2'`.
"""

import gzip
import sys
import types

import numpy as np
import pytest
from conftest import CTC

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


def save(path, arcs, aux, zipped=True):
    scores = np.array([arc[3] for arc in arcs], dtype=np.float32).view(np.int32)
    table = np.array([[*arc[:3], score] for arc, score in zip(arcs, scores)], dtype=np.int32)
    torch.save({"arcs": torch.from_numpy(table), **({} if aux is None else {"aux_labels": aux}), "lm_scores": torch.zeros(len(arcs))}, path, _use_new_zipfile_serialization=zipped)


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
def test_decodes_as_the_same_graph(tmp_path, ragged, zipped):
    """Also as torch before 1.6 saves."""
    rng = np.random.default_rng(7)
    for trial in range(20):
        arcs = random_graph(rng, int(rng.integers(2, 12)), 4)
        scores = [np.log(rng.dirichlet(np.ones(4), frames)).astype(np.float32) for frames in (3, 8, 20)]
        save(tmp_path / "HLG.pt", arcs, RaggedTensor([arc[4] if arc[2] >= 0 else [-1] for arc in arcs]), zipped)
        assert results(integrations.k2_fst(tmp_path / "HLG.pt"), scores) == results(plain_fst(arcs), scores), trial
        single = [(*arc[:4], arc[4][:1]) for arc in arcs]  # a tensor has one word for each arc
        save(tmp_path / "HLG.pt", single, torch.tensor([arc[4][0] if arc[4] else min(arc[2], 0) for arc in single], dtype=torch.int32), zipped)
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
    with pytest.raises(wf.FileError, match="none.pt"):
        integrations.k2_fst(tmp_path / "none.pt")


@pytest.mark.parametrize("zipped", [True, False])
def test_damaged_files(tmp_path, ragged, zipped):
    """Whatever bytes a file has, the error is one of wf.Error, and nothing that it names is called."""
    rng = np.random.default_rng(3)
    arcs = random_graph(rng, 6, 4)
    save(tmp_path / "HLG.pt", arcs, RaggedTensor([arc[4] if arc[2] >= 0 else [-1] for arc in arcs]), zipped)
    intact, failed = (tmp_path / "HLG.pt").read_bytes(), 0
    for _ in range(600):
        damaged = bytearray(intact)
        for at in rng.integers(0, len(intact), int(rng.integers(1, 6))):
            damaged[at] = int(rng.integers(256))
        (tmp_path / "bad.pt").write_bytes(damaged[: int(rng.integers(1, len(intact) + 1))] if rng.random() < 0.3 else damaged)
        try:
            integrations.k2_fst(tmp_path / "bad.pt")
        except wf.Error as why:
            assert "bad.pt" in str(why)
            failed += 1
    assert failed > 100


# --- the real k2 ---


def text_of(arcs, final):
    """k2's text format. The final state is the last."""
    return "".join(" ".join(map(str, arc)) + "\n" for arc in sorted(arcs)) + f"{final}\n"


def lexicon_arcs(lexicon, tokens, words):
    """L: a loop for each word. Disambiguation symbols follow spellings that several words have or that others begin with; #0, the first of them, is for the model's backoff."""
    spellings = [tuple(tokens[token] for token in spelling) for _, spelling in lexicon]
    begun = {spelling[:i] for spelling in spellings for i in range(1, len(spelling))}
    arcs, num_states, seen, first_disambig = [], 1, {}, max(tokens.values()) + 1
    for (word, _), spelling in zip(lexicon, spellings):
        seen[spelling] = seen.get(spelling, 0) + 1
        labels = [*spelling, first_disambig + seen[spelling]] if spelling in begun or spellings.count(spelling) > 1 else list(spelling)
        states = [0, *range(num_states, num_states + len(labels) - 1), 0]
        num_states += len(labels) - 1
        arcs += [(states[i], states[i + 1], label, 0 if i else words[word], 0) for i, label in enumerate(labels)]
    arcs += [(0, 0, first_disambig, words["#0"], 0), (0, num_states, -1, -1, 0)]
    return arcs, num_states, first_disambig


def compile_hlg(k2, kaldilm, folder):
    """HLG of examples/ctc, in the order of icefall's compile_hlg.py: H o rmeps(det(L o G)). Writes words.txt."""
    lexicon = [(word, spelling) for word, *spelling in map(str.split, (CTC / "lexicon_phone.txt").read_text().splitlines())]
    tokens = {name: int(column) for name, column in map(str.split, (CTC / "tokens_phone.txt").read_text().splitlines())}
    known = {word for word, _ in wf.LM.read(CTC / "lm3.arpa.gz").words} - {"<unk>"}
    lexicon = [(word, spelling) for word, spelling in lexicon if word in known]
    names = ["<eps>", *dict.fromkeys(word for word, _ in lexicon), "#0", "<s>", "</s>"]
    words = {name: label for label, name in enumerate(names)}
    (folder / "words.txt").write_text("".join(f"{name} {label}\n" for name, label in words.items()))
    (folder / "lm.arpa").write_bytes(gzip.decompress((CTC / "lm3.arpa.gz").read_bytes()))
    grammar = kaldilm.arpa2fst(input_arpa=str(folder / "lm.arpa"), disambig_symbol="#0", read_symbol_table=str(folder / "words.txt"), max_order=3)
    arcs, final, first_disambig = lexicon_arcs(lexicon, tokens, words)
    left, right = k2.Fsa.from_str(text_of(arcs, final), num_aux_labels=1), k2.Fsa.from_openfst(grammar, acceptor=False)
    graph = k2.determinize(k2.connect(k2.compose(k2.arc_sort(left), k2.arc_sort(right))))
    labels = graph.labels.clone()
    labels[labels >= first_disambig] = 0
    graph.labels = labels
    graph.aux_labels.values[graph.aux_labels.values >= words["#0"]] = 0
    graph = k2.connect(k2.remove_epsilon(k2.connect(graph)))
    graph.aux_labels = graph.aux_labels.remove_values_eq(0)
    return k2.arc_sort(k2.connect(k2.compose(k2.ctc_topo(first_disambig - 1), k2.arc_sort(graph), inner_labels="tokens")))


def test_fsas_as_tensors():
    """Tensors of random fsts against their arcs one by one, and back."""
    rng = np.random.default_rng(3)
    for trial in range(30):
        states, columns = int(rng.integers(1, 6)), trial % 3 > 0
        arcs = [(int(rng.integers(states)), int(rng.integers(states)), int(rng.integers(columns, 4)), int(rng.integers(0, 3)), float(rng.integers(9)) / 4) for _ in range(int(rng.integers(12)))]
        finals = {int(state): float(rng.integers(5)) / 4 for state in rng.choice(states, int(rng.integers(1, states + 1)), replace=False)}
        fst = wf.Fst.from_arcs([*arcs, (states - 1, states - 1, 1, 1, 0.0)], finals, start=int(rng.integers(states)))
        swap = {0: fst.start, fst.start: 0}
        expected = []
        for state in range(fst.num_states):
            at = swap.get(state, state)
            expected += [(state, swap.get(arc.nextstate, arc.nextstate), arc.ilabel - columns, -arc.weight, arc.olabel) for arc in fst.arcs_of(at)]
            expected += [(state, fst.num_states, -1, -fst.final_costs[at], -1)] if np.isfinite(fst.final_costs[at]) else []
        tensors = integrations.k2_tensors(fst, columns)
        rows, aux = tensors["arcs"], tensors["aux_labels"]
        assert rows.dtype == aux.dtype == torch.int32
        scores = rows[:, 3].contiguous().view(torch.float32)
        assert [(*row[:3], score, word) for row, score, word in zip(rows.tolist(), scores.tolist(), aux.tolist())] == expected, trial
        back = integrations.k2_fst(tensors, columns=columns)
        assert wf.fst.isomorphic(wf.fst.connect(back), wf.fst.connect(fst)).equal, trial
    with pytest.raises(wf.ArgumentError, match="no input label"):
        integrations.k2_tensors(wf.Fst.from_arcs([(0, 1, 0, 1, 0.0)], {1: 0.0}))


def test_ragged_words_in_memory(ragged):
    """fsa.as_dict() with words of k2's own class."""
    arcs = [(0, 1, 2, -0.5, [4, 5]), (0, 1, 1, -0.25, []), (1, 2, -1, -0.125, [])]
    table = np.array([[*arc[:3], np.float32(arc[3]).view(np.int32)] for arc in arcs], dtype=np.int32)
    fst = integrations.k2_fst({"arcs": torch.from_numpy(table), "aux_labels": ragged([arc[4] for arc in arcs]), "lm_scores": None})
    assert fst.to_text() == "0\t3\t3\t4\t0.5\n0\t1\t2\t0\t0.25\n1\t0.125\n2\tInfinity\n3\t1\t0\t5\n"


def test_hlg_of_k2(tmp_path, ctc_scores):
    """The graph that k2 compiles and saves gives the words and costs that k2's own search finds in real scores."""
    k2 = pytest.importorskip("k2", reason="needs k2", exc_type=ImportError)
    kaldilm = pytest.importorskip("kaldilm", reason="needs kaldilm", exc_type=ImportError)
    graph = compile_hlg(k2, kaldilm, tmp_path)
    torch.save(graph.as_dict(), tmp_path / "HLG.pt")
    decoder = wf.Decoder(wf.Graph(integrations.k2_fst(tmp_path / "HLG.pt", tmp_path / "words.txt")), blank=0, beam=16, max_active=100000)
    table = wf.Symbols.read(tmp_path / "words.txt")
    for scores in ctc_scores.values():
        scores = np.ascontiguousarray(scores, dtype=np.float32)
        segments = torch.tensor([[0, 0, len(scores)]], dtype=torch.int32)
        lattice = k2.intersect_dense_pruned(graph, k2.DenseFsaVec(torch.from_numpy(scores)[None], segments), search_beam=16, output_beam=1, min_active_states=30, max_active_states=100000)
        best = k2.shortest_path(lattice, use_double_scores=True)
        theirs = [table.text(int(word)) for word in best.aux_labels.values if word > 0]
        (ours,) = decoder.decode(scores)
        assert ours.text.split() == theirs
        assert ours.cost == pytest.approx(-float(best.get_tot_scores(use_double_scores=True, log_semiring=False)), abs=1e-2)
