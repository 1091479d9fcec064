"""A bad recording, array, key or output costs that recording alone: the others are transcribed, it is named, and the exit code says so."""

import os
import pathlib
import sys

import numpy as np
import pytest

import warpfst as wf
from warpfst.transcribe.cluster import Settings, transcribe_part
from warpfst.transcribe.command import main
from warpfst.transcribe.models import ArrayModel

TOKENS = ["<blk>", "a", "b"]


class Arrays(ArrayModel):
    sample_rate, frame_shift = 25, 0.04
    model_fails: "type[Exception] | None" = None

    def __init__(self, device="cpu", threads=0):
        pass

    def build_graph(self):
        return wf.build_ctc_graph(TOKENS, {"ab": "a b", "a": "a"})

    def scores(self, pieces):
        if self.model_fails is not None and any(len(piece) == 4 for piece in pieces):  # of one recording
            raise self.model_fails
        return super().scores(pieces)


def log_probs(path, columns=3):
    scores = np.full((len(path), columns), -9.0, np.float32)
    scores[range(len(path)), path] = -0.001
    return scores


@pytest.fixture
def good(tmp_path, monkeypatch):
    """Two good recordings, in the current folder. The model is in a module of its own."""
    monkeypatch.chdir(tmp_path)
    np.save("one.npy", log_probs([1, 0, 2]))
    np.save("two.npy", log_probs([1, 0]))
    return ["one", "two"]


def part(keys, out="out", model=Arrays, form="text", **listed):
    return transcribe_part([*((key, f"{key}.npy") for key in keys), *listed.items()], Settings(model, out, format=form, options={"num_threads": 2}), 0, 1)


def written(out="out"):
    return {path.name: path.read_text() for path in pathlib.Path(out).iterdir()}


GOOD = {"one.txt": "one ab\n", "two.txt": "two a\n"}
BAD_ARRAYS = {
    "flat": lambda file: np.save(file, np.zeros(5, np.float32)),
    "cube": lambda file: np.save(file, np.zeros((2, 3, 3), np.float32)),
    "scalar": lambda file: np.save(file, np.float32(1)),
    "narrow": lambda file: np.save(file, log_probs([0, 1], columns=2)),
    "text": lambda file: np.save(file, np.array([["a", "b", "c"]])),
    "objects": lambda file: np.save(file, np.array([[{}, 1, 2]], dtype=object)),
    "nan": lambda file: np.save(file, np.full((2, 3), np.nan, np.float32)),
    "cut": lambda file: file.write(b"\x93NUMPY\x01\0"),
    "empty": lambda file: None,
    "other": lambda file: file.write(b"not an array"),
}


def write_bad():
    for key, write in BAD_ARRAYS.items():
        with open(f"{key}.npy", "wb") as file:
            write(file)


def test_bad_arrays(good):
    write_bad()
    got = part([good[0], *BAD_ARRAYS, good[1], "missing"])
    assert (got.num_done, [key for key, _ in got.failed]) == (2, sorted([*BAD_ARRAYS, "missing"])) and written() == GOOD
    assert all(f"{key}.npy: " in why and len(why) > len(f"{key}.npy: ") for key, why in got.failed)


@pytest.mark.parametrize("kind", [KeyError, TypeError, ZeroDivisionError, MemoryError, AssertionError])
def test_a_model_that_fails_for_one_recording(good, kind):
    np.save("worse.npy", log_probs([1, 0, 0, 2]))
    model = type("Fails", (Arrays,), {"model_fails": kind})
    got = part([*good, "worse"], model=model)
    assert written() == GOOD and [(key, why.split(": ")[1]) for key, why in got.failed] == [("worse", kind.__name__)]


@pytest.mark.parametrize("kind", [ImportError, wf.DeviceError])
def test_failures_of_the_run_end_it(good, kind):
    np.save("worse.npy", log_probs([1, 0, 0, 2]))
    with pytest.raises(kind):
        part([*good, "worse"], model=type("Fails", (Arrays,), {"model_fails": kind}))


def test_keys_that_are_no_names(good, tmp_path):
    keys = ["../out2", f"{tmp_path}/absolute", "a/b", "", ".", "..", "nul\0", "x" * 300]
    got = transcribe_part([("one", "one.npy"), *((key, "one.npy") for key in keys), ("two", "two.npy")], Settings(Arrays, "deep/out", format="text"), 0, 1)
    assert sorted(key for key, _ in got.failed) == sorted(keys) and written("deep/out") == GOOD
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == sorted(GOOD)


def test_keys_that_are_given_twice(good):
    pathlib.Path("copy").symlink_to("one.npy")
    recordings = [("one", "one.npy"), ("two", "two.npy"), ("one", "two.npy"), ("one", "./one.npy"), ("two", "copy")]
    got = transcribe_part(recordings, Settings(Arrays, "out", format="text"), 0, 1)
    assert (got.num_done, [key for key, _ in got.failed], written()) == (2, ["one", "two"], GOOD)
    assert "two.npy: the key 'one' is that of" in got.failed[0][1]
    again = transcribe_part(recordings, Settings(Arrays, "out", format="text"), 0, 1)
    assert (again.num_done, again.num_there, len(again.failed)) == (0, 2, 2)


def test_outputs_that_cannot_be_written(good):
    np.save("taken.npy", log_probs([1, 0]))
    pathlib.Path("out/taken.txt").mkdir(parents=True)
    got = part([*good, "taken"])
    assert [key for key, _ in got.failed] == ["taken"] and "taken.txt" in got.failed[0][1]
    pathlib.Path("out/taken.txt").rmdir()
    assert written() == GOOD


def test_the_command(good, capsys):
    write_bad()
    pathlib.Path("failing_arrays.py").write_text(pathlib.Path(__file__).read_text())
    lines = [f"{key} {key}.npy" for key in (*good, *BAD_ARRAYS)]
    pathlib.Path("list").write_bytes("\n".join([*lines, "../up one.npy", "one two.npy", "gone gone.npy"]).encode() + b"\nbytes\xff one.npy\n")
    sys.path.insert(0, os.getcwd())
    try:
        status = main(["--list", "list", "--model", "failing_arrays.py:Arrays", "-o", "out"])
    finally:
        sys.path.remove(os.getcwd())
    err = capsys.readouterr().err
    assert status == 1 and written() == GOOD, err
    for name in (*(f"{key}.npy" for key in BAD_ARRAYS), "'../up'", "the key 'one' is that of", "gone.npy: no such file"):
        assert name in err, err
    assert "2 recordings, 14 failed" in err, err
