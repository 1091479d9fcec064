"""`warpfst COMMAND ...` and `python -m warpfst COMMAND ...`: `transcribe` and `serve` are written in Python, all other commands run the C program."""

from __future__ import annotations

import os
import subprocess
import sys

from ._library import FOLDER


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["help"] and arguments[1:2] in (["transcribe"], ["serve"]):
        arguments = [arguments[1], "--help"]
    if arguments[:1] == ["transcribe"]:
        from .transcribe.command import main as transcribe

        return transcribe(arguments[1:])
    if arguments[:1] == ["serve"]:
        from .serve.command import main as serve

        return serve(arguments[1:])
    if os.name == "nt":  # where exec would end this process before the program ends
        return subprocess.run([FOLDER / "bin" / "warpfst.exe", *arguments]).returncode
    os.execv(FOLDER / "bin" / "warpfst", ["warpfst", *arguments])


if __name__ == "__main__":
    sys.exit(main())
