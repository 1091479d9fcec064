#!/usr/bin/env python3
"""spot [--data=PATH] [--record]

Measures how well lattices find listed words (keyword spotting), on CTC phone scores of real speech (examples/ctc, or .npy files: a folder, or a tar archive of one).

Lists are those of bench/accuracy/boost.py: `right`, five lists of 20 rare words that are said in some utterances, whose figures are added; and `mixed, 1,000`, all these words and distractors, which
nobody says, in one list. Each list is looked for in all utterances. A word counts as found as often as the transcript and the hits both have it; more hits are false alarms. Times are not
compared, because the transcripts have none. `best path`: the words of the best path in place of hits.
"""
import argparse
import pathlib
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import boost
import decode_tasks
import measure
import numpy as np

import warpfst as wf

CTC = decode_tasks.CTC
KINDS = ("right", "mixed, 1,000")
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
COLUMNS = ("recall", "precision", "F1", "false alarms")


def seconds(work):
    """Processor seconds of a call, the least of three, and what it returns."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        made = work()
        times.append(time.process_time() - begin)
    return min(times), made


def row(speech, kind, found):
    """`found`: (utterance, its list) -> the words that were found."""
    total = boost.Counts()
    for lists in speech.kinds[kind]:
        total += boost.whole(boost.count(speech, {key: found[key, tuple(listed)] for key, listed in lists.items()}, lists))
    return [f"{100 * value:.1f}" for value in (total.recall, total.precision, total.f1)] + [str(total.false_alarms)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=CTC / "logp_phone")
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    matrices = {path.stem: np.load(path).astype(np.float32) for path in sorted(pathlib.Path(decode_tasks.unpacked(arguments.data)).glob("*.npy"))}
    ref = decode_tasks.references(set(matrices), decode_tasks.work_folder("spot") / "ref", CTC / "text")
    speech = boost.Speech(ref, "phone", draws=5)
    graph = wf.build_ctc_graph(CTC / "tokens_phone.txt", CTC / "lexicon_phone.txt", CTC / "lm3.arpa.gz", topology="compact")
    decoder = wf.Decoder(graph, acoustic_scale=0.7, beam=15, max_active=7000, blank=0, lattice_beam=8, determinize=True, num_threads=1)
    decoding, results = seconds(lambda: dict(zip(matrices, decoder.decode(list(matrices.values())))))
    setup, rows, out = f"CTC phones, {len(speech.ref)} utterances", [], []
    for kind in KINDS:
        hits = {}
        for lists in speech.kinds[kind]:
            spotting, each = seconds(lambda lists=lists: {key: results[key].spot(listed, min(THRESHOLDS)) for key, listed in lists.items()})
            hits |= {(key, tuple(listed)): each[key] for key, listed in lists.items()}
        ways = {"best path": {place: results[place[0]].text.split() for place in hits}}
        for threshold in THRESHOLDS:
            ways[f"threshold {threshold:g}"] = {place: [hit.text for hit in each if hit.confidence >= threshold] for place, each in hits.items()}
        for name, found in ways.items():
            cells = row(speech, kind, found)
            rows.append([kind, name, *cells])
            out += [("keyword spotting", f"{setup}, {kind} lists, {name}, {column}", value, "words" if column == "false alarms" else "%") for column, value in zip(COLUMNS, cells) if column != "F1"]
        size = len(next(iter(lists.values())))
        print(f"{size} words in {len(matrices)} utterances: {spotting:.3f} s of a processor; decoding with lattices: {decoding:.3f} s", flush=True)
        out.append(("keyword spotting", f"{setup}, {size} words, time of spotting", f"{100 * spotting / decoding:.1f}", "% of decoding"))
    print(measure.table(["lists", "words of", *COLUMNS], rows))
    if arguments.record:
        measure.record(out, "./run bench spot" + (f" --data={pathlib.Path(arguments.data).name}" if arguments.data != CTC / "logp_phone" else ""))


if __name__ == "__main__":
    main()
