"""flashlight-text's interface (flashlight.lib.text), implemented with the library's beam search: modules `decoder`, `decoder.kenlm` and `dictionary`."""

from . import decoder, dictionary

__all__ = ["decoder", "dictionary"]
