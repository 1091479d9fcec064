"""examples/librispeech against a server on this machine with files of the same layout: OpenSLR's archives, language model and lexicon, and the Hub's parquet files.

The recordings are those of examples/cards, the models those of examples/ctc. Tests with transformers, pyctcdecode and flashlight-text are skipped where these are not installed.
"""

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import math
import re
import subprocess
import sys
import tarfile
import threading
import types

import numpy as np
import pytest
from conftest import CTC, ROOT

import warpfst as wf

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("onnxruntime")
EXAMPLE = ROOT / "examples" / "librispeech"
CARDS = ROOT / "examples" / "cards"
sys.path.insert(0, str(EXAMPLE))
import acoustic
import fetch
import recipe
import searches
import speech_sets
import tune

DATASET = "hf-audio/esb-datasets-test-only-sorted"


# --- the stand-in ---


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder, with ranges. `faults`: path -> what the next answers do: a status code, or a number of bytes after which the connection breaks ("cut", N)."""

    daemon_threads = True

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.faults, self.requests = folder, {}, []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.partition("?")[0]
        self.server.requests.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
        faults = self.server.faults.get(path, [])
        fault = faults.pop(0) if faults else None
        file = self.server.folder / path.lstrip("/")
        if path.startswith("/api/"):
            file = file / "index.json"
        if isinstance(fault, int) or not file.is_file():
            self.send_error(fault or 404)
            return
        content = file.read_bytes()
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        begin = 0
        if "Range" in self.headers and self.headers.get("If-Range") in (None, tag):
            begin = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])
            if begin >= len(content):
                self.send_error(416)
                return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.send_header("ETag", tag)
        self.end_headers()
        end = begin + fault[1] if fault else len(content)
        self.wfile.write(content[begin:end])
        if end < len(content):
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(folder):
    server = Server(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def put(folder, path, content):
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def flac(wav):
    samples, rate = soundfile.read(wav, dtype="int16")
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC")
    return file.getvalue()


def archive(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return made.getvalue()


def card_texts():
    return dict(line.split(maxsplit=1) for line in (CARDS / "ref").read_text().splitlines())


def bigrams(words):
    """An ARPA model that gives all words the same probability. It has bigrams because KenLM refuses models without."""
    cost = f"{-math.log10(len(words) + 1):.6f}"
    ones = ["-99\t<s>\t0", f"{cost}\t</s>", "-99\t<unk>\t0", *(f"{cost}\t{word}\t0" for word in words)]
    twos = [f"{cost}\t<s> {word}" for word in words]
    return "\n".join(["\\data\\", f"ngram 1={len(ones)}", f"ngram 2={len(twos)}", "", "\\1-grams:", *ones, "", "\\2-grams:", *twos, "", "\\end\\", ""])


def put_librispeech(folder):
    """Two chapters of two speakers, as in LibriSpeech; the lexicon in upper case, with stress."""
    texts, files = card_texts(), {"LibriSpeech/README.TXT": b"a file beside the set"}
    for chapter, cards in (("61/70968", ("card1", "card2", "card3")), ("121/121726", ("card4", "card5"))):
        keys = {card: f"{chapter.replace('/', '-')}-{number:04d}" for number, card in enumerate(cards)}
        for card, key in keys.items():
            files[f"LibriSpeech/test-clean/{chapter}/{key}.flac"] = flac(CARDS / f"{card}.wav")
        lines = "".join(f"{key} {texts[card].upper()}\n" for card, key in keys.items())
        files[f"LibriSpeech/test-clean/{chapter}/{chapter.replace('/', '-')}.trans.txt"] = lines.encode()
    content = archive(files)
    put(folder, "resources/12/test-clean.tar.gz", content)
    put(folder, "resources/12/md5sum.txt", f"{hashlib.md5(content).hexdigest()}  test-clean.tar.gz\n{32 * '0'}  test-other.tar.gz\n")
    lexicon = [line.split() for line in (CARDS / "lexicon.txt").read_text().splitlines()]
    stressed = [(word.upper(), [phone + "1" * (phone[0] in "AEIOU") for phone in phones]) for word, *phones in lexicon]
    put(folder, "resources/11/librispeech-lexicon.txt", "".join(f"{word}\t{' '.join(phones)}\n" for word, phones in stressed))
    words = list(dict.fromkeys(word for word, _ in stressed))
    put(folder, "resources/11/3-gram.pruned.1e-7.arpa.gz", gzip.compress(bigrams(words).encode()))


def put_leaderboard(folder):
    """Two parquet files of one set: references with punctuation and British spelling, one that is not scored, and the list of the files."""
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    rows = [{"audio": {"bytes": flac(CARDS / f"{card}.wav"), "path": f"{card}.flac"}, "dataset": "ami", "text": f"Um, {text.title()}.", "id": card} for card, text in card_texts().items()]
    rows.append({**rows[0], "text": "ignore time segment in scoring", "id": "gap"})
    entries = []
    for number, part in enumerate((rows[:2], rows[2:])):
        name = f"ami/test-{number:05d}-of-00002.parquet"
        path = put(folder, f"datasets/{DATASET}/resolve/main/{name}", b"")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), path)
        entries.append({"type": "file", "path": name, "size": path.stat().st_size, "oid": 40 * "0", "lfs": {"oid": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size}})
    put(folder, f"api/datasets/{DATASET}/tree/main/ami/index.json", json.dumps([{"type": "directory", "path": "ami/x"}, *entries]))
    put(folder, "openai/whisper-tiny/resolve/main/normalizer.json", json.dumps({"colour": "color"}))


@pytest.fixture
def server(tmp_path):
    put_librispeech(tmp_path / "served")
    with serving(tmp_path / "served") as running:
        yield running


@pytest.fixture
def run(server, tmp_path, capsys):
    """run(*arguments) -> (standard output, report) of recipe.main."""

    def run_recipe(*given, model=CTC):
        report = tmp_path / "report.json"
        urls = ["--base-url", f"{server.url}/resources", "--hub-url", server.url, "--cache", str(tmp_path / "cache")]
        recipe.main(["--model", str(model), *urls, "--json", str(report), "--out", str(tmp_path / "out"), "--model-threads", "1", *map(str, given)])
        return capsys.readouterr().out, json.loads(report.read_text())

    return run_recipe


@pytest.fixture
def characters(tmp_path):
    """A model folder with the characters of examples/ctc's model."""
    config = json.loads((CTC / "config.json").read_text())
    config["acoustic_model"] = {**config["acoustic_model"], "file": str(CTC / "model.onnx"), "log_probs": "logp_char"}
    config.update(tokens=str(CTC / "tokens_char.txt"), graph={})
    return put(tmp_path, "characters/config.json", json.dumps(config)).parent


