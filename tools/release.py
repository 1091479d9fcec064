#!/usr/bin/env python3
"""release.py VERSION [--push] - makes a release of what is committed: writes the version where it stands, dates the changelog, commits, and tags
vVERSION. --push pushes commit and tag, which is all that a person does: .github/workflows/wheels.yml builds, tests and publishes tagged wheels.

release.py --dry-run [VERSION] - does the same in a copy, prints what would change, and leaves everything as it is; CI runs it.
release.py --collect FOLDER - checks that FOLDER has the wheels of this version for every platform and its source package, checks each wheel
(check_wheel.py), and writes SHA256SUMS and sbom.spdx.json there."""
from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

import check_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMBER, SHORT = r"\d+\.\d+\.\d+", r"\d+\.\d+\b"  # SHORT: of the interface, in names of libraries
# Where the version stands: a file and what matches it there. The first is the one that the others repeat.
PLACES = [
    ("CMakeLists.txt", rf"(?<=project\(warpfst VERSION ){NUMBER}"),
    ("pyproject.toml", rf"(?<=warpfst-cuda==){NUMBER}"),
    ("packaging/cuda/pyproject.toml", rf'(?<=^version = "){NUMBER}'),
    ("packaging/cuda/pyproject.toml", rf"(?<=warpfst==){NUMBER}"),
    ("packaging/conda/recipe.yaml", rf'(?<=^  version: "){NUMBER}'),
    ("packaging/debian/changelog", rf"(?<=^warpfst \(){NUMBER}"),
    ("packaging/debian/control", rf"(?<=libwarpfst){SHORT}"),
    ("docs/how-to/install.md", rf"(?<=libwarpfst-cuda\.so\.){SHORT}"),
    ("packaging/images/kubernetes.yaml", rf"(?<=image: warpfst:){NUMBER}"),
]


class Refused(Exception):
    """What a person has to mend before the release."""


def git(*arguments: str, root: pathlib.Path) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def in_form(version: str, pattern: str) -> str:
    return version if NUMBER in pattern else version.rpartition(".")[0]


def current_version(root: pathlib.Path) -> str:
    """The version that every place has. Refused: one lacks it, or has another."""
    version = ""
    for name, pattern in PLACES:
        found = re.findall(pattern, (root / name).read_text(), re.MULTILINE)
        version = version or found[0]
        if not found or any(one != in_form(version, pattern) for one in found[: 1 if name.endswith("changelog") else None]):
            raise Refused(f"{name} has the version {', '.join(found) or 'nowhere'}, and {PLACES[0][0]} has {version}")
    return version


def write_version(root: pathlib.Path, version: str, day: datetime.datetime) -> None:
    log = root / "packaging/debian/changelog"
    person = git("var", "GIT_COMMITTER_IDENT", root=root).rpartition(">")[0] + ">"  # who makes the release maintains the package
    control = root / "packaging/debian/control"
    control.write_text(re.sub("^Maintainer: .*$", f"Maintainer: {person}", control.read_text(), flags=re.MULTILINE))
    signature = f" -- {person}  {day.strftime('%a, %d %b %Y %H:%M:%S +0000')}"
    log.write_text(f"warpfst ({version}-1) unstable; urgency=medium\n\n  * New release.\n\n{signature}\n\n{log.read_text()}")
    for name, pattern in PLACES:
        path = root / name
        if path != log:
            path.write_text(re.sub(pattern, in_form(version, pattern), path.read_text(), flags=re.MULTILINE))


def write_changelog(root: pathlib.Path, version: str, day: datetime.datetime) -> str:
    """Names the section of what is not released yet. Returns its text."""
    path = root / "CHANGELOG.md"
    text = path.read_text()
    head, _, rest = text.partition("\n## Unreleased\n")
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not section:
        raise Refused("CHANGELOG.md has no section '## Unreleased' with text, so there is nothing to release")
    if f"## {version}" in text:
        raise Refused(f"CHANGELOG.md has a section of {version} already")
    path.write_text(f"{head}\n## {version} ({day.date()})\n{rest}")
    return section


def make(root: pathlib.Path, version: str) -> None:
    """Commits and tags the release in a repository. Refused: something is missing; nothing is changed then."""
    before = current_version(root)
    if not re.fullmatch(NUMBER, version):
        raise Refused(f"a version is three numbers, not {version}")
    if numbers(version) <= numbers(before):
        raise Refused(f"{version} does not come after {before}")
    if git("status", "--porcelain", root=root):
        raise Refused("there are files that are not committed")
    if git("tag", "--list", f"v{version}", root=root):
        raise Refused(f"there is a tag v{version} already")
    interface = f"tests/abi/warpfst-{version.rpartition('.')[0]}.abi.xz"
    if not (root / interface).exists():
        raise Refused(f"there is no {interface}: tools/record_abi.sh records the binary interface, with the new version in CMakeLists.txt")
    day = datetime.datetime.now(datetime.timezone.utc)
    section = write_changelog(root, version, day)
    write_version(root, version, day)
    git("commit", "--quiet", "--all", "-m", f"release {version}", root=root)
    git("tag", "-a", f"v{version}", "--cleanup=verbatim", "-m", f"warpfst {version}\n\n{section}", root=root)


