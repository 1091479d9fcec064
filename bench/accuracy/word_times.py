"""Counts how many word times are exact: `./run bench word_times`.

For CTC graphs of characters, byte pairs and phones in all four topologies, and a hybrid graph, utterances are decoded twice: with the graph's word aligner
(times), and without it (estimates). Both are compared with times that this script computes from the labels of the best path; it shares no code with the library. It aligns the
words of a path with its tokens by dynamic programming over all pronunciations. If several alignments are possible, it takes the one with the longest first word, and so on.
Streams (chunks of 7 frames), batches of one, and results on a GPU, if there is one, must have the same times.
"""
import argparse
import gzip
import json
import pathlib
import sys

import numpy as np

import warpfst as wf

TOPOLOGIES = ("correct", "compact", "minimal", "eesen")


def runs_of(alignment, is_blank):
    """Maximal runs of a label that is not a blank: [label, first, end]."""
    runs = []
    for frame, label in enumerate(alignment):
        if is_blank(label):
            continue
        if runs and runs[-1][0] == label and runs[-1][2] == frame:
            runs[-1][2] = frame + 1
        else:
            runs.append([label, frame, frame + 1])
    return runs


def phone_runs(alignment, phone_of):
    """Runs of phones from senone labels; phone_of[label] = (phone, state). A phone begins where the phone changes or its states start over."""
    runs, before = [], None
    for frame, label in enumerate(alignment):
        phone, state = phone_of[label]
        begins = before is None or phone != before[0] or state < before[1] or (state == 0 and label != before[2])
        if begins:
            runs.append([phone, frame, frame + 1])
        else:
            runs[-1][2] = frame + 1
        before = (phone, state, label)
    return runs


def lay_words(words, runs, pronunciations, between=(), may_split=True):
    """Returns [(first frame, end frame)] of each word, or None if the words cannot be aligned with all runs.

    A place is (run, frame). Successive equal tokens may share a run of several frames; each except the last then gets one frame of it.
    """
    end = len(runs)

    def after(place, spelled):
        """Yields the places where a pronunciation that begins at `place` can end, with the word's first and last frame."""
        found = {(place, None, None)}
        for i, token in enumerate(spelled):
            following = set()
            for (run, frm), first, _ in found:
                if run == end or runs[run][0] != token:
                    continue
                start = max(frm, runs[run][1])
                following.add(((run + 1, 0), start if first is None else first, runs[run][2]))
                again = i + 1 == len(spelled) or spelled[i + 1] == token
                if again and may_split and runs[run][2] - start >= 2:
                    following.add(((run, start + 1), start if first is None else first, start + 1))
            found = following
        return found

    memo = {}

    def fits(place, w):
        key = (place, w)
        if key not in memo:
            memo[key] = False
            memo[key] = bool(choices(place, w)) if w < len(words) else all(run[0] in between for run in runs[place[0] :]) and not (place[0] < end and place[1] > 0)
        return memo[key]

    def choices(place, w):
        """(end, first, next place) of each alignment of word w from `place`, after silence, from which the remaining words can be aligned."""
        good = []
        run, frm = place
        while True:
            for spelled in pronunciations.get(words[w], ()):
                for following, first, last in after((run, frm), spelled):
                    if fits(following, w + 1):
                        good.append((last, first, following))
            if good or run == end or runs[run][0] not in between:
                return good
            run, frm = run + 1, 0

    place, times = (0, 0), []
    for w in range(len(words)):
        good = choices(place, w)
        if not good:
            return None
        last, first, place = max(good)
        times.append((first, last))
    return times if fits(place, len(words)) or not words else None


class Count:
    def __init__(self):
        self.words = self.starts = self.ends = self.far = self.utterances = self.left = 0

    def add(self, said, right):
        for word, (start, end) in zip(said, right):
            self.words += 1
            self.starts += word.start == start
            self.ends += word.end == end
            self.far += abs(word.start - start) >= 6  # of 40 ms: more than 200 ms

    def row(self):
        share = lambda n: f"{100 * n / self.words:.2f}" if self.words else "-"
        return f"{share(self.starts):>8} {share(self.ends):>8} {share(self.far):>8}"


def read_lexicon(path, tokens):
    spelled = {}
    for line in open(path, encoding="utf-8"):
        word, *units = line.split()
        spelled.setdefault(word, []).append([tokens[unit] for unit in units])
    return spelled


def same_times(a, b):
    return [(w.label, w.start, w.end) for w in a.words] == [(w.label, w.start, w.end) for w in b.words]


def streamed(decoder, matrices, frames=7, at_once=100):
    """Results of streams that get `frames` frames per chunk."""
    for first in range(0, len(matrices), at_once):
        group = matrices[first : first + at_once]
        streams = [decoder.stream() for _ in group]
        for at in range(0, max(map(len, group)), frames):
            open_ones = [(stream, matrix[at : at + frames]) for stream, matrix in zip(streams, group) if at < len(matrix)]
            decoder.advance(*zip(*open_ones))
        yield from (stream.finish() for stream in streams)


