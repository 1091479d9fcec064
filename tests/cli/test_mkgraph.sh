# warpfst mkgraph ctc, lexicon and topology on the example models: sizes of graphs, each step against OpenFst's tools, word error rate, errors.
# shellcheck shell=bash
ctc=$SOURCE_DIR/examples/ctc
fail() { echo "$*" >&2; exit 1; }
# expect CODE PATTERN COMMAND...: the command exits with CODE, and its standard error matches PATTERN
expect() {
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" = "$want" ] || fail "exit $code, not $want: $*: $(cat err.txt)"
  grep -q -- "$pattern" err.txt || fail "no '$pattern' from: $*: $(cat err.txt)"
}
states() { "$WARPFST" info "$1" | awk '$1 == "states" {print $2}'; }
mkgraph() { "$WARPFST" mkgraph ctc "$@"; }

# 1. The main case: phones, topology compact. Another toolkit's graph from the same input had 61,636 states and 147,970 arcs.
mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --topology=compact \
  -o graph.wfst --keep-steps=steps --words-out=words.txt --json >report.json 2>table.txt
for step in L G 'L o G' det min T 'T o LG' graph; do grep -q "^$step  *[0-9]" table.txt || fail "no row for $step"; done
grep -q 'words of the lexicon that the LM lacks: 719' table.txt || fail "missing words are not reported"
python3 - <<'PY'
import json
report = json.load(open('report.json'))
last = report['steps'][-1]
assert last['name'] == 'graph' and 58000 < last['states'] <= 61636 and 140000 < last['arcs'] <= 147970, last
assert report['topology'] == 'compact' and report['kind'] == 'ctc' and report['lexicon_words_missing']['count'] == 719 and report['lm_words_missing'] == {'count': 0, 'first': []}
assert all(s['seconds'] >= 0 and s['peak_bytes'] > 0 for s in report['steps'])
PY
cmp words.txt steps/words.txt
if grep -q $'\r' table.txt; then fail "a progress bar without a terminal"; fi
diff <(tr '\t' ' ' <words.txt | sed -n 1,2p) <(printf '<eps> 0\nA 1\n')
"$WARPFST" info graph.wfst >info.txt # not through a pipe, which grep -q would close early
grep -q 'output symbol table.*2608 symbols' info.txt || fail "the graph lacks its words"

# 2. OpenFst composes the kept steps to the same transducers.
fstcompose steps/L.fst steps/G.fst lg.fst # L is already sorted by output label
fstequal lg.fst steps/LG.fst || fail "L o G differs from OpenFst's"
fstarcsort --sort_type=ilabel steps/LG.min.fst lgmin.fst
fstarcsort --sort_type=olabel steps/T.fst | fstcompose - lgmin.fst tlg.fst
[ "$(fstinfo tlg.fst | awk '/# of states/ {print $4}')" = "$(states steps/TLG.fst)" ] || fail "T o LG differs in size from OpenFst's"
# Random sentences cost the same before and after determinization and minimization.
fstproject --project_type=output steps/LG.fst >/dev/null 2>&1 && project=--project_type=output || project=--project_output
fstproject $project steps/G.fst g.fst
for seed in 1 2 3 4 5; do
  fstrandgen --seed=$seed --select=log_prob g.fst | fstrmepsilon | fstarcsort >sentence.fst
  for graph in LG LG.min; do fstarcsort --sort_type=olabel steps/$graph.fst | fstcompose - sentence.fst | fstshortestdistance --reverse | awk '$1 == 0 {print $2}' >$graph.cost; done
  awk 'NR == FNR {a = $1; next} {exit !(a != "" && $1 - a < 0.02 && a - $1 < 0.02)}' LG.cost LG.min.cost || fail "seed $seed: $(cat LG.cost LG.min.cost)"
done

# 3. Word error rate on 200 utterances with 1,040 words. A wrong graph would give a much higher one.
"$WARPFST" decode graph.wfst "$ctc/logp_phone" --acoustic-scale=0.7 --beam=12 --frame-shift=0.04 --ref="$ctc/text" -o hyp.txt 2>summary.txt
wer=$(grep -o 'WER [0-9.]*' summary.txt | cut -d' ' -f2)
awk -v wer="$wer" 'BEGIN {exit !(wer > 30 && wer < 38.2)}' || fail "WER $wer"

# With topology correct epsilons are merged into the arcs before them: the same words at the same times. Where arcs would more than double, epsilons stay.
phones=(--tokens="$ctc/tokens_phone.txt" -q)
mkgraph "${phones[@]}" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" -o merged.wfst
mkgraph "${phones[@]}" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --epsilon -o kept.wfst
for graph in merged kept; do
  "$WARPFST" info $graph.wfst >$graph.info
  find "$ctc/logp_phone" -name '*0.npy' | sort | xargs "$WARPFST" decode $graph.wfst --acoustic-scale=0.7 --frame-shift=0.04 --format=ctm -o $graph.ctm 2>log.txt
