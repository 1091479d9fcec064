"""bench/peers/peers.py: its error rates and figures, without any peer; and the modules of NeMo that it loads, with an imitation of NeMo."""

import argparse
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

import warpfst as wf

sys.path += [str(ROOT / "bench" / name) for name in ("common", "peers")]

import measure
import peer_decoders
import peers
import transducer_model

onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
import sherpa_models

CTC = ROOT / "examples" / "ctc"
SEARCH = {"max_active": 7000}


@pytest.fixture
def task(tmp_path, monkeypatch):
    """Six utterances of phones, and references of which one has no scores."""
    monkeypatch.setattr(measure, "BUILD", tmp_path)
    scores = tmp_path / "scores"
    scores.mkdir()
    for path in sorted((CTC / "logp_phone").glob("*.npy"))[:6]:
        (scores / path.name).symlink_to(path)
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz")
    graph.save(tmp_path / "TLG.wfst")
    graph.words.write(tmp_path / "words.txt")
    files = {"unit": "phone", "scores": scores, "graph": tmp_path / "TLG.wfst", "words": tmp_path / "words.txt", "acoustic_scale": 0.7, "frame_shift": 0.04, "limit": None}
    return peers.Task("CTC phones", files, peers.transcripts(CTC / "text"), {"warpfst": [{"beam": 2, **SEARCH}, {"beam": 12, **SEARCH}]})


def run(task, **changed):
    arguments = argparse.Namespace(**{"device": "cpu", "rounds": 2, "wheels": None, "cores": "1", **changed})
    return list(peers.Runner(arguments, task).measure())


def test_rows_have_the_error_rate_of_the_same_search(task):
    rows = run(task)
    assert [(row["setting"], row["place"], row["utterances"]) for row in rows] == [("beam 2, max_active 7000", "1 core", 6), ("beam 12, max_active 7000", "1 core", 6)]
    paths = sorted(task.files["scores"].glob("*.npy"))
    for row, beam in zip(rows, (2, 12), strict=True):
        decoder = wf.Decoder(wf.Graph.load(task.files["graph"]), words=wf.Symbols.read(task.files["words"]), acoustic_scale=0.7, beam=beam, **SEARCH)
        texts = {path.stem: decoder.decode(np.load(path).astype(np.float32))[0].text for path in paths}
        expected = wf.wer({key: task.references[key] for key in texts}, texts)
        assert row["rate"] == pytest.approx(expected.percent) and row["rtfx"] > 0
    assert rows[0]["audio"] == pytest.approx(0.04 * sum(len(np.load(path)) for path in paths))


def test_a_decoder_that_fails_is_reported_and_the_others_go_on(task):
    task.settings = {"kaldi-decoder": [{"beam": 2, **SEARCH}, {"beam": -1, **SEARCH}], **task.settings}
    task.files = {**task.files, "openfst": task.files["graph"].with_name("missing.fst")}
    rows = run(task, rounds=1)
    failed = [row for row in rows if "failed" in row]
    assert len(failed) == 2 and all(row["decoder"].startswith("kaldi-decoder (beam ") and "exit code" in row["failed"] for row in failed)
    assert sum("rtfx" in row for row in rows) == 2
    task.settings = {"warpfst": [{"beam": -1, **SEARCH}]}
    (row,) = run(task, rounds=1)
    assert "beam" in row["failed"]


def test_a_missing_wheel_is_reported(task, tmp_path):
    task.settings = {"riva-asrlib-decoder": [{"beam": 2, **SEARCH, "batch": 1}]}
    (row,) = run(task, wheels=tmp_path)
    assert row["failed"] == "no wheel"


