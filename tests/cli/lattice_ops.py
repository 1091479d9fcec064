"""Oracle for `warpfst lattice`: lists all paths of small random lattices, and checks the results of the commands against these paths.

lattice_ops.py generate SEED   writes raw.txt, words.txt, text (references), small.arpa, large.arpa to the current folder
lattice_ops.py check BEAM N    checks the text archives pruned.raw, pruned.compact, det, compact, rescored, rescored.half, and nbest.json, oracle.txt,
                               oracle.out, stats.json in the current folder
"""
import json
import math
import random
import sys

WORDS = ["a", "b", "c", "d"]


# --- lattices: key -> (arcs [(source, target, word, graph, acoustic, labels)], final {state: (graph, acoustic, labels)}) -----------------------------------


def weight(field):
    graph, acoustic, *labels = field.split(",")
    return float(graph), float(acoustic), tuple(map(int, labels[0].split("_"))) if labels and labels[0] else ()


def read(path, compact):
    lattices, key = {}, None
    for line in open(path, encoding="utf-8"):
        fields = line.split()
        if not fields:
            key = None
        elif key is None:
            key = fields[0]
            arcs, final = lattices[key] = [], {}
        elif len(fields) <= 2:
            final[int(fields[0])] = weight(fields[1] if len(fields) > 1 else "0,0")
        elif compact:
            source, target, word = map(int, fields[:3])
            arcs.append((source, target, word, *weight(fields[3] if len(fields) > 3 else "0,0")))
        else:
            source, target, label, word = map(int, fields[:4])
            graph, acoustic, _ = weight(fields[4] if len(fields) > 4 else "0,0")
            arcs.append((source, target, word, graph, acoustic, (label,) if label else ()))
    return lattices


def paths(lattice):
    """All paths from state 0: [(words, labels, graph cost, acoustic cost, numbers of arcs)]."""
    arcs, final = lattice
    found, open_ends = [], [(0, (), (), 0.0, 0.0, ())]
    while open_ends:
        state, words, labels, graph, acoustic, used = open_ends.pop()
        if state in final:
            g, a, l = final[state]
            found.append((words, labels + l, graph + g, acoustic + a, used))
        for i, (source, target, word, g, a, l) in enumerate(arcs):
            if source == state:
                open_ends.append((target, words + ((word,) if word else ()), labels + l, graph + g, acoustic + a, used + (i,)))
    return found


def cost(path):
    return path[2] + path[3]


def bare(found):
    return sorted(path[:4] for path in found)


def best_by_words(found):
    best = {}
    for path in found:
        if path[0] not in best or cost(path) < cost(best[path[0]]):
            best[path[0]] = path
    return best


# --- language models ----------------------------------------------------------------------------------------------------------


class Bigrams:
    def __init__(self, path):
        self.grams, level = {}, 0
        for line in open(path, encoding="utf-8"):
            if line.startswith("\\") and line.endswith("-grams:\n"):
                level = int(line[1])
            elif level and "\t" in line:
                log_prob, words, *backoff = line.rstrip("\n").split("\t")
                self.grams[tuple(words.split())] = (float(log_prob), float(backoff[0]) if backoff else 0.0)

    def cost(self, words):
        total, before = 0.0, "<s>"
        for word in [*words, "</s>"]:
            if (before, word) in self.grams:
                total += self.grams[before, word][0]
            else:
                total += self.grams[before,][1] + self.grams[word,][0]
            before = word
        return -total * math.log(10)


def write_arpa(path, rng, bigrams):
    def prob():
        return -rng.randint(1, 24) / 8

    pairs = sorted({(rng.choice(["<s>", *WORDS]), rng.choice([*WORDS, "</s>"])) for _ in range(bigrams)})
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"\n\\data\\\nngram 1={len(WORDS) + 2}\nngram 2={len(pairs)}\n\n\\1-grams:\n-99\t<s>\t{prob()}\n{prob()}\t</s>\n")
        out.write("".join(f"{prob()}\t{word}\t{prob()}\n" for word in WORDS) + "\n\\2-grams:\n")
        out.write("".join(f"{prob()}\t{a} {b}\n" for a, b in pairs) + "\n\\end\\\n")


# --- the two commands -----------------------------------------------------------------------------------------------------------


def generate(seed):
    rng = random.Random(seed)
    with open("raw.txt", "w", encoding="utf-8") as out, open("text", "w", encoding="utf-8") as text:
        for u in range(40):
            out.write(f"u{u:02} \n")
            n = rng.randint(2, 7)
            for s in range(n - 1):
                targets = [s + 1] + [rng.randint(s + 1, n - 1) for _ in range(rng.randint(0, 2))]
                out.writelines(f"{s} {t} {rng.randint(0, 3)} {rng.choice([0, 0, 1, 2, 3, 4])} {rng.randint(0, 32) / 8},{rng.randint(-8, 32) / 8}\n" for t in targets)
            if rng.random() < 0.5:
                out.write(f"{rng.randint(1, n - 1)} {rng.randint(0, 16) / 8},0\n" if n > 2 else "")
            out.write(f"{n - 1} {rng.randint(0, 8) / 8},0.25\n\n")
            text.write(f"u{u:02} " + " ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 4))) + "\n")
    with open("words.txt", "w", encoding="utf-8") as out:
        out.write("<eps> 0\n" + "".join(f"{word} {i + 1}\n" for i, word in enumerate(WORDS)))
    write_arpa("small.arpa", rng, 3)
    write_arpa("large.arpa", rng, 14)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, before + (x != y))
    return row[-1]


