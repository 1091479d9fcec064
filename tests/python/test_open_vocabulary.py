"""Graphs of tokens with a language model over tokens: against an enumeration of all token sequences. Joining tokens to words."""

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from conftest import CTC, WIDE

import warpfst as wf
from warpfst.joining import Joiner

NAMES = ["<blk>", "\u2581A", "\u2581B", "A", "B"]


def random_bigrams(rng, tokens):
    """ARPA text of a bigram model with few bigrams, so that back-off matters, and ln P of token sequences by a function that shares no code with the library."""
    words = [*tokens, "</s>"]
    unigrams = dict(zip(words, rng.dirichlet(np.ones(len(words)))))
    chosen = {(a, b): float(rng.uniform(0.05, 0.4)) for a in ("<s>", *tokens) for b in words if rng.random() < 0.3}
    weights = {a: float(rng.uniform(0.3, 1.0)) for a in ("<s>", *tokens)}
    lines = [f"\\data\\\nngram 1={len(words) + 1}\nngram 2={len(chosen)}\n\n\\1-grams:", f"-99\t<s>\t{math.log10(weights['<s>'])}"]
    lines += [f"{math.log10(p)}\t{word}" + (f"\t{math.log10(weights[word])}" if word in weights else "") for word, p in unigrams.items()]
    lines += ["\n\\2-grams:", *(f"{math.log10(p)}\t{a} {b}" for (a, b), p in chosen.items()), "\n\\end\\\n"]

    def log_prob(sequence):
            pairs = zip(("<s>", *sequence), (*sequence, "</s>"))
        return sum(math.log(chosen[a, b]) if (a, b) in chosen else math.log(weights[a] * unigrams[b]) for a, b in pairs)

    return "\n".join(lines), log_prob


def best_alignment(scores, columns, repeats_need_blank):
    """(score, token changes without a blank) of the best alignment of a token sequence, by trying all of them."""
    best = (-math.inf, 0)
    for frames in itertools.product((0, *sorted(set(columns))), repeat=len(scores)):
        # `cut` holds the sequences that this alignment can stand for: a held token may also be read as the token twice if that is allowed
        cut = {((), 0)}
        for before, now in zip((0, *frames), frames):
            if now == 0:
                continue
            new = {((*made, now), changes + (before != 0)) for made, changes in cut if before != now or not repeats_need_blank}
            cut = new | (cut if before == now else set())
        score = float(sum(scores[t][c] for t, c in enumerate(frames)))
        for made, changes in cut:
            if made == tuple(columns):
                best = max(best, (score - changes * 2**-10 * (not repeats_need_blank), changes))
    return best[0]


@pytest.mark.parametrize("topology", ["correct", "compact"])
def test_best_sequence_is_the_enumerated_one(tmp_path, rng, topology):
    graph = wf.build_ctc_graph(NAMES, topology=topology)
    for case in range(4):
        text, log_prob = random_bigrams(rng, NAMES[1:])
        (tmp_path / "lm.arpa").write_text(text, encoding="utf-8")
        scores = np.log(rng.dirichlet(np.ones(len(NAMES)) / 2, 4) + 1e-4).astype(np.float32)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        decoder = wf.Decoder(graph, lm=tmp_path / "lm.arpa", word_score=0.25, join=True, check_scores="off", **WIDE)
        result = decoder.decode(scores)[0]
        costs = {}
        for size in range(len(scores) + 1):
            for columns in itertools.product(range(1, len(NAMES)), repeat=size):
                names = [NAMES[c] for c in columns]
                costs[tuple(names)] = -best_alignment(scores, columns, topology == "correct") - log_prob(names) - 0.25 * size
        best = min(costs, key=costs.get)
        assert result.cost == pytest.approx(costs[best], abs=1e-3), case
        assert result.text == " ".join("".join(best).replace("\u2581", " ").split()), case


@pytest.mark.parametrize(
    ("tokens", "separator", "names", "words"),
    [
        ("\u2581 \u2581HE LL O <unk>", None, "\u2581HE LL <unk> O \u2581 \u2581HE O", "HELLO HEO"),
        ("\u2581 A B", None, "\u2581 A B \u2581 \u2581 B", "AB B"),
        ("| A B [PAD]", None, "A B | B [PAD] | | A |", "AB B A"),
        ("<space> A B", None, "<space> A <space> B A", "A BA"),
        ("/ A B", "/", "A / B B", "A BB"),
        ("HE ##LLO O ##O", None, "HE ##LLO O ##O ##O", "HELLO OOO"),
        ("\u2581HE LL HELLO ##LL", None, "HELLO \u2581HE ##LL ##LL HELLO", "HELLO HELLLL HELLO"),
        ("\u4eca \u5929", None, "\u4eca \u5929 \u4eca", "\u4eca\u5929\u4eca"),
    ],
)
def test_joining(tokens, separator, names, words):
    joiner = Joiner(wf.Symbols(["<eps>", *tokens.split()]), separator)
    groups = joiner.groups(names.split())
    assert [text for text, _, _ in groups] == words.split()
    assert all(first <= last for _, first, last in groups)


