"""Runs the code of a page of the documentation, in a folder with the files that the page uses.

Blocks marked `python` and `bash` run in order; all Python blocks run in one process. A block marked `text` directly after one is its expected output. Blocks with
other marks (`py`, `sh`, `c`) are checked by test_blocks.py.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

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


def _write_models(folder):
    """Token files of small models of letters, as toolkits write them, for models.md."""
    letters = list("ADEGIKMNORS")
    vocabulary = {name: column for column, name in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", *letters])}
    names = ["<blank>", "<unk>", "<space>", *letters, "<sos/eos>"]
    config = json.dumps({"preprocessor": {"window_stride": 0.01}, "encoder": {"subsampling_factor": 8}, "decoder": {"vocabulary": [" ", *letters]}})
    for name in ("wav2vec2", "espnet", "wenet", "nemo"):
        (folder / name).mkdir()
    (folder / "wav2vec2" / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "espnet" / "tokens.txt").write_text("".join(f"{name}\n" for name in names))
    (folder / "wenet" / "units.txt").write_text("".join(f"{name} {column}\n" for column, name in enumerate(names)))
    (folder / "nemo" / "model_config.yaml").write_text(config)
    with tarfile.open(folder / "model.nemo", "w") as archive:
        archive.add(folder / "nemo" / "model_config.yaml", "./model_config.yaml")


def lay_out(folder):
    """Links the files that pages use into the folder, and makes the program `warpfst`. Returns the program's folder."""
    for file in CTC.iterdir():
        os.symlink(file, folder / file.name)
    links = {"scores": CTC / "logp_phone", "tokens.txt": CTC / "tokens_phone.txt", "lexicon.txt": CTC / "lexicon_phone.txt", "lm.arpa.gz": CTC / "lm3.arpa.gz"}
    links.update({"coffee": ROOT / "examples" / "hybrid" / "coffee", "cards": ROOT / "examples" / "cards", "ctc": CTC})
    for name, target in links.items():
        os.symlink(target, folder / name)
    _write_models(folder)
    program = folder / ".bin" / "warpfst"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpfst "$@"\n')
    program.chmod(0o755)
    return program.parent


def run_in(folder, command):
    """Prepares the folder with lay_out, then runs a command in it with `warpfst` on the PATH."""
    path = lay_out(folder)
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def _script(blocks):
    lines = ["import subprocess, sys", "import numpy", "log_probs = [numpy.load(f'scores/{key}.npy') for key in ('000030012', '000030024')]"]
    for language, code, _ in blocks:
        lines.append(f"print({_MARK!r}, end='', flush=True)")
        lines.append(code if language == "python" else f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {code!r}], check=True)")
    return "\n".join(lines) + "\n"


def run_page(page, folder):
    """Returns [(code, expected output or None, output)] of the blocks. Raises AssertionError with the output if one fails."""
    blocks = blocks_of(page)
    (folder / "page.py").write_text(_script(blocks), encoding="utf-8")
    run = run_in(folder, [sys.executable, "page.py"])
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
