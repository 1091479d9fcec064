"""Names of the package: operations on transducers are in warpfst.fst. Old names work for a version, with a warning."""

import builtins
import pickle
import re
import subprocess
import sys

import pytest
from conftest import CTC, ROOT

import warpfst as wf

NEVER_HERE = {"Comparison", "Composition", "Fst", "FstBuilder", "StringPath", "Sums", "Weight", "is_stochastic", "lenient_compose"}
MOVED = sorted({*wf.fst.__all__} - NEVER_HERE)


@pytest.mark.parametrize("name", MOVED)
def test_an_operation_has_an_old_name_with_a_warning(name):
    with pytest.warns(DeprecationWarning, match=f"^warpfst.{name} is now warpfst.fst.{name}; the old name goes in version 0.4$"):
        old = getattr(wf, name)
    assert old is getattr(wf.fst, name) and name not in dir(wf) and name not in wf.__all__


def test_other_old_names_have_a_warning(tmp_path):
    with pytest.warns(DeprecationWarning, match=r"^warpfst.LargeLM is now warpfst.LM; "):
        assert wf.LargeLM is wf.LM
    with pytest.warns(DeprecationWarning, match=r"^warpfst.LM.build is now warpfst.LM.convert; ") as warned:
        assert wf.LM.build(CTC / "lm3.arpa.gz", tmp_path / "lm.wlm").info()["mapped"]
    assert [warning.filename for warning in warned] == [__file__]


def test_the_tests_fail_on_an_old_name():
    """Also in programs that they start (conftest.py)."""
    with pytest.raises(DeprecationWarning):
        wf.compose  # noqa: B018
    run = subprocess.run([sys.executable, "-c", "import warpfst as wf; wf.compose"], capture_output=True, text=True)
    assert run.returncode == 1 and "DeprecationWarning" in run.stderr


USES = ("wf.compose", "from warpfst import compose", "from warpfst import (compose,\n    determinize)", "import warpfst; warpfst.Arc")


@pytest.mark.parametrize("line", USES)
def test_the_warning_shows_the_line_of_the_user(line, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"import warpfst as wf\n\n{line}\n")
    run = subprocess.run([sys.executable, "-W", "default", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert f"{program}:3: DeprecationWarning: warpfst." in run.stderr and "importlib" not in run.stderr


def test_a_name_that_never_was():
    with pytest.raises(AttributeError, match="module 'warpfst' has no attribute 'compse'"):
        wf.compse  # noqa: B018
    with pytest.raises(ImportError, match="compse"):
        exec("from warpfst import compse")  # noqa: S102


def test_import_of_all_names():
    """It gives the public names without warnings, and hides no name of Python."""
    code = "from warpfst import *; print(*(name for name in dir() if not name.startswith('__')))"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == {*wf.__all__} - {"__version__"} and not {*wf.__all__} & {*dir(builtins)}


def test_modules_are_imported_on_first_use():
    late = ("asyncio", "warpfst.compat", "warpfst.integrations", "warpfst.strings", "warpfst.transcribe")
    uses = "wf.strings.accep, wf.compat.build_ctcdecoder, wf.transcribe.Model, wf.integrations.ModelTokens"
    code = f"import sys, warpfst as wf; assert not {{*{late}}} & {{*sys.modules}}; {uses}"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_pickles_name_the_new_places():
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.5)], {1: 0.0})
    for value in (fst.arcs[0], wf.fst.equal(fst, fst), wf.fst.Fst):
        data = pickle.dumps(value)
        assert b"warpfst.fst" in data and pickle.loads(data) == value
    assert wf.fst.equal(pickle.loads(pickle.dumps(fst)), fst)
    assert pickle.loads(b"cwarpfst.fst\nFst\n.") is wf.Fst and pickle.loads(b"cwarpfst.fst\nArc\n.") is wf.fst.Arc  # as 0.2 wrote them


def test_no_old_name_is_left_in_the_tree():
    """Not in comments and pages either, except where they say what was renamed."""
    names = "|".join([*MOVED, "LargeLM"])
    pattern = re.compile(rf"\b(?:wf|warpfst)\.(?:{names})\b|from warpfst import .*\b(?:{names})\b")
    folders = ("bench", "docs", "examples", "python", "tests", "tools", "triton")
    kinds = (".py", ".md", ".ipynb", ".sh", ".txt", ".c", ".h")
    files = [ROOT / "README.md", *(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds)]
    assert len(files) > 500
    known = {ROOT / "tests/python/test_names.py", ROOT / "tests/python/test_types.py", ROOT / "docs/migrating/0.2.md", ROOT / "docs/migrating/0.3.md"}
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in files if path not in known}
    assert not [f"{path.relative_to(ROOT)}: {match[0]}" for path, text in texts.items() for match in pattern.finditer(text)]


def test_the_page_lists_every_old_name():
    page = (ROOT / "docs" / "migrating" / "0.3.md").read_text(encoding="utf-8")
    assert not [name for name in [*MOVED, "LargeLM", "LM.build"] if f"`wf.{name}`" not in page]
