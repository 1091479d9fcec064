#!/usr/bin/env python3
"""pictures.py [FOLDER | --check] - draws the pictures of the documentation as SVG files in FOLDER (default: docs/pictures); without FOLDER, also fills the tables of PAGES.

With --check, fails if the files in docs/pictures or the tables are out of date (called by tools/build_docs.py). A picture is 360 units wide with text sizes of 11 to 13, so that it is
readable on a phone, and has a white background, so that it is readable in a dark theme. Figures are rows of bench/figures.
"""

import functools
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench" / "common"), str(ROOT / "bench" / "peers")]

import measure
import peers as peers_bench
import plots

WIDTH = 360
INK, GREY, BLUE, RED, GREEN, PALE = "#1f2933", "#66707a", "#1558b0", "#b3261e", "#1e7d3c", "#e3ecf8"


def text(x, y, words, anchor="middle", size=12, colour=INK, weight="normal"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}" font-weight="{weight}">{escape(str(words))}</text>'


def arrow(x1, y1, x2, y2, colour=INK, width=1.3, dash=""):
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width}"{dash} marker-end="url(#{colour[1:]})"/>'


def picture(title, height, parts):
    heads = "".join(
        f'<marker id="{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for colour in (INK, GREY, BLUE, RED)
    )
    frame = f'<rect width="{WIDTH}" height="{height}" rx="6" fill="#ffffff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * 1.5:g}" height="{height * 1.5:g}" viewBox="0 0 {WIDTH} {height}" role="img" font-family="Helvetica, Arial, sans-serif">'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<defs>{heads}</defs>", frame, *parts, "</svg>", ""])


def token(x, y, state, cost, colour=INK, fill=PALE):
    box = f'<rect x="{x}" y="{y}" width="84" height="26" fill="{fill}" stroke="{colour}"/>'
    return [box, text(x + 8, y + 17, state, "start", colour=colour), text(x + 76, y + 17, f"{cost:.1f}", "end", colour=colour)]


def frame():
    """One frame with beam 5: the best cost is 3.2, so the token of cost 9.4 is pruned (cutoff 8.2). Of two candidates in state 8, the one of cost 3.5 stays."""
    left, right = 12, 240
    parts = [text(left + 42, 20, "frame t", weight="bold"), text(right + 42, 20, "frame t+1", weight="bold")]
    for x in (left, right):
        parts += [text(x + 8, 38, "state", "start", 11, GREY), text(x + 76, 38, "cost", "end", 11, GREY)]
    for y, state, cost in ((46, 4, 2.0), (96, 7, 2.6), (166, 9, 3.1)):
        parts += token(left, y, f"{state}", cost)
    for y, state, cost in ((46, 5, 3.2), (92, 8, 3.5), (138, 12, 3.8)):
        parts += token(right, y, f"{state}", cost)
    parts += token(right, 200, "11", 9.4, RED, "#ffffff")
    parts += [arrow(96, 56, 239, 56), arrow(96, 62, 239, 98, GREY), arrow(96, 109, 239, 106), arrow(96, 179, 239, 212, RED)]
    parts += [text(168, 51, "+ 1.2", size=11), text(152, 92, "4.0, loses", size=11, colour=GREY), text(122, 105, "+ 0.9", size=11), text(150, 184, "+ 6.3", size=11, colour=RED)]
    parts += [arrow(282, 118, 282, 137, BLUE), text(290, 132, "\N{GREEK SMALL LETTER EPSILON} + 0.3", "start", 11, BLUE)]
    parts += [f'<line x1="226" y1="186" x2="350" y2="186" stroke="{RED}" stroke-dasharray="5 3"/>', text(350, 180, "beam: 3.2 + 5 = 8.2", "end", 11, RED)]
    parts += [arrow(239, 68, 97, 68, BLUE, 1, "2 3"), arrow(239, 114, 97, 116, BLUE, 1, "2 3")]
    parts += [text(12, 250, "black: arcs that read a frame; + their cost and the score's", "start", 11), text(12, 267, "grey: recombined, the cheaper of two in state 8 stays", "start", 11, GREY)]
    parts += [text(12, 284, "red: cut by the beam", "start", 11, RED), text(12, 301, "blue: epsilon closure; dotted: back-pointers", "start", 11, BLUE)]
    return picture("One frame of the search: arcs from the tokens of a frame, beam, recombination, epsilon closure, back-pointers", 312, parts)


def lattice():
    places = {0: (26, 80), 1: (120, 36), 2: (120, 124), 3: (224, 80), 4: (330, 80)}
    arcs = [(0, 1, "IS 0.2", 62, 46, BLUE), (0, 2, "HE'S 1.9", 58, 120, INK), (1, 3, "GOING 1.1", 182, 44, BLUE), (2, 3, "GOING 0.8", 186, 122, INK)]
    parts = []
    for start, end, words, x, y, colour in arcs:
        (x1, y1), (x2, y2) = places[start], places[end]
        length = math.hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) * 14 / length, (y2 - y1) * 14 / length
        parts += [arrow(x1 + dx, y1 + dy, x2 - dx, y2 - dy, colour, 2 if colour == BLUE else 1.3), text(x, y, words, colour=colour)]
    for bend, words, colour in ((-34, "HOME 0.5", BLUE), (34, "ROME 2.1", INK)):
        start, end = (235, 80 + bend / 4), (318, 80 + bend / 4)
        parts.append(f'<path d="M{start[0]} {start[1]} Q277 {80 + bend * 1.3:g} {end[0]} {end[1]}" fill="none" stroke="{colour}" stroke-width="{2 if colour == BLUE else 1.3}" marker-end="url(#{colour[1:]})"/>')
        parts.append(text(284, 80 + bend * 0.85 + (-6 if bend < 0 else 14), words, colour=colour))
    for state, (x, y) in places.items():
        parts += [f'<circle cx="{x}" cy="{y}" r="13" fill="{PALE}" stroke="{INK}"/>', text(x, y + 4, state)]
    parts.append(f'<circle cx="330" cy="80" r="10" fill="none" stroke="{INK}"/>')
    parts += [text(12, 162, "best path: 0.2 + 1.1 + 0.5 = 1.8", "start", 11, BLUE), text(12, 179, "others: 3.2, 3.4, 4.8, all within lattice_beam 8 of it", "start", 11)]
    return picture("A lattice of four word sequences, with costs; the best path is IS GOING HOME", 190, parts)


