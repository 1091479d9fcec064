# Lattice archives on the command line, checked with an independent reader and with Kaldi's own code (lattice_kaldi.py; kaldifst is in
# tests/python-requirements.txt).
# shellcheck shell=bash
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
kaldi="$SOURCE_DIR/tests/cli/lattice_kaldi.py"
"$python" -c 'import kaldifst' || { echo "no kaldifst for $python: ./run test installs tests/python-requirements.txt"; exit 1; }
source "$SOURCE_DIR/tests/cli/expect.sh"
lattice() { "$WARPFST" lattice "$@"; }
coffee=$SOURCE_DIR/examples/hybrid/coffee

# 1. Lattices of real speech: raw from the decoder, compact by conversion; binary, text, script.
"$WARPFST" compile "$coffee/HCLG.txt.gz" HCLG.wfst
decode() { "$WARPFST" decode HCLG.wfst "$coffee" --scale=-0.10239488 --acoustic-scale=0.125 --words="$coffee/words.txt" -o hyp.txt "$@" 2>summary.txt; }
decode --lattice=lat.ark --raw-lattice --lattice-beam=4
for kind in raw compact; do
  lattice convert lat.ark -o $kind.ark --scp=$kind.scp --kind=$kind
  lattice convert lat.ark -o $kind.txt --format=text --kind=$kind
  "$python" "$kaldi" compare $kind.ark $kind.scp $kind.txt
  for source in $kind.txt ark:$kind.txt ark,t:$kind.txt $kind.scp scp:$kind.scp; do lattice convert $source -o - | cmp - $kind.ark || fail "$source is not $kind.ark"; done
  gzip -c $kind.ark >$kind.gz
  lattice convert $kind.gz -o - | cmp - $kind.ark
  lattice convert - -o - <$kind.gz | cmp - $kind.ark
  lattice convert - -o - --words="$coffee/words.txt" --format=text <$kind.ark >$kind.words.txt
  lattice convert $kind.words.txt --input-words="$coffee/words.txt" -o - | cmp - $kind.ark
  expect 1 "or give a word table" lattice convert ark:$kind.words.txt -o /dev/null
done
cmp lat.ark raw.ark
lattice convert compact.ark --kind=raw -o - | cmp - raw.ark
# Acoustic costs are written without the search's scale, as in Kaldi. With the scale applied they equal the decoder's (exactly, because 0.125 is a power of 2).
decode --lattice=lat.ark --raw-lattice --lattice-beam=4 --format=json
lattice convert lat.ark --acoustic-scale=0.125 --format=text -o best.txt
"$python" "$kaldi" best best.txt hyp.txt

# 2. Random lattices of all types with states in any order, made with Kaldi's code.
for seed in 1 2 3; do
  "$python" "$kaldi" generate $seed theirs.ark
  lattice convert theirs.ark -o ours.ark --scp=ours.scp
  lattice convert theirs.ark -o ours.txt --format=text
  "$python" "$kaldi" same theirs.ark ours.ark
  "$python" "$kaldi" compare ours.ark ours.scp ours.txt
done

# 3. Word times from Kaldi's phones, for models with position-dependent phones.
for seed in 0 3 6; do
  "$python" "$SOURCE_DIR/tests/cli/kaldi_oracle.py" $seed k$seed
  "$WARPFST" decode k$seed/HCLG.fst k$seed/scores.ark --am=k$seed/final.mdl --words=k$seed/lang/words.txt --lattice=k$seed/lat.ark --lattice-beam=12 --beam=100 -o hyp.txt 2>err.txt
  lattice convert k$seed/lat.ark --am=k$seed/final.mdl --lang=k$seed/lang -o k$seed/aligned.ark 2>err.txt
  ! grep . err.txt || fail "a warning about word times"
  "$python" "$kaldi" times k$seed k$seed/aligned.ark
done
expect 3 "need phones with word positions" lattice convert k0/lat.ark --am=k0/final.mdl -o x.ark

