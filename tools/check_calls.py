#!/usr/bin/env python3
"""check_calls.py [--write | --count [FOLDER]] - checks the calls of the public headers:

  names   one verb for one act, by the rules of docs/reference/c-calls.md
  uses    the program, Python, Triton, a program of examples/c or a page calls each of them
  page    docs/reference/c-calls.md lists the stable calls

Prints what is wrong; exit code 1 if anything is. --write updates the page. --count prints the number of calls of each header in a folder (default: include).
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
STABLE = "warpfst.h"
OF_PYTHON = "warpfst_python.h"  # for the package alone: callbacks with the names of what they do
SYNONYMS = {
    "new": "create", "init": "create", "destroy": "free", "delete": "free", "release": "free", "load": "read", "save": "write", "store": "write", "accept": "advance",
    "feed": "advance", "push": "advance", "end": "finish", "append": "add", "insert": "add", "size": "num_X", "length": "num_X", "len": "num_X", "lookup": "find", "config": "options",
}  # fmt: skip
MAY = {"wf_push", "wf_options_init", "wf_boost_by_length"}  # an operation; of a structure of the caller; no number of X
STRUCTURES = ("view", "info", "stats", "plan", "type", "properties")  # with get_ before them
MAY_BE_PLAIN = {"wf_fst_properties"}  # returns a number
PAGE = ROOT / "docs/reference/c-calls.md"
BEGIN, END = "<!-- calls -->\n", "<!-- end of calls -->\n"


class Call:
    def __init__(self, result, name, parameters, section):
        self.result, self.name, self.parameters, self.section = result, name, [" ".join(one.split()) for one in parameters.split(",")], section
        self.words = name.split("_")[1:]
        self.object, _, self.verb = name.removeprefix("wf_").rpartition("_")

    def makes(self, kind):
        return any(re.search(rf"\b(?:struct )?wf_{kind} \*\*", one) for one in self.parameters)


def calls_of(path):
    """The calls that a header declares, with the title of their section."""
    text, calls, section = path.read_text(encoding="utf-8"), [], ""
    text = re.sub(r"^static inline [^{;]*\{[^}]*\}", "", text, flags=re.MULTILINE)
    for match in re.finditer(r"/\* =+\n \* +(?:\d+  )?([^\n]*)|/\*.*?\*/|^WF_API\s+([^;(]*?)\b(wf_\w+)\(([^;]*)\);", text, re.MULTILINE | re.DOTALL):
        if match[3] is not None:
            calls.append(Call(match[2].strip(), match[3], match[4], section))
        elif match[1] is not None:
            section = match[1].strip()
    return calls


def wrong_names(calls):
    """Yields what is wrong with names of calls."""
    names = {call.name for call in calls}
    for call in calls:
        says = lambda text, name=call.name: f"{name}: {text}"
        path = re.search(r"\bpath\b|\bpaths\b|\bsources\b", " ".join(call.parameters[:2]))
        for word in call.words:
            if word in SYNONYMS and call.name not in MAY:
                yield says(f"'{word}' is called {SYNONYMS[word]}")
        if call.verb in STRUCTURES and not re.search(rf"_get_(\w+_)?{call.verb}$", call.name) and call.name not in MAY_BE_PLAIN and not call.result.startswith("wf_transcript_"):
            yield says(f"get_{call.verb} reads a structure")
        if call.verb == "get" or ("get" in call.words and call.verb not in STRUCTURES):
            yield says(f"get_ is for {', '.join(STRUCTURES)}; at(i) is for elements, to_X makes an X")
        if call.verb == "create" and path:
            yield says("create makes an object of others; of a file it is read or open")
        if call.verb == "open" and not path:
            yield says("open takes a file; create makes an object of others")
        if call.verb == "free" and call.name != "wf_free" and not any(other.makes(call.object) for other in calls) and f"*{call.object}" not in str([c.result for c in calls]):
            yield says(f"no call makes a wf_{call.object} *: clear frees what a structure of the caller holds")
        if call.verb == "clear" and any(other.makes(call.object) for other in calls):
            yield says("free frees an object that a call made")
        if call.verb in ("free", "clear", "abort") and call.result != "void":
            yield says(f"{call.verb} cannot fail")
        if call.verb == "close" and (call.result != "wf_status" or f"wf_{call.object}_abort" not in names):
            yield says("close completes an output, can fail, and goes with abort; free frees other objects")
        if call.verb == "ref" and f"wf_{call.object}_free" not in names:
            yield says("ref goes with free")
        if call.verb == "count" and not ({f"wf_{call.object}_at", f"wf_{call.object}_to_fst"} & names):
            yield says("count goes with at(i); num_X is for other numbers")
        if call.object.endswith("_writer") and call.verb not in ("open", "put", "close", "abort"):
            yield says("a writer has open, put, close and abort")
        if call.object.endswith("_reader") and call.verb not in ("open", "next", "free", "fraction") and not call.name.endswith("_lost_rest"):
            yield says("a reader has open, next, free, fraction and lost_rest")
        in_memory = any(re.search(r"\bsize_t \*?size$", one) for one in call.parameters) and any(re.search(r"( \*name| \*\*out)$", one) for one in call.parameters)
        if in_memory != call.name.endswith("_memory"):
            yield says("read_memory, write_memory and so on are for bytes in memory, with their size")
        several = re.match(r"(stream|lattice)s_(.*)", call.name.removeprefix("wf_"))
        if several and f"wf_{several[1]}_{several[2]}" not in names:
            yield says(f"does for several what wf_{several[1]}_{several[2]} does for one, which there is not")


def text_of(*patterns):
    return "".join(path.read_text(encoding="utf-8") for pattern in patterns for path in sorted(ROOT.glob(pattern)))


def used():
    """The calls that somebody makes."""
    python = text_of("python/**/*.py")
    blocks = re.findall(r"^```c$(.*?)^```$", text_of("README.md", "docs/**/*.md"), re.MULTILINE | re.DOTALL)
    found = set(re.findall(r"\bwf_\w+", text_of("cli/*.[ch]", "cli/**/*.[ch]", "triton/*.[ch]", "examples/c/*.c") + python + "".join(blocks)))
    found |= {f"wf_{name}" for name in re.findall(r'_unary\("(\w+)"', python)} | {f"wf_fst_batch_{name}" for name in re.findall(r'_made\("(\w+)"', python)}
    return found


def unused(calls, found):
    """Yields calls that nobody makes. Everything that is counted has ref, whoever needs it."""
    for call in calls:
        if call.name not in found and not (call.verb == "ref" and f"wf_{call.object}_free" in found):
            yield f"{call.name}: not called by the program, Python, Triton, a program of examples/c or a page"


def tables(headers):
    """The part of the page that is made of the headers."""
    lines = ["| stable: `warpfst.h` | |", "|---|---|"]
    sections = {}
    for call in headers[STABLE]:
        sections.setdefault(call.section, []).append(f"`{call.name}`")
    lines += [f"| {section} | {', '.join(names)} |" for section, names in sections.items()]
    lines += ["", "| header | | calls |", "|---|---|--:|"]
    lines += [f"| `{name}` | {'stable' if name == STABLE else 'experimental'} | {len(calls)} |" for name, calls in headers.items() if calls]
    stable, every = len(headers[STABLE]), sum(map(len, headers.values()))
    return "\n".join([*lines, f"| all | {stable} stable, {every - stable} experimental | {every} |", ""])


def header_calls(folder):
    names = sorted((path.name for path in folder.glob("*.h")), key=lambda name: (name != STABLE, name))
    return {name: calls_of(folder / name) for name in names}


def main(arguments):
    headers = header_calls(pathlib.Path(arguments[1]) if arguments[:1] == ["--count"] and len(arguments) > 1 else ROOT / "include")
    if arguments[:1] == ["--count"]:
        for name, calls in headers.items():
            print(f"{len(calls):4} {name}")
        print(f"{sum(map(len, headers.values())):4} all")
        return 0
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    page = before + BEGIN + tables(headers) + END + rest.partition(END)[2]
    if arguments == ["--write"]:
        PAGE.write_text(page, encoding="utf-8")
    named = [call for name, calls in headers.items() for call in calls if name != OF_PYTHON]
    faults = [*wrong_names(named), *unused([call for calls in headers.values() for call in calls], used())]
    if page != PAGE.read_text(encoding="utf-8"):
        faults.append(f"{PAGE.relative_to(ROOT)} does not list the calls of the headers: tools/check_calls.py --write")
    for fault in faults:
        print(fault)
    print(f"{sum(map(len, headers.values()))} calls, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
