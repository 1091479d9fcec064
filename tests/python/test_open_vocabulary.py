"""Graphs of tokens with a language model over tokens: against an enumeration of all token sequences. Joining tokens to words."""

import itertools
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import CTC, WIDE

import warpfst as wf
from warpfst.joining import Joiner

NAMES = ["<blk>", "\u2581A", "\u2581B", "A", "B"]


def random_bigrams(rng, tokens):
    """ARPA text of a bigram model with few bigrams, so that back-off matters, and two functions that share no code with the library: the cost of b after a, and
    that cost by back-off even if there is a bigram."""
    words = [*tokens, "</s>"]
    unigrams = dict(zip(words, rng.dirichlet(np.ones(len(words)))))
    chosen = {(a, b): float(rng.uniform(0.05, 0.4)) for a in ("<s>", *tokens) for b in words if rng.random() < 0.35}
    weights = {a: float(rng.uniform(0.3, 1.0)) for a in ("<s>", *tokens)}
    lines = [f"\\data\\\nngram 1={len(words) + 1}\nngram 2={len(chosen)}\n\n\\1-grams:", f"-99\t<s>\t{math.log10(weights['<s>'])}"]
    lines += [f"{math.log10(p)}\t{word}" + (f"\t{math.log10(weights[word])}" if word in weights else "") for word, p in unigrams.items()]
    lines += ["\n\\2-grams:", *(f"{math.log10(p)}\t{a} {b}" for (a, b), p in chosen.items()), "\n\\end\\\n"]

    def backed_off(a, b):
        return -math.log(weights[a] * unigrams[b])

    def cost(a, b):
        return -math.log(chosen[a, b]) if (a, b) in chosen else backed_off(a, b)

    return "\n".join(lines), cost, backed_off


def best_alignments(scores, repeats_need_blank):
    """The score of the best alignment of every token sequence that has one, by trying all alignments."""
    best = {}
    for frames in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        # `cut` holds the sequences that this alignment can stand for, with their changes of token without a blank: a held token may also be read as the token
        # twice if that is allowed
        cut = {((), 0)}
        for before, now in zip((0, *frames), frames):
            if now == 0:
                continue
            new = {((*made, now), changes + (before != 0)) for made, changes in cut if before != now or not repeats_need_blank}
            cut = new | (cut if before == now else set())
        score = float(sum(scores[t][c] for t, c in enumerate(frames)))
        for made, changes in cut:
            best[made] = max(best.get(made, -math.inf), score - changes * 2**-10 * (not repeats_need_blank))
    return best


def test_a_space_is_written_as_a_word_in_a_token_lm(tmp_path, rng):
    """The token ' ' is <space> in an n-gram model and in a recurrent one: results are those of a token <space>."""
    (tmp_path / "lm.arpa").write_text(random_bigrams(rng, ["<space>", "a", "b"])[0], encoding="utf-8")
    (tmp_path / "text").write_text("a <space> b a\nb <space> a\n" * 20, encoding="utf-8")
    recurrent = wf.RnnLM.train(tmp_path / "text", tmp_path / "text", hidden=4, max_epochs=1)
    scores = [np.log(rng.dirichlet(np.full(4, 0.5), 12)).astype(np.float32) for _ in range(20)]
    for lm in (tmp_path / "lm.arpa", recurrent):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one, other = (wf.Decoder(wf.build_ctc_graph(["<blk>", space, "a", "b"]), lm=lm, join=True).decode(scores) for space in (" ", "<space>"))
        assert [(a.text, a.cost) for a in one] == [(b.text, b.cost) for b in other]
        assert any(" " in result.text for result in one)


@pytest.mark.parametrize("topology", ["correct", "compact"])
def test_best_sequence_is_the_enumerated_one(tmp_path, rng, topology):
    graph = wf.build_ctc_graph(NAMES, topology=topology)
    for case in range(4):
        text, cost, _ = random_bigrams(rng, NAMES[1:])
        (tmp_path / "lm.arpa").write_text(text, encoding="utf-8")
        scores = np.log(rng.dirichlet(np.ones(len(NAMES)) / 2, 4) + 1e-4).astype(np.float32)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        decoder = wf.Decoder(graph, lm=tmp_path / "lm.arpa", word_score=0.25, join=True, check_scores="off", **WIDE)
        result = decoder.decode(scores)[0]
        costs = {}
        for columns, score in best_alignments(scores, topology == "correct").items():
            names = [NAMES[c] for c in columns]
            costs[tuple(names)] = sum(map(cost, ("<s>", *names), (*names, "</s>"))) - score - 0.25 * len(columns)
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
    assert [text for text, _, _ in groups] == words.split() and joiner.text(names.split()) == words
    assert all(first <= last for _, first, last in groups)


def test_unknown_separator():
    with pytest.raises(wf.ArgumentError, match="has no token '/'"):
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
    wf.LM.convert(folder / "lm.arpa", folder / "lm.wlm")
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
        stream.advance(scores[t : t + 1])
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
    with pytest.raises(TypeError, match="token_lm: no lm, lexicon, words or graph besides it"):
        wf.from_huggingface(tmp_path, CTC / "lm3.arpa.gz", token_lm=tmp_path / "lm.arpa")


