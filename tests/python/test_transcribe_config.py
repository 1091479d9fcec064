"""Errors in a model folder's config.json: the message is one line that names the file and the key."""

import json
import shutil

import pytest
from conftest import CTC, ROOT

from warpfst.transcribe.command import main
from warpfst.transcribe.config import is_text_fst

CARDS = ROOT / "examples" / "cards"

# (section or None, key, value, text of the message). REMOVED removes the key.
REMOVED = object()
BAD_KEYS = [
    (None, "frame_shift", REMOVED, "frame_shift: missing"),
    (None, "frame_shift", -1, "frame_shift: -1: expected a number from"),
    (None, "frame_shift", 0, "frame_shift: 0: expected"),
    (None, "frame_shift", "0.04", 'frame_shift: "0.04": expected a number'),
    (None, "frame_shift", None, "frame_shift: null: expected a number"),
    (None, "frame_shift", True, "frame_shift: true: expected a number"),
    (None, "frame_shift", 10**400, "frame_shift: 1000"),
    (None, "frame_shfit", 0.04, "frame_shfit: unknown key; did you mean 'frame_shift'?"),
    (None, "something", 1, "something: unknown key; known keys: about, acoustic_model"),
    (None, "tokens", 7, "tokens: 7: expected text"),
    (None, "tokens", "none.txt", "graph: "),
    (None, "acoustic_model", "model.onnx", "acoustic_model: expected an object"),
    (None, "features", [], "features: expected an object"),
    (None, "graph", "TLG.wfst", "graph: expected an object"),
    (None, "decoder", None, "decoder: expected an object"),
    ("acoustic_model", "file", "none.onnx", "acoustic_model.file: "),
    ("acoustic_model", "file", "words.txt", "acoustic_model.file: "),
    ("acoustic_model", "file", 3, "acoustic_model.file: 3: expected text"),
    ("acoustic_model", "log_probs", "logits", "acoustic_model.log_probs: 'logits': no such output of the model; it has logp_char"),
    ("acoustic_model", "features", "audio", "acoustic_model.features: 'audio': no such input"),
    ("acoustic_model", "features", "feat_lens", "features.num_mel_bins: 80: the model's input 'feat_lens' is ['B'], expected"),
    ("acoustic_model", "lengths", "logp_char", "acoustic_model: outputs logp_phone, logp_char of shapes"),
    ("acoustic_model", "feature_lengths", "feats", "acoustic_model: "),
    ("acoustic_model", "log_probs", "logp_char", "acoustic_model.log_probs: the output 'logp_char' has 29 columns"),
    ("acoustic_model", "logprobs", "x", "acoustic_model.logprobs: unknown key; did you mean 'log_probs'?"),
    ("features", "sample_rate", 1, "features.sample_rate: 1: expected a whole number from 1000 to 768000"),
    ("features", "sample_rate", 16000.5, "features.sample_rate: 16000.5: expected a whole number"),
    ("features", "num_mel_bins", 0, "features.num_mel_bins: 0: expected a whole number from 3"),
    ("features", "num_mel_bins", 40, "features.num_mel_bins: 40: the model's input 'feats' is ['B', 'T', 80]"),
    ("features", "num_mel_bins", 600, "features"),
    ("features", "frame_shift_ms", 0, "features.frame_shift_ms: 0: expected"),
    ("features", "frame_length_ms", 1e9, "features.frame_length_ms: 1000000000.0: expected"),
    ("features", "window", "hannning", "features.window: \"hannning\": expected one of povey, hanning"),
    ("features", "low_freq", 7999.5, "features: 80 mel bins between 7999.5 and 8000 Hz: expected at least 1 Hz for each"),
    ("features", "high_freq", 9000, "features: low_freq 20, high_freq 9000: expected low_freq < high_freq <= 8000"),
    ("features", "preemphasis", -1, "features.preemphasis: -1: expected a number from 0 to 1"),
    ("features", "snip_edges", "no", 'features.snip_edges: "no": expected true or false'),
    ("features", "sample_scale", 0, "features.sample_scale: 0: expected"),
    ("graph", "lexicon", "none.txt", "graph: "),
    ("graph", "lexicon", 3, "graph.lexicon: 3: expected text"),
    ("graph", "words", REMOVED, "graph.grammar: a grammar in text form needs 'words'"),
    ("graph", "file", "TLG.wfst", "graph: 'file' is a complete graph"),
    ("graph", "topology", "small", "graph: "),
    ("graph", "topolgy", "compact", "graph.topolgy: unknown key; did you mean 'topology'?"),
    ("graph", "grammar", "lexicon.txt", "graph: "),
    ("decoder", "topology", "compact", "decoder.topology: unknown key; it belongs in 'graph'"),
    ("graph", "beam", 12, "graph.beam: unknown key; it belongs in 'decoder'"),
    (None, "sample_rate", 8000, "sample_rate: unknown key; it belongs in 'features'"),
    ("features", "frame_shift", 0.01, "features.frame_shift: unknown key; it belongs in no section"),
    ("decoder", "beem", 12, "decoder.beem: unknown key; did you mean 'beam'?"),
    ("decoder", "beam", -1, "decoder.beam: "),
    ("decoder", "beam", [1], "decoder.beam: "),
    ("decoder", "max_active", 1e99, "decoder.max_active: "),
]
BAD_TEXTS = [
    (b"", ":1:1: not JSON"),
    (b"frame_shift: 0.04\n", ":1:1: not JSON"),
    (b'{"frame_shift": 0.04,\n "tokens" "x"}', ":2:11: not JSON"),
    (b"[1, 2]", "expected an object"),
    (b"\xff\xfe{}", "utf-8"),
    (b'{"frame_shift": NaN}', "NaN"),
    (b'{"frame_shift": 0.04, "frame_shift": 0.01}', "'frame_shift' is given twice"),
    (b"[" * 100000, "config.json"),
    (b" " * (1 << 21), "bytes"),
]


