"""Model folders: samples to scores, and the decoder for these scores.

CTC      config.json (docs/transcribe.md): an ONNX model over log-mel features, its tokens, and a graph or what one is made of
hybrid   a CMU Sphinx model as it is distributed: pocketsphinx_batch makes the scores
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..decoder import Decoder
from ..fst import Fst
from ..graphs import Graph, build_ctc_graph, build_hmm_graph
from ..lm import LM
from ..scores import ScoreReader
from ..symbols import Symbols
from .audio import need

if TYPE_CHECKING:
    import numpy as np

_KEYS = {
    "acoustic_model": {"file", "features", "feature_lengths", "log_probs", "lengths"},
    "features": {
        "sample_rate",
        "num_mel_bins",
        "frame_length_ms",
        "frame_shift_ms",
        "window",
        "low_freq",
        "high_freq",
        "preemphasis",
        "sample_scale",
        "snip_edges",
    },
    "graph": None,  # the arguments of build_ctc_graph, or "file"
    "decoder": None,  # checked by the library
}
_PATHS = ("file", "lexicon", "lm", "grammar", "words", "merges")
_SCORE_ALL = ["-adcin", "yes", "-cepext", ".wav", "-adchdr", "44", "-compallsen", "yes", "-remove_silence", "no", "-remove_noise", "no", "-hyp", "/dev/null"]
_LM_THRESHOLD = 1e-7  # prunes the distributed Sphinx model to a graph for a small machine


class Model:
    """What `transcribe` needs of a model. Times of results are frames of `frame_shift` seconds."""

    sample_rate: int
    frame_shift: float
    decoder_options: dict[str, Any]

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """(log_probs, lengths) for Decoder.decode, of pieces of audio."""
        raise NotImplementedError

    def build_graph(self) -> Graph:
        raise NotImplementedError

    def decoder(self, graph_file: pathlib.Path | None, options: dict[str, Any]) -> Decoder:
        """`graph_file` is read if it is there, else made."""
        if graph_file is not None and graph_file.exists():
            graph = Graph.load(graph_file)
        else:
            graph = self.build_graph()
            if graph_file is not None:
                graph.save(graph_file)
        return Decoder(graph, **{**self.decoder_options, **options})


def _check_keys(config: dict[str, Any], known: set[str], where: str) -> None:
    if strangers := set(config) - known:
        raise ValueError(f"{where}: {', '.join(sorted(strangers))}: not known; known are {', '.join(sorted(known))}")


class CtcModel(Model):
    """An ONNX acoustic model with CTC outputs."""

    def __init__(self, folder: pathlib.Path, device: str, num_threads: int) -> None:
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        _check_keys(config, {*_KEYS, "tokens", "frame_shift", "about"}, str(path))
        for name, keys in _KEYS.items():
            if keys is not None:
                _check_keys(config.get(name, {}), keys, f"{path}: {name}")
        self._folder, self._acoustic = folder, {"file": "model.onnx", **config.get("acoustic_model", {})}
        self._features, self._graph = config.get("features", {}), config.get("graph", {})
        self._tokens = folder / config.get("tokens", "tokens.txt")
        self.sample_rate = self._features.get("sample_rate", 16000)
        self.frame_shift = config["frame_shift"]
        self.decoder_options = config.get("decoder", {})
        self._session = self._open_session(device, num_threads)
        self._fbank_options = self._make_fbank_options()

    def _open_session(self, device: str, num_threads: int) -> Any:
        runtime = need("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = num_threads
        providers: list[Any] = ["CPUExecutionProvider"]
        if device.startswith("cuda") and "CUDAExecutionProvider" in runtime.get_available_providers():
            providers.insert(0, "CUDAExecutionProvider")
        session = runtime.InferenceSession(str(self._folder / self._acoustic["file"]), options, providers=providers)
        inputs, outputs = ([value.name for value in values] for values in (session.get_inputs(), session.get_outputs()))
        named = {"features": inputs[:1], "feature_lengths": inputs[1:2], "log_probs": outputs[:1], "lengths": outputs[1:2]}
        for role, default in named.items():
            name = self._acoustic.setdefault(role, default[0] if default else None)
            if name is not None and name not in (inputs if "feature" in role else outputs):
                raise ValueError(f"{self._acoustic['file']} has no {'input' if 'feature' in role else 'output'} {name!r}: inputs {inputs}, outputs {outputs}")
        return session

    def _make_fbank_options(self) -> Any:
        given, options = self._features, need("kaldi_native_fbank").FbankOptions()
        frames, mels = options.frame_opts, options.mel_opts
        frames.samp_freq, frames.dither, frames.snip_edges = self.sample_rate, 0.0, given.get("snip_edges", True)
        frames.frame_length_ms, frames.frame_shift_ms = given.get("frame_length_ms", 25.0), given.get("frame_shift_ms", 10.0)
        frames.window_type, frames.preemph_coeff = given.get("window", "povey"), given.get("preemphasis", 0.97)
        mels.num_bins, mels.low_freq, mels.high_freq = given.get("num_mel_bins", 80), given.get("low_freq", 20.0), given.get("high_freq", 0.0)
        return options

    def features(self, samples: np.ndarray) -> np.ndarray:
        """[frames, bins] log-mel energies, as Kaldi's compute-fbank-feats makes them."""
        import numpy as np

        fbank = need("kaldi_native_fbank").OnlineFbank(self._fbank_options)
        fbank.accept_waveform(self.sample_rate, samples * self._features.get("sample_scale", 32768.0))
        fbank.input_finished()
        frames = [fbank.get_frame(i) for i in range(fbank.num_frames_ready)]
        return np.stack(frames) if frames else np.zeros((0, self._fbank_options.mel_opts.num_bins), np.float32)

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        import numpy as np

        features = [self.features(piece) for piece in pieces]
        lengths = np.array([len(one) for one in features], dtype=np.int64)
        # Models with subsampling want some frames; silence behind the end does not count.
        batch = np.zeros((len(features), max(int(lengths.max(initial=0)), 16), features[0].shape[1] if features else 1), np.float32)
        for row, one in zip(batch, features):
            row[: len(one)] = one
        names = [self._acoustic["log_probs"], *([self._acoustic["lengths"]] if self._acoustic["lengths"] else [])]
        inputs = {self._acoustic["features"]: batch}
        if self._acoustic["feature_lengths"]:
            inputs[self._acoustic["feature_lengths"]] = np.maximum(lengths, 1)
        log_probs, *out = self._session.run(names, inputs)
        frames = out[0] if out else np.ceil(lengths * log_probs.shape[1] / max(batch.shape[1], 1)).astype(np.int64)
        return log_probs, np.where(lengths > 0, np.minimum(frames, log_probs.shape[1]), 0)

    def build_graph(self) -> Graph:
        parts: dict[str, Any] = {name: self._folder / value if name in _PATHS and isinstance(value, str) else value for name, value in self._graph.items()}
        if "file" in parts:
            return Graph.load(parts["file"])
        if "grammar" in parts and parts["grammar"].suffix == ".txt":
            parts["words"] = words = Symbols.read(parts["words"])
            parts["grammar"] = Fst.compile(parts["grammar"], words, words, acceptor=True)
        return build_ctc_graph(self._tokens, **parts)