def box(x, y, width, lines, fill="#ffffff", colour=INK):
    height = 12 + 15 * len(lines)
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="{colour}"/>']
    return parts + [text(x + width / 2, y + 18 + 15 * number, line, size=11, weight="bold" if number == 0 else "normal") for number, line in enumerate(lines)]


def flow():
    """What goes into warpfst and what comes out."""
    parts = [*box(12, 14, 78, ["audio"]), *box(118, 14, 100, ["acoustic model", "yours"]), *box(246, 14, 102, ["log-probabilities", "[frames, tokens]"])]
    parts += [arrow(90, 28, 117, 28), arrow(218, 28, 245, 28), arrow(297, 56, 297, 87)]
    parts += [*box(12, 88, 130, ["tokens, lexicon,", "language model"]), *box(246, 88, 102, ["warpfst", "beam search"], PALE, BLUE)]
    parts += [arrow(142, 109, 245, 109), text(194, 103, "graph", size=11), arrow(297, 130, 297, 161)]
    parts += box(160, 162, 188, ["words", "times, confidences, n-best, lattices"])
    return picture("Audio goes through an acoustic model; warpfst turns its log-probabilities into words with a graph of tokens, lexicon and language model", 216, parts)


def automaton(y, labels, loops):
    """States in a row with arcs between them; a double circle is final."""
    parts, places = [], [40 + 280 * number / len(labels) for number in range(len(labels) + 1)]
    for (start, end), label in zip(zip(places, places[1:]), labels):
        parts += [arrow(start + 13, y, end - 14, y), text((start + end) / 2, y - 6, label, size=11)]
    for number, x in enumerate(places):
        parts += [f'<circle cx="{x:g}" cy="{y}" r="12" fill="{PALE}" stroke="{INK}"/>', text(x, y + 4, number, size=11)]
        if number in loops:
            parts += [f'<path d="M{x - 7:g} {y + 10} C{x - 24:g} {y + 36} {x + 24:g} {y + 36} {x + 7:g} {y + 11}" fill="none" stroke="{INK}" stroke-width="1.3" marker-end="url(#{INK[1:]})"/>']
            parts.append(text(x, y + 43, loops[number], size=11))
    parts.append(f'<circle cx="{places[-1]:g}" cy="{y}" r="9.5" fill="none" stroke="{INK}"/>')
    return parts


