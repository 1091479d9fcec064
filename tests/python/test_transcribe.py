"""Transcription of real recordings with a real model. Features and the model's outputs are checked against independent references."""

import difflib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import CTC, ROOT, transducer_folder

import warpfst as wf
from warpfst.transcribe import audio, outputs
from warpfst.transcribe.command import main
from warpfst.transcribe.keys import find
from warpfst.transcribe.models import CtcModel, SphinxModel, open_model

CARDS = ROOT / "examples" / "cards"
SPHINX = pathlib.Path("/usr/share/pocketsphinx/model/en-us")


@pytest.fixture(scope="module")
def model():
    return CtcModel(CTC, "cpu", 1)


def reference_fbank(samples, bins=80, rate=16000):
    """Log-mel filterbank energies computed from their definition, in float64."""
    frames = np.stack([samples[i : i + 400] for i in range(0, len(samples) - 399, 160)]).astype(np.float64) * 32768
    frames -= frames.mean(axis=1, keepdims=True)
    frames -= 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    power = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85, 512)) ** 2
    mel = lambda hertz: 1127 * np.log(1 + hertz / 700)
    edges = np.linspace(mel(20), mel(rate / 2), bins + 2)
    place = mel(np.arange(257) * rate / 512)
    slopes = [np.minimum((place - lo) / (mid - lo), (hi - place) / (hi - mid)) for lo, mid, hi in zip(edges, edges[1:], edges[2:])]
    return np.log(np.maximum(power[:, :256] @ np.maximum(np.stack(slopes)[:, :256], 0).T, np.finfo(np.float32).eps))


def test_features_by_definition(model):
    samples = audio.read(CARDS / "card5.wav", 16000)
    features, expected = model.features(samples), reference_fbank(samples)
    assert features.shape == expected.shape and np.abs(features - expected).max() < 0.01
    assert model.features(samples[:100]).shape == (0, 80)


def test_the_onnx_model_gives_the_recorded_outputs(model):
    check = np.load(ROOT / "tests/python/data/onnx_check.npz")
    (scores,) = model._session.run(["logp_phone"], {"feats": check["feats"], "feat_lens": np.array([check["feats"].shape[1]])})
    assert np.abs(scores - check["logp_phone"]).max() < 1e-3
    shipped = np.load(CTC / "logp_phone" / f"{check['utt']}.npy") if (CTC / "logp_phone" / f"{check['utt']}.npy").exists() else scores[0].astype(np.float16)
    assert np.abs(scores[0] - shipped).max() < 0.3  # shipped with 6 bits of mantissa


def test_batches_change_nothing_but_rounding(model):
    pieces = [audio.read(path, 16000) for path in sorted(CARDS.glob("*.wav"))] + [np.zeros(50, np.float32)]
    together, lengths = model.scores(pieces)
    assert lengths[-1] == 0
    for piece, scores, length in zip(pieces, together, lengths):
        alone, (count,) = model.scores([piece])
        assert count == length and np.abs(alone[0, :count] - scores[:count]).max(initial=0) < 1e-3


