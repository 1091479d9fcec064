"""Streams for asyncio: results, batching, errors, cancellation. The event loop must run while the decoder works."""

import asyncio
import contextlib
import threading

import numpy as np
import pytest
from conftest import same

import warpfst as wf


@pytest.fixture
def matrices(ctc_scores):
    return [matrix.astype(np.float32) for matrix in list(ctc_scores.values())[:12]]


@pytest.fixture
def decoder(ctc_graph):
    with wf.Decoder(ctc_graph, acoustic_scale=0.7, num_threads=2) as decoder:
        yield decoder


def run(main):
    """Runs it, and fails if it hangs."""
    return asyncio.run(asyncio.wait_for(main, 30))


class Gate:
    """Holds the calls of decoder.advance until it is opened, and counts the chunks of each."""

    def __init__(self, decoder, monkeypatch):
        self.open, self.entered, self.sizes, advance = threading.Event(), threading.Event(), [], decoder.advance

        def held(streams, chunks):
            self.entered.set()
            self.open.wait(30)
            self.sizes.append(len(streams))
            return advance(streams, chunks)

        monkeypatch.setattr(decoder, "advance", held)

    async def advance(self, stream, chunk):
        """Starts a call, and waits until its chunk is held in the decoder's thread."""
        task = asyncio.create_task(stream.advance(chunk))
        while not self.entered.is_set():
            await asyncio.sleep(0.001)
        return task


async def spoken(streams, matrix, size, texts=None):
    """The result of an utterance that comes in chunks."""
    async with streams.stream(frame_shift=0.04) as stream:
        for begin in range(0, len(matrix), size):
            event, partial = await stream.advance(matrix[begin : begin + size])
            assert event.num_frames == partial.num_frames == min(begin + size, len(matrix))
            if texts is not None:
                texts.append(partial.text)
        return await stream.finish()


def test_many_streams_give_the_results_of_whole_utterances(decoder, matrices):
    expected, texts = decoder.decode(matrices), []

    async def main():
        streams = wf.AsyncStreams(decoder)
        return await asyncio.gather(*(spoken(streams, matrix, 5 + i, texts if i == 0 else None) for i, matrix in enumerate(matrices)))

    assert same(run(main()), expected)
    assert texts[-1] == expected[0].text and texts[0] != texts[-1]


def test_the_loop_runs_while_chunks_wait_and_they_are_decoded_together(decoder, matrices, monkeypatch):
    gate = Gate(decoder, monkeypatch)

    async def main():
        streams = wf.AsyncStreams(decoder)
        async with contextlib.AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(streams.stream()) for _ in matrices]
            tasks = [await gate.advance(opened[0], matrices[0])]
            tasks += [asyncio.create_task(stream.advance(matrix)) for stream, matrix in zip(opened[1:], matrices[1:])]
            while len(streams._waiting) < len(matrices) - 1:  # this only ends if the loop runs meanwhile
                await asyncio.sleep(0.001)
            assert not any(task.done() for task in tasks)
            gate.open.set()
            await asyncio.gather(*tasks)
            return [await stream.finish() for stream in opened]

    results = run(main())
    assert gate.sizes == [1, len(matrices) - 1]
    assert same(results, decoder.decode(matrices))


def test_a_bad_chunk_fails_alone(decoder, matrices, monkeypatch):
    gate = Gate(decoder, monkeypatch)

    async def main():
        streams = wf.AsyncStreams(decoder, partials=False)
        async with streams.stream() as first, streams.stream() as bad, streams.stream() as good:
            tasks = [await gate.advance(first, matrices[0])]
            tasks += [asyncio.create_task(stream.advance(chunk)) for stream, chunk in ((bad, np.zeros(3)), (good, matrices[1]))]
            while len(streams._waiting) < 2:
                await asyncio.sleep(0.001)
            gate.open.set()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(answers[1], Exception) and "dimension" in str(answers[1]) or "shape" in str(answers[1])
            assert answers[0][0].num_frames == len(matrices[0]) and answers[2] == (answers[2][0], None)
            assert (await good.finish()).text == decoder.decode([matrices[1]])[0].text
            event, _ = await bad.advance(matrices[2])  # nothing of the bad chunk was decoded
            assert event.num_frames == len(matrices[2])

    run(main())


def test_cancelled_callers_and_closed_decoders(decoder, matrices, monkeypatch):
    gate = Gate(decoder, monkeypatch)

    async def main():
        streams = wf.AsyncStreams(decoder)
        async with streams.stream() as first, streams.stream() as second:
            held = await gate.advance(first, matrices[0])
            late = asyncio.create_task(second.advance(matrices[1][:4]))
            while len(streams._waiting) < 1:
                await asyncio.sleep(0.001)
            held.cancel()  # in the thread already: decoded, but nobody hears of it
            late.cancel()  # not begun: dropped
            await asyncio.gather(held, late, return_exceptions=True)
            assert held.cancelled() and late.cancelled()
            again = asyncio.create_task(second.advance(matrices[1]))
            gate.open.set()
            event, _ = await again
            assert event.num_frames == len(matrices[1])
            assert (await first.finish()).text == decoder.decode([matrices[0]])[0].text
            await first.reset()
            await first.set_boost({"MARK": 2.0})
            decoder.close()
            with pytest.raises(wf.StateError):
                await second.advance(matrices[1])
            with pytest.raises(wf.StateError, match="closed"):
                await second.finish()
        with pytest.raises(ValueError, match="not open"):
            await first.reset()

    run(main())
