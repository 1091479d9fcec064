#!/usr/bin/env python3
"""plots FOLDER: draws figures of bench/figures as small SVG files, and writes index.md, which shows them with their sources. Needs matplotlib.

Every point is a row of the table. If rows are missing, index.md has a note instead of the plot.
"""

import collections
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
BENCH = pathlib.Path(__file__).resolve().parents[1] / "bench"
sys.path[:0] = [str(BENCH / "common"), str(BENCH / "peers")]
import matplotlib.pyplot as plt
import measure
import peers

GPU = "one NVIDIA H200"


def number(pattern, text):
    found = re.search(pattern, text)
    return None if found is None else float(found[1])


def error_rates(table):
    """WER by (what, setup of the RTFx row)."""
    return {(row["what"], row["setup"].removesuffix(", WER")): float(row["figure"]) for row in table if row["setup"].endswith(", WER")}


def max_active(row):
    return f"max_active {int(number(r'--max-active=([0-9]+)', row['setup'])):6,}"  # all of the same width, so that they sort by size


def speeds(table, what, unit="RTFx"):
    return [row for row in table if row["what"] == what and row["unit"] == unit and not row["setup"].endswith("WER")]


def lines_of(points):
    """{label: sorted [(x, y)]}."""
    made = {}
    for label, x, y in points:
        made.setdefault(label, []).append((x, y))
    return {label: sorted(values) for label, values in made.items()}


def by_batch(table):
    """RTFx against the batch, scores in GPU memory."""
    points = []
    for what, label in (
        ("decode GPU CTC phones", "CTC phones, real scores"),
        ("decode GPU generated CTC, peaky, 200000 words", "200,000 words, generated, peaky"),
        ("decode GPU generated CTC, flat, 200000 words", "200,000 words, generated, flat"),
    ):
        for row in speeds(table, what):
            batch = number(r"batch (\d+)$", row["setup"])
            widest = "--beam=17 --max-active=10000" in row["setup"] or "CTC phones" in what
            if batch and widest and "device f32" in row["setup"]:
                points.append((label, batch, float(row["figure"])))
    return "Utterances in a batch", "Seconds of audio per second (RTFx)", lines_of(points), {"xscale": "log", "yscale": "log"}


def gpu_by_beam(table):
    """RTFx against the beam, by max_active, for the flat generated task, batch of 400."""
    points = []
    for row in speeds(table, "decode GPU generated CTC, flat, 200000 words"):
        if "device f32" in row["setup"] and row["setup"].endswith("batch 400"):
            points.append((max_active(row), number(r"--beam=(\d+)", row["setup"]), float(row["figure"])))
    return "Beam, nats", "Seconds of audio per second (RTFx)", lines_of(points), {"yscale": "log"}


def gpu_error_by_speed(table):
    """WER against RTFx in the same runs."""
    errors, points = error_rates(table), []
    for row in speeds(table, "decode GPU generated CTC, flat, 200000 words"):
        error = errors.get((row["what"], row["setup"]))
        if error is not None and "device f32" in row["setup"] and row["setup"].endswith("batch 400"):
            points.append((max_active(row), float(row["figure"]), error))
    return "Seconds of audio per second (RTFx)", "Word error rate, %", lines_of(points), {"xscale": "log"}


def placement(row):
    return "LM on the fly" if "on the fly" in row["setup"] else "LM in the graph"


def cpu_by_beam(table):
    """RTFx against the beam on one CPU core, with the language model in the graph or on the fly."""
    points = [(placement(row), number(r"beam=(\d+)", row["setup"]), float(row["figure"])) for row in speeds(table, "sweep CTC phones")]
    return "Beam, nats", "Seconds of audio per second of processor time", lines_of(points), {"ylim": (0, None)}


def cpu_error_by_speed(table):
    """WER against RTFx in the same runs."""
    errors = error_rates(table)
    points = [(placement(row), float(row["figure"]), errors[row["what"], row["setup"]]) for row in speeds(table, "sweep CTC phones") if (row["what"], row["setup"]) in errors]
    return "Seconds of audio per second of processor time", "Word error rate, %", lines_of(points), {}


def boosts(table):
    """Recall of listed words against false alarms, by way to weigh the words."""
    figures = {row["setup"]: float(row["figure"]) for row in table if row["what"] == "boost lists"}
    found = (re.fullmatch(r"(CTC phones, \d+ utterances, right lists, (.+), [\d.]+), recall", setup) for setup in figures)
    points = [(match[2], figures[f"{match[1]}, false alarms a list"], figures[match[0]]) for match in found if match]
    return "False alarms", "Recall, %", lines_of(points), {"xscale": "log"}


def by_features(task):
    """RTFx against the batch, with nothing, an n-gram model, boosts, lattices, all of them."""
    def gather(table):
        points = []
        for row in speeds(table, "features"):
            match = re.fullmatch(rf"{task}, (\w+), batch (\d+)", row["setup"])
            if match:
                points.append((match[1], float(match[2]), float(row["figure"])))
        return "Utterances in a batch", "Seconds of audio per second (RTFx)", lines_of(points), {"xscale": "log", "yscale": "log"}
    return gather


def best_of(points, worse=8):
    """The points (RTFx, error rate) of which none has both fewer errors and more speed, without those that have `worse` more errors in 100 than the best."""
    best = []
    for x, y in sorted(points, reverse=True):
        if not best or y < best[-1][1]:
            best.append((x, y))
    return sorted((x, y) for x, y in best if y <= min(y for _, y in best) + worse)


