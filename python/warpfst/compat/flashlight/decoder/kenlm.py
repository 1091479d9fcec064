"""flashlight.lib.text.decoder.kenlm."""

from .lm import KenLM

__all__ = ["KenLM"]