done
grep -q 'no input epsilons  *yes' merged.info || fail "epsilons are left"
grep -q 'no input epsilons  *no' kept.info || fail "--epsilon has no effect"
[ "$(wc -l <kept.ctm)" -gt 100 ] || fail "$(wc -l <kept.ctm) words"
cmp kept.ctm merged.ctm || fail "without epsilons words or times differ"
printf '<eps> 0\nA 1\nB 2\n#0 3\n' >backoff.words
printf 'A AA\nB B\n' >backoff.lexicon
for state in 1 2 3 4 5 6; do printf '%s\n' "$((state - 1)) $state #0 <eps>" "$state 0 A A 1" "$state 0 B B $state"; done >backoff.fst.txt
echo 0 >>backoff.fst.txt
"$WARPFST" compile backoff.fst.txt --isymbols=backoff.words --osymbols=backoff.words -o backoff.fst
mkgraph "${phones[@]}" --lexicon=backoff.lexicon --grammar=backoff.fst --words=backoff.words -o backoff.wfst
"$WARPFST" info backoff.wfst >backoff.info
grep -q 'no input epsilons  *no' backoff.info || fail "arcs more than doubled"

# 4. Spelling without a lexicon; the other topologies; a grammar as an fst.
mkgraph --tokens="$ctc/tokens_bpe.txt" --merges="$ctc/bpe_merges.txt" --lm="$ctc/lm3.arpa.gz" --topology=minimal -o bpe.wfst -q
mkgraph --tokens="$ctc/tokens_bpe.txt" --lexicon="$ctc/lexicon_bpe.txt" --lm="$ctc/lm3.arpa.gz" --topology=minimal -o bpe2.wfst -q
[ "$(states bpe.wfst)" = "$(states bpe2.wfst)" ] || fail "spelled and read lexicons give different graphs"
for topology in correct minimal eesen; do mkgraph --tokens="$ctc/tokens_char.txt" --lm="$ctc/lm3.arpa.gz" --topology=$topology -o char.fst -q && fstinfo char.fst >/dev/null; done
printf '0 1 ZERO ZERO 1\n1 2 ONE ONE 2\n2 0 ONE ONE\n2\n' >grammar.txt
"$WARPFST" compile grammar.txt --isymbols=words.txt --osymbols=words.txt -o grammar.fst
mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --grammar=grammar.fst --words=words.txt --push=log --silence=SH -o digits.wfst 2>table.txt
grep -q '^push ' table.txt || fail "no row for push"
# A lexicon with silence probabilities: the same if all are that of the option. Without optional silence they have no effect, and a warning says so.
awk '{word = $1; $1 = ""; print word, 1, 0.5, 1, 1, $0}' "$ctc/lexicon_phone.txt" >silprob.txt
mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=silprob.txt --grammar=grammar.fst --words=words.txt --push=log --silence=SH -q -o silprob.wfst
"$WARPFST" randequivalent --npath=100 digits.wfst silprob.wfst || fail "silence probabilities of 0.5 give another graph"
expect 0 'silence probabilities (columns 3 to 5) are not used, as silence is not optional' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=silprob.txt --grammar=grammar.fst --words=words.txt -q -o silprob.wfst

# A lexicon or a word table alone: any sequence of the words, as by a grammar with a loop for each.
"$WARPFST" lexicon "$ctc/lexicon_phone.txt" --tokens="$ctc/tokens_phone.txt" --words-out=all.words -o L.fst
awk '$1 !~ /^(<eps>|<s>|<\/s>|#[0-9]+)$/ {print 0, 0, $2, $2} END {print 0}' all.words | "$WARPFST" compile - any.fst
mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --grammar=any.fst --words=all.words -q -o looped.wfst
mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --words-out=again.words -o alone.wfst 2>table.txt
grep -q '^G  *1 ' table.txt || fail "no row for G: $(cat table.txt)"
cmp all.words again.words
"$WARPFST" equal looped.wfst alone.wfst || fail "a lexicon alone gives another graph than a grammar with loops"
printf '<eps> 0\nTWO 1\nONE 2\n' >list.words
"$WARPFST" lexicon --spell=list.words --tokens="$ctc/tokens_char.txt" --lexicon-out=list.lexicon -o L2.fst
mkgraph --tokens="$ctc/tokens_char.txt" --words=list.words -q -o spelled.wfst
mkgraph --tokens="$ctc/tokens_char.txt" --words=list.words --lexicon=list.lexicon -q -o read.wfst
"$WARPFST" equal spelled.wfst read.wfst
printf 'two T UW\n' >one.lexicon
expect 2 'the lexicon one.lexicon and the word list have no word in common' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=one.lexicon --words=list.words -o y.wfst
printf 'TWO T UW\nTEN T EH N\n' >one.lexicon
expect 0 'words of the lexicon that the word list lacks: 1' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=one.lexicon --words=list.words -o y.wfst
grep -q "warning: words of the word list that the lexicon lacks, which cannot be found (1 of 2, 50.0%): 'ONE'" err.txt || fail "$(cat err.txt)"
rm y.wfst

