"""What completion (dir) shows: everything public, also what is made or imported when it is first used, and nothing else."""

import subprocess
import sys

import numpy as np

import warpfst as wf


def test_the_package_shows_its_public_names_and_no_others():
    # In a process of its own: here, other tests may have imported what is imported on first use.
    code = "import warpfst as wf; print(*(name for name in dir(wf) if not name.startswith('__')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(shown) == {*wf.__all__, "compat", "generation", "integrations", "strings", "transcribe"} - {"__version__"}
    assert {"AsyncStreams", "from_nemo", "from_huggingface", "fst"} < set(shown)
    assert not {"compose", "Arc", "LargeLM", "decoder", "options"} & set(shown)
    assert all(hasattr(wf, name) for name in dir(wf)) and "__version__" in dir(wf)


def test_results_show_what_is_made_when_it_is_read():
    results = wf.Decoder(wf.build_ctc_graph(["<blk>", "a"], {"a": "a"}), lattice_beam=4).decode(np.log([[0.1, 0.9], [0.9, 0.1]], dtype=np.float32))
    for one in (results, results[0]):
        assert all(hasattr(one, name) for name in dir(one))
    assert {"text", "words", "cost", "flags", "lattice", "compact_lattice", "alignment", "nbest", "error"} <= set(dir(results[0]))
    assert {"costs", "scorer_costs", "num_frames", "texts", "confidences", "offsets"} <= set(dir(results))
