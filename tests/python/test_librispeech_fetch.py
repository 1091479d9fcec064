"""Downloads of examples/librispeech: connections that break, files that change or are wrong, checksums, the token."""

import hashlib

import numpy as np
import pytest
from librispeech_files import Handler, archive, fetch, put, serving, speech_sets

pytest_plugins = ["librispeech_files"]  # its fixtures


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
