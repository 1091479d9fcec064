"""Transcription of standard input: WAV and raw samples, results while audio arrives, Ctrl-C, bad headers."""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import soundfile
from conftest import ROOT

from warpfst.transcribe import audio
from warpfst.transcribe.command import main

CARDS = ROOT / "examples" / "cards"
COMMAND = [sys.executable, "-m", "warpfst", "transcribe", "-", "--model", str(CARDS)]
PAUSE = np.random.default_rng(1).normal(0, 3, 16000).astype(np.int16)


def card(name):
    return soundfile.read(CARDS / f"{name}.wav", dtype="int16")[0]


def wav(samples, tag=1, bits=16, rate=16000, channels=1, size=None, before=b""):
    data = samples.tobytes()
    form = struct.pack("<HHIIHH", tag, channels, rate, 0, 0, bits)
    chunks = before + b"fmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", 2**32 - 1) + b"WAVE" + chunks


def fed(data, *flags):
    run = subprocess.run([*COMMAND, *map(str, flags)], input=data, capture_output=True, timeout=300)
    return run.returncode, run.stdout.decode(), run.stderr.decode()


@pytest.fixture
def told(tmp_path, capfd):
    """`fed` in this process, which saves starting the program."""

    def run(data, *flags):
        (tmp_path / "stdin").write_bytes(data)
        kept, file = os.dup(0), os.open(tmp_path / "stdin", os.O_RDONLY)
        os.dup2(file, 0)
        try:
            return (main([*COMMAND[COMMAND.index("-") :], *map(str, flags)]), *capfd.readouterr())
        finally:
            os.dup2(kept, 0)
            os.close(kept)
            os.close(file)

    return run


