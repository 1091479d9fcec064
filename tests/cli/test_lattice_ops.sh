# `warpfst lattice prune | determinize | nbest | rescore | convert | oracle | stats`: on small lattices, against the list of all their paths
# (lattice_ops.py); then on real speech, where the commands must agree with each other and with `warpfst decode`.
# shellcheck shell=bash
ops="$SOURCE_DIR/tests/cli/lattice_ops.py"
source "$SOURCE_DIR/tests/cli/expect.sh"
lattice() { "$WARPFST" lattice "$@"; }

# --- all paths --------------------------------------------------------------------------------------------------------------
for seed in 1 2 3; do
  beam=$((seed * 2 - 1)).5
  python3 "$ops" generate $seed
  lattice convert raw.txt --kind=compact -o compact --format=text
  lattice prune raw.txt -o pruned.raw --format=text --beam=$beam
  lattice prune compact -o pruned.compact --format=text --beam=$beam
  lattice determinize raw.txt -o det --format=text --beam=$beam
  lattice determinize compact -o - --format=text --beam=$beam | cmp - det
  lattice nbest raw.txt --n=3 --beam=1000 --words=words.txt --format=json -o nbest.json
  lattice nbest det --n=2 --words=words.txt | cmp - <(lattice nbest raw.txt --beam=$beam --n=2 --words=words.txt)
  lm=(--lm=large.arpa --old-lm=small.arpa --words=words.txt --beam=1000)
  lattice rescore raw.txt -o rescored.ark "${lm[@]}"
  lattice rescore raw.txt -o half.ark "${lm[@]}" --new-lm-scale=0.5
  lattice convert rescored.ark -o rescored --format=text
  lattice convert half.ark -o rescored.half --format=text
  lattice oracle raw.txt --words=words.txt --ref=text -o oracle.txt >oracle.out
  lattice stats raw.txt --json --each >stats.json
  python3 "$ops" check $beam 3
done

# --- real speech --------------------------------------------------------------------------------------------------------------
ctc=$SOURCE_DIR/examples/ctc
mkdir scores && cp "$ctc"/logp_phone/0000300*.npy scores/
"$WARPFST" mkgraph ctc -q --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --topology=compact -o TLG.wfst --words-out=words.txt
decode() { "$WARPFST" decode TLG.wfst scores --acoustic-scale=0.5 --lattice-beam=6 --nbest=5 "$@" 2>err.txt; }
decode --lattice=raw.ark --raw-lattice --json-lines=out.jsonl -o hyp.txt
decode --lattice=det.ark --unaligned-lattice -o - | cmp - hyp.txt
scaled=(--acoustic-scale=0.5 --acoustic-divisor=0.5)
# `decode` writes the same lattices as `lattice determinize` makes from its raw lattices, for any number of threads.
for threads in 1 3; do lattice determinize raw.ark -o - --beam=6 --num-threads=$threads "${scaled[@]}" | cmp - det.ark; done
# Summaries as JSON, and none.
printf 'MARK\n' > list
for command in "oracle --ref=$ctc/text" "mbr --ref=$ctc/text -o x" "spot --list=list -o x" "nbest -o x"; do
  read -r -a words <<< "$command"
  lattice "${words[0]}" det.ark --words=words.txt "${words[@]:1}" --json >summary 2>&1
  python3 -c '
import json, sys
[line] = [line for line in open("summary") if line.startswith("{")]
got = json.loads(line)
assert got["lattices"] == int(sys.argv[2]) and got["failed"] == 0, got
more = {"oracle": ["wer_percent", "reference_words"], "mbr": ["wer_percent", "expected_errors"], "spot": ["hits"], "nbest": []}[sys.argv[1]]
assert all(got[name] >= 0 for name in more), got' "${words[0]}" "$(find scores -name '*.npy' | wc -l)"
  lattice "${words[0]}" det.ark --words=words.txt "${words[@]:1}" -q >summary 2>&1
  if grep -vE 'times( of words|:)' summary; then echo "-q of $command" >&2; exit 1; fi
