"""Transcription on many machines, imitated on one: a local Ray cluster with two actors, and the jobs of a Slurm array. Both also resume earlier work."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

from warpfst.transcribe.command import main, shard_of

CARDS = ROOT / "examples" / "cards"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Words by key, as a single process recognizes them."""
    folder = tmp_path_factory.mktemp("alone")
    assert main([str(CARDS), "--model", str(CARDS), "--format", "json", "-o", str(folder), "-q"]) == 0
    return words_of(folder)


@pytest.fixture
def recordings(tmp_path):
    """A list of five recordings and one missing file."""
    lines = [f"{path.stem} {path}\n" for path in sorted(CARDS.glob("*.wav"))]
    (tmp_path / "list").write_text("".join([*lines, "gone no/such/file.wav\n"]))
    return tmp_path / "list"


def words_of(folder):
    return {row["key"]: row["words"] for row in (json.loads(path.read_text()) for path in folder.glob("*.json"))}


CALLS = """
import json, pathlib, sys
import ray
from warpfst.transcribe.cluster import Settings, main, transcribe_list
from warpfst.transcribe.command import read_list
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
folder, model, recordings = sys.argv[1:]
listed = list(read_list(pathlib.Path(recordings)))
settings = Settings(model, folder + "/out")
first = transcribe_list(listed[:3], settings, actors=2, batch_size=1)
print(json.dumps(first))
status = main(["--list", recordings, "--model", model, "-o", folder + "/out", "--actors", "2", "--batch-size", "2"])
print(json.dumps(status))
print(json.dumps(transcribe_list([pair for pair in listed if pair[0] != "gone"], settings)))
"""


def test_ray_cluster(tmp_path, recordings, expected):
    pytest.importorskip("ray")
    script = [sys.executable, "-c", CALLS, str(tmp_path), str(CARDS), str(recordings)]
    run = subprocess.run(script, capture_output=True, text=True, env={**os.environ, "RAY_DATA_DISABLE_PROGRESS_BARS": "1", "RAY_USAGE_STATS_ENABLED": "0"}, timeout=500)
    assert run.returncode == 0, run.stderr
    first, status, last = [json.loads(line) for line in run.stdout.splitlines() if line[:1] in "[012"]
    assert first[:2] == [3, 0] and first[3] == [] and first[2] > 1
    assert status == 1 and "2 recordings transcribed, 3 done before, 1 failed" in run.stderr and "no/such/file.wav" in run.stderr
    assert last == [0, 5, 0.0, []]
    assert words_of(tmp_path / "out") == expected and not list((tmp_path / "out").glob("*.part"))


def test_slurm_array(tmp_path, recordings, expected):
    """Three jobs of the example's script; one of them is submitted twice."""
    program = tmp_path / "bin" / "warpfst"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpfst "$@"\n')
    program.chmod(0o755)
    paths = {"LIST": str(recordings), "MODEL": str(CARDS), "OUTPUT": str(tmp_path / "out"), "DEVICE": "cpu"}
    seen, failed = set(), 0
    for task in (0, 1, 1, 2):
        job = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_CPUS_PER_TASK": "1", "PATH": f"{program.parent}:{os.environ['PATH']}"}
        run = subprocess.run(["bash", ROOT / "examples" / "slurm" / "transcribe.sbatch"], capture_output=True, text=True, env={**os.environ, **paths, **job})
        assert run.returncode == (1 if shard_of("gone", 3) == task else 0), run.stderr
        failed += "1 failed" in run.stderr
        new = set(words_of(tmp_path / "out")) - seen
        assert new == {key for key in expected if shard_of(key, 3) == task} - seen
        seen |= new
    assert words_of(tmp_path / "out") == expected and failed >= 1


@pytest.mark.parametrize("shard", ["3/3", "-1/3", "1", "a/b", "1/0"])
def test_bad_shards(shard, capsys):
    with pytest.raises(SystemExit):
        main([str(CARDS), "--model", str(CARDS), f"--shard={shard}"])
    assert "expected I/N" in capsys.readouterr().err


def test_the_slurm_script_has_its_options_before_the_first_command():
    text = pathlib.Path(ROOT / "examples" / "slurm" / "transcribe.sbatch").read_text()
    options, command = text.split("set -euo pipefail")
    assert options.count("#SBATCH") == 7 and "#SBATCH" not in command
