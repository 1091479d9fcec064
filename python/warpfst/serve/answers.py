"""Transcripts in the formats of OpenAI's /v1/audio/transcriptions, and errors in OpenAI's form."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from ..captions import captions
from ..transcribe.outputs import TimedWord, Transcript, as_srt, as_vtt

FORMATS = ("json", "verbose_json", "srt", "vtt", "text")
GRANULARITIES = ("word", "segment")
MEDIA_TYPES = {"json": "application/json", "verbose_json": "application/json", "srt": "application/x-subrip", "vtt": "text/vtt", "text": "text/plain"}


def timed(word: TimedWord) -> dict[str, Any]:
    """A word with times in seconds, and its confidence if the decoder makes lattices."""
    confidence = {} if word.confidence is None else {"confidence": round(word.confidence, 4)}
    return {"word": word.text, "start": round(word.start, 3), "end": round(word.end, 3), **confidence}


def _segment(number: int, words: Sequence[TimedWord]) -> dict[str, Any]:
    """A caption. `tokens`, `temperature`, `compression_ratio` and `no_speech_prob` are there for clients that need all of OpenAI's fields."""
    known = [max(word.confidence, 1e-10) for word in words if word.confidence is not None]
    return {
        "id": number,
        "seek": 0,
        "start": round(words[0].start, 3),
        "end": round(words[-1].end, 3),
        "text": " ".join(word.text for word in words),
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": round(sum(map(math.log, known)) / len(known), 4) if known else 0.0,
        "compression_ratio": 1.0,
        "no_speech_prob": 0.0,
    }


def verbose(transcript: Transcript, granularities: Sequence[str]) -> dict[str, Any]:
    """verbose_json. Segments are captions."""
    return {
        "task": "transcribe",
        "language": "",
        "duration": round(transcript.seconds, 3),
        "text": transcript.text,
        **({"words": [timed(word) for word in transcript.words]} if "word" in granularities else {}),
        **({"segments": [_segment(number, words) for number, words in enumerate(captions(transcript.words))]} if "segment" in granularities else {}),
    }


def usage(seconds: float) -> dict[str, Any]:
    return {"type": "duration", "seconds": math.ceil(seconds)}


def body(transcript: Transcript, form: str, granularities: Sequence[str]) -> str:
    """The body of the answer."""
    if form == "json":
        return json.dumps({"text": transcript.text, "usage": usage(transcript.seconds)}, ensure_ascii=False)
    if form == "verbose_json":
        return json.dumps(verbose(transcript, granularities), ensure_ascii=False)
    return as_srt(transcript) if form == "srt" else as_vtt(transcript) if form == "vtt" else transcript.text + "\n"


def error(status: int, message: object, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": str(message), "type": kind, "param": param, "code": code}}
