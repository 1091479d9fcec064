# The generated CTC task and `bench/decode/decode.py`, with 500 words: the files have the documented properties, and the figures follow from the results.
# shellcheck shell=bash
generate=$BUILD_DIR/bench/generate_ctc_task
fail() { echo "FAILED: $*"; exit 1; }
size=(--words=500 --text-words=60000 --utterances=12)

# --- the same arguments give the same files; another seed gives different ones -------------------------------------------------------
"$generate" a "${size[@]}" > a.log
"$generate" b "${size[@]}" > /dev/null
"$generate" c "${size[@]}" --seed=5 > /dev/null
diff -r a b
for file in lexicon.txt lm.arpa ref peaky.ark flat.ark; do ! cmp -s a/$file c/$file || fail "$file does not depend on the seed"; done
for bad in --words=3 --tokens=x --unknown=1 --utterances=; do
  code=0
  "$generate" d $bad 2> /dev/null || code=$?
  [ $code = 2 ] || fail "$bad: exit code $code"
done

# --- lexicon: 500 words, all spelled differently; LM: the probabilities after each history sum to one -------------------------------------
[ "$(cut -d' ' -f2- a/lexicon.txt | sort -u | wc -l)" = 500 ] || fail "spellings are not unique"
python3 - a/lm.arpa <<'E2'
import math, sys
levels, level, counts = {}, 0, {}
for line in open(sys.argv[1]):
    if line.startswith("ngram "):
        order, count = line[6:].split("=")
        counts[int(order)] = int(count)
    elif line.endswith("-grams:\n"):
        level = int(line[1])
    elif level and "\t" in line:
        log_prob, words, *backoff = line.rstrip("\n").split("\t")
        levels.setdefault(level, {})[tuple(words.split())] = (float(log_prob), float(backoff[0]) if backoff else 0)
assert {n: len(grams) for n, grams in levels.items()} == counts and counts[3] > 1000, counts
words = [w for (w,) in levels[1] if w != "<s>"]
def log_prob(history, word):
    gram = history + (word,)
    if gram in levels[len(gram)]:
        return levels[len(gram)][gram][0]
    return (levels[len(history)][history][1] if history in levels[len(history)] else 0) + log_prob(history[1:], word)
