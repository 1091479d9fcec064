"""examples/pipeline on the CPU: its torch model against onnxruntime, its words against plain decoding of onnxruntime's scores, and its picture. Skipped if torch is not installed.

`./run test` runs this file with Debian's Python, as test_torch.py.
"""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from pages import CTC, ROOT

import warpfst as wf

EXAMPLE = ROOT / "examples" / "pipeline"
sys.path.insert(0, str(EXAMPLE))
import pipeline as example
from conformer import Conformer


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """The file that features.py writes of three recordings."""
    path = tmp_path_factory.mktemp("features") / "features.npz"
    recordings = [ROOT / "examples" / "cards" / f"card{i}.wav" for i in (1, 2, 4)]
    subprocess.run([sys.executable, EXAMPLE / "features.py", path, *recordings], check=True, timeout=100)
    return path


@pytest.fixture(scope="module")
def utterances(features):
    return [array.astype(np.float32) for array in np.load(features).values()]


@pytest.fixture(scope="module")
def references(utterances):
    """onnxruntime's log-probabilities of each utterance alone."""
    session = onnxruntime.InferenceSession(str(CTC / "model.onnx"))
    return [session.run(["logp_phone"], {"feats": one[None], "feat_lens": np.array([len(one)])})[0][0] for one in utterances]


def test_the_torch_model_equals_onnxruntimes(utterances, references):
    """In a padded batch, with one utterance of a single frame."""
    ((features, lengths, frames),) = example.packed([*utterances, utterances[0][:1]], 4, 1, pinned=False)
    features[0, len(utterances[0]) :] = 50  # padding is ignored
    assert len({len(one) for one in utterances}) == 3 and frames == [*map(len, references), 1]
    with torch.no_grad():
        scores = Conformer(CTC / "model.onnx")(features, lengths)
    for row, wanted in zip(scores.numpy(), references):
        assert np.abs(row[: len(wanted)] - wanted).max() < 1e-3
    assert np.allclose(np.exp(scores.numpy()).sum(2), 1, atol=1e-3)


@pytest.fixture(scope="module")
def graph():
    return wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz", topology="compact")


def test_words_and_order_with_and_without_overlap(utterances, references, graph):
    """The words are those of a plain decode. With overlap, the next batch is scored before the results of one are read, without it after."""
    wanted = wf.Decoder(graph, acoustic_scale=0.7, max_active=7000, blank=0).decode(references).texts
    pipeline = example.Pipeline("cpu", 1)
    packs = example.packed(utterances, 2, 3, pinned=False)  # 0 1, 2 0, 1 2
    for overlap in (False, True):
        texts, timeline = pipeline.run(packs, overlap)
        assert texts == wanted * 2 and all(wanted)
        bars = {(bar.row, bar.batch): bar for bar in timeline.bars()}
        assert set(bars) == {(row, batch) for row in ("encoder", "search", "results") for batch in range(3)}
        for batch in range(3):
            assert bars["encoder", batch].end <= bars["search", batch].begin <= bars["search", batch].end
        for batch in range(2):
            assert bars["search", batch].end <= bars["search", batch + 1].begin
            assert (bars["encoder", batch + 1].begin < bars["results", batch].begin) == overlap


def test_the_program_draws_both_runs(features, tmp_path):
    command = [sys.executable, EXAMPLE / "pipeline.py", features, "--batch", "1", "--batches", "2", "--runs", "1", "--threads", "1"]
    run = subprocess.run([*command, "--picture", "p.svg", "--json", "p.json"], capture_output=True, text=True, cwd=tmp_path, timeout=200)
    assert run.returncode == 0, run.stderr
    assert [line.split(":")[0] for line in run.stdout.splitlines()] == ["without overlap", "with overlap"]
    report = json.loads((tmp_path / "p.json").read_text())
    assert report["words"] > 0 and len(report["without overlap"]["bars"]) == len(report["with overlap"]["bars"]) == 6
    picture = xml.etree.ElementTree.parse(tmp_path / "p.svg")
    texts = ["".join(element.itertext()) for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("encoder") == texts.count("search") == texts.count("results") == 2 and "copy" not in texts
    titles = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(title.startswith("search, batch") for title in titles) == 4


def test_the_pages_loop(utterances, references, graph, capsys):
    """The block of own-model.md on the CPU: without its GPU, stream and copies."""
    page = (ROOT / "docs" / "how-to" / "own-model.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```py\n(decoder = wf.Decoder.*?)```", page, re.DOTALL)
    for words in (', device="cuda"', ", torch.cuda.stream(torch.cuda.Stream())", ".cuda(non_blocking=True)"):
        assert words in code
        code = code.replace(words, "")
    conformer = Conformer(CTC / "model.onnx")
    loader = [(features, frames) for features, _, frames in example.packed(utterances, 1, 3, pinned=False)]
    made = {"wf": wf, "torch": torch, "graph": graph, "loader": loader, "model": lambda features: conformer(features, torch.tensor([features.shape[1]]))}
    exec(code, made)  # noqa: S102
    wanted = wf.Decoder(graph, acoustic_scale=0.7).decode(references).texts
    assert capsys.readouterr().out.splitlines() == [str([text]) for text in wanted]
