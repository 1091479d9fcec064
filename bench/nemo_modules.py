"""nemo_modules.py - imports single modules of NeMo's wheel without NeMo's dependencies: peers.py, and peer_boost.py use it.

A module of WANTED is run as it is. Any other module of NeMo, and any module that is not installed, is replaced by one whose attributes are empty classes, which decoding does not use.
"""
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys

ASR = "nemo.collections.asr.parts"
BEAM, LM, TREE = f"{ASR}.submodules.ctc_batched_beam_decoding", f"{ASR}.submodules.ngram_lm.ngram_lm_batched", f"{ASR}.context_biasing.context_graph_universal"
WANTED = {
    BEAM, LM, TREE,
    f"{ASR}.submodules.ngram_lm", f"{ASR}.submodules.ngram_lm.constants", f"{ASR}.submodules.ngram_lm.ngram_lm_triton", f"{ASR}.utils.batched_beam_decoding_utils",
    "nemo.collections.common.parts.optional_cuda_graphs", "nemo.core.utils.cuda_python_utils", "nemo.core.utils.optional_libs", "nemo.utils.enum", "nemo.utils.exceptions",
}
REPLACED = {"lightning", "omegaconf", "tqdm", "packaging", "braceexpand", "sentencepiece"}  # packages that NeMo's modules import by name


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
    """Makes a module whose attributes are empty classes, but those of VALUES."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__path__ = []
        values = values_of(module.__name__)
        module.__getattr__ = lambda name: values[name] if name in values else dunder(name)


def dunder(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything(name, (Empty,), {})


def values_of(name):
    """What decoding does use of the replaced modules."""
    if name == "nemo.collections.common.parts":
        return {"NEG_INF": -10000.0}
    if name == f"{ASR}.utils.asr_confidence_utils":
        return {"ConfidenceMethodMixin": type("ConfidenceMethodMixin", (), {})}
    if name == "nemo.utils":
        import logging

        return {"logging": logging.getLogger("nemo")}
    if name == "nemo.core":
        import torch

        class ModelPT(torch.nn.Module):
            def __init__(self, cfg=None, trainer=None):
                super().__init__()
                self._cfg = cfg

        return {"ModelPT": ModelPT}
    if name == "omegaconf":
        class OmegaConf:
            structured = staticmethod(lambda config: config)

        return {"OmegaConf": OmegaConf, "MISSING": "???"}
    if name == "tqdm.auto":
        return {"tqdm": lambda items, **_: items}
    if name == "packaging.version":
        return {"Version": lambda text: tuple(int(part) for part in text.split(".")[:3])}
    return {}


class Finder(importlib.abc.MetaPathFinder):
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "nemo" and name in WANTED:
            file = self.folder.joinpath(*name.split("."))
            package = file.is_dir()
            file = file / "__init__.py" if package else file.with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file, submodule_search_locations=[str(file.parent)] if package else None)
        if name.split(".")[0] in REPLACED | {"nemo"}:
            return importlib.machinery.ModuleSpec(name, Replaced(), is_package=True)
        return None


def load(folder, name):
    """The module NAME of the wheel that is unpacked in FOLDER."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder(folder))
    return importlib.import_module(name)
