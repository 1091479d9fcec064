# decode --transducer: a toy model whose encoder outputs name the tokens, over tokens alone and with words and a language model; errors.
# shellcheck shell=bash source=tests/cli/expect.sh
source "$(dirname "$0")/expect.sh"
says() { # TEXT COMMAND...: the command prints TEXT
  local want=$1 found
  shift
  found=$("$@" 2>err.txt) || fail "$*: $(cat err.txt)"
  [ "$found" = "$want" ] || fail "'$found', not '$want': $*"
}
toy=$SOURCE_DIR/tests/cli/toy_transducer.py
python3 "$toy" toy.safetensors 4
python3 "$toy" wide.safetensors 4 5
# A row is 1 for the blank and 3 for what is said.
printf 'u [\n 1 3 0 0\n 1 0 0 0\n 1 0 3 0\n 1 3 0 0 ]\n' > enc.txt
printf 'v [\n 1 2 3 0 ]\n' > both.txt # "b" and "a" and so on, in one frame
printf '<blk> 0\na 1\nb 2\nc 3\n' > tokens.txt
"$WARPFST" mkgraph ctc --tokens=tokens.txt --topology=transducer -q -o tokens.wfst
says 'u a b a' "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --greedy
says 'u a b a' "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors
says 'v b' "$WARPFST" decode tokens.wfst both.txt --transducer=toy.safetensors --greedy --max-symbols=1
says 'v b a b' "$WARPFST" decode tokens.wfst both.txt --transducer=toy.safetensors --greedy --max-symbols=3
"$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --format=ctm --frame-shift=0.1 -o out.ctm 2>err.txt
cut -d' ' -f3-5 out.ctm > times.txt
printf '0.000 0.100 a\n0.200 0.100 b\n0.300 0.100 a\n' | diff - times.txt

"$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --lattice=lat.ark --nbest=3 --json-lines=out.jsonl --lattice-beam=8 -o out 2>err.txt
[ "$(cat out)" = 'u a b a' ] || fail "$(cat out)"
grep -q 'alternatives\|nbest' out.jsonl || fail "no n-best list"

# beam and lattice_beam are nats of the model: the same list at any acoustic scale, over a graph without costs.
for scale in 1 0.25 4; do
  "$WARPFST" decode tokens.wfst both.txt --transducer=toy.safetensors --nbest=1000 --lattice-beam=3 --beam=5 --acoustic-scale=$scale --json-lines=scaled.jsonl -o out 2>err.txt
  grep -o '"text": *"[^"]*"' scaled.jsonl > "list.$scale"
done
[ "$(wc -l < list.1)" -gt 3 ] || fail "$(cat list.1)"
for scale in 0.25 4; do
  diff list.1 list.$scale || fail "the list depends on the acoustic scale"
done

printf 'ab a b\naba a b a\nac a c\n' > lexicon.txt
cat > lm.arpa <<'END'
\data\
ngram 1=5

\1-grams:
-99 <s>
-0.5 </s>
-0.6 ab
-0.8 aba
-0.7 ac

\end\
END
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=lexicon.txt --lm=lm.arpa --topology=transducer -q -o words.wfst
says 'u aba' "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors
printf 'ac 8\n' > boost.txt
says 'u ac aba' "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors --boost=boost.txt --beam=100

# Words added at run time.
sed 's/aba/<name>/' lm.arpa > class.arpa
grep -v aba lexicon.txt > known.txt
"$WARPFST" mkgraph ctc --tokens=tokens.txt --lexicon=known.txt --lm=class.arpa --classes='<name>' --topology=transducer -q -o class.wfst
printf 'aba\nbab\t0.5\n' > names.txt
says 'u aba' "$WARPFST" decode class.wfst enc.txt --transducer=toy.safetensors --add-words=names.txt
printf 'u names.txt\n' > each.txt
says 'u aba' "$WARPFST" decode class.wfst enc.txt --transducer=toy.safetensors --utterance-words=each.txt --chunk=0.02
[ "$("$WARPFST" decode class.wfst enc.txt --transducer=toy.safetensors 2>err.txt)" != 'u aba' ] || fail "a class without words gave one"

# A word that the subtracted model finds improbable becomes cheap, as with a boost. A model less itself costs nothing.
sed 's/-0.7 ac/-9 ac/' lm.arpa > internal.arpa
"$WARPFST" lm convert internal.arpa -q -o internal.wlm
"$WARPFST" lm convert lm.arpa -q -o lm.wlm
says 'u ac ac ac' "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors --lm-subtract=internal.wlm --lm-subtract-scale=0.5 --beam=100
says 'u aba' "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors --lm=lm.wlm --lm-scale=0.5 --lm-subtract=lm.wlm --lm-subtract-scale=0.5 --beam=100
for flags in "--lm=lm.wlm --lm-subtract=lm.wlm" ""; do # shellcheck disable=SC2086
  "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors --format=json $flags -o "less${#flags}.json" 2>err.txt || fail "$(cat err.txt)"
done
diff less*.json || fail "a model less itself changes the result"
expect 2 "has no effect without --lm-subtract" "$WARPFST" decode words.wfst enc.txt --transducer=toy.safetensors --lm-subtract-scale=0.5 --device=none

expect 1 "the encoder outputs have 4 columns, the transducer expects 5" "$WARPFST" decode tokens.wfst enc.txt --transducer=wide.safetensors
says 'u a b a' "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --chunk=0.02
expect 2 "has no effect without --transducer" "$WARPFST" decode tokens.wfst enc.txt --max-symbols=2 --device=none
expect 3 "blank_skip_threshold is not available with a transducer" "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --blank-skip-threshold=0.5 --blank=0
expect 2 "the blank is column 0 of the graph and column 1 of the transducer" "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --blank=1
expect 2 "--max-symbols is 0" "$WARPFST" decode tokens.wfst enc.txt --transducer=toy.safetensors --max-symbols=0
