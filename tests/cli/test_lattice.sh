# Lattice archives on the command line, against an independent reader and Kaldi's own code (lattice_kaldi.py, kaldifst of tests/python-requirements.txt).
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
kaldi="$SOURCE_DIR/tests/cli/lattice_kaldi.py"
"$python" -c 'import kaldifst' || { echo "no kaldifst for $python: ./run test installs tests/python-requirements.txt"; exit 1; }
fail() { echo "$*" >&2; exit 1; }
expect() { # CODE PATTERN COMMAND...
  local want=$1 pattern=$2 code=0
  shift 2
  "$@" >out.txt 2>err.txt || code=$?
  [ "$code" = "$want" ] || fail "exit $code, not $want: $*: $(cat err.txt)"
  grep -q -- "$pattern" err.txt || fail "no '$pattern' from: $*: $(cat err.txt)"
}
lattice() { "$WARPFST" lattice "$@"; }
coffee=$SOURCE_DIR/examples/hybrid/coffee

# 1. Lattices of real speech: raw from the decoder, compact by conversion; binary, text, script.
"$WARPFST" compile "$coffee/HCLG.txt.gz" HCLG.wfst
decode() { "$WARPFST" decode HCLG.wfst "$coffee" --scale=-0.10239488 --acoustic-scale=0.125 --words="$coffee/words.txt" -o hyp.txt "$@" 2>summary.txt; }
decode --lattice=lat.ark --lattice-beam=4
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
  expect 1 "is there a table of the words" lattice convert ark:$kind.words.txt -o /dev/null
done
cmp lat.ark raw.ark
lattice convert compact.ark --kind=raw -o - | cmp - raw.ark
# Acoustic costs come without the scale of the search, as Kaldi's: with the scale they are the decoder's again (0.125: exactly).
decode --lattice=lat.ark --lattice-beam=4 --format=json
lattice convert lat.ark --acoustic-scale=0.125 --format=text -o best.txt
"$python" "$kaldi" best best.txt hyp.txt

# 2. Random lattices of all types, states in any order, from Kaldi's code.
for seed in 1 2 3; do
  "$python" "$kaldi" generate $seed theirs.ark
  lattice convert theirs.ark -o ours.ark --scp=ours.scp
  lattice convert theirs.ark -o ours.txt --format=text
  "$python" "$kaldi" same theirs.ark ours.ark
  "$python" "$kaldi" compare ours.ark ours.scp ours.txt
done

# 3. What can go wrong.
head -c 1000 raw.ark >cut.ark
expect 3 "cut.ark: byte .*ends early.*the rest of that archive is lost" lattice convert cut.ark raw.ark -o some.ark
lattice convert some.ark -o - | cmp - raw.ark
expect 3 "no_such.ark: cannot open" lattice convert no_such.ark -o x.ark
expect 2 "no output given" lattice convert raw.ark
expect 2 "no part 'frob'" lattice frob
expect 3 "is a pipe; commands are not run" lattice convert 'ark:cat x|' -o x.ark
sed 's/\t1,2/&/; 3s/$/ 1 2 3 4/' raw.txt >bad.txt
expect 1 "line 2 of the lattice: more than five fields" lattice convert bad.txt -o x.ark
"$WARPFST" lattice --help | grep -q 'lattice convert'
expect 1 "is not in the table" lattice convert raw.ark -o x.txt --format=text --words=<(echo '<eps> 0')