def test_figures_are_read_back_from_results(task, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "FIGURES", tmp_path)
    rows = [{"task": "CTC phones", "error": "WER", "decoder": decoder, "setting": setting, "place": place, "utterances": 6, "rate": rate, "rtfx": rtfx, "mib": mib}
            for decoder, setting, place, rate, rtfx, mib in [("warpfst", "beam 6, max_active 7000", "1 core", 20.5, 1234, 7), ("flashlight-text", "beam_size 5, beam_threshold 25", "1 core", 30, 12.3, 8),
                                                             ("NeMo", "boosting_tree_alpha 0.5, beam_size 10", "batch 400", 20, 12000, 8),
                                                             ("cuda_ctc_decoder, with cuctc_room.so", "beam_size 10, blank_skip 1", "batch 400", 3, 70000, 9)]]
    rows[2]["recall"] = 75.5
    measure.record(list(peers.figures([*rows, {"task": "CTC phones", "decoder": "NeMo", "failed": "no wheel"}])), "./run bench peers", machine="old")
    measure.record(list(peers.figures(rows[:2])), "./run bench peers", machine="new")
    found = peers.recorded(measure.rows("peers"), "CTC phones")
    assert {place: {row["machine"] for row in each} for place, each in found.items()} == {"1 core": {"new"}, "batch 400": {"old"}}
    for row in rows:
        (back,) = [each for each in found[row["place"]] if each["decoder"] == row["decoder"]]
        assert (back["setting"], back["rate"], back["rtfx"], back["mib"], back.get("recall")) == (row["setting"], row["rate"], row["rtfx"], row["mib"], row.get("recall"))


def test_a_key_has_one_row(tmp_path, monkeypatch):
    """The newest, also if another benchmark measured it before."""
    keys = [measure.key_of(row) for row in measure.rows()]
    assert len(keys) > 5000 and len(keys) == len(set(keys))
    monkeypatch.setattr(measure, "FIGURES", tmp_path)
    measure.record([("a", "b", 1, "s"), ("a", "c", 2, "s")], "./run bench lm --part=fetch", machine="m")
    measure.record([("a", "b", 3, "s")], "bench_decode x", machine="m", date="2099-01-01")
    measure.record([("a", "b", 4, "s")], "bench_decode x", machine="other")
    assert [(row["figure"], row["machine"]) for row in measure.rows("decode")] == [("4", "other"), ("3", "m")]
    assert [row["setup"] for row in measure.rows("lm")] == ["c"] and len(measure.rows()) == 3


