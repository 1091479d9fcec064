#!/usr/bin/env python3
"""confidence [--phone-data=PATH] [--char-data=PATH] [--bpe-data=PATH] [--lattice-beams=3,5] [--hybrid-scores=FILE --hybrid-graph=FILE --hybrid-ref=FILE --hybrid-words=FILE] [--record]

Measures how reliable the confidences of words are: of the words with a confidence of about 0.8, are 80% right? A word is right if the alignment with the fewest errors pairs it with the
same word of the reference. CTC scores are .npy files: a folder, or a tar archive of one (default: the phones of examples/ctc). Hybrid scores: examples/demo_hybrid.sh --only scores

  factor       the factor on the costs of paths (--confidence-scale) with the smallest error on every second utterance
  error        expected calibration error: the mean of |confidence - share that is right| over ten bins of confidences, weighted by their numbers of words; measured on the
               other utterances at a factor of 1, at the fitted factor, and at the default (0.24 / sqrt(acoustic_scale), at most 1)
  separation   the probability that a right word has a higher confidence than a wrong one (area under the ROC curve), at the default

The tables of reliability are at the default, for all utterances. --lattice-beams: instead, error and separation of CTC scores at the default factor for each of these beams, at acoustic_scale
0.7 and 1, for all utterances.
"""
import argparse
import dataclasses
import itertools
import json
import pathlib
import sys
import tempfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

FACTORS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1)
BINS = 10


def right_words(words, reference):
    """Whether each word is right."""
    rows = [list(range(len(reference) + 1))]
    for i, word in enumerate(words):
        row = [i + 1]
        for j, other in enumerate(reference):
            row.append(min(rows[i][j] + (word != other), rows[i][j + 1] + 1, row[j] + 1))
        rows.append(row)
    right, j = [], len(reference)
    for i in range(len(words), 0, -1):
        while j > 0 and rows[i][j] == rows[i][j - 1] + 1 and rows[i][j] != rows[i - 1][j - 1] + (words[i - 1] != reference[j - 1]):
            j -= 1
        paired = j > 0 and rows[i][j] == rows[i - 1][j - 1] + (words[i - 1] != reference[j - 1])
        right.append(paired and words[i - 1] == reference[j - 1])
        j -= paired
    return right[::-1]


def decode(task, lattice_beam, factor):
    """[(confidence, right)] of the words of each utterance, in the order of their names. `factor` None: the default."""
    references = {fields[0]: fields[1:] for fields in map(str.split, task.ref.read_text(encoding="utf-8").splitlines())}
    flags = [f"--words={task.words}"] if task.words else []
    flags += [f"--max-tokens={task.max_tokens}"] if task.max_tokens else []
    flags += [] if factor is None else [f"--confidence-scale={factor}"]
    beam, max_active = task.base
    with tempfile.NamedTemporaryFile(dir=measure.BUILD) as out:
        limits = [f"--acoustic-scale={task.acoustic_scale}", f"--beam={beam}", f"--max-active={max_active}", f"--lattice-beam={lattice_beam}"]
        measure.run(measure.WARPFST, "decode", task.graph, task.scores, *limits, "--format=json", "--confidence", "-o", out.name, *flags)
        lines = [json.loads(line) for line in open(out.name, encoding="utf-8")]
    found = []
    for line in sorted(lines, key=lambda line: line["key"]):
        words = [word for word in line["words"] if "confidence" in word]
        right = right_words([word["word"] for word in words], references[line["key"]])
        found.append([(word["confidence"], good) for word, good in zip(words, right)])
    return found


def bins(words):
    """[(number of words, mean confidence, share that is right)] for each bin that has words."""
    parts = [[word for word in words if min(int(word[0] * BINS), BINS - 1) == k] for k in range(BINS)]
    return [(k, len(part), sum(word[0] for word in part) / len(part), sum(word[1] for word in part) / len(part)) for k, part in enumerate(parts) if part]


def error(utterances):
    words = [word for utterance in utterances for word in utterance]
    return sum(count * abs(mean - share) for _, count, mean, share in bins(words)) / len(words)


def separation(utterances):
    words = sorted(word for utterance in utterances for word in utterance)
    num_right, num_wrong, pairs = 0, 0, 0.0
    for _, equal in itertools.groupby(words, key=lambda word: word[0]):
        goods = [good for _, good in equal]
        pairs += sum(goods) * (num_wrong + (len(goods) - sum(goods)) / 2)
        num_right += sum(goods)
        num_wrong += len(goods) - sum(goods)
    return pairs / (num_right * num_wrong)