def check(graph, scores, right_of, options, gpu):
    """Returns (exact with the graph's aligner, exact estimates, words, sentences that could not be aligned)."""
    bare = wf.Graph(graph.fst.with_word_aligner(None), graph.columns)
    now, before = Count(), Count()
    keys = list(scores)
    decoder = wf.Decoder(graph, **options)
    batch = decoder.decode(list(scores.values()))
    estimates = wf.Decoder(bare, **options).decode(list(scores.values()))
    others = [(streamed(decoder, list(scores.values())), "in a stream")]
    if gpu:
        on_gpu = wf.Decoder(graph, device="cuda", **options)
        others += [(on_gpu.decode(list(scores.values())), "on the GPU"), (streamed(on_gpu, list(scores.values())), "in a stream on the GPU")]
    for results, where in others:
        for key, result, other in zip(keys, batch, results, strict=True):
            assert same_times(result, other), f"{key}: another time {where}"
    for key, result, estimate in zip(keys, batch, estimates):
        assert result.text == estimate.text and result.cost == estimate.cost
        right = right_of(result)
        now.utterances += 1
        if right is None:
            now.left += 1
            continue
        now.add(result.words, right)
        before.add(estimate.words, right)
    single = decoder.decode([scores[keys[0]]])[0]
    assert same_times(single, batch[0])
    return now, before


def ctc_rows(data, count, gpu):
    for kind in ("char", "bpe", "phone"):
        folder = data / f"logp_{kind}"
        if not folder.is_dir():
            print(f"{kind}: no {folder}", file=sys.stderr)
            continue
        scores = {path.stem: np.load(path).astype(np.float32) for path in sorted(folder.glob("*.npy"))[:count]}
        tokens = {line.split()[0]: int(line.split()[1]) + 1 for line in open(data / f"tokens_{kind}.txt", encoding="utf-8")}
        spelled = read_lexicon(data / f"lexicon_{kind}.txt", tokens)
        for topology in TOPOLOGIES:
            graph = wf.build_ctc_graph(tokens=data / f"tokens_{kind}.txt", lexicon=data / f"lexicon_{kind}.txt", lm=data / "lm3.arpa.gz", topology=topology)
            texts = {graph.words.find(word): units for word, units in spelled.items()}

            def right_of(result, tokens=tokens, texts=texts):
                runs = runs_of(result.alignment, lambda label: label in (0, tokens["<blk>"]))
                return lay_words([word.label for word in result.words], runs, texts)

            yield f"{kind} {topology}", *check(graph, scores, right_of, {"acoustic_scale": 0.7}, gpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "examples" / "ctc", help="folder with logp_*, tokens_*, lexicon_* and lm3.arpa.gz")
    parser.add_argument("--count", type=int, default=100, help="number of utterances of each set")
    parser.add_argument("--hybrid", type=pathlib.Path, nargs=4, metavar=("GRAPH", "MODEL", "LEXICON", "SCORES"), help="also a hybrid graph made from a Sphinx model")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = list(ctc_rows(arguments.data, arguments.count, arguments.device == "cuda"))
    if arguments.hybrid:
        rows += list(hybrid_rows(*arguments.hybrid, arguments.device == "cuda"))
    if arguments.json:
        for name, now, before in rows:
            print(json.dumps({"set": name, "words": now.words, "starts": now.starts, "ends": now.ends, "estimated_starts": before.starts, "estimated_ends": before.ends, "left_out": now.left}))
        return
    print(f"{'%':24} {'words':>6}   times: starts ends >200 ms     estimates: starts ends >200 ms     utterances left out")
    for name, now, before in rows:
        print(f"{name:24} {now.words:6} {now.row()}   {before.row()}   {now.left} of {now.utterances}")


def hybrid_rows(graph_path, model, lexicon, scores_path, gpu):
    """The rows of a hybrid graph. The text form of a Sphinx model (pocketsphinx_mdef_convert) gives the phone and state of each senone."""
    phone_of, names = {0: (0, 0)}, {}
    opened = gzip.open if model.suffix == ".gz" else open
    for line in opened(model, "rt"):
        fields = line.split()
        if len(fields) < 8 or fields[-1] != "N" or line.startswith("#"):
            continue
        base = names.setdefault(fields[0], len(names) + 1)
        for state, senone in enumerate(fields[6:-1]):
            phone_of[int(senone) + 1] = (base, state)
    graph = wf.Graph.load(graph_path)
    spelled = {}
    for line in open(lexicon, encoding="utf-8"):
        word, *units = line.split()
        label = graph.words.find(word.split("(")[0])
        if label:
            spelled.setdefault(label, []).append([names[unit] for unit in units])
    between = {number for name, number in names.items() if name == "SIL" or name.startswith("+")}
    scores = {key: np.asarray(matrix) for key, matrix in wf.ScoreReader(str(scores_path))}

    def right_of(result):
        return lay_words([word.label for word in result.words], phone_runs(result.alignment, phone_of), spelled, between, may_split=False)

    yield "hybrid", *check(graph, scores, right_of, {"acoustic_scale": 0.1538}, gpu)


if __name__ == "__main__":
    main()
