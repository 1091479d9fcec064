# The hybrid demo, from speech to words. It uses a unigram model of the test sentences' words, because the demo's own model is large. It runs to its end, and
# reports a word error rate above the target.
# shellcheck shell=bash
speech=/usr/share/pocketsphinx/test/data/librivox
fail() { echo "FAILED: $*"; cat demo.txt; exit 1; }
[ -e $speech/transcription ] || fail "pocketsphinx-testdata is not installed"
sed -E 's/\(.*//; s/<\/?s>//g' $speech/transcription | tr 'A-Z ' 'a-z\n' | sort | awk 'NF {n[$1]++; total++}
  END {for (w in n) size++; printf "\\data\\\nngram 1=%d\n\n\\1-grams:\n-99 <s>\n-1 </s>\n", size + 2; for (w in n) printf "%.4f %s\n", log(n[w] / total) / log(10), w; print "\n\\end\\"}' >words.arpa
demo() { bash "$SOURCE_DIR/examples/demo_hybrid.sh" --warpfst "$WARPFST" --work work --lm words.arpa "$@" >demo.txt 2>&1; }
demo --wer 30 || fail "it should succeed"
grep -q '^WER [0-9.]*% of 71 words' demo.txt || fail "no word error rate"
grep -q 'HYP:.*young man' demo.txt || fail "no words"
[ "$(wc -l <work/hyp)" = 5 ] || fail "not 5 utterances"
! demo --wer 1 || fail "a target of 1% should not be met"
grep -q 'UNEXPECTED RESULT' demo.txt || fail "the missed target is not reported"
