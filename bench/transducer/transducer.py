#!/usr/bin/env python3
"""transducer DATA [--text=FILE] [--programs=FOLDER] [--device=cuda] [--batch=300] [--threads=1] [--record]

Word error rates and speed of transducers on one core, or with the model on a GPU and --threads threads that search. DATA has rnnt.safetensors, lstm.safetensors, tdt.safetensors, tokens.txt, text, and enc.tar.xz, encoder outputs of real
utterances (40 ms frames); the environment variable WARPFST_TRANSDUCER_DATA may name it. Lexicon and language model are those of examples/ctc.

  greedy      over tokens alone
  beam        the same, 8 tokens a step, beam 6
  LM          words: lexicon and 3-gram model in the graph
  LM on the fly   the lexicon in the graph, the same model while decoding
  internal LM subtracted   LM on the fly, less INTERNAL times the cost by a 2-gram model: that of the training transcripts, cut to bigrams
  RNN LM      LM on the fly and a recurrent model, with 0.3 of the weight; the recurrent model is trained on the training transcripts, --text (default: DATA/../ctc/train_text;
              left out if there is none)
  boosts      LM, and the words that occur once in the references, at 2 nats each, for all utterances

Beside them the CTC head of the same encoder (the output logp_bpe of DATA/encoder.onnx), over tokens alone and with the same models. Its search sees every frame's scores at
once: beam 15, acoustic_scale 0.7.

With LM, 16 tokens a step, beam 4, acoustic_scale 3, word_score 1: chosen on these utterances with rnnt, for all models.
"""
import argparse
import collections
import json
import os
import pathlib
import sys
import tarfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import measure
import numpy as np
import onnx_weights

CTC = measure.ROOT / "examples" / "ctc"
MODELS = {None: "CTC", "rnnt": "RNN-T, stateless", "lstm": "RNN-T, LSTM", "tdt": "TDT, stateless"}
BEAM = ["--max-hypotheses=8", "--beam=6"]
CTC_HEAD = ["--beam=15", "--acoustic-scale=0.7"]
WORDS = ["--max-hypotheses=16", "--beam=4", "--acoustic-scale=3", "--word-score=1"]
INTERNAL = 0.2
BOOST = 2.0  # nats of the model; times acoustic_scale


