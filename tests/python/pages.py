"""Runs the code of a page of the documentation in a copy of the folder that the page names.

A page says where its code runs: "... in `examples/tutorial` ...", the first folder of examples that the page names. Blocks marked `python` and `bash` run in order; all
Python blocks run in one process. A block marked `text` directly after one is its expected output. Blocks with other marks (`py`, `sh`, `c`) are checked by test_blocks.py.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CTC = ROOT / "examples" / "ctc"
_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_MARK = "\x1e"  # between the outputs of blocks


def all_pages():
    folders = [ROOT / "docs" / "tutorials", ROOT / "docs" / "how-to", ROOT / "docs" / "migrating"]
    return [ROOT / "README.md", ROOT / "docs" / "reference" / "python.md", *(page for folder in folders for page in sorted(folder.glob("*.md")))]


def blocks_of(page):
    """[(language, code, expected output or None)] of the page's `python` and `bash` blocks."""
    return [(match[1], match[2], match[3]) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


def folder_of(page):
    """The name below examples/ of the folder in which the page's code runs; None if it names none."""
    named = re.search(r"\bin\s+(?:the folder\s+)?`examples/([\w/-]+?)/?`", page.read_text(encoding="utf-8"))
    return named and named[1]


def lay_out(folder, name="tutorial"):
    """Makes `folder`/examples, in which NAME is a copy and its neighbours are links, and the program `warpfst`. Returns the copy and the program's folder."""
    program = folder / ".bin" / "warpfst"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpfst "$@"\n')
    program.chmod(0o755)
    examples = folder / "examples"
    examples.mkdir()
    if name is None:
        return examples, program.parent
    for neighbour in (ROOT / "examples").iterdir():
        if neighbour.name != name.split("/")[0]:
            os.symlink(neighbour, examples / neighbour.name)
    shutil.copytree(ROOT / "examples" / name, examples / name)
    return examples / name, program.parent


def run_in(folder, command, name="tutorial"):
    """Prepares `folder` with lay_out, then runs a command in the copy, with `warpfst` on the PATH."""
    copy, path = lay_out(folder, name)
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=copy, env=environment)


def _script(blocks):
    lines = ["import subprocess, sys"]
    for language, code, _ in blocks:
        lines.append(f"print({_MARK!r}, end='', flush=True)")
        lines.append(code if language == "python" else f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {code!r}], check=True)")
    return "\n".join(lines) + "\n"


def run_page(page, folder):
    """Returns [(code, expected output or None, output)] of the blocks. Raises AssertionError with the output if one fails."""
    blocks = blocks_of(page)
    script = folder / "page.py"
    script.write_text("import sys; sys.path[0] = ''\n" + _script(blocks), encoding="utf-8")
    run = run_in(folder, [sys.executable, script], folder_of(page))
    assert run.returncode == 0, f"{page}\n{run.stdout}\n{run.stderr}"
    printed = run.stdout.split(_MARK)[1:]
    assert len(printed) == len(blocks)
    return [(code, expected, output) for (_, code, expected), output in zip(blocks, printed)]


def _lines(text):
    return [line.rstrip() for line in text.rstrip().splitlines()]


def check_page(page, folder):
    outcomes = run_page(page, folder)
    for code, expected, printed in outcomes:
        assert expected is None or _lines(printed) == _lines(expected), f"{page}\n{code}\nprinted\n{printed}\nexpected\n{expected}"
    return len(outcomes)
