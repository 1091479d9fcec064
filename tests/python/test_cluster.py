"""Work on many machines, imitated on one: a local Ray cluster with two actors, and the jobs of a Slurm array. They resume earlier work, also that of killed processes."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zlib

import numpy as np
import pytest
from conftest import ROOT

from warpfst.transcribe.cluster import Settings, transcribe_part
from warpfst.transcribe.command import main, shard_of

CARDS = ROOT / "examples" / "cards"
# On a machine that other tests keep busy, its memory monitor kills workers, and workers of niceness 15 get 1/30 of a processor: then 7 s become 365.
QUIET_RAY = {"RAY_DATA_DISABLE_PROGRESS_BARS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0", "RAY_worker_niceness": "0"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Words by key, as a single process recognizes them."""
    folder = tmp_path_factory.mktemp("alone")
    assert main([str(CARDS), "--model", str(CARDS), "--format", "json", "-o", str(folder), "-q"]) == 0
    return words_of(folder)


def list_of_cards(file):
    """Lists five recordings and a missing file."""
    lines = [f"{path.stem} {path}\n" for path in sorted(CARDS.glob("*.wav"))]
    file.write_text("".join([*lines, "gone no/such/file.wav\n"]))
    return file


@pytest.fixture
def recordings(tmp_path):
    return list_of_cards(tmp_path / "list")


def words_of(folder):
    return {row["key"]: row["words"] for row in (json.loads(path.read_text()) for path in folder.glob("*.json"))}


# A model of a user's own. It notes which utterances it scored, and one of its processes kills itself in the middle of its work. Without a GPU, it decodes on the CPU.
OWN = """
import os, pathlib, signal, zlib
import warpfst as wf
from warpfst.transcribe import ArrayModel

STATE, CTC = pathlib.Path(os.environ["OWN_STATE"]), pathlib.Path(os.environ["OWN_CTC"])

class Own(ArrayModel):
    sample_rate, frame_shift = 25, 0.04
    decoder_options = {"acoustic_scale": 0.7, "blank": 0}

    def __init__(self, device, num_threads):
        self._num_calls = 0
        (STATE / f"{type(self).__name__}.{os.getpid()}").write_text(device + " " + os.environ.get("CUDA_VISIBLE_DEVICES", ""))

    def build_graph(self):
        return wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz")

    def decoder(self, graph_file, options):
        return super().decoder(graph_file, {**options, "device": "cpu"})

    def scores(self, pieces):
        self._num_calls += 1
        if self._num_calls == 3 and (STATE / "kill").exists():
            (STATE / "kill").rename(STATE / "killed")
            os.kill(os.getpid(), signal.SIGKILL)
        with open(STATE / "scored", "a") as log:
            log.write("".join(f"{zlib.crc32(piece.tobytes())}\\n" for piece in pieces))
        return super().scores(pieces)

class Deadly(Own):
    def scores(self, pieces):
        if os.path.exists(STATE / "deadly"):
            os.kill(os.getpid(), signal.SIGKILL)
        (STATE / "deadly").touch()
        return pieces, None
"""
ONE_AT_A_TIME = 1.0  # seconds of a batch: shorter than every utterance


class Own:
    """The list of utterances, the model's file and its notes."""

    def __init__(self, folder):
        self.files = sorted((ROOT / "examples" / "ctc" / "logp_phone").glob("*.npy"))[:24]
        self.list, self.model, self.out, self.state = folder / "list", folder / "own_model.py", folder / "out", folder / "state"
        self.list.write_text("".join(f"{path.stem} {path}\n" for path in self.files))
        self.model.write_text(OWN)
        self.state.mkdir()
        self.environment = {**os.environ, "OWN_STATE": str(self.state), "OWN_CTC": str(ROOT / "examples" / "ctc")}

    def arguments(self, out):
        return ["--list", str(self.list), "--model", f"{self.model}:Own", "--batch-seconds", str(ONE_AT_A_TIME), "--format", "json", "-o", str(out), "--resume"]

    def scored_once(self):
        expected = [str(zlib.crc32(np.load(path).tobytes())) for path in self.files]
        return sorted((self.state / "scored").read_text().split()) == sorted(expected)

    def processes(self):
        return [path.read_text() for path in self.state.glob("Own.*")]


