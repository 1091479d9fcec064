"""Reads and checks config.json of a model folder: the keys, their types and ranges. An error message is one line that names the file and the key."""

from __future__ import annotations

import difflib
import json
import pathlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from ..errors import Error
from ..option_tables import names
from ..options import DecoderConfig
from .audio import MAX_RATE, MIN_RATE

_WINDOWS = ("povey", "hanning", "hann", "hamming", "rectangular", "blackman", "sine")
GRAPH_PATHS = ("file", "lexicon", "lm", "grammar", "phrases", "words", "merges")
_MAX_BYTES = 1 << 20


class ConfigError(ValueError):
    """A model configuration that is wrong, or does not fit to the model."""


class _Number(NamedTuple):
    minimum: float
    maximum: float
    default: float
    whole: bool = False

    def wrong(self, value: object) -> str | None:
        kind = "a whole number" if self.whole else "a number"
        types = (int,) if self.whole else (int, float)
        right = isinstance(value, types) and not isinstance(value, bool) and self.minimum <= value <= self.maximum
        return None if right else f"expected {kind} from {self.minimum:g} to {self.maximum:g}"


class _Text(NamedTuple):
    default: str | None = None
    choices: tuple[str, ...] = ()

    def wrong(self, value: object) -> str | None:
        if self.choices:
            return None if value in self.choices else f"expected one of {', '.join(self.choices)}"
        return None if isinstance(value, str) and value and "\0" not in value else "expected text"


class _Bool(NamedTuple):
    default: bool

    def wrong(self, value: object) -> str | None:
        return None if isinstance(value, bool) else "expected true or false"


_ACOUSTIC_MODEL = {"file": _Text("model.onnx"), "features": _Text(), "feature_lengths": _Text(), "log_probs": _Text(), "lengths": _Text(), "transducer": _Text()}
_FEATURES = {
    "sample_rate": _Number(MIN_RATE, MAX_RATE, 16000, whole=True),
    "num_mel_bins": _Number(3, 4096, 80, whole=True),
    "frame_length_ms": _Number(1, 1000, 25.0),
    "frame_shift_ms": _Number(1, 1000, 10.0),
    "window": _Text("povey", _WINDOWS),
    "low_freq": _Number(0, MAX_RATE / 2, 20.0),
    "high_freq": _Number(-MAX_RATE / 2, MAX_RATE / 2, 0.0),
    "preemphasis": _Number(0, 1, 0.97),
    "sample_scale": _Number(1e-6, 1e9, 32768.0),
    "snip_edges": _Bool(True),
}
_FRAME_SHIFT = _Number(0.001, 10, 0)
_SECTIONS = ("acoustic_model", "features", "graph", "decoder")
_TOP = (*_SECTIONS, "tokens", "frame_shift", "about")


class Config(NamedTuple):
    """A checked config.json. `acoustic_model` and `features` have all keys, with defaults; `graph` and `decoder` have only the keys of the file."""

    path: pathlib.Path
    acoustic_model: dict[str, Any]
    features: dict[str, Any]
    graph: dict[str, Any]
    decoder: dict[str, Any]
    tokens: pathlib.Path
    frame_shift: float

    def fail(self, key: str, why: object) -> NoReturn:
        _fail(self.path, key, why)

    @contextmanager
    def errors_at(self, key: str) -> Iterator[None]:
        """Within this context, error messages are prefixed with the file and the key."""
        with _errors_at(self.path, key):
            yield

    def file(self, name: str) -> pathlib.Path:
        return self.path.parent / name


def _fail(path: pathlib.Path, key: str, why: object) -> NoReturn:
    lines = str(why).split("\n")
    raise ConfigError(f"{path}: {key}: {lines[0]}") from None


@contextmanager
def _errors_at(path: pathlib.Path, key: str) -> Iterator[None]:
    try:
        yield
    except (Error, ValueError, TypeError, OSError) as why:
        _fail(path, key, why)


def _known() -> dict[str, set[str]]:
    """The keys of each section."""
    graph = {*GRAPH_PATHS, *names("ctc_graph"), *names("lexicon"), *names("arpa")}
    return {"acoustic_model": {*_ACOUSTIC_MODEL}, "features": {*_FEATURES}, "graph": graph, "decoder": {*names("decoder")}, "": {*_TOP}}


