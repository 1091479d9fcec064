"""triton_load.py PLAN RESULTS - one client process of bench triton: plays streams of speech to a Triton server over one gRPC stream, with NVIDIA's tritonclient.

Every stream plays utterances one after the other, each as a sequence of its own. A chunk is due when its last frame has been spoken. It is sent then, whether or not the answers to
earlier chunks are there. Its latency ends when its answer is there.
"""
import heapq
import json
import pathlib
import random
import sys
import threading
import time

import numpy
import tritonclient.grpc as triton


class Speaker:
    """A stream. Chunks are due every plan["chunk_s"] seconds, or, with "poisson", after exponentially distributed times with this mean."""

    def __init__(self, number, plan, utterances):
        self.plan, self.utterances, self.random = plan, utterances, random.Random(number)
        self.number, self.count, self.first = number, 0, 0
        self.utterance = number * 7919 % len(utterances)
        self.due = plan["start"] + self.random.random() * plan["chunk_s"]
        self.boosts = None
        if self.random.random() < plan["boosted"]:
            phrases = (" ".join(self.random.choices(plan["words"], k=self.random.choice((2, 3)))) for _ in range(plan["phrases"]))
            self.boosts = "\n".join(f"{phrase} 3" for phrase in phrases)

    def next_chunk(self):
        """(scores, starts, ends, sequence id). Moves on to the next chunk."""
        scores, size = self.utterances[self.utterance][1], self.plan["chunk_frames"]
        chunk, starts = scores[self.first:self.first + size], self.first == 0
        sequence = self.number * 100000 + self.count + 1
        self.first += size
        ends = self.first >= len(scores)
        if ends:
            self.first, self.count, self.utterance = 0, self.count + 1, (self.utterance + 1) % len(self.utterances)
        following = min(size, len(self.utterances[self.utterance][1]) - self.first) * self.plan["frame_s"]
        self.due += self.random.expovariate(1 / following) if self.plan["poisson"] else following
        return chunk, starts, ends, sequence


class Client:
    def __init__(self, plan):
        self.client = triton.InferenceServerClient(f"127.0.0.1:{plan['port']}")
        self.outputs = [triton.InferRequestedOutput(name) for name in ("TEXT", "STABLE", "FLAGS")]
        self.waiting, self.latencies, self.results, self.errors, self.lock = {}, [], [], [], threading.Lock()
        self.client.start_stream(self.answered)

    def send(self, number, due, speaker):
        key = speaker.utterances[speaker.utterance][0]
        chunk, starts, ends, sequence = speaker.next_chunk()
        scores = triton.InferInput("SCORES", (1, *chunk.shape), "FP32")
        scores.set_data_from_numpy(chunk[None])
        parameters = {"boosts": speaker.boosts} if starts and speaker.boosts else None
        self.waiting[str(number)] = (due, time.monotonic() - due, len(chunk), key if ends else None, speaker.boosts is not None)
        self.client.async_stream_infer("warpfst", [scores], request_id=str(number), outputs=self.outputs, sequence_id=sequence, sequence_start=starts, sequence_end=ends,
                                       parameters=parameters)

    def answered(self, result, error):
        now = time.monotonic()
        if error is not None:
            self.errors.append(str(error))
            return
        due, late, frames, key, boosted = self.waiting.pop(result.get_response().id)
        self.latencies.append((due, (now - due) * 1e3, late * 1e3, frames))
        if key is not None:
            self.results.append((key, result.as_numpy("TEXT").flat[0].decode(), int(result.as_numpy("FLAGS").flat[0]), boosted))


def play(plan, client, utterances):
    speakers = [Speaker(number, plan, utterances) for number in plan["streams"]]
    queue = [(speaker.due, i) for i, speaker in enumerate(speakers)]
    heapq.heapify(queue)
    number = 0
    while queue[0][0] < plan["until"] and not client.errors:
        due, i = queue[0]
        time.sleep(max(0, due - time.monotonic()))
        try:
            client.send(number, due, speakers[i])
        except triton.InferenceServerException as error:  # the stream has ended
            client.errors.append(str(error))
            break
        heapq.heapreplace(queue, (speakers[i].due, i))
        number += 1
    stop = time.monotonic() + 20
    while client.waiting and not client.errors and time.monotonic() < stop:
        time.sleep(0.01)
    client.client.stop_stream(cancel_requests=bool(client.waiting))


def main():
    plan = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.setswitchinterval(0.0005)  # the thread that receives answers must not wait for the one that sends
    utterances = [(path.stem, numpy.load(path).astype(numpy.float32)) for path in sorted(pathlib.Path(plan["scores"]).glob("*.npy"))]
    client = Client(plan)
    play(plan, client, utterances)
    found = {"latencies": client.latencies, "results": client.results, "errors": client.errors[:3], "unanswered": len(client.waiting)}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
