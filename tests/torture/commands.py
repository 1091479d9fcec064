"""commands.py - the commands that torture.py runs, and the small files that they read.

Each line of COMMANDS is a command: `name: arguments`. `in/` has the inputs, in this folder's copies of small test files or
made by the lines of MAKE; what a command writes begins with `out/`. Commands run with one thread, so that their allocations
are the same each time.
"""
import pathlib
import shlex
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "fuzz" / "corpus"

FILES = {
    "a.txt": "0 1 1 2 0.5\n0 2 2 0 1\n1 2 0 3\n1 2 0 3 2\n2 3 3 1\n3 0.25\n",
    "accept.txt": "0 1 1 1\n1 1 2 2\n1 2 3 3\n1\n2\n",
    "minus.txt": "0 1 1 1\n1 2 3 3\n2\n",
    "ambiguous.txt": "0 1 1 1 1\n0 2 1 1 2\n1 3 2 2\n2 3 2 2\n0 3 3 3\n3\n",
    "tree.txt": "0 1 1 1 1\n0 2 2 2 2\n1 3 3 3 1\n2 3 3 3\n3\n",
    "cycle.txt": "0 1 1 1\n1 0 2 2\n1 2 3 3\n2 2 4 4\n2 1\n",
    "root.txt": "0 1 1 100 0.5\n1 2 2 101\n2 0.25\n",
    "first.txt": "0 1 5 6 1\n1 2\n",
    "second.txt": "0 1 7 100\n1\n",
    "pairs.txt": "1 4\n2 5\n",
    "strings.txt": "1 final 8 9\n\n0 0 7 8 9\n",
    "symbols.txt": "<eps> 0\nx 1\ny 2\nz 3\n",
    "tokens.txt": "<blk> 0\na 1\nb 2\nc 3\n",
    "lexicon.txt": "ab a b\naba a b a\nac a c\nba b a\n",
    "known.txt": "ab a b\nac a c\nba b a\n",
    "names.txt": "aba\nbab\t0.5\n",
    "boosts.txt": "ac ba 2\naba\n",
    "each.txt": "u in/boosts.txt\n",
    "loop.txt": "0 0 ab\n0 0 aba\n0 0 ac\n0 0 ba\n0\n",
    "text": "u ab ac\nv aba ba\n",
    "sentences": "ab ac\naba ba ab\nac\nba ab ac aba\n",
    "rejecting": "ab ac $NAME\n<unk>\n",
    "silprob.txt": "ab 1 0.5 1 2 a b\naba 0.5 0.25 1 0.5 a b a\nac 1 1 0 1 a c\nba 1 0.2 1 1 b a\n",
    "hyp": "u ab ab\nv aba\n",
    "list": "ab\nba\n",
    "words.gram": "#JSGF V1.0;\ngrammar g;\npublic <s> = [ab] (/1/ <t> | /2/ \"ac aba\")*;\n<t> = ba | ab <t>;\n",
    "nbest": "u 1 2.5 10 ab ac\nu 2 3.5 9 ab ab\nv 1 1.5 4 aba\n",
    "pieces.arpa": "\\data\\\nngram 1=5\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.6 a\n-0.8 b\n-0.7 c\n\n\\end\\\n",
    "lm.arpa": "\\data\\\nngram 1=7\nngram 2=5\n\n\\1-grams:\n-99 <s> -0.3\n-0.7 </s>\n-1.2 <unk>\n-0.7 ab -0.2\n-0.8 aba -0.1\n"
               "-0.9 ac -0.3\n-0.7 ba -0.2\n\n\\2-grams:\n-0.3 <s> ab\n-0.4 ab ac\n-0.3 ac </s>\n-0.5 aba ba\n-0.6 ba </s>\n\n\\end\\\n",
    "hmm/phones.txt": "<eps> 0\nSIL 1\nA 2\nB 3\n#0 4\n#1 5\n",
    "hmm/phones/disambig.txt": "#0\n#1\n",
    "hmm/phones/optional_silence.txt": "SIL\n",
    "hmm.lexicon": "ab A B\nba B A\n",
    "hmm.arpa": "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.6 ab\n-0.7 ba\n\n\\end\\\n",
    "sphinx.lexicon": "aa A A\na A\n",
    "sphinx.arpa": "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-0.5 </s>\n-0.6 aa\n-0.7 a\n\n\\end\\\n",
    "hmm/final.mdl": "<TransitionModel> <Topology> <TopologyEntry> <ForPhones> 1 2 3 </ForPhones> <State> 0 <PdfClass> 0 <Transition> 0 "
                     "0.5 <Transition> 1 0.5 </State> <State> 1 </State> </TopologyEntry> </Topology> <Triples> 3 1 0 0 2 0 1 3 0 2 "
                     "</Triples> <LogProbs> [ 0 -0.7 -0.7 -0.7 -0.7 -0.7 -0.7 ] </LogProbs> </TransitionModel> ",
    "hmm/tree": "ContextDependency 1 0 ToPdf TE 0 4 ( NULL TE -1 1 ( CE 0 ) TE -1 1 ( CE 1 ) TE -1 1 ( CE 2 ) ) EndContextDependency ",
    "lat.txt": "u\n0 1 1 1.5,2,1_1\n0 1 2 1.2,2.5,1_2\n1 2 3 0.5,1,2_2\n1 2 4 0.7,1,2_3\n2 0.1,0,\n\nv\n0 1 2 1,1,1_1\n1 0.2,0,\n\n",
}
# Files of other tests: name here, file, bytes at its start to leave out (the fuzz targets read flags there).
COPIES = (
    ("sphinx/mdef", CORPUS / "sphinx/mdef_text", 1), ("sphinx/transition_matrices", CORPUS / "sphinx/tmats", 1),
    ("sphinx/noisedict", CORPUS / "sphinx/noisedict", 1), ("kenlm.bin", ROOT / "tests/data/lm/kenlm3.trie.bin", 0),
    ("sphinx.lm.bin.gz", ROOT / "tests/data/lm/sphinx2.lm.bin.gz", 0), ("edit.fst", ROOT / "tests/data/openfst/edit.edit", 0),
    ("compact.fst", ROOT / "tests/data/openfst/acceptor.compact", 0), ("ngram.fst", ROOT / "tests/data/openfst/model.ngram", 0),
    ("lookahead.fst", ROOT / "tests/data/openfst/olabel.lookahead", 0))


