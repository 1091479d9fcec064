# The flags of the programs in bench/: each program runs briefly on a small input, and its flags have their documented effect.
# shellcheck shell=bash
bench=$BUILD_DIR/bench ctc=$SOURCE_DIR/examples/ctc
fail() { echo "FAILED: $*" >&2; exit 1; }
field() { # NAME: prints that field of a line of JSON
  python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"
}
expect() { # NAME VALUE PROGRAM ARGUMENTS...
  local found
  found=$("$bench/bench_$3" "${@:4}" | field "$1") || fail "${*:3}"
  [ "$found" = "$2" ] || fail "${*:3}: $1 is $found, not $2"
}
refused() { # PROGRAM ARGUMENTS...
  local code=0
  "$bench/bench_$1" "${@:2}" >out.txt 2>err.txt || code=$?
  [ $code = 2 ] && [ -s err.txt ] && [ ! -s out.txt ] || fail "$*: exit code $code, $(cat out.txt err.txt)"
}

"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --words-out=words.txt -o graph.wfst -q
mkdir scores
cp "$ctc"/logp_phone/00003*.npy scores
count=$(find scores -name '*.npy' | wc -l)
frames=$("$WARPFST" matrix info scores 2>/dev/null | awk '{sum += $2} END {print sum}')
[ "$count" -gt 2 ] && [ "$frames" -gt 100 ] || fail "$count utterances, $frames frames"

# --- help shows every flag with its default; wrong flags are errors ------------------------------------------------------------------------------
for program in latops lattice compose lm fstops stream; do
  "$bench/bench_$program" --help >help.txt || fail "bench_$program --help"
  head -1 help.txt | grep -q "^bench_$program [A-Z]*" || fail "$(cat help.txt)"
  [ "$(grep -c '^  --.* (default: ' help.txt)" -ge 1 ] || fail "bench_$program: no default in $(cat help.txt)"
  refused $program
  refused $program graph.wfst scores --unknown=1
  refused $program graph.wfst scores third fourth
  refused $program graph.wfst scores -x
done
grep -q -- '--beam=N .*nats (default: 15)' <("$bench/bench_lattice" --help) || fail "$("$bench/bench_lattice" --help)"
for bad in --beam --beam= --beam=x --beam=1x --max-active=1.5 --max-active=99999999999999999999 --beams=1 --bea=1; do refused lattice graph.wfst scores $bad; done
refused lattice graph.wfst scores --words=words.txt
refused lm lm.wlm text --table=1

# --- lattices -------------------------------------------------------------------------------------------------------------------------------------
some=(graph.wfst scores --acoustic-scale=0.7 --beam=10 --rounds=1)
expect frames "$frames" lattice "${some[@]}"
expect frames 50 lattice "${some[@]}" --frames=50
small=$("$bench/bench_lattice" "${some[@]}" --lattice-beam=2 | field arcs) large=$("$bench/bench_lattice" "${some[@]}" --lattice-beam=8 | field arcs)
[ "$small" -lt "$large" ] || fail "--lattice-beam: $small and $large arcs"
few=$("$bench/bench_lattice" "${some[@]}" --max-active=20 | field arcs)
[ "$few" != "$large" ] || fail "--max-active: $few arcs, too"
narrow=$("$bench/bench_lattice" "${some[@]}" --beam=4 | field arcs)
[ "$narrow" != "$large" ] || fail "--beam: $narrow arcs, too"
scaled=$("$bench/bench_lattice" "${some[@]}" --acoustic-scale=0.3 | field arcs)
[ "$scaled" != "$large" ] || fail "--acoustic-scale: $scaled arcs, too"
counted=$("$bench/bench_lattice" "${some[@]}" --words=words.txt --references="$ctc/text" --prune-interval=3 | field oracle_errors)
[ "$counted" -ge 0 ] || fail "--references: $counted"
expect raw_arcs "$large" latops "${some[@]}"
expect utterances "$count" latops "${some[@]}"
all=$("$bench/bench_latops" "${some[@]}" | field arcs) best=$("$bench/bench_latops" "${some[@]}" --determinize-beam=1 | field arcs)
[ "$best" -lt "$all" ] || fail "--determinize-beam: $best of $all arcs"
refused latops "${some[@]}" --determinize-nonsense=1
refused latops "${some[@]}" --rounds=0

