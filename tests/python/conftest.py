"""Fixtures and helpers that several tests share. The tests run against the installed package."""

import json
import os
import pathlib
import signal
import struct

import numpy as np
import pytest

import warpfst as wf

ROOT = pathlib.Path(__file__).resolve().parents[2]
CTC = ROOT / "examples" / "ctc"
assert ROOT / "python" not in pathlib.Path(wf.__file__).resolve().parents, "the package under test is not installed"

# As pyproject.toml has it for the tests, also in programs that they start: no deprecated name of the package is used.
os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), "error:warpfst.:DeprecationWarning"]))

signal.signal(signal.SIGINT, signal.default_int_handler)  # tests send SIGINT, also to child processes; shells ignore it in background jobs


@pytest.fixture(scope="session")
def ctc_graph():
    return wf.build_ctc_graph(tokens=CTC / "tokens_phone.txt", lexicon=CTC / "lexicon_phone.txt", lm=CTC / "lm3.arpa.gz")


@pytest.fixture(scope="session")
def ctc_scores():
    """Real scores of 16 utterances, as a dict by utterance key."""
    return {path.stem: np.load(path) for path in sorted((CTC / "logp_phone").glob("*.npy"))[:16]}


@pytest.fixture(scope="session")
def references():
    return wf.read_transcripts(CTC / "text")


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


def random_fst(rng, num_states=6, num_arcs=14, num_labels=3, acyclic=True, epsilons=True, semiring="tropical"):
    """Returns random arcs, final costs, and the Fst built from them. Weights are multiples of 1/64, so that sums are exact in float32."""
    arcs = []
    for _ in range(num_arcs):
        source = int(rng.integers(num_states - 1 if acyclic else num_states))
        target = int(rng.integers(source + 1, num_states)) if acyclic else int(rng.integers(num_states))
        ilabel, olabel = (int(x) for x in rng.integers(0 if epsilons else 1, num_labels + 1, 2))
        arcs.append((source, target, ilabel, olabel, float(rng.integers(0, 256)) / 64))
    finals = {num_states - 1: float(rng.integers(0, 64)) / 64, int(rng.integers(num_states)): 0.5}
    return arcs, finals, wf.Fst.from_arcs(arcs, finals, semiring=semiring)


def paths(arcs, finals, state=0):
    """(input string, output string, cost) of every path of an acyclic fst given by arcs and finals."""
    if state in finals:
        yield (), (), finals[state]
    for source, target, ilabel, olabel, weight in arcs:
        if source == state:
            for ins, outs, cost in paths(arcs, finals, target):
                yield ((ilabel,) if ilabel else ()) + ins, ((olabel,) if olabel else ()) + outs, weight + cost


def arcs_of(fst):
    """Returns arcs and final costs of an Fst in random_fst's form, renumbered so that the start state is 0."""
    if fst.start is None:
        return [], {}
    order = {fst.start: 0}
    for state in range(fst.num_states):
        order.setdefault(state, len(order))
    arcs = [(order[s], order[a.nextstate], a.ilabel, a.olabel, a.weight) for s in range(fst.num_states) for a in fst.arcs_of(s)]
    return arcs, {order[s]: cost for s, cost in enumerate(fst.final_costs) if cost != float("inf")}


def best_by_strings(all_paths):
    best = {}
    for ins, outs, cost in all_paths:
        best[ins, outs] = min(cost, best.get((ins, outs), float("inf")))
    return best


WIDE = {"beam": 1e9, "max_active": 100000, "max_tokens": 100000, "min_active": 0}  # nothing is pruned


def random_graph(rng, num_states=5, num_arcs=14, num_columns=4):
    """Returns arcs and final costs of a decoding graph. Epsilon arcs only go to higher states, so they form no cycles."""
    arcs = []
    for _ in range(num_arcs):
        source, target = (int(x) for x in rng.integers(0, num_states, 2))
        ilabel = int(rng.integers(0 if target > source else 1, num_columns + 1))
        arcs.append((source, target, ilabel, int(rng.integers(0, 4)), float(rng.integers(0, 128)) / 64))
    arcs.append((0, 0, 1, 0, 1.0))
    return arcs, {0: 0.25, num_states - 1: 0.0}


def every_path(arcs, finals, scores, frame=0, state=0):
    """Yields (cost, words) of every path, by recursion."""
    if frame == len(scores) and state in finals:
        yield finals[state], ()
    for source, target, ilabel, olabel, weight in arcs:
        if source != state or (ilabel and frame == len(scores)):
            continue
        cost = weight - (float(scores[frame][ilabel - 1]) if ilabel else 0.0)
        for rest, words in every_path(arcs, finals, scores, frame + bool(ilabel), target):
            yield cost + rest, ((olabel, *words) if olabel else words)


def same(a, b):
    return [(r.text, r.cost, r.words, list(r.alignment)) for r in a] == [(r.text, r.cost, r.words, list(r.alignment)) for r in b]


def padded(matrices, extra=3):
    batch = np.full((len(matrices), max(map(len, matrices)) + extra, matrices[0].shape[1]), np.nan, matrices[0].dtype)  # NaN: padding must not be read
    for row, matrix in zip(batch, matrices):
        row[: len(matrix)] = matrix
    return batch, [len(matrix) for matrix in matrices]


def write_safetensors(path, tensors, metadata=None):
    """Writes float32 and float16 arrays, and bfloat16 ones as their bits. Returns the path."""
    header, at, blobs = ({"__metadata__": metadata} if metadata else {}), 0, []
    for name, value in tensors.items():
        blob = value.tobytes()
        header[name] = {"dtype": {"float32": "F32", "float16": "F16", "uint16": "BF16"}[str(value.dtype)], "shape": list(value.shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))
    return path


def transducer_folder(folder, rng):
    """Makes a model folder whose encoder is the CTC model, with a random transducer."""
    config = json.loads((CTC / "config.json").read_text())
    for name in ("model.onnx", "tokens_phone.txt"):
        (folder / name).symlink_to(CTC / name)
    columns = len((CTC / "tokens_phone.txt").read_text().split("\n")) - 1
    random = {
        "pred.emb.weight": (columns, 3),
        "pred.conv.weight": (4, 6),
        "joiner.enc.weight": (5, columns),
        "joiner.pred.weight": (5, 4),
        "joiner.out.weight": (columns, 5),
        "joiner.out.bias": (columns,),
    }
    write_safetensors(folder / "toy.safetensors", {name: rng.normal(size=shape).astype(np.float32) for name, shape in random.items()})
    config["acoustic_model"].update(file="model.onnx", log_probs="logp_phone", transducer="toy.safetensors")
    config.update(tokens="tokens_phone.txt", graph={}, decoder={})
    (folder / "config.json").write_text(json.dumps(config))
