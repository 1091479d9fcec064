"""What notebooks show: pictures of fsts and lattices, tables of results. Also captions of results."""

import pathlib
import pickle
import re
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from conftest import random_fst

import warpfst as wf
from warpfst import notebook

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_pictures_of_fsts(rng, tmp_path):
    words = wf.Symbols(["<eps>", "a<b", "c&d"])
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.5), (0, 1, 0, 0, 0.0), (1, 1, 2, 2, 0.0), (1, 0, 1, 1, 0.25)], {1: 0.75}, isymbols=words, osymbols=words)
    assert sorted(texts_of(fst._repr_svg_())) == sorted(["a<b:c&d/0.5", "<eps>", "c&d", "a<b/0.25", "0", "1", "/0.75"])
    plain = fst.with_symbols()
    assert sorted(texts_of(plain._repr_svg_()))[:2] == ["/0.75", "0"] and "1:2/0.5" in texts_of(plain._repr_svg_()) and "\u03b5" in texts_of(plain._repr_svg_())
    plain.draw(tmp_path / "fst.svg")
    assert (tmp_path / "fst.svg").read_text() == plain._repr_svg_()
    for i in range(40):  # any fst: every arc has one path and one text, every state its number, all within the picture
        _, _, fst = random_fst(rng, num_states=int(rng.integers(2, 12)), num_arcs=int(rng.integers(0, 40)), acyclic=bool(i % 2))
        picture = ET.fromstring(fst._repr_svg_())
        assert len(picture.findall(f"{SVG}g[@class='arc']/{SVG}path")) == len(picture.findall(f"{SVG}g[@class='arc']/{SVG}text")) == fst.num_arcs
        states = [group for group in picture.iter(f"{SVG}g") if group.get("class").startswith("state")]
        assert [group.find(f"{SVG}text").text for group in states] == [str(state) for state in range(fst.num_states)]
        places = {(circle.get("cx"), circle.get("cy")) for circle in picture.iter(f"{SVG}circle")}
        assert len(places) == fst.num_states and "nan" not in fst._repr_svg_()
        places |= {(text.get("x"), text.get("y")) for text in picture.iter(f"{SVG}text")}
        assert all(0 < float(x) < float(picture.get("width")) and 0 < float(y) < float(picture.get("height")) for x, y in places)
    assert ET.fromstring(wf.Fst.from_text("")._repr_svg_()).tag == f"{SVG}svg"
    large = wf.Fst.from_arcs([(i, i + 1, 1, 1, 0.0) for i in range(1001)], {1001: 0.0})
    assert large._repr_svg_() is None  # notebooks then show repr()
    with pytest.raises(wf.LimitError, match="1001 arcs"):
        large.draw(tmp_path / "large.svg")
    assert not (tmp_path / "large.svg").exists()
    large.close()
    assert large._repr_svg_() is None


def decoded(**options):
    graph = wf.build_ctc_graph(["<blk>", "a", "b"], {"a<": "a", "b&": "b"})
    scores = np.log([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7], [0.9, 0.05, 0.05]]).astype(np.float32)
    return wf.Decoder(graph, **options).decode([scores, np.full((2, 3), np.nan, np.float32)])


def test_pictures_of_lattices(tmp_path, ctc_graph, ctc_scores):
    result = decoded(lattice_beam=3)[0]
    for lattice in (result.lattice, result.compact_lattice):
        svg = lattice._repr_svg_()
        assert {"a<", "b&"} <= set(texts_of(svg)) and svg.startswith("<svg ")
        for name, begin in (("x.svg", "<svg "), ("x.html", "<!DOCTYPE html>"), ("x.dot", "digraph "), ("x.gv", "digraph "), ("x", "<!DOCTYPE html>")):
            lattice.draw(tmp_path / name)
            assert (tmp_path / name).read_text().startswith(begin), name
        lattice.draw(tmp_path / "x.svg", format="dot")  # what is said counts more than the name
        assert (tmp_path / "x.svg").read_text().startswith("digraph ")
    page = (tmp_path / "x.html").read_text()
    assert svg in page and svg == (result.compact_lattice.draw(tmp_path / "y.svg"), (tmp_path / "y.svg").read_text())[1]
    results = wf.Decoder(ctc_graph, acoustic_scale=0.3, lattice_beam=12).decode(list(ctc_scores.values()))
    large = max((result.compact_lattice for result in results), key=lambda lattice: lattice.num_arcs)
    assert large.num_arcs > notebook.MOST_ARCS and large._repr_svg_() is None
    large.close()
    assert large._repr_svg_() is None
    # The style of a picture holds for nothing else of the page that it stands in.
    style = ET.fromstring(svg).find(f"{SVG}style").text
    assert all(line.startswith("svg.warpfst ") for line in style.strip().splitlines())


