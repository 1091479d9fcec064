# Hostile or unusual input: byte order marks, control bytes, duplicate keys, gzip bombs, and too little memory.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
printf '0 1 1 1\n1 1 1 0\n1 2 2 2 0.5\n2\n' | "$WARPFST" compile - -o g.wfst
printf 'u0  [\n -1 -2\n -2 -1\n -2 -1 ]\n' > s.ark
mark=$'\xEF\xBB\xBF'

# --- byte order marks ------------------------------------------------------------------------------------------------------------
marked() { printf '%s' "$mark" | cat - "$1"; } # FILE
printf 'zwei 2\neins 1\n' > words
printf 'eins 3\n' > boost
"$WARPFST" decode g.wfst s.ark --words words --boost boost --format=json > want.txt 2> err.txt
grep -q '"eins' want.txt || fail "$(cat want.txt)"
for name in words boost; do marked $name > $name.bom; done
"$WARPFST" decode g.wfst s.ark --words words.bom --boost boost.bom --format=json > got.txt 2> err.txt
cmp want.txt got.txt && ! grep -q 'ignored' err.txt || fail "word table, boosts: $(cat err.txt)"
printf 'u0 boost\n' > each
marked each > each.bom
"$WARPFST" decode g.wfst s.ark --words words --utterance-boosts each.bom --format=json > got.txt 2> err.txt
cmp want.txt got.txt || fail "table of lists"
printf '1 0\n2 1\n' > columns
marked columns > columns.bom
"$WARPFST" decode g.wfst s.ark --columns=columns.bom > got.txt 2> err.txt || fail "columns: $(cat err.txt)"
marked s.ark > marked.ark
"$WARPFST" matrix info marked.ark 2> err.txt | grep '^u0 3 2' > /dev/null || fail "text archive: $(cat err.txt)"
printf '%su0 s.ark:3\n' "$mark" > marked.scp
"$WARPFST" matrix info marked.scp 2> err.txt | grep '^u0 3 2' > /dev/null || fail "script file: $(cat err.txt)"
printf 'u0 eins zwei\n' > ref
marked ref > ref.bom
"$WARPFST" score ref.bom ref > /dev/null || fail "transcripts"
printf '%s1 2\n' "$mark" > pairs
"$WARPFST" relabel --relabel_ipairs=pairs g.wfst x.fst || fail "pairs of labels"
printf '%s0 1 1 1\n1\n' "$mark" | "$WARPFST" compile - x.fst || fail "text of an fst"
ctc=$SOURCE_DIR/examples/ctc
gunzip -c "$ctc/lm3.arpa.gz" | sed -n '/\\data\\/,$p' > plain.arpa # \data\ is its first line
marked plain.arpa > lm.arpa
"$WARPFST" lm info lm.arpa > /dev/null || fail "ARPA"
"$WARPFST" lm convert lm.arpa -o lm.wlm -q || fail "ARPA, piece by piece"
printf 'THE CAT\n' > text
[ "$("$WARPFST" lm query plain.arpa text)" = "$(marked text | "$WARPFST" lm query plain.arpa -)" ] || fail "text of a query"
marked "$ctc/lexicon_phone.txt" > lexicon
marked "$ctc/tokens_phone.txt" > tokens
"$WARPFST" mkgraph ctc --tokens=tokens --lexicon=lexicon --lm=lm.arpa -q -o marked.wfst
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm=plain.arpa -q -o plain.wfst
"$WARPFST" equal marked.wfst plain.wfst || fail "lexicon, tokens"
cmp <("$WARPFST" print marked.wfst) <("$WARPFST" print plain.wfst) || fail "symbols"
printf '\xEF\xBB eins\n' > half.txt # an incomplete byte order mark
expect 3 'half.txt:1: .*not UTF-8' "$WARPFST" score half.txt ref
expect 3 'Is a directory\|is a directory' "$WARPFST" decode g.wfst s.ark --words words --boost .