def transcribe(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_real_recordings_to_text(capsys):
    status, out, err = transcribe(capsys, *sorted(CARDS.glob("*.wav")), "--model", CARDS, "--ref", CARDS / "ref")
    assert status == 0 and {"card1 ten of clubs", "card3 seven of clubs", "card4 five five"} <= set(out.splitlines())
    assert re.search(r"5 recordings, 0 failed", err) and re.search(r"WER 28.57% \(6 of 21 words\)", err)
    status, out, _ = transcribe(capsys, CARDS / "card4.wav", "--model", CTC)
    assert out == "card4 FIVE FIVE\n"


def test_texts_come_in_the_order_of_the_arguments(capsys, tmp_path):
    order = ["card5", "card1", "card4", "card2", "card3"]  # by length: card1, card3, card4, card2, card5
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    paths = [CARDS / f"{key}.wav" for key in order]
    for given in (paths, [paths[0], tmp_path / "bad.wav", *paths[1:]]):
        status, out, _ = transcribe(capsys, *given, "--model", CARDS, "--batch-seconds", 3, "-q")
        assert status == (len(given) > 5) and [line.split()[0] for line in out.splitlines()] == order


def test_order_keeps_what_is_done():
    passed = []
    order = outputs.InOrder(["a", "b", "c", "d"], passed.append)
    for key, seen in (("c", []), ("a", ["A"]), ("d", ["A"])):
        order.add(key, key.upper())
        assert passed == seen
    order.finish()  # b never came
    assert passed == ["A", "C", "D"]
    order = outputs.InOrder(["a", "b"], passed.append)
    order.add("b", "B")
    order.add("a", None)  # failed
    assert passed == ["A", "C", "D", "B"]


def test_formats_resume_and_failures(capsys, tmp_path):
    shutil.copy(CARDS / "card1.wav", tmp_path)
    (tmp_path / "broken.flac").write_bytes(b"no audio")
    (tmp_path / "sub").mkdir()
    shutil.copy(CARDS / "card4.wav", tmp_path / "sub")
    for format in outputs.FORMATS:
        status, out, err = transcribe(capsys, tmp_path, "--model", CARDS, "--format", format, "-o", tmp_path / format)
        assert status == 1 and out == "" and "broken.flac" in err and "2 recordings, 1 failed" in err
        assert sorted(path.stem for path in (tmp_path / format).iterdir()) == ["card1", "sub-card4"]
    assert (tmp_path / "text/card1.txt").read_text() == "card1 ten of clubs\n"
    words = json.loads((tmp_path / "json/card1.json").read_text())["words"]
    assert [word["word"] for word in words] == ["ten", "of", "clubs"] and all(0 <= word["start"] < word["end"] <= 1.1 for word in words)
    assert re.fullmatch(r"card1 1 \d\.\d\d \d\.\d\d ten\n.*\n.* clubs\n", (tmp_path / "ctm/card1.ctm").read_text())
    assert re.fullmatch(r"1\n00:00:0\d,\d{3} --> 00:00:0\d,\d{3}\nten of clubs\n", (tmp_path / "srt/card1.srt").read_text())
    assert re.fullmatch(r"WEBVTT\n\n00:00:0\d\.\d{3} --> 00:00:0\d\.\d{3}\nten of clubs\n", (tmp_path / "vtt/card1.vtt").read_text())
    # --resume keeps existing files and makes missing ones.
    (tmp_path / "text/card1.txt").write_text("done before\n")
    (tmp_path / "text/sub-card4.txt").unlink()
    (tmp_path / "text/sub-card4.txt.part").write_text("half")
    status, _, err = transcribe(capsys, tmp_path, "--model", CARDS, "-o", tmp_path / "text", "--resume")
    assert "1 recording, 1 failed" in err and (tmp_path / "text/card1.txt").read_text() == "done before\n"
    assert (tmp_path / "text/sub-card4.txt").read_text() == "sub-card4 five five\n"


def test_other_rates_and_channels(capsys, tmp_path):
    import soundfile

    samples = audio.read(CARDS / "card1.wav", 16000)
    soundfile.write(tmp_path / "high.flac", np.stack([audio.resample(samples, 16000, 44100)] * 2, axis=1), 44100)
    assert transcribe(capsys, tmp_path / "high.flac", "--model", CARDS)[1] == "high ten of clubs\n"
    tone = np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000).astype(np.float32)
    twice = audio.resample(tone, 8000, 16000)
    assert len(twice) == 16000 and np.abs(twice[100:-100] - np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)[100:-100]).max() < 1e-3


def test_long_recordings_are_cut_at_quiet_places(capsys, tmp_path, rng):
    import soundfile

    card = audio.read(CARDS / "card4.wav", 16000)
    pause = (rng.normal(0, 1e-4, 8000)).astype(np.float32)
    soundfile.write(tmp_path / "long.wav", np.concatenate([card, pause] * 6), 16000)
    pieces = [(begin, begin + len(samples)) for begin, samples in audio.pieces(tmp_path / "long.wav", 16000, 3.0)]
    period = len(card) + len(pause)
    assert len(pieces) >= 5 and all(end - begin <= 48000 for begin, end in pieces) and pieces[0][0] == 0 and pieces[-1][1] == 6 * period
    assert all(a[1] == b[0] and a[1] % period > len(card) for a, b in zip(pieces, pieces[1:]))
    _, out, _ = transcribe(capsys, tmp_path / "long.wav", "--model", CARDS, "--max-seconds", 3, "--format", "json")
    words = json.loads(out)["words"]
    assert [word["word"] for word in words] == ["five"] * 12
    assert all(index * period / 16000 - 0.25 <= words[2 * index]["start"] < words[2 * index + 1]["end"] <= (index + 1) * period / 16000 for index in range(6))