@pytest.fixture
def own(tmp_path):
    return Own(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The files that one process writes, by name."""
    own, run = Own(tmp_path_factory.mktemp("undisturbed")), [sys.executable, "-m", "warpfst", "transcribe"]
    assert subprocess.run([*run, *own.arguments(own.out), "-q"], env=own.environment).returncode == 0
    assert own.scored_once() and len(own.processes()) == 1
    return contents(own.out)


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_killed_jobs_lose_nothing(own, undisturbed):
    """Two parts, as of a job array or of torchrun. One is killed in the middle; the same command continues it."""
    (own.state / "kill").touch()
    command = [sys.executable, "-m", "warpfst", "transcribe", *own.arguments(own.out), "-q"]
    statuses = [subprocess.run([*command, f"--shard={part}/2"], env=own.environment).returncode for part in (0, 1)]
    assert statuses == [-signal.SIGKILL, 0] and 2 < len(contents(own.out)) < len(own.files)
    before = contents(own.out)
    assert subprocess.run([*command, "--shard=0/2"], env=own.environment).returncode == 0
    assert contents(own.out) == undisturbed and own.scored_once()
    assert before.items() <= undisturbed.items()


PARTS = """
import pathlib, sys
from own_model import Own
from warpfst.transcribe.cluster import Settings, transcribe_part
from warpfst.transcribe.command import read_list
recordings, out, part = sys.argv[1:]
print(transcribe_part(read_list(pathlib.Path(recordings)), Settings(Own, out, batch_seconds=%s), int(part), 2)[:2])
"""


def test_parts_of_a_list_in_own_processes(own, undisturbed):
    """As with torch.distributed: each process has its own rank."""
    (own.state / "kill").touch()
    command = [sys.executable, "-c", PARTS % ONE_AT_A_TIME, str(own.list), str(own.out)]
    environment = {**own.environment, "PYTHONPATH": f"{own.model.parent}:{os.environ.get('PYTHONPATH', '')}"}
    runs = [subprocess.run([*command, str(part)], env=environment, capture_output=True, text=True) for part in (0, 1, 0, 1)]
    assert [run.returncode for run in runs] == [-signal.SIGKILL, 0, 0, 0], runs[2].stderr
    done, there = (sum(eval(run.stdout)[i] for run in runs[1:]) for i in (0, 1))
    assert done == len(own.files) - 2 and there == 2 + sum(eval(runs[1].stdout))
    assert contents(own.out) == undisturbed and own.scored_once()
    with pytest.raises(ValueError, match="part 2 of 2"):
        transcribe_part([], Settings(str(CARDS), str(own.out)), 2, 2)


# What one driver asks of a cluster that says it has two GPUs; it takes long to start.
CALLS = """
import json, pathlib, sys
import numpy as np
import ray
import warpfst as wf
from warpfst.transcribe.cluster import Settings, main, transcribe_list
from warpfst.transcribe.command import read_list
ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
cards, cards_list, cards_out, recordings, model, out, block, seconds, ctc = sys.argv[1:]

listed = list(read_list(pathlib.Path(cards_list)))
settings = Settings(cards, cards_out)
first = transcribe_list(listed[:3], settings, actors=2, batch_size=1)
status = main(["--list", cards_list, "--model", cards, "-o", cards_out, "--actors", "2", "--batch-size", "2"])
last = transcribe_list([pair for pair in listed if pair[0] != "gone"], settings)
print(json.dumps([first, status, last]))

listed = list(read_list(pathlib.Path(recordings)))
settings = Settings(model, out, options={"device": "cuda"}, batch_seconds=float(seconds))
print(json.dumps(transcribe_list(listed, settings, actors=2, batch_size=8)))

deadly = settings._replace(model=model.replace(":Own", ":Deadly"), output=out + "/deadly", graph=None)
try:
    transcribe_list(listed[:3], deadly, max_retries=1)
except RuntimeError as why:
    print("{" + json.dumps("error") + ":" + json.dumps(str(why)) + "}")

wf.build_ctc_graph(ctc + "/tokens_phone.txt", ctc + "/lexicon_phone.txt", ctc + "/lm3.arpa.gz").save("TLG.wfst")
graph = str(pathlib.Path("TLG.wfst").absolute())
log_probs = ray.data.from_items([{"key": key, "path": str(path)} for key, path in listed]).map_batches(
    lambda batch: {"key": batch["key"], "log_probs": [np.load(path) for path in batch["path"]]})
exec(block.replace('"cuda"', '"cpu"').replace('"TLG.wfst"', repr(graph)))
print(json.dumps({row["key"]: row["text"] for row in texts.iter_rows()}))
"""


@pytest.fixture(scope="module")
def on_ray(tmp_path_factory):
    """The driver's lines of output by name, its messages, and where it wrote."""
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("ray")
    own = Own(folder)
    (own.state / "kill").touch()
    page = (ROOT / "docs" / "tutorials" / "scale-out.md").read_text(encoding="utf-8")
    (block,) = [code for code in re.findall(r"```py\n(.*?)```", page, re.DOTALL) if "class Decode" in code]
    arguments = [CARDS, list_of_cards(folder / "cards_list"), folder / "cards_out", own.list, f"{own.model}:Own", own.out, block, ONE_AT_A_TIME, ROOT / "examples" / "ctc"]
    command = [sys.executable, "-c", CALLS, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, env={**own.environment, **QUIET_RAY}, cwd=folder, timeout=500)
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines() if line[:1] in "[{"]
    return dict(zip(["cards", "summary", "deadly", "texts"], lines, strict=True), errors=run.stderr, cards_out=folder / "cards_out", own=own)


