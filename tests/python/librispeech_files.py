"""Stand-ins for the files that examples/librispeech downloads, and a server for them. The recordings are those of examples/cards, the models those of examples/ctc."""

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import math
import re
import sys
import tarfile
import threading

import pytest
from conftest import CTC, ROOT

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("onnxruntime")
CARDS = ROOT / "examples" / "cards"
EXAMPLE = ROOT / "examples" / "librispeech"
sys.path.insert(0, str(EXAMPLE))
import acoustic  # noqa: F401 - tests take the example's modules from here
import checkpoints  # noqa: F401
import fetch  # noqa: F401
import recipe
import searches  # noqa: F401
import speech_sets  # noqa: F401
import tune  # noqa: F401

DATASET = "hf-audio/esb-datasets-test-only-sorted"
PEERS = {"warpfst": [], "pyctcdecode": ["pyctcdecode", "kenlm"], "flashlight": ["flashlight.lib.text.decoder.kenlm", "kenlm"]}


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


@pytest.fixture(params=PEERS)
def kind(request):
    """Each search with a language model, if it is installed."""
    for module in PEERS[request.param]:
        pytest.importorskip(module)
    return request.param
