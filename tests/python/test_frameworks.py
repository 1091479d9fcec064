"""Arrays of other frameworks as scores: jax on the CPU, and cupy's use of DLPack (with fake_tensors; test_gpu.py uses the real cupy)."""

import numpy as np
import pytest
from fake_tensors import FakeTensor

import warpfst as wf

jax = pytest.importorskip("jax")


@pytest.fixture(scope="module")
def decoder():
    return wf.Decoder(wf.build_ctc_graph(["<blk>", "a", "b", "c"]), blank=0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_jax(decoder, rng, dtype):
    import jax.numpy as jnp

    batch = jax.nn.log_softmax(jnp.asarray(rng.normal(0, 2, (3, 25, 4)), getattr(jnp, dtype)))
    lengths = jnp.array([25, 11, 0])
    rounded = np.asarray(batch.astype(jnp.float32))
    expected = decoder.decode(rounded, [25, 11, 0])
    for scores, frames in ((batch, lengths), (batch, [25, 11, 0]), ([batch[0], batch[1, :11], batch[2, :0]], None)):
        assert [(r.text, r.cost, r.words) for r in decoder.decode(scores, frames)] == [(r.text, r.cost, r.words) for r in expected]
    stream = decoder.stream()
    for begin in range(0, 25, 6):
        stream.advance(batch[0, begin : begin + 6])
    assert stream.finish().cost == expected[0].cost


def test_jax_arrays_of_a_wrong_type(decoder):
    with pytest.raises(TypeError, match="int32"):
        decoder.decode(jax.numpy.zeros((1, 5, 4), "int32"))


def test_cupy_arrays_get_the_arguments_that_cupy_expects():
    """cupy 13 supports DLPack without max_version. It expects the stream as a number; 1 is the legacy default stream."""
    from warpfst.scores import Batch

    array = FakeTensor(np.zeros((2, 5, 4), np.float16), device=(2, 3))
    batch = Batch(array, np.array([5, 2]))
    assert batch.device == 3 and [scores.num_frames for scores in batch.scores] == [5, 2] and array.calls[-1] == (1, {})
