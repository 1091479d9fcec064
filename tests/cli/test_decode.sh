# warpfst decode, end to end on real scores: expected words and costs, every format of input and output, and the same results for any number of threads
# and any batch size.
# shellcheck shell=bash
python=$SOURCE_DIR/build/venv/bin/python
examples=$SOURCE_DIR/examples
test -x "$python" || { echo "no $python: ./run test makes it from tests/python-requirements.txt"; exit 1; }
fail() { echo "FAILED: $*"; exit 1; }
decode() { "$WARPFST" decode "$@"; }

# --- hybrid HMM graphs: the words, and the costs within 0.01, of an exact Viterbi search ---------------------------------------
cat > hybrid.py <<'E2'
import json, re, sys
want = {}
for line in open(sys.argv[1]):
    words, key, cost = re.match(r'(.*) \((\S+) ([0-9.]+)\)$', line).groups()
    want[key] = words, float(cost)
got = {o['key']: o for o in map(json.loads, open(sys.argv[2]))}
assert set(got) == set(want) and len(got) == int(sys.argv[3]), (set(got), set(want))
for key, (words, cost) in want.items():
    o = got[key]
    assert o['text'] == words, (key, o['text'], words)
    assert abs(o['cost'] - cost) <= 0.01, (key, o['cost'], cost)
    assert abs(o['graph_cost'] + o['acoustic_cost'] - o['cost']) < 1e-4 and o['flags'] == ['times_estimated'], o
E2
hybrid() { # NAME OUT FLAGS...
  decode $1.wfst "$examples/hybrid/$1" --words="$examples/hybrid/$1/words.txt" --scale=-0.10239488 --acoustic-scale=0.1538 --format=json -o "$2" "${@:3}" 2> $1.log
}
for task in "coffee 8" "digits 6"; do
  set -- $task
  "$WARPFST" compile "$examples/hybrid/$1/HCLG.txt.gz" -o $1.wfst
  hybrid $1 $1.json --beam=1000 --max-active=1000000
  "$python" hybrid.py "$examples/hybrid/$1/expected" $1.json $2
  grep -q "^$2 utterances (0 narrowed), " $1.log || fail "summary of $1: $(cat $1.log)"
done
# A beam of 40 finds the same paths as one of 1000.
hybrid coffee narrow.json --beam=40
cmp coffee.json narrow.json

# OpenFst finds the best path independently of the decoder: it composes a chain of the frames' scores with the graph.
"$python" -c "
import numpy as np
m = np.load('$examples/hybrid/digits/theo_022.npy').astype('f8') * 0.10239488 * 0.1538
for t, row in enumerate(m):
    for c, cost in enumerate(row): print(t, t + 1, c + 1, c + 1, repr(float(cost)))
print(len(m))" > chain.txt
fstcompile chain.txt | fstarcsort --sort_type=olabel > chain.fst
"$WARPFST" convert digits.wfst --format=vector -o - | fstarcsort --sort_type=ilabel > digits.sorted.fst
fstcompose chain.fst digits.sorted.fst | fstshortestpath | fsttopsort > best.fst
fstshortestdistance --reverse best.fst > distance.txt
"$python" -c "
import json
o = [o for o in map(json.loads, open('digits.json')) if o['key'] == 'theo_022'][0]
cost = {l.split()[0]: float(l.split()[1]) for l in open('distance.txt')}['0']
assert abs(o['cost'] - cost) < 1e-3, (o['cost'], cost)"
fstproject --project_type=output best.fst | fstrmepsilon | fstprint --osymbols="$examples/hybrid/digits/words.txt" | awk 'NF >= 4 {print $4}' | paste -sd ' ' > best.txt
grep -qx "three eight seven five" best.txt || fail "OpenFst's best path: $(cat best.txt)"

# OpenFst also makes the lattice: all paths of the composition within the beam. Ours must have as many states and arcs.
mkdir one && cp "$examples/hybrid/digits/theo_022.npy" one/
fstcompose chain.fst digits.sorted.fst | fstconnect > all_paths.fst
for beam in 2 8 12; do
  decode digits.wfst one --scale=-0.10239488 --acoustic-scale=0.1538 --beam=1000 --max-active=1000000 --lattice-beam=$beam -o one.txt --summary=one.json 2> /dev/null
  fstprune --weight=$beam all_paths.fst | fstinfo > pruned.info
  "$python" -c "
