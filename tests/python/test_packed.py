"""A folder like that of `./run pack-gpu` can run the tests on a GPU machine: it has the package, the library (found by WARPFST_LIBRARY) and the tests."""

import os
import pathlib
import shutil
import subprocess
import sys

from conftest import ROOT

import warpfst as wf


def test_gpu_tests_run_from_a_folder(tmp_path):
    package = pathlib.Path(wf.__file__).parent
    shutil.copytree(package, tmp_path / "python" / "warpfst", ignore=shutil.ignore_patterns("libwarpfst*", "bin", "__pycache__"))
    shutil.copy(package / "libwarpfst.so", tmp_path / "libwarpfst.so.0.3")
    for name in ("test_gpu.py", "fake_tensors.py"):
        shutil.copy(ROOT / "tests" / "python" / name, tmp_path)
    environment = {**os.environ, "PYTHONPATH": "python", "WARPFST_LIBRARY": str(tmp_path / "libwarpfst.so.0.3")}
    here = "import warpfst; print(warpfst.__file__)"
    assert str(tmp_path) in subprocess.run([sys.executable, "-c", here], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True).stdout
    run = subprocess.run([sys.executable, "-m", "pytest", "-rs", "test_gpu.py"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    if wf.cuda_available():
        assert run.returncode == 0 and "passed" in run.stdout, run.stdout
    else:  # all tests are skipped, with the reason
        assert run.returncode == 0 and "skipped" in run.stdout and "passed" not in run.stdout and "no GPU: " in run.stdout, run.stdout + run.stderr


def test_errors_without_the_library(tmp_path):
    shutil.copytree(pathlib.Path(wf.__file__).parent, tmp_path / "warpfst", ignore=shutil.ignore_patterns("libwarpfst*", "bin", "__pycache__"))
    environment = {key: value for key, value in os.environ.items() if key != "WARPFST_LIBRARY"}
    run = subprocess.run([sys.executable, "-c", "import warpfst"], capture_output=True, text=True, cwd=tmp_path, env={**environment, "PYTHONPATH": str(tmp_path)})
    assert run.returncode != 0 and "holds no libwarpfst" in run.stderr
    run = subprocess.run([sys.executable, "-c", "import warpfst"], capture_output=True, text=True, cwd=tmp_path, env={**environment, "WARPFST_LIBRARY": "/nonexistent/libwarpfst.so"})
    assert run.returncode != 0 and "/nonexistent/libwarpfst.so" in run.stderr