# info tells a token graph, and how large the graph is that other formats hold. Those who make that of many arcs are warned.
frames() { # GRAPH
  "$WARPFST" info --json "$1" >info.json && "$WARPFST" convert "$1" frames.fst 2>warning.txt && "$WARPFST" info --json frames.fst >frames.json
  python3 -c "
import json
token, frames = json.load(open('info.json')), json.load(open('frames.json'))
ctc = token['ctc']
assert frames['ctc'] is None and (ctc['frame_states'], ctc['frame_arcs']) == (frames['states'], frames['arcs']), (ctc, frames['states'], frames['arcs'])
assert token['properties']['word_aligner'] and not frames['properties']['word_aligner']
print(ctc['topology'], ctc['tokens'], ctc['blank'], ctc['blank_label'], *ctc['classes'])"
}
[ "$(frames alone.wfst)" = 'correct 40 <blk> 1' ] || fail "info of a lexicon's graph: $(cat info.json)"
[ "$(frames digits.wfst)" = 'correct 40 <blk> 1' ] || fail "info of a grammar's graph: $(cat info.json)"
{ echo 'A 0'; echo '<blank> 1'; seq 2 4 | sed 's/.*/T& &/'; } >few.txt
mkgraph --tokens=few.txt -q -o few.wfst
[ "$(frames few.wfst)" = 'correct 5 <blank> 2' ] || fail "info of a graph of tokens: $(cat info.json)"
[ ! -s warning.txt ] || fail "a small graph is warned about: $(cat warning.txt)"
"$WARPFST" info few.wfst >info.txt
grep -q '^CTC topology  *correct, kept as its token graph$' info.txt && grep -q '^blank  *<blank> (label 2)$' info.txt &&
  grep -q '^the graph that reads frames  *5 states, 25 arcs$' info.txt && grep -q '^word aligner  *yes$' info.txt || fail "info: $(cat info.txt)"
printf 'A A\nB T2 T3\n' >few.lexicon
mkgraph --tokens=few.txt --lexicon=few.lexicon --classes='<c>,<d>' -q -o open.wfst
"$WARPFST" info open.wfst >info.txt
grep -q '^classes of words  *<c>$' info.txt && grep -q '^  *<d>$' info.txt && grep -q '^the graph that reads frames  *in native files only$' info.txt || fail "info: $(cat info.txt)"
mkgraph --tokens=few.txt --topology=compact -q -o compact.wfst
"$WARPFST" info --json compact.wfst | grep -q '"ctc": null' || fail "a compact graph is taken for a token graph"
{ echo '<blk> 0'; seq 3299 | sed 's/.*/t& &/'; } >many.txt
mkgraph --tokens=many.txt -q -o many.wfst 2>warning.txt
[ ! -s warning.txt ] || fail "a native file is warned about: $(cat warning.txt)"
expect 0 "warning: the graph that reads frames has 3300 states and some 11 million arcs; .* has 3299 arcs, and topology 'compact'" "$WARPFST" convert many.wfst /dev/null

# 5. T and L alone.
"$WARPFST" topology --tokens="$ctc/tokens_phone.txt" --type=correct -o T.fst
fstinfo T.fst >info.txt
grep -q '# of arcs  *1600' info.txt || fail "T has other than 40 x 40 arcs"
"$WARPFST" lexicon "$ctc/lexicon_phone.txt" --tokens="$ctc/tokens_phone.txt" --words-out=words2.txt --lexicon-out=again.txt -o L.fst
cmp words.txt words2.txt
diff again.txt <(tr '\t' ' ' <"$ctc/lexicon_phone.txt")
"$WARPFST" lexicon --spell=words.txt --tokens="$ctc/tokens_char.txt" --spelling=chars --lexicon-out=char.txt -o L2.fst
diff char.txt "$ctc/lexicon_char.txt"

