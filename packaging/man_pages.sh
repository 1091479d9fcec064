#!/bin/sh
# man_pages.sh PROGRAM FOLDER - makes the manual pages of the program and of each of its commands from their help.
# Needs only sh, sed and awk, so every build can run it.
set -eu
program=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$folder" && mkdir -p "$folder"
version=$("$program" version | sed 's/^warpfst //')
COLUMNS=100 && export COLUMNS

# page "COMMAND PART" SUMMARY ALSO: makes a page from the help on standard input. ALSO: pages for SEE ALSO.
page() {
  name=$(echo "warpfst $1" | sed 's/ *$//; s/ /-/g')
  awk -v name="$name" -v summary="$2" -v version="$version" -v also="$3" -f "$here/man_page.awk" >"$folder/$name.1.new"
  mv "$folder/$name.1.new" "$folder/$name.1"
}

"$program" help >"$folder/overview"
# Commands that exist only in the Python package get no page.
sed -n '/^Only in the Python package/,/^$/d; s/^  \([a-z][a-z]*\)   *\(.*\)$/\1 \2/p' "$folder/overview" >"$folder/commands"
[ -s "$folder/commands" ] || { echo "man_pages.sh: no commands in '$program help'" >&2; exit 1; }
while read -r command summary; do
  "$program" "$command" --help >"$folder/help" </dev/null
  page "$command" "$summary" '.BR warpfst (1)' <"$folder/help"
  # Subcommands are listed as "  lattice prune     keep the paths near the best", or named as `warpfst mkgraph ctc --help` in the text.
  sed -n "s/^  $command \([a-z][a-z]*\)   *\(.*\)$/\1 \2/p" "$folder/help" >"$folder/parts"
  grep -o "warpfst $command [a-z][a-z]* --help" "$folder/help" | sed "s/^warpfst $command \([a-z]*\) --help/\1 $summary (\1)/" >>"$folder/parts" || true
  while read -r part summary; do
    "$program" "$command" "$part" --help </dev/null >"$folder/help"
    page "$command $part" "$summary" ".BR warpfst (1), .BR warpfst\\-$command (1)" <"$folder/help"
  done <"$folder/parts"
done <"$folder/commands"
# This page is written last, because the build takes its existence to mean that all pages are made.
page '' 'weighted finite-state transducers and speech decoding' "$(sed 's/^\([a-z]*\) .*/.BR warpfst\\\\-\1 (1)/' "$folder/commands")" <"$folder/overview"
rm "$folder/overview" "$folder/commands" "$folder/help" "$folder/parts"
