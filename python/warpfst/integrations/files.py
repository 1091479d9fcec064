"""Readers of token files. Errors name file and line."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import json
import lzma
import math
import os
import pathlib
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import Error, FileError, FormatError

_MOST_VALUES = 1_000_000
BLANKS = ("<blk>", "<blank>", "<b>", "<pad>", "[PAD]", "<ctc>")


def require(package: str, what: str) -> Any:
    """Imports an optional package."""
    try:
        return importlib.import_module(package)
    except ImportError as why:
        name = {"yaml": "pyyaml"}.get(package, package)
        raise ImportError(f"{what} needs the package {name}: pip install {name}") from why


def decode_utf8(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as why:
        number = data.count(b"\n", 0, why.start) + 1
        raise FormatError(f"{source}:{number}: not UTF-8") from why


def read_text(path: str | os.PathLike[str]) -> str:
    try:
        return decode_utf8(pathlib.Path(path).read_bytes(), os.fspath(path))
    except OSError as why:
        raise FileError(f"{os.fspath(path)}: {why.strerror}") from why


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """An object of a JSON file."""
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as why:
        raise FormatError(f"{os.fspath(path)}:{why.lineno}: {why.msg}") from why
    except ValueError as why:  # a number with thousands of digits
        raise FormatError(f"{os.fspath(path)}: {why}") from why
    except RecursionError as why:
        raise FormatError(f"{os.fspath(path)}:1: nested too deeply") from why
    if not isinstance(value, dict):
        raise FormatError(f"{os.fspath(path)}:1: expected an object {{...}}")
    return value


def _count_values(node: Any, counts: dict[int, int]) -> int:
    """How many values a node of YAML has if each alias is written out. `counts`: those of the nodes that are known; 0: one that is being counted."""
    if id(node) not in counts:
        counts[id(node)] = 0
        children = node.value if isinstance(node.value, list) else []
        inner = [each for child in children for each in (child if isinstance(child, tuple) else (child,))]
        counts[id(node)] = 1 + sum(_count_values(each, counts) for each in inner)
    elif counts[id(node)] == 0:
        raise ValueError("an alias of a value that contains the alias")
    return counts[id(node)]


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    """The keys and values of a YAML file. Aliases that stand for more than a million values, or for themselves, are errors."""
    yaml = require("yaml", source)
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is not None and _count_values(node, {}) > _MOST_VALUES:
            raise ValueError(f"more than {_MOST_VALUES:,} values, with aliases written out")
        value = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        raise FormatError(f"{source}:{mark.line + 1 if mark else 1}: {getattr(why, 'problem', None) or 'not YAML'}") from why
    except Exception as why:  # the library raises ValueError, KeyError and others for values that do not fit to their tags
        raise FormatError(f"{source}: {'nested too deeply' if isinstance(why, RecursionError) else why}") from why
    if not isinstance(value, dict):
        raise FormatError(f"{source}:1: expected keys and values")
    return value


class _Bounded:
    """A file that gives a limited number of bytes. tarfile reads the headers of an archive whole, whatever size they claim."""

    def __init__(self, file: Any, most_bytes: int) -> None:
        self._file, self._left = file, most_bytes
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self._left:
            raise tarfile.ReadError("the archive unpacks to too many bytes")
        data: bytes = self._file.read(size)
        self._left -= len(data)
        return data


@contextlib.contextmanager
def open_tar(path: str) -> Iterator[dict[str, tuple[tarfile.TarFile, tarfile.TarInfo]]]:
    """The files of a .nemo archive, a tar archive, plain or compressed: name without ./ -> (archive, member). An archive may unpack to 64 MB, or to 200 times its size.

    FormatError: it is damaged, also if that is found within the context. FileError.
    """
    try:
        with open(path, "rb") as plain:
            start = plain.read(6)
            plain.seek(0)
            opener = next((kind for magic, kind in ((b"\x1f\x8b", gzip), (b"BZh", bz2), (b"\xfd7zXZ\0", lzma)) if start.startswith(magic)), None)
            most_bytes = max(64 << 20, 200 * os.fstat(plain.fileno()).st_size)
            with plain if opener is None else opener.open(plain) as content, tarfile.open(fileobj=_Bounded(content, most_bytes), mode="r:") as archive:  # type: ignore[call-overload]
                yield {member.name.removeprefix("./"): (archive, member) for member in archive.getmembers() if member.isfile() and not member.issparse()}
    except Error:
        raise
    except OSError as why:
        if why.errno is not None:
            raise FileError(f"{path}: {why.strerror}") from why
        raise FormatError(f"{path}: not a .nemo archive: {why}") from why
    except Exception as why:  # tarfile and the decompressors raise many kinds
        raise FormatError(f"{path}: not a .nemo archive: {why}") from why


def product(factors: Any, divisor: Any = 1) -> float | None:
    """The product of numbers of a configuration over another one. None: something is not a usual number, so nothing is told."""
    if not isinstance(factors, (list, tuple)) or not factors:
        return None
    numbers = [*factors, divisor]
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) and 0 < one < 1e9 for one in numbers):
        return None
    quotient = math.prod(map(float, factors)) / float(divisor)
    return quotient if quotient < 1e9 else None


def columns(vocabulary: Mapping[str, Any], source: str, text: str = "") -> list[str]:
    """Tokens in the order of their columns, from token -> column. Columns without a token are named <columnN>. `text`: the file's text, for line numbers."""

    def fail(token: str, why: str) -> FormatError:
        at = text.find(json.dumps(token, ensure_ascii=False))
        line = f":{text.count(chr(10), 0, at) + 1}" if at >= 0 else ""
        return FormatError(f"{source}{line}: token {token!r}: {why}")

    by_column: dict[int, str] = {}
    for token, column in vocabulary.items():
        if not isinstance(column, int) or isinstance(column, bool) or column < 0:
            raise fail(token, f"column {column!r}, expected a whole number from 0")
        if column > 100 * len(vocabulary) + 1000:
            raise fail(token, f"column {column} of {len(vocabulary)} tokens")
        if column in by_column:
            raise fail(token, f"column {column} is already that of {by_column[column]!r}")
        by_column[column] = token
    if not by_column:
        raise FormatError(f"{source}: no tokens")
    return [by_column.get(column, f"<column{column}>") for column in range(max(by_column) + 1)]


