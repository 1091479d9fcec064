"""Streams give the same results as decoding whole utterances."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import same

import warpfst as wf


def test_streams_give_the_results_of_whole_utterances(ctc_graph, ctc_scores, rng):
    matrices = [matrix.astype(np.float32) for matrix in ctc_scores.values()][:6]
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, blank=0, lattice_beam=4)
    expected = decoder.decode(matrices)
    stream = decoder.stream(frame_shift=0.04)
    for matrix, result in zip(matrices, expected):
        begin, stable = 0, []
        while begin < len(matrix):
            count = int(rng.integers(0, 20))
            event = stream.advance(matrix[begin : begin + count])
            begin = min(begin + count, len(matrix))
            partial = stream.partial()
            assert event.num_frames == partial.num_frames == begin and partial.num_stable <= len(partial.words)
            stable = [word.text for word in partial.words[: partial.num_stable]]
            assert result.text.split()[: len(stable)] == stable
        final = stream.finish()
        assert same([final], [result]) and final.lattice.num_arcs == result.lattice.num_arcs
        with pytest.raises(wf.StateError):
            stream.advance(matrix)
        stream.reset()
    # Several streams at a time.
    streams = [decoder.stream() for _ in matrices]
    for begin in range(0, max(map(len, matrices)), 16):
        events = decoder.advance(streams, [matrix[begin : begin + 16] for matrix in matrices])
        assert [event.num_frames for event in events] == [min(begin + 16, len(matrix)) for matrix in matrices]
        assert decoder.partials(streams) == [one.partial() for one in streams]
    assert decoder.partials([]) == []
    assert same([one.finish() for one in streams], expected)
    assert stream.num_bytes > 0
    with pytest.raises(ValueError, match="1 chunks"):
        decoder.advance(streams, [matrices[0]])
    with pytest.raises(wf.StateError):
        decoder.partials(streams)  # they are finished
    decoder.close()  # also closes its streams
    for use in (lambda: stream.partial(), lambda: streams[0].reset(), lambda: decoder.stream()):
        with pytest.raises(wf.StateError):
            use()


def test_streams_that_forget(ctc_graph, ctc_scores):
    matrix = np.concatenate([m.astype(np.float32) for m in list(ctc_scores.values())[:8]])
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    stream = decoder.stream(forget=True)
    for begin in range(0, len(matrix), 20):
        stream.advance(matrix[begin : begin + 20])
        stream.partial()
    assert len(stream.finish().alignment) == 0
    for _ in range(100):  # streams are garbage-collected in mid-utterance, in any order
        decoder.stream().advance(matrix[:3])
    del decoder, stream


def test_boosts_and_errors_of_streams(ctc_graph, ctc_scores):
    matrix = ctc_scores["000030012"].astype(np.float32)
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7)
    with decoder.stream() as stream:
        stream.set_boost({"MARK": -30.0})
        stream.advance(matrix)
        assert same([stream.finish()], decoder.decode(matrix, boost={"MARK": -30.0}))
    bad = matrix.copy()
    bad[3, 3] = math.nan
    with decoder.stream() as stream:
        stream.advance(bad)
        assert decoder.partials([stream])[0] == ([], 0, 0, 0, 0)
        with pytest.raises(wf.ArgumentError, match="NaN"):
            _ = stream.finish().text
    with pytest.raises(ValueError):
        decoder.stream(silence="x")


def test_boosts_after_an_empty_chunk(ctc_graph, ctc_scores):
    """Clients send an empty chunk to open a connection, and then their boosts, which count from the start."""
    matrix = ctc_scores["000030012"].astype(np.float32)
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, lattice_beam=4)
    boost = {"MARK": -30.0, "THE": 0.25}
    expected = decoder.decode(matrix, boost=boost)
    for before in (lambda stream: stream.advance(matrix[:0]), lambda stream: stream.partial(), lambda stream: stream.partial_lattice()):
        with decoder.stream() as stream:
            before(stream)
            stream.set_boost(boost)
            stream.advance(matrix)
            result = stream.finish()
            assert same([result], expected) and np.asarray(result.lattice.arcs).tobytes() == np.asarray(expected[0].lattice.arcs).tobytes()


def test_old_name_of_the_duration_of_a_frame(ctc_graph):
    """The option of 0.2 works until 0.4, and says what it is called now."""
    silence = np.full((100, 40), -9, np.float32)
    silence[:, 0] = -0.01
    with pytest.warns(wf.InputWarning, match="frame_seconds is now frame_shift"):
        stream = wf.Decoder(ctc_graph).stream(frame_seconds=0.1)
    assert stream.advance(silence).trailing_silence == pytest.approx(10)
    with pytest.raises(wf.ArgumentError, match="no option named 'frame_seconds'"):
        wf.Decoder(ctc_graph, frame_seconds=0.1)


def test_endpoints_of_a_ctc_graph(ctc_graph):
    """Blanks are silence, also if the decoder was not told which column they are. A graph without silence says that it has none."""
    silence = np.full((100, 40), -9, np.float32)
    silence[:, 0] = -0.01
    assert wf.Decoder(ctc_graph).stream(frame_shift=0.1).advance(silence).trailing_silence == pytest.approx(10)
    plain = wf.Graph(wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.5)], {0: 0.0}))
    decoder = wf.Decoder(plain, check_scores="off")
    with pytest.warns(wf.InputWarning, match="no column of the graph counts as silence"):
        decoder.stream(frame_shift=0.1).advance(silence[:, :2].copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder.stream(frame_shift=0.1).advance(silence[:, :2].copy())  # said once
        assert wf.Decoder(plain, check_scores="off").stream(frame_shift=0.1, silence="1").advance(silence[:, :2].copy()).trailing_silence == 0


def test_lattices_in_parts(ctc_graph, ctc_scores):
    """The committed parts of a stream's lattice, joined, equal the lattice of the whole utterance."""
    matrix = np.concatenate([one.astype(np.float32) for one in list(ctc_scores.values())[:4]])
    decoder = wf.Decoder(ctc_graph, acoustic_scale=0.7, blank=0, lattice_beam=4)
    whole = decoder.decode(matrix)[0].lattice
    stream, parts = decoder.stream(), []
    assert stream.commit_lattice() is None
    for begin in range(0, len(matrix), 25):
        stream.advance(matrix[begin : begin + 25])
        part = stream.commit_lattice()
        parts += [] if part is None else [part]
    parts.append(stream.finish().lattice)
    assert len(parts) > 3
    joined, first = [], 0  # arcs of all parts, with states renumbered consecutively
    for part in parts:
        arcs = np.asarray(part.arcs).copy()
        arcs["nextstate"] += first
        joined.append(arcs)
        first += part.num_states - 1
    assert first + 1 == whole.num_states and np.concatenate(joined).tobytes() == np.asarray(whole.arcs).tobytes()
    with pytest.raises(wf.ArgumentError):
        wf.Decoder(ctc_graph).stream().commit_lattice()

