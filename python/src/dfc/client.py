"""A client of one cluster."""

from __future__ import annotations

import ssl
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union

from . import _config, _retry, batch
from ._auth import Identity
from ._call import Caller, Reply, Request, json_request, read_json
from ._pool import Pool
from .bucket import Bucket
from .errors import Invalid
from .job import Job

VERSION = "0.1.0"


class Client:
    """Any number of threads may use one client, and forked processes as well.

    `endpoint`: http://HOST:PORT of a proxy, or several separated by commas.  What is not given
    comes from the environment (DFC_ENDPOINT, DFC_ACCESS_KEY and DFC_SECRET_KEY, DFC_TOKEN,
    DFC_CA_FILE), then from a profile, as `dfcctl login` writes it.

    `direct=False`: every call begins at a proxy.  `connect_timeout` and `idle_timeout` are in
    seconds; a call is repeated at most `attempts` - 1 times, and not later than `retry_budget`
    seconds after the last byte that moved.
    """

    def __init__(self, endpoint: Optional[str] = None, *, profile: Optional[str] = None,
                 access_key: Optional[str] = None, secret_key: Optional[str] = None,
                 token: Optional[str] = None, ca_file: Optional[str] = None, direct: bool = True,
                 connect_timeout: float = 5.0, idle_timeout: float = 60.0, attempts: int = 18,
                 retry_budget: float = 60.0) -> None:
        if connect_timeout <= 0 or idle_timeout <= 0 or attempts < 1 or retry_budget < 0:
            raise Invalid("timeouts have to be above 0 s, attempts at least 1",
                          code="invalid_argument")
        self._given = {"profile": profile, "access_key": access_key, "secret_key": secret_key,
                       "token": token, "ca_file": ca_file, "direct": direct,
                       "connect_timeout": connect_timeout, "idle_timeout": idle_timeout,
                       "attempts": attempts, "retry_budget": retry_budget}
        self._endpoint = endpoint
        config = _config.load(endpoint, profile=profile, access_key=access_key,
                              secret_key=secret_key, token=token, ca_file=ca_file)
        tls = None
        if config.endpoints[0].tls:
            try:
                tls = ssl.create_default_context(cafile=config.ca_file)
            except OSError as e:
                raise Invalid(f"ca_file '{config.ca_file}': {e}", code="invalid_argument") from e
        self._pool = Pool(tls, connect_timeout, idle_timeout)
        self._caller = Caller(
            config.endpoints, self._pool,
            Identity(config.access_key, config.secret_key, config.token), f"dfc-python/{VERSION}",
            _retry.Policy(attempts=attempts, budget=retry_budget), direct)

    def __repr__(self) -> str:
        return f"dfc.Client({','.join(map(str, self._caller.endpoints))!r})"

    def __reduce__(self) -> "tuple[object, ...]":
        """For workers that are spawned: made anew there, out of what was given here."""
        return (_restored, (self._endpoint, self._given))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections.  A later call opens others."""
        self._pool.close()

    # --- calls ---

    def bucket(self, name: str) -> Bucket:
        """Asks nothing: the bucket may not exist."""
        return Bucket(self, name)

    def buckets(self) -> List[Dict[str, Any]]:
        """The documents of all buckets that the caller may see."""
        rows: List[Dict[str, Any]] = self.get_json("/v1/buckets")["buckets"]
        return rows

    def cluster(self) -> Dict[str, Any]:
        """The cluster's document: its nodes and how they are."""
        return self.get_json("/v1/cluster")

    def batch(self, items: Iterable[Dict[str, Any]], *,
              missing_ok: bool = False) -> Iterator[Optional[bytes]]:
        """As Bucket.batch(), of any buckets: each item has `bucket` and `object`, and perhaps
        `member`, `offset` and `length`.  The bytes of each, in this order."""
        return batch.read(self, items, missing_ok)

    def jobs(self, kind: Optional[str] = None, state: Optional[str] = None) -> List[Dict[str, Any]]:
        """The documents of the cluster's jobs: of all, or of a kind or state ("sort", "running")."""
        query = {k: v for k, v in (("kind", kind), ("state", state)) if v is not None}
        rows: List[Dict[str, Any]] = self.get_json("/v1/jobs", query)["jobs"]
        return rows

    def job(self, job_id: str) -> Job:
        """Asks nothing: the job may not exist."""
        return Job(self, job_id)

    def sort(self, spec: Dict[str, Any]) -> Job:
        """Starts a sort.  `spec` is as docs/reference/sort-spec.md has it."""
        return self.start_job("/v1/sort", spec)

    # --- what the other modules stand on ---

    @property
    def policy(self) -> _retry.Policy:
        return self._caller.policy

    def call(self, request: Request, retry: Optional[_retry.Retry] = None) -> Reply:
        return self._caller.call(request, retry)

    @property
    def caller(self) -> Caller:
        return self._caller

    def get_json(self, path: str, query: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
        return read_json(self.call(Request("GET", path, query=query or {})))

    def send_json(self, method: str, path: str, document: object,
                  twice_is_harmless: bool = False) -> Reply:
        return self.call(json_request(method, path, document, twice_is_harmless=twice_is_harmless))

    def start_job(self, path: str, document: Union[Dict[str, Any], object]) -> Job:
        return Job(self, str(read_json(self.send_json("POST", path, document))["id"]))


def _restored(endpoint: Optional[str], given: Dict[str, Any]) -> Client:
    return Client(endpoint, **given)