import json, re
o, info = json.load(open('one.json')), open('pruned.info').read()
want = tuple(int(re.search('# of %s +([0-9]+)' % what, info)[1]) for what in ('states', 'arcs'))
assert (o['lattice_states'], o['lattice_arcs']) == want and want[1] > 500, (o, want)"
done

# --- CTC: 200 utterances, graph built here --------------------------------------------------------------------------------------
ctc=$examples/ctc
"$WARPFST" mkgraph ctc -q --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --topology=compact \
  --words-out=words.txt -o TLG.wfst
flags=(--acoustic-scale=0.7 --max-active=7000 --frame-shift=0.04)
decode TLG.wfst "$ctc/logp_phone" "${flags[@]}" --ref="$ctc/text" -o all.txt --summary=all.json 2> all.log
# Exactly 390 errors in 1,040 words. If a change to the code changes even one word of an utterance, this test fails, and the change must be explained.
grep -qx "WER 37.50% (390 of 1040 words)" all.log || fail "$(cat all.log)"
cmp all.txt "$SOURCE_DIR/tests/data/decode/ctc_phone_compact.txt" || fail "words of the 200 utterances changed"
"$python" -c "
import json
o = json.load(open('all.json'))
assert o['device'] == 'cpu' and o['gpus'] == 0 and 'gpu_bytes' not in o and o['overflow'] == 0 and o['died'] == 0, o
assert o['utterances'] == 200 and o['failed'] == 0 and o['not_final'] == 0 and o['words'] == 1040 and o['wer'] == 37.5, o
assert abs(o['hours'] * 3600 / o['decode_seconds'] / o['rtfx'] - 1) < 0.01 and abs(o['hours'] * 90000 / o['decode_seconds'] / o['frames_per_second'] - 1) < 0.01, o"
# --ref agrees with warpfst score.
cut -d ' ' -f 1 all.txt > keys
awk 'NR == FNR {keys[$1]; next} $1 in keys' keys "$ctc/text" > ref.txt
"$WARPFST" score ref.txt all.txt | grep -xF '%WER 37.50 [ 390 / 1040, 38 ins, 47 del, 305 sub ]' > /dev/null || fail "score"

# From here on only 20 utterances, so that the test is fast under sanitizers.
mkdir npy few
head -120 keys | awk 'NR % 6 == 0' > some
while read -r key; do cp "$ctc/logp_phone/$key.npy" npy/; done < some
decode TLG.wfst npy "${flags[@]}" --format=json -o want.json 2> /dev/null
awk 'NR == FNR {keys[$1]; next} $1 in keys' some all.txt > want.txt
"$python" -c "
import json
assert [' '.join([o['key'], o['text']]).rstrip() for o in map(json.loads, open('want.json'))] == [l.rstrip() for l in open('want.txt')]"
same() { # NAME ARGUMENTS...: decoding gives the same JSON, byte for byte
  decode "${@:2}" "${flags[@]}" --format=json -o have.json 2> log || fail "$1: $(cat log)"
  cmp want.json have.json || fail "$1 changes the result"
}

# any number of threads, any batches, any order
for threads in 1 2 5; do same "--num-threads=$threads" TLG.wfst npy --num-threads=$threads; done
for batch in 1 7; do same "--batch=$batch" TLG.wfst npy --batch=$batch; done
# with lattices: the same words and costs, and the same lattices for all numbers of threads, batch sizes and pruning intervals
for flags_of_lattice in "--num-threads=1" "--num-threads=3 --batch=7" "--lattice-prune-interval=1" "--lattice-prune-interval=1000000"; do
  same "a lattice, $flags_of_lattice" TLG.wfst npy --lattice-beam=6 --summary=lattice.json $flags_of_lattice
  "$python" -c "
import json
o = json.load(open('lattice.json'))
assert (o['lattice_states'], o['lattice_arcs']) == (25168, 42073) and abs(o['lattice_density'] - 14.3658) < 1e-4, o"
  grep -q "^lattices: 25168 states, 42073 arcs, density " log || fail "$(cat log)"
