"""Builds a graph from tokens, lexicon and language model, decodes real CTC scores, and prints the word error rate."""

import pathlib

import warpfst as wf

folder = pathlib.Path(__file__).parent.parent / "ctc"
graph = wf.build_ctc_graph(tokens=folder / "tokens_phone.txt", lexicon=folder / "lexicon_phone.txt", lm=folder / "lm3.arpa.gz")
decoder = wf.Decoder(graph, acoustic_scale=0.7, max_active=7000)

keys, scores = zip(*wf.ScoreReader(folder / "logp_phone"))
results = decoder.decode(scores)  # scores may be a list of arrays, or a padded batch with lengths, from numpy, torch, cupy or jax

for word in results[0].words:
    print(f"{word.start * 0.04:5.2f} {word.end * 0.04:5.2f} {word.text}")
references = wf.read_transcripts(folder / "text")
print(wf.wer([" ".join(references[key]) for key in keys], [result.text for result in results]))

# prints:
#  0.00  0.92 MARK
#  1.00  1.16 IS
#  1.20  1.52 GOING
#  1.56  1.64 TO
#  1.76  1.88 SEE
#  2.08  2.76 ELEPHANT
# WER 37.40% (389 of 1040 words)
