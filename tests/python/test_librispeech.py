"""examples/librispeech against a server on this machine with files of the same layout: OpenSLR's archives, language model and lexicon, and the Hub's parquet files.

The recordings are those of examples/cards, the models those of examples/ctc (librispeech_files.py). Searches that are not installed are skipped.
"""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import CTC
from librispeech_files import (
    CARDS,
    EXAMPLE,
    acoustic,
    archive,
    bigrams,
    card_texts,
    errors,
    fetch,
    flac,
    put,
    put_leaderboard,
    searches,
    soundfile,
    speech_sets,
    texts_in,
    tune,
)

import warpfst as wf

# --- the program ---

pytest_plugins = ["librispeech_files"]  # its fixtures


def test_librispeech_with_a_model_of_phones(run, tmp_path):
    """The words are those of a graph made here by hand of the same model and words; errors are counted anew."""
    out, report = run("--sets", "test-clean", "--search", "greedy", "--search", "warpfst:acoustic_scale=0.7", "--batch", "2", "--block-minutes", "0.1")
    (one,) = report["sets"]
    (row,) = one["rows"]
    assert one["utterances"] == 5 and abs(one["audio_s"] - sum(soundfile.info(CARDS / f"card{i}.wav").duration for i in range(1, 6))) < 0.01
    assert report["left_out"] == {"greedy": "the model's tokens are phones"} and "greedy: left out: the model's tokens are phones" in out
    references, found = texts_in(tmp_path / "out/test-clean/ref.txt"), texts_in(tmp_path / "out/test-clean/warpfst_acoustic_scale=0.7.txt")
    assert sorted(references.values()) == sorted(text.upper() for text in card_texts().values()) and set(found) == set(references)
    assert row["errors"] == sum(errors(text.split(), found[key].split()) for key, text in references.items())
    assert row["words"] == sum(len(text.split()) for text in references.values()) and f"| {row['wer']:.2f}% |" in out
    assert row["errors"] < row["words"] // 2 + 1 and row["rtfx"] < row["rtfx_search"]

    from warpfst.transcribe.models import CtcModel

    model = CtcModel(CTC, "cpu", 1)
    lexicon = {}
    for word, *phones in (line.upper().split() for line in (CARDS / "lexicon.txt").read_text().splitlines()):
        lexicon.setdefault(word, []).append(phones)
    lm = put(tmp_path, "uniform.arpa", bigrams(list(lexicon)))
    decoder = wf.Decoder(wf.build_ctc_graph(CTC / "tokens_phone.txt", lexicon, lm), acoustic_scale=0.7)
    for i, key in enumerate(("61-70968-0000", "61-70968-0001", "61-70968-0002", "121-121726-0000", "121-121726-0001"), 1):
        samples = soundfile.read(CARDS / f"card{i}.wav", dtype="float32")[0]
        assert found[key] == decoder.decode(*model.scores([samples]))[0].text


def test_librispeech_with_a_model_of_characters(run, characters, tmp_path):
    """Greedy texts are those of an argmax written here; with the language model, words are those of the lexicon."""
    out, report = run("--sets", "test-clean", "--search", "greedy", "--search", "warpfst", "--batch", "1", model=characters)
    greedy, ours = report["sets"][0]["rows"]
    assert ours["errors"] < greedy["errors"] and "model in the graph" in out
    from warpfst.transcribe.models import open_model

    tokens = [line.split()[0] for line in (CTC / "tokens_char.txt").read_text().splitlines()]
    scores = open_model(characters, "cpu", 1).scores([soundfile.read(CARDS / "card1.wav", dtype="float32")[0]])[0][0]
    best = [int(column) for column in scores.argmax(axis=1)]
    letters = [tokens[column] for i, column in enumerate(best) if column != 0 and (i == 0 or best[i - 1] != column)]
    assert texts_in(tmp_path / "out/test-clean/greedy.txt")["61-70968-0000"] == " ".join("".join(letters).replace("\u2581", " ").split())
    known = set(searches.words_of(tmp_path / "cache/librispeech-lexicon.txt"))
    words = " ".join(texts_in(tmp_path / "out/test-clean/warpfst.txt").values()).split()
    assert words and set(words) <= known


def test_a_large_language_model_is_read_while_decoding(run, monkeypatch):
    small = run("--sets", "test-clean", "--search", "warpfst")[1]
    monkeypatch.setattr(searches, "_MAX_GRAPH_BYTES", 10)
    out, large = run("--sets", "test-clean", "--search", "warpfst")
    assert "model read while decoding" in out
    assert [row["errors"] for row in large["sets"][0]["rows"]] == [row["errors"] for row in small["sets"][0]["rows"]]


def test_no_language_model(run, characters):
    """Without a model there is no download but the set, and the best path is nearly the greedy one."""
    _, report = run("--sets", "test-clean", "--lm", "none", "--search", "greedy", "--search", "warpfst", model=characters)
    greedy, ours = report["sets"][0]["rows"]
    assert abs(greedy["errors"] - ours["errors"]) <= 1