histories = [()] + [("<s>",)] + list(levels[1])[1:60:7] + list(levels[2])[::len(levels[2]) // 40]
for history in histories:
    if history[-1:] != ("</s>",):
        total = sum(10 ** log_prob(history, word) for word in words)
        assert abs(total - 1) < 1e-4, (history, total)
E2

# --- scores: rows sum to one; about half of the peaky frames are blank above 0.99, few of the flat ones ---------------------------------------
for kind in peaky flat; do
  "$WARPFST" matrix copy a/$kind.ark --format=text -o - | awk -v kind=$kind '
    NF >= 128 {sum = 0; for (i = 1; i <= 128; i++) sum += exp($i); if (sum < 0.999 || sum > 1.001) exit 1; n++; blank += $1 > log(0.99)}
    END {share = blank / n; print kind, n, share; if (n < 1000 || (kind == "peaky" ? share < 0.45 || share > 0.65 : share > 0.05)) exit 1}' \
    || fail "$kind scores: wrong sums or share of blanks"
done
[ "$("$WARPFST" matrix info a/peaky.ark 2> /dev/null | awk '{print $1}' | sort | tr '\n' ' ')" = "$(cut -d' ' -f1 a/ref | sort | tr '\n' ' ')" ] || fail "keys of scores and references differ"

# --- decode.py: all runs give equal results, the WER is that of `warpfst decode`, and a saved file gives the same table again --------------------
python3 "$SOURCE_DIR/bench/decode/decode.py" --size=tiny --seconds=0.01 --part=peaky,flat --programs="$BUILD_DIR" --work="$PWD/work" --save=rows.jsonl > table.txt 2> log.txt || fail "decode.py: $(cat table.txt log.txt)"
grep -q 'equal bit for bit' table.txt || fail "no comparison in $(cat table.txt)"
"$WARPFST" decode work/ctc_task_tiny/TLG.wfst work/ctc_task_tiny/peaky.ark --beam=17 --max-active=10000 --ref=work/ctc_task_tiny/ref --summary=summary.json -o /dev/null 2> /dev/null
python3 - <<'E2'
import json
rows = [json.loads(line) for line in open("rows.jsonl")][1:]
base = {kind: [r for r in rows if r["part"] == kind and (r["beam"], r["max_active"], r["dtype"], r["threads"]) == (17, 10000, "f32", 0)][0] for kind in ("peaky", "flat")}
summary = json.load(open("summary.json"))
assert base["peaky"]["utterances"] == 12 and abs(base["peaky"]["wer"] - summary["wer"]) < 0.01, (base["peaky"]["wer"], summary)
assert base["peaky"]["wer"] < 12 < base["flat"]["wer"] < 80, (base["peaky"]["wer"], base["flat"]["wer"])
assert base["flat"]["tokens_per_frame"] > 4 * base["peaky"]["tokens_per_frame"]
for r in rows:
    assert abs(r["rtfx"] * r["seconds"] - r["audio_s"]) < 0.01 * r["audio_s"] and r["failed"] == 0, r
E2
python3 "$SOURCE_DIR/bench/decode/decode.py" --load=rows.jsonl | tail -n +2 > again.txt
diff <(tail -n +2 table.txt) again.txt
# A result that differs, or a failed run, is an error.
sed '2s/"digest": "./"digest": "x/' rows.jsonl > broken.jsonl
code=0
python3 "$SOURCE_DIR/bench/decode/decode.py" --load=broken.jsonl > broken.txt || code=$?
[ $code = 1 ] && grep -q 'different results' broken.txt || fail "no error for a different result: $(cat broken.txt)"
code=0
"$BUILD_DIR/bench/bench_decode" work/ctc_task_tiny/TLG.wfst work/ctc_task_tiny/peaky.ark beam=-1 2> /dev/null || code=$?
[ $code = 2 ] || fail "bench_decode accepts a beam of -1"
# A run that is impossible (there is no GPU 99) is reported, and the next run still happens.
code=0
"$BUILD_DIR/bench/bench_decode" work/ctc_task_tiny/TLG.wfst work/ctc_task_tiny/peaky.ark --check=1 device=cuda:99,utterances=1 utterances=1,batch=1,seconds=0 > two.txt || code=$?
[ $code = 1 ] && [ "$(wc -l < two.txt)" = 2 ] && head -1 two.txt | grep '^{"error": "device=cuda:99' > /dev/null && tail -1 two.txt | grep '"rtfx"' > /dev/null || fail "$(cat two.txt)"

# --- lattice.py --device: from a saved file of runs on the CPU, edited to look like runs on a GPU -----------------------------------------------
# (Long utterances, because the kernel's count of a process's pages is only accurate to some hundred pages.)
"$BUILD_DIR/bench/bench_decode" work/ctc_task_tiny/TLG.wfst work/ctc_task_tiny/peaky.ark --check=2 utterances=2,seconds=0,beam=11 utterances=2,seconds=0,beam=11,lattice_beam=6 \
  utterances=2,seconds=0,beam=11,lattice_beam=6,determinize=1 frames=10000,beam=11 frames=10000,beam=11,lattice_beam=6 > lattice.jsonl
sed 's/^{/{"task": "tiny", /; p; s/"device": "cpu", "gpu": ""/"device": "cuda", "gpu": "none"/' lattice.jsonl > rows.jsonl
python3 "$SOURCE_DIR/bench/lattice/lattice.py" --device=cuda --load=rows.jsonl > table.txt || fail "$(cat table.txt)"
grep -q "equal the CPU's bit for bit" table.txt && grep -q 'with of without' table.txt && grep -q 'arcs/frame' table.txt && grep -q 'determinized while' table.txt && grep -q 'an hour.*MiB' table.txt || fail "$(cat table.txt)"
python3 - <<'E2'
import json
plain, lattice, determinized, tiled, tiled_lattice = (json.loads(line) for line in open("lattice.jsonl"))
assert determinized["digest"] == lattice["digest"] and tiled["frames"] == 10000 and tiled_lattice["host_mib"] > tiled["host_mib"] >= 0
assert plain["digest"] != lattice["digest"] and "lattice_arcs_per_frame" not in plain and lattice["lattice_arcs_per_frame"] > 1 and 0 < lattice["compact_arcs"]
E2
sed '4s/"digest": "./"digest": "x/' rows.jsonl > broken.jsonl
code=0
python3 "$SOURCE_DIR/bench/lattice/lattice.py" --device=cuda --load=broken.jsonl > broken.txt || code=$?
[ $code = 1 ] && grep -q 'not the results of the CPU' broken.txt || fail "no error for a different lattice: $(cat broken.txt)"