def read_token_table(path: str | os.PathLike[str]) -> list[str]:
    """Lines `token column`, as of icefall and WeNet. The disambiguation symbols #0, #1, ... at the end, which are no columns, are left out."""
    source = os.fspath(path)
    names: dict[int, str] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        fields = line.rsplit(None, 1)
        if not fields:
            continue
        if len(fields) != 2 or not re.fullmatch("[0-9]{1,9}", fields[1]):
            raise FormatError(f"{source}:{number}: {line[:80]!r}, expected `token column`")
        column = int(fields[1])
        if column in names:
            raise FormatError(f"{source}:{number}: column {column} is already that of {names[column]!r}")
        names[column] = fields[0].strip()
    while names and re.fullmatch(r"#\d+", names[max(names)]):
        del names[max(names)]
    missing = next((column for column in range(len(names)) if column not in names), None)
    if missing is not None or not names:
        raise FormatError(f"{source}: no token in column {missing or 0}")
    return [names[column] for column in range(len(names))]


def read_token_list(path: str | os.PathLike[str]) -> list[str]:
    """One token a line, in the order of the columns, as of ESPnet."""
    lines = read_text(path).rstrip("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if len(line.split()) != 1:
            raise FormatError(f"{os.fspath(path)}:{number}: {line[:80]!r}, expected one token")
    return [line.strip() for line in lines]


def blank_column(names: Sequence[str], source: str, name: str | None = None) -> int:
    """The column of the blank: the token `name`, or the first of BLANKS."""
    found = [one for one in ([name] if name is not None else BLANKS) if one in names]
    if not found:
        raise FormatError(f"{source}: no blank: expected {repr(name) if name is not None else ', '.join(BLANKS)} among the tokens")
    return list(names).index(found[0])


def open_sentencepiece(source: str | os.PathLike[str] | bytes, name: str) -> Any:
    """A SentencePieceProcessor, of a path or of a file's content."""
    sentencepiece = require("sentencepiece", name)
    if not isinstance(source, bytes) and not os.path.exists(source):
        raise FileError(f"{name}: no such file")
    try:
        content = source if isinstance(source, bytes) else pathlib.Path(source).read_bytes()
        if not content:  # the library would return a processor without a model
            raise RuntimeError("empty")
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except (OSError, RuntimeError) as why:
        raise FormatError(f"{name}: not a sentencepiece model") from why


def spelling_of(processor: Any) -> Any:
    """The tokenizer of a SentencePieceProcessor, word -> pieces."""
    return lambda word: processor.encode(word, out_type=str)
