"""Reference results made by Kaldi's own code (wrapped by the packages kaldi-hmm-gmm and kaldifst): acoustic models, graphs, decodings.

    kaldi_oracle.py SEED FOLDER     writes a random model, lang folder and grammar to FOLDER, and what Kaldi makes from them:
        final.mdl tree           in text; final.bin tree.bin: the same in binary
        lang/                    phones.txt words.txt L_disambig.fst G.fst phones/...; with every third seed, phones depend on the position in the word
        lexicon.txt              the pronunciations in L_disambig.fst, without positions
        settings                 shell variables: num_phones transition_scale self_loop_scale width central num_ids num_pdfs split
        columns                  Kaldi's `transition-id pdf`
        places                   Kaldi's `transition-id phone is-self-loop is-last-of-its-phone`
        HCLG.fst                 H o C o L o G with self-loops after the forward transition (reorder=true), neither determinized nor minimized
        HCLG.before.fst          the same with self-loops before it (reorder=false)
        scores.ark words.ref     random scores of 5 utterances, a column a pdf; words and costs of Kaldi's decoder on HCLG.fst
        before.ref               the same on HCLG.before.fst
"""

import random
import struct
import sys
from pathlib import Path

import kaldi_hmm_gmm as khg  # before kaldifst
import kaldifst
import numpy as np

# --- models -------------------------------------------------------------------------------------------------------------------


def random_hmm(rng, split):
    """States of one topology entry: [(forward pdf class, self-loop pdf class, [target, ...]), ...]. The last state has no transitions. Some entries have a
    non-emitting state inside."""
    n = rng.randint(1, 3)
    silent = rng.randrange(n) if n > 1 and rng.random() < 0.25 else None
    states, pdf_class = [], 0
    for s in range(n):
        targets = {s + 1} | {t for t in range(s + 1, n + 1) if rng.random() < 0.3}
        if s == 0 and silent is not None and silent > 0:
            targets.discard(n)  # every path through an HMM must consume a frame
        if s == silent:
            targets = {t for t in targets if t < n} or {s + 1}
            states.append((-1, -1, sorted(targets)))
            continue
        if rng.random() < 0.8:
            targets.add(s)
        if s > 0 and s - 1 != silent and rng.random() < 0.2:
            targets.add(s - 1)
        forward, loop = pdf_class, pdf_class
        pdf_class += 1
        if split:
            loop = pdf_class
            pdf_class += 1
        states.append((forward, loop, sorted(targets, key=lambda _: rng.random())))
    if all(forward < 0 for forward, _, _ in states):
        return random_hmm(rng, split)
    if states[-1][0] < 0 or (states[0][0] < 0 and n in states[0][2]):
        return random_hmm(rng, split)
    return states + [(-1, -1, [])]


def topology_text(entries, rng):
    lines = ["<Topology>"]
    for phones, states in entries:
        lines += ["<TopologyEntry>", "<ForPhones>", " ".join(map(str, phones)), "</ForPhones>"]
        for s, (forward, loop, targets) in enumerate(states):
            line = f"<State> {s}"
            if forward >= 0:
                line += f" <PdfClass> {forward}" if forward == loop else f" <ForwardPdfClass> {forward} <SelfLoopPdfClass> {loop}"
            p = np.random.default_rng(rng.randrange(1 << 30)).dirichlet([2] * len(targets)) if targets else []
            line += "".join(f" <Transition> {t} {x:.4f}" for t, x in zip(targets, p))
            lines.append(line + " </State>")
        lines.append("</TopologyEntry>")
    return "\n".join(lines + ["</Topology>"]) + "\n"


def i32(x):
    return b"\4" + struct.pack("<i", x)


def ints(values):
    return b"\4" + struct.pack("<i", len(values)) + struct.pack(f"<{len(values)}i", *values)


def random_map(rng, width, central, num_phones, num_classes, next_pdf, depth):
    """A random event map in binary. Below the questions about the context, every pair of central phone and pdf class has a pdf."""
    if depth > 0:
        key = rng.randrange(width)
        values = sorted(rng.sample(range(num_phones + 1), rng.randint(1, num_phones)))
        if key == central:
            values = [v for v in values if v > 0] or [1]
        yes = random_map(rng, width, central, num_phones, num_classes, next_pdf, depth - 1 - (rng.random() < 0.4))
        no = random_map(rng, width, central, num_phones, num_classes, next_pdf, depth - 1 - (rng.random() < 0.4))
        return b"SE " + i32(key) + ints(values) + b"{ " + yes + no + b"} "
    children = [b"NULL "]
    shared = {}
    for phone in range(1, num_phones + 1):
        classes = []
        for c in range(num_classes[phone]):
            if c in shared and rng.random() < 0.3:
                classes.append(shared[c])
                continue
            classes.append(b"CE " + i32(next_pdf[0]))
            shared[c] = classes[-1]
            next_pdf[0] += 1
        children.append(b"TE " + i32(-1) + b"\xfc" + struct.pack("<I", len(classes)) + b"( " + b"".join(classes) + b") ")
    return b"TE " + i32(central) + b"\xfc" + struct.pack("<I", len(children)) + b"( " + b"".join(children) + b") "


