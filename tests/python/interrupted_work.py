"""Repeats one kind of work, which test_interrupts.py interrupts. Needs only the package.

    python interrupted_work.py KIND TIMES [DEVICE]

Prints "ready" before it starts, and "interrupted" after KeyboardInterrupt. Does this TIMES times, and checks each time that the objects still work. Prints "sound"
at the end. Writes its files to the current folder.
"""

import array
import gzip
import itertools
import pathlib
import random
import sys

import warpfst as wf

CTC = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ctc"
KIND, TIMES, DEVICE = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or ["cpu"])[0]
rng = random.Random(7)


def scores(num_frames, num_columns=40):
    """Scores with a few high columns in each frame, like those of acoustic models."""
    row = [[-9.0] * num_columns for _ in range(997)]
    for frame in row:
        for _ in range(3):
            frame[rng.randrange(num_columns)] = -rng.random() * 3
    values = array.array("f", itertools.chain.from_iterable(row[t % 997] for t in range(num_frames)))
    return memoryview(values).cast("B").cast("f", (num_frames, num_columns))


def ctc_graph():
    return wf.build_ctc_graph(tokens=CTC / "tokens_phone.txt", lexicon=CTC / "lexicon_phone.txt", lm=CTC / "lm3.arpa.gz")


class Work:
    """`once` is the work that is interrupted. `check` asserts that its objects still work."""

    def check(self):
        self.once()


class Batch(Work):
    frames, count, options = 200, 400, {}

    def __init__(self):
        self.decoder = wf.Decoder(ctc_graph(), device=DEVICE, num_threads=2, **self.options)
        self.scores = [scores(self.frames)] * self.count
        self.small = scores(100)
        self.expected = self.decoder.decode([self.small])[0].text

    def once(self):
        self.decoder.decode(self.scores)

    def check(self):
        assert self.decoder.decode([self.small])[0].text == self.expected


class Progress(Batch):
    def once(self):
        self.decoder.decode(self.scores, progress=lambda stage, fraction: None)


class Long(Batch):
    frames, count = 90000, 1


class Lattice(Batch):
    frames, count, options = 3000, 4, {"lattice_beam": 8}


class Stream(Batch):
    def once(self):
        streams = [self.decoder.stream() for _ in range(4)]
        chunks = [scores(997)] * 4
        while True:
            for event in self.decoder.advance(streams, chunks):
                assert event.num_frames
            for stream in streams:
                stream.partial()


class LongChunk(Batch):
    frames, count = 90000, 1

    def once(self):
        stream = self.decoder.stream()
        try:
            stream.advance(self.scores[0])
        except KeyboardInterrupt:
            try:
                stream.partial()  # fails if its chunk was not finished
            except wf.CancelledError:
                stream.reset()
            stream.advance(self.small)
            assert stream.finish().text == self.expected
            raise


class Determinize(Batch):
    options = {"lattice_beam": 10}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.lattices = [result.lattice for result in self.decoder.decode([scores(1000), scores(500)])]

    def once(self):
        wf.determinize_lattices(self.lattices, beam=10)
        self.lattices[0].determinize(beam=10).mbr()


class Train(Work):
    def __init__(self):
        for name, size in (("train", 20000), ("valid", 1000)):
            words = " ".join(f"w{rng.randrange(300)}" + ("\n" if rng.random() < 0.1 else "") for _ in range(size))
            pathlib.Path(name).write_text(words + "\n", encoding="utf-8")

    def once(self, **options):
        wf.RnnLM.train("train", "valid", on_epoch=lambda epoch: None, **{"hidden": 64, **options})

    def check(self):
        self.once(hidden=4, max_epochs=1)


class TrainProgress(Train):
    def once(self, **options):
        super().once(progress=lambda stage, fraction: None, **options)


class Compose(Work):
    def __init__(self):
        def random_fst(size):
            arcs = [(s, rng.randrange(size), rng.randrange(4), rng.randrange(4), rng.random()) for s in range(size) for _ in range(3)]
            return wf.Fst.from_arcs(arcs, {s: 0.0 for s in range(size)})

        self.a, self.b = random_fst(2000), random_fst(1500)

    def once(self):
        wf.fst.compose(self.a, self.b)

    def check(self):
        assert wf.fst.compose(self.a, wf.Fst.from_arcs([(0, 0, 1, 1, 0.0)], {0: 0.0})).num_states


class Optimize(Work):
    def __init__(self):
        arcs, count = [], 1
        for _ in range(4000):
            state = 0
            for _ in range(10):
                arcs.append((state, count, rng.randrange(4), rng.randrange(4), rng.random()))
                state, count = count, count + 1
            arcs.append((state, 0, 5, rng.randrange(3), 0.0))
        self.fst = wf.Fst.from_arcs(arcs, {0: 0.0})
        self.acceptor = wf.Fst.from_arcs([(s, t, i + 1, i + 1, w) for s, t, i, _, w in arcs], {0: 0.0})

    def once(self):
        wf.fst.arcsort(wf.fst.rmepsilon(self.fst), sort_type="olabel")
        wf.fst.minimize(wf.fst.determinize(self.acceptor))
        wf.fst.shortest_distance(wf.fst.push(self.acceptor))
        wf.fst.shortest_path(self.fst, nshortest=1000)
        wf.Fst.read(self.written())

    def written(self):
        self.fst.write("optimized.wfst")
        return "optimized.wfst"


class Graph(Work):
    def once(self):
        graph = ctc_graph()
        wf.Decoder(graph)


class Models(Work):
    def __init__(self):
        with gzip.open(CTC / "lm3.arpa.gz", "rb") as source:
            pathlib.Path("lm.arpa").write_bytes(source.read())

    def once(self):
        model = wf.LM.read("lm.arpa")
        model.prune(threshold=1e-7).write_arpa("pruned.arpa")
        model.to_fst(backoff_label=len(model.words) + 5).write("lm.wfst")
        wf.LM.convert("lm.arpa", "lm.wlm").verify()


KINDS = {kind.__name__: kind for kind in (Batch, Progress, Long, Lattice, Stream, LongChunk, Determinize, Train, TrainProgress, Compose, Optimize, Graph, Models)}


def main():
    work = KINDS[KIND]()
    for _ in range(TIMES):
        print("ready", flush=True)
        try:
            while True:
                work.once()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        work.check()
    print("sound", flush=True)


if __name__ == "__main__":
    main()
