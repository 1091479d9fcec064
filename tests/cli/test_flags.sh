# Command-line flags. A flag without effect gives a warning. Contradicting flags and values out of range are errors. A misspelled flag or command gives
# a suggestion. Closed standard streams are handled.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
printf '0 1 1 1\n1 1 1 0\n1 2 2 2 0.5\n2\n' | "$WARPFST" compile - -o g.wfst
printf 'u0  [\n -1 -2\n -2 -1\n -2 -1 ]\n' > s.ark
printf 'a 0\nb 1\n' > words
decode() { "$WARPFST" decode g.wfst s.ark "$@"; }

# --- flags without effect: one warning, the run continues ------------------------------------------------------------------------
idle() { # FLAG OTHERS
  expect 0 "^warpfst decode: warning: ${1%%=*} has no effect without $2$" decode "$1"
  [ "$(cat out.txt)" = 'u0 1 2' ] && [ "$(grep -c warning err.txt)" = 1 ] || fail "$1: $(cat out.txt err.txt)"
}
idle --nbest=3 '--format=json or --json-lines'
idle --confidence '--format=ctm, --format=json, --ctm or --json-lines'
idle --channel=2 '--format=ctm or --ctm'
idle --lm-scale=2 '--lm'
idle --lm-table '--lm or --lm-subtract'
idle --placement=host '--lm or --lm-subtract'
idle --lm-subtract-scale=2 '--lm-subtract'
idle --raw-lattice '--lattice'
for flag in --add-to=x --merges=x --word-start=x --words-out=x; do idle $flag '--add-words or --utterance-words'; done
for flag in --rnnlm-ngram=x --rnnlm-unk=x --rnnlm-weight=0.5; do idle $flag '--rnnlm'; done
idle --gpu-memory=1000000000 '--device'
idle --separator=x '--join'
idle --recombine=state '--lm, --lm-subtract, --rnnlm, --boost or --utterance-boosts'
quiet() { # ARGUMENTS...: no warning
  decode "$@" > out.txt 2> err.txt || fail "decode $*: $(cat err.txt)"
  ! grep -q warning err.txt || fail "decode $*: $(cat err.txt)"
}
quiet --nbest=3 --format=json
quiet --nbest=3 --json-lines=x.json
quiet --confidence --format=ctm --channel=2
quiet --raw-lattice --lattice=x.ark
quiet --no-lm-table --no-confidence
expect 0 'warning: --merges has no effect with --lexicon' "$WARPFST" mkgraph ctc --tokens="$SOURCE_DIR/examples/ctc/tokens_phone.txt" \
  --lexicon="$SOURCE_DIR/examples/ctc/lexicon_phone.txt" --lm="$SOURCE_DIR/examples/ctc/lm3.arpa.gz" --merges=none -q -o x.wfst
expect 0 'warning: --scored has no effect without --streams' "$WARPFST" plan g.wfst --utterances=5 --scored
expect 0 'warning: --keep-isymbols has no effect without --isymbols' "$WARPFST" compile --keep_isymbols /dev/null x.fst
decode --lattice=lat.ark > /dev/null 2>&1
expect 0 'warning: --frame-shift has no effect without --format=slf' "$WARPFST" lattice convert lat.ark -o x.ark --frame-shift=0.04
expect 0 'warning: --channel has no effect without --format=ctm' "$WARPFST" lattice nbest lat.ark --channel=B

# --- contradictions and ranges ---------------------------------------------------------------------------------------------------
expect 2 '--lattice-beam=0 and --lattice exclude each other' decode --lattice-beam=0.0 --lattice=x.ark
expect 2 '--lattice-beam=0 and --ctm exclude each other' decode --lattice-beam 0 --ctm x
quiet --lattice-beam=0
expect 2 '--columns and --am exclude each other' decode --columns=a --am=b
expect 2 '--chunk is outside \[0, 1000000000\]' decode --chunk=-1
expect 2 '--batch is outside \[1, 1048576\]' decode --batch=0
expect 2 'blank is column 100, but the graph reads columns 0 to 1' decode --blank=100
expect 2 '--lang needs --am' "$WARPFST" lattice convert lat.ark -o x.ark --lang=x
expect 2 '--lexicon needs --tokens' "$WARPFST" lattice convert lat.ark -o x.ark --lexicon=x
expect 2 '--am and --tokens exclude each other' "$WARPFST" lattice draw lat.ark -o x.html --am=x --tokens=y
expect 2 '--n is outside \[1,' "$WARPFST" lattice nbest lat.ark --n=0
expect 2 '--beam is outside \[0,' "$WARPFST" lattice prune lat.ark -o x.ark --beam=-1
expect 2 '--processors is outside' "$WARPFST" plan g.wfst --streams=1 --processors=-1
expect 2 "invalid value 'maybe' for --json, expected true or false" decode --json=maybe
expect 2 '--no-json takes no value' decode --no-json=true
expect 2 'exclude each other' "$WARPFST" options --markdown --json

