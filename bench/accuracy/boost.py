#!/usr/bin/env python3
"""boost [--part=lists,phrases,peers,words] [--phone-data=PATH] [--char-data=PATH] [--bpe-data=PATH] [--draws=5] [--record]

Measures what boost lists find and what they break, on CTC scores of real speech (examples/ctc, or .npy files: a folder, or a tar archive of one).

  lists    every way to weigh the words of a list, by strength, on phone scores
  phrases  nats a letter for single words and for phrases of two and three words, on every set of scores that is given (phones, characters, byte pairs)
  peers    the same lists on character scores: ours, pyctcdecode's hotwords (its own search, same model and words), and NeMo's boosting tree (its ContextGraph in a greedy search
           without a model, after its documentation and package; `lists` has its weights in our search). --char-data must be given
  words    words that the graph lacks, added through <unk>: every way to give them a cost, on phone scores

Lists. Rare words are those of the model that 1 to 5 utterances have. A draw is 20 of them at random. Distractors are words of the model that no utterance has.
  right  a draw, the same list for all utterances; the figures are sums over --draws draws
  own    each utterance has the rare words that are said in it
  wrong  20 distractors, for all utterances
  mixed  the first draw and 80 distractors, for all utterances; all draws and distractors, 1,000 words together
Phrases are lists of the same kinds. A phrase is two or three words that follow each other in 1 to 5 utterances; distractors are bigrams and trigrams of the model that no utterance has.
One word of each is in 5 utterances at most. `own`: up to three phrases of the utterance, and three of other utterances.

A listed word or phrase counts as found as often as reference and result both have it; more in the result are false alarms. Strengths of ways that weigh by length are scaled so that the average
listed word gets about as many nats as with the constant weight of the same line.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import glob
import gzip
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "common"))
import decode_tasks
import measure

PARTS = ("lists", "phrases", "peers", "words")
CTC = decode_tasks.CTC
MAX_LETTERS = 12  # of a word, as in wf_boost_by_length
CONSTANT = (2, 3, 4, 5, 7.5)  # nats
PER_LETTER = (0.4, 0.6, 0.8, 1, 1.5)
PHRASE_PER_LETTER = (0.6, 0.8, 1, 1.2)


class Speech:
    """References, words of the lexicon with pronunciations, words of the model with unigram costs in nats, and the lists."""

    def __init__(self, ref, units, draws):
        self.ref = {fields[0]: fields[1:] for fields in map(str.split, pathlib.Path(ref).read_text(encoding="utf-8").splitlines())}
        self.pronunciations = collections.defaultdict(list)
        for line in (CTC / f"lexicon_{units}.txt").read_text(encoding="utf-8").splitlines():
            word, *tokens = line.split()
            self.pronunciations[word].append(tokens)
        self.unigrams, self.ngrams = {}, []  # the n-grams of two and three words, as texts
        with gzip.open(CTC / "lm3.arpa.gz", "rt", encoding="utf-8") as arpa:
            order = 1
            for line in arpa:
                fields = line.split()
                if line.startswith(("\\2-grams", "\\3-grams")):
                    order = int(line[1])
                elif len(fields) > order and fields[0].startswith("-"):
                    if order == 1:
                        self.unigrams[fields[1]] = -math.log(10) * float(fields[0])
                    else:
                        self.ngrams.append(" ".join(fields[1 : order + 1]))
        times = collections.Counter(word for words in self.ref.values() for word in set(words))
        self.known = [word for word in sorted(self.pronunciations) if word in self.unigrams]
        rare = [word for word in self.known if 1 <= times[word] <= 5]
        unsaid = [word for word in self.known if times[word] == 0]
        distractors = random.Random(0).sample(unsaid, len(unsaid))
        self.draws = [random.Random(1 + i).sample(rare, 20) for i in range(draws)]
        said = sorted({word for draw in self.draws for word in draw})
        rare_words = set(rare)
        own = {key: sorted(rare_words & set(words)) for key, words in self.ref.items() if rare_words & set(words)}
        self.kinds = {
            "right": [self.for_all(draw) for draw in self.draws],
            "own": [own],
            "wrong": [self.for_all(distractors[:20])],
            "mixed, 100": [self.for_all(draw + distractors[80 * i : 80 * i + 80]) for i, draw in enumerate(self.draws[:1])],
            "mixed, 1,000": [self.for_all(said + distractors[: 1000 - len(said)])],
        }
        self.phrases = self.kinds_of_phrases({word for word in self.known if times[word] <= 5}, draws)
        self.unknown = sorted(word for word in times if word in self.pronunciations and word not in self.unigrams)

    def kinds_of_phrases(self, rare, draws):
        known, said = set(self.known), {key: {" ".join(words[i : i + n]) for n in (2, 3) for i in range(len(words) - n + 1)} for key, words in self.ref.items()}
        times = collections.Counter(phrase for phrases in said.values() for phrase in phrases)
        good = sorted(phrase for phrase, count in times.items() if count <= 5 and known.issuperset(phrase.split()) and not rare.isdisjoint(phrase.split()))
        unsaid = sorted(phrase for phrase in self.ngrams if phrase not in times and known.issuperset(phrase.split()) and not rare.isdisjoint(phrase.split()))
        distractors = random.Random(0).sample(unsaid, len(unsaid))
        drawn = [random.Random(1 + i).sample(good, 20) for i in range(draws)]
        union = sorted({phrase for draw in drawn for phrase in draw})
        own = {}
        for i, key in enumerate(sorted(self.ref)):
            rng, mine = random.Random(i), sorted(set(good) & said[key])
            if mine:
                own[key] = sorted({*rng.sample(mine, min(3, len(mine))), *(phrase for phrase in rng.sample(good, 3) if phrase not in said[key])})
        return {
            "right": [self.for_all(draw) for draw in drawn],
            "own": [own],
            "wrong": [self.for_all(distractors[:20])],
            "mixed, 100": [self.for_all(draw + distractors[80 * i : 80 * i + 80]) for i, draw in enumerate(drawn[:1])],
            "mixed, 1,000": [self.for_all(union + distractors[: 1000 - len(union)])],
        }

    def for_all(self, words):
        return dict.fromkeys(self.ref, sorted(words))

    def length(self, word):
        """Tokens of the shortest pronunciation."""
        return min(map(len, self.pronunciations[word]))


@dataclasses.dataclass
class Counts:
    """Sums over utterances."""

    found: int = 0
    said: int = 0
    false_alarms: int = 0
    errors: int = 0
    words: int = 0

    def __add__(self, other):
        return Counts(*(a + b for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))

    @property
    def recall(self):
        return self.found / self.said if self.said else math.nan

    @property
    def precision(self):
        return self.found / (self.found + self.false_alarms) if self.found + self.false_alarms else math.nan

    @property
    def f1(self):
        return 2 * self.found / (self.said + self.found + self.false_alarms)

    @property
    def wer(self):
        return self.errors / self.words

    def cells(self, lists=1):
        percent = ["-" if math.isnan(value) else f"{100 * value:.1f}" for value in (self.recall, self.precision, self.f1 if self.said else math.nan)]
        return [*percent, f"{self.false_alarms / lists:.0f}", f"{100 * self.wer:.2f}"]


COLUMNS = ["recall", "precision", "F1", "false alarms a list", "WER"]
RECORDED = ("recall", "false alarms a list", "WER")  # the others follow from these


_DISTANCES = {}


def occurrences(words, listed, sizes):
    """How often each listed word or phrase (a text) is in `words`. `sizes`: the numbers of words of the listed ones."""
    texts = (" ".join(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1))
    return collections.Counter(text for text in texts if text in listed)


def count(speech, results, lists):
    """Counts of every utterance. `lists`: key -> listed words or phrases."""
    counts = {}
    for key, said in speech.ref.items():
        result, listed = results.get(key, []), set(lists.get(key, ()))
        if (key, tuple(result)) not in _DISTANCES:
            _DISTANCES[key, tuple(result)] = measure.distance(said, result)
        sizes = {len(text.split()) for text in listed}
        wanted, got = occurrences(said, listed, sizes), occurrences(result, listed, sizes)
        found = (wanted & got).total()
        counts[key] = Counts(found, wanted.total(), got.total() - found, _DISTANCES[key, tuple(result)], len(said))
    return counts


def added(tables):
    """The sum of several results of `count`."""
    total = dict(tables[0])
    for table in tables[1:]:
        total = {key: value + table[key] for key, value in total.items()}
    return total


def whole(table):
    return sum(table.values(), Counts())


def decode(task, *flags):
    with tempfile.NamedTemporaryFile(dir=measure.BUILD) as out:
        measure.run(measure.WARPFST, "decode", task.graph, task.scores, f"--acoustic-scale={task.acoustic_scale}", "--beam=15", "--max-active=7000", "--blank=0", "-o", out.name, *flags)
        return {fields[0]: fields[1:] for fields in map(str.split, pathlib.Path(out.name).read_text(encoding="utf-8").splitlines())}


def decode_with_lists(task, lists, line, flag):
    """`line(word)`: the lines of a word in a list. `flag`: --utterance-boosts or --utterance-words."""
    with tempfile.TemporaryDirectory(dir=measure.BUILD) as folder:
        paths = {}
        with open(pathlib.Path(folder, "table"), "w", encoding="utf-8") as table:
            for key, words in lists.items():
                if tuple(words) not in paths:
                    paths[tuple(words)] = path = pathlib.Path(folder, f"{len(paths)}.list")
                    path.write_text("".join(map(line, words)), encoding="utf-8")
                table.write(f"{key} {paths[tuple(words)]}\n")
        return decode(task, flag, table.name)


def letters(text):
    return sum(min(len(word), MAX_LETTERS) for word in text.split())


def nemo_weight(num_tokens):
    """Sum of the scores of a word's tokens in NeMo's tree with context_score 1, depth_scaling 2: 1 for the first token, 2 + ln(i) for the i-th."""
    return 1 + 2 * (num_tokens - 1) + math.lgamma(num_tokens + 1)


def ways(speech):
    """name -> (weight of a word by strength, strengths)."""
    rarest = max(speech.unigrams.values())
    return {
        "nats a word": (lambda strength, word: strength, CONSTANT),
        "nats a letter": (lambda strength, word: strength * letters(word), PER_LETTER),
        "nats a token after the first": (lambda strength, word: strength * (speech.length(word) - 1), (0.75, 1, 1.5, 2)),
        "NeMo's tree, scaled by": (lambda strength, word: strength * nemo_weight(speech.length(word)), (0.25, 0.35, 0.5, 0.75)),
        "nats a word, less by frequency": (lambda strength, word: max(0, strength - (rarest - speech.unigrams[word])), (3, 4, 5, 6)),
        "nats a word of 4 tokens or more": (lambda strength, word: strength * (speech.length(word) >= 4), (4, 5, 7.5, 10)),
    }


def boost_line(weight, strength, word):
    return f"{word} {weight(strength, word):.5f}\n"


MAIN_WAYS = ("nats a word", "nats a letter")


def measure_ways(speech, task, names, kinds):
    """(way, kind) -> {strength: counts by utterance}."""
    made = ways(speech)
    figures = {}
    for name in names:
        weight, strengths = made[name]
        for kind in kinds[name]:
            for strength in strengths:
                tables = [count(speech, decode_with_lists(task, lists, functools.partial(boost_line, weight, strength), "--utterance-boosts"), lists) for lists in speech.kinds[kind]]
                figures.setdefault((name, kind), {})[strength] = added(tables)
                print(f"  {name} {strength}, {kind}: {whole(figures[name, kind][strength]).cells(len(tables))}", flush=True)
    return figures


def rows_of(speech, task_name, figures):
    rows, out = [], []
    for kind in speech.kinds:
        for (name, of), by_strength in figures.items():
            if of != kind:
                continue
            for strength, table in by_strength.items():
                cells = whole(table).cells(len(speech.kinds[kind]))
                rows.append([kind, name, f"{strength:g}", *cells])
                setup = f"{task_name}, {kind} lists, {name}, {strength:g}"
                out += [("boost lists", f"{setup}, {column}", cell, "%" if column != "false alarms a list" else "words") for column, cell in zip(COLUMNS, cells) if column in RECORDED and cell != "-"]
    return rows, out


def at_recall(points, recall):
    """False alarms at a recall, by interpolation between the (recall, false alarms) of several strengths: linear in recall, geometric in false alarms. None: out of range."""
    points = sorted((at, max(alarms, 0.5)) for at, alarms in points)
    for (low, few), (high, many) in zip(points, points[1:]):
        if low <= recall <= high and low < high:
            return few * (many / few) ** ((recall - low) / (high - low))
    return None


def curve(by_strength, times):
    """(recall, false alarms) of each strength, with utterance i taken times[i] times."""
    points = []
    for table in by_strength.values():
        found, said, alarms = (sum(times[i] * value[column] for i, value in table) for column in range(3))
        points.append((found / said, alarms))
    return points


def compare(speech, figures, kind, samples=1000):
    """False alarms of each way at the recall that a constant weight has, as a part of its own; 95% intervals by a bootstrap over utterances."""
    keys, rng, rows, out = sorted(speech.ref), random.Random(1), [], []
    tables = {}  # way -> strength -> [(utterance, (found, said, false alarms))] of utterances in which they are not all 0
    for (name, of), by_strength in figures.items():
        if of == kind:
            values = {strength: [(i, dataclasses.astuple(table[key])[:3]) for i, key in enumerate(keys)] for strength, table in by_strength.items()}
            tables[name] = {strength: [(i, value) for i, value in each if any(value)] for strength, each in values.items()}
    everything = range(len(keys))
    drawn = [[1] * len(keys)] + [[sample[i] for i in everything] for sample in (collections.Counter(rng.choices(everything, k=len(keys))) for _ in range(samples))]
    curves = {name: [curve(by_strength, times) for times in drawn] for name, by_strength in tables.items()}
    names = [name for name in tables if name != "nats a word"]
    for s, strength in enumerate(CONSTANT):
        row = [f"{strength:g}", f"{100 * curves['nats a word'][0][s][0]:.1f}"]
        for name in names:
            alarms = [at_recall(points, constant[s][0]) for points, constant in zip(curves[name], curves["nats a word"])]
            if alarms[0] is None:
                row.append("-")
                continue
            ratios = [each / max(constant[s][1], 0.5) for each, constant in zip(alarms, curves["nats a word"]) if each is not None]
            ordered = sorted(ratios[1:])
            low, high = (ordered[int(part * (len(ordered) - 1))] for part in (0.025, 0.975))
            row.append(f"{ratios[0]:.2f} ({low:.2f} to {high:.2f})")
            out.append(("boost lists", f"CTC phones, {len(keys)} utterances, {kind} lists, false alarms of {name} at the recall of {strength:g} nats a word, as a part of its own", f"{ratios[0]:.2f}", "times"))
        rows.append(row)
    print(f"\nFalse alarms at the recall of a constant weight, as a part of its own ({kind} lists; in brackets 95% of {samples} bootstrap samples of the utterances)\n")
    print(measure.table(["nats a word", "recall", *names], rows))
    return out


def part_lists(arguments):
    task = decode_tasks.real_ctc(measure.Built, arguments.phone_data, None)
    speech = Speech(task.ref, "phone", arguments.draws)
    names = list(ways(speech))
    figures = measure_ways(speech, task, names, {name: list(speech.kinds) if name in MAIN_WAYS else ["right"] for name in names})
    plain = decode(task)
    rows, out = rows_of(speech, f"CTC phones, {len(speech.ref)} utterances", figures)
    none = [[kind, "none", "", *whole(added([count(speech, plain, lists) for lists in speech.kinds[kind]])).cells(len(speech.kinds[kind]))] for kind in speech.kinds]
    print("\nLists of words on phone scores\n")
    print(measure.table(["lists", "weight", "", *COLUMNS], sorted(none + rows, key=lambda row: list(speech.kinds).index(row[0]))))
    return out + compare(speech, figures, "right")


# --- phrases ------------------------------------------------------------------------------------


def letter_line(strength, text):
    return f"{text} {strength * letters(text):.5f}\n"


def part_phrases(arguments):
    rows, out = [], []
    for unit, data in (("phone", arguments.phone_data), ("char", arguments.char_data), ("bpe", arguments.bpe_data)):
        if data is None:
            continue
        task = decode_tasks.real_ctc(measure.Built, data, None, unit)
        speech, plain = Speech(task.ref, unit, arguments.draws), decode(task)
        for listed, kinds in (("words", speech.kinds), ("phrases", speech.phrases)):
            for kind, each in kinds.items():
                for strength in (0, *PHRASE_PER_LETTER):
                    results = [plain if strength == 0 else decode_with_lists(task, lists, functools.partial(letter_line, strength), "--utterance-boosts") for lists in each]
                    cells = whole(added([count(speech, result, lists) for result, lists in zip(results, each)])).cells(len(each))
                    rows.append([task.name, listed, kind, f"{strength:g}", *cells])
                    print(f"  {rows[-1]}", flush=True)
                    setup = f"{task.name}, {len(speech.ref)} utterances, {kind} lists of {listed}, nats a letter, {strength:g}"
                    out += [("boost phrases", f"{setup}, {column}", cell, "%" if column != "false alarms a list" else "words") for column, cell in zip(COLUMNS, cells) if column in RECORDED and cell != "-"]
    print("\nWords and phrases by nats a letter\n")
    print(measure.table(["scores", "of", "lists", "nats a letter", *COLUMNS], rows))
    return out


# --- peers -------------------------------------------------------------------------------------


def peer_results(files, speech, jobs):
    """Runs bench/peers/peer_boost.py in its own environment, one process per processor. `jobs`: [{peer, strength, lists}]."""

    def one(job):
        with tempfile.TemporaryDirectory(dir=measure.BUILD) as folder:
            path = pathlib.Path(folder, "job.json")
            path.write_text(json.dumps({**job, **{name: str(file) for name, file in files.items()}, "words": speech.known, "keys": sorted(speech.ref)}), encoding="utf-8")
            done = subprocess.run([os.environ["WARPFST_PEER_PYTHON"], measure.ROOT / "bench" / "peers" / "peer_boost.py", path], stdout=subprocess.PIPE, text=True, check=True)
            return json.loads(done.stdout)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(one, jobs)


PEERS = {"pyctcdecode, hotword_weight": ("pyctcdecode", (2, 5, 10)), "NeMo's tree, greedy, alpha": ("nemo", (0.25, 0.5, 1))}


def part_peers(arguments):
    task = decode_tasks.real_ctc(measure.Built, arguments.char_data, None, "char")
    speech = Speech(task.ref, "char", arguments.draws)
    files = {"scores": task.scores, "tokens": CTC / "tokens_char.txt", "lm": decode_tasks.plain_model(), "nemo": decode_tasks.unpack_wheel(glob.glob(os.environ["NEMO_WHEEL"])[0])}
    kinds = [kind for kind in speech.kinds if kind != "mixed, 100"]
    figures = measure_ways(speech, task, MAIN_WAYS, dict.fromkeys(MAIN_WAYS, kinds))
    for name, (peer, strengths) in PEERS.items():
        jobs = [(kind, strength, lists) for kind in kinds for strength in strengths for lists in speech.kinds[kind]]
        tables = collections.defaultdict(list)
        for (kind, strength, lists), results in zip(jobs, peer_results(files, speech, [{"peer": peer, "strength": strength, "lists": lists} for _, strength, lists in jobs])):
            tables[kind, strength].append(count(speech, results, lists))
            print(f"  {name} {strength}, {kind}: {whole(tables[kind, strength][-1]).cells()}", flush=True)
        for (kind, strength), each in tables.items():
            figures.setdefault((name, kind), {})[strength] = added(each)
    rows, out = rows_of(speech, f"CTC characters, {len(speech.ref)} utterances", figures)
    print("\nThe same lists on character scores, with peers\n")
    print(measure.table(["lists", "weight", "", *COLUMNS], rows))
    return out


# --- added words -------------------------------------------------------------------------------


def added_lines(speech, cost, strength, word):
    return "".join(f"{word}\t{cost(strength, word):.5f}\t{' '.join(tokens)}\n" for tokens in speech.pronunciations[word])


def part_words(arguments):
    task = decode_tasks.real_ctc(measure.Built, arguments.phone_data, None)
    speech = Speech(task.ref, "phone", arguments.draws)
    graph = decode_tasks.work_folder("boost") / "unk.wfst"
    measure.run(measure.WARPFST, "mkgraph", "ctc", f"--tokens={CTC / 'tokens_phone.txt'}", f"--lexicon={CTC / 'lexicon_phone.txt'}", f"--lm={CTC / 'lm3.arpa.gz'}", "--classes=<unk>", "--topology=compact", "-o", graph, "-q")
    task = dataclasses.replace(task, graph=graph)
    unknown = set(speech.unknown)
    kinds = {"all": speech.for_all(speech.unknown), "own": {key: sorted(unknown & set(words)) for key, words in speech.ref.items() if unknown & set(words)}}
    costs = {
        "nats a word": (lambda strength, word: -strength, (-math.log(len(unknown)), 0, 2, 4)),
        "nats a letter": (lambda strength, word: -strength * letters(word), (0.3, 0.45, 0.6, 0.9)),
        "nats a token after the first": (lambda strength, word: -strength * (speech.length(word) - 1), (0.5, 1, 1.5)),
    }
    rows, out = [], []
    for kind, lists in kinds.items():
        for name, (cost, strengths) in costs.items():
            for strength in strengths:
                results = decode_with_lists(task, lists, functools.partial(added_lines, speech, cost, strength), "--utterance-words")
                cells = whole(count(speech, results, speech.for_all(speech.unknown))).cells()
                rows.append([kind, name, f"{strength:.3g}", *cells])
                print(f"  {rows[-1]}", flush=True)
                setup = f"CTC phones, {len(speech.ref)} utterances, {len(unknown)} words that the model lacks, {'all for every utterance' if kind == 'all' else 'each for the utterances that have it'}, {name} below <unk>, {strength:.3g}"
                out += [("words through <unk>", f"{setup}, {column}", cell, "%" if column != "false alarms a list" else "words") for column, cell in zip(COLUMNS, cells) if column in RECORDED and cell != "-"]
    print(f"\n{len(unknown)} words that the model lacks, added through <unk>: nats below the model's cost of <unk>\n")
    print(measure.table(["words", "below <unk>", "", *COLUMNS], rows))
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="lists,words", help=f"some of {','.join(PARTS)}; default: lists,words")
    parser.add_argument("--phone-data", default=CTC / "logp_phone")
    parser.add_argument("--char-data")
    parser.add_argument("--bpe-data")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--record", action="store_true", help="write the figures to bench/figures")
    arguments = parser.parse_args()
    parts = arguments.part.split(",")
    if set(parts) - set(PARTS) or ("peers" in parts and not arguments.char_data):
        parser.error(f"--part: expected some of {', '.join(PARTS)}; `peers` needs --char-data")
    for part in parts:
        found = {"lists": part_lists, "phrases": part_phrases, "peers": part_peers, "words": part_words}[part](arguments)
        if arguments.record:
            measure.record(found, f"./run bench boost --part={part} --draws={arguments.draws}")


if __name__ == "__main__":
    main()
