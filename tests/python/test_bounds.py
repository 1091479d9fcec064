"""Small files that ask for much memory, and values that Python's parsers answer with exceptions of their own: an Error of the package, without the memory."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest

import warpfst as wf

yaml = pytest.importorskip("yaml")
MOST_BYTES = 30 << 20


def peak_of(call):
    """(result or exception, peak of Python's and numpy's memory)."""
    tracemalloc.start()
    try:
        result = call()
    except Exception as why:  # noqa: BLE001 - any kind is compared with those of the package
        result = why
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return result, peak


def fails_small(call, message=""):
    result, peak = peak_of(call)
    assert isinstance(result, wf.Error) and message in str(result) and len(str(result)) < 1000, repr(result)[:500]
    assert peak < MOST_BYTES, f"{peak >> 20} MB"


# --- numbers of configurations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {"conv_stride": ["a", 3_000_000_000]},
        {"conv_stride": [[1], 3_000_000_000]},
        {"conv_stride": [10**400, 2]},
        {"conv_stride": [2.5e300, 1e300]},
        {"conv_stride": "22"},
        {"conv_stride": [True, 320]},
        {"conv_stride": [-5, -64]},
        {"conv_stride": [10**8] * 200_000},
        {"encoder_config": {"subsampling_factor": 3_000_000_000}},
        {"encoder_config": [1]},
        {},
    ],
)
def test_strides_that_are_no_numbers(tmp_path, config):
    (tmp_path / "vocab.json").write_text(json.dumps({"<pad>": 0, "|": 1, "a": 2}))
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"sampling_rate": 16000, "hop_length": "a"}))
    tokens, peak = peak_of(lambda: wf.integrations.huggingface_tokens(tmp_path))
    assert tokens.frame_shift is None and peak < MOST_BYTES
    (tmp_path / "config.json").write_text(json.dumps({"conv_stride": [5, 64]}))
    assert wf.integrations.huggingface_tokens(tmp_path).frame_shift == 0.02


def espnet(tmp_path, text):
    (tmp_path / "config.yaml").write_text(f"token_list: [<blank>, a]\nfrontend: default\n{text}\n")
    return lambda: wf.integrations.espnet_tokens(tmp_path / "config.yaml")


@pytest.mark.parametrize("text", ["frontend_conf: {hop_length: aaaa}", "frontend_conf: {fs: 0}", "frontend_conf: [1]", "encoder_conf: {input_layer: [1]}", "frontend_conf: {hop_length: .nan}"])
def test_numbers_of_espnet(tmp_path, text):
    assert espnet(tmp_path, text)().frame_shift is None


def test_numbers_of_nemo(tmp_path):
    for stride, factor in (("0.01", 4), ("0.01", 10**400), ("a", 3_000_000_000), (".inf", 4)):
        config = f"decoder: {{vocabulary: [a]}}\npreprocessor: {{window_stride: {stride}}}\nencoder: {{subsampling_factor: {factor}}}"
        tokens, peak = peak_of(lambda: wf.integrations.nemo_tokens(nemo(tmp_path, {"model_config.yaml": config.encode()})))  # noqa: B023
        assert tokens.frame_shift == (0.04 if factor == 4 and stride == "0.01" else None) and peak < MOST_BYTES


# --- JSON and YAML ---------------------------------------------------------------------------------------------------------------------


def test_json_numbers_with_thousands_of_digits(tmp_path):
    (tmp_path / "vocab.json").write_text('{"a": ' + "1" * 5000 + "}")
    fails_small(lambda: wf.integrations.huggingface_tokens(tmp_path), "vocab.json")


LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8))
MERGES = "b0: &b0 {x: 1, y: 2}\n" + "".join(f"b{i}: &b{i} {{<<: [{','.join([f'*b{i - 1}'] * 10)}]}}\n" for i in range(1, 8))


@pytest.mark.parametrize("text", [LAUGHS, MERGES, "r: &r [*r]", "n: " + "1" * 5000, "d: 2001-99-99", "b: !!bool maybe", "i: !!int x", "t: !!timestamp x", "f: !!float x", "m: {[a]: 1}", "l: " + "[" * 700])
def test_yaml(tmp_path, text):
    fails_small(espnet(tmp_path, text), "config.yaml")
    fails_small(lambda: wf.integrations.nemo_tokens(nemo(tmp_path, {"model_config.yaml": text.encode()})), "m.nemo")


def test_yaml_with_usual_aliases(tmp_path):
    assert espnet(tmp_path, "a: &a [1, 2]\nb: *a\nc: &c {x: *a}\nd: {<<: *c}")().names == ("<blank>", "a")


# --- archives of NeMo ------------------------------------------------------------------------------------------------------------------


def nemo(tmp_path, members, mode="w"):
    with tarfile.open(tmp_path / "m.nemo", mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return tmp_path / "m.nemo"


def load(path):
    return lambda: wf.integrations.nemo_tokens(path)


def test_one_tokenizer_for_many_languages(tmp_path):
    config = "tokenizer: {langs: {" + ", ".join(f"l{i}: {{model_path: x.model}}" for i in range(1000)) + "}}"
    fails_small(load(nemo(tmp_path, {"model_config.yaml": config.encode(), "x.model": bytes(1 << 20)})), "x.model")


@pytest.mark.parametrize("value", ["[a]", "{a: b}", "5", "2001-01-01", "true"])
def test_model_paths_that_are_no_texts(tmp_path, value):
    fails_small(load(nemo(tmp_path, {"model_config.yaml": f"tokenizer: {{model_path: {value}}}".encode()})), "expected a text")


def test_headers_that_unpack_to_much(tmp_path):
    """The header of a name, 300 MB of one letter in a gzip file of 300 KB."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 300 << 20
    with gzip.open(tmp_path / "m.nemo", "wb", compresslevel=9) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(300):
            file.write(b"a" * (1 << 20))
    fails_small(load(tmp_path / "m.nemo"), "m.nemo")