# 4. Results: CTM, JSON lines, n-best, minimum Bayes risk, oracle, statistics, on CTC scores of real speech.
ctc=$SOURCE_DIR/examples/ctc
mkdir scores && cp "$ctc"/logp_phone/0000300*.npy scores/
"$WARPFST" mkgraph ctc -q --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="$ctc/lm3.arpa.gz" --topology=compact -o TLG.wfst --words-out=words.txt
"$WARPFST" decode TLG.wfst scores --acoustic-scale=0.5 --frame-shift=0.04 --lattice=det.ark --unaligned-lattice --confidence-scale=0.5 --nbest=5 --ctm=out.ctm --json-lines=out.jsonl -o hyp.txt 2>err.txt

# Word times are the same in every output format and by every method. A graph without spellings needs a lexicon, or its times are flagged as estimates.
decode_times() { "$WARPFST" decode "$@" scores --acoustic-scale=0.5 --frame-shift=0.04 --format=ctm 2>/dev/null; }
decode_times TLG.wfst >times.ctm
cmp <(cut -d' ' -f1-5 out.ctm) times.ctm
decode_times TLG.wfst --chunk=0.2 | cmp - times.ctm
"$WARPFST" convert --to=vector TLG.wfst TLG.fst
decode_times TLG.fst --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --words=words.txt | cmp - times.ctm
if decode_times TLG.fst --words=words.txt | cmp -s - times.ctm; then fail "the times without a lexicon should be estimates"; fi
"$WARPFST" decode TLG.fst scores --words=words.txt --acoustic-scale=0.5 --format=json 2>/dev/null | grep -c '"times_estimated"' | grep -x 13 > /dev/null || fail "estimates without a flag"
"$WARPFST" decode TLG.wfst scores --acoustic-scale=0.5 --lattice=aligned.ark -o /dev/null 2>/dev/null
lattice nbest aligned.ark --n=1 --acoustic-scale=0.5 --graph=TLG.wfst --words=words.txt --frame-shift=0.04 --format=ctm | sed 's/-1 1 / 1 /' | cut -d' ' -f1-5 | cmp - times.ctm
lattice nbest det.ark --n=1 --acoustic-scale=0.5 --graph=TLG.wfst --words=words.txt --frame-shift=0.04 --format=ctm | sed 's/-1 1 / 1 /' | cut -d' ' -f1-5 | cmp - times.ctm
lattice convert det.ark -o - --format=text --graph=TLG.wfst | cmp - <(lattice convert aligned.ark -o - --format=text)
lattice convert det.ark -o det.scp.ark --scp=det.scp
lattice convert det.ark -o det.txt --format=text
"$python" "$kaldi" compare det.scp.ark det.scp det.txt
mbr() { lattice mbr det.ark --acoustic-scale=0.5 --words=words.txt --frame-shift=0.04 "$@" 2>summary.txt; }
mbr --no-decode --scale=0.5 --complete-beam=8 --format=json -o best.jsonl
"$WARPFST" decode TLG.wfst scores --acoustic-scale=0.5 --lattice=whole.ark --raw-lattice -o /dev/null 2>/dev/null
lattice mbr whole.ark --acoustic-scale=0.5 --words=words.txt --frame-shift=0.04 --no-decode --scale=0.5 --format=json -o raw.jsonl 2>/dev/null # its beam is that of determinization
mbr --format=ctm -o mbr.ctm --ref="$ctc/text" --sausages=sausages.jsonl
mbr --format=ctm -o timed.ctm --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt"
awk '{print $1, $5}' mbr.ctm >mbr.words
mbr -o mbr.txt --ref="$ctc/text"
awk '{for (i = 2; i <= NF; i++) print $1, $i}' mbr.txt | cmp - mbr.words
lattice oracle det.ark --words=words.txt --ref="$ctc/text" -o oracle.txt >oracle.out
lattice stats det.ark --json --each >stats.jsonl
"$python" "$SOURCE_DIR/tests/cli/lattice_results.py" results