def test_recorded_figures_are_shown():
    shown = subprocess.run(["./run", "bench", "show", "gpus", "all GPUs"], cwd=measure.ROOT, capture_output=True, text=True, check=True).stdout
    assert "all GPUs" in shown and "one GPU " not in shown
    assert "| decode " in subprocess.run(["./run", "bench", "show"], cwd=measure.ROOT, capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run(["./run", "bench", "show", "none"], cwd=measure.ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "there are accuracy, align" in wrong.stderr


def test_names_agree():
    assert set(peer_decoders.DECODERS) == set(peers.PACKAGES) == {name.removesuffix(peers.ROOM) for name in peers.ORDER}
    settings = [*peers.cpu_settings("char")[0].items(), *peers.hybrid_cpu_settings()[0].items(), *peers.token_settings((1, 400), True).items(), *peers.token_settings((400,), True, peers.TOKEN_ALPHA).items(), *peers.boosted_settings((400,)).items(),
                *peers.token_settings((400,), False).items(), *peers.transducer_settings(False).items()]
    for decoder, recommended in peers.RECOMMENDED.items():
        labels = {peers.label(setting) for name, some in settings if name == decoder.removesuffix(peers.ROOM) for setting in some}
        assert set(recommended) <= labels, f"{decoder} is not measured at {recommended}: {labels}"


def test_boosted_words_are_said_by_few_of_the_measured_utterances(tmp_path):
    for key in "abc":
        np.save(tmp_path / f"{key}.npy", np.zeros((1, 2)))
    (tmp_path / "lexicon").write_text("ONE \u2581 O N E\nONE \u2581 W O N\nTWO \u2581 T W O\nSIX \u2581 S I X\n", encoding="utf-8")
    sentences = {"a": ["ONE", "SIX", "ONE"], "b": ["SIX", "TEN"], "c": ["TWO"]}
    first = {"ONE": ["\u2581", "O", "N", "E"], "SIX": ["\u2581", "S", "I", "X"]}
    assert peers.boosted_words(tmp_path, sentences, tmp_path / "lexicon", 2) == first
    assert peers.boosted_words(tmp_path, sentences, tmp_path / "lexicon", 3) == {**first, "TWO": ["\u2581", "T", "W", "O"]}
    often = {f"{i}": ["ONE"] for i in range(6)} | sentences
    for key in often:
        np.save(tmp_path / f"{key}.npy", np.zeros((1, 2)))
    assert "ONE" not in peers.boosted_words(tmp_path, often, tmp_path / "lexicon", 20)


def test_errors_of_boosted_tasks_are_those_of_words():
    task = peers.Task("x", {"unit": "tokens", "boosted": {"ONE": [], "SIX": []}}, {"a": ["ONE", "TWO"], "b": ["SIX"]}, {}, joins=True)
    runner = peers.Runner(argparse.Namespace(device="cpu"), task)
    runner.take("warpfst", {"beam": 1}, 1, {"seconds": 1, "mib": 1, "audio": 1, "hypotheses": {"a": ["\u2581", "ON", "E", "\u2581T", "WO"], "b": ["\u2581S", "I"]}})
    (row,) = runner.rows.values()
    assert (task.error, row["rate"], row["recall"]) == ("WER", pytest.approx(100 / 3), 50)


def test_tables_are_printed(capsys):
    row = {"task": "x", "error": "WER", "decoder": "a", "setting": "b 1", "place": "1 core", "utterances": 1, "rate": 2.5, "rtfx": 30.0, "mib": 4.0}
    peers.print_tables([row, {**row, "task": "y", "recall": 50.0}, {"task": "y", "decoder": "c", "failed": "no wheel"}])
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[-2:] == ["| a       | b 1     | 1 core |          2.50 |                  50.0 |   30 |   4 |", "c: no wheel"] and lines[3] == "| a       | b 1     | 1 core |          2.50 |   30 |   4 |"


def test_tasks_with_words_need_no_list():
    task = peers.Task("x", {"unit": "tokens"}, {"a": ["ONE"]}, {}, joins=True)
    runner = peers.Runner(argparse.Namespace(device="cpu"), task)
    runner.take("sherpa-onnx", {"streams": 1}, 1, {"seconds": 1, "mib": 1, "audio": 1, "hypotheses": {"a": ["\u2581ON", "E"]}})
    (row,) = runner.rows.values()
    assert row["rate"] == 0 and "recall" not in row


def test_a_transducer_reaches_the_search(tmp_path):
    """Greedy, with at most a symbol a frame: the best of each frame, by the model's formulas."""
    rng = np.random.default_rng(3)
    model, scores = transducer_model.Reference(rng), rng.normal(size=(12, 5)).astype(np.float32)
    graph = wf.build_ctc_graph(transducer_model.NAMES, topology="transducer")
    graph.save(tmp_path / "T.wfst")
    graph.words.write(tmp_path / "words.txt")
    task = {"graph": tmp_path / "T.wfst", "words": tmp_path / "words.txt", "acoustic_scale": 1, "transducer": model.save(tmp_path / "model.safetensors")}
    prepare, decode = peer_decoders.warpfst({"device": "cpu", "threads": 1, "task": task}, {"greedy": 1, "max_symbols": 1})
    _, expected = model.greedy(scores, 1)
    assert len(expected) > 3 and model.greedy(scores, 3)[1] != expected
    assert decode(prepare([scores])) == [[transducer_model.NAMES[token] for token in expected]]


def test_sherpas_stand_in_gives_the_outputs_of_each_utterance(tmp_path):
    """Of a batch as well, behind as many frames of silence as it reads; and the predictor takes token -1 for the blank."""
    rng = np.random.default_rng(1)
    matrices = [rng.normal(size=(frames, 3)).astype(np.float32) for frames in (4, 9, 2)]
    real, whole, value = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.helper.make_tensor_value_info
    table = onnx.numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "table")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Gather", ["table", "y"], ["pred"])], "predictor", [value("y", whole, ["N", 2])], [value("pred", real, ["N", 2, 2])], [table])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), tmp_path / "predictor.onnx")
    sherpa_models.write(tmp_path / "predictor.onnx", tmp_path / "predictor.onnx", 4, 2, matrices, tmp_path)
    encoder, decoder = (onnxruntime.InferenceSession(str(tmp_path / f"{name}.onnx")) for name in ("encoder", "decoder"))
    assert decoder.get_modelmeta().custom_metadata_map == {"vocab_size": "4", "context_size": "2"}
    assert decoder.run(None, {"y": np.array([[-1, 0], [2, 3]])})[0].tolist() == [[[0, 1], [0, 1]], [[4, 5], [6, 7]]]
    for numbers in ([0], [1], [2], [2, 0, 1]):
        frames = [len(sherpa_models.silence(number)) // sherpa_models.HOP for number in numbers]
        features = np.zeros((len(numbers), max(frames), sherpa_models.BINS), np.float32)
        rows, lengths = encoder.run(None, {"x": features, "x_lens": np.array(frames)})
        assert lengths.tolist() == [len(matrices[number]) for number in numbers]
        for row, number in zip(rows, numbers, strict=True):
            assert np.array_equal(row[: len(matrices[number])], matrices[number])


def test_boosts_reach_the_search(tmp_path):
    """Of two token sequences with nearly the same score, the list decides."""
    (tmp_path / "words.txt").write_text("<eps> 0\n<blk> 1\nA 2\nB 3\nC 4\n")
    graph = wf.build_ctc_graph(["<blk>", "A", "B", "C"], topology="correct")
    graph.save(tmp_path / "T.wfst")
    scores = np.log(np.array([[0.01, 0.97, 0.01, 0.01], [0.01, 0.01, 0.51, 0.47]], dtype=np.float32))
    found = {}
    for nats in (0, 1):
        job = {"device": "cpu", "threads": 1, "task": {"graph": tmp_path / "T.wfst", "words": tmp_path / "words.txt", "acoustic_scale": 1, "boosted": {"AC": ["A", "C"]}}}
        prepare, decode = peer_decoders.warpfst(job, {"beam": 10, "max_active": 100, "nats_a_letter": nats})
        (found[nats],) = decode(prepare([scores]))
    assert found == {0: ["A", "B"], 1: ["A", "C"]}


def test_nemos_model_has_the_same_numbers(tmp_path):
    class Programs:
        warpfst = "warpfst"

        def run(self, _program, _lm, _prune, raw, _quiet, _output, path):
            path.write_text(raw.read_text(encoding="utf-8"), encoding="utf-8")

    tokens = ["\u2581", "A", "B"]
    plain, renamed = (path.read_text(encoding="utf-8").splitlines() for path in peers.token_model(Programs(), tmp_path, [["\u2581", "A", "B", "A"], ["\u2581", "B"]], tokens))
    letters = {"d": "\u2581", "e": "A", "f": "B"}
    back = ["\t".join([first, " ".join(letters.get(word, word) for word in words.split()), *rest]) if "\t" in line else line
            for line in renamed for first, words, *rest in [[*line.split("\t"), "", ""][: max(2, line.count("\t") + 1)]]]
    assert back == plain and sum("\t" in line for line in plain) > 8


def test_modules_of_nemo_run_without_its_dependencies(tmp_path):
    for name, text in {
        "collections/asr/parts/submodules/ctc_batched_beam_decoding.py": "from lightning.pytorch import Trainer\nfrom nemo.core.classes import Typing, typecheck\nfrom nemo.utils.enum import Kind\n\nclass Search(Typing):\n    kind = Kind.ONE\n",
        "utils/enum.py": "import enum\n\nclass Kind(enum.Enum):\n    ONE = 1\n",
        "core/classes.py": "raise RuntimeError('not wanted')\n",
    }.items():
        path = tmp_path / "nemo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    code = f"import nemo_modules\nmodule = nemo_modules.load({str(tmp_path)!r}, nemo_modules.BEAM)\nprint(module.Search().kind.value)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "bench" / "peers")})
    assert done.stdout == "1\n", done.stderr
