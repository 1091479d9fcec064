"""garbage_check.py WARPFST SEED: run in a folder of kaldi_oracle.py. <unk> as any sequence of phones (mkgraph hmm --garbage) costs what it costs in a graph whose
lexicon lists all sequences of one and two phones, for random strings of that graph. Costs are found by dynamic programming over the arcs of both graphs."""

import collections
import itertools
import math
import pathlib
import random
import subprocess
import sys

COST, STRINGS = 0.7, 100
program, rng = sys.argv[1], random.Random(int(sys.argv[2]))


class Graph:
    def __init__(self, path):
        self.arcs, self.final, self.start = collections.defaultdict(list), {}, None
        for line in subprocess.run([program, "print", "--numeric", path], capture_output=True, text=True, check=True).stdout.splitlines():
            fields = line.split()
            state = int(fields[0])
            self.start = state if self.start is None else self.start
            if len(fields) <= 2:
                self.final[state] = float(fields[1]) if len(fields) > 1 else 0.0
            else:
                self.arcs[state].append((int(fields[1]), int(fields[2]), int(fields[3]), float(fields[4]) if len(fields) > 4 else 0.0))

    def step(self, costs, label, words):
        """Costs of (state, number of words) after arcs with this input label; for 0 also of the places before."""
        found, todo = dict(costs) if label == 0 else {}, list(costs)
        for state, at in todo:
            for target, ilabel, olabel, weight in self.arcs[state]:
                if ilabel != label or (olabel and words[at : at + 1] != [olabel]):
                    continue
                place = (target, at + (olabel != 0))
                cost = (found if label == 0 else costs)[state, at] + weight
                if cost < found.get(place, math.inf) - 1e-9:
                    found[place] = cost
                    if label == 0:
                        todo.append(place)
        return found

    def cost(self, labels, words):
        costs = self.step({(self.start, 0): 0.0}, 0, words)
        for label in labels:
            costs = self.step(self.step(costs, label, words), 0, words)
        return min((cost + self.final[state] for (state, at), cost in costs.items() if at == len(words) and state in self.final), default=math.inf)

    def random_string(self):
        state, labels, words = self.start, [], []
        while len(labels) <= 40:
            arc = rng.choice([*self.arcs[state], *([None] if state in self.final else [])])
            if arc is None:
                return labels, words
            state = arc[0]
            labels += [arc[1]] * (arc[1] != 0)
            words += [arc[2]] * (arc[2] != 0)
        return None


entries = [line.split() for line in pathlib.Path("lexicon.txt").read_text().splitlines()]
phones = [fields[0] for fields in map(str.split, pathlib.Path("lang/phones.txt").read_text().splitlines()) if fields[1] != "0" and fields[0][0] != "#"]
spoken = sorted({phone[:-2] for phone in phones if phone.endswith("_B")} - {"SIL"}) or [phone for phone in phones if phone != "SIL"]
word = entries[0][0]
pathlib.Path("unknown.gram").write_text(f'#JSGF V1.0;\ngrammar g;\npublic <s> = ({word} | "<unk>")+;\n')
listed = [f"{fields[0]} 1 {' '.join(fields[1:])}" for fields in entries]
listed += [f"<unk> {math.exp(-COST * count):.9g} {' '.join(some)}" for count in (1, 2) for some in itertools.product(spoken, repeat=count)]
pathlib.Path("listed.txt").write_text("\n".join(listed) + "\n")
make = [program, "mkgraph", "hmm", "--am=final.mdl", "--lang=lang", "--grammar=unknown.gram", "--epsilon", "-q", "--format=vector"]
subprocess.run([*make, "--lexicon=listed.txt", "--lexicon-format=prob", "--words-out=listed.words", "-o", "listed.fst"], check=True)
subprocess.run([*make, "--lexicon=lexicon.txt", "--words=listed.words", f"--garbage={COST}", "-o", "garbage.fst"], check=True)
expected, garbage = Graph("listed.fst"), Graph("garbage.fst")
unknown = next(int(line.split()[1]) for line in pathlib.Path("listed.words").read_text().splitlines() if line.startswith("<unk>"))
strings = [string for string in (expected.random_string() for _ in range(STRINGS)) if string is not None]
for labels, words in strings:
    want, have = expected.cost(labels, words), garbage.cost(labels, words)
    if not abs(want - have) < 1e-3:
        sys.exit(f"labels {labels}, words {words}: {have}, expected {want}")
if sum(unknown in words for _, words in strings) < STRINGS // 10:
    sys.exit(f"only {len(strings)} strings, too few with <unk>")
