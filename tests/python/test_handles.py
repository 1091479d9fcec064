"""Classes that own a C object refuse what is not its address."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import warpfst as wf


@pytest.mark.parametrize(("kind", "reads"), [(wf.Fst, "read"), (wf.LM, "read"), (wf.RnnLM, "open"), (wf.Transducer, "open"), (wf.Lexicon, "read")])
@pytest.mark.parametrize("value", ["x.file", pathlib.Path("x.file"), b"x.file", None, True, 1.0])
def test_what_is_no_address(kind: Any, reads: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(.*\) needs the address of a C object: {kind.__name__}\.{reads}\(path\) reads a file$"):
        kind(value)


def test_a_lattice_from_a_path() -> None:
    with pytest.raises(TypeError, match=r"^Lattice\('x.file'\) needs the address of a C object"):
        wf.Lattice("x.file")  # type: ignore[arg-type, call-arg]
