# warpfst align: words and tokens of transcripts in CTC scores, with a lexicon and spelled; utterances that fail.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
ctc=$SOURCE_DIR/examples/ctc
align() { "$WARPFST" align "$@"; }
phones=("$ctc/logp_phone" --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --frame-shift=0.04)

# --- real utterances: the words of the transcript, in order, and times as from a graph of the transcript -----------------
align "${phones[@]}" --text="$ctc/text" --unknown=skip > all.ctm 2> err.txt || true
cut -d' ' -f1 all.ctm | sort -u > aligned
[ "$(wc -l < aligned)" -ge 50 ] || fail "$(cat err.txt)"
awk '{ text[$1] = text[$1] " " $5 } END { for (key in text) print key text[key] }' all.ctm | sort > said.txt
grep -F -f aligned "$ctc/text" | sed 's/[[:space:]]\+/ /g; s/ $//' | sort | cmp - said.txt || fail "other words than in the transcripts"
awk '$3 < end[$1] || $4 <= 0 || $6 < 0 || $6 > 1 { exit 1 } { end[$1] = $3 + $4 - 0.0005 }' all.ctm || fail "times or confidences"
grep -q '^000030012 1 1.760 0.120 SEE ' all.ctm || fail "SEE is in frames 44 to 46"
expect 0 '^warpfst align: 1 utterance aligned, 0 failed$' align "$ctc/logp_phone/000030012.npy" "${phones[@]:1}" --text="$ctc/text" --units --format=text
[ "$(cat out.txt)" = '000030012 M AA K AH Z G OW IH NG T AH S IY EH L IH F AH N T' ] || fail "$(cat out.txt)"

# --- any number of threads writes the same bytes, failed utterances included ---------------------------------------------
for threads in 1 2 5; do
  align "${phones[@]}" --text="$ctc/text" --unknown=skip --num-threads=$threads --format=json --textgrid=grids$threads > $threads.json 2> $threads.txt || [ $? = 1 ]
done
for threads in 2 5; do
  cmp 1.json $threads.json && cmp 1.txt $threads.txt && diff -r grids1 grids$threads || fail "$threads threads"
done
expect 2 'num-threads' align "${phones[@]}" --text="$ctc/text" --num-threads=-1

# --- spelled, with a token between words ---------------------------------------------------------------------------------
printf '<blk> 0\na 1\nb 2\n| 3\n' > tokens
printf 'u  [\n -9 0 -9 -9\n -9 -9 -9 0\n -9 -9 0 -9\n 0 -9 -9 -9\n -9 -9 0 -9 ]\n' > s.ark
printf 'u a bb\n' > text
expect 0 '' align s.ark --tokens=tokens --text=text --separator='|' --frame-shift=1
printf 'u 1 0.000 1.000 a 1.0000\nu 1 2.000 3.000 bb 1.0000\n' | cmp - out.txt
expect 0 '' align s.ark --tokens=tokens --text=text --separator='|' --frame-shift=1 --units
[ "$(awk '{ printf "%s%s ", $5, $3 }' out.txt)" = 'a0.000 |1.000 b2.000 b4.000 ' ] || fail "$(cat out.txt)"

# --- gaps: a word that was not said, and a frame of garbage in its place --------------------------------------------------
printf 'u a ab bb\n' > gaps
expect 0 '^warpfst align: 1 word left out$' align s.ark --tokens=tokens --text=gaps --garbage=1 --skip-words=2 --frame-shift=1
printf 'u 1 0.000 1.000 a 1.0000\nu 1 2.000 3.000 bb 1.0000\n' | cmp - out.txt
expect 1 '5 frames, but 5 tokens' align s.ark --tokens=tokens --text=gaps --garbage=1
expect 2 'garbage' align s.ark --tokens=tokens --text=gaps --garbage=-1
for threads in 1 3; do
  align "${phones[@]}" --text="$ctc/text" --unknown=skip --garbage=3 --skip-words=20 --num-threads=$threads > gaps$threads.ctm 2> gaps$threads.txt || [ $? = 1 ]
