# Boosted words and phrases, for all utterances and for single ones; in chunks; errors in lists.
# shellcheck shell=bash

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
grep -q "unknown.boost: 1 of 2 phrases ignored.*'unheard'" log

# Without a boost a word gets 0.6 nats for each letter, a phrase 1, or both those of --boost-per-letter. A last word without digits is no boost.
same() { # LIST LIST_WITH_BOOSTS ARGUMENTS...: both lists give the same results and costs
  decode --boost "$1" --format=json "${@:3}" >one.json
  decode --boost "$2" --format=json >two.json
  cmp one.json two.json || { echo "lists $1 and $2 differ ($(cat log))"; exit 1; }
}
decode --format=json >plain.json
printf 'read\n  read box  \nbook 0.5\n' >short.boost
printf 'read 2.4\nread box 7\nbook 0.5\n' >long.boost
same short.boost long.boost
cmp -s one.json plain.json && { echo "boosts by length do nothing"; exit 1; }
printf 'read 1\nread box 1.75\nbook 0.5\n' >long.boost
same short.boost long.boost --boost-per-letter=0.25
expect 'u1 red book;u2 red book;' --boost-per-letter=0 --boost <(printf 'read\nbox\n')
printf 'read nan\nread infinity\nread x1\nread 1x\nnan\n7\n' >words.boost
decode --boost words.boost --format=json >one.json
cmp one.json plain.json && grep -q "words.boost: 6 of 6 phrases ignored.*'nan'" log || { cat log; exit 1; }

wrong() { # CODE PATTERN ARGUMENTS...
  local code=$1 pattern=$2 got=0
  shift 2
  decode "$@" >/dev/null || got=$?
  [ "$got" = "$code" ] && grep -q "$pattern" log || { echo "decode $*: exit $got, $(cat log)"; exit 1; }
}
printf 'book 1\nread 1e99\n' >bad1
printf 'read book 2e6\n' >bad2
printf 'read 1\nread 2\n' >bad4
printf 'u1\n' >bad5
printf 'u1 word.boost\nu1 word.boost\n' >bad6
wrong 3 'bad1:2: the boost is too large' --boost bad1
wrong 3 'bad2:.*at most 1e6' --boost bad2
decode --boost-per-letter=1 >/dev/null
grep -q 'per-letter has no effect' log
wrong 3 'twice' --boost bad4
wrong 3 'bad5:1: expected' --utterance-boosts bad5
wrong 3 "'u1' occurs twice" --utterance-boosts bad6
wrong 3 'cannot\|No such file' --boost missing

# Together with a language model (a chain of scorers), whole and in chunks.
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
"$WARPFST" lm convert -q lm.arpa -o lm.wlm
expect 'u1 read book;u2 read book;' --lm lm.wlm
expect 'u1 read box;u2 read box;' --lm lm.wlm --boost small.boost
expect 'u1 read book;u2 read box;' --lm lm.wlm --utterance-boosts table --chunk 0.01

# Boosts, an n-gram model and a recurrent model in one chain, on real speech: chunks of any length give the results and lattices of whole utterances.
ctc=$SOURCE_DIR/examples/ctc
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o real.wfst -q
"$WARPFST" lm convert -q "$ctc/lm3.arpa.gz" -o real.wlm
head -200 "$ctc/text" | cut -d' ' -f2- >sentences
"$WARPFST" rnnlm train sentences sentences -o rnn --hidden=8 --max-epochs=1 >train.log
mkdir scores
for file in $(find "$ctc/logp_phone" -name '*.npy' | sort | head -8); do ln -s "$file" scores/; done
printf 'IT IS 2\nTHE 1\nGOING TO SEE 3\nELEPHANT -1\n' >some.boost
key=$(basename "$(ls scores | head -1)" .npy)
echo "$key some.boost" >table
real() { "$WARPFST" decode real.wfst scores --acoustic-scale=0.7 --beam=10 --rnnlm-memory=1000000 --blank=0 --frame-shift=0.04 --format=json "$@" 2>log || { cat log; return 1; }; }
chains=('--lm=real.wlm --lm-scale=0.3' '--rnnlm=rnn --rnnlm-scale=0.3' '--lm=real.wlm --lm-scale=0.2 --rnnlm=rnn --rnnlm-scale=0.2 --rnnlm-small=real.arpa')
gzip -dc "$ctc/lm3.arpa.gz" >real.arpa
for chain in "${chains[@]}"; do
  real $chain >plain.json
  real $chain --utterance-boosts table >whole.json
  cmp -s plain.json whole.json && { echo "boosts do nothing on top of $chain"; exit 1; }
  real $chain --utterance-boosts table --chunk=0.12 >chunks.json
  cmp whole.json chunks.json || { echo "$chain: chunks differ"; exit 1; }
done
real ${chains[2]} --boost some.boost --lattice=whole.ark --lattice-beam=4 >whole.json
real ${chains[2]} --boost some.boost --lattice=chunks.ark --lattice-beam=4 --chunk=0.2 >chunks.json
cmp whole.json chunks.json && cmp whole.ark chunks.ark || { echo "lattices of chunks differ"; exit 1; }