def check_pruned(raw, pruned, beam):
    dropped = 0
    for key, lattice in raw.items():
        found = paths(lattice)
        least = min(map(cost, found))
        kept = {i for path in found if cost(path) <= least + beam for i in path[4]}
        ends = {s for s in lattice[1] for path in found if cost(path) <= least + beam and end_of(lattice, path) == s}
        expected = ([arc for i, arc in enumerate(lattice[0]) if i in kept], {s: lattice[1][s] for s in ends})
        assert bare(paths(pruned[key])) == bare(paths(expected)), key
        assert len(pruned[key][0]) == len(kept), key
        dropped += len(lattice[0]) - len(kept)
    assert dropped > 20


def end_of(lattice, path):
    return lattice[0][path[4][-1]][1] if path[4] else 0


def check_determinized(raw, det, beam):
    several = 0
    for key, lattice in raw.items():
        found = paths(lattice)
        best, least = best_by_words(found), min(map(cost, found))
        made = paths(det[key])
        assert len({path[0] for path in made}) == len(made), f"{key}: a sequence has two paths"
        for path in made:
            ways = [p for p in found if p[0] == path[0]]
            assert path[:4] in [p[:4] for p in ways], f"{key}: {path} is no path"
            if cost(best[path[0]]) <= least + beam:
                assert cost(path) == cost(best[path[0]]), f"{key}: not the best of {path[0]}"
            several += len(ways) > 1
        missing = {words for words, path in best.items() if cost(path) <= least + beam} - {path[0] for path in made}
        assert not missing, f"{key}: {missing}"
    assert several > 10


def check_nbest(raw, n):
    results = {}
    for line in open("nbest.json", encoding="utf-8"):
        result = json.loads(line)
        results.setdefault(result["key"].rsplit("-", 1)[0], []).append(result)
    for key, lattice in raw.items():
        best = {" ".join(WORDS[w - 1] for w in words): path for words, path in best_by_words(paths(lattice)).items()}
        listed = results[key]
        assert [r["key"] for r in listed] == [f"{key}-{i + 1}" for i in range(len(listed))]
        assert [r["cost"] for r in listed] == sorted(map(cost, best.values()))[:n], key
        assert len({r["text"] for r in listed}) == len(listed) and all(cost(best[r["text"]]) == r["cost"] for r in listed), key


def check_rescored(raw, rescored, scale):
    old, new = Bigrams("small.arpa"), Bigrams("large.arpa")
    for key, lattice in raw.items():
        expected = {words: cost(path) for words, path in best_by_words(paths(lattice)).items()}
        made = paths(rescored[key])
        assert {path[0] for path in made} == set(expected) and len(made) == len(expected), key
        for path in made:
            text = [WORDS[w - 1] for w in path[0]]
            want = expected[path[0]] - old.cost(text) + scale * new.cost(text)
            assert abs(cost(path) - want) < 1e-3, (key, text, cost(path), want)


def check_oracle(raw):
    said = {key: words for key, *words in map(str.split, open("text", encoding="utf-8"))}
    closest = {key: words for key, *words in map(str.split, open("oracle.txt", encoding="utf-8"))}
    errors = 0
    for key, lattice in raw.items():
        texts = {tuple(WORDS[w - 1] for w in path[0]) for path in paths(lattice)}
        least = min(distance(text, said[key]) for text in texts)
        assert tuple(closest[key]) in texts and distance(closest[key], said[key]) == least, key
        errors += least
    total = sum(map(len, said.values()))
    assert f"oracle WER {100 * errors / total:.2f}%" in open("oracle.out", encoding="utf-8").read(), (errors, total)


def check(beam, n):
    raw, compact = read("raw.txt", False), read("compact", True)
    for key in raw:
        assert bare(paths(raw[key])) == bare(paths(compact[key])), f"{key}: converted"
    check_pruned(raw, read("pruned.raw", False), beam)
    check_pruned(compact, read("pruned.compact", True), beam)
    check_determinized(raw, read("det", True), beam)
    check_nbest(raw, n)
    check_rescored(raw, read("rescored", True), 1)
    check_rescored(raw, read("rescored.half", True), 0.5)
    check_oracle(raw)
    stats = [json.loads(line) for line in open("stats.json", encoding="utf-8")]
    each = {s["key"]: s for s in stats if "key" in s}
    for key, lattice in raw.items():
        assert each[key]["arcs"] == len(lattice[0]), key
        assert abs(each[key]["log_paths"] - math.log(len(paths(lattice)))) < 1e-3, (key, each[key], len(paths(lattice)))


if sys.argv[1] == "generate":
    generate(int(sys.argv[2]))
else:
    check(float(sys.argv[2]), int(sys.argv[3]))