done
cmp gaps1.ctm gaps3.ctm && cmp gaps1.txt gaps3.txt || fail 'gaps: 3 threads'
awk '$3 < end[$1] || $4 <= 0 { exit 1 } { end[$1] = $3 + $4 - 0.0005 }' gaps1.ctm || fail "times with gaps"

# --- TextGrid ------------------------------------------------------------------------------------------------------------
expect 0 '' align s.ark --tokens=tokens --text=text --separator='|' --frame-shift=0.5 --textgrid=grids -o ctm
printf '%s\n' 'File type = "ooTextFile"' 'Object class = "TextGrid"' '' 'xmin = 0.0000' 'xmax = 2.5000' | cmp - <(head -5 grids/u.TextGrid)
[ "$(grep -E 'name|size|text|xm' grids/u.TextGrid | tail -n +4 | tr -d '\n' | tr -s ' ')" = ' name = "words" xmin = 0.0000 xmax = 2.5000 intervals: size = 3 xmin = 0.0000 xmax = 0.5000 text = "a" xmin = 0.5000 xmax = 1.0000 text = "" xmin = 1.0000 xmax = 2.5000 text = "bb" name = "tokens" xmin = 0.0000 xmax = 2.5000 intervals: size = 5 xmin = 0.0000 xmax = 0.5000 text = "a" xmin = 0.5000 xmax = 1.0000 text = "|" xmin = 1.0000 xmax = 1.5000 text = "b" xmin = 1.5000 xmax = 2.0000 text = "" xmin = 2.0000 xmax = 2.5000 text = "b"' ] || fail "$(cat grids/u.TextGrid)"
expect 3 'ctm/u.TextGrid: cannot write: Not a directory' align s.ark --tokens=tokens --text=text --textgrid=ctm
cp grids/u.TextGrid before
message=$(ulimit -f 0; trap '' XFSZ; align s.ark --tokens=tokens --text=text --textgrid=grids 2>&1) && fail "no error: $message"
[[ $message == *'grids/u.TextGrid: '* ]] || fail "$message"
cmp grids/u.TextGrid before && [ "$(ls -A grids)" = u.TextGrid ] || fail "a failed write left something in grids: $(ls -A grids)"
printf 'u/v a\n' > slash && sed 's/^u/u\/v/' s.ark > slash.ark
expect 1 "utterance 'u/v': no TextGrid file can have the name grids/u/v.TextGrid" align slash.ark --tokens=tokens --text=slash --textgrid=grids

# --- memory does not grow with frames times tokens: a table of all back-pointers would be 320 MB --------------------------
if ! [[ $(ldd "$WARPFST") =~ asan|tsan ]]; then # sanitizers reserve much address space, so ulimit -v cannot be used
  awk 'BEGIN { srand(1); printf "u  ["; for (t = 0; t < 40000; t++) { print ""; for (c = 0; c < 4; c++) printf " %.3f", c == (t % 5 == 2 ? 1 + int(t / 5) % 2 : 0) ? -0.1 : -5 - rand() } print " ]" }' > large.ark
  awk 'BEGIN { printf "u"; for (i = 0; i < 4000; i++) printf " ab"; print "" }' > large
  (ulimit -v 120000; align large.ark --tokens=tokens --text=large --num-threads=1 > out.txt 2> err.txt) || fail "$(cat err.txt)"
  [ "$(wc -l < out.txt)" = 4000 ] || fail "$(wc -l < out.txt) words"
fi

# --- errors --------------------------------------------------------------------------------------------------------------
printf 'u a bbbb\n' > long
expect 1 "utterance 'u': 5 frames, but 5 tokens with blanks between equal ones need at least 8" align s.ark --tokens=tokens --text=long
printf 'v a\n' > other
expect 1 "utterance 'u': no transcript in other" align s.ark --tokens=tokens --text=other
printf 'u ax\n' > unknown # no word at all can be spelled
expect 1 "utterance 'u': no pronunciation of the word 'ax'" align s.ark --tokens=tokens --text=unknown
grep -q '^u 1 .* ax ' out.txt || fail "$(cat out.txt)"

