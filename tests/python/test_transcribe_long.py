"""Long recordings: memory, pieces and their borders, resuming an interrupted run; files with wrong headers."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time

import numpy as np
import pytest
import soundfile
from conftest import ROOT

from warpfst.transcribe import audio
from warpfst.transcribe.command import main

CARDS = ROOT / "examples" / "cards"
# getrusage's ru_maxrss cannot be used: a child's value starts at its parent's memory.
PEAK_MB = """
def peak():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))) // 1024
"""
PEAK = PEAK_MB + """
import sys
from warpfst.transcribe.command import main
status = main(sys.argv[1:])
print(peak())
sys.exit(status)
"""
PEAK_OF_READING = PEAK_MB + """
import sys
from warpfst.transcribe import audio
next(audio.pieces(sys.argv[1], 16000, 30))
before = peak()
print(sum(len(samples) for _, samples in audio.pieces(sys.argv[2], 16000, 30)), peak() - before)
"""


def speech(num_seconds, seed=1):
    """Recordings of spoken cards with pauses between them."""
    rng, cards, made, length = np.random.default_rng(seed), [audio.read(path, 16000) for path in sorted(CARDS.glob("*.wav"))], [], 0
    while length < num_seconds * 16000:
        made += [cards[rng.integers(len(cards))], rng.normal(0, 1e-4, 6000).astype(np.float32)]
        length += len(made[-2]) + 6000
    return np.concatenate(made)[: num_seconds * 16000]


def run(*arguments, **options):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=True, **options).stdout


def test_memory_does_not_grow_with_the_recording(tmp_path):
    """Three minutes need 31 MB more than forty seconds. Decoded as a whole, they would need 310 MB more."""
    for name, num_seconds in (("short", 40), ("long", 180)):
        soundfile.write(tmp_path / f"{name}.flac", speech(num_seconds), 16000)
    flags = ("--model", CARDS, "-q", "--num-threads", 1, "--batch-seconds", 30, "-o", tmp_path)
    short, long = (int(run("-c", PEAK, tmp_path / f"{name}.flac", *flags)) for name in ("short", "long"))
    assert long - short < 100
    words = (tmp_path / "long.txt").read_text().split()
    assert len(words) > 60 and not list(tmp_path.glob("*.part*"))


@pytest.mark.parametrize(("rate", "channels", "num_seconds"), [(16000, 1, 3600), (48000, 2, 360)])
def test_an_hour_is_read_in_pieces(tmp_path, rate, channels, num_seconds):
    """An hour at 16 kHz is 230 MB of samples. Six minutes of stereo at 48 kHz are 138 MB, and twice that if they are resampled as a whole."""
    tone = np.sin(2 * np.pi * 440 * np.arange(rate) / rate).astype(np.float32)[:, None].repeat(channels, 1) * 0.1
    soundfile.write(tmp_path / "short.flac", tone, rate)
    with soundfile.SoundFile(tmp_path / "long.flac", "w", rate, channels) as file:
        for _ in range(num_seconds):
            file.write(tone)
    count, peak = map(int, run("-c", PEAK_OF_READING, tmp_path / "short.flac", tmp_path / "long.flac").split())
    assert count == num_seconds * 16000 and peak < 130


@pytest.mark.parametrize("rate", [8000, 11025, 44100, 48000])
def test_resampling_in_blocks(rate, rng):
    """Resampling in blocks gives as many samples, and nearly the same values, as resampling everything at once."""
    samples = audio.resample(speech(70), 16000, rate)
    chunks = np.split(samples, np.sort(rng.integers(0, len(samples), 40)))
    whole = audio.resample(samples, rate, 16000)
    for block_seconds in (30, 0.5):
        blocks = audio.joined(audio.resampled(chunks, rate, 16000, block_seconds))
        assert len(whole) == len(blocks) and np.abs(whole - blocks)[1600:-1600].max() < (3e-3 if rate < 16000 else 1e-4)


def test_cuts_depend_only_on_the_samples(rng):
    """Cuts do not depend on how the samples are split into chunks, or on the cut where reading starts."""
    samples = speech(60)
    whole = list(audio.cut([samples], 16000, 5.0))
    chunked = list(audio.cut(np.split(samples, np.sort(rng.integers(0, len(samples), 200))), 16000, 5.0))
    assert [begin for begin, _ in whole] == [begin for begin, _ in chunked] and np.array_equal(audio.joined(piece for _, piece in chunked), samples)
    begin, _ = whole[4]
    again = list(audio.cut([samples[begin:]], 16000, 5.0))
    assert [at + begin for at, _ in again] == [at for at, _ in whole[4:]]


def test_words_at_the_borders_of_pieces(tmp_path):
    """Every pause between cards becomes a border of pieces. No word is lost or doubled there, and no word crosses a border."""
    five, pause = audio.read(CARDS / "card4.wav", 16000), np.random.default_rng(1).normal(0, 1e-4, 5000).astype(np.float32)
    soundfile.write(tmp_path / "x.wav", np.concatenate([five, pause] * 20), 16000)
    assert main([str(tmp_path / "x.wav"), "--model", str(CARDS), "-q", "--max-seconds", "2", "-o", str(tmp_path), "--format", "json"]) == 0
    words = json.loads((tmp_path / "x.json").read_text())["words"]
    assert [word["word"] for word in words] == ["five", "five"] * 20
    period = (len(five) + len(pause)) / 16000
    assert all(index // 2 - 0.2 <= word["start"] / period < word["end"] / period <= index // 2 + 1 for index, word in enumerate(words))


@pytest.fixture(scope="module")
def transcribed(tmp_path_factory):
    made = tmp_path_factory.mktemp("transcribed")
    folder = made / "audio"
    folder.mkdir()
    soundfile.write(folder / "long.flac", speech(90), 16000)
    soundfile.write(folder / "card.wav", audio.read(CARDS / "card4.wav", 16000), 16000)
    assert main(arguments(folder, made / "whole")) == 0
    return made


@pytest.fixture
def recordings(tmp_path, transcribed):
    """A short recording and a long one. The results of an uninterrupted run are in `whole`."""
    shutil.copytree(transcribed, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "whole").iterdir():  # they have the recordings' paths
        path.write_text(path.read_text().replace(str(transcribed), str(tmp_path)))
    return tmp_path / "audio"


def arguments(folder, output, *more):
    return [*map(str, (folder, "--model", CARDS, "--format", "json", "-o", output, "--batch-seconds", 4, "--max-seconds", 2, "--num-threads", 1, *more))]


def interrupted(folder, output, by):
    """Interrupts a run after three batches of the long recording were saved. Returns the names of the output files, and the path of the partial one."""
    process = subprocess.Popen([sys.executable, "-m", "warpfst", "transcribe", *arguments(folder, output)], stderr=subprocess.PIPE, text=True)
    partial = output / "long.json.partial"
    while process.poll() is None and not (partial.exists() and partial.read_text().count("\n") >= 4):
        time.sleep(0.002)
    process.send_signal(by)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if by == signal.SIGINT else -by), err
    assert ("--resume continues" in err) == (by == signal.SIGINT)
    return sorted(path.name for path in output.iterdir() if not path.name.endswith(".part")), partial


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_resume_continues_an_interrupted_run(capsys, tmp_path, recordings, by):
    output = tmp_path / "out"
    there, partial = interrupted(recordings, output, by)
    assert there == ["card.json", "long.json.partial"]
    before = (output / "card.json").stat().st_mtime_ns
    with partial.open("a") as file:
        file.write('[[123, 456, [["half')  # an incomplete line, as after a kill
    capsys.readouterr()
    assert main(arguments(recordings, output, "--resume", "--progress")) == 0
    err = capsys.readouterr().err
    assert "1 recording, 0 failed" in err and 0 < float(err.split("failed, ")[1].split(" min")[0]) < 1.4
    assert "long.flac 100%" in err and "x real time" in err
    for name in ("card.json", "long.json"):
        assert (output / name).read_text() == (tmp_path / "whole" / name).read_text()
    assert (output / "card.json").stat().st_mtime_ns == before and not partial.exists()


def test_partial_results_of_other_settings_are_not_used(capsys, tmp_path, recordings):
    """Partial results are also not used without --resume, if the audio file has changed, or if a line is invalid."""
    output, other = tmp_path / "out", tmp_path / "other"
    _, partial = interrupted(recordings, output, signal.SIGKILL)
    capsys.readouterr()
    lines = partial.read_text()
    for change, flags in (("options", ["--resume", "--option", "beam=14"]), ("anew", []), ("audio", ["--resume"]), ("lines", ["--resume"])):
        partial.write_text(lines if change != "lines" else lines.split("\n")[0] + '\n[[5, 6, [], 0, []]]\n{"x"\n')
        if change == "audio":
            os.utime(recordings / "long.flac", (1, 1))
        assert main(arguments(recordings / "long.flac", output, *flags)) == 0
        assert "1.50 min" in capsys.readouterr().err and not partial.exists(), change
        (output / "long.json").rename(other)


def wav(samples, **header):
    """Returns the bytes of a WAV file, with the given values in its header."""
    data = (samples * 32767).astype("<i2").tobytes()
    fields = {"rate": 16000, "channels": 1, "bits": 16, "tag": 1, "size": len(data), "riff": len(data) + 36, **header}
    form = struct.pack("<HHIIHH", fields["tag"], fields["channels"], fields["rate"], 2 * fields["rate"] % 2**32, 2, fields["bits"])
    return b"RIFF" + struct.pack("<I", fields["riff"]) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", fields["size"]) + data


@pytest.mark.parametrize("rate", [0, 1, 999, 768001, 2**31 - 1])
def test_sample_rates_out_of_range(capsys, tmp_path, rate):
    (tmp_path / "x.wav").write_bytes(wav(audio.read(CARDS / "card1.wav", 16000), rate=rate))
    assert main([str(tmp_path / "x.wav"), "--model", str(CARDS), "-q"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "x.wav: " in err and (rate == 0 or f"sample rate {rate}: expected 1000 to 768000" in err or rate > 768001)


@pytest.mark.parametrize("sizes", [{"size": 0xFFFFFFFF, "riff": 0xFFFFFFFF}, {"size": 0x7FFFFFF0}, {"riff": 0}])
def test_wrong_sizes_in_a_wav_header(capsys, tmp_path, sizes):
    (tmp_path / "x.wav").write_bytes(wav(audio.read(CARDS / "card1.wav", 16000), **sizes))
    assert main([str(tmp_path / "x.wav"), "--model", str(CARDS), "-q"]) == 0
    assert capsys.readouterr().out == "x ten of clubs\n"


def test_a_flac_header_that_promises_too_much(capsys, tmp_path):
    """The header claims 2^36 - 1 samples, which would be 256 GB."""
    soundfile.write(tmp_path / "x.flac", audio.read(CARDS / "card1.wav", 16000), 16000)
    data = bytearray((tmp_path / "x.flac").read_bytes())
    data[21] |= 0x0F
    data[22:26] = b"\xff" * 4
    (tmp_path / "x.flac").write_bytes(data)
    peak = subprocess.run([sys.executable, "-c", PEAK, tmp_path / "x.flac", "--model", CARDS, "-q"], capture_output=True, text=True)
    assert "Traceback" not in peak.stderr and peak.returncode in (0, 1) and int(peak.stdout.split()[-1]) < 400


def test_samples_that_are_not_numbers(capsys, tmp_path):
    samples = audio.read(CARDS / "card1.wav", 16000)
    samples[1000] = np.nan
    soundfile.write(tmp_path / "x.wav", samples, 16000, subtype="FLOAT")
    assert main([str(tmp_path / "x.wav"), "--model", str(CARDS), "-q"]) == 1
    assert "x.wav: a sample is not a finite number" in capsys.readouterr().err
