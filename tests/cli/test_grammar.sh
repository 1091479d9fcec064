# warpfst mkgraph with a grammar in JSGF and with sentences: spoken numbers are recognized, the graph is that of the same fst, errors name file and line.
# shellcheck shell=bash
# shellcheck source=tests/cli/expect.sh
. "$SOURCE_DIR/tests/cli/expect.sh"
ctc=$SOURCE_DIR/examples/ctc
mkgraph() { "$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" "$@"; }
# errors GRAPH REF: decodes the utterances of REF; prints the number of word errors
errors() {
  cut -d' ' -f1 "$2" | sed "s|.*|$ctc/logp_phone/&.npy|" >list.txt
  xargs "$WARPFST" decode "$1" --acoustic-scale=0.7 --ref="$2" -o hyp.txt <list.txt 2>summary.txt
  sed -n 's/^WER .* (\([0-9]*\) of [0-9]* words.*/\1/p' summary.txt
}

# 1. Numbers of four digits. With a trigram model of 1,040 words the digits have errors, too; the grammar knows what can be said.
grep -E '^[0-9]+( (ZERO|ONE|TWO|THREE|FOUR|FIVE|SIX|SEVEN|EIGHT|NINE)){4}$' "$ctc/text" | while read -r key text; do [ ! -e "$ctc/logp_phone/$key.npy" ] || echo "$key $text"; done >numbers.ref
[ "$(wc -l <numbers.ref)" = 21 ] || fail "$(wc -l <numbers.ref) numbers"
cat >numbers.gram <<'JSGF'
#JSGF V1.0 UTF-8 en;
grammar numbers;
/* The name of the file does not matter. */
public <number> = <digit> <digit> <digit> <digit> {number};
<digit> = ZERO | ONE | TWO | THREE | FOUR | FIVE | SIX | SEVEN | EIGHT | NINE;
JSGF
mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=numbers.gram --words-out=numbers.words -o numbers.wfst 2>table.txt
grep -q '^G  *5  *40 ' table.txt || fail "G has other than 5 states and 40 arcs: $(cat table.txt)"
[ "$(errors numbers.wfst numbers.ref)" -le 2 ] || fail "numbers: $(cat summary.txt)"
[ "$(grep -cE '^[0-9]+( [A-Z]+){4}$' hyp.txt)" = 21 ] || fail "other than four digits: $(cat hyp.txt)"
# The same grammar as an fst, and its sentences as a list.
for state in 0 1 2 3; do for digit in ZERO ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE; do echo "$state $((state + 1)) $digit"; done; done >numbers.fst.txt
echo 4 >>numbers.fst.txt
"$WARPFST" compile numbers.fst.txt --acceptor --isymbols=numbers.words -o numbers.fst
mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=numbers.fst --words=numbers.words --epsilon -q -o same.wfst
mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=numbers.gram --epsilon -q -o deterministic.wfst
"$WARPFST" isomorphic deterministic.wfst same.wfst || fail "the fst of the same grammar gives another graph"
gzip -c numbers.gram | mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=- --words=numbers.words -q -o piped.wfst
"$WARPFST" equal numbers.wfst piped.wfst || fail "another graph from a pipe"

# 2. Sentences.
cut -d' ' -f2- "$ctc/text" >sentences.txt
mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=sentences.txt -o sentences.wfst -q
"$WARPFST" decode sentences.wfst "$ctc/logp_phone" --acoustic-scale=0.7 --beam=40 --ref="$ctc/text" -o hyp.txt 2>summary.txt
awk '/^WER/ {found = 1; if ($2 + 0 > 2) exit 1} END {if (!found) exit 1}' summary.txt || fail "sentences: $(cat summary.txt)"
[ "$(cut -d' ' -f2- hyp.txt | grep -vxFf sentences.txt | wc -l)" = 0 ] || fail "a sentence that is not in the list"
# One of them is said, once.
printf 'TWO\n\nTWO SIX FOUR  EIGHT\r\nTWO\n' >few.txt
mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=few.txt -o few.wfst --keep-steps=few 2>table.txt
"$WARPFST" print few/G.fst | awk 'NF > 2 {print $3}' | sort | tr '\n' ' ' >used.txt
grep -q '^G  *5  *4 ' table.txt && [ "$(cat used.txt)" = 'EIGHT FOUR SIX TWO ' ] || fail "G of the sentences: $(cat table.txt used.txt)"
# Without a lexicon, the words are spelled.
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_char.txt" --phrases=few.txt -q -o spelled.wfst
# Words that the lexicon lacks are named.
printf 'TWO\nZORBLAX\n' >foreign.txt
expect 0 "warning: words of the grammar that the lexicon lacks, which cannot be found (1 of 2, 50.0%): 'ZORBLAX'" mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=foreign.txt -q -o y.wfst
rm y.wfst