# --- a word that cannot be spelled has the time of the speech in its place; others keep theirs ---------------------------
printf 'one  [\n -9 0 -9 -9\n -9 -9 -9 0\n 0 -9 -9 -9\n -9 -9 0 -9 ]\ntwo  [\n -9 0 -9 -9\n -9 -9 0 -9 ]\n' > star.ark
printf '<blk> 0\na 1\nb 2\nc 3\n' > star.tokens
printf 'one a 2014 b\ntwo a b\n' > star.text
printf 'one 1 0.00 0.01 a\none 1 0.01 0.01 2014\none 1 0.03 0.01 b\ntwo 1 0.00 0.01 a\ntwo 1 0.01 0.01 b\n' > star.ctm
expect 1 "utterance 'one': no pronunciation of the word '2014'" align star.ark --tokens=star.tokens --text=star.text
awk '{ printf "%s %s %.2f %.2f %s\n", $1, $2, $3, $4, $5 }' out.txt | cmp - star.ctm || fail "$(cat out.txt)"
grep -q 'times: 10 ms a frame' err.txt && ! grep -q "'two'" err.txt || fail "$(cat err.txt)"
printf 'a a\nb b\n' > star.lexicon
expect 1 "utterance 'one': no pronunciation of the word '2014'" align star.ark --tokens=star.tokens --lexicon=star.lexicon --text=star.text --units --frame-shift=0.01
awk '{ print $5 }' out.txt | tr '\n' ' ' | grep -qx 'a <star> b a b ' || fail "$(cat out.txt)"
grep -q 'ms a frame' err.txt && fail "$(cat err.txt)"
# two such words in a row need no blank between them
printf 'one a 2014 15 b\ntwo a b\n' > row.text
expect 1 "utterance 'one': no pronunciation of the word '2014'" align star.ark --tokens=star.tokens --text=row.text --units --frame-shift=1
[ "$(awk '{ print $3, $5 }' out.txt | head -4 | tr '\n' ' ')" = '0.000 a 1.000 <star> 2.000 <star> 3.000 b ' ] || fail "$(cat out.txt)"

# --- a text that has no place for much of the speech gives a warning -----------------------------------------------------
awk 'BEGIN { printf "whole  ["; for (t = 0; t < 200; t++) { c = t % 4 == 2 ? 1 + t % 3 : 0; print ""; for (k = 0; k < 4; k++) printf " %s", k == c ? -0.01 : -9 } print " ]" }' > lacks.ark
awk 'BEGIN { printf "whole"; for (t = 0; t < 200; t++) if (t % 4 == 2) printf " %s", substr("abc", 1 + t % 3, 1); print "" }' > whole.text
for part in 50 36 20; do cut -d' ' -f"1-$((part + 1))" whole.text > part.text
  expect 0 'utterance aligned' align lacks.ark --tokens=star.tokens --text=part.text --frame-shift=0.04
  if [ $part = 20 ]; then
    grep -q "utterance 'whole': the text has no place for 60% of the speech.*The option garbage" err.txt || fail "$(cat err.txt)"
  elif grep -q 'no place' err.txt; then fail "$part: $(cat err.txt)"; fi
done
expect 0 'utterance aligned' align lacks.ark --tokens=star.tokens --text=part.text --frame-shift=0.04 --garbage=3
! grep -q 'no place' err.txt || fail "$(cat err.txt)"

# --- the summary: a line, JSON, nothing ----------------------------------------------------------------------------------
expect 1 '^{"utterances": 2, "failed": 0, "with_unspelled_words": 1, "words_left_out": 0}$' align star.ark --tokens=star.tokens --text=star.text --skip-words=9 --json
align star.ark --tokens=star.tokens --text=<(echo one a; echo two a b) --frame-shift=1 -q > out.txt 2> err.txt
[ ! -s err.txt ] || fail "$(cat err.txt)"
expect 2 'quiet and --json exclude each other' align star.ark --tokens=star.tokens --text=star.text --json -q
expect 2 'are required' align s.ark
expect 0 'lexicon-format has no effect without --lexicon' align s.ark --tokens=tokens --text=text --lexicon-format=plain
expect 0 '' align s.ark --tokens=tokens --text=text --spelling=chars
! grep -q warning err.txt || fail "$(cat err.txt)"

