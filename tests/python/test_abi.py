"""The generated declarations are the library's: every exported function, every structure's size, every option."""

import ctypes
import pathlib
import re

import pytest

import warpfst as wf
from warpfst import _abi, _option_types
from warpfst._library import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_exported_function_is_declared_and_nothing_else():
    exported = re.findall(r"\bwf_\w+", (ROOT / "tests/abi/exports.txt").read_text())
    assert sorted(_abi.FUNCTIONS) == sorted(exported)


def test_option_structures_have_the_sizes_and_offsets_of_c():
    names = wf.tables()
    assert len(names) > 20
    for name in names:
        table = lib.wf_option_table_find(name.encode()).contents
        struct = getattr(_abi, f"wf_{name}_options")
        assert ctypes.sizeof(struct) == table.struct_size, name
        for i in range(table.num_rows):
            row = table.rows[i]
            assert getattr(struct, row.name.decode()).offset == row.offset, (name, row.name)


@pytest.mark.parametrize("init", [name for name in _abi.FUNCTIONS if name.endswith("_init") and "options" not in name and name != "wf_config_init"])
def test_sizes_of_other_structures(init):
    struct = getattr(_abi, init[: -len("_init")])()
    getattr(lib, init)(ctypes.byref(struct))
    assert struct.struct_size == ctypes.sizeof(struct)


def test_typed_dicts_name_every_option():
    for name in wf.tables():
        typed = getattr(_option_types, name.title().replace("_", "") + "Options")
        assert list(typed.__annotations__) == [option.name for option in wf.describe(name)]


def test_header_that_cannot_be_read_stops_the_build(tmp_path):
    import subprocess
    import sys

    header = tmp_path / "warpfst.h"
    header.write_text("typedef struct wf_odd { unknown_t x; } wf_odd;\nint wf_make(wf_odd *x);\n")
    run = subprocess.run([sys.executable, ROOT / "python/generate_abi.py", "cc", header, tmp_path], capture_output=True, text=True)
    assert run.returncode != 0 and "unknown type unknown_t" in run.stderr


def test_errors_are_exceptions_of_their_kind():
    from warpfst import errors

    codes = {name[3:] for name in vars(_abi) if name.startswith("WF_ERR_")}
    assert codes == set(errors.BY_STATUS)
    with pytest.raises(wf.FileError, match="no-such-file.fst"):
        wf.Fst.read("no-such-file.fst")
    with pytest.raises(OSError):
        wf.Fst.read("no-such-file.fst")
