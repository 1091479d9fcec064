# Words added at run time: against OpenFst's fstreplace on a small grammar, for whole utterances, chunks, and single utterances; errors in lists; real speech.
# shellcheck shell=bash
fail() { echo "$*" >&2; exit 1; }
printf '<eps> 0\ngo 1\nto 2\n<place> 3\n' >words.txt
printf '<blk> 0\na 1\nr 2\no 3\nm 4\ng 5\n' >tokens.txt
printf 'go g o\nto m o\n' >lexicon.txt
cat >grammar.txt <<'END'
0 1 go go 0.5
1 2 to to 0.25
2 3 <place> <place> 1
0 3 <place> <place> 2
3 1 go go 0.125
3 0.25
1 3
END
"$WARPFST" compile grammar.txt --isymbols=words.txt --osymbols=words.txt -o grammar.fst
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --grammar=grammar.fst --words=words.txt --classes='<place>' --topology=compact -o graph.fst -q
python3 - <<'END'
import random
random.seed(5)
with open('scores.ark', 'w') as ark:
    for u in range(300):
        rows = [' '.join(f'{-8 * random.random():.3f}' for _ in range(6)) for _ in range(random.randint(4, 14))]
        ark.write(f'u{u:03d}  [\n' + '\n'.join(rows) + ' ]\n')
END
decode() { "$WARPFST" decode graph.fst scores.ark "$@" 2>log || { cat log >&2; return 1; }; }

# 1. A list with spelled words, costs, a phrase of two words, given pronunciations, and a word twice. fstreplace inserts the same sub-graph: a chain of
# states for each line.
printf '# places\nroma\nmara\t0.5\na go\t0.25\tr a m\tg o\noro\t\to r o\nroma\t2\n' >list
decode --add-words list --words-out all.txt -o added.txt
python3 - >chains.txt <<'END'
tokens, words = ({line.split()[0]: int(line.split()[1]) for line in open(name)} for name in ('tokens.txt', 'all.txt'))
arcs, states = [], 1
def new():
    global states
    states += 1
    return states
for said, cost in (([('roma', 'r o m a')], 0), ([('mara', 'm a r a')], .5), ([('a', 'r a m'), ('go', 'g o')], .25), ([('oro', 'o r o')], 0), ([('roma', 'r o m a')], 2)):
    steps = [(words[word] if i == 0 else 0, tokens[token] + 1) for word, spelled in said for i, token in enumerate(spelled.split())]
    at = 0
    for k, (word, label) in enumerate(steps):
        held, last = new(), k + 1 == len(steps)
        after = 1 if last else new()
        arcs += [(at, held, word, label, cost if k == 0 else 0), (held, held, 0, label, 0), (held, after, 0, 0, 0)]
        arcs += [] if last else [(after, after, 0, tokens['<blk>'] + 1, 0)]
        at = after
arcs.sort()
print('\n'.join(' '.join(map(str, arc)) for arc in arcs) + '\n1')
END
fstcompile chains.txt chains.fst # inverted, so that words are its input: fstreplace finds nonterminals by output label
fstsymbols --clear_isymbols --clear_osymbols graph.fst | fstinvert >root.fst
fstreplace --call_arc_labeling=neither --return_arc_labeling=neither root.fst 99 chains.fst 7 | fstinvert >whole.fst
"$WARPFST" decode whole.fst scores.ark --words all.txt -o static.txt 2>log
cmp added.txt static.txt || fail "the words differ from those of OpenFst's graph"
[ "$(grep -c 'roma\|mara\|oro\|a go' added.txt)" -gt 150 ] || fail "few added words are recognized"
decode --words words.txt | grep 'roma\|place' > /dev/null && fail "the graph without added words gives an added word"

# 2. Whole utterances and chunks; lattices and n-best; boosts of added words; an utterance's own list in addition to the common one.
decode --add-words list --format=json >whole.json
decode --add-words list --format=json --chunk=0.02 >chunks.json
cmp whole.json chunks.json || fail "chunks differ"
decode --add-words list --lattice=lat.ark --nbest=3 --format=json >best.json
[ "$(grep -c '"nbest"' best.json)" -gt 250 ] || fail "no alternatives"
printf 'mara 4\n' >boost
decode --add-words list --boost boost -o boosted.txt
[ "$(grep -c mara boosted.txt)" -gt "$(grep -c mara added.txt)" ] || fail "a boost for an added word does nothing"
printf 'rag\n' >'more'
printf 'u003 more\nu007 more\n' >table
decode --add-words list --utterance-words table -o each.txt
cat list more >both
decode --add-words both -o both.txt
diff <(grep 'u003\|u007' both.txt) <(grep 'u003\|u007' each.txt) || fail "an utterance lacks its own words"
diff <(grep -v 'u003\|u007' added.txt) <(grep -v 'u003\|u007' each.txt) || fail "an utterance has words of another one's list"

