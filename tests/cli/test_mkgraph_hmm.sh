# warpfst mkgraph hmm with the acoustic model and dictionary of Debian's pocketsphinx-en-us. Decoding real speech gives the costs of another toolkit's graphs.
# The graph equals H o C o L o G composed by OpenFst's tools. Also removal of epsilons, missing words and phones, interrupted builds.
# shellcheck shell=bash
model=/usr/share/pocketsphinx/model/en-us hybrid=$SOURCE_DIR/examples/hybrid
dict=$model/cmudict-en-us.dict
fail() { echo "$*" >&2; exit 1; }
# expect CODE PATTERN COMMAND...: the command exits with CODE, and its standard error matches PATTERN
expect() {
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" = "$want" ] || fail "exit $code, not $want: $*: $(cat err.txt)"
  grep -q -- "$pattern" err.txt || fail "no '$pattern' from: $*: $(cat err.txt)"
}
count() { "$WARPFST" info "$2" | awk -v what="$1" '$1 == what {print $2}'; }
mkgraph() { "$WARPFST" mkgraph hmm --am=$model/en-us "$@"; }
[ -e $model/en-us/mdef ] || fail "pocketsphinx-en-us is not installed"

# 1. Digits and commands. Another toolkit's graphs had 526 and 3,489 states; our best paths must have its words and costs.
# as_expected NAME GRAPH [COST]: decodes examples/hybrid/NAME. COST: what each word costs here and not there. Its scores have only the senones that the example's graph uses, so a table of columns is needed.
as_expected() {
  awk '{column[$2 + 1] = $1 - 1} END {for (label = 1; label <= 5126; label++) print label, column[label] + 0}' "$hybrid/$1/sen.map" >columns
  "$WARPFST" decode "$2" "$hybrid/$1" --columns=columns --scale=-0.10239488 --acoustic-scale=0.1538 --beam=40 --format=json -o hyp.json 2>summary.txt
  sed 's/.*"key": "\([^"]*\)", "text": "\([^"]*\)".*"cost": \([0-9.]*\),.*/\1 \3 \2/' hyp.json | sort >have.txt
  sed 's/\(.*\) (\(.*\))/\2 \1/' "$hybrid/$1/expected" | sort >want.txt
  [ "$(wc -l <have.txt)" = "$(wc -l <want.txt)" ] || fail "$2: $(wc -l <have.txt) utterances"
  paste -d'\n' want.txt have.txt | awk -v graph="$2" -v word="${3:-0}" 'NR % 2 == 1 {key = $1; cost = $2; sub(/^[^ ]* [^ ]* /, ""); words = $0; next}
    {mine = $2 - (NF - 2) * word; id = $1; sub(/^[^ ]* [^ ]* /, ""); if (id != key || $0 != words || mine - cost > 0.02 || cost - mine > 0.02) {print graph ": " id " " mine " " $0 ", wanted " cost " " words; bad = 1}}
    END {exit bad}' >&2
}
words=$hybrid/digits/words.txt
awk '$1 != "<eps>" && $1 != "#0" {print 0, 0, $1, 2.48490665} END {print 0, 2.48490665}' "$words" | "$WARPFST" compile - --acceptor --isymbols="$words" -o grammar.fst
mkgraph --lexicon=$dict --grammar=grammar.fst --words="$words" -o digits.wfst --json >report.json 2>table.txt
[ "$(count states digits.wfst)" -le 526 ] || fail "$(count states digits.wfst) states"
as_expected digits digits.wfst
# The same in JSGF: each digit is as likely as the end.
{ printf '#JSGF V1.0;\ngrammar digits;\npublic <digits> = /1/ <NULL>'; awk '$1 != "<eps>" && $1 != "#0" {print " | /1/ " $1 " <digits>"}' "$words"; echo ';'; } >digits.gram
mkgraph --lexicon=$dict --grammar=digits.gram -o jsgf.wfst -q
as_expected digits jsgf.wfst
"$WARPFST" compile "$hybrid/coffee/grammar.txt" --acceptor --isymbols="$hybrid/coffee/words.txt" -o grammar.fst
mkgraph --lexicon=$dict --grammar=grammar.fst --words="$hybrid/coffee/words.txt" --word-prob=1 -o coffee.wfst -q
[ "$(count states coffee.wfst)" -le 3489 ] || fail "$(count states coffee.wfst) states"
as_expected coffee coffee.wfst 0.0009765625
mkgraph --lexicon=$dict --grammar=grammar.fst --words="$hybrid/coffee/words.txt" --word-prob=1 -o plain.wfst -q --epsilon
"$WARPFST" info coffee.wfst >info.txt
grep -q 'no input epsilons  *yes' info.txt || fail "epsilons are left"
"$WARPFST" info plain.wfst >info.txt
grep -q 'no input epsilons  *no' info.txt || fail "--epsilon has no effect"
as_expected coffee plain.wfst 0.0009765625
for step in L G 'L o G' det min 'C o LG' H 'H o CLG' loops graph; do grep -q "^$step  *[0-9]" table.txt || fail "no row for $step"; done
grep -q "words of the lexicon that the grammar lacks: 125934 ('bout, 'cause, .*, \.\.\.)" table.txt || fail "words that are not used are not listed"
python3 -c "
import json
report = json.load(open('report.json'))
assert report['steps'][-1]['name'] == 'graph' and report['lm_words_missing'] == {'count': 0, 'first': []}, report
assert len(report['lexicon_words_missing']['first']) == 10"