def npy(path, rows, columns):
    """Scores that favour column rows[i] in frame i."""
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {columns}), }}".ljust(117) + "\n"
    data = [-0.05 if column == row else -3 - 0.1 * column for row in rows for column in range(columns)]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(data)}f", *data))


MAKE = """
compile in/a.txt in/a.fst
compile in/accept.txt in/accept.fst
compile in/minus.txt in/minus.fst
compile in/ambiguous.txt in/ambiguous.fst
compile in/tree.txt in/tree.fst
compile in/cycle.txt in/cycle.fst
compile in/root.txt in/root.fst
compile in/first.txt in/first.fst
compile in/second.txt in/second.fst
convert in/a.fst in/a.wfst.gz
shortestdistance --reverse in/a.fst in/potentials
encode --encode_labels in/a.fst in/codex in/encoded.fst
far create in/a.fst in/accept.fst in/a.far
far create --generate_keys=1 in/a.fst in/accept.fst in/keys.far
far compilestrings --token-type=utf8 in/a.txt in/texts.far
mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.arpa -q -o in/words.wfst --words-out=in/words.txt
compile in/loop.txt in/loop.fst --acceptor --isymbols=in/words.txt
mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --grammar=in/loop.fst --words=in/words.txt -q -o in/lexicon.wfst
mkgraph ctc --tokens=in/tokens.txt -q -o in/tokens.wfst
mkgraph ctc --tokens=in/tokens.txt --topology=transducer -q -o in/greedy.wfst
mkgraph ctc --tokens=in/tokens.txt --lexicon=in/known.txt --lm=in/class.arpa --classes=<name> -q -o in/class.wfst --topology=compact
mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.arpa --topology=transducer -q -o in/transducer.wfst
mkgraph hmm --am=in/hmm --lang=in/hmm --lexicon=in/hmm.lexicon --lm=in/hmm.arpa -q -o in/hmm.wfst
lm convert in/lm.arpa -q -o in/lm.wlm
rnnlm train in/sentences in/sentences -o in/rnn --hidden=4 --max-epochs=2 --maxent-cells=64
decode in/words.wfst in/u.npy in/v.npy --lattice=in/lat.ark -o in/decoded
decode in/words.wfst in/u.npy in/v.npy --lattice=in/raw.ark --raw-lattice -o in/decoded
matrix copy in/u.npy in/v.npy -o in/scores.ark
"""

