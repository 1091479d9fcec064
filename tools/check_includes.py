#!/usr/bin/env python3
"""Checks rules for the source tree; can be run from any folder. Prints violations; exit code 1 if there are any.

    check_includes.py [--objects FOLDER]... [--strict]

  includes   a file in src/FOLDER may include only headers of its own level or of lower levels (LEVELS); only io includes io. cli/ may
             include the public headers, its own and SHARED. Public headers may include one another and the standard library
  order      includes that follow each other without a blank line are in alphabetical order, those in "" and in <> apart
  calls      the same rule for function calls; and no cycles of files that call each other. Read with nm from the object files in
             FOLDER, which has the layout of src/ or cli/ (build/X/CMakeFiles/warpfst_objects.dir/src; warpfst.dir/src has base/device.c)
  imports    no cycles of Python modules that import each other with `from .module import`, also within functions (but for types alone,
             and MUTUAL)
  names      no two source files have the same name
  sizes      files have at most 600 lines, CUDA files 900 (an error in src/ and cli/, else a note); functions have at most 70 lines,
             device functions 120 (a note). --strict turns notes into errors
  paths      no absolute paths of a developer's machine
  heads      every C and CUDA file starts with a comment that says its purpose
  macros     a macro that CMake defines with a value for tests (WF__X=1) is used in src/: after a renaming, the tests would
             silently use the default
"""
import argparse
import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Lowest level first. base and math are one level, because base/map64.h includes math/hash.h. docs/engineering/index.md explains the folders of cuda/.
LEVELS = {name: level for level, names in enumerate([
    ("base", "math"), ("fst",), ("fstops",), ("lm",), ("graph",), ("scorer",), ("lattice", "generation"), ("search",), ("decode",), ("compat",),
    ("cuda/device",), ("cuda/search", "cuda/fstops"), ("cuda/lattice", "cuda/rnn", "cuda/compose"), ("cuda/search/instances", "cuda/bench"), ("plan",), ("cuda/scorer", "cuda/graph"), ("cuda/transducer", "cuda/generation"), ("cuda/decoder",), ("cuda",),
    ("io",)]) for name in names}
MUTUAL = {("fst/container.py", "lattice.py")}  # an fst can have a word aligner, which can be read from an fst
SHARED = ("base/clock.h", "base/first_bytes.h", "base/platform.h", "base/utf8.h")  # these files of src call nothing of the library and are linked into the program, too
SOURCES = (".c", ".h", ".cu", ".cuh")
MAX_FILE_LINES, MAX_CUDA_LINES, MAX_FUNCTION_LINES, MAX_KERNEL_LINES = 600, 900, 70, 120
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|home|root|Users)/\w")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def files(*folders):
    for folder in folders:
        if (ROOT / folder).is_dir():
            yield from sorted(p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def includes(path):
    """Yields (line, name, quoted) for every #include."""
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1 if match[1] else 2)) + 1, match[1] or match[2], match[1] is not None


def check_order(path):
    previous, last = 0, {}
    for line, name, quoted in includes(path):
        if line != previous + 1:
            last = {}
        if name < last.get(quoted, ""):
            yield line, f"{name} belongs before {last[quoted]}"
        previous, last[quoted] = line, name


def level_folder(name):
    """The folder of LEVELS that contains a file under src/; None: no such folder."""
    parts = pathlib.PurePosixPath(name).parts[:-1]
    return next((folder for n in range(len(parts), 0, -1) if (folder := "/".join(parts[:n])) in LEVELS), None)


def check_src(path):
    name = path.relative_to(ROOT / "src").as_posix()
    folder = level_folder(name)
    if folder is None:
        folder = name.rpartition("/")[0]
        yield 1, f"src/{folder}/ is not in LEVELS"
        return
    for line, name, quoted in includes(path):
        if not quoted:
            if (ROOT / "include" / name).is_file() or level_folder(name) is not None:
                yield line, f'<{name}> is a header of this project: write "{name}"'
        elif (ROOT / "include" / name).is_file():
            continue
        elif name.endswith(".cu"):
            yield line, f"{name} is a source file: include a header"
        elif not (ROOT / "src" / name).is_file():
            yield line, f'"{name}": no such file under src/ (write folder/name.h)'
        else:
            other = level_folder(name)
            if LEVELS[other] > LEVELS[folder]:
                yield line, f"{folder} may not include {name}: {other} is above it"


