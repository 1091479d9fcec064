"""Model folders: compute scores from samples, and make the decoder for these scores.

own      a class of the user's, derived from Model or ArrayModel
CTC      config.json (docs/how-to/transcribe.md) names an ONNX model with log-mel features as input, its tokens, and a graph or the parts to build one
hybrid   a CMU Sphinx model as it is distributed; pocketsphinx_batch computes the scores
"""

from __future__ import annotations

import importlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..decoder import Decoder
from ..fst.container import Fst
from ..graphs import Graph, build_ctc_graph, build_hmm_graph
from ..lexicon import token_labels
from ..lm import LM
from ..options import DecoderConfig
from ..scores import ScoreReader
from ..symbols import Symbols
from . import audio
from .audio import need
from .config import GRAPH_PATHS, is_text_fst, read_config

if TYPE_CHECKING:
    import numpy as np

_SCORE_ALL = ["-adcin", "yes", "-cepext", ".wav", "-adchdr", "44", "-compallsen", "yes", "-remove_silence", "no", "-remove_noise", "no", "-hyp", "/dev/null"]
_LM_THRESHOLD = 1e-7  # prunes the language model distributed with Sphinx, so that the graph can be built on a small machine


class Model:
    """The interface of a model. Derive your own from it, for example around a torch model: `scores`, `build_graph` and the first three attributes are needed.

    It is made by NAME(device, num_threads), with `--model FILE.py:NAME`. One thread uses it at a time. Times of results are frames of `frame_shift` seconds.
    """

    sample_rate: int
    frame_shift: float
    decoder_options: dict[str, Any] = {}  # noqa: RUF012 - never modified
    transducer: pathlib.Path | None = None  # its file: `scores` are then encoder outputs
    files: Sequence[pathlib.Path] = ()  # the files that the model is read from; a recording that was begun with others begins again

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """The scores of pieces of audio, float32 [samples] in [-1, 1], as (log_probs, lengths) for Decoder.decode."""
        raise NotImplementedError

    def build_graph(self) -> Graph:
        """The decoding graph. Not called if a file with the graph is given."""
        raise NotImplementedError

    def text_graph(self, text: str) -> Graph:
        """The graph of one text, words separated by spaces, whose decoding finds when they are said. NotImplementedError: the model cannot align."""
        raise NotImplementedError

    def seconds(self, path: pathlib.Path) -> float:
        """The duration of a recording, which batches are made by."""
        return audio.seconds(path)

    def pieces(self, path: pathlib.Path, max_seconds: float, start: int = 0) -> Iterator[tuple[int, np.ndarray]]:
        """The pieces of a recording as (begin, samples), from sample `start` on, which is the begin of a piece."""
        return audio.pieces(path, self.sample_rate, max_seconds, start)

    def decoder(self, graph_file: pathlib.Path | None, options: dict[str, Any]) -> Decoder:
        """Makes a decoder. The graph is read from `graph_file` if that exists, else built and written to `graph_file` (None: not written)."""
        if graph_file is not None and graph_file.exists():
            graph = Graph.load(graph_file)
        else:
            graph = self.build_graph()
            if graph_file is not None:
                graph.save(graph_file)
        config = DecoderConfig(**{**self.decoder_options, **options})
        return Decoder(graph, config, determinize=config["lattice_beam"] > 0, transducer=self.transducer)  # determinize: confidences, by all threads


class ArrayModel(Model):
    """A model of arrays in files instead of audio: log-probabilities or features, [rows, columns]. They are not cut. `sample_rate` is the number of rows in a second.

    By default, files are numpy's (.npy) and have log-probabilities; override `read` for other files, and `scores` for features.
    """

    def read(self, path: pathlib.Path) -> np.ndarray:
        """The array of a file. It is read twice, the first time for its length."""
        import numpy as np

        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        return array

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        return list(pieces), None

    def seconds(self, path: pathlib.Path) -> float:
        return len(self.read(path)) / self.sample_rate

    def pieces(self, path: pathlib.Path, max_seconds: float, start: int = 0) -> Iterator[tuple[int, np.ndarray]]:
        if start == 0:
            yield 0, self.read(path)