# 6. Errors name the file and line.
printf 'A AH\nB XX\n' >bad.txt
expect 3 "bad.txt:2: word 'B': 'XX' is not in the token table" mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=bad.txt --lm="$ctc/lm3.arpa.gz" -o x.wfst
expect 0 'words skipped because of unknown tokens: 1' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=bad.txt --unknown=skip --lm="$ctc/lm3.arpa.gz" -o x.wfst
printf 'QQQQ AH\n' >foreign.txt
expect 2 "no word in common.* The lexicon has 'QQQQ', the language model others" mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon=foreign.txt --lm="$ctc/lm3.arpa.gz" -o y.wfst
[ ! -e y.wfst ] || fail "a failed run left a file"
expect 4 'compose L o G' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --max-states=1000 -o y.wfst
expect 3 'nothere' mkgraph --tokens=nothere --lm="$ctc/lm3.arpa.gz" -o y.wfst
! mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --device=gpu:x -o y.wfst 2>err.txt || fail "--device=gpu:x is accepted"
grep -q 'gpu:x' err.txt || fail "--device=gpu:x: $(cat err.txt)"
expect 2 '--tokens is required' mkgraph --lm=x -o y.wfst
expect 2 'classes needs --lexicon, --lm, --grammar, --phrases or --words' mkgraph --tokens=x --classes='<c>' -o y.wfst
expect 2 '--lm and --grammar exclude each other' mkgraph --tokens=x --lexicon=x --lm=x --grammar=x -o y.wfst
expect 2 "unknown subcommand 'hclg'" "$WARPFST" mkgraph hclg
expect 3 'keep' mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --keep-steps=/proc/keep -o y.wfst
expect 2 "CTC needs a blank, and the option 'blank' is empty" mkgraph --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --blank= -o y.wfst
expect 2 'blank is column -1 of 40; CTC needs a blank' "$WARPFST" topology --tokens="$ctc/tokens_phone.txt" --blank= -o T.fst
expect 2 "'pad'" "$WARPFST" topology --tokens="$ctc/tokens_phone.txt" --blank=pad -o T.fst

# A graph of tokens, with a language model over tokens: better than without. Unknown words are spelled by models that have not seen them.
printf '\\data\\\nngram 1=2\n\n\\1-grams:\n-99\t<s>\n-1\tKATE\n\n\\end\\\n' >endless.arpa
expect 2 "the language model has no '</s>'" mkgraph --tokens="$ctc/tokens_bpe.txt" --lexicon="$ctc/lexicon_bpe.txt" --lm=endless.arpa -o y.wfst
printf '<eps> 0\nKATE 1\nZORBLAX 2\n' >two.words
printf '0 0 1 1\n0 0 2 2\n0\n' | "$WARPFST" compile - two.fst
grep -vE '^(MARK|CALL)\b' "$ctc/lexicon_bpe.txt" > fewer.txt
expect 0 "warning: .*: 2 of 1888 words (0.1%) are not in the word table and cannot be found: 'CALL', 'MARK'; " mkgraph --tokens="$ctc/tokens_bpe.txt" --lexicon=fewer.txt --lm="$ctc/lm3.arpa.gz" -q -o y.wfst
expect 0 "warning: words of the grammar that the lexicon lacks, which cannot be found (1 of 2, 50.0%): 'ZORBLAX'" mkgraph --tokens="$ctc/tokens_bpe.txt" --lexicon="$ctc/lexicon_bpe.txt" --grammar=two.fst --words=two.words -q -o y.wfst
expect 2 'unknown-lm needs --lexicon, --lm, --grammar, --phrases or --words' mkgraph --tokens="$ctc/tokens_bpe.txt" --unknown-lm=x -o y.wfst
expect 0 'warning: --silence has no effect without --lexicon, --lm, --grammar, --phrases or --words' mkgraph --tokens="$ctc/tokens_bpe.txt" --silence=x -o tokens.wfst
"$WARPFST" lm convert "$ctc/pieces4.arpa.gz" -o pieces.wlm 2>/dev/null
errors() { "$WARPFST" decode "$@" "$ctc/logp_pieces" --join --frame-shift=0.04 --ref="$ctc/text" -o hyp.txt 2>&1 | sed -n 's/.*(\([0-9]*\) of 35 words).*/\1/p'; }
[ "$(errors tokens.wfst)" = 10 ] || fail "tokens: $(errors tokens.wfst) errors"
[ "$(errors tokens.wfst --lm=pieces.wlm --word-score=1)" -le 7 ] || fail "tokens with a model: $(errors tokens.wfst --lm=pieces.wlm --word-score=1) errors"
cut -d' ' -f1 "$ctc/lexicon_bpe.txt" | grep -vxE 'KATE|CHINA|ELEPHANT' >known.txt
"$WARPFST" lm prune "$ctc/lm3.arpa.gz" --vocabulary=known.txt -o known.arpa -q
mkgraph --tokens="$ctc/tokens_bpe.txt" --merges="$ctc/bpe_merges.txt" --lm=known.arpa --unknown-lm="$ctc/spelling3.arpa.gz" --unknown-cost=-4 -o open.wfst -q
errors open.wfst >/dev/null
grep -q '^000030024 KATE LOVES CHINA$' hyp.txt || fail "unknown words: $(cat hyp.txt)"
expect 2 "has no token 'x'" "$WARPFST" decode open.wfst "$ctc/logp_pieces" --join --separator=x
