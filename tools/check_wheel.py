#!/usr/bin/env python3
"""check_wheel.py [--gpus=LIST] WHEEL - checks that a wheel is as docs/how-to/install.md says: its tag, its size, the libraries it needs, the GPUs it has code for.

LIST is like WARPFST_CUDA_ARCHS: `release`, or architectures in CMake's notation; empty for a wheel without a GPU backend. Called by `./run wheel`."""
from __future__ import annotations

import argparse
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

MAX_BYTES = 80_000_000
TAG = "-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
MAY_NEED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"}
FATBIN_MAGIC, PTX, CUBIN = 0xBA55ED50, 1, 2
LZ4, ZSTD = 0x2000, 0x8000  # flags of an image that give its compression
ROOT = pathlib.Path(__file__).parent.parent


def release_archs() -> list[str]:
    found = re.search(r"set\(WARPFST_CUDA_RELEASE_ARCHS ([^)]*)\)", (ROOT / "CMakeLists.txt").read_text())
    assert found, "CMakeLists.txt does not set WARPFST_CUDA_RELEASE_ARCHS"
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


def needed(library: pathlib.Path) -> set[str]:
    text = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def problems(wheel: pathlib.Path, archs: list[str]) -> list[str]:
    found = []
    if not wheel.name.endswith(TAG):
        found.append(f"the file name does not end in the tag {TAG}")
    if wheel.stat().st_size > MAX_BYTES:
        found.append(f"{wheel.stat().st_size} bytes, expected at most {MAX_BYTES}")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        names = ["warpfst/libwarpfst.so", "warpfst/bin/warpfst", *(["warpfst/libwarpfst-cuda.so"] if archs else [])]
        for name in names:
            path = next(pathlib.Path(folder).rglob(name), None)
            if path is None:
                found.append(f"it has no {name}")
                continue
            others = needed(path) - MAY_NEED - {"libwarpfst.so"}
            if others:
                found.append(f"{name} needs {', '.join(sorted(others))}")
        libraries = {path.name: path.read_bytes() for path in pathlib.Path(folder).rglob("warpfst/libwarpfst*.so")}
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
    archs = release_archs() if options.gpus == "release" else [arch for arch in options.gpus.split(";") if arch]
    found = problems(options.wheel, archs)
    for problem in found:
        print(f"{options.wheel.name}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
