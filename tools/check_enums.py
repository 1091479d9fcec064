#!/usr/bin/env python3
"""check_enums.py - every option with a fixed set of values has constants in C: for a row X(ENUM, name, ..., "a|b|c") of a header there is an enum of WF_..._A, WF_..._B, WF_..._C, in
this order, in a public header. Prints what is missing; exit code 1 if anything is.
"""
import pathlib
import re
import sys

ROW = re.compile(r'X\(ENUM, (\w+), [^"]*((?:"[^"]*"\s*\\?\s*)+)')


def choices(strings):
    """Of the texts of a row: its values, which may be cut into several texts."""
    texts = re.findall(r'"([^"]*)"', strings)
    text = texts.pop(0)
    while text.endswith("|"):
        text += texts.pop(0)
    return text.upper().split("|")


def enums(text):
    """The names in each enum."""
    return [re.findall(r"\bWF_\w+", body) for body in re.findall(r"\benum(?: \w+)? \{([^}]*)\}", text)]


def main():
    headers = {path.name: path.read_text(encoding="utf-8") for path in sorted((pathlib.Path(__file__).resolve().parents[1] / "include").glob("*.h"))}
    found = [names for text in headers.values() for names in enums(text)]
    num = missing = 0
    for header, text in headers.items():
        for name, strings in ROW.findall(text):
            wanted = choices(strings)
            num += 1
            if not any(len(names) == len(wanted) and all(have.endswith(f"_{want}") for have, want in zip(names, wanted, strict=True)) for names in found):
                print(f"{header}: option {name}: no enum of {', '.join(wanted)}")
                missing += 1
    print(f"{num} options, {missing} without constants")
    return missing > 0


if __name__ == "__main__":
    sys.exit(main())
