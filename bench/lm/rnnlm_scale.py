"""rnnlm_scale.py - generates the setting of Lee et al. 2015 at any scale, for `./run bench rnnlm`: a vocabulary of up to a million words, a bigram graph, and a recurrent model (one
sigmoid layer, hierarchical softmax, MaxEnt order 3). The model is trained on all words once and on the first part of the text on which the bigram model was counted.

Models with more hidden units are the trained model padded with zero rows and columns. Costs and search are the same; the arithmetic is that of the larger size.
"""
import json
import struct
import sys

import measure
from measure import BUILD, ROOT, WARPFST

GENERATE = ROOT / "build" / "release" / "bench" / "generate_ctc_task"
UTTERANCES = 12
BEAM = ["--beam=11", "--max-active=3000", "--frame-shift=0.04"]


def widen(model, hidden, out):
    """Pads a version 0 model with zeros. The added units have activation 1/2, but all their outgoing weights are 0."""
    with open(f"{model}.nnet", "rb") as net, open(f"{out}.nnet", "wb") as wide:
        old, cells, order = struct.unpack("<QQi", net.read(20))
        lines = sum(1 for _ in open(model, encoding="utf-8"))
        wide.write(struct.pack("<QQi", hidden, cells, order))
        padding = bytes(4 * (hidden - old))
        for rows, new_rows in ((lines, lines), (lines, lines), (old, hidden)):  # embedding, output, recurrent
            wide.writelines(net.read(4 * old) + padding for _ in range(rows))
            wide.writelines(bytes(4 * hidden) for _ in range(new_rows - rows))
        while block := net.read(1 << 24):
            wide.write(block)
    out.write_text(model.read_text(encoding="utf-8"), encoding="utf-8")


class Task:
    def __init__(self, words):
        self.folder = BUILD / f"rnnlm_{words}"
        self.graph, self.lm, self.model = (self.folder / name for name in ("TLG.wfst", "lm.arpa", "rnn"))
        if not self.graph.exists():
            measure.run(GENERATE, self.folder, f"--words={words}", f"--text-words={12 * words}", "--min-trigram=1000", f"--utterances={UTTERANCES}",
                        f"--train-words={words}")
            measure.run(WARPFST, "mkgraph", "ctc", f"--tokens={self.folder / 'tokens.txt'}", f"--lexicon={self.folder / 'lexicon.txt'}", f"--lm={self.lm}", "--topology=compact", "-q", "-o",
                        self.graph)
        if not self.model.exists():
            measure.run(WARPFST, "rnnlm", "train", self.folder / "train.txt", self.folder / "valid.txt", "-o", self.model, "--hidden=100", f"--maxent-cells={100 * words}",
                        "--max-epochs=1")

    def model_of(self, hidden):
        wide = self.folder / f"rnn{hidden}"
        if hidden != 100 and not wide.exists():
            widen(self.model, hidden, wide)
        return self.model if hidden == 100 else wide

    def decode(self, hidden, cache, batch, utterances, device, core):
        """Returns the summary, and the processor time of all utterances except the first."""
        flags = [f"--rnnlm={self.model_of(hidden)}", f"--rnnlm-ngram={self.lm}", f"--rnnlm-small={self.lm}", "--rnnlm-weight=0.5", f"--rnnlm-cache={cache}"] if hidden else []
        summaries, costs = [], []
        for count in (1, utterances):
            command = [WARPFST, "decode", self.graph, self.scores(count), *BEAM, f"--device={device}", "--num-threads=1", f"--batch={batch}", "-o", self.folder / "out", *flags]
            costs.append(measure.timed([*command, f"--summary={self.folder / 'summary'}"], core).cpu_s)
            summaries.append(json.loads((self.folder / "summary").read_text()))
        seconds = 3600 * (summaries[1]["hours"] - summaries[0]["hours"])
        return summaries[1], seconds / (costs[1] - costs[0])

    def scores(self, count):
        """Writes the scores of the first utterances."""
        every, some = self.folder / "every.scp", self.folder / f"first{count}.scp"
        if not every.exists():
            measure.run(WARPFST, "matrix", "copy", self.folder / "peaky.ark", "-o", self.folder / "every.ark", f"--scp={every}")
        some.write_text("".join(every.read_text(encoding="utf-8").splitlines(keepends=True)[:count]), encoding="utf-8")
        return some


def measure_all(words, hiddens, device, core, utterances=UTTERANCES):
    """Returns table rows and figures for measure.record: decoding without the recurrent model; with it but without cache and deduplication; and with both, utterances one by one and in batches."""
    task, rows, figures = Task(words), [], []
    kinds = [(0, "utterance", utterances, "no recurrent model")]
    for hidden in hiddens:
        kinds += [(hidden, "none", 1, "naive"), (hidden, "utterance", 1, "cache of the utterance"), (hidden, "utterance", utterances, "cache of the utterance"),
                  (hidden, "shared", utterances, "shared cache")]
    for hidden, cache, batch, name in kinds:
        summary, rtfx = task.decode(hidden, cache, batch, utterances, device, core)
        counts, frames = summary.get("rnnlm", {}), summary["hours"] * 3600 / 0.04
        requests, costs, states = (counts.get(what, 0) / frames for what in ("requests", "costs", "hidden_states"))
        rows.append([words, hidden, name, batch, f"{requests:.0f}", f"{100 * counts.get('hit_ratio', 0):.1f}", f"{costs:.0f}", f"{states:.1f}", f"{rtfx:.1f}"])
        print("  " + " | ".join(map(str, rows[-1])), file=sys.stderr)
        setup = f"generated CTC, {words} words, bigram graph, hidden {hidden}, {name}, batch {batch}, beam 11, max_active 3000, one core, processor time"
        figures += [("decode with RNN LM at scale", setup, value, unit) for value, unit in (
            (f"{rtfx:.1f}", "RTFx"), (f"{requests:.0f}", "requests/frame"), (f"{100 * counts.get('hit_ratio', 0):.1f}", "% hits"))]
    return rows, figures


HEADER = ["words", "hidden", "cache", "batch", "requests per frame", "hits, %", "costs per frame", "states per frame", "RTFx"]