def ctc_tasks(arguments):
    for unit, data in (("phone", arguments.phone_data), ("char", arguments.char_data), ("bpe", arguments.bpe_data)):
        if data is not None:
            yield unit, decode_tasks.real_ctc(measure.Built, data, None, unit)


def by_beam(arguments):
    """Measures error and separation by lattice_beam."""
    rows, figures = [], []
    for _, task in ctc_tasks(arguments):
        for scale, lattice_beam in itertools.product((0.7, 1), arguments.lattice_beams):
            utterances = decode(dataclasses.replace(task, acoustic_scale=scale), lattice_beam, None)
            words, found = sum(map(len, utterances)), (f"{error(utterances):.3f}", f"{separation(utterances):.3f}")
            rows.append([task.name, f"{scale:g}", lattice_beam, words, *found])
            print(f"  {rows[-1]}", flush=True)
            setup = f"{task.name}, acoustic_scale {scale:g}, lattice_beam {lattice_beam}, all {words} words"
            figures += [("confidences", f"{setup}, {name} at the default", value, "") for name, value in zip(("calibration error", "separation"), found)]
    print(measure.table(["scores", "acoustic_scale", "lattice_beam", "words", "error", "separation"], rows))
    return figures


def tasks_of(arguments):
    """(task, lattice_beam): the usual settings, and for characters others."""
    for unit, task in ctc_tasks(arguments):
        yield task, 8
        if unit == "char":
            yield task, 11
            for scale in (0.5, 1):
                yield dataclasses.replace(task, acoustic_scale=scale), 8
    if arguments.hybrid_scores:
        yield decode_tasks.hybrid(arguments, None, False), 8


def by_factor(arguments):
    """Measures the best factor, and reliability at the default."""
    rows, figures, tables = [], [], []
    for task, lattice_beam in tasks_of(arguments):
        plain = decode(task, lattice_beam, None)
        decoded = {factor: decode(task, lattice_beam, factor) for factor in FACTORS}
        fitted = min(FACTORS, key=lambda factor: error(decoded[factor][::2]))
        errors = [error(utterances[1::2]) for utterances in (decoded[1], decoded[fitted], plain)]
        words = [word for utterance in plain for word in utterance]
        mean, share = (sum(word[k] for word in words) / len(words) for k in (0, 1))
        setup = f"{task.name}, acoustic_scale {task.acoustic_scale:g}, lattice_beam {lattice_beam}, {len(words)} words"
        rows.append([task.name, f"{task.acoustic_scale:g}", lattice_beam, len(words), f"{share:.3f}", f"{mean:.3f}", f"{fitted:g}", *(f"{value:.3f}" for value in errors), f"{separation(plain):.3f}"])
        print(f"  {rows[-1]}", flush=True)
        names = ("calibration error at a factor of 1", "calibration error at the fitted factor", "calibration error at the default")
        figures += [("confidences", f"{setup}, {name}", f"{value:.3f}", "") for name, value in zip(names, errors)]
        for k, count, confidence, good in bins(words):
            tables.append([setup, f"{k / BINS:.1f} to {(k + 1) / BINS:.1f}", count, f"{confidence:.3f}", f"{good:.3f}"])
            figures.append(("confidences", f"{setup}, confidence {k / BINS:.1f} to {(k + 1) / BINS:.1f}, right", f"{100 * good:.1f}", "%"))
    print("\nCalibration\n")
    print(measure.table(["scores", "acoustic_scale", "lattice_beam", "words", "right", "mean confidence", "factor", "error at 1", "fitted", "default", "separation"], rows))
    print("\nReliability at the default\n")
    print(measure.table(["scores", "confidence", "words", "mean confidence", "right"], tables))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phone-data", default=decode_tasks.CTC / "logp_phone")
    for name in ("char-data", "bpe-data", "hybrid-scores", "hybrid-graph", "hybrid-ref", "hybrid-words"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--lattice-beams", type=lambda text: tuple(map(int, text.split(","))))
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    figures = by_beam(arguments) if arguments.lattice_beams else by_factor(arguments)
    if arguments.record:
        measure.record(figures, "./run bench confidence" + (f" --lattice-beams={','.join(map(str, arguments.lattice_beams))}" if arguments.lattice_beams else ""))


if __name__ == "__main__":
    main()