class CtcModel(Model):
    """An ONNX acoustic model with CTC outputs, or an encoder and a transducer."""

    def __init__(self, folder: pathlib.Path, device: str, num_threads: int) -> None:
        self._config = config = read_config(folder / "config.json")
        self._names = {role: name for role, name in config.acoustic_model.items() if role not in ("file", "transducer")}
        transducer = config.acoustic_model["transducer"]
        self.transducer = None if transducer is None else config.file(transducer)
        self.sample_rate, self.frame_shift, self.decoder_options = config.features["sample_rate"], config.frame_shift, config.decoder
        graph_files = [config.file(value) for name, value in config.graph.items() if name in GRAPH_PATHS]
        self.files = [config.path, config.file(config.acoustic_model["file"]), config.tokens, *graph_files, *([self.transducer] if self.transducer is not None else [])]
        self._fbank_options = self._make_fbank_options()
        self._session = self._open_session(device, num_threads)

    def _open_session(self, device: str, num_threads: int) -> Any:
        runtime, config = need("onnxruntime"), self._config
        options = runtime.SessionOptions()
        options.intra_op_num_threads = num_threads
        providers: list[Any] = ["CPUExecutionProvider"]
        if device.startswith("cuda") and "CUDAExecutionProvider" in runtime.get_available_providers():
            providers.insert(0, "CUDAExecutionProvider")
        try:
            session = runtime.InferenceSession(str(config.file(config.acoustic_model["file"])), options, providers=providers)
        except Exception as why:  # noqa: BLE001 - onnxruntime's exceptions have no common base class
            config.fail("acoustic_model.file", why)
        self._name_values(session.get_inputs(), ("features", "feature_lengths"), "input")
        self._name_values(session.get_outputs(), ("log_probs", "lengths"), "output")
        shapes = {value.name: value.shape for value in session.get_inputs()}
        shape, num_bins = shapes[self._names["features"]], config.features["num_mel_bins"]
        if len(shape) != 3 or (isinstance(shape[2], int) and shape[2] != num_bins):
            config.fail("features.num_mel_bins", f"{num_bins}: the model's input {self._names['features']!r} is {shape}, expected [B, T, {num_bins}]")
        self._num_columns = next((value.shape[-1] for value in session.get_outputs() if value.name == self._names["log_probs"] and value.shape), None)
        return session

    def _name_values(self, values: Sequence[Any], roles: tuple[str, str], kind: str) -> None:
        """Sets the names of inputs or outputs that config.json does not give: by default the first and the second of the model."""
        there = [value.name for value in values]
        for role, default in zip(roles, [*there, None, None]):
            if self._names[role] is None:
                self._names[role] = default
            if self._names[role] not in there and (self._names[role] is not None or role == roles[0]):
                self._config.fail(f"acoustic_model.{role}", f"{self._names[role]!r}: no such {kind} of the model; it has {', '.join(there) or 'none'}")

    def _make_fbank_options(self) -> Any:
        given, fbank = self._config.features, need("kaldi_native_fbank")
        options = fbank.FbankOptions()
        frames, mels = options.frame_opts, options.mel_opts
        frames.samp_freq, frames.dither, frames.snip_edges = self.sample_rate, 0.0, given["snip_edges"]
        frames.frame_length_ms, frames.frame_shift_ms = given["frame_length_ms"], given["frame_shift_ms"]
        frames.window_type, frames.preemph_coeff = given["window"], given["preemphasis"]
        mels.num_bins, mels.low_freq, mels.high_freq = given["num_mel_bins"], given["low_freq"], given["high_freq"]
        with self._config.errors_at("features"):
            fbank.OnlineFbank(options)
        return options

    def features(self, samples: np.ndarray) -> np.ndarray:
        """[frames, bins] log-mel energies, like those of Kaldi's compute-fbank-feats."""
        import numpy as np

        fbank = need("kaldi_native_fbank").OnlineFbank(self._fbank_options)
        fbank.accept_waveform(self.sample_rate, samples * self._config.features["sample_scale"])
        fbank.input_finished()
        frames = [fbank.get_frame(i) for i in range(fbank.num_frames_ready)]
        return np.stack(frames) if frames else np.zeros((0, self._fbank_options.mel_opts.num_bins), np.float32)

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        import numpy as np

        features = [self.features(piece) for piece in pieces]
        lengths = np.array([len(one) for one in features], dtype=np.int64)
        # Models with subsampling need a minimum number of frames. Padding after the end is ignored (feature_lengths).
        batch = np.zeros((len(features), max(int(lengths.max(initial=0)), 16), features[0].shape[1] if features else 1), np.float32)
        for row, one in zip(batch, features):
            row[: len(one)] = one
        names = [name for name in (self._names["log_probs"], self._names["lengths"]) if name]
        inputs = {self._names["features"]: batch}
        if self._names["feature_lengths"]:
            inputs[self._names["feature_lengths"]] = np.maximum(lengths, 1)
        try:
            log_probs, *out = self._session.run(names, inputs)
        except ValueError as why:  # inputs that do not fit to the model, whatever the recording is
            self._config.fail("acoustic_model", why)
        except Exception as why:  # noqa: BLE001 - onnxruntime's exceptions have no common base class
            raise RuntimeError(f"the acoustic model fails: {str(why).splitlines()[0]}") from None
        if log_probs.ndim != 3 or len(log_probs) != len(batch) or any(lengths.shape != (len(batch),) for lengths in out):
            shapes = ", ".join(str(list(value.shape)) for value in (log_probs, *out))
            self._config.fail("acoustic_model", f"outputs {', '.join(names)} of shapes {shapes} for a batch of {len(batch)}, expected [B, U, tokens] and [B]")
        frames = out[0] if out else np.ceil(lengths * log_probs.shape[1] / max(batch.shape[1], 1)).astype(np.int64)
        return log_probs, np.where(lengths > 0, np.minimum(frames, log_probs.shape[1]), 0)

    def build_graph(self) -> Graph:
        config = self._config
        parts: dict[str, Any] = {name: config.file(value) if name in GRAPH_PATHS else value for name, value in config.graph.items()}
        with config.errors_at("graph"):
            if "file" in parts:
                return Graph.load(parts["file"])
            if "grammar" in parts and is_text_fst(parts["grammar"]):
                parts["words"] = words = Symbols.read(parts["words"])
                parts["grammar"] = Fst.compile(parts["grammar"], words, words, acceptor=True)
            _, num_tokens = token_labels(config.tokens)
            if self.transducer is not None:
                return build_ctc_graph(config.tokens, **{"topology": "transducer", **parts})
            graph = build_ctc_graph(config.tokens, **parts)
        if isinstance(self._num_columns, int) and self._num_columns < num_tokens:
            why = f"the output {self._names['log_probs']!r} has {self._num_columns} columns, {config.tokens} has {num_tokens} tokens"
            config.fail("acoustic_model.log_probs", why)
        return graph

    def text_graph(self, text: str) -> Graph:
        config = self._config
        kept = {name: value for name, value in config.graph.items() if name not in ("file", "lm", "grammar", "words")}
        parts: dict[str, Any] = {name: config.file(value) if name in GRAPH_PATHS else value for name, value in kept.items()}
        parts.update(phrases=[text], oov="error")
        if self.transducer is not None:
            parts.setdefault("topology", "transducer")
        return build_ctc_graph(config.tokens, **parts)


