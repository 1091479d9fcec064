"""A speech server: `warpfst serve`. Needs the packages of `pip install '.[serve]'` in the source folder.

command.py   the command line
app.py       the ASGI application: which address is answered by what; keys, origins
requests.py  recordings over HTTP, as OpenAI's /v1/audio/transcriptions, and alignment
answers.py   transcripts as JSON, captions and text; errors as OpenAI's
live.py      live audio over WebSocket
windows.py   cuts live audio into windows for models that were trained on whole utterances
server.py    the models that are served: loaded, replaced while running, closed
batches.py   batches across requests and streams
settings.py  settings and limits; refusals
metrics.py   counters for Prometheus
page/        the page at /
ray.py       the same application as a deployment of Ray Serve
"""

from .settings import Limits, Settings, Windowing

__all__ = ["Limits", "Settings", "Windowing"]
