#!/usr/bin/env python3
"""check_wheel.py [--gpus=LIST] WHEEL - checks that a wheel is as docs/how-to/install.md says: its tag, its size, its files, the processor and the libraries that they
need, the functions that the library exports, the GPUs it has code for.

LIST is like WARPFST_CUDA_ARCHS: `release`, or architectures in CMake's notation, for warpfst-cuda; empty for warpfst. Called by `./run wheel`."""
from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator

MAX_BYTES, MAX_CPU_BYTES = 80_000_000, 3_000_000
MAY_NEED = {  # of the systems in the tags
    "manylinux": r"lib(c|m)\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-(x86-64\.so\.2|aarch64\.so\.1)",
    "musllinux": r"libc\.so",  # musl's loader takes itself for this name
    "macosx": r"/usr/lib/libSystem\.B\.dylib",
    "win": r"(kernel32|shell32|psapi|advapi32)\.dll|api-ms-win-crt-[a-z]+-l1-1-0\.dll|ucrtbase\.dll",  # of Windows 10
}
OWN = r"(@rpath/)?libwarpfst(\.so|\.dylib|\.dll)"
NAMES = {"macosx": ("libwarpfst.dylib", "bin/warpfst"), "win": ("bin/libwarpfst.dll", "bin/warpfst.exe")}  # else libwarpfst.so
FATBIN_MAGIC, PTX, CUBIN = 0xBA55ED50, 1, 2
LZ4, ZSTD = 0x2000, 0x8000  # flags of an image that give its compression
ROOT = pathlib.Path(__file__).parent.parent


def release_archs(wheel: pathlib.Path) -> list[str]:
    name = "WARPFST_CUDA_RELEASE_ARCHS" + ("_ARM" if wheel.stem.endswith("aarch64") else "")
    found = re.search(rf"set\({name} ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert found, f"CMakeLists.txt does not set {name}"
    return found[1].split()


def wanted_images(archs: list[str]) -> set[tuple[int, int]]:
    """{(kind, architecture)} of architectures in CMake's notation: 80-real is a cubin, 80-virtual is PTX, 80 is both."""
    images = set()
    for arch in archs:
        number, _, form = arch.partition("-")
        for kind, name in ((CUBIN, "real"), (PTX, "virtual")):
            if form in ("", name):
                images.add((kind, int(number.rstrip("af"))))
    return images


def images_of(library: bytes) -> list[tuple[int, int, int, int]]:
    """(kind, architecture, flags, bytes) of every image of device code. A fatbinary is a header of 16 bytes followed by images, each with its own header."""
    images, at = [], 0
    while (at := library.find(struct.pack("<I", FATBIN_MAGIC), at)) >= 0:
        _, version, head, size = struct.unpack_from("<IHHQ", library, at)
        at += 4
        if version != 1 or head != 16:
            continue
        place = at - 4 + head
        end = place + size
        while place < end:
            kind, _, image_head, num_bytes = struct.unpack_from("<HHIQ", library, place)
            arch, = struct.unpack_from("<I", library, place + 28)
            flags, = struct.unpack_from("<Q", library, place + 40)
            images.append((kind, arch, flags, num_bytes))
            place += image_head + num_bytes
        at = end
    return images


def platform_of(wheel: pathlib.Path) -> tuple[str, str]:
    """The kind of system (a key of MAY_NEED) and the processor of a wheel whose tag is in packaging/platforms.txt. ValueError: it is not there."""
    tag = wheel.stem.split("-")[-1]
    rows = [line.split() for line in (ROOT / "packaging/platforms.txt").read_text().splitlines() if not line.startswith("#")]
    if not wheel.stem.endswith(f"-py3-none-{tag}") or tag not in [row[2] for row in rows]:
        raise ValueError(f"the file name does not end in py3-none and a tag of packaging/platforms.txt: {tag}")
    processor = re.sub(r".*(x86_64|aarch64|arm64|amd64)$", r"\1", tag)
    return next(kind for kind in MAY_NEED if tag.startswith(kind)), {"arm64": "aarch64", "amd64": "x86_64"}.get(processor, processor)


@dataclasses.dataclass
class Binary:
    """What a library or program needs and has."""

    processor: str
    needed: set[str]
    exported: set[str]
    versions: set[str]  # of glibc, or the oldest macOS


def output(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def read_elf(path: pathlib.Path) -> Binary:
    machine = re.search(r"Machine: *(.*)", output("readelf", "-hW", path))
    names = re.findall(r" (?:FUNC|OBJECT) +\w+ +\w+ +(\d+) (\w+)", output("readelf", "--dyn-syms", "-W", path))
    return Binary(
        {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}.get(machine[1].strip() if machine else "", "?"),
        set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))),
        {name for _, name in names},
        set(re.findall(r"GLIBC_([\d.]+)", output("readelf", "-VW", path))),
    )


def read_pe(path: pathlib.Path) -> Binary:
    text = output("objdump", "-p", path)
    exports = text.partition("[Ordinal/Name Pointer] Table")[2]
    return Binary("x86_64" if "pei-x86-64" in text else "?", {name.lower() for name in re.findall(r"DLL Name: (\S+)", text)}, set(re.findall(r"\b(wf_\w+)", exports)), set())