# --- unknown words ---


def parse(names):
    """The words of a token sequence, as tuples of tokens; None: it does not begin with the beginning of a word."""
    words = []
    for name in names:
        if name.startswith("\u2581"):
            words.append((name,))
        elif not words:
            return None
        else:
            words[-1] += (name,)
    return words


@pytest.mark.parametrize("topology", ["auto", "compact"])
@pytest.mark.parametrize("word_cost", [-3.0, 0.5])
def test_unknown_words_are_spelled(tmp_path, rng, word_cost, topology):
    """The best result is that of an enumeration of all token sequences, in which each word is the known one or an unknown one."""
    known, p_known, p_end = ("\u2581A", "B"), 0.5, 0.3
    lines = ["\\data\\\nngram 1=4\n\n\\1-grams:", "-99\t<s>", f"{math.log10(p_end)}\t</s>", "-1\t<unk>", f"{math.log10(p_known)}\tAB", "\n\\end\\\n"]
    (tmp_path / "lm.arpa").write_text("\n".join(lines))
    base = wf.build_ctc_graph(NAMES, {"AB": " ".join(known)}, tmp_path / "lm.arpa", classes="<unk>", topology=topology)
    found = set()
    for case in range(6):
        text, cost, backed_off = random_bigrams(rng, NAMES[1:])

        def spelling_cost(word, cost=cost, backed_off=backed_off):
            """Within a word, the search may back off although there is a bigram."""
            rest = sum(min(cost(a, b), backed_off(a, b)) for a, b in zip(word, word[1:]))
            return cost("<s>", word[0]) + rest + cost(word[-1], "</s>")

        (tmp_path / "spelling.arpa").write_text(text, encoding="utf-8")
        graph = base.add_spelling(tmp_path / "spelling.arpa", lm_scale=0.5, word_cost=word_cost)
        scores = np.log(rng.dirichlet(np.ones(len(NAMES)) / 2, 4) + 1e-4).astype(np.float32)
        costs = {}
        for columns, score in best_alignments(scores, topology == "auto").items():
            words = parse([NAMES[c] for c in columns])
            if words is None:
                continue
            # as a class, <unk> has the mean cost of the words: that of AB
            each = [min(0 if word == known else math.inf, 0.5 * spelling_cost(word) + word_cost) - math.log(p_known) for word in words]
            costs[tuple(words)] = -score + sum(each) - math.log(p_end)
        best = min(costs, key=costs.get)
        result = wf.Decoder(graph, join=True, check_scores="off", **WIDE).decode(scores)[0]
        assert result.cost == pytest.approx(costs[best], abs=0.01), case  # compact changes tokens at no cost
        assert result.text == " ".join("".join(word)[1:] for word in best), case
        found.update(word != known for word in best)
    assert found == {True, False} or word_cost < 0


def test_unknown_words_by_the_program(tmp_path):
    """mkgraph --unknown-lm makes the graph that Python makes."""
    arpa = ["\\data\\\nngram 1=5\n\n\\1-grams:", "-99\t<s>", "-1\t</s>", "-0.5\t\u2581B", "-0.5\tA", "-0.5\tB", "\n\\end\\\n"]
    (tmp_path / "spelling.arpa").write_text("\n".join(arpa), encoding="utf-8")
    (tmp_path / "lm.arpa").write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-99\t<s>\n-0.5\t</s>\n-1\t<unk>\n-0.3\tAB\n\n\\end\\\n")
    (tmp_path / "tokens.txt").write_text("".join(f"{name} {i}\n" for i, name in enumerate(NAMES)), encoding="utf-8")
    command = ["mkgraph", "ctc", "--tokens=tokens.txt", "--lm=lm.arpa", "--unknown-lm=spelling.arpa", "--unknown-cost=-2", "--unknown-lm-scale=0.5", "-o", "g.wfst", "-q"]
    subprocess.run([sys.executable, "-m", "warpfst", *command], check=True, cwd=tmp_path)
    graph = wf.Graph.load(tmp_path / "g.wfst")
    base = wf.build_ctc_graph(tmp_path / "tokens.txt", lm=tmp_path / "lm.arpa", classes="<unk>")
    made = base.add_spelling(tmp_path / "spelling.arpa", word_cost=-2, lm_scale=0.5)
    assert dict(graph.words) == dict(made.words) and {"\u2581B", "##A", "##B"} < set(dict(made.words)) and "\u2581A" not in dict(made.words)
    assert wf.fst.equal(graph.fst, made.fst)
    scores = np.full((4, len(NAMES)), -9.0, dtype=np.float32)
    scores[np.arange(4), [2, 3, 1, 4]] = -0.001  # _B A _A B
    for one in (graph, made):
        result = wf.Decoder(one, join=True).decode(scores)[0]
        assert [(word.text, word.start, word.end) for word in result.words] == [("BA", 0, 2), ("AB", 2, 4)]
        assert "times_estimated" not in result.flags
    with pytest.raises(wf.ArgumentError, match="no token of the graph that begins a word"):
        (tmp_path / "spelling.arpa").write_text("\n".join(line for line in arpa if "\u2581" not in line).replace("1=5", "1=4"), encoding="utf-8")
        base.add_spelling(tmp_path / "spelling.arpa")


