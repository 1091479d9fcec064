# Everything that the program prints as JSON is valid JSON in UTF-8, also if words, names, keys or paths have bytes that
# are not UTF-8: each such byte becomes U+FFFD.
# shellcheck shell=bash
source "$SOURCE_DIR/tests/cli/expect.sh"
ctc=$SOURCE_DIR/examples/ctc
bad=$'\xff'

# Each line of FILE (or FILE as a whole) must be JSON; and it must hold TEXT, where the bad byte is written as @.
check() { # FILE TEXT
  python3 - "$@" <<'EOF' || fail "$1 of: $(cat -v "$1")"
import json, sys
data = open(sys.argv[1], "rb").read().decode("utf-8")
values = [json.loads(line) for line in data.splitlines()]
assert values and sys.argv[2].replace("@", "\ufffd") in json.dumps(values, ensure_ascii=False), sys.argv[2]
EOF
}
printf '{"a": "%s"}\n' "$bad" > wrong.txt
! (check wrong.txt @) 2> /dev/null || fail "the check accepts a byte that is not UTF-8"

# Words and names of symbol tables, which a file in OpenFst's format may hold in any encoding.
printf '<eps> 0\neins 1\nzwei 2\n' > words
printf '0 1 eins eins\n1 1 eins <eps>\n1 2 zwei zwei 0.5\n2\n' |
  "$WARPFST" compile --isymbols=words --osymbols=words --keep_isymbols --keep_osymbols - good.fst
LC_ALL=C sed "s/zwei/zw${bad}i/g; s/words/w${bad}rds/g" good.fst > bad.fst
printf 'u0  [\n -1 -2\n -2 -1\n -2 -1 ]\n' > s.ark
"$WARPFST" info --json bad.fst > out.txt
check out.txt w@rds
"$WARPFST" decode bad.fst s.ark --format=json --nbest=2 --json-lines=lines.txt -q > out.txt 2> /dev/null
check out.txt '"word": "zw@i"'
check lines.txt '"text": "eins zw@i"'

# Names of files.
mkdir "d$bad" && cp "$ctc/lm3.arpa.gz" "d$bad/lm.arpa.gz"
"$WARPFST" lm info --json "d$bad/lm.arpa.gz" > out.txt
check out.txt d@/lm
"$WARPFST" lm convert "d$bad/lm.arpa.gz" -o "d$bad/lm.wlm" -q
"$WARPFST" lm info --json "d$bad/lm.wlm" > out.txt
check out.txt d@/lm.wlm
"$WARPFST" mkgraph ctc --tokens="$ctc/tokens_phone.txt" --lexicon="$ctc/lexicon_phone.txt" --lm="d$bad/lm.arpa.gz" \
  --json -o "d$bad/g.wfst" > out.txt 2> /dev/null
check out.txt d@/g.wfst
printf 'one two\ntwo one\n' > text
"$WARPFST" rnnlm train text text -o "d$bad/rnn" --hidden=4 --max-epochs=1 --json > out.txt
check out.txt epoch
"$WARPFST" rnnlm info --json "d$bad/rnn" > out.txt
check out.txt d@/rnn

# Words and keys of texts.
printf 'k%s THE C%sT\n' "$bad" "$bad" > text
"$WARPFST" lm query --json --ids "d$bad/lm.arpa.gz" text > out.txt
check out.txt '"word": "C@T"'
check out.txt '"id": "k@"'
