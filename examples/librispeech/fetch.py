"""Downloads files into a cache folder. Interrupted downloads go on where they ended; a file gets its name only after its size and checksum were checked."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

_BLOCK_BYTES = 1 << 20
_TRIES, _TIMEOUT_S = 5, 60


class DownloadError(Exception):
    """A file that could not be had. The message names its address and what to do. `code`: the status of HTTP, if the server gave one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class Progress:
    """One line on the standard error for each file; on a terminal it is updated, elsewhere it is written at each tenth."""

    def __init__(self, name: str, total: int | None, stream: Any = None) -> None:
        self._name, self._total, self._stream = name, total, stream or sys.stderr
        self._begin, self._last, self._tenth = time.monotonic(), 0.0, -1

    def show(self, done: int, received: int) -> None:
        """`done`: bytes that are there, of which this run has received `received`."""
        now, terminal = time.monotonic(), self._stream.isatty()
        tenth = 10 * done // self._total if self._total else done // (100 << 20)
        if done != self._total and (now - self._last < 0.2 if terminal else tenth == self._tenth):
            return
        self._last, self._tenth = now, tenth
        share = f"{100 * done / self._total:3.0f}% of {self._total / 1e6:,.1f} MB" if self._total else f"{done / 1e6:,.1f} MB"
        speed = received / 1e6 / max(now - self._begin, 1e-3)
        print(f"{self._name}: {share}, {speed:,.1f} MB/s", end="\r" if terminal and done != self._total else "\n", file=self._stream, flush=True)


class _Unredirected(urllib.request.Request):
    """A request whose token stays with the host that it was made for: redirects lead to other hosts."""

    def __init__(self, url: str, token: str | None) -> None:
        super().__init__(url, headers={"User-Agent": "warpfst-recipe"})
        if token:
            self.add_unredirected_header("Authorization", f"Bearer {token}")


def _why(error: Exception, url: str) -> str:
    code = getattr(error, "code", None)
    hint = {401: ": it needs a token (HF_TOKEN)", 403: ": access was refused; accept the data's terms on its page, and set HF_TOKEN", 404: ": there is no such file"}.get(code or 0, "")
    return f"{url}: {error}{hint}"


def read(url: str, token: str | None = None) -> tuple[bytes, Any]:
    """A small file, and the headers of the answer. DownloadError if it cannot be had."""
    try:
        with urllib.request.urlopen(_Unredirected(url, token), timeout=_TIMEOUT_S) as answer:
            return answer.read(), answer.headers
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(_why(error, url), getattr(error, "code", None)) from error


def _receive(url: str, part: pathlib.Path, name: str, token: str | None) -> None:
    """Appends to `part` what it lacks. The beginning is kept only if the server says that the file is still the same (If-Range)."""
    mark = part.with_name(part.name + ".version")  # the ETag or the date of the file that the beginning is of
    request = _Unredirected(url, token)
    have = part.stat().st_size if part.exists() and mark.exists() else 0
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", mark.read_text(encoding="utf-8"))
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        have = have if answer.status == http.client.PARTIAL_CONTENT else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        if version and not version.startswith("W/"):
            mark.write_text(version, encoding="utf-8")
        else:
            mark.unlink(missing_ok=True)
        progress, done = Progress(name, total), have
        with part.open("ab" if have else "wb") as file:
            while block := answer.read(_BLOCK_BYTES):
                file.write(block)
                done += len(block)
                progress.show(done, done - have)
    if total is not None and done != total:
        raise http.client.IncompleteRead(b"", total - done)


def _check(path: pathlib.Path, url: str, size: int | None, checksum: tuple[str, str] | None) -> None:
    if size is not None and path.stat().st_size != size:
        raise DownloadError(f"{url}: has {path.stat().st_size:,} bytes, expected {size:,}")
    if checksum is not None:
        kind, wanted = checksum
        digest = hashlib.new(kind)
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
        if digest.hexdigest() != wanted:
            raise DownloadError(f"{url}: its {kind} is {digest.hexdigest()}, the publisher's is {wanted}; the download was deleted")