CARD1 = card("card1")
WIDE = CARD1.astype(np.int32) << 16
FORMS = {
    "16 bits": wav(CARD1),
    "no size yet": wav(CARD1, size=0),
    "endless": wav(CARD1, size=2**32 - 1),
    "arecord's": wav(CARD1, size=2**31 - 36),
    "8 bits": wav((WIDE // 2**24 + 128).astype(np.uint8), bits=8),
    "24 bits": wav(np.ascontiguousarray(WIDE.view(np.uint8).reshape(-1, 4)[:, 1:]), bits=24),
    "32 bits": wav(WIDE, bits=32),
    "float": wav((CARD1 / 32768).astype("<f4"), tag=3, bits=32),
    "double": wav((CARD1 / 32768).astype("<f8"), tag=3, bits=64),
    "stereo": wav(np.stack([CARD1, CARD1], 1), channels=2),
    "44.1 kHz": wav((audio.resample((CARD1 / 32768).astype(np.float32), 16000, 44100) * 32767).astype(np.int16), rate=44100),
    "other chunks": wav(CARD1, before=b"LIST" + struct.pack("<I", 3) + b"abc\0") + b"LIST" + struct.pack("<I", 40000) + b"\x55" * 40000,
}


@pytest.mark.parametrize("form", FORMS)
def test_wav_formats(form, told):
    status, out, err = told(FORMS[form], "-q")
    if form != "8 bits":
        assert (status, out, err) == (0, "stdin ten of clubs\n", "")
    else:
        assert status == 0 and out.startswith("stdin ") and err == ""


BAD = {
    b"": "ends in the WAV header, after 0 of 12 bytes",
    b"RIFF": "after 4 of 12 bytes",
    b"no audio, and long enough": "no WAV header; raw samples (s16le, one channel) need --rate",
    FORMS["float"].replace(struct.pack("<f", float(CARD1[900] / 32768)), struct.pack("<f", np.nan)): "a sample is not a finite number",
    wav(CARD1, rate=1): "sample rate 1: expected 1000 to 768000",
    wav(CARD1, channels=0): "0 channels: expected 1 to 1024",
    wav(CARD1, channels=65535): "65535 channels",
    wav(CARD1, bits=12): "WAV format 1 of 12 bits",
    wav(CARD1, tag=85): "WAV format 85",
    wav(CARD1, before=b"junk" + struct.pack("<I", 2**32 - 1)): "a WAV header of more than 1048576 bytes",
    b"RIFF\0\0\0\0WAVEdata\0\0\0\0": "samples without a format chunk",
    b"RIFF\0\0\0\0WAVEfmt \x04\0\0\0\0\0\0\0": "a WAV format chunk of 4 bytes",
}


@pytest.mark.parametrize("data", BAD, ids=list(BAD.values()))
def test_bad_headers(data, told):
    status, out, err = told(data, "-q")
    assert (status, out) == (2, "") and err.count("\n") == 1 and err.startswith("warpfst transcribe: standard input: ") and BAD[data] in err


def cards_with_pauses():
    return np.concatenate([card("card1"), PAUSE, card("card4"), PAUSE, card("card3")])


def test_pieces_in_every_format(tmp_path):
    """Times of words are counted from the start of the recording; subtitles are numbered across pieces."""
    data = cards_with_pauses().tobytes()
    assert fed(data, "--rate", 16000, "-q") == (0, "stdin ten of clubs\nstdin five five\nstdin seven of clubs\n", "")
    pieces = [json.loads(line) for line in fed(data, "--rate", 16000, "--format", "json")[1].splitlines()]
    assert [piece["text"] for piece in pieces] == ["ten of clubs", "five five", "seven of clubs"]
    begins = [piece.get("start", 0) for piece in pieces]
    assert begins == sorted(begins)
    for begin, piece in zip(begins, pieces):
        assert all(begin <= word["start"] < word["end"] <= begin + piece["duration"] + 1e-3 for word in piece["words"])
    srt = fed(data, "--rate", 16000, "--format", "srt")[1]
    assert [block.split("\n")[0] for block in srt.rstrip().split("\n\n")] == ["1", "2", "3"]
    vtt = fed(data, "--rate", 16000, "--format", "vtt")[1]
    assert vtt.count("WEBVTT") == 1 and vtt.count(" --> ") == 3 and "\n\n\n" not in vtt
    assert fed(data, "--rate", 16000, "-o", tmp_path / "out")[:2] == (0, "")
    assert {path.name: path.read_text() for path in (tmp_path / "out").iterdir()} == {"stdin.txt": "stdin ten of clubs five five seven of clubs\n"}
    assert fed(b"", "--rate", 16000, "-q") == (0, "", "")


def test_results_appear_as_they_come_and_ctrl_c_ends_the_recording():
    process = subprocess.Popen([*COMMAND, "--rate", "16000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    guard = threading.Timer(120, process.kill)
    guard.start()
    process.stdin.write(np.concatenate([card("card1"), PAUSE]).tobytes())
    process.stdin.flush()
    assert process.stdout.readline() == b"stdin ten of clubs\n"  # the pipe is still open
    process.stdin.write(card("card4").tobytes())
    process.stdin.flush()
    time.sleep(2)  # until the pipe's contents are read and the next read waits
    process.send_signal(signal.SIGINT)
    out, err = process.stdout.read(), process.stderr.read()  # standard input stays open
    process.wait()
    guard.cancel()
    assert process.returncode == 0 and b"1 recording, 0 failed" in err and out == b"stdin five five\n"


def test_pieces_depend_only_on_the_samples(rng):
    samples = cards_with_pauses().astype(np.float32) / 32768
    samples += rng.normal(0, 1e-4, len(samples)).astype(np.float32)
    whole = list(audio.cut([samples], 16000, 30, at_pauses=True))
    chunked = list(audio.cut(np.split(samples, np.sort(rng.integers(0, len(samples), 100))), 16000, 30, at_pauses=True))
    assert [begin for begin, _ in whole] == [begin for begin, _ in chunked] and len(whole) == 3
    noise = rng.normal(0, 1e-3, 16000 * 70).astype(np.float32)  # without pauses, pieces have the greatest length
    assert [len(piece) <= 16000 * 30 for _, piece in audio.cut([noise], 16000, 30, at_pauses=True)].count(True) >= 3