# 3. A class of words, to which names are added later.
printf '#JSGF V1.0;\ngrammar g;\npublic <call> = CALL "<contact>";\n' >call.gram
mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=call.gram --classes='<contact>' -q -o call.wfst
"$WARPFST" info call.wfst >info.txt
grep -q '^classes of words  *<contact>$' info.txt || fail "no class: $(cat info.txt)"
# Classes have any name that words have, in JSGF, in sentences, and where the other words are spelled. CHINA is added; the scores say it.
key=000030024
printf 'CHINA\t0\tCH AY N AH\n' >china.txt
for class in '$PLACE' '[PLACE]' '#nonterm:place' PLACE; do
  printf '#JSGF V1.0;\ngrammar g;\npublic <said> = (KATE | MARK) LOVES "%s";\n' "$class" >place.gram
  printf 'KATE LOVES %s\nMARK LOVES %s\n' "$class" "$class" >place.txt
  mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=place.gram --classes="$class" -q -o jsgf.wfst
  mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=place.txt --classes="$class" -q -o phrases.wfst
  "$WARPFST" equal jsgf.wfst phrases.wfst || fail "$class: another graph from sentences"
  "$WARPFST" info jsgf.wfst >info.txt
  grep -qF "classes of words              $class" info.txt || fail "no class $class: $(cat info.txt)"
  "$WARPFST" decode jsgf.wfst "$ctc/logp_phone/$key.npy" --acoustic-scale=0.7 --add-words=china.txt --add-to="$class" -o hyp.txt 2>log || fail "$class: $(cat log)"
  [ "$(cat hyp.txt)" = "$key KATE LOVES CHINA" ] || fail "$class: $(cat hyp.txt)"
  "$WARPFST" mkgraph ctc --tokens="$ctc/tokens_char.txt" --phrases=place.txt --classes="$class" -q -o spelled.wfst
  "$WARPFST" mkgraph ctc --tokens="$ctc/tokens_char.txt" --lexicon="$ctc/lexicon_char.txt" --phrases=place.txt --classes="$class" -q -o read.wfst
  "$WARPFST" equal spelled.wfst read.wfst || fail "$class: another graph where words are spelled"
done
expect 2 "class '#0': the name is empty, has more than 1,000 bytes or is reserved" mkgraph --lexicon="$ctc/lexicon_phone.txt" --classes='#0' -o y.wfst

# 4. <unk> is any sequence of tokens: what the grammar lacks is rejected, and a part of a sentence may be anything.
printf 'KATE LOVES CHINA\nMARK LOVES CHINA\n<unk>\n' >reject.txt
for topology in correct compact; do
  mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=reject.txt --garbage=2 --topology=$topology -q -o reject.wfst
  "$WARPFST" decode reject.wfst "$ctc/logp_phone" --acoustic-scale=0.7 -o hyp.txt 2>log
  [ "$(grep -cv '<unk>' hyp.txt)" = 1 ] && grep -qx '000030024 KATE LOVES CHINA' hyp.txt || fail "$topology: $(grep -v '<unk>' hyp.txt)"
done
printf '#JSGF V1.0;\ngrammar g;\npublic <said> = KATE "<unk>" CHINA;\n' >part.gram
mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=part.gram --garbage=0.5 -q -o part.wfst
"$WARPFST" decode part.wfst "$ctc/logp_phone/000030024.npy" --acoustic-scale=0.7 -o hyp.txt 2>log
[ "$(cat hyp.txt)" = '000030024 KATE <unk> CHINA' ] || fail "a part: $(cat hyp.txt)"
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_char.txt" --phrases=reject.txt --garbage=2 -q -o y.wfst # words spelled
rm y.wfst
# The same of a language model.
printf '%s\n' '\data\' 'ngram 1=5' '' '\1-grams:' '-99 <s>' '-0.6 </s>' '-0.6 <unk>' '-0.6 KATE' '-0.6 CHINA' '' '\end\' >unk.arpa
mkgraph --lexicon="$ctc/lexicon_phone.txt" --lm=unk.arpa --garbage=0.5 -q -o lm.wfst
"$WARPFST" decode lm.wfst "$ctc/logp_phone/000030024.npy" --acoustic-scale=0.7 -o hyp.txt 2>log
[ "$(cat hyp.txt)" = '000030024 KATE <unk> CHINA' ] || fail "a language model: $(cat hyp.txt)"
sed '/<unk>/d; s/1=5/1=4/' unk.arpa >lacks.arpa
expect 2 'garbage: the language model has no <unk>' mkgraph --lexicon="$ctc/lexicon_phone.txt" --lm=lacks.arpa --garbage=2 -o y.wfst
expect 2 "class '<unk>': with garbage, it stands for any sequence of tokens" mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=reject.txt --garbage=2 --classes='<unk>' -o y.wfst
expect 2 'garbage needs --lm, --grammar or --phrases' mkgraph --garbage=2 -o y.wfst
expect 2 'garbage: the grammar has no <unk>' mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=few.txt --garbage=2 -o y.wfst

# 5. Errors.
printf '#JSGF V1.0;\ngrammar g;\npublic <a> = ONE\n| <a> TWO;\n' >bad.gram
expect 3 'bad.gram:4: the rule <a> uses itself before its end' mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=bad.gram -o y.wfst
printf '#JSGF V1.0;\ngrammar g;\npublic <a> = ONE | ;\n' >bad.gram
expect 3 "bad.gram:3: found ';', expected a word" mkgraph --lexicon="$ctc/lexicon_phone.txt" --grammar=bad.gram -o y.wfst
expect 3 'numbers.gram: a grammar in JSGF, not an fst' "$WARPFST" connect numbers.gram y.fst
printf '<eps> 0\nONE 1\n' >one.words
expect 3 "few.txt:1: the word 'TWO' is not in the word table one.words" mkgraph --lexicon="$ctc/lexicon_phone.txt" --phrases=few.txt --words=one.words -o y.wfst
printf '\n \n' >empty.txt
expect 3 'empty.txt: no sentence, expected one in each line' mkgraph --phrases=empty.txt -o y.wfst
expect 3 'nothere' mkgraph --phrases=nothere -o y.wfst
expect 2 '--phrases and --lm exclude each other' mkgraph --lm=x --phrases=x -o y.wfst
expect 2 '--phrases and --grammar exclude each other' mkgraph --grammar=x --phrases=x -o y.wfst
expect 2 '--phrases and --grammar exclude each other' "$WARPFST" mkgraph hmm --am=x --lexicon=x --grammar=x --phrases=x -o y.wfst
[ ! -e y.wfst ] && [ ! -e y.fst ] || fail "a failed run left a file"
