#!/usr/bin/env bash
# demo.sh - builds graphs from a lexicon, a token list and a language model, and decodes scores of real speech.
#   examples/demo.sh                decodes the data of the repository: 200 utterances of CTC scores, 8 spoken commands with a hybrid HMM graph; then makes lattices
#   examples/demo.sh --data FOLDER  prints word error rates of all units and topologies, for FOLDER/logp_{phone,char,bpe}/KEY.npy
#   --warpfst FILE   program to use (default: build/release/warpfst, which `./run demo` builds)
#   --work FOLDER    folder for graphs and results, which are kept (default: build/demo)
# Fails if a figure is not as expected.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ctc=examples/ctc hybrid=examples/hybrid
warpfst=$root/build/release/warpfst work=$root/build/demo data=
while [ $# -gt 0 ]; do
  case $1 in
    --data) data=$(realpath "${2:?--data needs a folder}") ;;
    --warpfst) warpfst=$(realpath "${2:?--warpfst needs a file}") ;;
    --work) work=$(realpath "${2:?--work needs a folder}") ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; [ "$1" = --help ] && exit 0 || exit 2 ;;
  esac
  shift 2
done
[ -x "$warpfst" ] || { echo "$warpfst not found; './run demo' builds it" >&2; exit 1; }
cd "$root"
mkdir -p "$work"
work=${work#"$root"/}

if [ -t 1 ]; then strong=$'\033[1m' faint=$'\033[2m' plain=$'\033[0m'; else strong='' faint='' plain=''; fi
heading() { printf '\n%s%s%s\n\n' "$strong" "$1" "$plain"; }
problems=()
# check 0|1 MESSAGE: with 0, records the message as a problem; the demo then ends with an error.
check() { [ "$1" = 1 ] || problems+=("$2"); }
# value NAME FILE: prints a number from a summary that warpfst wrote.
value() { sed -n 's/.*"'"$1"'": \([0-9.]*\).*/\1/p' "$2"; }
holds() { awk "BEGIN {print ($1) ? 1 : 0}"; }

# Prints a command line as a user would type it in the root of the repository, and runs it.
show() {
  local line=" $ ${1##*/}" word
  for word in "${@:2}"; do
    if [ $((${#line} + ${#word})) -gt 96 ]; then printf '%s%s \%s\n' "$faint" "$line" "$plain"; line='    '; fi
    line+=" $word"
  done
  printf '%s%s%s\n' "$faint" "$line" "$plain"
  "$@"
}

# --- the whole test set ---------------------------------------------------------------------------------------------------

# Acoustic scale by unit: the one of 0.5, 0.6, 0.7, 0.8, 1.0 (and 1.2, 1.5, 2.0 for pieces) with the fewest errors on this set, with the compact topology.
scale_of() { case $1 in phone) echo 0.7 ;; char) echo 0.8 ;; bpe) echo 1.5 ;; esac; }

whole_set() {
  local unit topology scale graph units=0
  heading "Word error rates: TLG graphs from lm3.arpa.gz, beam 15, max-active 7000"
  printf '%-7s %-9s %6s %9s %9s %8s %7s %8s %9s\n' unit topology scale states arcs 'built s' WER words RTFx
  for unit in phone char bpe; do
    [ -d "$data/logp_$unit" ] || { echo "$unit: no folder $data/logp_$unit"; continue; }
    units=$((units + 1))
    scale=$(scale_of "$unit")
    for topology in compact correct minimal eesen; do
      graph=$work/$unit.$topology
      "$warpfst" mkgraph ctc --tokens="$ctc/tokens_$unit.txt" --lexicon="$ctc/lexicon_$unit.txt" --lm="$ctc/lm3.arpa.gz" \
        --topology=$topology -q --json -o "$graph.wfst" > "$graph.json"
      "$warpfst" decode "$graph.wfst" "$data/logp_$unit" --acoustic-scale="$scale" --beam=15 --max-active=7000 --frame-shift=0.04 \
        --ref="$ctc/text" --summary="$work/summary" --output="$work/hyp" 2> "$work/log" || { cat "$work/log"; exit 1; }
      printf '%-7s %-9s %6s %9s %9s %8.2f %6.2f%% %8s %9.0f\n' $unit $topology "$scale" \
        "$("$warpfst" info "$graph.wfst" | awk '$1 == "states" {print $2}')" "$("$warpfst" info "$graph.wfst" | awk '$1 == "arcs" {print $2}')" \
        "$(sed 's/"lexicon".*//; s/.*"seconds": \([0-9.]*\).*/\1/' "$graph.json")" \
        "$(value wer "$work/summary")" "$(value words "$work/summary")" "$(value rtfx "$work/summary")"
      [ $unit$topology != phonecompact ] || check "$(holds "$(value wer "$work/summary") <= 39.2")" "phones, compact: the word error rate is above 39.2%"
    done
  done
  check "$(holds "$units > 0")" "no scores in $data"
}

# --- 1 and 2: CTC -----------------------------------------------------------------------------------------------------------

build_graph() {
  heading "1. A decoding graph from phones, a lexicon and a 3-gram language model"
  show "$warpfst" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" \
    --words-out="$work/words.txt" --output="$work/TLG.wfst" 2>&1
}

# Prints every 35th utterance, aligned; S, D and I mark substitutions, deletions and insertions.
side_by_side() {
  "$warpfst" score "$work/ref.txt" "$work/hyp.ctm" --align | awk -v faint="$faint" -v plain="$plain" '
    /^id: / {shown = n++ % 35 == 17; if (shown) printf "\n  %sutterance %s%s\n", faint, substr($2, 2, length($2) - 2), plain}
    /^(REF|HYP|Eval):/ && shown && (NF > 1 || !/^Eval/) {sub(/^Eval:/, "     "); sub(/ +$/, ""); print "  " $0}'
}

words_and_times() { # UTTERANCE
  printf '\nWords and times of utterance %s (CTM), seconds:\n\n' "$1"
  awk -v key="$1" '$1 == key {
    bar = sprintf("%*s", $4 / 0.06 + 0.5, ""); gsub(/ /, "#", bar)
    printf "  %5.2f - %5.2f  %-10s %*s%s\n", $3, $3 + $4, $5, $3 / 0.06, "", bar}' "$work/hyp.ctm"
}

decode_ctc() {
  heading "2. 200 utterances of read English (speechocean762), CTC scores of a small Conformer, to words"
  show "$warpfst" decode "$work/TLG.wfst" "$ctc/logp_phone" --acoustic-scale=0.7 --beam=15 --max-active=7000 \
    --frame-shift=0.04 --ref="$ctc/text" --format=ctm --summary="$work/ctc.json" --output="$work/hyp.ctm" 2>&1
  "$warpfst" matrix info "$ctc/logp_phone" 2> /dev/null | awk 'NR == FNR {keys[$1]; next} $1 in keys' - "$ctc/text" > "$work/ref.txt"
  printf '\nReference over recognised, every 35th utterance:\n'
  side_by_side
  words_and_times 001200306
  printf '\n'
  show "$warpfst" score "$work/ref.txt" "$work/hyp.ctm"
  check "$(holds "$(value utterances "$work/ctc.json") == 200")" "not all of the 200 utterances were decoded"
  check "$(holds "$(value wer "$work/ctc.json") <= 38.0")" "the word error rate is above 38.0%"
}

# --- 3: hybrid ----------------------------------------------------------------------------------------------------------------

decode_commands() {
  heading "3. Spoken commands (Picovoice), hybrid HMM scores, on a grammar's HCLG graph"
  show "$warpfst" compile "$hybrid/coffee/HCLG.txt.gz" --output="$work/HCLG.wfst" 2>&1
  show "$warpfst" decode "$work/HCLG.wfst" "$hybrid/coffee" --words="$hybrid/coffee/words.txt" --scale=-0.10239488 \
    --acoustic-scale=0.1538 --beam=40 --format=json --summary="$work/coffee.json" --output="$work/coffee.hyp" 2>&1
  printf '\nExpected over recognised, with the cost of the path:\n'
  # Both as lines of `utterance cost word word ...`.
  sed 's/\(.*\) (\(.*\))/\2 \1/' "$hybrid/coffee/expected" > "$work/coffee.want"
  sed 's/.*"key": "\([^"]*\)", "text": "\([^"]*\)".*"cost": \([0-9.]*\),.*/\1 \3 \2/' "$work/coffee.hyp" > "$work/coffee.have"
  awk -v same="$work/same" '
    {key = $1; number = $2; sub(/^[^ ]* [^ ]* /, "")}
    NR == FNR {cost[key] = number; want[key] = $0; next}
    {good = $0 == want[key] && number - cost[key] < 0.01 && cost[key] - number < 0.01; count += good
     printf "\n  %7.2f  %s\n  %7.2f  %s%s\n", cost[key], want[key], number, $0, good ? "" : "   <-- differs"}
    END {print count + 0 > same}' "$work/coffee.want" "$work/coffee.have"
  check "$(holds "$(cat "$work/same") == 8")" "only $(cat "$work/same") of 8 commands are as expected"
}

# --- 4: lattices --------------------------------------------------------------------------------------------------------------

lattices() {
  heading "4. Lattices of the 200 utterances: alternatives and word confidences"
  show "$warpfst" decode "$work/TLG.wfst" "$ctc/logp_phone" --acoustic-scale=0.7 --frame-shift=0.04 --nbest=3 \
    --lattice="$work/lat.ark" --json-lines="$work/results.jsonl" --output="$work/hyp.txt" 2>&1
  show "$warpfst" lattice stats "$work/lat.ark"
  show "$warpfst" lattice oracle "$work/lat.ark" --ref="$work/ref.txt" --words="$work/words.txt" 2>&1
  show "$warpfst" lattice mbr "$work/lat.ark" --acoustic-scale=0.7 --ref="$work/ref.txt" --words="$work/words.txt" \
    --output="$work/mbr.txt" 2> "$work/mbr.log"
  cat "$work/mbr.log"
  show "$warpfst" lattice draw "$work/lat.ark" --key=000030024 --words="$work/words.txt" --frame-shift=0.04 \
    --output="$work/000030024.html"
  printf '\nThe three best results of utterance 000030024 with costs; words of the first with confidences:\n\n'
  sed -n 's/^{"key": "000030024".*"nbest": \[\(.*\)\]}$/\1/p' "$work/results.jsonl" | sed 's/{"text": /\n&/g' |
    sed -n 's/.*"text": "\([^"]*\)", .*"cost": \([0-9.]*\).*/  \2  \1/p'
  sed -n '/^{"key": "000030024"/s/}/\n/gp' "$work/results.jsonl" | sed -n 's/.*"word": "\([^"]*\)".*"confidence": \([0-9.]*\)$/    \2  \1/p'
  printf '\nThe lattice as a picture, for a browser: %s\n' "$work/000030024.html"
  check "$(holds "$(grep -c '^' "$work/results.jsonl") == 200")" "not all of the 200 utterances have a lattice"
  check "$(holds "$(sed -n 's/.*WER \([0-9.]*\)%.*/\1/p' "$work/mbr.log") <= 37.5")" "minimum Bayes risk has more word errors than the best path"
}

closing() {
  size() { "$warpfst" info "$1" | awk '$1 == "states" {s = $2} $1 == "arcs" {a = $2} END {print s " states, " a " arcs"}'; }
  heading "Summary"
  printf '  CTC graph     %s, from lexicon, tokens and ARPA file in %.2f s\n' "$(size "$work/TLG.wfst")" "$graph_s"
  printf '  read English  200 utterances, %.1f min, in %.2f s (RTFx %.0f): WER %.2f%%\n' "$(minutes "$work/ctc.json")" \
    "$(value decode_seconds "$work/ctc.json")" "$(value rtfx "$work/ctc.json")" "$(value wer "$work/ctc.json")"
  printf '  HCLG graph    %s\n' "$(size "$work/HCLG.wfst")"
  printf '  commands      8 utterances, %.1f min, in %.2f s (RTFx %.0f): %d of 8 as expected, words and costs\n' "$(minutes "$work/coffee.json")" \
    "$(value decode_seconds "$work/coffee.json")" "$(value rtfx "$work/coffee.json")" "$(cat "$work/same")"
  printf '  on            %d processors; %d s in all\n' "$(nproc)" "$SECONDS"
}
minutes() { awk -v hours="$(value hours "$1")" 'BEGIN {print hours * 60}'; }

if [ -n "$data" ]; then
  whole_set
else
  begin=$(date +%s.%N)
  build_graph
  graph_s=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN {print b - a}')
  decode_ctc
  decode_commands
  lattices
  closing
fi
for problem in "${problems[@]}"; do echo "UNEXPECTED RESULT: $problem" >&2; done
[ ${#problems[@]} = 0 ]
