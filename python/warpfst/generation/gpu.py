"""Hypotheses in a GPU's memory: logits are CUDA tensors of torch, which never leave it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _abi
from .._library import Handle, call, create, lib, sized

STATE = np.dtype([("context", np.uint64), ("history", np.uint32), ("word", np.uint32), ("grammar", np.uint32), ("ended", np.uint32)])  # wf_bias_state


class _GpuBias(Handle):
    """wf_bias_gpu."""

    _free = lib.wf_bias_gpu_free


class Bias(Handle):
    """wf_bias, with its copies on GPUs. `base`: with which they share tables."""

    _free = lib.wf_bias_free

    def __init__(self, address: int, base: Bias | None = None) -> None:
        super().__init__(address)
        self._base, self._copies, self._lock = base, dict[str, _GpuBias](), threading.Lock()

    def on(self, device: str) -> _GpuBias:
        shared = None if self._base is None else self._base.on(device).address
        with self._lock:
            if device not in self._copies:
                self._copies[device] = _GpuBias(create("wf_bias_gpu_create", self.address, device.encode(), shared))
            return self._copies[device]


class _Batch(Handle):
    """wf_bias_batch."""

    _free = lib.wf_bias_batch_free


def _stream(device: str) -> int:
    import torch

    return int(torch.cuda.current_stream(torch.device(device)).cuda_stream)


class GpuHypotheses:
    """The states of a batch of hypotheses in a GPU's memory. Not for several threads at once.

    Tokens, places and logits are tensors on this GPU. Everything is enqueued in torch's current stream; nothing waits.
    """

    def __init__(self, biases: Sequence[Bias], device: str) -> None:
        copies = [bias.on(device) for bias in biases]
        self.device = device
        self._count = len(copies)
        self._batch = _Batch(create("wf_bias_batch_create", (ctypes.c_void_p * len(copies))(*(one.address for one in copies)), len(copies)))
        self._places: Any = None  # of the next step
        self._tokens: Any = None

    def __len__(self) -> int:
        return self._count

    def advance(self, tokens: Any) -> None:
        """Appends a token to each hypothesis, in the launch of the next `scores`. Tokens that the tokenizer lacks, also negative ones, change nothing."""
        if self._tokens is not None:
            self._step()
        self._tokens = self._numbers(tokens, "tokens")
        if len(self._tokens) != self._count:
            raise ValueError(f"{len(self._tokens)} tokens, expected {self._count}")

    def reorder(self, places: Any) -> None:
        """Hypothesis i goes on from what was hypothesis places[i]. There may be more or fewer than before. Where there was none, it has no tokens again."""
        if self._tokens is not None or self._places is not None:
            self._step()
        self._places = self._numbers(places, "places")
        self._count = len(self._places)

    def scores(self, logits: Any) -> Any:
        """Adds what the phrases, models and the grammar say to logits or log-probabilities [hypotheses, tokens].

        Those of float32 whose rows are contiguous are changed in place and returned; others are copied.
        """
        if str(logits.device) != self.device or logits.ndim != 2 or len(logits) != self._count:
            raise ValueError(f"logits of shape {tuple(logits.shape)} on {logits.device}, expected {self._count} rows on {self.device}")
        rows = logits.detach().float()
        if rows.stride(1) != 1 or rows.stride(0) < rows.shape[1]:
            rows = rows.contiguous()
        self._step(rows)
        return rows if rows.dtype == logits.dtype else rows.to(logits.dtype)

    @property
    def ended(self) -> list[bool]:
        """Whether each text has ended. Waits."""
        if self._tokens is not None or self._places is not None:
            self._step()
        states = np.zeros(self._count, STATE)
        call("wf_bias_batch_copy_states", self._batch.address, _stream(self.device), states.ctypes.data_as(ctypes.POINTER(_abi.wf_bias_state)))
        return [bool(one) for one in states["ended"]]

    def _numbers(self, given: Any, what: str) -> Any:
        """As int32 or int64 without gaps, on the GPU."""
        if str(given.device) != self.device or given.ndim != 1:
            raise ValueError(f"{what} of shape {tuple(given.shape)} on {given.device}, expected numbers on {self.device}")
        return (given if given.element_size() in (4, 8) and not given.is_floating_point() else given.int()).contiguous()

    def _step(self, logits: Any = None) -> None:
        """Launches what is kept, and changes the logits."""
        step = sized(_abi.wf_bias_step)
        places, tokens = self._places, self._tokens
        if places is not None and tokens is not None and places.element_size() != tokens.element_size():
            tokens = tokens.to(places.dtype)
        step.places, step.tokens = (None if one is None else one.data_ptr() for one in (places, tokens))
        step.index_bytes = next((one.element_size() for one in (places, tokens) if one is not None), 0)
        step.count, step.stream = self._count, _stream(self.device)
        if logits is not None:
            step.logits = ctypes.cast(logits.data_ptr(), ctypes.POINTER(ctypes.c_float))
            step.width, step.stride = logits.shape[1], logits.stride(0)
        call("wf_bias_batch_step", self._batch.address, ctypes.byref(step))
        self._places = self._tokens = None
