"""Drop-in replacements for pyctcdecode, flashlight-text (module `flashlight`) and torchaudio's decoders. docs/migrating/ describes the differences."""

from . import flashlight
from .alphabet import Alphabet
from .pyctcdecode import BeamSearchDecoderCTC, LanguageModel, LMState, build_ctcdecoder
from .torchaudio import CTCDecoder, CTCDecoderLM, CTCDecoderLMState, CTCHypothesis, CUCTCDecoder, CUCTCHypothesis, ctc_decoder, cuda_ctc_decoder
from .wav2vec2 import Wav2Vec2ProcessorWithLM

__all__ = [
    "Alphabet",
    "BeamSearchDecoderCTC",
    "CTCDecoder",
    "CTCDecoderLM",
    "CTCDecoderLMState",
    "CTCHypothesis",
    "CUCTCDecoder",
    "CUCTCHypothesis",
    "LMState",
    "LanguageModel",
    "Wav2Vec2ProcessorWithLM",
    "build_ctcdecoder",
    "ctc_decoder",
    "cuda_ctc_decoder",
    "flashlight",
]
