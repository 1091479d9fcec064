"""The generated ctypes declarations match the library: every exported function, the size of every structure, every option."""

import ctypes
import pathlib
import re
import subprocess
import sys

import pytest

import warpfst as wf
from warpfst import _abi, _option_types
from warpfst._library import lib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_every_exported_function_is_declared_and_nothing_else():
    exported = re.findall(r"\bwf_\w+", (ROOT / "tests/abi/exports.txt").read_text())
    assert sorted(_abi.FUNCTIONS) == sorted(exported)


# Exported functions that the package does not call, with the reason.
NOT_CALLED = {
    "wf_builder_add_arc": "Fst.from_arcs passes all arcs in one call",
    "wf_builder_reserve": "Fst.from_arcs passes all arcs in one call",
    "wf_fst_batch_get_view": "Composer.view gives access to results in GPU memory",
    "wf_fst_print": "Fst.to_text prints in memory",
    "wf_fst_print_dot": "wf_fst_draw calls it for names in .dot and .gv",
    "wf_fst_properties": "Fst.properties calls wf_fst_get_properties, which reports errors",
    "wf_fst_read_format": "Fst.read recognises the format",
    "wf_lattice_reader_fraction": "progress of the command line",
    "wf_lattice_reader_lost_rest": "reading the next lattice, or the end, reports it",
    "wf_lexicon_num_disambig": "graph building adds the symbols",
    "wf_lm_estimate_arpa": "LM.estimate, then write_arpa; the program is for models that do not fit into memory",
    "wf_lm_knows": "LM.words.find",
    "wf_matrix_check": "decoding checks scores",
    "wf_remove_unfinished_outputs": "for the signal handlers of the command line",
    "wf_result_writer_abort": "Python has json; transcribe/outputs.py writes the rest",
    "wf_result_writer_close": "as above",
    "wf_result_writer_open": "as above",
    "wf_result_writer_put": "as above",
    "wf_rnnlm_start": "RnnLM.costs scores whole sentences",
    "wf_rnnlm_step": "as above",
    "wf_score_reader_fraction": "progress of the command line",
    "wf_score_reader_lost_rest": "reading the next matrix, or the end, reports it",
    "wf_symbols_at": "wf_symbols_entry lists the labels, too",
    "wf_textgrid_write": "warpfst align --textgrid writes the files",
    "wf_transcripts_find": "read_transcripts makes a dict",
    "wf_transcripts_format": "as above",
}


def test_every_function_is_called_or_has_a_reason_not_to_be():
    """Some names are built from parts (such as wf_lm_ + prune); these count as called, too."""
    source = "".join(path.read_text() for path in pathlib.Path(wf.__file__).parent.rglob("*.py") if path.name != "_abi.py")
    made = {f"wf_{name}" for name in re.findall(r'_unary\("(\w+)"', source)} | {f"wf_fst_batch_{name}" for name in re.findall(r'_made\("(\w+)"', source)}
    uncalled = {name for name in _abi.FUNCTIONS if not re.search(rf"\b{name}\b", source) and name not in made}
    uncalled = {name for name in uncalled if not name.endswith("_ref")}
    assert uncalled == set(NOT_CALLED)


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


def test_structures_have_the_sizes_of_c(tmp_path):
    lines = "".join(f'printf("{name} %zu\\n", sizeof({name}));' for name in vars(_abi) if name.startswith("wf_") and isinstance(getattr(_abi, name), type(ctypes.Structure)))
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    source.write_text(f'#include <stdio.h>\n#include "warpfst_all.h"\nint main(void) {{ {lines} return 0; }}\n')
    subprocess.run(["cc", "-c", "-I", ROOT / "include", source, "-o", tmp_path / "sizes.o"], check=True)
    # The program calls no function of the library, but inline functions of the headers refer to some.
    subprocess.run(["cc", "-Wl,--unresolved-symbols=ignore-all", tmp_path / "sizes.o", "-o", program], check=True)
    sizes = dict(line.split() for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines())
    assert len(sizes) > 60
    assert {name: ctypes.sizeof(getattr(_abi, name)) for name in sizes} == {name: int(size) for name, size in sizes.items()}


def test_typed_dicts_name_every_option():
    for name in wf.tables():
        typed = getattr(_option_types, name.title().replace("_", "") + "Options")
        assert list(typed.__annotations__) == [option.name for option in wf.describe(name)]


def test_header_that_cannot_be_read_stops_the_build(tmp_path):
    header = tmp_path / "warpfst_all.h"
    header.write_text("typedef struct wf_odd { unknown_t x; } wf_odd;\nint wf_make(wf_odd *x);\n")
    run = subprocess.run([sys.executable, ROOT / "python/generate_abi.py", "cc", tmp_path, tmp_path], capture_output=True, text=True)
    assert run.returncode != 0 and "unknown type unknown_t" in run.stderr


def test_errors_are_exceptions_of_their_kind():
    from warpfst import errors

    codes = {name[3:] for name in vars(_abi) if name.startswith("WF_ERR_")}
    assert codes == set(errors.BY_STATUS)
    with pytest.raises(wf.FileError, match="no-such-file.fst"):
        wf.Fst.read("no-such-file.fst")
    with pytest.raises(OSError):
        wf.Fst.read("no-such-file.fst")
