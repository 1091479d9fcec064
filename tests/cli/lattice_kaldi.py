"""An independent reader and writer of Kaldi lattice archives. Raw lattices also go through Kaldi's own code in kaldifst.

lattice_kaldi.py compare ARK SCP TEXT   the binary and the text archive are equal; SCP points at every lattice; kaldifst reads the raw ones
lattice_kaldi.py generate SEED ARK      writes random lattices of all four types with states in any order, some unreachable; raw ones by kaldifst
lattice_kaldi.py same ARK OTHER         both have the same keys and each lattice the same paths; OTHER is topologically sorted from state 0
lattice_kaldi.py times FOLDER ARK       the words of the aligned lattices have the times that follow from the phones in kaldi_oracle.py's FOLDER
lattice_kaldi.py best TEXT JSON         the best path of each raw lattice has the costs of the decoder's results
"""
import json
import math
import os
import random
import struct
import sys
import tempfile

MAGIC = 2125659606
TYPES = {"lattice4": ("f", False), "lattice8": ("d", False), "compactlattice44": ("f", True), "compactlattice84": ("d", True)}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


class Lattice:
    """start; arcs[s] = [(target, ilabel, olabel, graph, acoustic, labels)]; final[s] = (graph, acoustic, labels) or None"""

    def __init__(self, compact):
        self.compact, self.start, self.arcs, self.final = compact, -1, [], []


def read_value(data, at):
    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text():
        nonlocal at
        size = take("i")
        at += size
        return data[at - size : at].decode()

    assert take("i") == MAGIC and text() == "vector"
    number, compact = TYPES[text()]
    version, flags, properties, start, num_states, _ = take("iiQqqq")
    assert version == 2 and flags == 0 and properties & 3 == 3
    lattice = Lattice(compact)
    lattice.start = start

    def weight():
        graph, acoustic = take(number * 2)
        labels = tuple(take("i") for _ in range(take("i"))) if compact else ()
        return graph, acoustic, labels

    for _ in range(num_states):
        final = weight()
        lattice.final.append(final if final[0] < math.inf else None)
        arcs = []
        for _ in range(take("q")):
            ilabel, olabel = take("ii")
            w = weight()
            arcs.append((take("i"), ilabel, olabel) + w)
        lattice.arcs.append(arcs)
    return lattice, at


def read_archive(path):
    data, at, out = open(path, "rb").read(), 0, {}
    while at < len(data):
        blank = data.index(b" ", at)
        key = data[at:blank].decode()
        lattice, end = read_value(data, blank + 1)
        out[key] = (lattice, blank + 1, data[blank + 1 : end])
        at = end
    return out


def read_text(path):
    out, lattice = {}, None
    for line in open(path):
        fields = line.split()
        if lattice is None:
            out[fields[0]] = lattice = []
        elif not fields:
            lattice = None
        else:
            lattice.append(fields)
    return out


def weight_of(text, compact):
    parts = (text or ("0,0," if compact else "0,0")).split(",")
    labels = tuple(int(x) for x in parts[2].split("_")) if compact and parts[2] else ()
    return f32(float(parts[0])), f32(float(parts[1])), labels


def compare_text(key, lattice, lines):
    """Goes through the states in order: each line must be the next arc or final weight."""
    at = 0
    labels = 1 if lattice.compact else 2
    for s, arcs in enumerate(lattice.arcs):
        for target, ilabel, olabel, graph, acoustic, alignment in arcs:
            line = lines[at]
            weight = weight_of(line[2 + labels] if len(line) > 2 + labels else None, lattice.compact)
            want = [str(s), str(target)] + ([str(olabel)] if lattice.compact else [str(ilabel), str(olabel)])
            assert line[: 2 + labels] == want and weight == (graph, acoustic, alignment), (key, line)
            at += 1
        if lattice.final[s] is not None:
            line = lines[at]
            assert line[0] == str(s) and len(line) <= 2 and weight_of(line[1] if len(line) > 1 else None, lattice.compact) == lattice.final[s], (key, line)
            at += 1
        elif not arcs:
            assert lines[at][0] == str(s) and lines[at][1].startswith("Infinity,Infinity"), (key, lines[at])
            at += 1
    assert at == len(lines), key