def texts_in(path):
    return dict((line.split(maxsplit=1) + [""])[:2] for line in path.read_text().splitlines())


def errors(reference, hypothesis):
    row = list(range(len(hypothesis) + 1))
    for i, a in enumerate(reference, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(hypothesis, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


# --- the program ---


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


# --- downloads ---


def test_an_interrupted_download_goes_on(server, tmp_path):
    content = np.random.default_rng(1).bytes(3 << 20)
    put(server.folder, "big", content)
    server.faults["/big"] = [("cut", 1 << 20), 503, ("cut", 1 << 20)]
    path = fetch.fetch(f"{server.url}/big", tmp_path / "big", size=len(content), checksum=("md5", hashlib.md5(content).hexdigest()), wait_s=0)
    assert path.read_bytes() == content and [asked for _, asked, _ in server.requests] == [None, "bytes=1048576-", "bytes=1048576-", "bytes=2097152-"]
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["big"]


def test_a_changed_file_is_not_joined_to_the_beginning_of_the_old_one(server, tmp_path):
    put(server.folder, "big", b"a" * 1000)
    server.faults["/big"] = [("cut", 500)] + [404]
    with pytest.raises(fetch.DownloadError, match="no such file"):
        fetch.fetch(f"{server.url}/big", tmp_path / "big", wait_s=0)
    put(server.folder, "big", b"b" * 800)
    assert fetch.fetch(f"{server.url}/big", tmp_path / "big", wait_s=0).read_bytes() == b"b" * 800


def test_the_whole_file_was_received_but_not_named(server, tmp_path):
    put(server.folder, "big", b"a" * 1000)
    (tmp_path / "big.part").write_bytes(b"a" * 1000)
    (tmp_path / "big.part.version").write_text(f'"{hashlib.md5(b"a" * 1000).hexdigest()}"')
    assert fetch.fetch(f"{server.url}/big", tmp_path / "big", wait_s=0).read_bytes() == b"a" * 1000


def test_wrong_files_are_refused(server, tmp_path):
    put(server.folder, "file", b"content")
    with pytest.raises(fetch.DownloadError, match=r"its md5 is 9a0364b9\w+, the publisher's is 0000"):
        fetch.fetch(f"{server.url}/file", tmp_path / "file", checksum=("md5", 32 * "0"))
    with pytest.raises(fetch.DownloadError, match="has 7 bytes, expected 8"):
        fetch.fetch(f"{server.url}/file", tmp_path / "file", size=8)
    server.faults["/file"] = [403]
    with pytest.raises(fetch.DownloadError, match="accept the data's terms on its page"):
        fetch.fetch(f"{server.url}/file", tmp_path / "file")
    server.faults["/file"] = [500] * 5
    with pytest.raises(fetch.DownloadError, match="tried 5 times. What was received is kept"):
        fetch.fetch(f"{server.url}/file", tmp_path / "file", wait_s=0)
    assert not (tmp_path / "file").exists()


def test_checksums_that_are_published(server, capsys):
    content = (server.folder / "resources/12/test-clean.tar.gz").read_bytes()
    assert fetch.md5_of(f"{server.url}/resources/12/test-clean.tar.gz") == ("md5", hashlib.md5(content).hexdigest())
    assert fetch.md5_of(f"{server.url}/resources/11/3-gram.pruned.1e-7.arpa.gz") is None and "no checksum is published" in capsys.readouterr().err
    server.faults["/resources/12/md5sum.txt"] = [500]
    with pytest.raises(fetch.DownloadError, match="500"):
        fetch.md5_of(f"{server.url}/resources/12/test-clean.tar.gz")


def test_the_token_stays_with_its_host(server, tmp_path, monkeypatch):
    """The Hub redirects to other hosts, which must not get the token."""
    monkeypatch.setenv("HF_TOKEN", "secret")
    put(server.folder, "m/resolve/main/f", b"x")
    with serving(server.folder) as hub:
        hub.RequestHandlerClass = type("Redirecting", (Handler,), {"do_GET": lambda self: (self.server.requests.append(self.headers["Authorization"]), self.send_response(302), self.send_header("Location", server.url + self.path), self.end_headers())})
        assert fetch.Hub(hub.url, tmp_path).model_file("m", "f").read_bytes() == b"x"
        assert hub.requests == ["Bearer secret"]
    assert server.requests[-1] == ("/m/resolve/main/f", None, None)


def test_an_archive_writes_only_into_its_folder(tmp_path):
    content = archive({"LibriSpeech/test-clean/../../../evil.flac": b"x", "/evil.flac": b"x", "LibriSpeech/test-clean/1/2/1-2-0000.flac": b"x", "LibriSpeech/test-clean/1/2/1-2.trans.txt": b"1-2-0000 A\n1-2-0001 B\n"})
    put(tmp_path, "cache/test-clean.tar.gz", content)
    one = speech_sets.LibriSpeech("test-clean", "http://127.0.0.1:1", tmp_path / "cache")
    one.prepare()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file() and path.name.endswith(("flac", "txt"))].count("evil.flac") == 0
    with pytest.raises(SystemExit, match=r"1-2.trans.txt:2: no recording 1-2-0001.flac"):
        list(one.utterances())
    put(tmp_path, "cut/test-clean.tar.gz", content[: len(content) // 2])
    with pytest.raises(fetch.DownloadError, match="delete it and run again"):
        speech_sets.LibriSpeech("test-clean", "http://127.0.0.1:1", tmp_path / "cut").prepare()
    assert not (tmp_path / "cut" / "LibriSpeech" / "test-clean").exists()


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


PEERS = {"warpfst": [], "pyctcdecode": ["pyctcdecode", "kenlm"], "flashlight": ["flashlight.lib.text.decoder.kenlm", "kenlm"]}


@pytest.fixture(params=PEERS)
def kind(request):
    """Each search with a language model, if it is installed."""
    for module in PEERS[request.param]:
        pytest.importorskip(module)
    return request.param


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


def test_a_model_of_nemo(monkeypatch):
    """A stand-in for NeMo, with its calls: a hybrid model, whose forward returns the encoder's output, and one with CTC alone. The frames of each piece are cut to its length."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        cfg = type("Config", (dict,), {"__getattr__": dict.__getitem__})(sample_rate=16000)

        def forward(self, input_signal, input_signal_length):
            frames = input_signal_length // 1000
            output = torch.stack([torch.eye(3)[torch.arange(int(frames.max())) % 3].clamp_min(1e-3).log() for _ in frames])
            return (output, frames) if self.hybrid else (output, frames, None)

    head = types.SimpleNamespace(vocabulary=["a", "b"])
    models = {"ctc.nemo": Net(), "nvidia/hybrid": Net()}
    models["ctc.nemo"].hybrid, models["ctc.nemo"].decoder = False, head
    models["nvidia/hybrid"].hybrid = True
    models["nvidia/hybrid"].ctc_decoder = type("Head", (), {"vocabulary": ["a", "b"], "__call__": lambda self, encoder_output: encoder_output.flip(-1)})()
    loader = types.SimpleNamespace(restore_from=lambda name, map_location: models[name], from_pretrained=lambda name, map_location: models[name])
    asr = types.ModuleType("nemo.collections.asr")
    asr.models = types.SimpleNamespace(ASRModel=loader)
    for name, module in (("nemo", types.ModuleType("nemo")), ("nemo.collections", types.ModuleType("nemo.collections")), ("nemo.collections.asr", asr)):
        monkeypatch.setitem(sys.modules, name, module)
    for name, toolkit, order in (("ctc.nemo", "auto", "ab"), ("nvidia/hybrid", "nemo", " ba")):
        model = acoustic.open_acoustic(name, toolkit, "cpu", False, 1)
        assert model.tokens.names == ("a", "b", "<blank>") and model.sample_rate == 16000
        long, short = model.scores([np.zeros(3000, np.float32), np.zeros(2000, np.float32)])
        assert (long.shape, short.shape) == ((3, 3), (2, 3)) and long.dtype == np.float32
        greedy = searches.Greedy(searches.Vocabulary(model.tokens, None, None, ROOT))
        assert greedy.decode([long]) == [order.strip()]


def test_a_model_of_transformers(run, tmp_path):
    """A random wav2vec2 in a folder: greedy texts are those of its processor."""
    transformers, torch = pytest.importorskip("transformers"), pytest.importorskip("torch")
    if not transformers.is_torch_available():
        pytest.skip("this torch is too old for this transformers")
    names = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
    folder = tmp_path / "wav2vec2"
    put(tmp_path, "vocab.json", json.dumps({name: column for column, name in enumerate(names)}))
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "conv_dim": (8,) * 7, "num_conv_pos_embeddings": 16}
    net = transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(names), num_conv_pos_embedding_groups=2, **sizes)).eval()
    net.lm_head.weight.data *= 50
    processor = transformers.Wav2Vec2Processor(feature_extractor=transformers.Wav2Vec2FeatureExtractor(), tokenizer=transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json")))
    for part in (net, processor):
        part.save_pretrained(folder)
    run("--sets", "test-clean", "--search", "greedy", "--search", "warpfst", "--batch", "1", model=folder)
    found = texts_in(tmp_path / "out/test-clean/greedy.txt")
    samples = soundfile.read(CARDS / "card1.wav", dtype="float32")[0]
    with torch.no_grad():
        best = net(**processor(samples, sampling_rate=16000, return_tensors="pt")).logits.argmax(-1)
    assert found["61-70968-0000"] == speech_sets.plain_text(re.sub("<[^>]+>", "", processor.batch_decode(best)[0])) != ""
