"""Uses pyctcdecode's calls: decodes with labels only, then with words and a language model."""

import pathlib

import numpy as np

from warpfst.compat import build_ctcdecoder

labels = ["", " ", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"]
heard = "MARC IS GOIN TO SEE ELEPHANT"  # the output of an acoustic model: blank frames and letter frames alternate
logits = np.zeros((2 * len(heard), len(labels)), dtype=np.float32)
logits[0::2, 0] = 12.0
logits[range(1, len(logits), 2), [labels.index(letter) for letter in heard]] = 8.0
logits[7, labels.index("K")] = 7.0  # the model is not sure whether C or K was said
logits[24, labels.index("G")] = 11.0  # nor whether a G followed N

print(build_ctcdecoder(labels).decode(logits))
lm = pathlib.Path(__file__).parent.parent / "ctc" / "lm3.arpa.gz"
print(build_ctcdecoder(labels, lm, alpha=0.5, beta=1.0).decode(logits))

# prints:
# MARC IS GOIN TO SEE ELEPHANT
# MARK IS GOING TO SEE ELEPHANT