def symbols(objects):
    """{symbol: file that defines it} and {file: symbols that it uses}, of the object files in a folder. Files are named as under src/ or cli/. Objects without a source file are ignored."""
    defined, used = {}, {}
    files = {str(path): path.relative_to(objects).as_posix().removesuffix(".o") for path in sorted(objects.rglob("*.o"))}
    paths = [path for path, file in files.items() if any((ROOT / top / file).is_file() for top in ("src", "cli"))]
    listed = subprocess.run(["nm", "-P", "-A", *paths], capture_output=True, text=True, check=True).stdout if paths else ""
    for line in listed.splitlines():  # "path: name kind ..."
        path, _, symbol = line.partition(": ")
        name, kind = symbol.split()[:2]
        if kind == "U":
            used.setdefault(files[path], set()).add(name)
        elif kind in "TDBRVWC":
            defined.setdefault(name, files[path])
    return defined, used


def cycles(edges):
    """Files that reach each other, as sorted lists: the strongly connected components with more than one file (Tarjan 1972, without recursion)."""
    order, low, stack, found = {}, {}, [], []
    for root in sorted(edges):
        work = [(root, iter(sorted(edges[root])))] if root not in order else []
        while work:
            file, others = work[-1]
            if file not in order:
                order[file] = low[file] = len(order)
                stack.append(file)
            for other in others:
                if other not in order:
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in stack:
                    low[file] = min(low[file], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[file])
                if low[file] == order[file]:
                    members = stack[stack.index(file):]
                    del stack[-len(members):]
                    if len(members) > 1:
                        found.append(sorted(members))
    return found


def check_calls(folders):
    """Yields (file, message) for calls to higher levels and for cycles."""
    defined, used = {}, {}
    for folder in folders:
        new_defined, new_used = symbols(folder)
        defined |= new_defined
        used |= new_used
    if not used:
        yield folders[0].name, f"no object files in {folders[0]}"
    edges = {}
    for file, names in sorted(used.items()):
        for name in sorted(names):
            other = defined.get(name, file)
            if other == file:
                continue
            here, there = level_folder(file), level_folder(other)
            if here in LEVELS and there in LEVELS and LEVELS[there] > LEVELS[here]:
                yield file, f"{here} may not call {name} of {other}: {there} is above it"
            edges.setdefault(file, {}).setdefault(other, name)
    for members in cycles(edges):
        calls = [f"{file} calls {edges[file][other]} of {other}" for file in members for other in members if other in edges[file]]
        yield members[0], f"{len(members)} files call each other: {'; '.join(calls)}"