@pytest.mark.more
def test_ray_cluster(on_ray, expected):
    first, status, last = on_ray["cards"]
    assert first[:2] == [3, 0] and first[3] == [] and first[2] > 1
    assert status == 1 and "2 recordings transcribed, 3 done before, 1 failed" in on_ray["errors"] and "no/such/file.wav" in on_ray["errors"]
    assert last == [0, 5, 0.0, []]
    assert words_of(on_ray["cards_out"]) == expected and not list(on_ray["cards_out"].glob("*.part"))


@pytest.mark.more
def test_ray_gives_each_actor_its_gpu_and_replaces_a_killed_one(on_ray, undisturbed):
    own, summary = on_ray["own"], on_ray["summary"]
    assert summary[:2] == [len(own.files), 0] and summary[3] == []
    assert "tried 2 times, and its actor died each time" in on_ray["deadly"]["error"] and len(contents(own.out / "deadly")) == 1
    shutil.rmtree(own.out / "deadly")
    assert contents(own.out) == undisturbed and own.scored_once()
    processes = own.processes()
    assert len(processes) == 3 and set(processes) == {"cuda 0", "cuda 1"}  # two actors, of which one was replaced
    assert on_ray["texts"] == {key: row["text"] for key, row in ((row["key"], row) for row in map(json.loads, undisturbed.values()))}


def test_a_package_for_another_numpy_names_the_extra(own, tmp_path):
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text('raise ImportError("numpy.core.multiarray failed to import")')
    command = [sys.executable, "-m", "warpfst.transcribe.cluster", *own.arguments(own.out)[:4], "-o", str(own.out)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"})
    assert run.returncode == 2 and "numpy.core.multiarray failed to import): pip install '.[cluster]'" in run.stderr


@pytest.mark.parametrize(("name", "message"), [("own_model.py:Other", "no class 'Other'"), ("none.py:Own", "none.py"), ("own_model:Own", "neither config.json"), ("json.py:Own", "another module")])
def test_own_models_that_are_not_there(own, capsys, monkeypatch, name, message):
    for variable in ("OWN_STATE", "OWN_CTC"):
        monkeypatch.setenv(variable, own.environment[variable])
    monkeypatch.setattr(sys, "path", list(sys.path))
    (own.model.parent / "json.py").write_text("")
    assert main([str(own.files[0]), "--model", str(own.model.parent / name)]) == 2
    assert message in capsys.readouterr().err
    sys.modules.pop("own_model", None)


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