def random_tree(rng, width, central, num_phones, num_classes):
    body = random_map(rng, width, central, num_phones, num_classes, [0], rng.randint(1, 4) if width > 1 else rng.randint(0, 1))
    data = b"ContextDependency " + i32(width) + i32(central) + b"ToPdf " + body + b"EndContextDependency "
    tree = khg.ContextDependency.__new__(khg.ContextDependency)
    tree.__setstate__(([b - 256 if b > 127 else b for b in data],))
    return tree


def with_random_probs(model, rng):
    """Copies the transition model. In the copy, the transitions of each transition-state have random probabilities."""
    state = list(model.__getstate__())
    log_probs, own = [0.0] * len(state[6]), [0.0] * len(state[7])
    for tstate in range(1, len(state[2]) - 1):
        ids = list(range(state[2][tstate], state[2][tstate + 1]))
        p = np.random.default_rng(rng.randrange(1 << 30)).dirichlet([1.5] * len(ids)) + 1e-4
        p = np.round(p / p.sum(), 5)
        for i, x in zip(ids, p):
            log_probs[i] = float(np.float32(f"{np.log(x):.6g}"))  # six digits, as the text format keeps
        loop = [i for i in ids if model.is_self_loop(i)]
        own[tstate] = float(np.log(np.float32(1) - np.exp(np.float32(log_probs[loop[0]])))) if loop else 0.0
    state[6], state[7] = log_probs, own
    new = khg.TransitionModel.__new__(khg.TransitionModel)
    new.__setstate__(tuple(state))
    return new


def model_binary(model, entries, split):
    """The transition model in Kaldi's binary format."""
    words = str(model).split()
    kind = "Tuples" if split else "Triples"
    numbers = words[words.index(f"<{kind}>") + 1 : words.index(f"</{kind}>")]
    tuples = b"".join(i32(int(x)) for x in numbers)  # their number, then the tuples
    phones = sorted(p for members, _ in entries for p in members)
    entry_of = [-1] * (phones[-1] + 1)
    for e, (members, _) in enumerate(entries):
        for p in members:
            entry_of[p] = e
    initial = {p: model.topo.topology_for_phone(p) for p in phones}
    out = b"\0B<TransitionModel> <Topology> " + ints(phones) + ints(entry_of) + (i32(-1) if split else b"") + i32(len(entries))
    for members, states in entries:
        out += i32(len(states))
        for s, (forward, loop, _) in enumerate(states):
            transitions = initial[members[0]][s].transitions
            out += i32(forward) + (i32(loop) if split else b"") + i32(len(transitions))
            out += b"".join(i32(t) + b"\4" + struct.pack("<f", p) for t, p in transitions)
    out += b"</Topology> " + f"<{kind}> ".encode() + tuples + f"</{kind}> ".encode() + b"<LogProbs> FV " + i32(len(model.log_probs))
    return out + struct.pack(f"<{len(model.log_probs)}f", *model.log_probs) + b"</LogProbs> </TransitionModel> "


# --- graphs -------------------------------------------------------------------------------------------------------------------


def fst_of(arcs, finals):
    """arcs: (from, to, ilabel, olabel, cost); state 0 is the start."""
    out = kaldifst.StdVectorFst()
    n = 1 + max([a[0] for a in arcs] + [a[1] for a in arcs] + list(finals))
    for _ in range(n):
        out.add_state()
    out.start = 0
    for source, target, ilabel, olabel, cost in arcs:
        out.add_arc(source, kaldifst.StdArc(ilabel, olabel, cost, target))
    for state, cost in finals.items():
        out.set_final(state, cost)
    return out


def arcs_of(fst):
    for s in range(fst.num_states):
        for arc in kaldifst.ArcIterator(fst, s):
            yield s, arc


def without(fst, labels):
    """Replaces the given input labels by epsilon."""
    finals = {s: float(fst.final(s).value) for s in range(fst.num_states)}
    arcs = [(s, a.nextstate, 0 if a.ilabel in labels else a.ilabel, a.olabel, float(a.weight.value)) for s, a in arcs_of(fst)]
    assert fst.start == 0
    return fst_of(arcs, {s: c for s, c in finals.items() if c != float("inf")})