done
awk '{print $1, "npy/" $1 ".npy"}' some > in_order.scp
"$python" -c "
import random
lines = open('in_order.scp').readlines(); random.Random(3).shuffle(lines); open('shuffled.scp', 'w').writelines(lines)"
cmp -s in_order.scp shuffled.scp && fail "not shuffled"
same "an scp file" TLG.wfst scp:in_order.scp
decode TLG.wfst shuffled.scp "${flags[@]}" --format=json -o shuffled.json 2> /dev/null
sort shuffled.json | cmp - <(sort want.json) || fail "order changes the result"
cut -d '"' -f 4 shuffled.json | cmp - <(cut -d ' ' -f 1 shuffled.scp) || fail "results are not in the order of the input"

# every format of the graph; OpenFst's formats do not store the spelling of words in tokens, so that must be given
spelled=(--tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt")
for format in vector const native; do
  "$WARPFST" convert TLG.wfst --format=$format -o TLG.$format
  same "graph as $format" TLG.$format npy "${spelled[@]}"
done
gzip -c TLG.const > TLG.gz
gzip -c TLG.native > TLG.native.gz
same "gzipped graph" TLG.native.gz npy
same "gzipped OpenFst graph" TLG.gz npy "${spelled[@]}"
same "graph from standard input" - npy "${spelled[@]}" < TLG.vector

# every format of the scores
"$WARPFST" matrix copy npy -o float.ark --scp=float.scp 2> /dev/null
"$WARPFST" matrix copy npy -o text.ark --format=text 2> /dev/null
"$python" -c "
import kaldiio, numpy as np
m = {k: np.load('npy/%s.npy' % k) for k in open('some').read().split()}
kaldiio.save_ark('double.ark', {k: v.astype('f8') for k, v in m.items()})"
gzip -c float.ark > float.ark.gz
for scores in float.ark float.scp text.ark double.ark float.ark.gz ark:float.ark; do same $scores TLG.wfst $scores; done
same "standard input" TLG.wfst - < float.ark
same "gzipped standard input" TLG.wfst - < float.ark.gz
mkdir zipped
while read -r key; do gzip -c npy/$key.npy > zipped/$key.npy; done < some
same "gzipped npy" TLG.wfst zipped
head -10 in_order.scp > first.scp
tail -10 in_order.scp > last.scp
same "two sources" TLG.wfst first.scp last.scp
# columns in another order, with a table
"$python" -c "
import kaldiio, numpy as np, random
order = list(range(40)); random.Random(1).shuffle(order)
kaldiio.save_ark('mixed.ark', {k: np.load('npy/%s.npy' % k).astype('f4')[:, order] for k in open('some').read().split()})
open('columns', 'w').writelines('%d %d\n' % (column + 1, place) for place, column in enumerate(order))"
same "a table of columns" TLG.wfst mixed.ark --columns=columns
# several labels for one column, like Kaldi's transition-ids: label l becomes 2l or 2l - 1, depending on whether the state's number is even
"$WARPFST" print TLG.wfst --numeric --keep-state-numbering | awk -v OFS='\t' 'NF > 3 && $3 > 0 {$3 = 2 * $3 - $1 % 2} {print}' > doubled.txt
"$WARPFST" compile doubled.txt --keep-state-numbering -o doubled.wfst
awk 'BEGIN {for (label = 1; label <= 80; label++) print label, int((label - 1) / 2)}' > halved
decode doubled.wfst npy --columns=halved --words=words.txt "${flags[@]}" --format=json -o have.json 2> log || fail "labels that share columns: $(cat log)"
"$python" -c "
import json
want, have = ([json.loads(line) for line in open(name)] for name in ('want.json', 'have.json'))
said = lambda o: {k: v for k, v in o.items() if k not in ('words', 'flags')} # no lexicon knows the new labels, so word times are estimates
assert all('times_estimated' in o['flags'] for o in have if o['text'])
assert [said(o) for o in have] == [said(o) for o in want]" || fail "labels that share columns change the result"

# --- all output formats agree -----------------------------------------------------------------------------------------------------
for format in text plain ctm trn; do decode TLG.wfst npy "${flags[@]}" --format=$format -o out.$format 2> /dev/null; done
cmp out.text want.txt
echo '<eps> 0' > no_words.txt # words that are not in the table appear as numbers
decode TLG.wfst npy "${flags[@]}" --words=no_words.txt -o numbers.txt 2> /dev/null
cat > forms.py <<'E2'
import json
text = [l.rstrip('\n').split(' ') for l in open('out.text')]
objects = list(map(json.loads, open('want.json')))
assert [o['key'] for o in objects] == [l[0] for l in text]
assert [o['text'].split() for o in objects] == [l[1:] for l in text]
assert [l.split() for l in open('out.plain')] == [l[1:] for l in text]
assert [l.rstrip('\n') for l in open('out.trn')] == [' '.join(l[1:] + ['(%s)' % l[0]]) for l in text]
ctm = [l.split() for l in open('out.ctm')]
assert [(l[0], l[4]) for l in ctm] == [(o['key'], w['word']) for o in objects for w in o['words']]
assert all(l[1] == '1' for l in ctm)
for l, w in zip(ctm, [w for o in objects for w in o['words']]):
    assert abs(float(l[2]) - w['start']) < 1e-3 and abs(float(l[2]) + float(l[3]) - w['end']) < 2e-3, (l, w)
for o in objects:
    assert [w['word'] for w in o['words']] == o['text'].split()
    times = [0] + [x for w in o['words'] for x in (w['start'], w['end'])] + [o['frames'] * 0.04 + 1e-6]
    assert times == sorted(times), o
    assert abs(o['graph_cost'] + o['acoustic_cost'] - o['cost']) < 1e-4
numbers = [l.split() for l in open('numbers.txt')]
assert [len(l) for l in numbers] == [len(l) for l in text] and all(w.isdigit() for l in numbers for w in l[1:])
E2
"$python" forms.py
# Where times are estimates, words end before the blanks that follow them if the blank is known: from the graph's token table, or from --blank. Words and costs stay
# the same. Exact times do not change.
same "exact times with --blank" TLG.wfst npy --blank=0
"$WARPFST" convert TLG.vector TLG.bare --drop_symbols
bare=("${flags[@]}" --min-active=20) # which is the default of graphs that are known to be CTC graphs
decode TLG.bare npy "${bare[@]}" --words=words.txt --format=json -o estimated.json 2> /dev/null
decode TLG.bare npy "${bare[@]}" --words=words.txt --format=json --blank=0 -o blank.json 2> /dev/null
decode TLG.vector npy "${bare[@]}" --format=json -o known.json 2> /dev/null
cmp blank.json known.json
decode TLG.vector npy "${bare[@]}" --format=json --blank=3 -o /dev/null 2> stderr.txt
grep -q "blank is column 3, but the blank of the graph is column 0" stderr.txt
"$python" -c "
import json
a, b = (list(map(json.loads, open(n))) for n in ('estimated.json', 'blank.json'))
shorter = 0
for x, y in zip(a, b):
    assert x['text'] == y['text'] and x['cost'] == y['cost']
    for v, w in zip(x['words'], y['words']):
        assert v['start'] == w['start'] and (w['end'] == v['end'] or w['start'] + 0.039 < w['end'] < v['end']), (v, w)
        shorter += w['end'] < v['end']
assert shorter > 25, shorter"
# results on standard output are complete and in order; the summary goes to standard error
decode TLG.wfst npy "${flags[@]}" --batch=7 > stdout.txt 2> stderr.txt
cmp stdout.txt want.txt
test "$(grep -vc '^narrowed:' stderr.txt)" = 1
decode TLG.wfst npy "${flags[@]}" --batch=7 2>&1 | sed -n 1,20p | cmp - want.txt
# a wider beam never gives a higher cost
for beam in 6 10 40; do decode TLG.wfst npy "${flags[@]}" --beam=$beam --format=json -o beam.$beam 2> /dev/null; done
"$python" -c "
import json
runs = [[json.loads(l)['cost'] for l in open(n)] for n in ('beam.6', 'beam.10', 'want.json', 'beam.40')]
assert len(runs[0]) == 20 and any(a > b for a, b in zip(runs[0], runs[3]))
for narrow, wide in zip(runs, runs[1:]): assert sum(narrow) >= sum(wide) - 1e-6
assert all(c >= d - 1e-6 for c, d in zip(runs[0], runs[3]))"