COMMANDS = """
compile: compile in/loop.txt out/a.fst --acceptor --isymbols=in/words.txt --keep-isymbols
compile, native gzip: compile in/a.txt out/a.wfst.gz
print: print in/a.fst -o out/text
print ctc: print in/words.wfst -o out/text
print strings: print --strings in/a.fst
draw: draw in/a.fst -o out/picture.svg
draw, Graphviz: draw in/words.wfst -o out/graph.dot
isstochastic: isstochastic --delta=1000 in/a.fst
info: info in/a.wfst.gz
info --json: info --json in/edit.fst
convert const: convert in/compact.fst out/c.fst --format=const
convert native: convert in/ngram.fst out/n.wfst
convert look-ahead: convert in/lookahead.fst out/l.fst
far create: far create in/a.fst in/accept.fst out/a.far
far extract: far extract --filename_prefix=out/ in/keys.far
far compilestrings: far compilestrings --token-type=utf8 in/a.txt out/a.far
far printstrings: far printstrings --token-type=utf8 in/texts.far
far info: far info --list_fsts in/a.far
far equal: far equal in/a.far in/a.far
compose: compose in/a.fst in/cycle.fst out/c.fst --num-threads=1
compose many: compose in/accept.fst in/cycle.fst in/a.fst -o out/c.fst --num-threads=1 --order=canonical
compose look-ahead: compose in/a.fst in/accept.fst out/c.fst --num-threads=1 --lookahead-push
arcsort: arcsort in/a.fst out/f.fst
connect: connect in/a.fst out/f.fst
topsort: topsort in/a.fst out/f.fst
closure: closure in/a.fst out/f.fst
union: union in/a.fst in/accept.fst out/f.fst
concat: concat in/a.fst in/accept.fst out/f.fst
reverse: reverse in/a.fst out/f.fst
relabel: relabel --relabel_ipairs=in/pairs.txt in/a.fst out/f.fst
determinize: determinize in/ambiguous.fst out/f.fst --num-threads=1
determinize nonfunctional: determinize --det_type=nonfunctional in/a.fst out/f.fst --num-threads=1
minimize: minimize in/tree.fst out/f.fst
rmepsilon: rmepsilon in/a.fst out/f.fst
push: push --push_weights --push_labels in/a.fst out/f.fst
shortestdistance: shortestdistance in/cycle.fst -o out/d
shortestpath: shortestpath --nshortest=4 in/a.fst out/f.fst
prune: prune --weight=1 in/a.fst out/f.fst
map: map --map_type=arc_sum in/a.fst out/f.fst
difference: difference in/accept.fst in/minus.fst out/f.fst
replace: replace in/root.fst 99 in/first.fst 100 in/second.fst 101 out/f.fst
encode: encode --encode_labels in/a.fst out/codex out/f.fst
decode labels: encode --decode in/encoded.fst in/codex out/f.fst
epsnormalize: epsnormalize in/a.fst out/f.fst
synchronize: synchronize in/a.fst out/f.fst
disambiguate: disambiguate in/ambiguous.fst out/f.fst
condense: condense in/cycle.fst out/f.fst
reweight: reweight in/a.fst in/potentials out/f.fst
factorweight: factorweight --final-ilabel=3 in/a.fst in/strings.txt out/f.fst
randgen: randgen --npath=5 in/a.fst out/f.fst
equal: equal in/a.fst in/a.wfst.gz
equivalent: equivalent in/tree.fst in/tree.fst
isomorphic: isomorphic in/a.fst in/a.fst
randequivalent: randequivalent in/a.fst in/a.fst
lexicon: lexicon in/lexicon.txt --tokens=in/tokens.txt -o out/L.fst
topology: topology --tokens=in/tokens.txt -o out/T.fst
mkgraph ctc: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.arpa -q -o out/g.wfst --words-out=out/w.txt
mkgraph ctc, .wlm: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.wlm -q -o out/g.wfst
mkgraph ctc, steps: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.arpa -q -o out/g.fst --keep-steps=out --push=log
mkgraph ctc, unknown words: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --lm=in/lm.arpa --unknown-lm=in/pieces.arpa -q -o out/g.wfst
mkgraph ctc, JSGF: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --grammar=in/words.gram -q -o out/g.wfst
mkgraph ctc, sentences: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --phrases=in/sentences -q -o out/g.wfst
mkgraph ctc, any sequence: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/lexicon.txt --phrases=in/rejecting --garbage=1 --classes=$NAME -q -o out/g.wfst
mkgraph ctc, spelled: mkgraph ctc --tokens=in/tokens.txt --phrases=in/rejecting --classes=$NAME -q -o out/g.wfst
mkgraph ctc, silence probabilities: mkgraph ctc --tokens=in/tokens.txt --lexicon=in/silprob.txt --phrases=in/sentences --silence=c --keep-disambig -q -o out/g.wfst
mkgraph ctc, tokens: mkgraph ctc --tokens=in/tokens.txt -q -o out/g.wfst --topology=correct
mkgraph hmm, Kaldi: mkgraph hmm --am=in/hmm --lang=in/hmm --lexicon=in/hmm.lexicon --lm=in/hmm.arpa -q -o out/g.wfst
am info: am info in/hmm --json
am columns: am columns in/hmm
am info, Sphinx: am info in/sphinx
mkgraph hmm, Sphinx: mkgraph hmm --am=in/sphinx --lexicon=in/sphinx.lexicon --lm=in/sphinx.arpa -q -o out/g.wfst
decode: decode in/words.wfst in/u.npy in/v.npy -o out/hyp --ctm=out/ctm --num-threads=1
decode archive: decode in/words.wfst in/scores.ark --format=json --num-threads=1 --ref=in/text --columns=in/columns
decode lattices: decode in/words.wfst in/scores.ark -o out/hyp --lattice=out/lat.ark --nbest=3 --json-lines=out/jsonl --num-threads=1
decode raw lattices: decode in/words.wfst in/u.npy -o out/hyp --lattice=out/lat.gz --raw-lattice --num-threads=1
decode boosts: decode in/words.wfst in/u.npy in/v.npy --boost=in/boosts.txt --utterance-boosts=in/each.txt --num-threads=1
decode added words: decode in/class.wfst in/u.npy in/v.npy --add-words=in/names.txt -o out/hyp --num-threads=1
decode with LM: decode in/lexicon.wfst in/u.npy in/v.npy --lm=in/lm.wlm --num-threads=1 --lattice=out/lat.ark
decode with RNN: decode in/words.wfst in/u.npy in/v.npy --rnnlm=in/rnn --rnnlm-small=in/lm.arpa --num-threads=1
decode transducer: decode in/transducer.wfst in/u.npy in/v.npy --transducer=in/toy.safetensors --num-threads=1 --lattice=out/lat.ark
decode transducer, greedy: decode in/greedy.wfst in/u.npy --transducer=in/toy.safetensors --greedy --num-threads=1
decode chunks: decode in/words.wfst in/u.npy in/v.npy --chunk=0.02 --num-threads=1
decode HMM: decode in/hmm.wfst in/h.npy --num-threads=1 --lattice=out/lat.ark --am=in/hmm --lexicon=in/hmm.lexicon --lang=in/hmm --format=ctm
align: align in/u.npy in/v.npy --tokens=in/tokens.txt --lexicon=in/lexicon.txt --text=in/text --num-threads=1 -o out/ctm --textgrid=out
align gaps: align in/scores.ark --tokens=in/tokens.txt --text=in/text --garbage=2 --skip-words=3 --num-threads=1
align HMM: align in/h.npy --am=in/hmm --lexicon=in/hmm.lexicon --text=in/hmm.text --num-threads=1 --lang=in/hmm
score: score in/text in/hyp --align --per-utt
plan: plan in/words.wfst --device=cuda --streams=4 --processors=132 --gpu-memory=16G
matrix copy: matrix copy in/scores.ark -o out/m.ark --scp=out/m.scp --format=compressed
matrix folder: matrix copy in/scores.ark -o out/ --format=npy
matrix info: matrix info in/scores.ark in/u.npy
lattice convert: lattice convert in/lat.txt -o out/lat.ark --kind=raw --scp=out/scp
lattice slf: lattice convert in/lat.ark -o out/ --format=slf --words=in/words.txt
lattice mbr: lattice mbr in/lat.ark -o out/mbr --sausages=out/json --words=in/words.txt --graph=in/words.wfst --num-threads=1
lattice spot: lattice spot in/lat.ark --list=in/list --words=in/words.txt -o out/ctm --num-threads=1
lattice oracle: lattice oracle in/lat.ark --ref=in/text --words=in/words.txt -o out/text
lattice stats: lattice stats in/raw.ark --json --each
lattice draw: lattice draw in/lat.ark -o out/lat.svg --words=in/words.txt
lattice prune: lattice prune in/raw.ark -o out/lat.ark --beam=4
lattice determinize: lattice determinize in/raw.ark -o out/lat.ark --num-threads=1
lattice nbest: lattice nbest in/lat.ark --n=5 --words=in/words.txt -o out/nbest
lattice rescore: lattice rescore in/lat.ark -o out/lat.ark --lm=in/lm.arpa --old-lm=in/lm.arpa --words=in/words.txt --num-threads=1
lattice rescore, .wlm: lattice rescore in/lat.ark -o out/lat.ark --lm=in/lm.wlm --old-lm=in/lm.arpa --words=in/words.txt --num-threads=1
lm info: lm info in/sphinx.lm.bin.gz
lm query: lm query in/kenlm.bin in/sentences
lm perplexity: lm perplexity in/lm.wlm in/sentences
lm convert: lm convert in/lm.arpa -o out/G.fst --write-words=out/words --backoff-symbol=#0
lm convert, from .wlm: lm convert in/lm.wlm -o out/G.fst --backoff=failure --backoff-symbol=#0
lm convert, KenLM: lm convert in/kenlm.bin -o out/G.fst
lm convert, to .wlm: lm convert in/lm.arpa -q -o out/lm.wlm
lm convert, packed again: lm convert in/lm.wlm -q -o out/lm.wlm --pack=exact
lm convert, difference: lm convert in/lm.arpa -q -o out/lm.wlm --subtract=in/lm.arpa --pack=codebook
lm convert, sorted in files: lm convert in/large.arpa -q -o out/lm.wlm --memory=1M --pack=exact
lm estimate: lm estimate in/sentences in/sentences -q -o out/lm.arpa --order=2 --prune=0,1
lm estimate, vocabulary: lm estimate in/sentences -q -o out/lm.arpa --vocabulary=in/words.txt --skip-symbols
lm estimate, sorted in files: lm estimate in/large.text -q -o out/lm.arpa --memory=1M
lm mix: lm mix in/lm.arpa in/kenlm.bin -q -o out/lm.arpa --weights=0.7,0.3 --num-threads=1
lm mix, tune: lm mix in/lm.arpa in/kenlm.bin -q -o out/lm.arpa --tune=in/sentences --num-threads=1
lm prune: lm prune in/lm.arpa --threshold=1e-3 -o out/small.arpa --num-threads=1
lm prune, .wlm: lm prune in/lm.wlm --threshold=1e-3 -o out/small.arpa --num-threads=1
rnnlm info: rnnlm info in/rnn
rnnlm score: rnnlm score in/rnn in/sentences
rnnlm train: rnnlm train in/sentences in/sentences -o out/rnn --hidden=4 --max-epochs=1 --maxent-cells=64
rnnlm rescore: rnnlm rescore in/rnn in/nbest --small=in/lm.arpa
rnnlm lattice: rnnlm lattice in/lat.ark --rnnlm=in/rnn --words=in/words.txt -o out/lat.ark
"""