def graph():
    """T, L and G of the word CAT: what each reads and writes."""
    empty = "\N{GREEK SMALL LETTER EPSILON}"
    parts = [text(12, 20, "T: frames to tokens (one token of topology compact)", "start", 12, weight="bold")]
    parts += automaton(48, [f"K : K, then K : {empty} again"], {0: f"blank : {empty}", 1: f"K : {empty}"})
    parts += [text(12, 122, "L: tokens to words", "start", 12, weight="bold"), *automaton(150, ["K : CAT", f"AE : {empty}", f"T : {empty}"], {})]
    parts += [text(12, 190, "G: words, with their costs in the language model", "start", 12, weight="bold"), *automaton(218, ["THE / 1.6", "CAT / 4.2", "SAT / 2.9"], {})]
    parts += [text(12, 256, "reads : writes / cost in nats; the graph is min(det(L o G)); the search applies T", "start", 11, GREY)]
    return picture("The three transducers of a CTC graph: T reads frames and writes tokens, L reads tokens and writes words, G accepts words with costs", 268, parts)


def stream():
    """A stream of 84 frames in chunks of 16: partial results, as docs/tutorials/streaming.md prints them, and the end."""
    events = [(16, "", ""), (32, "", "MARK IS GOING"), (48, "MARK IS GOING TO", "SEE"), (64, "MARK IS GOING TO", "SEE ELEPHANT"), (80, "MARK IS GOING TO", "SEE ELEPHANT"), (84, "MARK IS GOING TO SEE ELEPHANT", "")]
    parts = [text(12, 20, "frames so far", "start", 11, GREY), text(126, 20, "partial result", "start", 11, GREY)]
    for number, (frames, stable, rest) in enumerate(events):
        y = 30 + 24 * number
        parts += [f'<rect x="12" y="{y}" width="{frames}" height="16" fill="{PALE}" stroke="{BLUE}"/>', text(16, y + 12, frames, "start", 11)]
        words = f'<tspan fill="{BLUE}" font-weight="bold">{escape(stable)}</tspan> <tspan fill="{GREY}">{escape(rest)}</tspan>'
        parts.append(f'<text x="126" y="{y + 12}" font-size="10.5">{words}</text>')
    parts += [f'<line x1="96" y1="150" x2="96" y2="176" stroke="{RED}" stroke-width="2"/>']
    parts += [text(12, 192, "blue: stable, will not change; grey: may still change", "start", 11)]
    parts += [text(12, 208, "red: the end, at finish() or at an endpoint (a rule about silence holds)", "start", 11, RED)]
    return picture("A stream: after each chunk of frames a partial result, of which the first words are stable; at the end all are", 220, parts)


def row(table, setup, before):
    """Figure and commit of a row of `./run bench peers`, or of the command that measured this before."""
    for what, named in (("peers, lexicon-free CTC, generated peaky", setup), ("decode lexicon-free CTC, generated peaky", before)):
        found = [(float(line["figure"]), line["commit"]) for line in table if line["what"] == what and line["setup"] == f"400 utterances, {named}"]
        if found:
            return found[-1]
    raise SystemExit(f"bench/figures has no row {setup}")