def fetch(url: str, path: pathlib.Path, *, size: int | None = None, checksum: tuple[str, str] | None = None, token: str | None = None, wait_s: float = 2) -> pathlib.Path:
    """Downloads `url` to `path`, if that does not exist, and returns `path`. `checksum`: (name for hashlib, hexadecimal digits).

    It tries again when the connection breaks. DownloadError: the server refuses, does not answer, or the file is not the published one.
    """
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    for attempt in range(1, _TRIES + 1):
        try:
            _receive(url, part, path.name, token)
            break
        except urllib.error.HTTPError as error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:  # the whole file had been received
                part.with_name(part.name + ".version").unlink(missing_ok=True)
            elif error.code < 500:
                raise DownloadError(_why(error, url)) from error
            failure: Exception = error
        except (OSError, http.client.HTTPException) as error:
            failure = error
        if attempt == _TRIES:
            raise DownloadError(f"{_why(failure, url)}; tried {_TRIES} times. What was received is kept: run it again to go on") from failure
        time.sleep(wait_s * attempt)
    part.with_name(part.name + ".version").unlink(missing_ok=True)
    try:
        _check(part, url, size, checksum)
    except DownloadError:
        part.unlink()
        raise
    return part.replace(path)


def md5_of(url: str) -> tuple[str, str] | None:
    """The checksum of a file in the md5sum.txt beside it, as OpenSLR publishes for LibriSpeech. None, and a note, if there is none."""
    folder, _, name = url.rpartition("/")
    try:
        lines = read(f"{folder}/md5sum.txt")[0].decode("utf-8", "replace").splitlines()
    except DownloadError as error:
        if error.code != http.client.NOT_FOUND:
            raise
        lines = []
    found = [fields[0].lower() for fields in map(str.split, lines) if len(fields) == 2 and fields[1].lstrip("*./") == name]
    if not found:
        print(f"{name}: no checksum is published beside it; its size and, if it is compressed, gzip's checksum are checked", file=sys.stderr)
    return ("md5", found[0]) if found else None


def unpacked(path: pathlib.Path) -> pathlib.Path:
    """FILE of FILE.gz, for peers that read no compressed models. gzip's checksum is checked."""
    target = path.with_suffix("")
    if not target.exists():
        _write_whole(target, lambda file: _copy_gzip(path, file))
    return target


def _copy_gzip(path: pathlib.Path, file: Any) -> None:
    try:
        with gzip.open(path) as packed:
            shutil.copyfileobj(packed, file, _BLOCK_BYTES)
    except (OSError, EOFError) as error:
        raise DownloadError(f"{path}: {error}; delete it and run again") from error


def _write_whole(target: pathlib.Path, write: Callable[[Any], None]) -> None:
    """Writes a file that has its name only when it is complete."""
    part = target.with_name(target.name + ".part")
    with part.open("wb") as file:
        write(file)
    part.replace(target)


class Hub:
    """Files of HuggingFace's Hub. HF_TOKEN in the environment is sent to it, for data whose terms must be accepted."""

    def __init__(self, url: str, cache: pathlib.Path) -> None:
        self.url, self._cache = url.rstrip("/"), cache
        self._token = os.environ.get("HF_TOKEN")

    def files(self, dataset: str, folder: str) -> list[dict[str, Any]]:
        """The entries of a folder of a data set: path, size, and the SHA-256 of large files (lfs)."""
        found, url = [], f"{self.url}/api/datasets/{dataset}/tree/main/{folder}"
        while url:
            content, headers = read(url, self._token)
            try:
                found += [entry for entry in json.loads(content) if entry["type"] == "file" and ".." not in entry["path"].split("/")]
            except (ValueError, KeyError, TypeError) as error:
                raise DownloadError(f"{url}: not a list of files: {content[:80]!r}") from error
            following = [link.split(">")[0].lstrip(" <") for link in (headers.get("Link") or "").split(",") if 'rel="next"' in link]
            url = following[0] if following else ""
        return found

    def dataset_file(self, dataset: str, entry: dict[str, Any]) -> pathlib.Path:
        """Downloads an entry of `files`."""
        large = entry.get("lfs") or {}
        checksum = ("sha256", large["oid"]) if large.get("oid") else None
        url = f"{self.url}/datasets/{dataset}/resolve/main/{entry['path']}"
        return fetch(url, self._cache / dataset / entry["path"], size=large.get("size", entry.get("size")), checksum=checksum, token=self._token)

    def model_file(self, model: str, name: str) -> pathlib.Path:
        return fetch(f"{self.url}/{model}/resolve/main/{name}", self._cache / model / name, token=self._token)