# --- all ways to cut words ---


def test_all_ways_to_cut(rng):
    tokens = ["<blk>", *"ab", "aa", "ab", "aba", "bb"]

    def ways(text):
        return [(piece, *rest) for piece in tokens[1:] if text.startswith(piece) for rest in (ways(text[len(piece) :]) if text != piece else [()])]

    words = sorted({"".join(rng.choice(list("ab"), size=int(rng.integers(1, 9)))) for _ in range(12)}) + ["ab" * 9]
    lexicon = wf.Lexicon.spell(["<eps>", *words], tokens, spelling="all")
    for word in words:
        found = [tuple(tokens[label - 1] for label in labels) for text, _, labels in lexicon if text == word]
        wanted = ways(word)
        assert len(found) == len(set(found)) == min(len(wanted), 100) and set(found) <= set(wanted)
        assert max(map(len, found)) == sorted(map(len, wanted))[len(found) - 1]
    assert wf.Lexicon.spell(["<eps>", "ac", "a"], tokens, spelling="all", unknown="skip").num_skipped == 1


# --- languages without spaces ---


def segmentations(text, words):
    return [()] if not text else [(word, *rest) for word in words if text.startswith(word) for rest in segmentations(text[len(word) :], words)]


def test_the_search_cuts_text_without_spaces_into_words(tmp_path, rng):
    """Tokens are characters, the language model is one of words: the best result is that of an enumeration of all texts and all ways to cut them."""
    characters = ["\u7814", "\u7a76", "\u751f"]
    words = ["\u7814\u7a76", "\u7814\u7a76\u751f", "\u751f", "\u7a76\u751f", "\u7814"]
    ambiguous = 0
    for case in range(6):
        text, cost, _ = random_bigrams(rng, words)
        (tmp_path / "lm.arpa").write_text(text, encoding="utf-8")
        graph = wf.build_ctc_graph(["<blk>", *characters], lm=tmp_path / "lm.arpa", backoff="failure")
        said = np.eye(4)[[1, 2, 3, 0, int(rng.integers(1, 4))]]
        scores = np.log(0.9 * said + 0.1 * rng.dirichlet(np.ones(4), 5)).astype(np.float32)
        result = wf.Decoder(graph, check_scores="off", **WIDE).decode(scores)[0]
        costs = {}
        for columns, score in best_alignments(scores, False).items():
            for cut in segmentations("".join(characters[c - 1] for c in columns), words):
                costs[cut] = min(costs.get(cut, math.inf), -score + sum(map(cost, ("<s>", *cut), (*cut, "</s>"))))
        best = min(costs, key=costs.get)
        assert result.text == " ".join(best), case
        assert result.cost == pytest.approx(costs[best], abs=0.01), case
        ambiguous += len(segmentations("".join(best), words)) > 1
    assert ambiguous >= 3


@pytest.mark.parametrize("topology", ["auto", "compact"])
def test_many_tokens_within_a_beam(tmp_path, rng, topology):
    """With more tokens than an enumeration can try: the best cost is that of dynamic programming over (last token, whether it is held). With compact the graph has a
    state with so many arcs that the search sorts them (src/search/frame/hub.c)."""
    names = ["<blk>", *(f"\u2581{i}" for i in range(60))]
    graph = wf.build_ctc_graph(names, topology=topology)
    for min_active in (0, 20, 300):
        text, cost, _ = random_bigrams(rng, names[1:])
        (tmp_path / "lm.arpa").write_text(text, encoding="utf-8")
        scores = np.log(rng.dirichlet(np.full(len(names), 0.05), 30) + 1e-6).astype(np.float32)
        step = np.array([[cost(a, b) for b in names[1:]] for a in names[1:]])
        # free[a]: cost of having ended with a, held[a]: of being in a; change[a, b]: what the graph takes for a change of token without a blank
        free = held = np.full(len(names) - 1, math.inf)
        begin, change = 0.0, np.full(step.shape, 2**-10) if topology == "compact" else np.where(np.eye(len(step)), math.inf, 0)
        for frame in -scores.astype(np.float64):
            left = np.minimum(free[:, None], held[:, None] + change)
            entered = np.minimum((left + step).min(axis=0), begin + np.array([cost("<s>", b) for b in names[1:]]))
            free, held, begin = np.minimum(free, held) + frame[0], np.minimum(held, entered) + frame[1:], begin + frame[0]
        ends = np.array([cost(a, "</s>") for a in names[1:]])
        best = min((np.minimum(free, held) + ends).min(), begin + cost("<s>", "</s>"))
        options = {"beam": 25, "min_active": min_active, "max_active": 100000, "max_tokens": 100000, "check_scores": "off"}
        result = wf.Decoder(graph, lm=tmp_path / "lm.arpa", **options).decode(scores)[0]
        assert result.cost == pytest.approx(best, abs=1e-3)