def rows(lines):
    for line in lines.strip().splitlines():
        name, _, arguments = line.partition(": ")
        yield name, shlex.split(arguments.replace("#", "\\#"))


def make_inputs(program, folder):
    """Writes the inputs to the folder `in` of `folder`."""
    base = folder / "in"
    for name, text in FILES.items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    (base / "class.arpa").write_text(FILES["lm.arpa"].replace("aba", "<name>"))
    (base / "columns").write_text("".join(f"{label} {label - 1}\n" for label in range(1, 5)))
    words = [f"w{i}" for i in range(210)]
    pairs = [(a, b) for i, a in enumerate(words) for b in words]
    (base / "large.arpa").write_text(
        f"\\data\\\nngram 1={len(words) + 2}\nngram 2={len(pairs)}\n\n\\1-grams:\n-99 <s> -0.1\n-1 </s>\n"
        + "".join(f"-2 {word} -0.5\n" for word in words) + "\n\\2-grams:\n" + "".join(f"-1.5 {a} {b}\n" for a, b in pairs) + "\n\\end\\\n")
    (base / "large.text").write_text("".join(f"{a} {b}\n" for a, b in pairs))
    (base / "hmm.text").write_text("h ab ba\n")
    for name, source, skipped in COPIES:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(source.read_bytes()[skipped:])
    npy(base / "u.npy", (0, 1, 1, 2, 0, 1, 3, 0), 4)
    npy(base / "v.npy", (1, 2, 1, 0, 2, 1), 4)
    npy(base / "h.npy", (0, 1, 1, 2, 2, 0, 2, 1), 3)
    subprocess.run(["python3", str(ROOT / "tests/cli/toy_transducer.py"), str(base / "toy.safetensors"), "4"], check=True)
    for line in MAKE.strip().splitlines():
        arguments = shlex.split(line)
        result = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"torture: cannot make the inputs: {line}: {result.stderr}")