def test_results_are_drawn_as_their_lattices(tmp_path):
    result, failed = decoded(lattice_beam=3)
    for name in ("x.svg", "x.dot", "x"):
        result.draw(tmp_path / name, frame_shift=0.04)
        drawn = (tmp_path / name).read_bytes()
        result.compact_lattice.draw(tmp_path / name, frame_shift=0.04)
        assert drawn == (tmp_path / name).read_bytes()
    for one, message in ((decoded()[0], "lattice_beam"), (failed, "NaN"), (pickle.loads(pickle.dumps(result)), "unpickled")):
        with pytest.raises(wf.ArgumentError, match=message):
            one.draw(tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_fsts_for_graphviz(tmp_path):
    table = wf.Symbols(["<eps>", 'a"', "b\\"])
    fst = wf.Fst.from_arcs([(0, 1, 1, 2, 0.5), (1, 1, 2, 2, 0.0)], {1: 0.25}, isymbols=table, osymbols=table)
    for name in ("x.dot", "x.gv"):
        fst.draw(tmp_path / name)
        lines = (tmp_path / name).read_text().splitlines()
        assert lines[0] == "digraph FST {" and lines[-1] == "}"
        assert [line.strip() for line in lines if "->" in line] == ['0 -> 1 [label = "a\\":b\\\\/0.5"];', '1 -> 1 [label = "b\\\\"];']
        assert '  1 [label = "1/0.25", shape = doublecircle];' in lines and '  0 [label = "0", style = bold];' in lines
    large = wf.Fst.from_arcs([(k, k + 1, 1, 1, 0.0) for k in range(2000)], {2000: 0.0})
    large.draw(tmp_path / "large.dot")  # of any size
    assert (tmp_path / "large.dot").read_text().count("->") == 2000
    with pytest.raises(wf.LimitError):
        large.draw(tmp_path / "large.svg")


def test_tables_of_results():
    results = decoded(lattice_beam=3)
    for shown, cells in ((results, ["0", "4", "a&lt; b&amp;", "NaN"]), (results[0], ["a&lt;", "b&amp;"]), (results[1], ["NaN"])):
        table = shown._repr_html_()
        assert all(cell in table for cell in cells), table
        ET.fromstring(f"<x>{table}</x>")  # well-formed
    assert re.findall(r"<th>(\w+)</th>", results[0]._repr_html_()) == ["text", "start", "end", "label", "confidence"]
    assert notebook.table("t", ["n"], ([i] for i in range(100))).count("<tr>") == 61


def test_captions_of_results():
    failed, result = decoded()[1], decoded()[0]
    assert result.text == "a< b&"
    start, end = (result.words[0].start * 0.5, result.words[1].end * 0.5)
    clock = [f"00:00:{int(10 + seconds):02d},{int(seconds % 1 * 1000):03d}" for seconds in (start, end)]
    assert result.to_srt(0.5, start=10) == f"1\n{clock[0]} --> {clock[1]}\na< b&\n"
    assert result.to_vtt(0.5, start=10) == f"WEBVTT\n\n{clock[0]} --> {clock[1]}\na&lt; b&amp;\n".replace(",", ".")
    apart = result.to_srt(40.0)  # each word is longer than a caption may be
    assert apart.startswith("1\n") and "\n\n2\n" in apart
    with pytest.raises(wf.ArgumentError, match="NaN"):
        failed.to_srt(0.5)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="frame_shift"):
            result.to_srt(wrong)


@pytest.mark.parametrize("frame_shift", [0.0125, 0.04, 0.5])
def test_captions_of_results_are_those_of_the_program(frame_shift, rng, tmp_path):
    tokens = ["<blk>", "a&b", "x<y", "zürich", "i", "extraordinarily", "&", "amp;amp;"]
    wf.build_ctc_graph(tokens).save(tmp_path / "graph.wfst")
    program = pathlib.Path(wf.__file__).parent / "bin" / "warpfst"
    for number in range(20):
        said = np.repeat(rng.integers(0, len(tokens), 150), rng.integers(1, int(2 / frame_shift) + 2, 150))
        scores = np.full((len(said), len(tokens)), -9.0, np.float32)
        scores[range(len(said)), said] = -0.01
        np.save(tmp_path / "one.npy", scores)
        result = wf.Decoder(tmp_path / "graph.wfst").decode(scores)[0]
        assert len(result.words) > 20
        for form, text in ("srt", result.to_srt(frame_shift)), ("vtt", result.to_vtt(frame_shift)):
            command = [program, "decode", "graph.wfst", "one.npy", f"--format={form}", f"--frame-shift={frame_shift}", "-q", "-o", f"one.{form}"]
            subprocess.run(command, cwd=tmp_path, check=True)
            assert text == (tmp_path / f"one.{form}").read_text(encoding="utf-8"), (number, form)
