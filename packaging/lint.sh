#!/usr/bin/env bash
# lint.sh FOLDER [SBOM] - checks the files of images, of workflows and of conda-forge's recipe, and a list of contents that tools/release.py
# --collect made, with the programs of packaging/requirements.txt in FOLDER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$1
"$tools/hadolint" -c packaging/images/hadolint.yaml packaging/images/Dockerfile
"$tools/check-jsonschema" --builtin-schema vendor.compose-spec packaging/images/compose.yaml
"$tools/kubernetes-validate" packaging/images/kubernetes.yaml
"$tools/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
"$tools/python" - <<'END'
import pathlib
import rattler_build as rattler
recipe = rattler.Stage0Recipe.from_yaml(pathlib.Path("packaging/conda/recipe.yaml").read_text())
variants = "{c_compiler: [clang], c_compiler_version: [18], c_stdlib: [sysroot], c_stdlib_version: ['2.17'], python: ['3.11']}"
for platform in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64"):
    rendered = recipe.render(rattler.VariantConfig.from_yaml(variants), rattler.RenderConfig(platform=rattler.PlatformConfig(target_platform=platform)))
    assert [one.recipe.package.name for one in rendered] == ["libwarpfst", "warpfst"], platform
print("recipe.yaml: renders for four platforms")
END
[ -z "${2:-}" ] || "$tools/pyspdxtools" -i "$2"