class Phones:
    """Numbers and names of phones. SIL is 1. With positions, every other phone, and SIL inside words, has four variants (B, E, I, S)."""

    endings = "BEIS"  # Kaldi's order

    def __init__(self, rng, positions):
        self.positions = positions
        self.bases = (["SIL"] if positions else []) + [f"P{i}" for i in range(rng.randint(1, 3))]
        self.names = ["<eps>", "SIL"] + [f"{b}_{e}" if positions else b for b in self.bases for e in (self.endings if positions else "x")]
        self.number = len(self.names) - 1

    def spell(self, bases):
        """Numbers of a word's phones."""
        if not self.positions:
            return [self.names.index(b) for b in bases]
        at = ["S"] if len(bases) == 1 else ["B"] + ["I"] * (len(bases) - 2) + ["E"]
        return [self.names.index(f"{b}_{e}") for b, e in zip(bases, at)]

    def boundaries(self):
        words = {"B": "begin", "E": "end", "I": "internal", "S": "singleton"}
        return [(i, name, words[name[-1]] if "_" in name else "nonword") for i, name in enumerate(self.names) if i > 0]


def random_lang(rng, phones):
    """Makes L_disambig as Kaldi's scripts do (optional silence is phone 1, with probability 0.5), G with back-off arcs, and the pronunciations. The costs of G
    are random, so that no two paths cost the same."""
    num_words = rng.randint(2, 4)
    prons = [(w, [rng.choice(phones.bases) for _ in range(rng.randint(1, 3))]) for w in list(range(1, num_words + 1)) + [1]]
    if prons[-1] == prons[0]:
        prons.pop()
    hash0 = num_words + 1  # the word #0
    first_disambig = phones.number + 1
    half = float(np.float32(-np.log(0.5)))
    arcs = [(0, 1, 0, 0, half), (0, 2, 0, 0, half), (2, 3, 1, 0, 0.0), (3, 1, first_disambig + len(prons) + 1, 0, 0.0), (1, 1, first_disambig, hash0, 0.0)]
    state = 4
    for k, (word, bases) in enumerate(prons):
        labels = phones.spell(bases) + [first_disambig + 1 + k]
        at, out = 1, word
        for i, label in enumerate(labels):
            if i + 1 == len(labels):
                arcs += [(at, 1, label, out, half), (at, 2, label, out, half)]
            else:
                arcs.append((at, state, label, out, 0.0))
                at, out, state = state, 0, state + 1
    lexicon = fst_of(arcs, {1: 0.0})
    arcs = [(0, 1, hash0, 0, 0.25), (2, 1, hash0, 0, 0.5)]
    for w in range(1, num_words + 1):
        target = 2 if w == 1 else rng.choice([1, 2])  # a word leads to the same history from every state, as in n-gram models; otherwise #0 makes C o L o G hard to determinize
        arcs += [(0, target, w, w, rng.uniform(0.1, 3)), (1, target, w, w, rng.uniform(0.1, 3))]
        if rng.random() < 0.5:
            arcs.append((2, target, w, w, rng.uniform(0.1, 3)))
    grammar = fst_of(arcs, {2: 0.125, 1: 1.0})
    return lexicon, grammar, num_words, prons


def kaldi_graph(model, tree, lexicon, grammar, disambig, transition_scale, self_loop_scale):
    kaldifst.arcsort(lexicon, "olabel")
    kaldifst.arcsort(grammar, "ilabel")
    lg = kaldifst.compose(lexicon, grammar)
    clg, ilabels = kaldifst.compose_context(disambig, tree.context_width, tree.central_position, lg)
    kaldifst.arcsort(clg, "ilabel")
    config = khg.HTransducerConfig(transition_scale=transition_scale)
    h, disambig_ids = khg.get_h_transducer(ilabels, tree, model, config)
    kaldifst.arcsort(h, "olabel")
    plain = without(kaldifst.compose(h, clg), set(disambig_ids))
    return [khg.add_self_loops(self_loop_scale=self_loop_scale, disambig_syms=[], reorder=reorder, trans_model=model, ifst=plain.copy()) for reorder in (True, False)]


def decode(graph, columns, scores):
    """Returns (words, cost) of the best path, or None if there is none."""
    by_id = np.ascontiguousarray(scores[:, columns[1:]])
    decoder = khg.FasterDecoder(graph, khg.FasterDecoderOptions(beam=1e9))
    decoder.decode(khg.DecodableCtc(by_id))
    if not decoder.reached_final():
        return None
    _, path = decoder.get_best_path()
    _, _, words, weight = kaldifst.get_linear_symbol_sequence(path)
    return words, weight.value1 + weight.value2


# --- files --------------------------------------------------------------------------------------------------------------------