def test_unknown_separator():
    with pytest.raises(wf.ArgumentError, match="'/' is not a token of the graph"):
        wf.Decoder(wf.build_ctc_graph(NAMES), join="/")


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Scores of two utterances of pieces, and a model over pieces that prefers other words than the scores alone."""
    folder = tmp_path_factory.mktemp("spoken")
    names = ["<blk>", "\u2581HE", "LL", "O", "LO", "\u2581", "W"]
    lines = ["\\data\\\nngram 1=9\nngram 2=1\n\n\\1-grams:", "-99\t<s>\t0", "-1\t</s>", "-1\t<unk>"]
    lines += [f"-1\t{name}\t0" for name in names[1:]] + ["\n\\2-grams:", "-0.1\tLL O", "\n\\end\\\n"]
    (folder / "lm.arpa").write_text("\n".join(lines), encoding="utf-8")
    (folder / "tokens.txt").write_text("".join(f"{name} {i}\n" for i, name in enumerate(names)), encoding="utf-8")
    (folder / "scores").mkdir()
    for key, columns in {"u1": [1, 2, 4], "u2": [5, 6, 3, 1, 2, 4]}.items():
        scores = np.full((2 * len(columns), len(names)), -8.0, dtype=np.float32)
        scores[np.arange(0, len(scores), 2), columns] = -0.7
        scores[np.arange(0, len(scores), 2)[np.asarray(columns) == 4], 3] = -0.9  # LO, nearly O
        scores[1::2, 0] = -0.01
        np.save(folder / "scores" / f"{key}.npy", scores)
    wf.LargeLM.build(folder / "lm.arpa", folder / "lm.wlm")
    return folder


def test_the_program_joins_like_python(spoken, tmp_path):
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "warpfst", *arguments], check=True, capture_output=True, text=True, cwd=spoken).stdout

    graph = tmp_path / "tokens.wfst"
    run("mkgraph", "ctc", "--tokens=tokens.txt", "-o", str(graph), "-q")
    lines = run("decode", str(graph), "scores", "--lm=lm.wlm", "--join", "--format=json", "--frame-shift=1", "--confidence", "--nbest=2").splitlines()
    decoder = wf.Decoder(graph, lm=spoken / "lm.wlm", join=True, lattice_beam=8)
    keys = ["u1", "u2"]
    results = decoder.decode([np.load(spoken / "scores" / f"{key}.npy") for key in keys])
    assert [result.text for result in results] == ["HELLO", "WO HELLO"]  # without the model: HELLLO
    for key, line, result in zip(keys, map(json.loads, lines), results):
        assert (line["key"], line["text"]) == (key, result.text)
        wanted = [(word.text, word.start, word.end, round(word.confidence, 3)) for word in result.words]
        assert [(word["word"], word["start"], word["end"], round(word["confidence"], 3)) for word in line["words"]] == wanted
        assert [one["text"] for one in line["nbest"]] == [one.text for one in result.nbest(2)]


def test_streams_join(spoken):
    decoder = wf.Decoder(wf.build_ctc_graph(spoken / "tokens.txt"), lm=spoken / "lm.wlm", join=True)
    scores = np.load(spoken / "scores" / "u2.npy")
    stream = decoder.stream()
    for t in range(len(scores)):
        stream.accept(scores[t : t + 1])
        partial = stream.partial()
        assert partial.num_stable <= len(partial.words)
    assert partial.text == "WO HELLO"
    assert stream.finish().words == decoder.decode(scores)[0].words


def test_token_lm_of_a_model(tmp_path):
    """from_huggingface(token_lm=): letters, and | between words."""
    names = ["<pad>", "<s>", "</s>", "<unk>", "|", "A", "B"]
    (tmp_path / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    tokens = wf.integrations.huggingface_tokens(tmp_path)
    assert tokens.spell_text("AB ba") == ["A", "B", "|", "B", "A"]
    with pytest.raises(wf.ArgumentError, match="'AC' cannot be spelled"):
        tokens.spell_text("AC")
    lines = ["\\data\\\nngram 1=5\n\n\\1-grams:", "-99\t<s>", "-1\t</s>", "-0.5\t|", "-0.5\tA", "-0.5\tB", "\n\\end\\\n"]
    (tmp_path / "lm.arpa").write_text("\n".join(lines))
    scores = np.full((5, len(names)), -9.0, dtype=np.float32)
    scores[np.arange(5), [5, 6, 4, 6, 5]] = -0.001
    decoder = wf.from_huggingface(tmp_path, token_lm=tmp_path / "lm.arpa")
    result = decoder.decode(scores)[0]
    assert result.text == "AB BA"
    assert [(word.start, word.end) for word in result.words] == [(0, 2), (3, 5)]
    with pytest.raises(TypeError, match="token_lm: no lm, lexicon or words besides it"):
        wf.from_huggingface(tmp_path, CTC / "lm3.arpa.gz", token_lm=tmp_path / "lm.arpa")
