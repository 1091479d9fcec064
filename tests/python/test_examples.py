"""The examples print the output that they document, and the code in the documentation runs."""

import math
import pathlib
import re
import subprocess
import sys

import numpy as np
import pages
import pytest
from conftest import ROOT
from pages import all_pages, blocks_of, check_page

import warpfst as wf

SCRIPTS = sorted((ROOT / "examples" / "python").glob("*.py"))
PAGES = [page for page in all_pages() if blocks_of(page) and page.stem not in ("training", "k2")]  # these two need torch: test_torch.py


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script):
    expected = re.sub(r"^# ?", "", script.read_text(encoding="utf-8").split("\n# prints:\n")[1], flags=re.MULTILINE)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout == expected


def test_there_are_examples():
    assert len(SCRIPTS) >= 4


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_code_of_a_page(page, tmp_path):
    """The page's blocks run and print the expected output (pages.py)."""
    check_page(page, tmp_path)


def test_pages_without_code_are_known():
    """Outside the how-to pages, only these pages have no code to run."""
    without = {page.stem for page in all_pages() if not blocks_of(page) and page.parent.name != "how-to"}
    assert without == {"0.2", "0.3", "kaldi", "riva-asrlib-decoder"}
    assert {"own-model", "word-times"} <= {page.stem for page in PAGES if page.parent.name == "how-to"}


def test_pages_name_the_folder_in_which_they_run():
    """A page whose code opens files without making them names an existing folder, before its first block."""
    for page in PAGES:
        text, name = page.read_text(encoding="utf-8"), pages.folder_of(page)
        opens = re.search(r'"(?:tokens|lexicon|lm|scores|coffee)[\w./]*\.(?:txt|gz|npy)"|--tokens=', "".join(code for _, code, _ in blocks_of(page)))
        assert name is not None or opens is None, f"{page} does not say in which folder its code runs: {opens[0]}"
        if name is not None:
            assert (ROOT / "examples" / name).is_dir(), page
            assert f"examples/{name}" in text[: re.search(r"^```(?:python|bash)$", text, re.MULTILINE).start()], f"{page} names its folder too late"


def test_the_tutorial_has_the_files_of_the_ctc_example():
    tutorial, ctc = ROOT / "examples" / "tutorial", ROOT / "examples" / "ctc"
    names = {"tokens.txt": "tokens_phone.txt", "lexicon.txt": "lexicon_phone.txt", "lm.arpa.gz": "lm3.arpa.gz", "text": "text"}
    names.update({f"scores/{path.name}": f"logp_phone/{path.name}" for path in (tutorial / "scores").iterdir()})
    assert len(names) == 64
    for name, same in names.items():
        assert (tutorial / name).read_bytes() == (ctc / same).read_bytes(), name


def test_a_wrong_page_is_reported(tmp_path):
    for code, message in (("print(1)", "expected"), ("raise SystemExit(3)", "page")):
        folder = tmp_path / message
        folder.mkdir()
        page = folder / "wrong.md"
        page.write_text(f"```python\n{code}\n```\n```text\n2\n```\n")
        with pytest.raises(AssertionError, match=message):
            check_page(page, folder)


def test_commands_in_the_pages_use_existing_flags():
    """Checks every `warpfst COMMAND ... --flag` of every page, including those that are not run."""
    helps = {}

    def flags_of(words):
        if words not in helps:
            command = [sys.executable, "-m", "warpfst"] if words[0] in ("transcribe", "serve") else [pathlib.Path(wf.__file__).parent / "bin" / "warpfst"]
            run = subprocess.run([*command, *words, "--help"], capture_output=True, text=True)
            helps[words] = set(re.findall(r"--[a-z][a-z0-9-]*", run.stdout)) if run.returncode == 0 else None
        return helps[words]

    checked, wrong = 0, []
    for page in [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = re.sub(r"\\\n", " ", page.read_text(encoding="utf-8"))
        for line in re.findall(r"\bwarpfst ([a-z][^\n`|;#]*)", text):
            words = re.match(r"[a-z]+(?: [a-z]+(?=[ \n]|$))?", line)[0].split()
            given = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", line))
            known = given and ((len(words) > 1 and flags_of(tuple(words))) or flags_of((words[0],)))
            checked += len(given)
            wrong += [f"{page.name}: warpfst {line.strip()}: {flag}" for flag in given if not known or flag not in known]
    assert not wrong and checked > 100, wrong


def test_flashlight_weights(tmp_path, monkeypatch):
    """The graph's decoder, the last of the page, ranks by flashlight's score: AM + lm_weight * log10 P + word_score * number of words."""
    monkeypatch.chdir(pages.lay_out(tmp_path)[0])
    made = {}
    exec(blocks_of(ROOT / "docs" / "migrating" / "flashlight.md")[-1][1], made)  # noqa: S102
    options = {name: made["decoder"].config[name] for name in ("acoustic_scale", "word_score", "beam")}
    graph, lm = wf.build_ctc_graph("tokens.txt", "lexicon.txt", "lm.arpa.gz", backoff="failure"), wf.LM.read("lm.arpa.gz")
    for key in ("000030012", "000030024"):
        best = wf.Decoder(graph, **options).decode(np.load(f"scores/{key}.npy"))[0]
        words = best.text.split()
        log10_lm = lm.score(words)
        log_am = -best.acoustic_cost / options["acoustic_scale"]
        score = log_am + made["lm_weight"] * log10_lm + made["word_score"] * len(words)
        assert abs(best.cost + score * math.log(10) / made["lm_weight"]) < 1e-2 * abs(best.cost)