def against_peers(task, place="1 core"):
    """Error rate against RTFx of each decoder: the best of its settings. `place`: its beginning; the largest batch. Of the machine with the most decoders."""
    def gather(table):
        rows = peers.recorded(table, task)
        chosen = max((each for each in rows if each.startswith(place)), key=lambda each: int(re.search(r"\d+", each)[0]), default=None)
        decoders = collections.defaultdict(set)
        for row in rows.get(chosen, ()):
            decoders[row["machine"]].add(row["decoder"])
        machine = max(decoders, key=lambda name: len(decoders[name]), default=None)
        lines = lines_of((row["decoder"], row["rtfx"], row["rate"]) for row in rows.get(chosen, ()) if row["machine"] == machine and not re.search("unknown words|beta", row["setting"]))
        unit = "Token" if "lexicon-free" in task else "Word"
        speed = "Seconds of audio per second" + (" of processor time" if place == "1 core" else " (RTFx)")
        return speed, f"{unit} error rate, %", {label: best_of(points) for label, points in lines.items()}, {"xscale": "log"}
    return gather


PLOTS = (
    ("gpu-batch", "RTFx against batch, on a GPU", by_batch, f"{GPU}, scores in its memory, `./run bench decode`. Smaller batches than some hundred utterances do not use the whole GPU."),
    ("gpu-features-ctc", "What a model, boosts and lattices cost: CTC", by_features("CTC phones, unigram graph"), "One GPU, scores in its memory, `./run bench features`: the graph alone, an n-gram model on the fly, 100 boosted phrases, raw lattices, and all of these with determinized lattices and confidences."),
    ("gpu-features-hybrid", "What a model, boosts and lattices cost: hybrid", by_features("hybrid 20k words"), "The same, with a hybrid graph of 20,000 words."),
    ("gpu-beam", "RTFx against beam, on a GPU", gpu_by_beam, f"{GPU}, generated task of 200,000 words with flat scores, batch of 400, `./run bench decode`."),
    ("gpu-wer", "WER against RTFx, on a GPU", gpu_error_by_speed, "The runs above: beams of 8 to 17 along each line."),
    ("cpu-beam", "RTFx against beam, language model in the graph or on the fly", cpu_by_beam, "200 real utterances (phones, 3-gram LM), one thread, `./run bench sweep`. Below a beam of about 12, `min_active` (200) determines the number of tokens, so a smaller beam is not faster. The machine was busy: differences of a tenth are noise. On the fly, the graph has a tenth of the arcs."),
    ("cpu-wer", "WER against RTFx, language model in the graph or on the fly", cpu_error_by_speed, "The same runs. One of 1,040 words is 0.1%."),
    ("peers-phones", "Against peers: CTC phones, one core", against_peers("CTC phones"), "Real speech, the same 3-gram model, `./run bench peers` ([what was measured](../engineering/peers.md)): the best settings of each decoder."),
    ("peers-characters", "Against peers: CTC characters, one core", against_peers("CTC characters"), "The same, on characters."),
    ("peers-byte-pairs", "Against peers: CTC byte pairs, one core", against_peers("CTC byte pairs"), "The same, on byte pairs."),
    ("peers-hybrid", "Against peers: a hybrid graph, one core", against_peers("hybrid HCLG"), "Five utterances of LibriVox, 71 words, a graph of 20,000 words."),
    ("peers-gpu-phones", "Against peers: CTC phones, one GPU", against_peers("CTC phones", "batch"), "The largest batch, scores in GPU memory, `./run bench peers --device=cuda`."),
    ("peers-gpu-hybrid", "Against peers: a hybrid graph, one GPU", against_peers("hybrid HCLG", "batch"), "The same, with a hybrid graph of 20,000 words."),
    ("peers-gpu-characters", "Against peers: characters without a lexicon, one GPU", against_peers("lexicon-free CTC, real char", "batch"), "The same, without lexicon and language model."),
    ("boost", "Recall against false alarms of boost lists", boosts, "1,260 real utterances, five lists of 20 rare words for all of them, `./run bench boost` ([boosts](../engineering/streaming.md#which-weights))."),
)


def draw(path, xlabel, ylabel, lines, axes):
    figure, axis = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
    for (label, points), marker in zip(sorted(lines.items()), "osD^v<"):
        axis.plot(*zip(*points), marker=marker, markersize=4, label=label)
    axis.set(xlabel=xlabel, ylabel=ylabel, **axes)
    axis.grid(alpha=0.3, which="both" if "log" in axes.values() else "major")
    axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    matplotlib.rcParams.update({"svg.hashsalt": "warpfst", "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False})
    table = measure.rows()
    page = ["# Plots", "", "Drawn by `tools/plots.py` from [bench/figures](../../bench/figures/README.md); every point is a row of this table, with machine, commit and command.", ""]
    for name, title, gather, caption in PLOTS:
        xlabel, ylabel, lines, axes = gather(table)
        page += [f"## {title}", ""]
        if sum(map(len, lines.values())) < 2:
            page += ["Not measured yet.", ""]
            continue
        draw(folder / f"{name}.svg", xlabel, ylabel, lines, axes)
        page += [f"![{title}]({name}.svg)", "", caption, ""]
    (folder / "index.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