# 2. The model as text gives the same graph, bit for bit.
mkdir text
pocketsphinx_mdef_convert -text $model/en-us/mdef text/mdef >convert.log 2>&1
cp $model/en-us/transition_matrices text
"$WARPFST" mkgraph hmm --am=text --lexicon=$dict --grammar=grammar.fst --words="$hybrid/coffee/words.txt" --word-prob=1 -o text.wfst -q
cmp coffee.wfst text.wfst

# 3. A bigram model over 400 words: the graph equals H o C o L o G composed by OpenFst's tools, with self-loops in H and without any optimization.
python3 - $dict >small.arpa <<'PY'
import random, sys
random.seed(3)
words = [line.split()[0] for line in open(sys.argv[1]) if '(' not in line]
words = words[::300][:390] + ['a', 'while', 'awhile', 'to', 'too', 'two', 'there', 'their', "they're", 'i']
words = sorted(set(words))
n = len(words)
bigrams = sorted({(random.choice(words + ['<s>']), random.choice(words + ['</s>'])) for _ in range(3 * n)})
print('\\data\\\nngram 1=%d\nngram 2=%d\n\n\\1-grams:' % (n + 2, len(bigrams)))
print('-99 <s> -0.3\n-1.5 </s>')
for word in words:
    print('%.3f %s %.3f' % (-2 - random.random(), word, -random.random()))
print('\n\\2-grams:')
for a, b in bigrams:
    print('%.3f %s %s' % (-random.random() * 2, a, b))