def test_lists_options_and_kept_graphs(capsys, tmp_path):
    (tmp_path / "list").write_text(f"one {CARDS}/card1.wav\n\ntwo {CARDS}/card4.wav\n")
    arguments = ("--list", tmp_path / "list", "--model", CARDS, "--graph", tmp_path / "g.wfst", "--option", "beam=20")
    first = transcribe(capsys, *arguments)
    assert (tmp_path / "g.wfst").exists() and first[:2] == (0, "one ten of clubs\ntwo five five\n")
    assert transcribe(capsys, *arguments)[:2] == first[:2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.wav", "--model", "nowhere"], "x.wav"),
        ([CARDS / "card1.wav", "--model", "nowhere"], "neither config.json nor a Sphinx model"),
        ([CARDS / "card1.wav", "--model", CARDS, "--resume"], "--output"),
        ([CARDS / "card1.wav", "--model", CARDS, "--max-seconds", "0"], "expected a number from 1"),
        ([CARDS / "card1.wav", "--model", CARDS, "--batch-seconds", "nan"], "expected a number from 1"),
        ([CARDS / "card1.wav", "--model", CARDS, "--rate", "16000"], "--rate"),
        (["-", CARDS / "card1.wav", "--model", CARDS], "cannot be combined with other recordings"),
        ([CARDS / "card1.wav", CARDS / "card4.wav", "--model", CARDS, "--format", "srt"], "needs --output"),
        ([CARDS / "card1.wav", "--model", CARDS, "--option", "beem=3"], "beem"),
        ([CARDS / "card1.wav", "--model", CARDS, "--option", "beam"], "NAME=VALUE"),
        ([CARDS / "card1.wav", "--model", CARDS, "--device", "cuda:99"], "cuda"),
        (["--model", CARDS], "no audio"),
    ],
)
def test_wrong_usage(capsys, arguments, message):
    try:
        status, out, err = transcribe(capsys, *arguments)
    except SystemExit as stop:  # argparse
        status, (out, err) = stop.code, capsys.readouterr()
    assert status in (1, 2) and out == "" and message in err and "Traceback" not in err


def test_recordings_with_the_same_name(capsys, tmp_path):
    """x.wav and x.flac, and x.wav in two folders: all are transcribed, and get different keys made from their paths."""
    import soundfile

    for folder, name in (("a", "card1"), ("b", "card4")):
        (tmp_path / folder).mkdir()
        shutil.copy(CARDS / f"{name}.wav", tmp_path / folder / "x.wav")
    soundfile.write(tmp_path / "b" / "x.flac", *soundfile.read(CARDS / "card3.wav"))
    out = tmp_path / "out"
    assert transcribe(capsys, tmp_path / "b", "--model", CARDS, "-o", out, "-q")[0] == 0
    assert {path.name: path.read_text() for path in out.iterdir()} == {"x.wav.txt": "x.wav five five\n", "x.flac.txt": "x.flac seven of clubs\n"}
    once = [CARDS / "card4.wav", CARDS / "card4.wav", CARDS / ".." / "cards" / "card4.wav"]
    assert transcribe(capsys, *once, "--model", CARDS, "-q")[:2] == (0, "card4 five five\n")
    (tmp_path / "list").write_text(f"x {CARDS}/card1.wav\nx {CARDS}/card3.wav\n")
    status, text, err = transcribe(capsys, "--list", tmp_path / "list", "--model", CARDS)
    assert (status, text) == (1, "x ten of clubs\n") and "card3.wav: the key 'x' is that of" in err and "1 recording, 1 failed" in err


def test_keys_of_recordings_are_unique():
    def keys(*paths, listed=()):
        return [one.key for one in find(map(pathlib.Path, paths), listed)]

    assert keys("x.wav", "y.wav") == ["x", "y"]
    assert keys("a/x.wav", "b/x.wav", "y.wav") == ["a-x", "b-x", "y"] and keys("b/x.wav", "a/x.wav") == ["b-x", "a-x"]
    assert keys("x.wav", "x.flac") == ["x.wav", "x.flac"]
    assert keys("a/x.wav", "b/x.wav", "b/x.flac") == ["a-x", "b-x", "x.flac"]
    assert keys("x.wav", "y.wav", listed=[("x", pathlib.Path("z.wav"))]) == ["x", "x.wav", "y"]
    three = keys("a-x.wav", "a/x.wav", "b/x.wav", "/a/x.wav", "../a/x.wav")
    assert len(set(three)) == 5 and not any("/" in key for key in three)


def test_captions():
    words = [outputs.TimedWord(f"word{i}", i * 0.5, i * 0.5 + 0.4) for i in range(40)] + [outputs.TimedWord("<late & last>", 3700, 3700.25)]
    groups = list(outputs.captions(words))
    assert [word for group in groups for word in group] == words and len(groups[-1]) == 1
    assert all(group[-1].end - group[0].start <= 6 and sum(len(word.text) + 1 for word in group) <= 85 for group in groups)
    text = outputs.as_vtt(outputs.Transcript("k", "p", 4000, words, 0, []))
    assert "01:01:40.000 --> 01:01:40.250\n&lt;late &amp; last>" in text