def _one(files: list[pathlib.Path], what: str, folder: pathlib.Path) -> pathlib.Path:
    if len(files) != 1:
        raise ValueError(f"{folder}: {len(files)} files for {what}, expected one: {', '.join(map(str, files)) or 'none'}")
    return files[0]


class SphinxModel(Model):
    """A CMU Sphinx model: a folder with an acoustic model (mdef, in it or in a subfolder), a dictionary and a language model."""

    sample_rate = 16000
    frame_shift = 0.01

    def __init__(self, folder: pathlib.Path, mdef: pathlib.Path) -> None:
        self._acoustic = mdef.parent
        places = {folder, mdef.parent.parent} if mdef.parent == folder else {folder}
        files = sorted(path for place in places for path in place.iterdir() if path.is_file())
        self._dictionary = _one([path for path in files if path.suffix in (".dict", ".dic")], "the dictionary (.dict)", folder)
        models = [path for path in files if path.name.endswith((".lm.bin", ".lm", ".arpa", ".lm.gz", ".arpa.gz")) and "phone" not in path.name]
        self._lm = _one(models, "the language model (.lm.bin, .arpa)", folder)
        self.files = [mdef, mdef.parent / "means", self._dictionary, self._lm]
        # The acoustic scale is 1 / lm_weight of build_hmm_graph for Sphinx.
        self.decoder_options = {"acoustic_scale": 1 / 6.5, "beam": 16, "max_active": 100000, "max_tokens": 400000}
        if shutil.which("pocketsphinx_batch") is None:
            raise ValueError("scores of Sphinx models come from pocketsphinx_batch, which is not installed (Debian: pocketsphinx)")

    def build_graph(self) -> Graph:
        lm = LM.read(self._lm)
        return build_hmm_graph(self._acoustic, self._dictionary, lm.prune(threshold=_LM_THRESHOLD) if self._lm.suffix == ".bin" else lm)

    def text_graph(self, text: str) -> Graph:
        return build_hmm_graph(self._acoustic, self._dictionary, phrases=[text])

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        soundfile = need("soundfile")
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            (work / "sen").mkdir()
            for i, piece in enumerate(pieces):
                soundfile.write(work / f"{i:09d}.wav", piece, self.sample_rate, subtype="PCM_16")
            (work / "list").write_text("".join(f"{i:09d}\n" for i in range(len(pieces))))
            # Keyphrase search is the cheapest mode that scores every senone in every frame.
            options = {
                "hmm": self._acoustic,
                "dict": self._dictionary,
                "keyphrase": self._any_word(),
                "ctl": work / "list",
                "cepdir": work,
                "senlogdir": work / "sen",
            }
            command = ["pocketsphinx_batch", *_SCORE_ALL, *(str(part) for name, value in options.items() for part in (f"-{name}", value))]
            run = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
            if run.returncode != 0:
                raise RuntimeError(f"pocketsphinx_batch: {run.stderr.strip()[-500:]}")
            return [next(ScoreReader(work / "sen" / f"{i:09d}.sen")).data for i in range(len(pieces))], None

    def _any_word(self) -> str:
        with self._dictionary.open(encoding="utf-8") as lines:
            return next(line.split()[0] for line in lines if line[:1].isalpha())