def write_lang(folder, seed, phones, num_words, prons, lexicon, grammar):
    lang = folder / "lang"
    (lang / "phones").mkdir(parents=True, exist_ok=True)
    names = phones.names + [f"#{k}" for k in range(len(prons) + 2)]
    words = ["<eps>"] + [f"word{i}" for i in range(1, num_words + 1)] + ["#0", "<s>", "</s>"]
    (lang / "phones.txt").write_text("".join(f"{p} {i}\n" for i, p in enumerate(names)))
    (lang / "words.txt").write_text("".join(f"{w} {i}\n" for i, w in enumerate(words)))
    by_number = seed % 4 >= 2
    ending = "int" if by_number else "txt"
    (lang / f"phones/optional_silence.{ending}").write_text("1\n" if by_number else "SIL\n")
    if phones.positions:
        lines = [f"{i if by_number else name} {where}\n" for i, name, where in phones.boundaries()]
        (lang / f"phones/word_boundary.{ending}").write_text("".join(lines))
    lexicon.write(str(lang / "L_disambig.fst"))
    grammar.write(str(lang / "G.fst"))
    (folder / "lexicon.txt").write_text("".join(f"word{w} {' '.join(bases)}\n" for w, bases in prons))


def make(seed, folder):
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    width, central = [(1, 0), (2, 1), (3, 1), (2, 0), (3, 0), (3, 2), (4, 1)][seed % 7]
    split = seed % 2 == 1 and not (width > 1 and central == 0)  # kaldi-hmm-gmm cannot enumerate the pdfs of such models
    phones = Phones(rng, seed % 3 == 0)
    num_phones = phones.number
    members = list(range(1, num_phones + 1))
    entries = [(members[1:], random_hmm(rng, split)), (members[:1], random_hmm(rng, split))]
    topology = khg.HmmTopology()
    topology.read(topology_text(entries, rng))
    num_classes = {p: 1 + max(max(f, l) for f, l, _ in states) for phones, states in entries for p in phones}
    tree = random_tree(rng, width, central, num_phones, num_classes)
    model = with_random_probs(khg.TransitionModel(tree, topology), rng)
    (folder / "final.mdl").write_text(str(model) + "<DIMENSION> 13 what follows is not read\n")
    (folder / "final.bin").write_bytes(model_binary(model, entries, split) + b"<Nnet3> \n\0\1\2 what follows is not read")
    tree.write(False, str(folder / "tree"))
    tree.write(True, str(folder / "tree.bin"))
    columns = np.array([-1] + [model.transition_id_to_pdf(i) for i in range(1, model.num_transition_ids + 1)])
    (folder / "columns").write_text("".join(f"{i} {columns[i]}\n" for i in range(1, len(columns))))
    places = [(i, model.transition_id_to_phone(i), int(model.is_self_loop(i)), int(model.is_final(i))) for i in range(1, len(columns))]
    (folder / "places").write_text("".join("%d %d %d %d\n" % place for place in places))
    lexicon, grammar, num_words, prons = random_lang(rng, phones)
    write_lang(folder, seed, phones, num_words, prons, lexicon, grammar)
    transition_scale, self_loop_scale = rng.choice([1.0, 0.5]), rng.choice([1.0, 0.1, 0.75])
    disambig = list(range(num_phones + 1, num_phones + len(prons) + 3))
    graphs = kaldi_graph(model, tree, lexicon, grammar, disambig, transition_scale, self_loop_scale)
    num_pdfs = model.num_pdfs
    numbers = np.random.default_rng(seed)
    with open(folder / "scores.ark", "wb") as ark:
        scores = [numbers.normal(0, 3, (rng.randint(6, 25), num_pdfs)).astype(np.float32) for _ in range(5)]
        ark.writelines(f"utt{u} ".encode() + b"\0BFM " + i32(matrix.shape[0]) + i32(matrix.shape[1]) + matrix.tobytes() for u, matrix in enumerate(scores))
    for graph, name, ref in zip(graphs, ("HCLG.fst", "HCLG.before.fst"), ("words.ref", "before.ref")):
        graph.write(str(folder / name))
        lines = []
        for u, matrix in enumerate(scores):
            best = decode(graph, columns, matrix)
            if best is not None:
                lines.append(f"utt{u} {best[1]:.4f} " + " ".join(f"word{w}" for w in best[0]))
        (folder / ref).write_text("\n".join(lines) + "\n")
    settings = {"num_phones": num_phones, "width": width, "central": central, "transition_scale": transition_scale, "self_loop_scale": self_loop_scale, "num_ids": len(columns) - 1, "num_pdfs": num_pdfs, "split": int(split)}
    (folder / "settings").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))


if __name__ == "__main__":
    make(int(sys.argv[1]), Path(sys.argv[2]))
