"""The examples print what they say they print, and the code of the documentation runs."""

import os
import re
import subprocess
import sys

import pytest
from conftest import CTC, ROOT

SCRIPTS = sorted((ROOT / "examples" / "python").glob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "docs" / "python.md"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script):
    expected = re.sub(r"^# ?", "", script.read_text(encoding="utf-8").split("\n# prints:\n")[1], flags=re.M)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == expected


def test_there_are_examples():
    assert len(SCRIPTS) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_code_of_the_pages(page, tmp_path):
    """Blocks marked `python` run, one after the other, in a folder with the files of examples/ctc and three utterances' scores."""
    for file in CTC.iterdir():
        os.symlink(file, tmp_path / file.name)
    os.symlink(CTC / "logp_phone", tmp_path / "scores")
    os.symlink(CTC / "tokens_phone.txt", tmp_path / "tokens.txt")
    os.symlink(CTC / "lexicon_phone.txt", tmp_path / "lexicon.txt")
    os.symlink(CTC / "lm3.arpa.gz", tmp_path / "lm.arpa.gz")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    assert blocks, "no code"
    (tmp_path / "page.py").write_text("import numpy\nlog_probs = [numpy.load(f'logp_phone/{key}.npy') for key in ('000030012', '000030024')]\n" + "\n".join(blocks), encoding="utf-8")
    run = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