def rehearse(version: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "warpfst"
        git("clone", "--quiet", "--shared", str(ROOT), str(root), root=pathlib.Path(folder))
        for key in ("user.name", "user.email"):
            git("config", key, "release", root=root)
        first, second, third = numbers(current_version(root))
        log = root / "CHANGELOG.md"
        if "\n## Unreleased\n" not in log.read_text():  # right after a release
            log.write_text(log.read_text().replace("\n## ", "\n## Unreleased\n\n- Nothing yet.\n\n## ", 1))
            git("commit", "--quiet", "--all", "-m", "a section", root=root)
        version = version or f"{first}.{second}.{third + 1}"
        make(root, version)
        if current_version(root) != version:
            raise Refused(f"places have {current_version(root)} after the release of {version}")
        print(git("show", "--stat", "--patch", "--format=%s", "--unified=0", "HEAD", root=root))
        print(f"\ntag v{version}: {len(git('tag', '--list', '-n999', f'v{version}', root=root).splitlines())} lines")


def zlib_version(wheel: pathlib.Path) -> str | None:
    """Of the zlib that is linked into a wheel: its texts of copyright have it."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            match = re.search(rb"(?:in|de)flate (\d[\d.]+\d) Copyright", archive.read(name)) if "libwarpfst" in name else None
            if match:
                return match[1].decode()
    return None


def sbom(version: str, wheels: list[pathlib.Path], sums: dict[str, str]) -> dict[str, Any]:
    """SPDX 2.3: a package for each wheel, and what is linked into it."""
    pins = dict(re.findall(r"^([\w-]+)==([\w.]+)$", (ROOT / "tools/cuda12_requirements.txt").read_text(), re.MULTILINE))
    packages: dict[str, dict[str, Any]] = {}
    relations = []

    def add(name: str, of_version: str, license_id: str, **more: Any) -> str:
        key = "SPDXRef-" + re.sub(r"[^\w.-]", "-", more.get("packageFileName", f"{name}-{of_version}")).replace("_", "-")
        packages.setdefault(key, {"SPDXID": key, "name": name, "versionInfo": of_version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
                                  "licenseConcluded": license_id, "licenseDeclared": license_id, "copyrightText": "NOASSERTION", **more})
        return key

    for wheel in wheels:
        is_cuda = wheel.name.startswith("warpfst_cuda-")
        key = add("warpfst-cuda" if is_cuda else "warpfst", version, "Apache-2.0", packageFileName=wheel.name,
                  checksums=[{"algorithm": "SHA256", "checksumValue": sums[wheel.name]}])
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", key))
        linked = []
        if is_cuda:
            linked.append(add("cuda-runtime", pins["nvidia-cuda-runtime-cu12"], "LicenseRef-NVIDIA-EULA"))
            linked.append(add("cccl", pins["nvidia-cuda-cccl-cu12"], "Apache-2.0 WITH LLVM-exception"))
        else:
            linked.append(add("zlib", zlib_version(wheel) or "NOASSERTION", "Zlib"))
        relations += [(key, "CONTAINS", other) for other in linked]
    total = hashlib.sha256("".join(sums[wheel.name] for wheel in wheels).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"warpfst-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/warpfst-{version}-{total[:32]}",
        "creationInfo": {"created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: tools/release.py"]},
        "packages": list(packages.values()),
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
        "hasExtractedLicensingInfos": [{"licenseId": "LicenseRef-NVIDIA-EULA", "name": "CUDA Toolkit End User License Agreement",
                                        "extractedText": "https://docs.nvidia.com/cuda/eula/"}],
    }


def collect(folder: pathlib.Path) -> None:
    version = current_version(ROOT)
    rows = [line.split() for line in (ROOT / "packaging/platforms.txt").read_text().splitlines() if not line.startswith("#")]
    names = [f"{'warpfst_cuda' if row[0].startswith('cuda-') else 'warpfst'}-{version}-py3-none-{row[2]}.whl" for row in rows]
    have = {path.name for path in folder.glob("*.whl")}
    problems = [f"there is no {name}" for name in names if name not in have] + [f"{name} is not of {version}, or of no platform" for name in sorted(have - set(names))]
    wheels = [folder / name for name in names if name in have]
    source = folder / f"warpfst-{version}.tar.gz"
    if not source.exists():
        problems.append(f"there is no {source.name}")
    for wheel in wheels:
        archs = check_wheel.release_archs(wheel) if wheel.name.startswith("warpfst_cuda-") else []
        problems += [f"{wheel.name}: {problem}" for problem in check_wheel.problems(wheel, archs)]
    if problems:
        raise Refused("\n".join(problems))
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (*wheels, source)}
    (folder / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))
    (folder / "sbom.spdx.json").write_text(json.dumps(sbom(version, wheels, sums), indent=1) + "\n")
    print(f"{len(wheels)} wheels and {source.name}: SHA256SUMS, sbom.spdx.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--push", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--collect", type=pathlib.Path)
    options = parser.parse_args()
    try:
        if options.collect:
            collect(options.collect)
        elif options.dry_run:
            rehearse(options.version)
        elif options.version:
            make(ROOT, options.version)
            if options.push:
                git("push", "--atomic", "origin", "HEAD", f"v{options.version}", root=ROOT)
            else:
                print(f"made v{options.version}; git push --atomic origin HEAD v{options.version} publishes it")
        else:
            parser.error("which version?")
    except Refused as refused:
        print(f"release.py: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
