"""`warpfst COMMAND ...` and `python -m warpfst COMMAND ...`: `transcribe` is written in Python, all other commands run the C program."""

from __future__ import annotations

import os
import sys

from ._library import FOLDER


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:2] == ["help", "transcribe"]:
        arguments = ["transcribe", "--help"]
    if arguments[:1] == ["transcribe"]:
        from .transcribe.command import main as transcribe

        return transcribe(arguments[1:])
    program = FOLDER / "bin" / "warpfst"
    os.execv(program, ["warpfst", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