print('\n\\end\\')
PY
mkgraph --lexicon=$dict --lm=small.arpa -o small.fst --words-out=small.words --keep-steps=steps -q
mkdir reference
python3 "$SOURCE_DIR/tests/cli/hmm_reference.py" $model/en-us text/mdef $dict small.words reference
for name in L C H; do fstcompile reference/$name.txt | fstarcsort --sort_type=olabel >reference/$name.fst; done
fstrelabel --relabel_ipairs=<(awk '$1 == "#0" {print $2, 0}' small.words) steps/G.fst | fstarcsort >g.fst
fstcompose reference/L.fst g.fst | fstarcsort >lg.fst
fstcompose reference/C.fst lg.fst | fstarcsort >clg.fst
fstcompose reference/H.fst clg.fst reference.fst
"$WARPFST" randequivalent --no-check-symbols small.fst reference.fst --npath=150 --delta=0.03 --max-length=400 --seed=5 || fail "the graph differs from its definition"
# OpenFst compares the same two graphs (without symbol tables, which it would compare, too).
for name in reference small; do "$WARPFST" print --numeric $name.fst | fstcompile - $name.bare.fst; done
fstequivalent --random --delta=0.03 --npath=15 --max_length=60 --seed=7 reference.bare.fst small.bare.fst || fail "OpenFst says that the graph differs from its definition"
# The comparison detects a graph with another word cost.
mkgraph --lexicon=$dict --lm=small.arpa --word-prob=0.4 -o other.fst -q
expect 1 '' "$WARPFST" randequivalent --no-check-symbols other.fst reference.fst --npath=50 --delta=0.03 --max-length=400 --seed=5

# 4. Missing words and phones are counted and listed, or are errors.
printf '\\data\\\nngram 1=5\n\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 zero\n-1 xyzzy\n-1 plugh\n\n\\end\\\n' >odd.arpa
expect 0 'words of the LM that the lexicon lacks: 2 (xyzzy, plugh)' mkgraph --lexicon=$dict --lm=odd.arpa -o odd.wfst
expect 2 "2 words of the language model have no pronunciation: 'xyzzy', 'plugh'" mkgraph --lexicon=$dict --lm=odd.arpa --missing-words=error -o no.wfst
printf 'zero Z IH R OW\nzero(2) Z IY R QQ\n' >odd.dict
expect 3 "odd.dict:2: word 'zero': 'QQ' is not in the token table" mkgraph --lexicon=odd.dict --lm=odd.arpa -o no.wfst
expect 0 'words skipped because of unknown tokens: 1 (zero (QQ))' mkgraph --lexicon=odd.dict --lm=odd.arpa --unknown=skip -o odd.wfst
printf 'zero ZH ZH ZH\n' >odd.dict
expect 0 'phones in a context that the model lacks, replaced by the HMM of another context: [1-9]' mkgraph --lexicon=odd.dict --lm=odd.arpa -o odd.wfst
expect 2 "no HMM for 'SIL ZH_b ZH_i'" mkgraph --lexicon=odd.dict --lm=odd.arpa --missing-hmm=error -o no.wfst
expect 0 'dropped: 1 (SIL ZH_b ZH_i)' mkgraph --lexicon=odd.dict --lm=odd.arpa --missing-hmm=drop -o odd.wfst # the empty sentence is still accepted
! grep -q 'HMM of another' err.txt || fail "what was left out is reported as substituted, too"
printf 'zero Z IH R OW\none W AH N\n' >alone.dict
printf '0 0 1 1\n0 0 2 2\n0\n' | fstcompile >any.fst
printf '<eps> 0\none 1\nzero 2\n#0 3\n<s> 4\n</s> 5\n' >alone.words
mkgraph --lexicon=alone.dict --grammar=any.fst --words=alone.words -q -o looped.wfst
mkgraph --lexicon=alone.dict -q -o alone.wfst
"$WARPFST" equal looped.wfst alone.wfst || fail "a dictionary alone gives another graph than a grammar with loops"
printf '0 1 2 2\n1 2 1 1\n1\n2\n' | fstcompile >two.fst
printf 'zero one\nzero\n' >two.txt
mkgraph --lexicon=alone.dict --grammar=two.fst --words=alone.words -q -o listed.wfst
mkgraph --lexicon=alone.dict --phrases=two.txt --words=alone.words -q -o phrases.wfst
"$WARPFST" equal listed.wfst phrases.wfst || fail "sentences give another graph than their fst"
expect 2 'lexicon-fst needs --lm, --grammar or --phrases' mkgraph --lexicon-fst=L.fst -o no.wfst
printf 'nothing Z\n' >odd.dict
expect 2 "no word in common.*'nothing', the language model 'zero', 'xyzzy', 'plugh'" mkgraph --lexicon=odd.dict --lm=odd.arpa -o no.wfst
# Nothing is left of the graph: words without a pronunciation, a grammar without a final state, phones without an HMM.
printf 'zero ZH ZH ZH\n' >odd.dict
printf '<eps> 0\nzero 1\nxyzzy 2\n' >odd.words
printf '0 1 1 1\n1 2 2 2\n2\n' | fstcompile >both.fst
printf '0 1 1 1\n' | fstcompile >endless.fst
printf '0 1 1 1\n1\n' | fstcompile >zero.fst
expect 2 "compose L o G: the result is empty: the lexicon covers no sentence of the grammar; it lacks 'xyzzy'" mkgraph --lexicon=odd.dict --grammar=both.fst --words=odd.words -o no.wfst
grep -q "warning: words of the grammar that the lexicon lacks, which cannot be found (1 of 2, 50.0%): 'xyzzy'" err.txt || fail "$(cat err.txt)"
expect 2 'the grammar has no final state' mkgraph --lexicon=odd.dict --grammar=endless.fst --words=odd.words -o no.wfst
expect 2 'compose C o LG: the result is empty: every sentence needs a phone' mkgraph --lexicon=odd.dict --grammar=zero.fst --words=odd.words --missing-hmm=drop -o no.wfst
expect 0 'zero.wfst: [1-9][0-9]* states' mkgraph --lexicon=odd.dict --grammar=zero.fst --words=odd.words -o zero.wfst
expect 4 'compose L o G' mkgraph --lexicon=$dict --lm=small.arpa --max-states=1000 -o no.wfst
expect 3 'nowhere: cannot open' "$WARPFST" mkgraph hmm --am=nowhere --lexicon=$dict --lm=small.arpa -o no.wfst
expect 2 '--am is required' "$WARPFST" mkgraph hmm --lexicon=$dict --lm=small.arpa -o no.wfst
expect 2 '--lexicon is required' mkgraph --lm=small.arpa -o no.wfst
[ ! -e no.wfst ] || fail "a failed run left a file"

