"""nemo_modules.py - imports single modules of NeMo's wheel without NeMo's dependencies: peers.py, peer_boost.py and nemo_transducer.py use it.

A module of WANTED is run as it is. Any other module of NeMo, and packages of REPLACED that are not installed, are replaced by modules whose attributes are empty classes, which decoding does not use.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys

ASR = "nemo.collections.asr.parts"
BEAM, LM, TREE = f"{ASR}.submodules.ctc_batched_beam_decoding", f"{ASR}.submodules.ngram_lm.ngram_lm_batched", f"{ASR}.context_biasing.context_graph_universal"
GPU_TREE = f"{ASR}.context_biasing.boosting_graph_batched"
RNNT_BEAM, TDT_BEAM = f"{ASR}.submodules.rnnt_malsd_batched_computer", f"{ASR}.submodules.tdt_malsd_batched_computer"
LOOPING = f"{ASR}.submodules.transducer_decoding"  # greedy decoding of transducers
WANTED = {
    BEAM, LM, TREE, GPU_TREE, RNNT_BEAM, TDT_BEAM,
    LOOPING, f"{LOOPING}.batched_hyps", f"{LOOPING}.label_looping_base", f"{LOOPING}.rnnt_label_looping", f"{LOOPING}.tdt_label_looping",
    f"{ASR}.submodules.ngram_lm", f"{ASR}.submodules.ngram_lm.constants", f"{ASR}.submodules.ngram_lm.ngram_lm_triton", f"{ASR}.utils.batched_beam_decoding_utils",
    "nemo.collections.common.parts.optional_cuda_graphs", "nemo.core.utils.cuda_python_utils", "nemo.core.utils.optional_libs", "nemo.utils.enum", "nemo.utils.exceptions",
}
REPLACED = {"lightning", "omegaconf", "tqdm", "packaging", "braceexpand", "sentencepiece"}  # packages that NeMo's modules import, if they are not installed


class Anything(type):
    """Classes of which every attribute is again such a class."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (Empty,), {})


class Empty(metaclass=Anything):
    def __init__(self, *arguments, **named):
        self.__dict__.update(named)

    def __class_getitem__(cls, _):
        return cls


class Replaced(importlib.abc.Loader):
    """Makes a module whose attributes are empty classes, except what VALUES has."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            make = VALUES.get((module.__name__, name))
            return Anything(name, (Empty,), {}) if make is None else make()

        module.__path__ = []
        module.__getattr__ = attribute


def logger():
    import logging

    return logging.getLogger("nemo")


def model_class():
    import torch

    class ModelPT(torch.nn.Module):
        def __init__(self, cfg=None, trainer=None):
            super().__init__()
            self._cfg = cfg

    return ModelPT


# What decoding does use of the replaced modules: functions that make it.
VALUES = {
    ("nemo.collections.common.parts", "NEG_INF"): lambda: -10000.0,
    (f"{ASR}.utils.asr_confidence_utils", "ConfidenceMethodMixin"): lambda: type("ConfidenceMethodMixin", (), {"_init_confidence_method": lambda self, confidence_method_cfg=None: None}),
    ("nemo.utils", "logging"): logger,
    ("nemo.core", "ModelPT"): model_class,
    ("omegaconf", "OmegaConf"): lambda: type("OmegaConf", (), {"structured": staticmethod(lambda config: config)}),
    ("omegaconf", "MISSING"): lambda: "???",
    ("tqdm.auto", "tqdm"): lambda: lambda items, **_: items,
    ("packaging.version", "Version"): lambda: lambda text: tuple(int(part) for part in text.split(".")[:3]),
}


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "nemo" and name in WANTED:
            file = self.folder.joinpath(*name.split("."))
            package = file.is_dir()
            file = file / "__init__.py" if package else file.with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)] if package else None)
        if name.split(".")[0] == "nemo":
            return importlib.machinery.ModuleSpec(name, Replaced(), is_package=True)
        if name.split(".")[0] in REPLACED:
            return importlib.machinery.PathFinder.find_spec(name, path) or importlib.machinery.ModuleSpec(name, Replaced(), is_package=True)
        return None


def load(folder, name):
    """The module NAME of the wheel that is unpacked in FOLDER."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder(folder))
    return importlib.import_module(name)