def read_macho(path: pathlib.Path) -> Binary:
    """Load commands: 0xC names a library, 2 is the symbol table, 0x32 has the oldest system, 0x1D is the signature, without which ARM does not load it."""
    data = path.read_bytes()
    magic, processor, _, _, count = struct.unpack_from("<5I", data)
    found = Binary({0x01000007: "x86_64", 0x0100000C: "aarch64"}.get(processor, "?") if magic == 0xFEEDFACF else "?", set(), set(), set())
    at, signed = 32, False
    for _ in range(count):
        kind, size = struct.unpack_from("<2I", data, at)
        if kind == 0xC:
            name, = struct.unpack_from("<I", data, at + 8)
            found.needed.add(data[at + name : at + size].split(b"\0")[0].decode())
        elif kind == 2:
            symbols, num, strings, _ = struct.unpack_from("<4I", data, at + 8)
            for place in range(symbols, symbols + 16 * num, 16):
                name, flags, section = struct.unpack_from("<IBB", data, place)
                if flags & 0xE0 == 0 and flags & 1 and section:  # no debugger's, external, defined
                    end = data.index(b"\0", strings + name)
                    found.exported.add(data[strings + name + 1 : end].decode())  # without "_"
        elif kind == 0x32:
            version, = struct.unpack_from("<I", data, at + 12)
            found.versions.add(f"{version >> 16}.{version >> 8 & 255}")
        signed = signed or kind == 0x1D
        at += size
    if found.processor == "aarch64" and not signed:
        found.needed.add("a signature")
    return found


READ = {"manylinux": read_elf, "musllinux": read_elf, "macosx": read_macho, "win": read_pe}


def binary_problems(folder: pathlib.Path, name: str, kind: str, processor: str, tag: str) -> Iterator[str]:
    path = next(folder.rglob(name), None)
    if path is None:
        yield f"it has no {name}"
        return
    binary = READ[kind](path)
    if binary.processor != processor:
        yield f"{name} is for {binary.processor}, expected {processor}"
    others = sorted(other for other in binary.needed if not re.fullmatch(f"{MAY_NEED[kind]}|{OWN}", other))
    if others:
        yield f"{name} needs {', '.join(others)}"
    most = re.search(r"(?:manylinux_|macosx_)(\d+)_(\d+)", tag)
    newer = sorted(version for version in binary.versions if most and tuple(map(int, version.split("."))) > (int(most[1]), int(most[2])))
    if newer:
        yield f"{name} needs versions {', '.join(newer)} of the system, newer than the tag's"
    if "libwarpfst." in name:
        declared = set(re.findall(r'^    "(wf_\w+)"', next(folder.rglob("warpfst/_abi.py")).read_text(), re.MULTILINE))
        if not declared or declared - binary.exported:
            yield f"{name} does not export {', '.join(sorted(declared - binary.exported)[:5]) or 'what _abi.py declares'}"


def cuda_problems(wheel: pathlib.Path, archive: zipfile.ZipFile) -> Iterator[str]:
    """Of warpfst-cuda: another file beside the library, or the wrong version of warpfst."""
    version = wheel.name.split("-")[1]
    metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    if f"Requires-Dist: warpfst=={version}" not in archive.read(metadata).decode().splitlines():
        yield f"it does not require warpfst=={version}"
    others = [name for name in archive.namelist() if ".dist-info/" not in name and name != "warpfst/libwarpfst-cuda.so"]
    if others:
        yield f"it has {', '.join(others)}, which warpfst may have"


def problems(wheel: pathlib.Path, archs: list[str]) -> list[str]:
    found = []
    try:
        kind, processor = platform_of(wheel)
    except ValueError as error:
        return [str(error)]
    most = MAX_BYTES if archs else MAX_CPU_BYTES
    if wheel.stat().st_size > most:
        found.append(f"{wheel.stat().st_size} bytes, expected at most {most}")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        if archs:
            programs, files = ["warpfst/libwarpfst-cuda.so"], ["licenses/LICENSE"]
            found += cuda_problems(wheel, archive)
        else:
            programs = [f"warpfst/{name}" for name in NAMES.get(kind, ("libwarpfst.so", "bin/warpfst"))]
            programs += ["*.data/scripts/warpfst" + (".exe" if kind == "win" else "")]
            files = ["warpfst/py.typed", "warpfst/_option_types.py", "licenses/LICENSE"]
        for name in programs:
            found += binary_problems(pathlib.Path(folder), name, kind, processor, wheel.stem)
        for name in files:
            if not any(path.endswith(name) for path in archive.namelist()):
                found.append(f"it has no {name}")
        libraries = {path.name: path.read_bytes() for path in pathlib.Path(folder).rglob("libwarpfst*.*")}
    images = [image for name, library in libraries.items() for image in images_of(library)]
    if images_of(libraries.get("libwarpfst.so", b"")):
        found.append("libwarpfst.so has device code, which belongs to libwarpfst-cuda.so")
    have = {(kind, arch) for kind, arch, _, _ in images}
    for kind, arch in sorted(wanted_images(archs) - have):
        found.append(f"it has no {'code' if kind == CUBIN else 'PTX'} for {arch}")
    for kind, arch in sorted(have - wanted_images(archs)):
        found.append(f"it has {'code' if kind == CUBIN else 'PTX'} for {arch}, which is not in the list")
    if any(flags & ZSTD for _, _, flags, _ in images):
        found.append("its device code is compressed with zstd, which drivers before 550 cannot read")
    for kind, arch in sorted(have):
        size = sum(num_bytes for image_kind, image_arch, _, num_bytes in images if (image_kind, image_arch) == (kind, arch))
        print(f"{'code' if kind == CUBIN else 'PTX'} for {arch}: {size / 1e6:.1f} MB")
    for name, library in sorted(libraries.items()):
        print(f"{name}: {len(library) / 1e6:.1f} MB")
    print(f"wheel: {wheel.stat().st_size / 1e6:.1f} MB")
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", default="")
    parser.add_argument("wheel", type=pathlib.Path)
    options = parser.parse_args()
    archs = release_archs(options.wheel) if options.gpus == "release" else [arch for arch in options.gpus.split(";") if arch]
    found = problems(options.wheel, archs)
    for problem in found:
        print(f"{options.wheel.name}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