@pytest.fixture
def folder(tmp_path):
    for path in ("config.json", "grammar.txt", "lexicon.txt", "words.txt"):
        shutil.copy(CARDS / path, tmp_path)
    text = (tmp_path / "config.json").read_text().replace("../ctc", str(CTC))
    (tmp_path / "config.json").write_text(text)
    return tmp_path


def one_line(capsys, folder):
    """Runs the command with a bad model folder. Returns its error message, which must be one line that names config.json."""
    status = main([str(CARDS / "card1.wav"), "--model", str(folder), "-q"])
    out = capsys.readouterr()
    assert status == 2 and out.out == "" and out.err.count("\n") == 1, out.err
    assert out.err.startswith(f"warpfst transcribe: {folder}/config.json:")
    return out.err


@pytest.mark.parametrize(("section", "key", "value", "message"), BAD_KEYS, ids=[f"{section}.{key}={str(value)[:12]}" for section, key, value, _ in BAD_KEYS])
def test_a_bad_key(capsys, folder, section, key, value, message):
    config = json.loads((folder / "config.json").read_text())
    place = config if section is None else config.setdefault(section, {})
    if value is REMOVED:
        del place[key]
    else:
        place[key] = value
    (folder / "config.json").write_text(json.dumps(config))
    assert f"config.json: {message}" in one_line(capsys, folder)


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS, ids=[message for _, message in BAD_TEXTS])
def test_bad_text(capsys, folder, text, message):
    (folder / "config.json").write_bytes(text)
    assert message in one_line(capsys, folder)


def test_a_valid_configuration_is_accepted(capsys, folder):
    config = json.loads((folder / "config.json").read_text())
    config["features"] = {"sample_rate": 16000, "frame_shift_ms": 10, "window": "povey", "high_freq": 0, "snip_edges": True}
    (folder / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(config).encode())
    assert main([str(CARDS / "card1.wav"), "--model", str(folder), "-q"]) == 0
    assert capsys.readouterr().out == "card1 ten of clubs\n"


def test_a_grammar_in_jsgf_is_known_by_its_content(tmp_path):
    for name, content, is_text in (("a.txt", b"0 1 a\n1\n", True), ("b.txt", b"#JSGF V1.0;", False), ("c.txt", b"\xef\xbb\xbf#JSGF V1.0;", False), ("d.fst", b"", False)):
        (tmp_path / name).write_bytes(content)
        assert is_text_fst(tmp_path / name) == is_text
    assert is_text_fst(tmp_path / "none.txt")
