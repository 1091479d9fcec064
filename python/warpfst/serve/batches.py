"""Batches of work of many requests and streams: while a batch runs in a thread, the next one gathers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from ..aio import answer_all

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batches(Generic[Item, Answer]):
    """Runs `work` on batches of items, one batch at a time, in `thread`. For one event loop.

    work    answers a batch: an answer or an exception for each item. If it raises, each item is tried alone, so that only the bad ones fail
    size    of an item, such as its samples; a batch has items of similar size (a quarter of it is padding at most), so that one does not wait for others
    most    the size of a batch with padding. A larger item is a batch of its own

    Urgent items are taken before others, but not twice in a row if others wait: none waits forever.
    """

    def __init__(self, work: Callable[[list[Item]], Sequence[Answer | Exception]], size: Callable[[Item], int], most: float, thread: Executor) -> None:
        self._work, self._size, self._most, self._thread = work, size, most, thread
        self._waiting: dict[bool, list[tuple[Item, asyncio.Future[Answer]]]] = {True: [], False: []}
        self._urgent = False  # the batch before
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """The number of items that wait."""
        return sum(map(len, self._waiting.values()))

    async def put(self, item: Item, *, urgent: bool = False) -> Answer:
        """The answer to an item. An item whose caller is cancelled before its batch begins is dropped."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[urgent].append((item, answer))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await answer

    def _next(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        for waiting in self._waiting.values():
            waiting[:] = [one for one in waiting if not one[1].done()]
        self._urgent = bool(self._waiting[True]) and not (self._urgent and self._waiting[False])
        waiting = self._waiting[self._urgent]
        if not waiting:
            return []
        oldest = self._size(waiting[0][0])
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        rest, smallest, largest = [], oldest, oldest
        for one in waiting:
            size = self._size(one[0])
            low, high = min(smallest, size), max(largest, size)
            if not batch or (high * (len(batch) + 1) <= self._most and low >= 0.75 * high):
                batch.append(one)
                smallest, largest = low, high
            else:
                rest.append(one)
        self._waiting[self._urgent] = rest
        return batch

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while batch := self._next():
            try:
                answers = await loop.run_in_executor(self._thread, self._answers, [item for item, _ in batch])
            except RuntimeError as why:  # the thread was shut down
                answers = [why] * len(batch)
            answer_all([future for _, future in batch], answers)
        self._task = None

    def _answers(self, items: list[Item]) -> Sequence[Answer | Exception]:
        try:
            return self._work(items)
        except Exception as why:  # noqa: BLE001 - models of others raise anything
            return [why] if len(items) == 1 else [answer for item in items for answer in self._answers([item])]
