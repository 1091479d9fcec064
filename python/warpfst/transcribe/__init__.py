"""Audio to text: `warpfst transcribe`. Needs the packages of `pip install warpfst[audio]`.

command.py         the command: which recordings, what is done already, what came of it
keys.py            names of recordings
audio.py           files to samples, and to pieces cut where it is quiet
standard_input.py  the same for pipes and microphones
pipeline.py        recordings to transcripts, in batches of pieces
models.py          model folders: samples to scores, and the decoder for them
config.py          config.json of a model folder, checked
partial.py         what is done of a long recording, kept on disk
outputs.py         words to text, JSON, CTM, SRT, VTT
interrupts.py      Ctrl-C
cluster.py         the same over the actors of a Ray cluster
"""
