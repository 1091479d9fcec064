"""The server as a deployment of Ray Serve: the same application on many machines. Needs the packages of `pip install '.[serve,cluster]' 'ray[serve]'` on each.

    from ray import serve
    from warpfst.serve import Settings
    from warpfst.serve.ray import deployment

    serve.run(deployment(Settings({"cards": "examples/cards"})).options(num_replicas=2).bind())

Each replica has its own models, queue and limits; a live connection stays with its replica. A replica starts once its models are loaded, and a stopping one ends what has begun.
"""

from __future__ import annotations

from typing import Any

from ..transcribe.audio import need
from .settings import Settings


def deployment(settings: Settings) -> Any:
    """A deployment of Ray Serve, to which `.options(num_replicas=, ray_actor_options={"num_gpus": 1})` and `.bind()` belong. Paths must be valid on all machines."""
    serve: Any = need("ray.serve", "cluster")
    from .app import create_app

    limits = settings.limits

    def make() -> Any:
        return create_app(settings, wait=True)

    @serve.deployment(name="warpfst", max_ongoing_requests=limits.queue + limits.streams, graceful_shutdown_timeout_s=limits.stop_seconds + 5)
    @serve.ingress(make)
    class Replica:
        pass

    return Replica