def peers():
    table = measure.rows()
    bars = [
        ("one H200", None, None),
        ("warpfst", ("warpfst, beam 17, max_active 10000, batch 400", "warpfst, beam 17, max_active 10000, best path, GPU, batch 400"), BLUE),
        ("cuda_ctc_decoder", ("cuda_ctc_decoder, with cuctc_room.so, beam_size 10, blank_skip 1, batch 400", "cuda_ctc_decoder, beam_size 10, blank_skip_threshold 1, with cuctc_room.so, batch 400"), GREY),
        ("16 CPU cores", None, None),
        ("warpfst", ("warpfst, beam 17, max_active 10000, 16 cores", "warpfst, beam 17, max_active 10000, best path, all processors, batch 400"), BLUE),
        ("flashlight-text", ("flashlight-text (no lexicon), beam_size 10, 16 cores", "flashlight-text, beam_size 10, 16 processes, batch 400"), GREY),
    ]
    most, y, parts, commits = 400000, 36, [text(12, 20, "CTC without a lexicon: seconds of audio a second (RTFx)", "start", 12, weight="bold")], set()
    for label, setup, colour in bars:
        if setup is None:
            parts.append(text(12, y + 14, label, "start", 11, GREY))
            y += 21
            continue
        figure, commit = row(table, *setup)
        commits.add(commit)
        parts += [text(108, y + 14, label, "end", 11), f'<rect x="114" y="{y + 2}" width="{190 * figure / most:.1f}" height="16" fill="{colour}"/>']
        parts.append(text(119 + 190 * figure / most, y + 14, f"{figure:,.0f}", "start", 11, weight="bold" if colour == BLUE else "normal"))
        y += 23
    parts.append(text(12, y + 18, f"400 generated utterances; bench/figures, {', '.join(sorted(commits))}", "start", 11, GREY))
    return picture("RTFx of warpfst, torchaudio's cuda_ctc_decoder and flashlight-text on the same machine", y + 30, parts)


def round_numbers(low, high):
    """1, 2, 5, 10, 20 ... between two numbers; only 1, 10, 100 ... if those are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    chosen = [digit * 10**power for power in powers for digit in (1, 2, 5) if low <= digit * 10**power <= high]
    return chosen if len(chosen) <= 7 else [number for number in chosen if math.log10(number).is_integer()]


def curves(title, ylabel, xlabel, lines, colours):
    """Lines of (x, y), with x on a logarithmic axis."""
    xs, ys = zip(*(point for points in lines.values() for point in points))
    low, high = math.log2(min(xs)) - 0.2, math.log2(max(xs)) + 0.2
    bottom, top = math.floor(min(ys)), math.ceil(max(ys))

    def place(x, y):
        return 42 + 306 * (math.log2(x) - low) / (high - low), 196 - 164 * (y - bottom) / (top - bottom)

    parts = [text(12, 20, ylabel, "start", 12, weight="bold")]
    for error in range(bottom, top + 1, max(1, (top - bottom) // 5)):
        y = place(xs[0], error)[1]
        parts += [f'<line x1="42" y1="{y:.1f}" x2="348" y2="{y:.1f}" stroke="#d5dadf"/>', text(36, y + 4, error, "end", 11)]
    parts += [text(place(x, bottom)[0], 213, f"{x:,}", size=11) for x in round_numbers(2**low, 2**high)]
    parts.append(text(195, 230, xlabel, size=11))
    for number, ((label, points), colour) in enumerate(zip(lines.items(), colours)):
        placed = [place(*point) for point in points]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        parts.append(text(54, 48 + 15 * number, " ".join(label.split()), "start", 11, colour))
    return picture(title, 240, parts)


def error_rate():
    """Word error rate against RTFx: the lines of plots.gpu_error_by_speed, with RTFx on a logarithmic axis."""
    lines = dict(sorted(plots.gpu_error_by_speed(measure.rows())[2].items()))
    return curves("Word error rate against RTFx, by max_active; beams of 8 to 17 along each line", "Word error rate, %", "seconds of audio a second (RTFx)", lines, (GREY, BLUE, RED))


def peer_curves(task):
    """Word error rate against RTFx of the decoders that ./run bench peers measured on one core."""
    _, _, lines, _ = plots.against_peers(task)(measure.rows())
    ordered = {name: lines[name] for name in peers_bench.ORDER if name in lines}
    return curves(f"{task}: word error rate against RTFx on one core, the best settings of each decoder", "Word error rate, %", "seconds of audio a second of one core (RTFx)", ordered, (BLUE, RED, GREY, GREEN))


# --- tables in pages: the lines between <!-- table: NAME --> and <!-- end of table --> ---


def ours_beside(peer, rows):
    """Our fastest row on the peer's machine with at most its error rate; if the peer makes lattices, ours with lattices."""
    lattices = makes_lattices(peer)
    ours = [row for row in rows if row["decoder"] == "warpfst" and row["machine"] == peer["machine"] and makes_lattices(row) == lattices and "unknown words" not in row["setting"] and ("beta" in row["setting"]) == ("beta" in peer["setting"])]
    return max((row for row in ours if lattices or row["rate"] <= peer["rate"]), key=lambda row: row["rtfx"], default=None)


