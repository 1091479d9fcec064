#!/usr/bin/env python3
"""papers --data=FOLDER [--parts=large_lm,rnn,cache,topology] [--device=cpu] [--beams=8,10,12,14,16] [--programs=FOLDER] [--record]

Curves and tables of the papers that docs/engineering/papers.md goes through, on the real CTC scores of examples/ctc, with the models of `./run bench accuracy` (which runs first).

  large_lm  phones, unigrams in the graph, en-us and the text on the fly: word error rate and speed by beam; on a GPU the model in its memory, its index there and the n-grams in
            host memory (a tenth of them cached), all in host memory, one utterance at a time and 400; on the CPU with one thread and with eight. Processors busy meanwhile
  rnn       phones, unigrams in the graph, all models on the fly: word error rate, speed and cache hits by beam
  cache     the same on a CPU, 50 utterances one by one, by rnnlm_memory: hits, results and hidden states computed again
  topology  word error rate and graph size of every head by CTC topology
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import accuracy
import decode_tasks
import measure

BEAM, MAX_ACTIVE, SCALE = 15, 7000, 0.7
MEMORY = tuple(1 << bits for bits in range(16, 29, 2))  # bytes
CACHE_UTTERANCES = 50
TOPOLOGIES = ("correct", "compact", "minimal", "eesen")
CPU = "cpu"


class Bench:
    def __init__(self, options):
        self.options, self.figures = options, []
        self.models = accuracy.Models(options.data, True)
        self.programs = decode_tasks.Programs(options.programs)
        self.device, self.gpu = options.device, options.device != CPU
        self.where = options.device if self.gpu else "CPU"

    def head(self, name):
        head = accuracy.Head(name, self.options.data, self.models, self.options)
        head.scale = SCALE
        return head

    def add(self, part, setup, **figures):
        self.figures += [(f"papers, {part}", f"{setup}, {what}", value, unit) for what, (value, unit) in figures.items()]

    # --- parts ---

    def large_lm_runs(self):
        """Placement of the model, utterances at once, threads."""
        if self.gpu:
            yield from ((lm, batch, 0) for batch in (1, 400) for lm in ("off", "lm=device", "lm=hybrid,lm_cache=10", "lm=host"))
        yield from (("lm=device", 400, threads) for threads in (1, 8))

    def large_lm(self):
        head = self.head("phone")
        graph, words = head.graph(self.models.unigrams, "--backoff=failure")
        reference, rows = head.write_reference(), []
        command = [self.programs.decode, graph, head.scores, f"--ref={reference}", f"--words={words}", f"--acoustic-scale={head.scale}", f"--lm={self.models.chained}"]
        for lm, batch, threads in self.large_lm_runs():
            device, utterances = (CPU, 100) if threads else (self.options.device, 1260 if batch > 1 else 20)
            place = "off" if lm == "off" else lm.split(",")[0].split("=")[1]
            runs = [f"beam={beam},max_active={MAX_ACTIVE},device={device},scores={'host' if threads else 'device'},batch={batch},utterances={utterances},threads={threads},seconds=0.3" + f",{lm}" * (lm != "off")
                    for beam in self.options.beams]
            for line in self.programs.run(*command, *runs).splitlines():
                row = json.loads(line)
                on, busy = f"CPU, {threads} threads" if threads else f"GPU, batch {batch}", row["processor_s"] / row["seconds"]
                asked = row.get("lm_cache_hits", 0) + row.get("lm_host_reads", 0)
                hits = f"{100 * row['lm_cache_hits'] / asked:.1f}" if asked else ""
                rows.append([on, place, f"{row['beam']:g}", f"{row['wer']:.2f}" if utterances == 1260 else "", f"{row['rtfx']:.0f}", f"{1 / row['rtfx']:.6f}", f"{busy:.2f}", hits])
                setup = f"{on}, model {place}, beam {row['beam']:g}, {utterances} utterances"
                self.add("large LM", setup, speed=(f"{row['rtfx']:.1f}", "RTFx"), WER=(f"{row['wer']:.2f}", "%"), processors_busy=(f"{busy:.2f}", "processors"))
        return measure.table(["on", "model in", "beam", "WER, %", "RTFx", "RTF", "processors busy", "cache hits, %"], rows)

    def decode_recurrent(self, head, graph, words, beam, *flags):
        m, summary = self.models, accuracy.WORK / "summary.json"
        self.options.beam = beam
        hyp = head.decode(graph, words, f"--lm={m.chained}", *m.rnn_flags(), f"--summary={summary}", "--num-threads=0", *flags)
        got = json.loads(summary.read_text())
        return f"{head.errors(hyp):.2f}", f"{got['rtfx']:.1f}", got["rnnlm"], got["hours"] * 3600 / 0.04

    def rnn(self):
        head, rows = self.head("phone"), []
        graph, words = head.graph(self.models.unigrams, "--backoff=failure")
        for beam in self.options.beams:
            wer, rtfx, counts, frames = self.decode_recurrent(head, graph, words, beam, "--rnnlm-cache=shared", f"--rnnlm-memory={1 << 30}")
            rows.append([f"{beam:g}", wer, rtfx, f"{counts['requests'] / frames:.0f}", f"{100 * counts['hit_ratio']:.1f}"])
            self.add("recurrent LM", f"{self.where}, beam {beam:g}", WER=(wer, "%"), speed=(rtfx, "RTFx"), hits=(f"{100 * counts['hit_ratio']:.1f}", "%"))
        return measure.table(["beam", "WER, %", "RTFx", "requests per frame", "hits, %"], rows)

    def cache(self):
        """On the CPU, where each utterance has its own cache: on a GPU tables grow beyond rnnlm_memory rather than lose entries that are needed soon."""
        head, rows = self.head("phone"), []
        self.options.device = CPU
        graph, words = head.graph(self.models.unigrams, "--backoff=failure")
        head.take(CACHE_UTTERANCES)
        for memory in MEMORY:
            _, _, counts, frames = self.decode_recurrent(head, graph, words, 12, "--rnnlm-cache=utterance", f"--rnnlm-memory={memory}", "--batch=1")
            hits = f"{100 * counts['hit_ratio']:.1f}"
            rows.append([memory >> 10, hits, f"{counts['requests'] / frames:.0f}", f"{counts['costs'] / frames:.0f}", f"{counts['hidden_states'] / frames:.1f}", counts["evicted_results"], counts["evicted"]])
            self.add("cache of the recurrent LM", f"CPU, beam 12, {CACHE_UTTERANCES} utterances, rnnlm_memory {memory >> 10} KiB", hits=(hits, "%"), costs_per_frame=(f"{counts['costs'] / frames:.1f}", "costs"))
        self.options.device = self.device
        return measure.table(["rnnlm_memory, KiB", "hits, %", "requests per frame", "costs per frame", "hidden states per frame", "results evicted", "states evicted"], rows)

    def topology(self):
        rows = []
        self.options.beam = BEAM
        for name in ("phone", "char", "bpe"):
            head = self.head(name)
            for topology in TOPOLOGIES:
                graph, words = head.graph(accuracy.CTC / "lm3.arpa.gz", f"--topology={topology}")
                size = json.loads(measure.run(measure.WARPFST, "info", graph, "--json"))
                wer = f"{head.errors(head.decode(graph, words)):.2f}"
                rows.append([name, topology, size["states"], size["arcs"], wer])
                self.add("topology", f"{name}, {topology}, {len(head.refs)} utterances, acoustic scale {head.scale}, beam {BEAM}", WER=(wer, "%"), arcs=(size["arcs"], "arcs"))
        return measure.table(["tokens", "topology", "states", "arcs", "WER, %"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--parts", default="large_lm,rnn,cache,topology")
    parser.add_argument("--device", default=CPU)
    parser.add_argument("--beams", type=lambda text: [float(beam) for beam in text.split(",")], default=[8.0, 10.0, 12.0, 14.0, 16.0])
    parser.add_argument("--programs", default=measure.ROOT / "build" / "release", help="a build folder, or one made by ./run pack-gpu")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    options = parser.parse_args()
    options.max_active, options.beam = MAX_ACTIVE, BEAM
    accuracy.WORK.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    for part in options.parts.split(","):
        print(f"{part}\n\n{getattr(bench, part)()}\n", flush=True)
    print(f"{measure.machine()}; load {measure.load()}", file=sys.stderr)
    if options.record:
        measure.record(bench.figures, f"./run bench papers --device={options.device}", machine=measure.machine_with_gpu() if bench.gpu else measure.machine())


if __name__ == "__main__":
    main()