# --- operations on transducers --------------------------------------------------------------------------------------------------------------------
expect states 64 compose random --states=8 --degree=70 --labels=1 --repeat=1
one=$("$bench/bench_compose" random --states=50 --labels=2 --repeat=1 | field arcs) other=$("$bench/bench_compose" random --states=50 --labels=2 --trial=1 --repeat=1 | field arcs)
[ "$one" != "$other" ] || fail "--trial: $one arcs, too"
expect arcs $((2 * one)) compose random --states=50 --labels=2 --pairs=2 --threads=2 --repeat=2
printf 'ab  A B\nba  B A\nabba  A B B A\n' >dictionary
lines=$("$bench/bench_compose" words --dictionary=dictionary --words=3 --repeat=1 | field arcs)
more=$("$bench/bench_compose" words --dictionary=dictionary --words=20 --repeat=1 | field arcs)
[ "$lines" -lt "$more" ] || fail "--words: $lines, $more"
[ "$("$bench/bench_compose" words --dictionary=dictionary --words=3 --ops --repeat=1 | wc -l)" = 7 ] || fail "--ops"
refused compose words --words=3
refused compose neither
refused compose random --repeat=0
"$bench/bench_compose" random --states=20 --save=pair
"$bench/bench_fstops" compose pair.1 pair.2 --connect=false --output=joined >once.txt
[ "$(wc -l <once.txt)" = 1 ] && [ "$("$WARPFST" info joined | sed -n 's/^states *//p')" = "$(cut -d' ' -f3 once.txt)" ] || fail "bench_fstops compose: $(cat once.txt)"
[ "$("$bench/bench_fstops" arcsort joined --sort-type=olabel --repeat=3 | wc -l)" = 3 ] || fail "bench_fstops --repeat"
"$bench/bench_fstops" compose --generate=20 --save=made >/dev/null
cmp pair.1 made.1 && cmp pair.2 made.2 || fail "bench_fstops --generate and bench_compose random make different inputs"
flags=(--words=50 --states=20 --degree=9 --slots=4 --repeat=1)
one=$("$bench/bench_compose_n" "${flags[@]}" | field arcs) two=$("$bench/bench_compose_n" "${flags[@]}" --pairwise --canonical | field arcs)
[ "$one" -gt 0 ] && [ "$one" = "$two" ] || fail "bench_compose_n: $one and $two arcs"
refused fstops compose pair.1
refused fstops compose pair.1 pair.2 --sort-type=olabel
refused fstops nothing pair.1

# --- language models ------------------------------------------------------------------------------------------------------------------------------
cut -d' ' -f2- "$ctc/text" >text
gzip -dc "$ctc/lm3.arpa.gz" >lm.arpa
"$WARPFST" lm convert lm.arpa -o lm.wlm -q
ngrams=$("$bench/bench_lm" lm.arpa text --seconds=0.01 | field ngrams)
expect ngrams "$ngrams" lm lm.wlm text --seconds=0.01
plain=$("$bench/bench_lm" lm.wlm text --seconds=0.01 | field bytes) table=$("$bench/bench_lm" lm.wlm text --seconds=0.01 --table | field bytes)
[ "$plain" -lt "$table" ] || fail "--table: $plain, $table bytes"

# --- streams --------------------------------------------------------------------------------------------------------------------------------------
expect streams 3 stream graph.wfst scores --acoustic-scale=0.7 --streams=3 --seconds=0.2 --warm=0.1 --chunk=0.08 --beam=8
expect streams 2 stream graph.wfst scores --acoustic-scale=0.7 --streams=2 --seconds=0.2 --warm=0.1 --boost=2 --poisson=1
"$bench/bench_stream" graph.wfst scores --acoustic-scale=0.7 --hours=0.005 --beam=8 --commit=2 --lattice-beam=4 >hours.txt
[ "$(wc -l <hours.txt)" -ge 2 ] || fail "--hours: $(cat hours.txt)"