# --- control bytes ---------------------------------------------------------------------------------------------------------------
odd=$'\e]0;title\a\e[31m\xC2\x9B31m\x7F'
clean() { ! LC_ALL=C grep -q $'[\x01-\x08\x0B-\x1F\x7F]' err.txt && ! LC_ALL=C grep -q $'\xC2\x9B' err.txt || fail "control bytes: $(cat -v err.txt)"; }
printf 'a %s\n' "$odd" > bad
expect 3 'bad:1: .*?]0;title??\[31m??31m?' "$WARPFST" decode g.wfst s.ark --words bad && clean
expect 3 '?]0;title' "$WARPFST" decode g.wfst s.ark --columns=bad && clean
expect 3 '?]0;title' "$WARPFST" decode g.wfst "$odd" && clean
expect 2 '?]0;title' "$WARPFST" "$odd" && clean
expect 2 '?]0;title' "$WARPFST" decode g.wfst s.ark "--$odd" && clean
expect 2 '?]0;title' "$WARPFST" lattice "$odd" && clean
printf '%s 1\n' "$odd" > ref.odd
expect 3 'no utterance is in both' "$WARPFST" score ref.odd ref && clean

# --- duplicate keys --------------------------------------------------------------------------------------------------------------
sed 's/u0/u1/' s.ark | cat s.ark - s.ark > twice.ark
expect 1 "utterances 1 and 3 are both called 'u0'; folder//*u0.npy holds the first, the other is not written" "$WARPFST" matrix copy twice.ark -o folder/
[ "$(ls folder)" = $'u0.npy\nu1.npy' ] || fail "$(ls folder)"
"$WARPFST" matrix copy twice.ark -o copy.ark || fail "an archive may hold a key twice"
"$WARPFST" matrix copy s.ark -o folder/ || fail "files of an earlier run may be replaced"
"$WARPFST" decode g.wfst twice.ark --lattice=lat.ark > /dev/null 2>&1
expect 1 "utterances 1 and 3 are both called 'u0'; slf/u0.slf holds the first" "$WARPFST" lattice convert lat.ark -o slf --format=slf
[ "$(ls slf)" = $'u0.slf\nu1.slf' ] || fail "$(ls slf)"

# --- memory ----------------------------------------------------------------------------------------------------------------------
head -c 400000000 /dev/zero | gzip -1 > zeros.gz
for command in "info zeros.gz" "decode zeros.gz s.ark" "decode g.wfst s.ark --words=zeros.gz" "lm info zeros.gz" "score zeros.gz zeros.gz"; do
  expect 4 'zeros.gz: gzip stream inflates to more than 200 times its size' "$WARPFST" $command
done
awk 'BEGIN {for (i = 0; i < 2000000; i++) print "eins zwei"}' | gzip > yes.gz # inflates to less than 64 MB, which is always accepted
expect 3 'yes.gz:' "$WARPFST" score yes.gz yes.gz
[[ $(ldd "$WARPFST") =~ asan|tsan ]] && exit 0 # sanitizers reserve much address space, so ulimit -v cannot be used
head -c 60000000 /dev/zero > payload
{ printf 'u0 \0BFM \4\300\341\344\0\4\1\0\0\0'; cat payload; } | gzip -1 > large.ark.gz # 15,000,000 x 1
awk 'BEGIN {print "u0"; for (s = 0; s < 100000; s++) print s, s + 1, "1 1.5,2.5,1_2"; print s, "0,0,\n"}' > large.lat
little() { (ulimit -v "$memory" && exec "$WARPFST" "$@"); }
memory=60000
expect 4 'out of memory' little matrix info large.ark.gz
expect 4 'out of memory' little matrix copy large.ark.gz -o x.ark
expect 4 'out of memory' little decode g.wfst large.ark.gz
memory=20000
expect 4 'out of memory' little lattice stats large.lat
expect 4 'out of memory' little lattice convert large.lat -o x.ark