def _one(files: list[pathlib.Path], what: str, folder: pathlib.Path) -> pathlib.Path:
    if len(files) != 1:
        raise ValueError(f"{folder}: {len(files)} files for {what}, expected one: {', '.join(map(str, files)) or 'none'}")
    return files[0]


class SphinxModel(Model):
    """CMU Sphinx: a folder with mdef in it or below it, a dictionary and a language model beside."""

    sample_rate = 16000
    frame_shift = 0.01

    def __init__(self, folder: pathlib.Path, mdef: pathlib.Path) -> None:
        self._acoustic = mdef.parent
        places = {folder, mdef.parent.parent} if mdef.parent == folder else {folder}
        files = sorted(path for place in places for path in place.iterdir() if path.is_file())
        self._dictionary = _one([path for path in files if path.suffix in (".dict", ".dic")], "the dictionary (.dict)", folder)
        models = [path for path in files if path.name.endswith((".lm.bin", ".lm", ".arpa", ".lm.gz", ".arpa.gz")) and "phone" not in path.name]
        self._lm = _one(models, "the language model (.lm.bin, .arpa)", folder)
        # Its scales are those of build_hmm_graph for Sphinx.
        self.decoder_options = {"acoustic_scale": 1 / 6.5, "beam": 16, "max_active": 100000, "max_tokens": 400000}
        if shutil.which("pocketsphinx_batch") is None:
            raise ValueError("scores of Sphinx models come from pocketsphinx_batch, which is not installed (Debian: pocketsphinx)")

    def build_graph(self) -> Graph:
        lm = LM.read(self._lm)
        return build_hmm_graph(self._acoustic, self._dictionary, lm.prune(threshold=_LM_THRESHOLD) if self._lm.suffix == ".bin" else lm)

    def scores(self, pieces: Sequence[np.ndarray]) -> tuple[Any, Any]:
        soundfile = need("soundfile")
        with tempfile.TemporaryDirectory() as name:
            work = pathlib.Path(name)
            (work / "sen").mkdir()
            for i, piece in enumerate(pieces):
                soundfile.write(work / f"{i:09d}.wav", piece, self.sample_rate, subtype="PCM_16")
            (work / "list").write_text("".join(f"{i:09d}\n" for i in range(len(pieces))))
            # The cheapest search that scores every frame once; every senone, every frame.
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


def open_model(folder: pathlib.Path, device: str, num_threads: int) -> Model:
    makers: list[Callable[[], Model]] = []
    if (folder / "config.json").exists():
        makers.append(lambda: CtcModel(folder, device, num_threads))
    else:
        for mdef in [folder / "mdef", *sorted(folder.glob("*/mdef"))]:
            if mdef.exists():
                makers.append(lambda mdef=mdef: SphinxModel(folder, mdef))  # type: ignore[misc]
    if len(makers) != 1:
        raise ValueError(f"{folder}: {'several acoustic models' if makers else 'neither config.json nor a Sphinx model (mdef)'} in it")
    return makers[0]()