ENDS = """
import gc, sys
import numpy as np
import warpfst as wf
fst = wf.Fst.from_arcs([(0, 0, 1, 1, 0.0), (0, 0, 2, 2, 0.5)], {{0: 0.0}})
graph = wf.Graph(fst)
decoder = wf.Decoder(graph, device={device!r}, lattice_beam=4)
stream = decoder.stream()
stream.set_boost({{1: 0.5}})
stream.advance(np.zeros((3, 2), np.float32))
result = decoder.decode([np.zeros((3, 2), np.float32)], boost={{2: 0.25}})[0]
class Knot: pass
knot = Knot()
knot.all = [knot, {order}]
if {forget}:
    del fst, graph, decoder, stream, result, knot
    gc.collect()
print("end")
"""


@pytest.mark.parametrize("forget", [True, False])
@pytest.mark.parametrize("order", ["decoder, stream", "stream, decoder, graph, result", "result, stream, graph, decoder, fst"])
def test_programs_end_without_errors(order, forget):
    """Decoders and streams in a reference cycle, freed by gc or still alive when the interpreter ends."""
    done = subprocess.run([sys.executable, "-c", ENDS.format(device="cpu", order=order, forget=forget)], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)


def test_old_name_of_advance_warns(ctc_graph):
    with wf.Decoder(ctc_graph).stream() as stream, pytest.warns(DeprecationWarning, match="now warpfst.Stream.advance"):
        assert stream.accept(np.full((10, 3), -1.1, np.float32)).num_frames == 10
