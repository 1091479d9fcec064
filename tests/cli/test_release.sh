# tools/release.py writes the version wherever it stands, refuses what is not ready, and lists what a release has. Files of packaging/ name files that exist,
# and no page tells to install a package that is not published.
# shellcheck shell=bash
fail() { echo "$1" >&2; exit 1; }
git -C "$SOURCE_DIR" rev-parse HEAD >/dev/null 2>&1 || { echo 'skipped: no git repository'; exit 77; }

python3 "$SOURCE_DIR/tools/release.py" --dry-run >dry.txt || fail '--dry-run of this tree'
grep -q '^+project(warpfst VERSION' dry.txt || fail "--dry-run: $(cat dry.txt)"

# The files that a release reads, in a repository of their own.
mkdir tree
cp -r "$SOURCE_DIR/tools" "$SOURCE_DIR/packaging" "$SOURCE_DIR/CMakeLists.txt" "$SOURCE_DIR/pyproject.toml" tree
mkdir -p tree/tests/abi tree/docs/how-to
cp "$SOURCE_DIR/docs/how-to/install.md" tree/docs/how-to
version=$(sed -n 's/^project(warpfst VERSION \([0-9.]*\).*/\1/p' tree/CMakeLists.txt)
touch tree/tests/abi/warpfst-99.0.abi.xz
printf '# Changes\n\n## Unreleased\n\n- Something new.\n\n## %s (2026-01-01)\n\n- Something old.\n' "$version" >tree/CHANGELOG.md
cd tree || exit 1
echo __pycache__/ >.gitignore
git init -q . && git config user.name tester && git config user.email tester@localhost
git add -A && git commit -qm first
refused() { # MESSAGE VERSION
  ! python3 tools/release.py "$2" >../out.txt 2>&1 || fail "passes, not '$1'"
  grep -qF "$1" ../out.txt || fail "'$1' is not in $(cat ../out.txt)"
  [ "$(git log --format=%s -1)" != "release $2" ] || fail "a refused release is committed: $1"
  git checkout -q . && git clean -qfd
}
refused "does not come after $version" "$version"
refused 'does not come after' 0.0.9
refused 'three numbers' 99.0
refused 'there is no tests/abi/warpfst-99.1.abi.xz' 99.1.0
echo 1 >new.txt
refused 'not committed' 99.0.0
for file in packaging/cuda/pyproject.toml packaging/conda/recipe.yaml packaging/images/kubernetes.yaml pyproject.toml; do
  sed -i "s/$version/98.7.6/" $file
  refused "$file has the version" 99.0.0
done
git tag v99.0.0
refused 'a tag v99.0.0 already' 99.0.0
git tag -d v99.0.0 >/dev/null

python3 tools/release.py 99.0.0 >../out.txt || fail 'a release is refused'

[ "$(git log -1 --format=%s v99.0.0)" = 'release 99.0.0' ] && [ -z "$(git status --porcelain)" ] || fail "not committed: $(git status)"
git tag --list -n9 v99.0.0 | grep -q -- '- Something new.' || fail 'the tag has no changes'
grep -qE '^## 99.0.0 \(20[0-9-]*\)$' CHANGELOG.md && ! grep -q Unreleased CHANGELOG.md || fail 'the changelog'
grep -q "^libwarpfst99.0$\|Package: libwarpfst99.0$" packaging/debian/control && grep -q 'libwarpfst-cuda.so.99.0' docs/how-to/install.md || fail 'names of libraries'
grep -qx 'Maintainer: tester <tester@localhost>' packaging/debian/control && grep -q '^ -- tester <tester@localhost>  ' packaging/debian/changelog || fail 'the maintainer'
! grep -rnF "$version" CMakeLists.txt pyproject.toml packaging --include=*.toml --include=*.yaml --include=CMakeLists.txt || fail 'the old version is left'
refused 'nothing to release' 99.0.1

# --collect: every platform and the source package; the list of contents.
mkdir wheels
touch wheels/warpfst-1.0.0-py3-none-win_amd64.whl
! python3 tools/release.py --collect wheels >../out.txt 2>&1 || fail 'a folder without wheels passes'
for text in 'there is no warpfst-99.0.0-py3-none-win_amd64.whl' 'there is no warpfst_cuda-99.0.0-py3-none-manylinux2014_aarch64' \
  'there is no warpfst-99.0.0.tar.gz' 'warpfst-1.0.0-py3-none-win_amd64.whl is not of 99.0.0'; do
  grep -qF "$text" ../out.txt || fail "'$text' is not in $(cat ../out.txt)"
done
python3 - <<'END' || fail 'sbom'
import pathlib, sys, zipfile
sys.path.insert(0, "tools")
import release
wheels = [pathlib.Path(f"{name}-99.0.0-py3-none-x.whl") for name in ("warpfst", "warpfst_cuda")]
for wheel in wheels:
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("warpfst/libwarpfst.so", b"..\0 inflate 1.2.13 Copyright 1995 Mark Adler")
found = release.sbom("99.0.0", wheels, {wheel.name: 64 * "a" for wheel in wheels})
ids = {package["SPDXID"]: (package["name"], package["versionInfo"]) for package in found["packages"]}
pairs = {(ids.get(one["spdxElementId"], ("document",))[0], one["relationshipType"], ids[one["relatedSpdxElement"]]) for one in found["relationships"]}
assert pairs == {("document", "DESCRIBES", ("warpfst", "99.0.0")), ("document", "DESCRIBES", ("warpfst-cuda", "99.0.0")), ("warpfst", "CONTAINS", ("zlib", "1.2.13")),
                 ("warpfst-cuda", "CONTAINS", ("cuda-runtime", "12.9.79")), ("warpfst-cuda", "CONTAINS", ("cccl", "12.9.27"))}, pairs

# warpfst-cuda has one file, and requires warpfst of its version.
import check_wheel
def found(version, *names):
    wheel = pathlib.Path("warpfst_cuda-99.0.0-py3-none-x.whl")
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("warpfst_cuda-99.0.0.dist-info/METADATA", f"Name: warpfst-cuda\nRequires-Dist: warpfst=={version}\n")
        for name in names:
            archive.writestr(name, "")
    with zipfile.ZipFile(wheel) as archive:
        return list(check_wheel.cuda_problems(wheel, archive))
assert found("99.0.0", "warpfst/libwarpfst-cuda.so") == []
assert found("99.0.1", "warpfst/libwarpfst-cuda.so") == ["it does not require warpfst==99.0.0"]
assert found("99.0.0", "warpfst/libwarpfst-cuda.so", "warpfst/__init__.py") == ["it has warpfst/__init__.py, which warpfst may have"]
END

# What the Dockerfile copies is there.
cd "$SOURCE_DIR" || exit 1
stages=$(sed -n 's/^FROM .* AS //p' packaging/images/Dockerfile)
while read -r stage; do
  grep -qx "$stage" <<<"$stages" || fail "Dockerfile: no stage $stage"
done < <(sed -n 's/^COPY --from=\([a-z-]*\).*/\1/p; s/^FROM \([a-z-]*\) AS .*/\1/p' packaging/images/Dockerfile)
while read -r stage; do
  grep -qx "$stage" <<<"$stages" || fail "compose.yaml: no stage $stage"
done < <(sed -n 's/.*target: \([a-z]*\).*/\1/p' packaging/images/compose.yaml)

# Until a package is published, somebody else could take its name.
! grep -rnE "pip3? install( -[^ ]+)* '?\"?warpfst" README.md docs examples --include=*.md || fail 'a page installs a package that is not published'