def test_leaderboard(run, server, tmp_path):
    """Two parquet files, checked by the Hub's SHA-256; the gap is not scored; plain texts have no punctuation."""
    put_leaderboard(server.folder)
    _, report = run("--sets", "esb/ami", "--search", "warpfst:acoustic_scale=0.7", "--normalizer", "plain")
    references = texts_in(tmp_path / "out/esb-ami/ref.txt")
    assert references == {card: f"UM {text.upper()}" for card, text in card_texts().items()}
    assert report["sets"][0]["utterances"] == 5 and report["sets"][0]["rows"][0]["deletions"] >= 5
    with pytest.raises(fetch.DownloadError, match="no files of the split 'validation' in ami; there are: test"):
        run("--sets", "esb/ami/validation")


def test_leaderboard_with_whispers_normalizer(run, server, tmp_path):
    pytest.importorskip("transformers")
    put_leaderboard(server.folder)
    run("--sets", "esb/ami", "--search", "warpfst:acoustic_scale=0.7")
    references = texts_in(tmp_path / "out/esb-ami/ref.txt")
    assert references["card1"] == "10 of clubs" and "um" not in " ".join(references.values())


def test_the_leaderboard_without_transformers(run, server, monkeypatch):
    put_leaderboard(server.folder)
    for name in ("transformers", "transformers.models.whisper.english_normalizer"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit, match="pip install transformers, or give --normalizer plain"):
        run("--sets", "esb/ami", "--search", "warpfst")