# 5. SLF and pictures.
lattice convert det.ark --format=slf --words=words.txt -o slf --frame-shift=0.04
key=$(head -n 1 hyp.txt | cut -d' ' -f1)
lattice draw det.ark --key="$key" --words=words.txt --frame-shift=0.04 -o picture.html
lattice draw det.ark --key="$key" --words=words.txt --frame-shift=0.04 -o - --format=html | cmp - picture.html
lattice draw det.ark --key="$key" --words=words.txt --frame-shift=0.04 -o picture.svg
sed -n '/<svg/,/<\/svg>/p' picture.html | cmp - picture.svg
lattice draw det.ark --key="$key" --words=words.txt -o picture.dot
printf 'u<&> \n0 1 1 0.5,1,1_2_3_4_5_6_7_8\n0 1 2 1,1,1_2_3_4_5_6_7_9\n1 2 0 1,1,4\n2 0,0,\n\n' >nasty.lat
printf '<eps> 0\n<b>&"\x27bad 1\n\\"q 2\n' >nasty.txt
lattice draw nasty.lat --words=nasty.txt -o nasty.html
lattice draw nasty.lat --words=nasty.txt -o nasty.dot
"$python" "$SOURCE_DIR/tests/cli/lattice_results.py" pictures "$key"
expect 4 "more than max_arcs" lattice draw det.ark --words=words.txt --max-arcs=3 -o x.html
expect 3 "there is no lattice of nobody" lattice draw det.ark --key=nobody -o x.html

# The example, with the commands of its README.
(
  cd "$SOURCE_DIR/examples"
  example=(lattice/lat.txt --input-words=lattice/words.txt --words=lattice/words.txt --acoustic-scale=0.7)
  lattice mbr "${example[@]}" --ref=ctc/text --format=ctm -o "$OLDPWD/example.ctm" 2>&1 | grep 'WER 5.88% (1 of 17 words)' > /dev/null
  lattice oracle "${example[@]}" --ref=ctc/text | grep 'oracle WER 0.00%' > /dev/null
  lattice draw "${example[@]}" --key=001200306 -o "$OLDPWD/example.html" --tokens=ctc/tokens_phone.txt --lexicon=ctc/lexicon_phone.txt
) || fail "the example in examples/lattice"
grep -q '>OTHERS</text>' example.html

# 6. Errors.
head -c 1000 raw.ark >cut.ark
expect 3 "cut.ark: byte .*ends early.*the rest of that archive is lost" lattice convert cut.ark raw.ark -o some.ark
lattice convert some.ark -o - | cmp - raw.ark
expect 3 "no_such.ark: cannot open" lattice convert no_such.ark -o x.ark
expect 2 "no output given" lattice convert raw.ark
expect 2 "unknown subcommand 'frob'" lattice frob
expect 3 "is a pipe; commands are not run" lattice convert 'ark:cat x|' -o x.ark
sed 's/\t1,2/&/; 3s/$/ 1 2 3 4/' raw.txt >bad.txt
expect 1 "line 2 of the lattice: more than five fields" lattice convert bad.txt -o x.ark
"$WARPFST" lattice --help | grep 'lattice convert' > /dev/null
expect 1 "is not in the table" lattice convert raw.ark -o x.txt --format=text --words=<(echo '<eps> 0')
expect 2 "no references given" lattice oracle raw.ark
expect 2 "lexicon needs --tokens" lattice mbr raw.ark --lexicon=x
printf 'dead \n0 1 1 0,0,1\n1 Infinity,Infinity,\n\n' >dead.txt
expect 1 "utterance 'dead': the lattice has no path" lattice mbr dead.txt det.ark -o some.txt
[ "$(wc -l <some.txt)" = "$(wc -l <hyp.txt)" ] || fail "the lattices after a bad one are missing"
