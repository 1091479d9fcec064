"""flashlight.lib.text.decoder: beam searches with and without a lexicon."""

from .lm import LM, KenLM, LMState, ZeroLM
from .search import BeamDecoder, CriterionType, DecodeResult, LexiconDecoder, LexiconDecoderOptions, LexiconFreeDecoder, LexiconFreeDecoderOptions
from .trie import SmearingMode, Trie, TrieNode

__all__ = [
    "LM",
    "BeamDecoder",
    "CriterionType",
    "DecodeResult",
    "KenLM",
    "LMState",
    "LexiconDecoder",
    "LexiconDecoderOptions",
    "LexiconFreeDecoder",
    "LexiconFreeDecoderOptions",
    "SmearingMode",
    "Trie",
    "TrieNode",
    "ZeroLM",
]
