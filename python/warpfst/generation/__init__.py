"""Phrases, language models and grammars for models that write tokens one after another: attention decoders of speech recognisers, and large language models."""

from .biasing import Biasing, Hypotheses
from .gpu import GpuHypotheses
from .huggingface import BiasingProcessor
from .tokens import Vocabulary, read_vocabulary

__all__ = ["Biasing", "BiasingProcessor", "GpuHypotheses", "Hypotheses", "Vocabulary", "read_vocabulary"]
