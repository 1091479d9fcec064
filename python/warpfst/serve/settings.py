"""Settings and limits of the server, and how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Limits(NamedTuple):
    """What the server takes before it refuses.

    upload_bytes    of a request's body
    audio_seconds   of a recording
    upload_seconds  in which a request's headers, and then its body, must arrive
    queue           requests that are received, wait or run at a time
    streams         live connections at a time
    idle_seconds    after which a live connection that sends nothing is closed
    send_seconds    after which a live connection that reads nothing is closed
    stop_seconds    for requests and utterances that have begun when the server stops
    """

    upload_bytes: int = 100 << 20
    audio_seconds: float = 7200.0
    upload_seconds: float = 120.0
    queue: int = 64
    streams: int = 64
    idle_seconds: float = 30.0
    send_seconds: float = 10.0
    stop_seconds: float = 30.0


class Windowing(NamedTuple):
    """Windows of live audio, in seconds: `step` is new, `left` before and `right` after it are context for the model. `begin_db`: an utterance begins with a frame louder than this."""

    left: float = 8.0
    step: float = 0.32
    right: float = 0.48
    begin_db: float = -34.0


class Settings(NamedTuple):
    """Settings of the server.

    models         name -> folder or FILE.py:NAME, as for `warpfst transcribe --model`; the first is the default
    graphs         name -> file of the graph, as for `warpfst transcribe --graph`
    device         cpu, cuda or cuda:N
    options        options of the decoder; without lattice_beam here or in the model, it is 8, so that words have confidences
    num_threads    of the model and of the search; 0: one per processor
    batch_seconds  seconds of audio in a batch, with padding
    max_seconds    recordings are cut into pieces of at most so many seconds
    api_keys       one of them must be sent; empty: none is needed
    admin_key      lets models be loaded again over HTTP; None: they cannot
    origins        other sites whose pages may use the server, such as https://example.org
    """

    models: Mapping[str, str]
    graphs: Mapping[str, str] = {}
    device: str = "cpu"
    options: Mapping[str, Any] = {}
    num_threads: int = 0
    batch_seconds: float = 60.0
    max_seconds: float = 30.0
    windowing: Windowing = Windowing()
    limits: Limits = Limits()
    api_keys: frozenset[str] = frozenset()
    admin_key: str | None = None
    origins: frozenset[str] = frozenset()


class Refused(Exception):
    """A request is not answered. `status` of HTTP; `code` and `param` as in OpenAI's errors; `retry_after`: seconds."""

    def __init__(self, status: int, message: object, code: str | None = None, *, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(str(message))
        self.status, self.code, self.param, self.retry_after = status, code, param, retry_after


def checked_phrases(value: Any) -> dict[str, float | None]:
    """Phrases with their boosts from JSON: {"phrase": nats or null} or a list of phrases. ValueError if it is neither."""
    if isinstance(value, list):
        value = dict.fromkeys(value) if all(isinstance(one, str) for one in value) else None
    if not isinstance(value, dict):
        raise ValueError('expected {"phrase": nats or null, ...} or a list of phrases')  # noqa: TRY004 - of JSON
    phrases: dict[str, float | None] = {}
    for phrase, nats in value.items():
        if nats is not None and (isinstance(nats, bool) or not isinstance(nats, (int, float)) or not abs(nats) <= 1e6):
            raise ValueError(f"{phrase!r}: the boost is {nats!r}, expected a number of nats or null")
        if phrase.strip() and "\0" not in phrase:
            phrases[" ".join(phrase.split())] = None if nats is None else float(nats)
    return phrases