done
# The n best sequences are those of `decode`; the first is its result.
lattice nbest det.ark --n=5 --acoustic-scale=0.5 --words=words.txt --format=json -o nbest.jsonl
python3 - <<'E2'
import json
best = {}
for r in map(json.loads, open("nbest.jsonl")):
    best.setdefault(r["key"].rsplit("-", 1)[0], []).append(r["text"])
decoded = {r["key"]: [n["text"] for n in r["nbest"]] for r in map(json.loads, open("out.jsonl"))}
assert best == decoded and len(best) > 5 and sum(map(len, best.values())) > 3 * len(best)
E2
lattice nbest det.ark --n=1 --acoustic-scale=0.5 --words=words.txt | sed 's/-1 / /; s/-1$//' | cmp - <(sed 's/ $//' hyp.txt)
# Pruning in two steps equals pruning in one. Pruning with beam 0 leaves only best paths.
lattice prune raw.ark -o a.ark --beam=4 "${scaled[@]}"
lattice prune a.ark -o b.ark --beam=2 "${scaled[@]}"
lattice prune raw.ark -o - --beam=2 "${scaled[@]}" | cmp - b.ark
lattice prune det.ark -o best.ark --beam=0 "${scaled[@]}"
lattice nbest best.ark --n=1 --acoustic-scale=0.5 --words=words.txt | sed 's/-1 / /; s/-1$//' | cmp - <(sed 's/ $//' hyp.txt)
# Rescoring with the old model as the new one gives the same n-best lists.
same=(--lm="$ctc/lm3.arpa.gz" --old-lm="$ctc/lm3.arpa.gz" --words=words.txt)
lattice rescore det.ark -o same.ark "${same[@]}" "${scaled[@]}"
lattice nbest same.ark --n=5 --acoustic-scale=0.5 --words=words.txt -o same.txt
lattice nbest det.ark --n=5 --acoustic-scale=0.5 --words=words.txt | cmp - same.txt

# --- empty lattices are named, and so are lattices that an operation empties -----------------------------------------------------
printf 'one\n0\t1\t1\t0.5,0.25,1_1\n1\t0,0,\n\nempty\n\ntwo\n0\t1\t2\t0.5,0.25,1_1\n1\t0,0,\n\n' >three.txt
printf '<eps> 0\none 1\ntwo 2\n' >two.words
for command in "1 nbest three.txt --n=1" "1 mbr three.txt" "0 prune three.txt -o x.ark" "0 convert three.txt -o x.ark" "0 stats three.txt"; do
  # shellcheck disable=SC2086
  expect ${command%% *} "utterance 'empty': the lattice is empty" lattice ${command#* }
  [ "$(grep -c empty err.txt)" = 1 ] || fail "$command: $(cat err.txt)"
done
printf '\\data\\\nngram 1=3\n\n\\1-grams:\n-99\t<s>\n-1\t</s>\n-1\ttwo\n\n\\end\\\n' >two.arpa
expect 1 "utterance 'one': no path of the lattice is left" lattice rescore three.txt -o x.ark --lm=two.arpa --words=two.words
grep -q "'two'" err.txt && fail "$(cat err.txt)"

# --- errors -----------------------------------------------------------------------------------------------------------------------
expect 2 "no output given" lattice prune raw.ark
printf 'short \n0 1 1 1.5,2.5,1_2\n0 1 2 2,2.5,1_2\n1 2 1 1,2,1_2\n2 0,0,\n\n' >short.txt
lattice draw short.txt -o short.html
grep -q '<svg .* width="1200"' short.html || fail "a short lattice does not fill the page"
expect 2 "--beam is outside" lattice prune raw.ark -o x.ark --beam=-1
expect 2 "no output given" lattice determinize raw.ark
expect 2 "--n is outside" lattice nbest raw.ark --n=0
expect 2 "" lattice rescore raw.ark -o x.ark --words=words.txt
expect 3 "no_such.arpa" lattice rescore raw.ark -o x.ark --lm=no_such.arpa --words=words.txt
expect 0 "beam narrowed to .* because --max-bytes was reached" lattice determinize raw.ark -o x.ark --beam=12 --max-bytes=65536 "${scaled[@]}"
