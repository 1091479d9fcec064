# KenLM's binary tries: every word gets the score that KenLM gives from the same file; large models and graphs equal those made from the ARPA file;
# messages. ./run test installs KenLM (tests/kenlm-requirements.txt) into build/venv.
# shellcheck shell=bash
python=${WARPFST_PYTHON:-$SOURCE_DIR/build/venv/bin/python}
"$python" -c 'import kenlm' || { echo "no KenLM for $python: ./run setup test installs it"; exit 1; }
data=$SOURCE_DIR/tests/data/lm

# Some sentences have a word that is not in the model (x). The quantized files have only 3 bits per probability, so their scores differ clearly from
# those of the unquantized ones.
awk 'BEGIN { srand(1); for (i = 0; i < 600; i++) { line = ""; for (n = int(9 * rand()); n > 0; n--) line = line substr("abcdefabcdefabcdefx", 1 + int(19 * rand()), 1) " "; print line } }' >text.txt
for kind in trie q a qa; do
  "$python" "$SOURCE_DIR/tests/cli/lm_kenlm.py" compare "$WARPFST" "$data/endings.$kind.bin" text.txt 2>kenlm.log
done

# A large model built from the trie, and graphs.
"$WARPFST" lm convert "$data/endings.trie.bin" large.wlm -q
cmp <("$WARPFST" lm query large.wlm text.txt) <("$WARPFST" lm query "$data/endings.trie.bin" text.txt)
printf '%s\n' '<blk> 0' 'a 1' 'b 2' 'c 3' 'd 4' 'e 5' 'f 6' 'g 7' >tokens.txt
printf '%s\n' 'a a' 'b b' 'c c' 'd d' 'e e' 'f f' 'g g' 'other a b' >lexicon.txt
for lm in sphinx3.arpa kenlm3.trie.bin kenlm3.qa.bin; do
  "$WARPFST" mkgraph ctc -q --tokens=tokens.txt --lexicon=lexicon.txt --lm="$data/$lm" -o "$lm.wfst"
done
"$WARPFST" equal sphinx3.arpa.wfst kenlm3.trie.bin.wfst
"$WARPFST" equal sphinx3.arpa.wfst kenlm3.qa.bin.wfst

# A KenLM file of type 'probing' is refused by every command that reads a model, and no output is left.
cp "$data/kenlm3.trie.bin" probing.bin
printf '\0' | dd of=probing.bin bs=1 seek=96 conv=notrunc status=none
wanted="probing.bin: a KenLM file of type 'probing', which holds hashes in place of the n-grams' words: give the ARPA file, or build a trie, with 'build_binary trie ARPA FILE'"
for part in 'lm info probing.bin' 'lm convert probing.bin out.wlm' 'lm convert probing.bin out' 'mkgraph ctc --tokens=tokens.txt --lm=probing.bin -o out'; do
  read -ra command <<<"$part"
  code=0
  "$WARPFST" "${command[@]}" 2>log || code=$?
  [ $code = 3 ] && grep -qF "$wanted" log || { echo "$part: $code"; cat log; exit 1; }
  [ ! -e out ]
done