# 3. By default the graph follows the definition of CTC: as a graph that has the words from the start.
cp words.txt all_words.txt
printf 'roma 4\nmara 5\na 6\noro 7\n' >>all_words.txt
{ cat lexicon.txt; printf 'roma r o m a\nmara m a r a\na r a m\noro o r o\n'; } >all_lexicon.txt
awk '$3 != "<place>" {print; next}
  {n = split("roma:0 mara:0.5 oro:0", said, " ")
   for (i = 1; i <= n; i++) {split(said[i], part, ":"); print $1, $2, part[1], part[1], $5 + part[2]}
   print $1, 10 + $1, "a", "a", $5 + 0.25; print 10 + $1, $2, "go", "go", 0}' grammar.txt >all_grammar.txt
"$WARPFST" compile all_grammar.txt --isymbols=all_words.txt --osymbols=all_words.txt -o all_grammar.fst
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --grammar=grammar.fst --words=words.txt --classes='<place>' -o graph.wfst -q 2>log
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=all_lexicon.txt --grammar=all_grammar.fst --words=all_words.txt -o all.wfst -q
[ ! -s log ] || fail "a graph with classes warns: $(cat log)"
"$WARPFST" decode graph.wfst scores.ark --add-words list -o exact.txt 2>log
"$WARPFST" decode all.wfst scores.ark -o built.txt 2>log
cmp exact.txt built.txt || fail "the words differ from those of a graph that has them from the start"
cmp -s exact.txt added.txt && fail "topology compact gives the same words: nothing is tested"
[ "$(grep -c 'roma\|mara\|oro\|a go' exact.txt)" -gt 150 ] || fail "few added words are recognized"
"$WARPFST" decode graph.wfst scores.ark --add-words list --format=json >whole.json 2>log
"$WARPFST" decode graph.wfst scores.ark --add-words list --format=json --chunk=0.02 >chunks.json 2>log
cmp whole.json chunks.json || fail "chunks differ"

# 4. Errors.
wrong() { # CODE PATTERN ARGUMENTS...
  local code=$1 pattern=$2 got=0
  shift 2
  "$WARPFST" decode graph.fst scores.ark "$@" >out 2>log || got=$?
  [ "$got" = "$code" ] && grep -q "$pattern" log || fail "decode $*: exit $got, $(cat log)"
}
printf 'rome\n' >bad1
printf 'roma\tx\n' >bad2
printf 'roma\t\tr o q\n' >bad3
printf 'roma\t\tr o\tm a\n' >bad4
printf 'roma\t\tr <blk> o\n' >bad5
printf 'u1\n' >bad6
wrong 3 "'rome' cannot be spelled" --add-words bad1
wrong 3 'bad2:1: expected a phrase' --add-words bad2
wrong 3 "bad3:1: unknown token 'q'" --add-words bad3
wrong 3 'bad4:1: more pronunciations' --add-words bad4
wrong 2 'blank in a pronunciation' --add-words bad5
wrong 3 'bad6:1: expected' --utterance-words bad6
wrong 3 'missing' --add-words missing
wrong 2 "no class '<city>'" --add-words list --add-to '<city>'
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --grammar=grammar.fst --words=words.txt --classes='<place>' --topology=minimal -o no.fst -q 2>log && fail "topology minimal"
grep -q "need 'compact'" log
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --grammar=grammar.fst --words=words.txt --classes='<place>' -o no.fst -q 2>log && fail "format of OpenFst"
grep -q "only native files hold it" log || fail "$(cat log)"
[ ! -e no.fst ] || fail "half a file"
"$WARPFST" compile - no.fst <<<"0 0 1 1"
"$WARPFST" decode no.fst scores.ark --words words.txt --add-words list >out 2>log && fail "no class"
grep -q 'no class for added words' log