def compare_kaldifst(key, lattice, data):
    """Kaldi's code reads the lattice and writes the same bytes, except for the property bits, which it computes."""
    import kaldifst

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lat")
        open(path, "wb").write(data)
        other = kaldifst.Lattice.read(path)
        assert other.start == lattice.start and other.num_states == len(lattice.arcs), key
        other.write(path)
        again = open(path, "rb").read()
    properties = slice(34, 42)  # after the magic number, two type names, version and flags
    assert again[: properties.start] == data[: properties.start] and again[properties.stop :] == data[properties.stop :], key


def compare(ark, scp, text):
    binary, lines = read_archive(ark), read_text(text)
    assert list(binary) == list(lines) and binary, (len(binary), len(lines))
    places = dict(line.split() for line in open(scp))
    assert len(places) == len(binary)
    raw = 0
    for key, (lattice, at, data) in binary.items():
        compare_text(key, lattice, lines[key])
        assert places[key] == "%s:%d" % (ark, at), key
        if not lattice.compact and lattice.start >= 0:
            compare_kaldifst(key, lattice, data)
            raw += 1
    print(len(binary), "lattices,", raw, "of them read by kaldifst")


def best(text, hypotheses):
    results = {result["key"]: result for result in map(json.loads, open(hypotheses))}
    lattices = read_text(text)
    assert lattices and set(lattices) == set(results)
    for key, lines in lattices.items():
        reach, end = {"0": (0, 0, 0)}, []  # cost, graph cost and acoustic cost of the best path to each state; source states are in topological order
        for line in lines:
            graph, acoustic, _ = weight_of(line[-1] if "," in line[-1] else None, False)
            total, g, a = reach[line[0]]
            way = (total + graph + acoustic, g + graph, a + acoustic)
            if len(line) <= 2:
                end.append(way)
            else:
                reach[line[1]] = min(reach.get(line[1], way), way)
        _, graph, acoustic = min(end)
        assert abs(graph - results[key]["graph_cost"]) < 1e-3 and abs(acoustic - results[key]["acoustic_cost"]) < 1e-3, (key, graph, acoustic, results[key])
    print("best path of", len(lattices), "lattices: cost of the result")


def word_frames(labels, places, role):
    """(first frame, end frame) of each word. Splits the alignment (reorder=true) into phones as Kaldi does; a word goes from a phone that begins words to one
    that ends them."""
    phones, ended = [], True
    for i, label in enumerate(labels):
        phone, loop, last = places[label]
        if ended and not (phones and loop and labels[i - 1] == label or phones and loop and places[labels[i - 1]][0] == phone):
            phones.append([phone, i, i])
            ended = False
        phones[-1][2] = i + 1
        ended = ended or last == 1
    words = []
    for phone, first, end in phones:
        if role.get(phone) in ("begin", "singleton"):
            words.append([first, end])
        elif role.get(phone) in ("internal", "end"):
            words[-1][1] = end
    return [tuple(word) for word in words]


def times(folder, ark):
    places = {int(f[0]): tuple(map(int, f[1:])) for f in map(str.split, open(folder + "/places"))}
    names = dict(line.split() for line in open(folder + "/lang/phones.txt"))
    boundary = next(name for name in os.listdir(folder + "/lang/phones") if name.startswith("word_boundary"))
    role = {int(names.get(f[0], f[0])): f[1] for f in map(str.split, open(folder + "/lang/phones/" + boundary))}
    rng, paths, words = random.Random(1), 0, 0
    for key, (lattice, _, _) in read_archive(ark).items():
        for _ in range(50):
            s, labels, found = lattice.start, (), []
            while lattice.arcs[s]:
                target, _, word, _, _, alignment = rng.choice(lattice.arcs[s])
                if word:
                    found.append((len(labels), len(labels) + len(alignment)))
                labels += alignment
                s = target
            if lattice.final[s] is None or lattice.final[s][2]:
                continue
            assert found == word_frames(labels, places, role), (key, found, word_frames(labels, places, role), labels)
            paths += 1
            words += len(found)
    assert paths > 50 and words > 20, (paths, words)
    print(paths, "paths,", words, "words in time")