# --- values that are wrong are named as the flag is; sizes have suffixes ---------------------------------------------------------
expect 2 "^warpfst decode: --beam: 'x' is not a number$" decode --beam=x
expect 2 '^warpfst decode: --beam is -3, outside \[0, ' decode --beam=-3
expect 2 "^warpfst decode: --format: 'xx' is none of text|plain|" decode --format=xx
expect 2 '^warpfst decode: --frame-shift is 0, outside ' decode --frame_shift=0
expect 2 "^warpfst compose: --connect: 'maybe' is neither true nor false" "$WARPFST" compose g.wfst g.wfst --connect=maybe
for size in 2G 2g 1.5G 500M 64K 0.001T 2147483648; do quiet --gpu-memory=$size --device=cpu; done
for size in G 2X 2GB 1.5 '' nan; do expect 2 "^warpfst decode: --gpu-memory: '$size' is not a whole number of bytes" decode --gpu-memory="$size"; done
expect 2 '^warpfst decode: --gpu-memory is -2G, outside ' decode --gpu-memory=-2G
expect 2 "^warpfst decode: --max-active: '2K' is not a whole number" decode --max-active=2K

# --- recordings and models in place of scores and graphs -------------------------------------------------------------------------
cards=$SOURCE_DIR/examples/cards
mkdir -p audio
cp "$cards/card1.wav" audio/noname # found by its first bytes
: > empty.mp3
for given in "$cards/card1.wav" "$cards" audio/noname empty.mp3; do
  expect 2 "^warpfst decode: $given: audio, .*'warpfst transcribe $given --model FOLDER'" "$WARPFST" decode g.wfst "$given"
done
expect 2 "^warpfst decode: $cards/card1.wav: audio" "$WARPFST" decode g.wfst s.ark "$cards/card1.wav"
expect 2 'model.onnx: an acoustic model, .*warpfst transcribe' "$WARPFST" decode "$SOURCE_DIR/examples/ctc/model.onnx" s.ark
cp s.ark s.wav.ark
expect 0 '^1 utterance (' "$WARPFST" decode g.wfst s.wav.ark
expect 3 'none.wav: ' "$WARPFST" decode g.wfst none.wav # a file that is not there is not audio
decode -q > out.txt 2> err.txt && [ ! -s err.txt ] && [ "$(cat out.txt)" = 'u0 1 2' ] || fail "decode -q: $(cat out.txt err.txt)"
expect 2 '--quiet and --json exclude each other' decode -q --json

# --- did you mean ----------------------------------------------------------------------------------------------------------------
expect 2 'unknown flag --baem: did you mean --beam?' decode --baem=3
expect 2 'unknown flag --acustic_scale: did you mean --acoustic-scale?' decode --acustic_scale=3
expect 2 'unknown flag --lattice-prune: did you mean --lattice-prune-interval?' decode --lattice-prune=3
expect 2 '^warpfst decode: unknown flag --zzzzzzzz$' decode --zzzzzzzz
expect 2 "unknown command 'latice': did you mean 'lattice'?" "$WARPFST" latice
expect 2 "^warpfst: unknown command 'frobnicate' ('warpfst help' lists all)$" "$WARPFST" frobnicate
expect 2 "'transcribe' is only in the Python package" "$WARPFST" transcribe
expect 2 "unknown subcommand 'foo', expected one of info, copy" "$WARPFST" matrix foo
expect 2 "unknown subcommand 'ctx': did you mean 'ctc'? Subcommands: ctc, hmm" "$WARPFST" mkgraph ctx
expect 2 "unknown subcommand 'stat': did you mean 'stats'?" "$WARPFST" lattice stat
"$WARPFST" help | grep '^  transcribe .*recordings' > /dev/null || fail "help does not list transcribe"
COLUMNS=1000 "$WARPFST" help | grep '^Exit codes: 0 done, 1 .*, 2 .*, 3 .*, 4 out of memory.*, 5 GPU' > /dev/null || fail "help does not list the exit codes"

# --- flags of other tools --------------------------------------------------------------------------------------------------------
for pair in hotwords:boost gpu:device lm-weight:lm-scale beam-width:beam acwt:acoustic-scale nj:num-threads word-insertion-penalty:word-score kenlm:lm; do
  expect 2 "unknown flag --${pair%:*}: did you mean --${pair#*:}?" "$WARPFST" decode g.wfst x.npy "--${pair%:*}=3"
done
expect 2 "unknown flag --hotwords$\|unknown flag --hotwords: did you mean --words" "$WARPFST" lattice nbest x.ark --hotwords=x # which has no boosts

# --- a narrowed beam is explained ------------------------------------------------------------------------------------------------
expect 0 '^narrowed: --max-active (1) or --max-tokens (28000) cut the beam; higher may find better words$' decode --max-active=1 --min-active=0
decode 2>&1 | grep '^narrowed:' > /dev/null && fail "the beam was not narrowed, but the message appears"

# --- closed streams --------------------------------------------------------------------------------------------------------------
ctc=$SOURCE_DIR/examples/ctc
graph=(mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz")
"$WARPFST" "${graph[@]}" -q -o whole.wfst
code=0
"$WARPFST" "${graph[@]}" --json -q -o closed.wfst >&- 2> err.txt || code=$?
[ $code = 3 ] && cmp whole.wfst closed.wfst || fail "standard output closed: exit $code, $(cat err.txt)"
"$WARPFST" "${graph[@]}" -o closed.wfst 2>&-
cmp whole.wfst closed.wfst || fail "standard error closed"
code=0
"$WARPFST" info - <&- > out.txt 2> err.txt || code=$?
[ $code = 3 ] || fail "standard input closed: exit $code"
