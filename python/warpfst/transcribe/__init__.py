"""Audio to text: `warpfst transcribe`. Needs the packages of `pip install '.[audio]'` in the source folder.

command.py         the command line: finds the recordings, skips finished ones, writes results and the summary
keys.py            keys of recordings, which name the output files
audio.py           reads files as samples, and cuts them into pieces at quiet places
standard_input.py  reads audio from pipes and microphones
pipeline.py        transcribes recordings in batches of pieces
models.py          models: compute scores from samples, make the decoder; base classes of users' models
config.py          reads and checks config.json of a model folder
partial.py         stores the finished parts of a long recording on disk
outputs.py         writes words as text, JSON, CTM, SRT, VTT
interrupts.py      handles Ctrl-C
cluster.py         transcribes with the actors of a Ray cluster, or a part of a list in one process
"""

from .models import ArrayModel, Model

__all__ = ["ArrayModel", "Model"]