def _own_model(file: pathlib.Path, name: str) -> Callable[[str, int], Model]:
    """What a Python file defines under this name. The file can import its neighbours."""
    folder = str(file.resolve(strict=True).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(file.stem)
    if module.__file__ is None or not file.samefile(module.__file__):
        raise ValueError(f"{file}: another module has this name, {module.__file__}; rename the file")
    if not hasattr(module, name):
        raise ValueError(f"{file}: has no class {name!r}")
    made: Callable[[str, int], Model] = getattr(module, name)
    return made


def open_model(source: str | os.PathLike[str] | Callable[[str, int], Model], device: str, num_threads: int) -> Model:
    """`source`: a folder, FILE.py:NAME, or a subclass of Model."""
    if callable(source):
        return source(device, num_threads)
    path, sign, name = os.fspath(source).rpartition(":")
    if sign and path.endswith(".py"):
        return _own_model(pathlib.Path(path), name)(device, num_threads)
    folder = pathlib.Path(source)
    loaders: list[Callable[[], Model]] = []
    if (folder / "config.json").exists():
        loaders.append(lambda: CtcModel(folder, device, num_threads))
    else:
        for mdef in [folder / "mdef", *sorted(folder.glob("*/mdef"))]:
            if mdef.exists():
                loaders.append(lambda mdef=mdef: SphinxModel(folder, mdef))  # type: ignore[misc]
    if len(loaders) != 1:
        raise ValueError(f"{folder}: contains {'several acoustic models' if loaders else 'neither config.json nor a Sphinx model (mdef)'}")
    return loaders[0]()
