"""Wirehead's classes over a ring bucket (docs/guide/ring.md, "Moving from Wirehead")."""

from __future__ import annotations

from typing import Any

from .generator import WireheadGenerator
from .log import SwapLog, WireheadLogger, WireheadSnapshot
from .manager import WireheadManager

__version__ = "0.1.0"
# pylint: disable=undefined-all-variable
__all__ = ["MongoTupleheadDataset", "MongoheadDataset", "SwapLog", "WireheadGenerator",
           "WireheadLogger", "WireheadManager", "WireheadSnapshot"]


def __getattr__(name: str) -> Any:
    """Datasets need torch; the nodes of generators may not have it."""
    if name in ("MongoheadDataset", "MongoTupleheadDataset"):
        from . import dataset  # pylint: disable=import-outside-toplevel
        return getattr(dataset, name)
    raise AttributeError(f"module 'wirehead' has no attribute '{name}'")
