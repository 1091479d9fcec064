#!/usr/bin/env python3
"""The rules of the house that a machine can check; run from anywhere, prints what breaks them, exit code 1 if something does.

  includes   src/FOLDER may include only from folders above it in LEVELS; nothing but io includes io; cli/ sees warpfst.h and its own
             headers; include/warpfst.h only the standard library
  names      no two source files have the same name
  sizes      files of at most 600 lines, CUDA 900 (an error in src/ and cli/, else reported); functions of at most 70 lines, on the
             device 120 (reported); --strict makes errors of what is reported
  paths      no absolute paths of the machine where something was written
  heads      every C and CUDA file starts with a comment that says what it is for
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# From the bottom up. base and math are one level: base/map64.h hashes with math/hash.h.
LEVELS = {name: level for level, names in enumerate(
    [("base", "math"), ("fst",), ("fstops",), ("lm",), ("graph",), ("scorer",), ("lattice",), ("decode",), ("cpu",), ("cuda",), ("io",)]) for name in names}
SOURCES = (".c", ".h", ".cu", ".cuh")
MAX_FILE_LINES, MAX_CUDA_LINES, MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 600, 900, 70, 120
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|home|root|Users)/\w")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)


def files(*folders):
    for folder in folders:
        if (ROOT / folder).is_dir():
            yield from sorted(p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def includes(path):
    """(line, name, quoted) of every #include."""
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1 if match[1] else 2)) + 1, match[1] or match[2], match[1] is not None


def check_src(path):
    folder = path.relative_to(ROOT / "src").parts[0]
    if folder not in LEVELS:
        yield 1, f"src/{folder}/ has no place in the order of folders"
        return
    for line, name, quoted in includes(path):
        if not quoted:
            if name == "warpfst.h" or name.split("/")[0] in LEVELS:
                yield line, f'<{name}> is ours: write "{name}"'
        elif name == "warpfst.h":
            continue
        elif path.suffix in (".cu", ".cuh") and (path.parent / name).is_file():
            continue  # CUDA files are also compiled from other places, alone
        elif not (ROOT / "src" / name).is_file():
            yield line, f'"{name}": no such file under src/ (write folder/name.h)'
        else:
            other = name.split("/")[0]
            if LEVELS[other] > LEVELS[folder]:
                yield line, f"{folder} may not include {name}: {other} is above it"


def check_cli(path):
    own = {p.name for p in (ROOT / "cli").glob("*.h")}
    for line, name, quoted in includes(path):
        if name.split("/")[0] in LEVELS or (quoted and name != "warpfst.h" and name not in own):
            yield line, f'cli may include only "warpfst.h" and its own headers, not "{name}"'


def check_public(path):
    for line, name, quoted in includes(path):
        if quoted or name not in ("stdbool.h", "stddef.h", "stdint.h"):
            yield line, f"the public header includes {name}"


def functions(lines):
    """(first line, number of lines, head) of functions: a head at the margin that ends in '{', to the next '}' at the margin."""
    begin, head = None, ""
    for number, line in enumerate(lines, 1):
        if begin is None:
            if re.match(r"[A-Za-z_].*\)\s*\{$", line) or (line.endswith(") {") and number > 1 and re.match(r"[A-Za-z_][^;{}]*[,(]$", lines[number - 2])):
                begin, head = number, line
        elif line.startswith("}"):
            yield begin, number - begin + 1, head
            begin = None


def check_sizes(path):
    """(line, message) of errors, and of what is only reported."""
    lines = path.read_text(encoding="utf-8").splitlines()
    errors, notes = [], []
    limit = MAX_CUDA_LINES if path.suffix in (".cu", ".cuh") else MAX_FILE_LINES
    if len(lines) > limit:
        strict = path.relative_to(ROOT).parts[0] in ("src", "cli")
        (errors if strict else notes).append((1, f"{len(lines)} lines, at most {limit}"))
    if not lines or not lines[0].startswith(("/*", "//")):
        errors.append((1, "does not start with a comment that says what the file is for"))
    for begin, size, head in functions(lines):
        if size > (MAX_KERNEL_LINES if re.search("__(global|device)__", head) else MAX_FUNCTION_LINES):
            notes.append((begin, f"function of {size} lines: {head.strip()[:60]}"))
    return errors, notes


def main():
    errors, notes, names = [], [], {}

    def report(into, path, found):
        into += [f"{path.relative_to(ROOT)}:{line}: {message}" for line, message in found]

    for path in files("src", "cli", "include", "tests", "fuzz", "bench"):
        if path.suffix not in SOURCES:
            continue
        top = path.relative_to(ROOT).parts[0]
        if top == "src":
            report(errors, path, check_src(path))
        elif top == "cli":
            report(errors, path, check_cli(path))
        elif top == "include":
            report(errors, path, check_public(path))
        if top != "include":  # the public header is one file on purpose
            size_errors, size_notes = check_sizes(path)
            report(errors, path, size_errors)
            report(notes, path, size_notes)
        if path.name in names:
            report(errors, path, [(1, f"same file name as {names[path.name].relative_to(ROOT)}")])
        names.setdefault(path.name, path)
    scripts = [ROOT / name for name in ("run", "CMakeLists.txt", "CMakePresets.json", "README.md") if (ROOT / name).is_file()]
    for path in [*files("src", "cli", "include", "tests", "fuzz", "bench", "tools", "python", "docs", "examples", ".ci"), *scripts]:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # data
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                report(errors, path, [(number, f"absolute path of some machine: {line.strip()[:80]}")])
    if "--strict" in sys.argv[1:]:
        errors, notes = errors + notes, []
    for note in notes:
        print("note:", note)
    for error in errors:
        print("error:", error)
    print(f"{len(names)} files: {len(errors)} errors, {len(notes)} notes")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