def test_sphinx_model(capsys, tmp_path):
    """Uses senone scores of pocketsphinx_batch, and a small grammar's graph instead of the large language model's."""
    model = open_model(SPHINX, "cpu", 1)
    assert isinstance(model, SphinxModel)
    words = wf.Symbols.read(CARDS / "words.txt")
    grammar = wf.Fst.compile(CARDS / "grammar.txt", words, words, acceptor=True)
    wf.build_hmm_graph(SPHINX / "en-us", SPHINX / "cmudict-en-us.dict", grammar=grammar).save(tmp_path / "cards.wfst")
    status, out, err = transcribe(capsys, *sorted(CARDS.glob("*.wav")), "--model", SPHINX, "--graph", tmp_path / "cards.wfst", "--ref", CARDS / "ref")
    assert status == 0 and "card4 five five" in out, err
    assert float(re.search(r"WER ([\d.]+)%", err)[1]) < 30, out


def test_the_command_of_the_readme():
    run = subprocess.run([sys.executable, "-m", "warpfst", "transcribe", CARDS / "card1.wav", "--model", CARDS, "-q"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "card1 ten of clubs\n", "")
    assert subprocess.run([sys.executable, "-m", "warpfst", "help"], capture_output=True, text=True).stdout.startswith("warpfst")


def test_encoder_and_transducer(capsys, tmp_path, rng):
    """With a transducer's file the model's output is an encoder's. Here that is the CTC model, and the transducer is a random one."""
    transducer_folder(tmp_path, rng)
    recordings = sorted(CARDS.glob("*.wav"))
    status, out, _ = transcribe(capsys, *recordings, "--model", tmp_path)
    assert status == 0
    model = CtcModel(tmp_path, "cpu", 1)
    assert model.transducer == tmp_path / "toy.safetensors" and model.transducer in model.files
    decoder = wf.Decoder(wf.build_ctc_graph(tmp_path / "tokens_phone.txt", topology="transducer"), transducer=model.transducer)
    wanted = [result.text for result in decoder.decode(*model.scores([audio.read(path, 16000) for path in recordings]))]
    found = dict(line.partition(" ")[::2] for line in out.splitlines())
    assert [found[path.stem] for path in recordings] == wanted and len(set(wanted)) > 1


@pytest.mark.skipif("WARPFST_TRANSDUCER_DATA" not in os.environ, reason="WARPFST_TRANSDUCER_DATA names no folder with a real encoder and transducers")
def test_heads_of_a_real_encoder(capsys, tmp_path):
    """The transducers and the CTC head of one encoder transcribe the same recordings: texts are as their decoders give, and alike."""
    data = pathlib.Path(os.environ["WARPFST_TRANSDUCER_DATA"])
    recordings = sorted(CARDS.glob("*.wav"))
    letters = {}
    for head in ("logp_bpe", "rnnt", "lstm", "tdt"):
        folder = tmp_path / head
        folder.mkdir()
        acoustic = {"file": str(data / "encoder.onnx"), "log_probs": "enc", "lengths": "out_lens", "transducer": str(data / f"{head}.safetensors")}
        if head == "logp_bpe":
            acoustic.update(log_probs=head)
            del acoustic["transducer"]
        (folder / "config.json").write_text(json.dumps({"acoustic_model": acoustic, "tokens": str(data / "tokens.txt"), "frame_shift": 0.04}))
        status, out, _ = transcribe(capsys, *recordings, "--model", folder)
        assert status == 0
        model = CtcModel(folder, "cpu", 1)
        scores, lengths = model.scores([audio.read(path, 16000) for path in recordings])
        if head == "logp_bpe":
            tokens = [line.split()[0] for line in (data / "tokens.txt").read_text(encoding="utf-8").splitlines()]
            wanted = [[tokens[c] for c, _ in itertools.groupby(row[:length].argmax(axis=1)) if c] for row, length in zip(scores, lengths)]
        else:
            graph = wf.build_ctc_graph(data / "tokens.txt", topology="transducer")
            wanted = [[word.text for word in result.words] for result in wf.Decoder(graph, transducer=data / f"{head}.safetensors").decode(scores, lengths)]
        found = dict(line.partition(" ")[::2] for line in out.splitlines())
        assert [found[path.stem].split() for path in recordings] == wanted
        letters[head] = "".join("".join(words) for words in wanted)
    for head, text in letters.items():
        assert difflib.SequenceMatcher(None, text, letters["rnnt"]).ratio() > 0.5, head
