"""The file config.yaml, with Wirehead's keys, and the ring that it names.

WRITE_COLLECTION, READ_COLLECTION, COUNTER_COLLECTION, TEMP_COLLECTION and CHUNKSIZE have no
meaning for a ring: they are read over.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple

import dfc
import yaml
from dfc.ring import Ring

DEFAULT_PORT = 8080  #: of a proxy
CASTS = ("keep", "uint8")
SWAPS = ("full", "consumed")
POLICIES = ("block", "drop")


class Config:
    """Invalid names the key that is missing or wrong."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            found = yaml.safe_load(file)
        if not isinstance(found, dict):
            raise dfc.Invalid(f"{path} has no keys", code="invalid_argument")
        self._path, self._found = path, found
        self.name = str(self._need("DBNAME"))
        sample = found.get("SAMPLE")
        self.sample: Tuple[str, ...] = ()
        if isinstance(sample, (list, tuple)):
            self.sample = tuple(str(kind) for kind in sample)
        if not self.sample:
            raise self._wrong("SAMPLE", 'a list of kinds, as ["data", "label"]')
        self.keep = self._number("KEEP", 0, 1)
        self.bytes_max: Optional[str] = str(found["BYTES_MAX"]) if "BYTES_MAX" in found else None
        self.cast = self._word("CAST", CASTS)
        self.swap = self._word("SWAP", SWAPS)
        self.policy = self._word("POLICY", POLICIES)

    def _wrong(self, key: str, what: str) -> dfc.Invalid:
        return dfc.Invalid(f"{self._path}: {key} has to be {what}", code="invalid_argument")

    def _need(self, key: str) -> Any:
        if self._found.get(key) in (None, ""):
            raise dfc.Invalid(f"{self._path}: {key} is missing", code="invalid_argument")
        return self._found[key]

    def _word(self, key: str, words: Tuple[str, ...]) -> str:
        """The first one without the key."""
        value = str(self._found.get(key, words[0]))
        if value not in words:
            raise self._wrong(key, " or ".join(words))
        return value

    def _number(self, key: str, least: int, default: Optional[int] = None) -> int:
        value = self._found.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._wrong(key, f"a number, at least {least}")
        return value

    @property
    def swap_cap(self) -> int:
        return self._number("SWAP_CAP", 1)

    @property
    def endpoint(self) -> str:
        """ENDPOINT, the environment's, or the proxy that MONGOHOST and PORT name."""
        given = self._found.get("ENDPOINT") or os.environ.get("DFC_ENDPOINT")
        if given:
            return str(given)
        port = self._found.get("PORT")
        return f"http://{self._need('MONGOHOST')}:{DEFAULT_PORT if port is None else port}"

    def ring(self) -> Ring:
        return Ring(dfc.Client(self.endpoint), self.name)

    def make(self, ring: Ring) -> bool:
        """Creates the ring where it is missing, and gives it this SWAP_CAP.  True: it was made."""
        cap = self.swap_cap
        try:
            ring.create(cap, keep=self.keep, bytes_max=self.bytes_max, swap=self.swap,
                        policy=self.policy)
            return True
        except dfc.Conflict as e:
            if e.code != "bucket_exists":
                raise
        shape: Dict[str, Any] = ring.info()["props"].get("ring") or {}
        if not shape:
            raise dfc.Invalid(f"the bucket '{self.name}' (DBNAME) is no ring: give another name",
                              code="not_a_ring")
        if shape["cap"] != cap:
            ring.set(cap)
        return False


def load(path: Optional[str]) -> Optional[Config]:
    """None, and the line that Wirehead prints: there is no such file."""
    if path is None or not os.path.exists(path):
        print("No valid config specified, exiting", flush=True)
        return None
    return Config(path)
