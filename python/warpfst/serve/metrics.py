"""Counters for Prometheus, at /metrics."""

from __future__ import annotations

from typing import Any

from ..transcribe.audio import need

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        client = need("prometheus_client", "serve")
        self.registry = client.CollectorRegistry()
        self._latest = client.generate_latest
        self.content_type: str = client.CONTENT_TYPE_LATEST

        def made(kind: str, name: str, text: str, labels: tuple[str, ...] = (), **options: object) -> Any:
            return getattr(client, kind)(f"warpfst_{name}", text, labels, registry=self.registry, **options)

        self.requests = made("Counter", "requests", "Answers over HTTP", ("path", "status"))
        self.request_seconds = made("Histogram", "request_seconds", "Seconds from the begin of a request to its answer", ("path",), buckets=_SECONDS)
        self.refused = made("Counter", "refused", "Requests and streams that were refused", ("code",))
        self.audio_seconds = made("Counter", "audio_seconds", "Seconds of audio that were decoded", ("model", "kind"))
        self.queue = made("Gauge", "queue", "Requests that are received, wait or run")
        self.streams = made("Gauge", "streams", "Live connections")
        self.finals = made("Counter", "utterances", "Utterances of live connections", ("model",))
        self.live_seconds = made("Histogram", "live_seconds", "Seconds from the arrival of live audio to its words", buckets=_SECONDS)
        self.batch_items = made("Histogram", "batch_items", "Pieces and windows in a batch of the acoustic model", ("model",), buckets=_ITEMS)
        self.batch_seconds = made("Histogram", "batch_seconds", "Seconds that the acoustic model takes for a batch", ("model",), buckets=_SECONDS)

    def text(self) -> bytes:
        """All counters in Prometheus' text format."""
        made: bytes = self._latest(self.registry)
        return made