# 5. A model whose labels are not columns + 1 (one senone has two self-loops): the table of columns is written next to the graph, and the decoder finds it.
mkdir tiny
printf '0.3\n3 n_base\n0 n_tri\n6 n_state_map\n2 n_tied_state\n2 n_tied_ci_state\n3 n_tied_tmat\nSIL - - - filler 0 0 N\nA - - - n/a 1 1 N\nB - - - n/a 2 1 N\n' >tiny/mdef
python3 -c "
import struct
open('tiny/transition_matrices', 'wb').write(b's3\nendhdr\n' + struct.pack('<I4i6f', 0x11223344, 3, 1, 2, 6, 1, 1, 3, 1, 1, 3))"
printf 'zero A B\n' >tiny/dict
"$WARPFST" mkgraph hmm --am=tiny --lexicon=tiny/dict --lm=odd.arpa -o tiny.wfst 2>err.txt
grep -q 'tiny.wfst.columns holds the columns' err.txt || fail "the table of columns is not reported"
diff tiny.wfst.columns <(printf '1 0\n2 1\n3 1\n')
python3 -c "
import struct
rows = [[0, -9], [-9, 0], [-9, 0], [0, -9]]
open('tiny.ark', 'wb').write(b'u \0BFM \4' + struct.pack('<i', 4) + b'\4' + struct.pack('<i', 2) + struct.pack('<8f', *sum(rows, [])))"
"$WARPFST" decode tiny.wfst tiny.ark -o tiny.hyp 2>err.txt
[ "$(cat tiny.hyp)" = 'u zero' ] || fail "$(cat tiny.hyp err.txt)"
# What the grammar lacks is <unk>: zero has two phones, so one frame of speech is another word. Silence and noises are no part of it.
printf 'zero\n<unk>\n' >tiny/sentences
python3 -c "
import struct
def matrix(rows): return b'BFM \4' + struct.pack('<i', len(rows)) + b'\4' + struct.pack('<i', 2) + struct.pack('<%df' % (2 * len(rows)), *sum(rows, []))
silence, speech = [0, -9], [-9, 0]
open('more.ark', 'wb').write(b'u \0' + matrix([silence, speech, speech, silence]) + b'v \0' + matrix([silence, speech, silence]) + b'w \0' + matrix([silence, silence, silence]))"
"$WARPFST" mkgraph hmm --am=tiny --lexicon=tiny/dict --phrases=tiny/sentences --garbage=1 -q -o garbage.wfst
"$WARPFST" decode garbage.wfst more.ark -o tiny.hyp 2>err.txt
diff tiny.hyp <(printf 'u zero\nv <unk>\nw <unk>\n') || fail "$(cat tiny.hyp err.txt)"
"$WARPFST" mkgraph hmm --am=tiny --lexicon=tiny/dict --phrases=tiny/sentences -q -o silent.wfst 2>err.txt
grep -q "warning: words of the grammar that the lexicon lacks, which cannot be found (1 of 2, 50.0%): '<unk>'" err.txt || fail "$(cat err.txt)"