def makes_lattices(row):
    return "lattice_beam 8" in row["setting"]


def recommended(rows):
    """The rows of peers at the settings of RECOMMENDED. riva-asrlib-decoder: the fastest of its numbers of lanes and threads; and with word confidences."""
    found = [row for row in rows if row["setting"] in peers_bench.RECOMMENDED.get(row["decoder"], ())]
    riva = [row for row in rows if row["decoder"] == "riva-asrlib-decoder" and re.match(r"beam 1[35],", row["setting"])]
    for lattices in (False, True):
        found += sorted((row for row in riva if makes_lattices(row) == lattices), key=lambda row: row["rtfx"])[-1:]
    return sorted(found, key=lambda row: peers_bench.ORDER.index(row["decoder"]))


def short(text):
    """A task or setting without what all rows of a table share; the page says it."""
    return re.sub(r", max_active \d+|lexicon-free CTC, (real )?|, \d+ boosted words|, with cuctc_room.so", "", text)


def peers_table(tasks):
    """Every peer at the settings it recommends, and our fastest setting with as few errors: on one core, and in the batches of SHOWN."""
    rows = []
    for task in tasks:
        for place, group in peers_bench.recorded(measure.rows(), task).items():
            for row in recommended(group) if place in SHOWN else ():
                ours = ours_beside(row, group)
                mine = ["-", "-", "-", "-"] if ours is None else [short(ours["setting"]), f"{ours['rate']:.2f}", measure.figure(ours["rtfx"]), f"{ours['rtfx'] / row['rtfx']:.1f}"]
                rows.append([short(task), place, short(row["decoder"]), short(row["setting"]), f"{row['rate']:.2f}", measure.figure(row["rtfx"]), *mine])
    return measure.table(["task", "on", "peer", "its setting", "errors, %", "RTFx", "warpfst", "errors, %", "RTFx", "times"], rows) if rows else "Not measured yet."


def boosted_table(tasks):
    """Error rates and the listed words that were found, by strength of the boosts."""
    rows = []
    for task in tasks:
        for group in peers_bench.recorded(measure.rows(), task).values():
            ordered = sorted(group, key=lambda row: peers_bench.ORDER.index(row["decoder"]))
            rows += [[short(task), row["decoder"], short(row["setting"]), f"{row['rate']:.2f}", f"{row['recall']:.1f}", measure.figure(row["rtfx"])] for row in ordered]
    return measure.table(["task", "decoder", "setting", "errors, %", "found, %", "RTFx"], rows) if rows else "Not measured yet."


# Operations of `./run bench differential`, and the case of `./run bench fstops` that measures each.
MEASURED = {
    "compose": "compose L o G", "compose with pushing": "compose det L o G (look-ahead and pushing)", "connect": "connect T o LG", "arcsort": "arcsort TLG", "rmepsilon": "rmepsilon TLG", "determinize": "determinize LG", "minimize": "minimize LG",
    "push": "push LG", "map": "map TLG (arc_sum)", "difference": "difference LG - paths", "replace": "replace 50 times L", "encode": "encode TLG (labels)",
    "epsnormalize": "epsnormalize L", "synchronize": "synchronize L o paths", "disambiguate": "disambiguate paths of LG",
    "determinize nonfunctional": "determinize L o paths (all outputs)", "reweight": "reweight LG",
}  # fmt: skip


