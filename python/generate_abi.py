#!/usr/bin/env python3
"""generate_abi.py CC INCLUDE_FOLDER OUTPUT_FOLDER - generates ctypes declarations of the C ABI, and types of the option tables, from the public headers.

The build runs it (CMakeLists.txt), so the Python package always matches the library it is built with. The C preprocessor expands the headers' X-macros. This leaves plain
declarations of four kinds: enums, structures, callback types and functions.

OUTPUT_FOLDER/_abi.py           constants, ctypes structures, callback types, FUNCTIONS = {name: (result, arguments)}
OUTPUT_FOLDER/_option_types.py  a TypedDict for each option table, for type checkers
"""

import ast
import pathlib
import re
import subprocess
import sys
import tempfile

SCALARS = {
    "void": "None", "bool": "c_bool", "_Bool": "c_bool", "char": "c_char", "float": "c_float", "double": "c_double", "int": "c_int", "size_t": "c_size_t",
    "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "int16_t": "c_int16", "uint16_t": "c_uint16", "uint8_t": "c_uint8",
}  # fmt: skip


def preprocess(compiler, include):
    """The preprocessed declarations of the headers, and the text of the option tables: `@table NAME`, then `@row TYPE, NAME, UNIT, HELP @end` for each row."""
    headers = "".join(header.read_text(encoding="utf-8") for header in sorted(include.glob("*.h")))
    tables = re.findall(r"^WF_DECLARE_(?:SHARED_)?OPTIONS\((\w+), (\w+)", headers, re.MULTILINE)
    source = '#include "warpfst_all.h"\n' + "".join(
        [
            "#define WFPY_ROW(type, name, def, min, max, unit, help) @row type, name, unit, help @end\n",
            "@options\n",
            *(f"@table {name} {rows}(WFPY_ROW)\n" for name, rows in tables),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "abi.c")
        path.write_text(source, encoding="utf-8")
        text = subprocess.run([compiler, "-E", "-I", str(include), str(path)], check=True, capture_output=True, text=True).stdout
        text = lines_of_files(text, folder, str(include))
    declarations, _, options = text.partition("@options")
    declarations = re.sub(r"static inline [^{;]*\{[^}]*\}", "", declarations)  # inline functions are not exported
    return re.sub(r"__attribute__\(\((visibility\(\"default\"\)|dllexport)\)\)|__declspec\(dllexport\)", "", declarations), options


def lines_of_files(text, *folders):
    """The lines of a preprocessor's output that are from files in these folders: headers of some systems define functions."""
    lines, ours = [], False
    for line in text.splitlines():
        if marker := re.match(r'#(?:line)? \d+ "(.*?)"', line):
            ours = marker[1].startswith(folders)
        elif ours:
            lines.append(line)
    return "\n".join(lines)


def statements(text):
    """Yields the statements: the text between semicolons outside braces."""
    depth = begin = 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == ";" and depth == 0:
            yield " ".join(text[begin:at].split())
            begin = at + 1


def split_outside(text, separator):
    """Splits the text at separators outside brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def arithmetic(text):
    """The value of a constant expression such as `16 + 1` or `1 << 3`."""
    tree = ast.parse(text.strip(), mode="eval")
    if any(not isinstance(node, (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)) for node in ast.walk(tree)):
        raise ValueError(f"not a constant: {text}")
    return eval(compile(tree, text, "eval"))


class Abi:
    def __init__(self):
        self.constants, self.structs, self.callbacks, self.functions = {}, {}, {}, {}
        self.enums, self.opaque = set(), set()

    def ctype(self, base, stars, role):
        """The ctypes type of `base` with this many stars, in the role of a field, argument or result."""
        if stars == 0:
            if base in SCALARS:
                return SCALARS[base]
            if base in self.enums:
                return "c_int"
            if base in self.structs or base in self.callbacks:
                return base
            raise ValueError(f"unknown type {base}")
        if base == "char" and stars == 1:
            return "c_char_p"
        if role == "argument" or base == "void" or base in self.opaque and stars == 1:
            return "c_void_p"  # accepts byref(), arrays, pointers, addresses and None
        inner = "c_void_p" if base in self.opaque and stars > 1 else self.ctype(base, 0, role)
        if base == "char":
            inner, stars = "c_char_p", stars - 1
        elif base in self.opaque:
            stars -= 1
        for _ in range(stars):
            inner = f"POINTER({inner})"
        return inner

    def declared(self, text, role):
        """(name, ctypes type) of a declaration such as `const char *const names[10]`."""
        if "(*" in text:  # pointer to array or function
            return re.search(r"\(\*(\w*)", text)[1], "c_void_p"
        self.opaque.update(set(re.findall(r"\bstruct (wf_\w+)", text)) - set(self.structs))  # used before it is declared
        count = re.search(r"\[([^\]]*)\]", text)
        plain = re.sub(r"\b(const|struct|enum)\b|\[[^\]]*\]", " ", text)
        match = re.fullmatch(r"\s*(\w+)((?:\s|\*)*)(\w*)\s*", plain)
        base, stars, name = match[1], match[2].count("*"), match[3]
        if count and role == "argument":
            stars += 1
        kind = self.ctype(base, stars, role)
        return name, f"{kind} * {arithmetic(count[1])}" if count and role == "field" else kind

    def fields(self, body):
        for declaration in split_outside(body, ";"):
            first, *others = split_outside(declaration, ",")
            base = re.sub(r"\**\s*\w+(\[[^\]]*\])?$", " ", first)
            for text in [first, *(base + other for other in others)]:
                yield self.declared(text, "field")

    def add_enum(self, name, body):
        value = -1
        for item in split_outside(body, ","):
            key, _, given = item.partition("=")
            value = arithmetic(given) if given else value + 1
            self.constants[key.strip()] = value
        self.enums.add(name)

    def add(self, text):
        if match := re.fullmatch(r"(?:typedef )?enum (\w+ )?\{(.*)\}( \w+)?", text):
            self.add_enum((match[3] or "").strip(), match[2])
        elif match := re.fullmatch(r"typedef struct (wf_\w+) (wf_\w+)", text):
            self.opaque.add(match[1])
        elif match := re.fullmatch(r"typedef struct wf_\w+ \{(.*)\} (wf_\w+)", text):
            self.opaque.discard(match[2])
            self.structs[match[2]] = list(self.fields(match[1]))
        elif match := re.fullmatch(r"typedef (wf_\w+_options) (wf_\w+_options)", text):  # WF_DECLARE_SHARED_OPTIONS
            self.structs[match[2]] = self.structs[match[1]]
        elif match := re.fullmatch(r"typedef (\w+) \(\*(wf_\w+)\)\((.*)\)", text):
            self.callbacks[match[2]] = [self.ctype(match[1], 0, "result")] + [self.declared(part, "argument")[1] for part in split_outside(match[3], ",")]
        elif match := re.fullmatch(r"([\w *]+?)(wf_\w+)\((.*)\)", text):
            arguments = [] if match[3] in ("", "void") else [self.declared(part, "argument")[1] for part in split_outside(match[3], ",")]
            self.functions[match[2]] = (self.declared(match[1], "result")[1], arguments)
        elif re.search(r"\bwf_", text) and not text.startswith("typedef struct"):
            raise ValueError(f"cannot read: {text}")

    def write(self, path):
        lines = [
            '"""The C ABI as ctypes sees it. Generated from the public headers by generate_abi.py: do not edit."""',
            "from ctypes import *  # noqa: F403",
            "",
        ]
        lines += [f"{name} = {value}" for name, value in self.constants.items()]
        for name, types in self.callbacks.items():
            lines.append(f"{name} = CFUNCTYPE({', '.join(types)})")
        for name, fields in self.structs.items():
            body = "".join(f'        ("{field}", {kind}),\n' for field, kind in fields)
            lines += ["", "", f"class {name}(Structure):", f"    _fields_ = [\n{body}    ]"]
        lines += ["", "", "FUNCTIONS = {"]
        lines += [f'    "{name}": ({result}, [{", ".join(arguments)}]),' for name, (result, arguments) in self.functions.items()]
        path.write_text("\n".join(lines + ["}", ""]), encoding="utf-8")


def python_type(kind, unit):
    if kind == "ENUM":
        return "Literal[" + ", ".join(repr(choice) for choice in unit.split("|")) + "]"
    return {"F32": "float", "I32": "int", "I64": "int", "BOOL": "bool", "STR": "str | os.PathLike[str] | None"}[kind]


def write_options(options, path):
    lines = ['"""Option tables of the library, for type checkers. Generated from the public headers by generate_abi.py: do not edit."""']
    lines += ["from __future__ import annotations", "", "import os", "from typing import Literal, TypedDict", ""]
    for table in options.split("@table ")[1:]:
        name, _, rows = table.partition(" ")
        lines += ["", "", f"class {name.title().replace('_', '')}Options(TypedDict, total=False):"]
        for row in re.findall(r"@row (.*?) @end", rows, re.DOTALL):
            kind, field, unit, help_text = split_row(row)
            lines += [f"    {field}: {python_type(kind, unit)}", f"    {help_text!r}"]
    path.write_text("\n".join(lines + [""]), encoding="utf-8")


def split_row(row):
    """The fields of a row `TYPE, name, "unit", "help" "more help"`."""
    kind, name, strings = row.split(",", 2)
    texts = re.match(r'((?:"(?:[^"\\]|\\.)*"\s*)+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)$', strings.strip()).groups()
    return kind.strip(), name.strip(), *("".join(ast.literal_eval(piece) for piece in re.findall(r'"(?:[^"\\]|\\.)*"', text)) for text in texts)


def main():
    compiler, include, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    declarations, options = preprocess(compiler, include)
    abi = Abi()
    for text in statements(declarations):
        if re.search(r"\b(wf|WF)_\w+", text):
            abi.add(text)
    folder.mkdir(parents=True, exist_ok=True)
    abi.write(folder / "_abi.py")
    write_options(options, folder / "_option_types.py")


if __name__ == "__main__":
    main()
