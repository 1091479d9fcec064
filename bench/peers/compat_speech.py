"""compat_speech.py - scores, references and the language model of `./run bench compat`."""
import pathlib

import decode_tasks
import measure
import numpy

CTC = measure.ROOT / "examples" / "ctc"
WORD_START = "\u2581"


class Speech:
    """Scores, references and tokens of one kind of model. The blank is column 0."""

    def __init__(self, folder, head):
        self.head = head
        self.tokens = [line.split()[0] for line in (CTC / f"tokens_{head}.txt").read_text(encoding="utf-8").splitlines()]
        archive = folder / f"logp_{head}.tar.xz"
        scores = decode_tasks.unpacked(archive) if archive.exists() else folder / f"logp_{head}"
        self.keys, self.scores, self.references = [], [], []
        for line in (CTC / "text").read_text(encoding="utf-8").splitlines():
            key, *words = line.split()
            path = pathlib.Path(scores, f"{key}.npy")
            if path.exists():
                self.keys.append(key)
                self.scores.append(numpy.ascontiguousarray(numpy.load(path), dtype=numpy.float32))
                self.references.append(words)
        if not self.scores:
            raise SystemExit(f"{folder}: no logp_{head}")

    def labels(self):
        """The tokens in pyctcdecode's convention."""
        space = " " if self.head == "char" else WORD_START
        return ["", *(space if token == WORD_START else token for token in self.tokens[1:])]

    def error_rate(self, texts):
        """In percent, of the first utterances."""
        pairs = list(zip(self.references, texts, strict=False))
        return 100 * sum(measure.distance(words, text.split()) for words, text in pairs) / sum(len(words) for words, _ in pairs)


class Comparison:
    """What one task came to, with compat and with the peer: a row of a table, and figures to record."""

    def __init__(self, speech, name, mine, theirs, peer):
        """`mine`, `theirs`: (texts, processor seconds)."""
        rates = [speech.error_rate(texts) for texts, _ in (mine, theirs)]
        seconds = [seconds for _, seconds in (mine, theirs)]
        count, equal = len(mine[0]), sum(a == b for a, b in zip(mine[0], theirs[0], strict=True))
        self.row = [f"{speech.head}, {name}", *(f"{rate:.2f}" for rate in rates), f"{equal} of {count}", *(f"{one:.2f}" for one in seconds), f"{seconds[1] / seconds[0]:.1f}"]
        setup = f"{speech.head}, {name}, {count} utterances, {sum(map(len, speech.scores[:count]))} frames"
        self.figures = []
        for who, rate, one in (("compat", rates[0], seconds[0]), (peer, rates[1], seconds[1])):
            self.figures += [("compat", f"{setup}, {who}", measure.figure(rate), "% WER"), ("compat", f"{setup}, {who}", measure.figure(one), "s")]
