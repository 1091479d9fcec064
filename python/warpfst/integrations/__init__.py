"""Decoders for the models of HuggingFace, NeMo, ESPnet, icefall, WeNet and torchaudio, made from the models' own token files or objects.

    decoder = wf.from_huggingface("wav2vec2-base-960h", lm="lm.arpa.gz", acoustic_scale=0.7)
    print(decoder.decode(logits.log_softmax(-1))[0].text)

Each `from_X` returns a Decoder; each `X_tokens` returns the ModelTokens from which it is made. ProcessorWithLM decodes logits like transformers' class of this name. No toolkit is imported. Files of sentencepiece need the package
sentencepiece, tokenizer.json needs tokenizers, and YAML files need pyyaml.
"""

from ..option_calls import document as _document
from .huggingface import from_huggingface, huggingface_tokens
from .k2 import k2_fst, k2_tensors
from .nemo import from_nemo, nemo_tokens
from .processor import ProcessorOutput, ProcessorWithLM
from .tokens import ModelTokens
from .toolkits import (
    espnet_tokens,
    from_espnet,
    from_icefall,
    from_sentencepiece,
    from_torchaudio,
    from_wenet,
    icefall_tokens,
    sentencepiece_tokens,
    torchaudio_tokens,
    wenet_tokens,
)
from .transducers import export_icefall_transducer, export_nemo_transducer

__all__ = [
    "ModelTokens",
    "ProcessorOutput",
    "ProcessorWithLM",
    "espnet_tokens",
    "export_icefall_transducer",
    "export_nemo_transducer",
    "from_espnet",
    "from_huggingface",
    "from_icefall",
    "from_nemo",
    "from_sentencepiece",
    "from_torchaudio",
    "from_wenet",
    "huggingface_tokens",
    "icefall_tokens",
    "k2_fst",
    "k2_tensors",
    "nemo_tokens",
    "sentencepiece_tokens",
    "torchaudio_tokens",
    "wenet_tokens",
]

_document(globals()[name] for name in __all__)