def speed(table, case, task):
    """How many times as fast as OpenFst's library ours is, in process; "-" if it was not measured."""
    seconds = {}
    for line in table:
        if line["what"] == case and line["setup"].startswith(f"{task} task,") and line["setup"].endswith("in process, processor time"):
            seconds["OpenFst" if ", OpenFst," in line["setup"] else "warpfst"] = float(line["figure"])
    return f"{seconds['OpenFst'] / seconds['warpfst']:.1f}" if len(seconds) == 2 else "-"


def operations_table(_):
    """Random machines of each operation: how the results compare with OpenFst's, and how fast ours are."""
    table = measure.rows()
    counts = {}
    for line in table:
        if line["what"].startswith("differential "):
            column = line["setup"].split(" of ")[0]
            counts.setdefault(line["what"].removeprefix("differential "), {})[column] = int(float(line["figure"]))
    rows = {}
    for name, count in counts.items():
        case = MEASURED.get(name)
        found = {"wrong": count["WRONG"], "refused": count["refused"], "where OpenFst fails": count["OpenFst wrong"] + count["OpenFst fails"], "with more states": count["larger"], "with fewer": count["smaller"]}
        others = ", ".join(f"{number} {what}" for what, number in found.items() if number)
        rows.setdefault((count["identical"], count["isomorphic"], count["equivalent"], others, *(speed(table, case, task) for task in ("phone", "large"))), []).append(name)
    header = ["operation", "same", "but for numbers", "equivalent", "of all", "faster, phone", "large"]
    return measure.table(header, [[", ".join(names), *cells] for cells, names in rows.items()]) if rows else "Not measured yet."


SHOWN = ("1 core", "batch 1", "batch 400", "batch 1260")
WORDS = ("CTC phones", "CTC characters", "CTC byte pairs", "hybrid HCLG")
TOKENS = tuple(f"lexicon-free CTC, {name}" for name in ("real char", "real char, 3-gram of tokens", "real bpe", "real bpe, 3-gram of tokens", "generated peaky"))
BOOSTED = tuple(f"lexicon-free CTC, real {unit}, {peers_bench.NUM_BOOSTED} boosted words" for unit in ("char", "bpe"))
TABLES = {"operations": (operations_table, ()), "peers, words": (peers_table, WORDS), "peers, tokens": (peers_table, TOKENS), "peers, boosted": (boosted_table, BOOSTED)}
PAGES = ("engineering/peers.md", "migrating/openfst.md")


def with_tables(path):
    """The page with its tables made again."""
    def filled(match):
        make, tasks = TABLES[match[1]]
        return f"<!-- table: {match[1]} -->\n\n{make(tasks)}\n\n<!-- end of table -->"

    return re.sub(r"<!-- table: (.*?) -->\n.*?<!-- end of table -->", filled, path.read_text(encoding="utf-8"), flags=re.DOTALL)


PICTURES = {
    "flow.svg": flow, "graph.svg": graph, "stream.svg": stream, "frame.svg": frame, "lattice.svg": lattice, "peers.svg": peers, "error-rate.svg": error_rate,
    **{f"peers-{task.split(' ', 1)[0 if 'hybrid' in task else 1].replace(' ', '-')}.svg": functools.partial(peer_curves, task) for task in WORDS},
}


def check(folder=ROOT / "docs"):
    stale = [name for name, draw in PICTURES.items() if not (folder / "pictures" / name).exists() or (folder / "pictures" / name).read_text(encoding="utf-8") != draw()]
    stale += [page for page in PAGES if (folder / page).read_text(encoding="utf-8") != with_tables(folder / page)]
    assert not stale, f"{stale} are out of date: run tools/pictures.py"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        check()
        sys.exit()
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    target.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (target / name).write_text(draw(), encoding="utf-8")
    for page in PAGES if len(sys.argv) == 1 else ():
        (ROOT / "docs" / page).write_text(with_tables(ROOT / "docs" / page), encoding="utf-8")
