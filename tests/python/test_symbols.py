"""Symbol tables: keys that no label can have, bytes that are not UTF-8, texts that lines cannot hold; and texts and files of fsts in memory."""

import copy
import gzip
import pickle
import struct
import subprocess
import sys
import tempfile

import pytest

import warpfst as wf

TABLE = [(b"<eps>", 0), (b"a", 1), (b"caf\xe9", 2), (b"odd", -3), (b"far", 2**31 + 5), (b"b", 7), (b"another b", 7), (b"a", 9)]


def string(data):
    return struct.pack("<i", len(data)) + data


def binary_table(pairs, next_key=2**40, name=b"t"):
    entries = b"".join(string(text) + struct.pack("<q", key) for text, key in pairs)
    return struct.pack("<i", 2125658996) + string(name) + struct.pack("<qq", next_key, len(pairs)) + entries


def vector_file(label, pairs):
    """One arc with both labels the same; tables on both sides."""
    header = struct.pack("<i", 2125659606) + string(b"vector") + string(b"standard") + struct.pack("<iIQqqq", 2, 3, 3, 0, 2, 0)
    states = struct.pack("<fq", float("inf"), 1) + struct.pack("<iifi", label, label, 0.5, 1) + struct.pack("<fq", 0.0, 0)
    return header + 2 * binary_table(pairs) + states


def decoded(pairs):
    return [(text.decode(errors="surrogateescape"), key) for text, key in pairs]


def test_a_table_of_openfst_is_kept(tmp_path):
    for label, text in ((1, "a"), (2, "caf\udce9"), (7, "another b")):
        data = vector_file(label, TABLE)
        (tmp_path / "x.fst").write_bytes(data)
        for fst in (wf.Fst.read(tmp_path / "x.fst"), wf.Fst.from_bytes(data), wf.Fst.from_bytes(gzip.compress(data))):
            fst.write(tmp_path / "y.fst", "vector")
            assert (tmp_path / "y.fst").read_bytes() == data
            for same in (fst, pickle.loads(pickle.dumps(fst)), copy.deepcopy(fst)):
                assert list(same.isymbols) == decoded(TABLE) and same.isymbols.text(label) == text
            assert fst.to_text() == f"0\t1\t{text}\t{text}\t0.5\n1\n" if " " not in text else fst.to_text(numeric=True)
        if " " not in text:
            assert wf.fst.equal(wf.Fst.from_text(fst.to_text(), fst.isymbols, fst.osymbols), fst)


def test_lookups_in_a_table_of_openfst(tmp_path):
    (tmp_path / "t.bin").write_bytes(binary_table(TABLE))
    for table in (wf.Symbols.read(tmp_path / "t.bin"), wf.Symbols.from_bytes(binary_table(TABLE)), wf.Symbols.from_bytes(gzip.compress(binary_table(TABLE)))):
        assert [table.find(text) for text in ("a", "odd", "far", "b", "another b", "caf\udce9", "x")] == [1, -3, 2**31 + 5, 7, 7, 2, None]
        assert [table.text(key) for key in (1, -3, 2**31 + 5, 7, 9, -1, 2**64 + 1, -(2**63) - 1)] == ["a", "odd", "far", "another b", None, None, None, None]
        assert len(table) == 8 and "odd" in table and "x" not in table and table.name == "t"
        assert table.to_bytes() == binary_table(TABLE)
        assert pickle.loads(pickle.dumps(table)).to_bytes() == copy.copy(table).to_bytes() == binary_table(TABLE)
        assert table.add("new") == 8  # the next label, whatever the next key of the file
        assert list(table) == [*decoded(TABLE), ("new", 8)]
        with pytest.raises(wf.FormatError, match="-3, which is outside"):
            table.add("odd")


