"""Audio to text: `warpfst transcribe`. Needs the packages of `pip install warpfst[audio]`.

command.py  the command: which recordings, in which batches, what is done already
audio.py    files to samples, long recordings to segments
models.py   model folders: samples to scores, and the decoder for them
outputs.py  words to text, JSON, CTM, SRT, VTT
cluster.py  the same over the actors of a Ray cluster
"""