def imported(path, package):
    """The modules of the package that a module imports at any place, but not for types alone. Named from the package's folder."""
    found = set()

    def visit(node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in node.orelse:
                visit(child)
            return
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            places = [folder.with_suffix(".py")] if node.module and folder.with_suffix(".py").is_file() else [folder / f"{name.name}.py" for name in node.names]
            found.update(place.relative_to(package).as_posix() for place in places if place.is_file())
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def check_imports(package):
    """Yields (file, message) for modules that import each other."""
    names = {path: path.relative_to(package).as_posix() for path in sorted(package.rglob("*.py"))}
    edges = {name: {other: "" for other in imported(path, package) if other != name and (name, other) not in MUTUAL} for path, name in names.items()}
    for members in cycles(edges):
        yield members[0], f"{len(members)} modules import each other: {', '.join(members)}"


def check_cli(path):
    own = {p.name for p in (ROOT / "cli").glob("*.h")}
    for line, name, quoted in includes(path):
        if name in SHARED:
            continue
        if level_folder(name) is not None or (quoted and not (ROOT / "include" / name).is_file() and name not in own):
            yield line, f'cli may include only public headers, its own and SHARED, not "{name}"'


def check_public(path):
    for line, name, quoted in includes(path):
        if not (ROOT / "include" / name).is_file() if quoted else name not in ("stdbool.h", "stddef.h", "stdint.h", "string.h"):
            yield line, f"a public header includes {name}"


def functions(lines):
    """Yields (first line, number of lines, head) of functions: from a line in the first column that ends in '{' to the next '}' in the first column."""
    begin, head = None, ""
    for number, line in enumerate(lines, 1):
        if begin is None:
            if re.match(r"[A-Za-z_].*\)\s*\{$", line) or (line.endswith(") {") and number > 1 and re.match(r"[A-Za-z_][^;{}]*[,(]$", lines[number - 2])):
                begin, head = number, line
        elif line.startswith("}"):
            yield begin, number - begin + 1, head
            begin = None


def check_sizes(path):
    """Two lists of (line, message): errors and notes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    errors, notes = [], []
    limit = MAX_CUDA_LINES if path.suffix in (".cu", ".cuh") else MAX_FILE_LINES
    if len(lines) > limit:
        strict = path.relative_to(ROOT).parts[0] in ("src", "cli")
        (errors if strict else notes).append((1, f"{len(lines)} lines, expected at most {limit}"))
    if not lines or not lines[0].startswith(("/*", "//")):
        errors.append((1, "does not start with a comment that says the purpose of the file"))
    for begin, size, head in functions(lines):
        if size > (MAX_KERNEL_LINES if re.search("__(global|device)__", head) else MAX_FUNCTION_LINES):
            notes.append((begin, f"function of {size} lines: {head.strip()[:60]}"))
    return errors, notes


def check_macros():
    """Yields (path, line, message) for macros of the CMake files of tests/ that no file of src/ names. Comments in tests name them, too."""
    used = {name for source in files("src") if source.suffix in SOURCES for name in re.findall(r"\bWF__[A-Z0-9_]+", source.read_text(encoding="utf-8"))}
    for path in files("tests"):
        if path.name != "CMakeLists.txt" and path.suffix != ".cmake":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"\b(?:D)?(WF__[A-Z0-9_]+)=", line):
                if name not in used:
                    yield path, number, f"no source file of src/ uses {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=pathlib.Path, action="append", default=[], metavar="FOLDER", help="folder with the object files of src/ or cli/, from which calls are read")
    parser.add_argument("--strict", action="store_true", help="turn notes into errors")
    flags = parser.parse_args()
    errors, notes, names = [], [], {}

    def report(into, path, found):
        into += [f"{path.relative_to(ROOT)}:{line}: {message}" for line, message in found]

    for path in files("src", "cli", "include", "tests", "fuzz", "bench"):
        if path.suffix not in SOURCES:
            continue
        top = path.relative_to(ROOT).parts[0]
        report(errors, path, check_order(path))
        if top == "src":
            report(errors, path, check_src(path))
        elif top == "cli":
            report(errors, path, check_cli(path))
        elif top == "include":
            report(errors, path, check_public(path))
        if top != "include":
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
            continue  # a data file
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                report(errors, path, [(number, f"absolute path of a developer's machine: {line.strip()[:80]}")])
    for path, number, message in check_macros():
        report(errors, path, [(number, message)])
    errors += [f"python/warpfst/{file}: {message}" for file, message in check_imports(ROOT / "python" / "warpfst")]
    if flags.objects:
        errors += [f"{'cli' if (ROOT / 'cli' / file).is_file() else 'src'}/{file}: {message}" for file, message in check_calls(flags.objects)]
    if flags.strict:
        errors, notes = errors + notes, []
    for note in notes:
        print("note:", note)
    for error in errors:
        print("error:", error)
    print(f"{len(names)} files: {len(errors)} errors, {len(notes)} notes")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
