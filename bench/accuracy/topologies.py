#!/usr/bin/env python3
"""topologies --data=FOLDER [--heads=phone,char,bpe] [--beams=8,11,14,17] [--record]

Word error rates and tokens a frame of the CTC topologies `correct` and `compact` on real scores. FOLDER has the archives logp_HEAD.tar.xz (bpe: the first 400 utterances only).

  words    every word of examples/ctc/lexicon_HEAD.txt, any after any other
  model    lm3.arpa.gz in the graph
  boosts   the same, and a boost of 2 nats for each word that the references have once or twice
  tokens   tokens alone, with the token model pieces4.arpa.gz while decoding (bpe only)
"""
import argparse
import collections
import json
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure
from measure import BUILD, WARPFST

WORK, CTC = BUILD / "topologies", measure.ROOT / "examples" / "ctc"
TOPOLOGIES = ("correct", "compact")
SCALE, BOOST = 0.7, 2.0


class Head:
    """Scores of one kind of tokens, with graphs of both topologies."""

    def __init__(self, name, folder):
        self.name = name
        self.scores = decode_tasks.unpacked(folder / f"logp_{name}.tar.xz")
        keys = {path.stem for path in self.scores.glob("*.npy")}
        self.ref = decode_tasks.references(keys, WORK / f"ref.{name}", CTC / "text")
        self.lexicon = CTC / f"lexicon_{name}.txt"
        counts = collections.Counter(word for line in open(self.ref, encoding="utf-8") for word in line.split()[1:])
        self.boosts = WORK / f"boosts.{name}"
        self.grammar = self.loop()
        self.boosts.write_text("".join(f"{word} {BOOST}\n" for word, count in sorted(counts.items()) if count < 3 and word in self.words()), encoding="utf-8")

    def words(self):
        return sorted({line.split()[0] for line in open(self.lexicon, encoding="utf-8")})

    def mkgraph(self, what, topology, *flags):
        graph = WORK / f"{self.name}.{what}.{topology}.wfst"
        measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={CTC / f'tokens_{self.name}.txt'}", f"--topology={topology}", "-q", "-o", graph, *flags)
        return graph

    def loop(self):
        """A grammar of any words, and its word table."""
        words, text, grammar = WORK / f"words.{self.name}", WORK / f"loop.{self.name}", WORK / f"loop.{self.name}.fst"
        words.write_text("<eps> 0\n" + "".join(f"{word} {i}\n" for i, word in enumerate(self.words(), 1)), encoding="utf-8")
        text.write_text("".join(f"0 0 {word}\n" for word in self.words()) + "0\n", encoding="utf-8")
        measure.run(WARPFST, "compile", text, "--acceptor", f"--isymbols={words}", "-o", grammar)
        return [f"--grammar={grammar}", f"--words={words}"]

    def ways(self, topology):
        """Names, graphs and flags of decode."""
        lexicon = f"--lexicon={self.lexicon}"
        yield "words alone", self.mkgraph("loop", topology, lexicon, *self.grammar), []
        graph = self.mkgraph("lm", topology, lexicon, f"--lm={CTC / 'lm3.arpa.gz'}")
        yield "word model", graph, []
        yield "word model, boosts", graph, [f"--boost={self.boosts}"]
        if self.name == "bpe":
            yield "token model", self.mkgraph("tokens", topology), [f"--lm={WORK / 'pieces.wlm'}", "--join", "--word-score=1"]

    def decode(self, graph, beam, flags):
        summary = WORK / "summary.json"
        measure.run(WARPFST, "decode", graph, self.scores, f"--acoustic-scale={SCALE}", f"--beam={beam}", f"--ref={self.ref}", f"--summary={summary}", "-q", "-o", WORK / "hyp", *flags)
        return json.loads(summary.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--heads", default="phone,char,bpe")
    parser.add_argument("--beams", default="8,11,14,17")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    measure.run(WARPFST, "lm", "convert", CTC / "pieces4.arpa.gz", "-o", WORK / "pieces.wlm")
    figures, rows = [], []
    for name in options.heads.split(","):
        head = Head(name, options.data)
        for (what, *correct), (_, *compact) in zip(head.ways("correct"), head.ways("compact")):
            for beam in options.beams.split(","):
                cells = []
                for topology, (graph, flags) in zip(TOPOLOGIES, (correct, compact)):
                    summary = head.decode(graph, beam, flags)
                    wer, tokens = f"{summary['wer']:.2f}", f"{summary['tokens_per_frame']:.1f}"
                    cells += [wer, tokens]
                    setup = f"{name}, {what}, {topology}, acoustic scale {SCALE}, beam {beam}, {summary['utterances']} utterances"
                    figures += [("topologies, WER", setup, wer, "%"), ("topologies, tokens a frame", setup, tokens, "tokens")]
                rows.append([name, what, beam, *cells])
                print(*rows[-1], file=sys.stderr)
    print(measure.table(["tokens", "graph", "beam", *(f"{what}, {topology}" for topology in TOPOLOGIES for what in ("WER", "tokens a frame"))], rows))
    if options.record:
        measure.record(figures, "./run bench topologies", machine=measure.machine())


if __name__ == "__main__":
    main()