# 6. A build that is interrupted at any moment leaves no temporary files.
for delay in 0.1 0.2 0.3 0.4 0.5; do
  mkdir interrupted
  "$WARPFST" mkgraph hmm --am=$model/en-us --lexicon=$dict --lm=small.arpa --words-out=interrupted/words.txt --columns-out=interrupted/columns -o interrupted/graph.fst --keep-steps=interrupted/steps -q &
  sleep $delay
  kill -TERM $! 2>/dev/null || true
  wait $! 2>/dev/null || true
  [ -z "$(find interrupted -name '*.tmp.*')" ] || fail "after $delay s: $(find interrupted)"
  [ ! -e interrupted/graph.fst ] || fstinfo interrupted/graph.fst >info.txt
  rm -r interrupted
done

# 7. Sphinx's trie LMs give the same graph as the same model in ARPA format. The large real model works with a lexicon of 300 of its words.
gzip -dc "$SOURCE_DIR/tests/data/lm/sphinx3.lm.bin.gz" >letters.lm.bin
printf '%s\n' 'a EY' 'b B IY' 'c S IY' 'd D IY' 'e IY' 'f EH F' 'g JH IY' >letters.dict
for lm in letters.lm.bin "$SOURCE_DIR/tests/data/lm/sphinx3.arpa"; do mkgraph --lexicon=letters.dict --lm="$lm" -o "$(basename "$lm").fst" -q; done
"$WARPFST" randequivalent letters.lm.bin.fst sphinx3.arpa.fst --npath=100 --delta=0.01 --max-length=200 --seed=5 || fail "the graphs of the trie and of the ARPA file differ"
awk 'NR % 400 == 0 && !/\(/' $dict | head -300 >part.dict
expect 0 'words of the LM that the lexicon lacks: 72[0-9]* ([^,]*, .*, \.\.\.)' mkgraph --lexicon=part.dict --lm=$model/en-us.lm.bin -o part.wfst
[ "$(awk 'length > 100' err.txt | grep -c 'words of the LM')" = 0 ] || fail "a line of more than 100 columns: $(cat err.txt)"
mkgraph --lexicon=part.dict --lm=$model/en-us.lm.bin -o part.wfst -q --json >part.json
python3 -c "
import json
missing = json.load(open('part.json'))['lm_words_missing']
assert 72000 <= missing['count'] < 73000 and len(missing['first']) == 10 and 'words of the LM that the lexicon lacks: %d (%s, ' % (missing['count'], missing['first'][0]) in open('err.txt').read(), missing"