def test_sparse_members(tmp_path):
    header = bytearray(tarfile.TarInfo("model_config.yaml").tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[386:410] = b"%011o\0%011o\0" % (90 << 20, 0)
    header[483:495] = b"%011o\0" % (90 << 20)
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + 8 * 32 + sum(header[156:]))
    (tmp_path / "m.nemo").write_bytes(bytes(header) + bytes(1024))
    fails_small(load(tmp_path / "m.nemo"), "m.nemo")


@pytest.mark.parametrize("records", [b"11 size=x1\n", b"30 GNU.sparse.map=x\n", b"15 path=\xff\xff\xff\xff\n", b"99999999999999999999 path=x\n", b"20 hdrcharset=BINARY\n12 path=\xff\xff\n"])
def test_odd_tar_headers(tmp_path, records):
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, len(records)
    (tmp_path / "m.nemo").write_bytes(header.tobuf(tarfile.USTAR_FORMAT) + records.ljust(512, b"\0") + tarfile.TarInfo("x").tobuf() + bytes(1024))
    fails_small(load(tmp_path / "m.nemo"), "m.nemo")


# --- what torch.save wrote --------------------------------------------------------------------------------------------------------------


def whole(n):
    return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)


def text(x):
    return b"X" + struct.pack("<I", len(x)) + x.encode()


def tensor(size, stride, offset=0, count=8):
    """A pickled tensor of int32 over a storage of `count` values."""
    storage = b"(" + text("storage") + b"ctorch\nIntStorage\n" + text("0") + text("cpu") + whole(count) + b"tQ"
    shape, steps = (b"(" + b"".join(map(whole, values)) + b"t" for values in (size, stride))
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + whole(offset) + shape + steps + b"\x89ccollections\nOrderedDict\n)RtR"


def saved(path, content, values=8, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a/data.pkl", content)
        archive.writestr("a/data/0", np.zeros(values, "<i4").tobytes(), zipfile.ZIP_STORED)
    return lambda: wf.integrations.k2_fst(path)


def arcs(value):
    return b"\x80\x02}(" + text("arcs") + value + b"u."


@pytest.mark.parametrize(("size", "stride"), [((2**27, 4), (0, 1)), ((2**27, 4), (0, 0)), ((2**14, 2**14, 4), (0, 0, 1)), ((6, 4), (1, 1)), ((3, 4), (0, 1))])
def test_tensors_with_more_values_than_their_storage(tmp_path, size, stride):
    fails_small(saved(tmp_path / "x.pt", arcs(tensor(size, stride))), "more values than its storage")


def test_states_without_arcs(tmp_path):
    values = np.array([[0, 1, 1, 0], [1, 2**31 - 2, -1, 0]], "<i4")
    path = tmp_path / "x.pt"
    saved(path, arcs(tensor((2, 4), (4, 1))))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", arcs(tensor((2, 4), (4, 1))))
        archive.writestr("a/data/0", values.tobytes())
    fails_small(lambda: wf.integrations.k2_fst(path), "in a graph of 2 arcs")


def test_pickles_out_of_proportion(tmp_path):
    fails_small(saved(tmp_path / "x.pt", b"\x80\x02}r" + struct.pack("<I", 2**31 - 1) + b"."), "not in proportion")
    fails_small(saved(tmp_path / "x.pt", b"\x80\x02}p2000000000\n."), "not in proportion")
    fails_small(saved(tmp_path / "x.pt", arcs(text("a" * (100 << 20))), compression=zipfile.ZIP_DEFLATED), "compressed pickle")


def test_storages_of_the_older_format(tmp_path):
    """Many storages, each as large as the file."""
    many = 2000
    keys = b"".join(b"(" + text("storage") + b"ctorch\nIntStorage\n" + text(str(i)) + text("cpu") + whole(30000) + b"tQ0" for i in range(many))
    head = b"".join(pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, {}))
    path = tmp_path / "x.pt"
    path.write_bytes(head + b"\x80\x02" + keys + b"N." + pickle.dumps([], 2))
    fails_small(lambda: wf.integrations.k2_fst(path), "storage")