class Runs:
    def __init__(self, arguments):
        self.data, self.program, self.core = pathlib.Path(arguments.data), pathlib.Path(arguments.programs) / "warpfst", measure.last_core()
        self.device, self.how = arguments.device, [f"--num-threads={arguments.threads}", f"--batch={arguments.batch}"]
        self.folder = measure.BUILD / "transducer"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "enc").exists():
            with tarfile.open(self.data / "enc.tar.xz") as archive:
                archive.extractall(self.folder, filter="data")
        self.write_ctc()
        self.list_boosts()
        tokens, lexicon, lm = f"--tokens={self.data / 'tokens.txt'}", f"--lexicon={CTC / 'lexicon_bpe.txt'}", CTC / "lm3.arpa.gz"
        self.graph("tokens", tokens)
        self.graph("lm", tokens, lexicon, f"--lm={lm}", f"--words-out={self.folder / 'words.txt'}")
        self.graph("lexicon", tokens, lexicon, f"--lm={self.unigrams(lm)}")
        measure.run(self.program, "lm", "convert", lm, f"--subtract={self.folder / 'unigrams.arpa'}", "-q", "-o", self.folder / "difference.wlm")
        measure.run(self.program, "lm", "prune", lm, "--max-ngrams=1000000,0", "-q", "-o", self.folder / "bigrams.arpa")
        measure.run(self.program, "lm", "convert", self.folder / "bigrams.arpa", "-q", "-o", self.folder / "internal.wlm")
        self.rnn = self.train(pathlib.Path(arguments.text)) if os.path.exists(arguments.text) else None

    def train(self, text):
        """A recurrent model of the training transcripts; every twentieth line decides when training ends."""
        lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
        (self.folder / "train").write_text("".join(line for i, line in enumerate(lines) if i % 20) + "<unk>\n", encoding="utf-8")
        (self.folder / "valid").write_text("".join(lines[::20]), encoding="utf-8")
        model = self.folder / "gru"
        measure.run(self.program, "rnnlm", "train", self.folder / "train", self.folder / "valid", "-o", model, "--layer=gru", "--hidden=100")
        return model

    def list_boosts(self):
        counts = collections.Counter(word for line in open(self.data / "text", encoding="utf-8") for word in line.split()[1:])
        for name, scale in (("boosts", 3), ("ctc-boosts", 0.7)):
            (self.folder / name).write_text("".join(f"{word}\t{BOOST * scale}\n" for word in sorted(counts) if counts[word] == 1), encoding="utf-8")

    def unigrams(self, lm):
        measure.run(self.program, "lm", "prune", lm, "--max-total=1", "-q", "-o", self.folder / "unigrams.arpa")
        return self.folder / "unigrams.arpa"

    def graph(self, name, *flags):
        """For the transducers, and with ctc- before its name for the CTC head."""
        for prefix, topology in (("", ["--topology=transducer"]), ("ctc-", ["--topology=compact"])):
            measure.run(self.program, "mkgraph", "ctc", *topology, *flags, "-q", "-o", self.folder / f"{prefix}{name}.wfst")

    def write_ctc(self):
        """Log-probabilities of the CTC head."""
        (self.folder / "logp").mkdir(exist_ok=True)
        weight, bias = onnx_weights.Onnx(self.data / "encoder.onnx").layer_before("logp_bpe")
        for path in (self.folder / "enc").iterdir():
            logits = np.load(path).astype(np.float32) @ weight + bias
            logits -= logits.max(axis=1, keepdims=True)
            np.save(self.folder / "logp" / path.name, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))

    def decode(self, model, graph, *flags):
        """The summary, as a dict, with seconds of audio per CPU second of the whole command; on a GPU, per second of decoding. Without a model: of the CTC head."""
        summary = self.folder / "summary.json"
        inputs = [self.folder / "logp"] if model is None else [self.folder / "enc", f"--transducer={self.data / model}.safetensors"]
        command = [self.program, "decode", self.folder / f"{'ctc-' if model is None else ''}{graph}.wfst", *inputs, f"--ref={self.data / 'text'}"]
        command += ["--frame-shift=0.04", *self.how, f"--summary={summary}", "-o", self.folder / "out", *flags]
        if self.device != "cpu":
            measure.run(*command, f"--device={self.device}")
            return json.loads(summary.read_text())
        cost = measure.timed(list(map(str, command)), self.core)
        found = json.loads(summary.read_text())
        return {**found, "rtfx": found["hours"] * 3600 / cost.cpu_s}

    def rnn_flags(self):
        small, whole = self.folder / "unigrams.arpa", CTC / "lm3.arpa.gz"
        return [f"--rnnlm={self.rnn}", f"--rnnlm-ngram={whole}", "--rnnlm-weight=0.3", f"--rnnlm-small={small}", "--rnnlm-unk=<unk>", "--history-merge-order=4"]

    def all(self, model):
        """(name, summary) of each way to decode; model None: of the CTC head."""
        alone, words = (CTC_HEAD, CTC_HEAD) if model is None else (BEAM, WORDS)
        lm, less = f"--lm={self.folder / 'difference.wlm'}", [f"--lm-subtract={self.folder / 'internal.wlm'}", f"--lm-subtract-scale={INTERNAL}"]
        if model is not None:
            yield "greedy", self.decode(model, "tokens", "--greedy", "--join")
        yield "beam", self.decode(model, "tokens", *alone, "--join")
        yield "LM", self.decode(model, "lm", *words)
        yield "LM on the fly", self.decode(model, "lexicon", *words, lm)
        if model is not None:
            yield "internal LM subtracted", self.decode(model, "lexicon", *words, lm, *less)
        if self.rnn is not None:
            yield "RNN LM", self.decode(model, "lexicon", *words, *self.rnn_flags())
        if self.rnn is not None and model is not None:
            yield "RNN LM, internal LM subtracted", self.decode(model, "lexicon", *words, *self.rnn_flags(), *less)
        boosts = "boosts" if model is not None else "ctc-boosts"
        yield "boosts", self.decode(model, "lm", *words, f"--boost={self.folder / boosts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=os.environ.get("WARPFST_TRANSDUCER_DATA"))
    parser.add_argument("--text", help="training transcripts, one sentence a line")
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1, help="on a GPU; 0: all")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("no DATA: give the folder, or set WARPFST_TRANSDUCER_DATA")
    if arguments.device == "cpu" and arguments.threads != 1:
        parser.error("--threads is for --device=cuda: on the CPU one core is measured")
    arguments.text = arguments.text or pathlib.Path(arguments.data, "..", "ctc", "train_text")
    setup = "one core" if arguments.device == "cpu" else f"{arguments.device}, {arguments.threads or 'all'} threads"
    runs, rows, figures = Runs(arguments), [], []
    for model, name in MODELS.items():
        for way, summary in runs.all(model):
            rows.append([name, way, f"{summary['wer']:.2f}", measure.figure(summary["rtfx"]), f"{summary['tokens_per_frame']:.1f}"])
            figures.append((f"transducer task, {name}, {way}", f"{summary['utterances']} utterances", f"{summary['wer']:.2f}", "% WER"))
            figures.append((f"transducer task, {name}, {way}", f"{summary['utterances']} utterances, {setup}", f"{summary['rtfx']:.0f}", "RTFx"))
    print(f"{measure.machine()}; load {measure.load()}; {setup}; RTFx is seconds of audio per {'CPU second of the whole command' if arguments.device == 'cpu' else 'second of decoding'}")
    print(measure.table(["model", "decoding", "WER %", "RTFx", "tokens/frame"], rows))
    if arguments.record:
        measure.record(figures, "./run bench transducer DATA")


if __name__ == "__main__":
    main()