# 5. Real speech: the lexicon lacks the words that are rare in the references. Each utterance adds its own rare words in place of <unk>.
ctc=$SOURCE_DIR/examples/ctc
python3 - "$ctc" <<'END'
import collections, sys
ctc = sys.argv[1]
texts = {line.split()[0]: line.split()[1:] for line in open(f'{ctc}/text')}
import pathlib
heard = sorted(path.stem for path in pathlib.Path(f'{ctc}/logp_phone').glob('*.npy'))
count = collections.Counter(word for key in heard for word in set(texts[key]))
rare = {word for word in count if count[word] <= 2}
spoken = collections.defaultdict(list)
for line in open(f'{ctc}/lexicon_phone.txt'):
    spoken[line.split()[0]].append(line.split(None, 1)[1].strip())
with open('common.txt', 'w') as out:
    out.writelines(f'{word} {tokens}\n' for word in spoken if word not in rare for tokens in spoken[word])
with open('lists', 'w') as table:
    for key in heard:
        own = sorted(set(texts[key]) & rare & set(spoken))
        if own:
            open(f'{key}.words', 'w').writelines(f'{word}\t\t{tokens}\n' for word in own for tokens in spoken[word])
            table.write(f'{key} {key}.words\n')
END
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon=common.txt --lm="$ctc/lm3.arpa.gz" --classes='<unk>' -o unk.wfst -q
settings=(unk.wfst "$ctc/logp_phone" --acoustic-scale=0.7 --beam=12 --ref="$ctc/text" --json)
wer() { "$WARPFST" decode "${settings[@]}" "$@" -o hyp.txt 2>summary.json; grep -o '"wer": [0-9.]*' summary.json | cut -d' ' -f2; }
bare=$(wer) added=$(wer --utterance-words lists)
echo "words left out: WER $bare; added: $added"
awk -v a="$bare" -v b="$added" 'BEGIN {exit !(b > 20 && b < 35 && a > 45)}' || fail "added words do not help"

# 6. Through <unk>, a word without a cost has -0.6 for each letter, at most 12; through another class 0.
printf 'MALENA\t\tM AH L IY N AH\nNEW PORT\t\tN UW\tP AO R T\nINCOMPREHENSIBLE\t1\tIH N K AA M\nINCOMPREHENSIBLY\t\tIH N K AH M\n' >free.words
printf 'MALENA\t-3.6000001\tM AH L IY N AH\nNEW PORT\t-4.2000003\tN UW\tP AO R T\nINCOMPREHENSIBLE\t1\tIH N K AA M\nINCOMPREHENSIBLY\t-7.2000003\tIH N K AH M\n' >given.words
sed 's/\t\t/\t0\t/' free.words >zero.words
for list in free given zero; do
  "$WARPFST" decode unk.wfst "$ctc/logp_phone" --acoustic-scale=0.7 --beam=12 --add-words=$list.words --add-to='<unk>' --format=json -o $list.json 2>log || fail "$(cat log)"
done
cmp free.json given.json || fail "costs of words through <unk>"
cmp -s free.json zero.json && fail "costs of words through <unk> do nothing"
sed 's/\t-.*//' list | cut -f1 >free
sed 's/$/\t0/' free >given
decode --add-words free --format=json >free.json
decode --add-words given --format=json >given.json
cmp free.json given.json || fail "costs of words through a class"

# 7. Names that stand for no text are refused with their line. Comments that may be words are noted, once for a list.
for name in '<eps>' '<s>' '<unk>' 'roma #0' 'roma <x> mara'; do
  printf '# places\nroma\n%s\n' "$name" >bad
  ! decode --add-words bad 2>/dev/null || fail "'$name' is added"
  grep -q "bad:3: '[^ ]*' stands for no text and cannot be a word that is spelled" log || fail "'$name': $(cat log)"
done
printf 'mara #12\t1\tm a r a\tg o\n' >bad
! decode --add-words bad 2>/dev/null || fail "#12 is added"
grep -q "bad:1: '#12' stands for no text and cannot be a word$" log || fail "#12: $(cat log)"
printf '<x>\t1\tm a r a\nroma\t0\n' >tagged
decode --add-words tagged -o /dev/null
printf '# a note\n##\nroma\t0\n#0\n#tag\n' >noted
printf 'roma\t0\n' >plain
decode --add-words noted --words-out noted.txt -o noted.out
[ "$(grep -c 'is a comment' log)" = 1 ] && grep -q "warning: noted:4: '#0' begins with # and is a comment, no word" log || fail "a comment is not noted once: $(cat log)"
decode --add-words plain -o plain.out
grep -q comment log && fail "a comment is noted where there is none"
cmp noted.out plain.out || fail "comments change the words"
decode --boost noted -o /dev/null
[ "$(grep -c "noted:4: '#0' begins with # and is a comment" log)" = 1 ] || fail "boosts: $(cat log)"