def _check_names(path: pathlib.Path, given: Iterable[str], section: str = "") -> None:
    """`section`: "" for the keys that are in no section."""
    known = _known()
    for name in given:
        if name not in known[section]:
            others = [repr(other) if other else "no section" for other, keys in known.items() if name in keys]
            near = difflib.get_close_matches(name, sorted(known[section]), 1)
            hint = f"it belongs in {' or '.join(others)}" if others else f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known[section]))}"
            _fail(path, f"{section}.{name}" if section else name, f"unknown key; {hint}")


def _filled(path: pathlib.Path, section: str, given: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    _check_names(path, given, section)
    for name, value in given.items():
        if (why := schema[name].wrong(value)) is not None:
            _fail(path, f"{section}.{name}", f"{json.dumps(value)[:80]}: {why}")
    return {name: given.get(name, kind.default) for name, kind in schema.items()}


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the key {name!r} is given twice")
        found[name] = value
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid number in JSON")


def _load(path: pathlib.Path) -> dict[str, Any]:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"{path}: more than {_MAX_BYTES} bytes, so it is not a model configuration")
    try:
        config = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as why:
        raise ValueError(f"{path}:{why.lineno}:{why.colno}: not JSON: {why.msg}") from None
    except (ValueError, RecursionError) as why:
        raise ValueError(f"{path}: {why}") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path}: expected an object, {{...}}")  # noqa: TRY004
    return config


def is_text_fst(path: pathlib.Path) -> bool:
    """Is it an fst as text? It has a name that ends in .txt, as a grammar in JSGF may have, too."""
    if path.suffix != ".txt":
        return False
    if not path.is_file():
        return True  # and an error when it is read
    with path.open("rb") as file:
        return not file.read(8).removeprefix(b"\xef\xbb\xbf").startswith(b"#JSGF")


def _check_graph(path: pathlib.Path, graph: dict[str, Any]) -> None:
    _check_names(path, graph, "graph")
    for name, value in graph.items():
        if name in GRAPH_PATHS and (why := _Text().wrong(value)) is not None:
            _fail(path, f"graph.{name}", f"{json.dumps(value)[:80]}: {why}")
    if "file" in graph and len(graph) > 1:
        _fail(path, "graph", f"'file' is a complete graph; it cannot be combined with {', '.join(sorted({*graph} - {'file'}))}")
    if "grammar" in graph and "words" not in graph and is_text_fst(path.parent / graph["grammar"]):
        _fail(path, "graph.grammar", "a grammar in text form needs 'words', its symbol table of words")


def _check_band(path: pathlib.Path, features: dict[str, Any]) -> None:
    nyquist = features["sample_rate"] / 2
    high = features["high_freq"] if features["high_freq"] > 0 else nyquist + features["high_freq"]
    if high - features["low_freq"] < features["num_mel_bins"] and features["low_freq"] < high:
        _fail(path, "features", f"{features['num_mel_bins']} mel bins between {features['low_freq']:g} and {high:g} Hz: expected at least 1 Hz for each")
    if not features["low_freq"] < high <= nyquist:
        _fail(path, "features", f"low_freq {features['low_freq']:g}, high_freq {high:g}: expected low_freq < high_freq <= {nyquist:g}, half of the sample rate")


def read_config(path: pathlib.Path) -> Config:
    config = _load(path)
    _check_names(path, config)
    for name in _SECTIONS:
        if not isinstance(config.get(name, {}), dict):
            _fail(path, name, "expected an object, {...}")
    if "frame_shift" not in config:
        _fail(path, "frame_shift", "missing: the seconds from one frame of the model's outputs to the next")
    tokens = config.get("tokens", "tokens.txt")
    for name, value, kind in (("frame_shift", config["frame_shift"], _FRAME_SHIFT), ("tokens", tokens, _Text())):
        if (why := kind.wrong(value)) is not None:
            _fail(path, name, f"{json.dumps(value)[:80]}: {why}")
    features = _filled(path, "features", config.get("features", {}), _FEATURES)
    _check_band(path, features)
    graph, decoder = config.get("graph", {}), config.get("decoder", {})
    _check_graph(path, graph)
    _check_names(path, decoder, "decoder")
    for name, value in decoder.items():
        with _errors_at(path, f"decoder.{name}"):
            DecoderConfig(**{name: value})
    with _errors_at(path, "decoder"):
        DecoderConfig(**decoder)
    acoustic = _filled(path, "acoustic_model", config.get("acoustic_model", {}), _ACOUSTIC_MODEL)
    return Config(path, acoustic, features, graph, decoder, path.parent / tokens, float(config["frame_shift"]))