def random_lattice(rng, compact):
    lattice = Lattice(compact)
    count = rng.randrange(2, 9)
    number = rng.sample(range(count + 2), count)  # two states are not reachable
    lattice.arcs = [[] for _ in range(count + 2)]
    lattice.final = [None] * (count + 2)
    lattice.start = number[0]

    def weight():
        labels = tuple(rng.randrange(1, 50) for _ in range(rng.randrange(3))) if compact else ()
        return rng.randrange(-16, 64) / 8, rng.randrange(-16, 64) / 8, labels

    for i in range(count):
        for j in range(i + 1, min(count, i + 4)):
            if j == i + 1 or rng.random() < 0.4:
                word = rng.randrange(6)
                lattice.arcs[number[i]].append((number[j], word if compact else rng.randrange(9), word) + weight())
        if i == count - 1 or rng.random() < 0.2:
            lattice.final[number[i]] = weight()
    return lattice


def write_by_hand(lattice, arc_type):
    number, compact = TYPES[arc_type]
    out = struct.pack("<i", MAGIC)
    for text in ("vector", arc_type):
        out += struct.pack("<i", len(text)) + text.encode()
    out += struct.pack("<iiQqqq", 2, 0, 3, lattice.start, len(lattice.arcs), 0)

    def weight(w):
        w = w or (math.inf, math.inf, ())
        labels = struct.pack("<i%di" % len(w[2]), len(w[2]), *w[2]) if compact else b""
        return struct.pack("<" + number * 2, w[0], w[1]) + labels

    for arcs, final in zip(lattice.arcs, lattice.final):
        out += weight(final) + struct.pack("<q", len(arcs))
        for arc in arcs:
            out += struct.pack("<ii", *arc[1:3]) + weight(arc[3:]) + struct.pack("<i", arc[0])
    return out


def write_by_kaldifst(lattice):
    import kaldifst

    fst = kaldifst.Lattice()
    for _ in lattice.arcs:
        fst.add_state()
    fst.start = lattice.start
    for s, arcs in enumerate(lattice.arcs):
        for target, ilabel, olabel, graph, acoustic, _ in arcs:
            fst.add_arc(s, kaldifst.LatticeArc(ilabel=ilabel, olabel=olabel, weight=kaldifst.LatticeWeight(graph, acoustic), nextstate=target))
        if lattice.final[s]:
            fst.set_final(s, kaldifst.LatticeWeight(*lattice.final[s][:2]))
    with tempfile.TemporaryDirectory() as folder:
        fst.write(os.path.join(folder, "lat"))
        return open(os.path.join(folder, "lat"), "rb").read()


def generate(seed, ark):
    rng = random.Random(seed)
    with open(ark, "wb") as out:
        for i in range(200):
            arc_type = rng.choice(list(TYPES))
            lattice = random_lattice(rng, TYPES[arc_type][1])
            out.write(b"utt%d " % i)
            out.write(write_by_kaldifst(lattice) if arc_type == "lattice4" else write_by_hand(lattice, arc_type))


def paths_of(lattice):
    out = []

    def walk(s, words, labels, graph, acoustic):
        if lattice.final[s]:
            g, a, extra = lattice.final[s]
            out.append((words, labels + extra, graph + g, acoustic + a))
        for target, ilabel, olabel, g, a, alignment in lattice.arcs[s]:
            more = alignment if lattice.compact else ((ilabel,) if ilabel else ())
            walk(target, words + ((olabel,) if olabel else ()), labels + more, graph + g, acoustic + a)

    if lattice.start >= 0:
        walk(lattice.start, (), (), 0, 0)
    return sorted(out)


def same(ark, other):
    a, b = read_archive(ark), read_archive(other)
    assert list(a) == list(b)
    for key in a:
        x, y = a[key][0], b[key][0]
        assert paths_of(x) == paths_of(y), key
        assert y.start == 0 and all(arc[0] > s for s, arcs in enumerate(y.arcs) for arc in arcs), key
    print(len(a), "lattices with the same paths")


def main():
    command, *args = sys.argv[1:]
    {"compare": compare, "generate": lambda seed, ark: generate(int(seed), ark), "same": same, "best": best, "times": times}[command](*args)


if __name__ == "__main__":
    main()
