"""Ctrl-C: noted, so that none is lost, and raised where that is wanted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """While it is entered, the first Ctrl-C is noted and, where allowed, raised as KeyboardInterrupt; the second one is always raised."""

    def __init__(self, *, raised: bool) -> None:
        self.noted = False
        self._raised = raised
        self._previous: Any = None

    def _handle(self, _signal: int, _frame: object) -> None:
        second, self.noted = self.noted, True
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
        """Raises what was noted: callbacks from C can swallow exceptions."""
        if self.noted:
            raise KeyboardInterrupt

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Around what can wait for ever."""
        before, self._raised = self._raised, True
        try:
            self.check()
            yield
        finally:
            self._raised = before
