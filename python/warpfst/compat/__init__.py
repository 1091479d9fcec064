"""Drop-in replacements for pyctcdecode and for torchaudio's cuda_ctc_decoder. Docstrings and docs/migrating/ describe the differences."""

from .alphabet import Alphabet
from .pyctcdecode import BeamSearchDecoderCTC, LanguageModel, LMState, build_ctcdecoder
from .torchaudio import CUCTCDecoder, CUCTCHypothesis, cuda_ctc_decoder

__all__ = ["Alphabet", "BeamSearchDecoderCTC", "CUCTCDecoder", "CUCTCHypothesis", "LMState", "LanguageModel", "build_ctcdecoder", "cuda_ctc_decoder"]
