"""Warnings about options without effect."""

from __future__ import annotations

import warnings
from typing import Any

from ..errors import IgnoredOptionWarning


def warn_ignored(why: str, **given: tuple[Any, Any]) -> None:
    """Options are given as (value, default). Warns the caller's caller that an option has no effect if its value is not the default."""
    for name, (value, default) in given.items():
        if value is not default and value != default:
            warnings.warn(f"{name}={value!r} has no effect: {why}", IgnoredOptionWarning, stacklevel=3)
