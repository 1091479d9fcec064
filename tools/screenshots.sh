#!/usr/bin/env bash
# screenshots.sh SITE FOLDER - writes PNG files of the main pages of the built site at widths of 390 and 1280 px, for visual checks. Needs chromium.
# Chromium's windows are at least 500 px wide, so the narrow pages are shown in an iframe of 390 px.
set -euo pipefail
site=$(realpath "${1:-build/docs/site}")
folder=${2:-build/docs/screenshots}
mkdir -p "$folder"
shot() { # NAME WIDTH HEIGHT ADDRESS
  timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --virtual-time-budget=4000 \
    --window-size="$2,$3" --screenshot="$folder/$1.png" "$4" >/dev/null 2>&1
}
for page in ${PAGES:-index tutorials/ctc how-to/performance reference/python concepts/lattice engineering/performance}; do
  name=${page//\//-}
  printf '<body style="margin:0"><iframe src="file://%s/%s.html" style="border:0;width:390px;height:2400px">' "$site" "$page" >"$folder/$name.html"
  shot "$name-390" 500 2400 "file://$(realpath "$folder")/$name.html"
  shot "$name-1280" 1280 1600 "file://$site/$page.html"
  rm "$folder/$name.html"
done