def test_operations_with_tables_of_openfst():
    a = wf.Fst.from_bytes(vector_file(1, TABLE))
    b = wf.Fst.from_bytes(vector_file(1, TABLE[:4]))
    assert wf.fst.union(a, a).num_arcs >= 2
    with pytest.raises(wf.ArgumentError, match="key 7"):
        wf.fst.compose(a, b)
    graph = wf.Graph(wf.Fst.from_bytes(vector_file(2, TABLE)))
    np = pytest.importorskip("numpy")
    with wf.Decoder(graph, check_scores="off") as decoder:
        assert decoder.decode(np.full((1, 1, 3), -1, np.float32))[0].text == "caf\ufffd"  # a text that can be printed


def test_keys_outside_the_range():
    for key in (2**64 + 5, 2**65 + 1, 2**31, -1, -5, -(2**64)):
        with pytest.raises(wf.ArgumentError, match=f"key {key} of 'x' is outside 0 to"):
            wf.Symbols({"<eps>": 0, "x": key})
    table = wf.Symbols(["<eps>", "x"])
    for key in (2**64 + 5, 2**31, -2):
        with pytest.raises(wf.ArgumentError, match=f"key {key} of 'y'"):
            table.add("y", key)
    for key in (1.0, "1", None):
        with pytest.raises(TypeError):
            wf.Symbols({"x": key})
        with pytest.raises(TypeError):
            table.text(key)
    assert table.text(2**64 + 1) is None and len(table) == 2
    np = pytest.importorskip("numpy")
    assert wf.Symbols({"x": np.int64(5)}).text(np.int32(5)) == "x"


def test_numbers_that_c_cannot_take():
    """Everywhere, a number that does not fit is an error, not the number that its low bits are."""
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.0)], {1: 0.0})
    tokens = wf.ctc_topology(3, 0)
    calls = (
        lambda: wf.ctc_topology(2**32 + 3, 0),
        lambda: wf.ctc_topology(3, 2**32),
        lambda: wf.fst.relabel(fst, [(1, 2**32 + 1)]),
        lambda: wf.fst.add_self_loops(fst, [2**32 + 1], [1]),
        lambda: wf.fst.replace({2**32 + 9: fst}),
        lambda: wf.Graph(tokens, [0, 2**32 + 1, 2, 3]),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"429496\d+"):
            call()


@pytest.mark.parametrize("text", ["hello world", "x\ny", "\t", " ", "a ", " a", "a\tb"])
def test_texts_that_a_line_cannot_hold(tmp_path, text):
    table = wf.Symbols(["<eps>", text])
    with pytest.raises(wf.ArgumentError, match="(?s)symbol .* holds a blank"):
        table.write(tmp_path / "s.txt")
    assert not list(tmp_path.iterdir())
    fst = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: 0.0}, isymbols=table, osymbols=table)
    with pytest.raises(wf.ArgumentError, match="input label 1 holds a blank"):
        fst.to_text()
    assert wf.fst.equal(wf.Fst.from_text(fst.to_text(numeric=True)), fst.with_symbols())
    assert list(pickle.loads(pickle.dumps(fst)).isymbols) == [("<eps>", 0), (text, 1)]
    unused = wf.Fst.from_arcs([(0, 1, 0, 0, 0.0)], {1: 0.0}, isymbols=table, osymbols=table)
    assert unused.to_text().startswith("0\t1\t<eps>\t<eps>")  # only the symbols of arcs matter


@pytest.mark.parametrize("text", ["\u00a0", "x\ry", "\u3000", "\v", "\x85", "#0", "\u2028", "\udce9"])
def test_texts_that_come_back(tmp_path, text):
    table = wf.Symbols(["<eps>", text])
    fst = wf.Fst.from_arcs([(0, 1, 1, 1, 0.0)], {1: 0.0}, isymbols=table, osymbols=table)
    assert wf.fst.equal(wf.Fst.from_text(fst.to_text(), table, table), fst)
    table.write(tmp_path / "s.txt")
    if text == "\udce9":  # text is UTF-8
        with pytest.raises(wf.FormatError, match=r"s\.txt:2: symbol is not UTF-8"):
            wf.Symbols.read(tmp_path / "s.txt")
        assert (tmp_path / "s.txt").read_bytes() == b"<eps>\t0\n\xe9\t1\n"
    else:
        assert list(wf.Symbols.read(tmp_path / "s.txt")) == list(table)
    for data in (b"<eps> 0\r\na 1\r\n", b"\xef\xbb\xbf<eps>\t0\na\t1", gzip.compress(b"<eps> 0\n\na 1\n")):
        assert list(wf.Symbols.from_bytes(data)) == [("<eps>", 0), ("a", 1)]