def test_the_command(server, tmp_path):
    """As users call it. The second run downloads nothing."""
    command = [sys.executable, EXAMPLE / "recipe.py", "--model", CTC, "--sets", "test-clean", "--limit", "2", "--base-url", f"{server.url}/resources/", "--cache", tmp_path / "cache"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    assert "test-clean: 2 utterances" in run.stdout and "| warpfst |" in run.stdout and "100% of" in run.stderr
    if not searches._installed("flashlight.lib.text"):
        assert "flashlight: left out: not installed: flashlight.lib.text" in run.stdout
    before = len(server.requests)
    again = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert len(server.requests) == before and again.returncode == 0 and not again.stderr.count("MB/s")
    wrong = subprocess.run([*command[:5], "test-cleen", *command[8:]], capture_output=True, text=True, timeout=100)
    assert wrong.returncode == 1 and "no set 'test-cleen': expected test-clean" in wrong.stderr
    other = subprocess.run([*command[:5], "test-other", *command[8:]], capture_output=True, text=True, timeout=100)
    assert other.returncode == 1 and re.search(r"download failed: http\S+/12/test-other.tar.gz: .*404.*there is no such file", other.stderr) and "Traceback" not in other.stderr


# --- texts, words, peers ---


def test_plain_text():
    assert speech_sets.plain_text("It\u2019s a caf\u00e9, well-known: 'TIS so.") == "IT'S A CAFE WELL KNOWN 'TIS SO"
    assert speech_sets.plain_text("' -- '") == ""


def tokens_of(names, **known):
    return wf.integrations.ModelTokens(names, 0, "a model", **known)


def test_words_in_another_case_than_the_tokens(tmp_path):
    lm = put(tmp_path, "lm.arpa", bigrams(["IT'S", "A", "NA\u00cfVE"]))
    vocabulary = searches.Vocabulary(tokens_of(["<pad>", "|", *"aist'", "<unk>"], separator="|"), lm, None, tmp_path)
    assert vocabulary.spellings == {"IT'S": [list("it's")], "A": [["a"]]} and vocabulary.num_missing == 1 and vocabulary.case() is str.upper
    assert searches.Pyctcdecode._labels(vocabulary) == ["", " ", *"AIST'", "<unk>"]
    both = searches.Vocabulary(tokens_of(["<pad>", "|", *"aistAIST'"], separator="|"), put(tmp_path, "b.arpa", bigrams(["it's"])), None, tmp_path)
    assert both.case() is str
    phones = put(tmp_path, "phones.txt", "A  AH0\nA  EY1\nA  AH1\n")
    assert searches.pronunciations(phones, tokens_of(["<pad>", "AH", "EY"])) == {"A": [["AH"], ["EY"]]}
    assert searches.pronunciations(phones, tokens_of(["<pad>", "AH0", "EY1", "AH1"])) == {"A": [["AH0"], ["EY1"], ["AH1"]]}
    assert searches.pronunciations(phones, tokens_of(["<pad>", *"AHEY"])) is None


def test_wrong_specifications(run):
    for spec, message in (("kaldi", "no search 'kaldi': expected greedy"), ("warpfst:baem=3", "baem"), ("warpfst:beam=wide", "beam")):
        with pytest.raises(SystemExit, match=message):
            run("--sets", "test-clean", "--search", spec)


SPELLINGS = {
    "characters with a delimiter": (["<pad>", "<s>", "</s>", "<unk>", "|", *"etaonihsrdlumwcfgypbvk'xjqz"], "|"),
    "pieces": (["<blk>", "<unk>", "\u2581", "\u2581it's", "\u2581a", "\u2581nea", *"etaonihsrdlumwcfgypbvk'xjqz"], None),
    "characters after a mark": (["<blk>", "\u2581", *"etaonihsrdlumwcfgypbvk'xjqz"], None),
}


@pytest.mark.parametrize("names,separator", SPELLINGS.values(), ids=SPELLINGS)
def test_searches_of_a_model_in_lower_case(kind, names, separator, tmp_path, rng):
    """Scores that spell words of a language model in upper case give these words, with each kind of tokens."""
    tokens = tokens_of(names, separator=separator)
    lm = put(tmp_path, "lm.arpa", bigrams(["IT'S", "A", "NEAR", "MISS", "AN"]))
    vocabulary = searches.Vocabulary(tokens, lm, None, tmp_path)
    words = ["IT'S", "A", "NEAR", "MISS", "A"]
    columns = []
    for i, word in enumerate(words):
        columns += ([names.index(separator)] if i > 0 and separator is not None else []) + [names.index(piece) for piece in vocabulary.spellings[word][0]]
    held = 1 if kind == "flashlight" and separator is None else 2  # flashlight-text ends a word in the first frame of its last token
    frames = [0, *(column for one in columns for column in [one] * held + [0]), *([names.index(separator)] if separator else [])]
    logits = rng.standard_normal((len(frames), len(names))).astype(np.float32)
    logits[range(len(frames)), frames] += 12
    scores = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    greedy = searches.open_search("greedy", vocabulary, {})
    assert greedy.decode([scores]) == [" ".join(words).lower()]
    search = searches.open_search(kind, vocabulary, {})
    assert search.decode([scores, scores]) == [" ".join(words)] * 2
    search.set_weights(0.5, -0.2)
    assert search.decode([scores]) == [" ".join(words)] and search.has_weights


def test_weights_mean_the_same_for_each_search(kind, tmp_path):
    """Two words of the same sound: the weight of the language model at which the likelier one wins is computed here; a word score decides between one word and two."""
    names = ["<pad>", "|", *"abc"]
    text = bigrams(["AB", "AC", "A", "B"]).splitlines()
    rare = next(i for i, line in enumerate(text) if line.endswith("\tAC\t0"))
    pair = next(i for i, line in enumerate(text) if line.endswith("\t<s> AC"))
    for i in (rare, pair):
        text[i] = "-3.0" + text[i][text[i].index("\t") :]
    vocabulary = searches.Vocabulary(tokens_of(names, separator="|"), put(tmp_path, "lm.arpa", "\n".join(text)), None, tmp_path)
    frames = np.full((4, len(names)), 1e-6)
    frames[0, 2], frames[1, 3], frames[1, 4], frames[2, 0], frames[3, 1] = 1, 0.1, 0.9, 1, 1
    scores = np.log(frames / frames.sum(axis=1, keepdims=True)).astype(np.float32)
    search = searches.open_search(kind, vocabulary, {})
    turning = math.log(0.9 / 0.1) / (math.log(10) * (3.0 - math.log10(5)))  # where the scores' difference equals the model's
    for factor, wanted in ((0.9, "AC"), (1.1, "AB")):
        search.set_weights(turning * factor, 0.0)
        assert search.decode([scores]) == [wanted]


def test_tuning(run, server, characters, kind, tmp_path):
    """The weights are the best of those tried, on the set that is given, and are used for the test set."""
    (server.folder / "resources/12/dev-clean.tar.gz").write_bytes(archive({"LibriSpeech/dev-clean/1/2/1-2-0000.flac": flac(CARDS / "card1.wav"), "LibriSpeech/dev-clean/1/2/1-2.trans.txt": b"1-2-0000 TEN OF CLUBS\n"}))
    out, report = run("--sets", "test-clean", "--tune", "dev-clean", "--search", "greedy", "--search", kind, model=characters)
    best = report["tuned"]["weights"][kind]
    assert list(report["tuned"]["weights"]) == [kind] and report["tuned"]["utterances"] == 1
    assert f"lm weight {best['lm_weight']:g}, word score {best['word_score']:g} |" in out
    model = acoustic.open_acoustic(str(characters), "auto", "cpu", False, 1)
    vocabulary = searches.Vocabulary(model.tokens, tmp_path / "cache/3-gram.pruned.1e-7.arpa.gz", None, tmp_path)
    scores = model.scores([soundfile.read(CARDS / "card1.wav", dtype="float32")[0]])
    search, tried = searches.open_search(kind, vocabulary, {}), []
    for weight in tune.LM_WEIGHTS:
        search.set_weights(weight, 0.0)
        tried.append(errors(["TEN", "OF", "CLUBS"], search.decode(scores)[0].split()))
    assert best["percent"] <= 100 * min(tried) / 3 + 1e-6


def test_searches_of_real_speech(run, characters, kind):
    """With the language model, each has fewer errors than greedy on the same scores."""
    _, report = run("--sets", "test-clean", "--search", "greedy", "--search", kind, model=characters)
    assert not report["left_out"]
    greedy, peer = report["sets"][0]["rows"]
    assert peer["errors"] < greedy["errors"]
