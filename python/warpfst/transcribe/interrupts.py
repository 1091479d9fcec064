"""Handling of Ctrl-C: records it, so that none is lost, and raises KeyboardInterrupt where that is allowed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Within this context, the first Ctrl-C is recorded and, if `raised`, raised as KeyboardInterrupt. The second one is always raised."""

    def __init__(self, *, raised: bool) -> None:
        self.received = False
        self._raised = raised
        self._previous: Any = None

    def _handle(self, _signal: int, _frame: object) -> None:
        second, self.received = self.received, True
        if second or self._raised:
            raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was recorded. Needed because an exception in a callback from C can be lost."""
        if self.received:
            raise KeyboardInterrupt

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Within this context, Ctrl-C is raised at once. For calls that can block forever."""
        before, self._raised = self._raised, True
        try:
            self.check()
            yield
        finally:
            self._raised = before