# --- hybrid models: the best path of the transcript's graph, with all pronunciations --------------------------------------
model=/usr/share/pocketsphinx/model/en-us dict=/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict
[ -e $model/en-us/mdef ] || fail "pocketsphinx-en-us is not installed"
hybrid=(--am="$model/en-us" --lexicon="$dict" --frame-shift=0.01)
printf 'one the first word\ntwo read a read\n' > hybrid.text
awk 'BEGIN { srand(5); for (u = 1; u <= 2; u++) { printf "%s  [\n", u == 1 ? "one" : "two"; for (t = 0; t < 60; t++) { for (c = 0; c < 5126; c++) printf " %d", -20 * rand(); print t == 59 ? " ]" : "" } } }' > hybrid.ark
expect 0 '^warpfst align: 2 utterances aligned, 0 failed$' align hybrid.ark "${hybrid[@]}" --text=hybrid.text --format=json --num-threads=2 -o two.json
align hybrid.ark "${hybrid[@]}" --text=hybrid.text --format=json --num-threads=1 -o one.json 2> err.txt && cmp one.json two.json || fail "one thread: $(cat err.txt)"
expect 0 '^warpfst align: 2 utterances aligned, 0 failed$' align hybrid.ark "${hybrid[@]}" --text=hybrid.text --beam=1 # is widened
while read -r key said; do
  awk -v said="$said" 'BEGIN { n = split(said, w, " "); for (i = 1; i <= n; i++) print i - 1, i, w[i], w[i]; print n }' > line.txt
  tr ' ' '\n' <<< "$said" | awk 'BEGIN { print "<eps> 0" } !seen[$1]++ { print $1, ++n }' > line.words
  "$WARPFST" compile --isymbols=line.words --osymbols=line.words line.txt line.fst
  "$WARPFST" mkgraph hmm --am=$model/en-us --lexicon=$dict --grammar=line.fst --words=line.words --lm-weight=1 --word-prob=1 --ambiguous=best -q -o line.wfst
  "$WARPFST" matrix copy hybrid.ark --keys="$key" -o key.ark 2> /dev/null || grep -A60 "^$key " hybrid.ark > key.ark
  "$WARPFST" decode line.wfst key.ark --words=line.words --beam=100000 --max-active=100000 --frame-shift=0.01 --format=json 2> /dev/null
done < hybrid.text > decoded.json
[ "$(wc -l < two.json)" = 2 ] && cmp two.json decoded.json || fail "$(cat two.json) and not $(cat decoded.json)"
align hybrid.ark "${hybrid[@]}" --text=hybrid.text --units > phones.ctm 2> err.txt || fail "$(cat err.txt)"
awk '{ start = int($3 * 1000 + 0.5) } start != end[$1] + 0 { exit 1 } { end[$1] = start + int($4 * 1000 + 0.5) } END { exit !(end["one"] == 600 && end["two"] == 600) }' phones.ctm || fail "phones of all frames: $(cat phones.ctm)"
printf 'one the zzyzzx\ntwo read a read\n' > unknown.text
expect 1 "utterance 'one': 1 words of the grammar have no pronunciation: 'zzyzzx'" align hybrid.ark "${hybrid[@]}" --text=unknown.text
expect 1 'no path through the transcript.s 40 words in 60 frames' align hybrid.ark "${hybrid[@]}" --text=<(printf 'one%s\n' "$(printf ' word%.0s' {1..40})")
expect 1 'columns' align s.ark "${hybrid[@]}" --text=<(echo u word)
expect 2 '--am needs --lexicon' align hybrid.ark --am=$model/en-us --text=hybrid.text
expect 3 'nowhere' align hybrid.ark --am=nowhere --lexicon=$dict --text=hybrid.text
exit 0
