# Boosted words and phrases, for all utterances and for single ones; chunks; what is wrong with lists.

cat >words.txt <<'END'
<eps> 0
red 1
read 2
book 3
box 4
END
# "red"/"read" and "book"/"box" sound nearly alike: columns 0 and 1, 2 and 3. Each word takes one frame.
cat >graph.txt <<'END'
0 0 1 1 0
0 0 2 2 0
0 0 3 3 0
0 0 4 4 0
0 0
END
"$WARPFST" compile graph.txt graph.fst
cat >scores.ark <<'END'
u1  [
  -1 -2 -9 -9
  -9 -9 -1 -2 ]
u2  [
  -1 -2 -9 -9
  -9 -9 -1 -2 ]
END
decode() { "$WARPFST" decode graph.fst scores.ark --words words.txt "$@" 2>log; }
expect() { # WANTED ARGUMENTS...
  local wanted=$1
  shift
  [ "$(decode "$@" | tr '\n' ';')" = "$wanted" ] || { echo "decode $*: $(cat log)"; decode "$@"; exit 1; }
}

expect 'u1 red book;u2 red book;'
printf '# comment\n\nread 1.5\n' >word.boost
printf 'read box 2.5\nred box 1.5\n' >phrase.boost
printf 'read box 1.5\n' >small.boost
expect 'u1 read book;u2 read book;' --boost word.boost
expect 'u1 read box;u2 read box;' --boost phrase.boost
expect 'u1 red book;u2 red book;' --boost small.boost
printf 'u2 phrase.boost\n' >table
expect 'u1 red book;u2 read box;' --utterance-boosts table
expect 'u1 read book;u2 read box;' --utterance-boosts table --boost word.boost
expect 'u1 read book;u2 read box;' --utterance-boosts table --boost word.boost --chunk 0.01
decode --boost phrase.boost --format=json >whole.json
decode --boost phrase.boost --format=json --chunk=0.02 >chunks.json
cmp whole.json chunks.json

printf 'read 1\nunheard of 3\n' >unknown.boost
decode --boost unknown.boost >/dev/null
grep -q "unknown.boost: 1 phrases passed over.*'unheard'" log

wrong() { # CODE PATTERN ARGUMENTS...
  local code=$1 pattern=$2 got=0
  shift 2
  decode "$@" >/dev/null || got=$?
  [ "$got" = "$code" ] && grep -q "$pattern" log || { echo "decode $*: exit $got, $(cat log)"; exit 1; }
}
printf 'read\n' >bad1
printf 'read x1\n' >bad2
printf 'read nan\n' >bad3
printf 'read 1\nread 2\n' >bad4
printf 'u1\n' >bad5
printf 'u1 word.boost\nu1 word.boost\n' >bad6
wrong 3 'bad1:1: expected' --boost bad1
wrong 3 'bad2:1: expected' --boost bad2
wrong 3 'bad3:1: expected' --boost bad3
wrong 3 'twice' --boost bad4
wrong 3 'bad5:1: expected' --utterance-boosts bad5
wrong 3 "'u1' is there twice" --utterance-boosts bad6
wrong 3 'cannot\|No such file' --boost missing

# On top of a language model, as chained scorers, whole and in chunks.
cat >lm.arpa <<'END'
\data\
ngram 1=6

\1-grams:
-99	<s>
-1	</s>
-2	red
-1	read
-1	book
-1	box

\end\
END
"$WARPFST" lm build -q lm.arpa -o lm.wlm
expect 'u1 read book;u2 read book;' --lm lm.wlm
expect 'u1 read box;u2 read box;' --lm lm.wlm --boost small.boost
expect 'u1 read book;u2 read box;' --lm lm.wlm --utterance-boosts table --chunk 0.01