def test_the_program_reads_tables_of_openfst(tmp_path):
    (tmp_path / "x.fst").write_bytes(vector_file(2, TABLE))
    (tmp_path / "t.bin").write_bytes(binary_table(TABLE))

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "warpfst", *arguments], cwd=tmp_path, capture_output=True, check=False)

    assert run("print", "x.fst").stdout == b"0\t1\tcaf\xe9\tcaf\xe9\t0.5\n1\n"
    assert run("print", "--numeric", "x.fst").stdout == b"0\t1\t2\t2\t0.5\n1\n"
    assert run("print", "--isymbols=t.bin", "--osymbols=t.bin", "x.fst").stdout == b"0\t1\tcaf\xe9\tcaf\xe9\t0.5\n1\n"
    assert run("convert", "x.fst", "y.fst").returncode == 0 and (tmp_path / "y.fst").read_bytes() == vector_file(2, TABLE)
    assert run("convert", "--drop_symbols", "x.fst", "y.fst").returncode == 0 and wf.Fst.read(tmp_path / "y.fst").isymbols is None
    failed = run("print", "--save_isymbols=s.txt", "x.fst")  # 'another b'
    assert failed.returncode == 2 and b"'another b' with key 7 holds a blank" in failed.stderr and not (tmp_path / "s.txt").exists()


def test_without_a_temporary_folder(monkeypatch):
    """Texts and bytes of fsts and tables, pickles and copies need no file."""

    def refuse(*_args, **_options):
        raise FileNotFoundError("no temporary folder")

    for name in ("mkdtemp", "mkstemp", "gettempdir", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"):
        monkeypatch.setattr(tempfile, name, refuse)
    words = wf.Symbols(["<eps>", "a", "b"])
    fst = wf.Fst.from_text("0 1 a b 0.5\n1\n", words, ["<eps>", "a", "b"])
    assert fst.to_text() == "0\t1\ta\tb\t0.5\n1\n"
    assert wf.Fst.from_text("").num_states == 0 and wf.Fst.from_text("").to_text() == ""
    for made in (wf.Fst.from_bytes(fst.to_bytes()), pickle.loads(pickle.dumps(fst)), copy.copy(fst), copy.deepcopy(fst)):
        assert wf.fst.equal(made, fst) and list(made.osymbols) == list(words)
    graph = wf.Graph(fst)
    for made in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), pickle.loads(pickle.dumps(wf.Decoder(graph))).graph):
        assert wf.fst.equal(made.fst, graph.fst)


@pytest.mark.parametrize(
    ("text", "words"),
    [("0 1 1\n", r"text:1: expected 'source"), ("0 1 1 1\n\n0 1 1 x\n", r"text:3: output label 'x' is not a label"), ("0 1 x y 0.5", r"text:1: input label 'x' is not a label")],
)
def test_errors_of_texts_name_the_line(text, words):
    with pytest.raises(wf.FormatError, match=words):
        wf.Fst.from_text(text)
    with pytest.raises(wf.FormatError, match="^bytes: looks like text"):
        wf.Fst.from_bytes(text.encode())


def test_damaged_bytes():
    data = wf.Fst.from_text("0 1 1 1\n1\n").to_bytes()
    for cut in range(0, len(data), 7):
        with pytest.raises(wf.FormatError, match="^bytes: "):
            wf.Fst.from_bytes(data[:cut])
    with pytest.raises(wf.FormatError, match="gzip"):
        wf.Fst.from_bytes(gzip.compress(data)[:-3])
    with pytest.raises(wf.UnsupportedError, match="xz"):
        wf.Fst.from_bytes(b"\xfd7zXZ\x00rest of it")
