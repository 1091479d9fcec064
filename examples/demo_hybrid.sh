#!/usr/bin/env bash
# demo_hybrid.sh - real speech to words with a hybrid HMM model, from public files. Model, dictionary and language model are Debian's pocketsphinx-en-us,
# the speech is pocketsphinx-testdata, pocketsphinx_batch computes senone scores; warpfst builds the graph and searches.
#   --lm FILE        language model (default: the model's en-us.lm.bin, pruned by `warpfst lm prune`)
#   --wav FOLDER     decode FOLDER/*.wav instead (16 kHz, mono, 16 bits), with references in FOLDER/ref, one line `words (key)` each
#   --wer PERCENT    fail if the word error rate is higher (default: 26.8 for Debian's LM and speech, the rate of OpenFst's tools and a plain Viterbi search)
#   --only scores    stop after computing scores: WORK/sen.scp, WORK/ref
#   --warpfst FILE   program to use (default: build/release/warpfst, which `./run demo-hybrid` builds)
#   --work FOLDER    folder for scores, graph and results, which are kept (default: build/demo-hybrid)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
warpfst=$root/build/release/warpfst work=$root/build/demo-hybrid lm='' wav='' target='' only=''
while [ $# -gt 0 ]; do
  case $1 in
    --lm) lm=$(realpath "${2:?--lm needs a file}") ;;
    --wav) wav=$(realpath "${2:?--wav needs a folder}") ;;
    --wer) target=${2:?--wer needs a number} ;;
    --only) only=${2:?--only needs a word} ;;
    --warpfst) warpfst=$(realpath "${2:?--warpfst needs a file}") ;;
    --work) work=$(realpath -m "${2:?--work needs a folder}") ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; [ "$1" = --help ] && exit 0 || exit 2 ;;
  esac
  shift 2
done
model=/usr/share/pocketsphinx/model/en-us
for file in "$warpfst" "$model/en-us/mdef" "$(command -v pocketsphinx_batch || echo pocketsphinx_batch)"; do
  [ -e "$file" ] || { echo "$file not found; './run demo-hybrid' installs and builds it" >&2; exit 1; }
done
mkdir -p "$work"
cd "$work"

if [ -t 1 ]; then strong=$'\033[1m' faint=$'\033[2m' plain=$'\033[0m'; else strong='' faint='' plain=''; fi
heading() { printf '\n%s%s%s\n\n' "$strong" "$1" "$plain"; }
# Prints a command line as a user would type it, and runs it.
show() { printf '%s $ %s%s\n' "$faint" "${*/#$warpfst/warpfst}" "$plain"; "$@"; }
value() { sed -n 's/.*"'"$1"'": \([0-9.]*\).*/\1/p' "$2"; }

# --- speech -------------------------------------------------------------------------------------------------------------------

# Writes `keys`, the names of the files without .wav, and `ref`, lines `key word word ...` in lower case, as in the dictionary.
take_speech() {
  if [ -z "$wav" ]; then
    wav=/usr/share/pocketsphinx/test/data/librivox
    sed 's/\.wav$//' "$wav/fileids" >keys
    reference=$wav/transcription
    [ -n "$lm" ] || target=${target:-26.8}
  else
    (cd "$wav" && ls -- *.wav) | sed 's/\.wav$//' >keys
    reference=$wav/ref
  fi
  # Lines are `words (key)`, possibly with text after the key and with <s> </s> around the words.
  sed -E 's/^(.*)\(([^ ()]+)[^()]*\) *$/\2 \1/; s/<\/?s>//g' "$reference" | awk '{line = $1; for (i = 2; i <= NF; i++) line = line " " tolower($i); print line}' >ref
}

# --- senone scores ------------------------------------------------------------------------------------------------------------

# Writes one file of scores per utterance, with every senone and every frame. A key-phrase search is PocketSphinx's cheapest search that scores every frame exactly once.
score_speech() {
  rm -rf sen && mkdir sen
  pocketsphinx_batch -hmm "$model/en-us" -dict "$model/cmudict-en-us.dict" -keyphrase zebra -adcin yes -cepext .wav -adchdr 44 -ctl keys -cepdir "$wav" \
    -compallsen yes -remove_silence no -remove_noise no -senlogdir sen -hyp /dev/null >batch.log 2>&1 || { tail -5 batch.log >&2; exit 1; }
  local number=0 key
  while read -r key; do # pocketsphinx_batch numbers its files
    printf '%s %s/sen/%09d.sen\n' "$key" "$work" "$number"
    number=$((number + 1))
  done <keys >sen.scp
}

# --- graph and words ----------------------------------------------------------------------------------------------------------

# Makes a language model that is small enough for a small machine; all its n-grams are in the large one.
prune_lm() { show "$warpfst" lm prune "$model/en-us.lm.bin" --threshold=1e-7 -o lm.arpa; }

build_graph() {
  [ -n "$lm" ] || { prune_lm && lm=$work/lm.arpa; }
  show "$warpfst" mkgraph hmm --am="$model/en-us" --lexicon="$model/cmudict-en-us.dict" --lm="$lm" --output=HCLG.wfst 2>&1
}

decode_speech() {
  show "$warpfst" decode HCLG.wfst sen.scp --acoustic-scale=0.1538 --beam=16 --max-active=100000 --max-tokens=400000 --ref=ref --summary=summary.json --format=text --output=hyp 2>&1
  printf '\nReference over recognised; S, D and I mark substitutions, deletions and insertions:\n'
  "$warpfst" score ref hyp --align | awk '/^id: / {printf "\n"} /^(REF|HYP|Eval):/ && (NF > 1 || !/^Eval/) {sub(/^Eval:/, "     "); sub(/ +$/, ""); print "  " $0}'
}

heading '1. Speech to senone scores (pocketsphinx_batch)'
take_speech
begin=$SECONDS
score_speech
printf '%d utterances in %d s\n' "$(wc -l <keys)" $((SECONDS - begin))
[ "$only" != scores ] || exit 0
heading '2. Acoustic model, dictionary and language model to a decoding graph'
build_graph
heading '3. Scores to words'
decode_speech
wer=$(value wer summary.json)
printf '\nWER %.2f%% of %s words, RTFx %s; %d s in all\n' "$wer" "$(value words summary.json)" "$(value rtfx summary.json)" "$SECONDS"
[ -z "$target" ] || awk "BEGIN {exit !($wer <= $target)}" || { echo "UNEXPECTED RESULT: the word error rate is above $target%" >&2; exit 1; }
