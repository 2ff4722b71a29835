"""A background job of the cluster: a sort, a copy, a deletion, a repair."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from ._call import Request, encode_name
from .errors import Error, Timeout

if TYPE_CHECKING:
    from .client import Client

ENDED = ("finished", "failed", "aborted")


class JobFailed(Error):
    """The job ended otherwise than by doing its work.  `document` says how."""

    document: Dict[str, Any] = {}


class Job:
    """By its `id`; nothing is asked until a method is called."""

    def __init__(self, client: "Client", job_id: str) -> None:
        self._client = client
        self.id = job_id

    def __repr__(self) -> str:
        return f"dfc.Job({self.id!r})"

    def document(self) -> Dict[str, Any]:
        """As docs/reference/jobs.md has it."""
        return self._client.get_json("/v1/jobs/" + encode_name(self.id))

    def abort(self) -> None:
        """Asks the job to end.  wait() says when it has; a job that has ended stays as it is."""
        self._client.call(Request("DELETE", "/v1/jobs/" + encode_name(self.id))).close()

    def wait(self, timeout: Optional[float] = None,
             progress: Optional[Callable[[Dict[str, Any]], None]] = None) -> Dict[str, Any]:
        """Until it has ended.  Its document where it did its work, else JobFailed."""
        ends = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            document = self.document()
            if progress is not None:
                progress(document)
            if document["state"] in ENDED:
                return self._ended(document)
            if ends is not None and time.monotonic() + pause > ends:
                raise Timeout(f"job {self.id} is '{document['state']}' after {timeout:g} s",
                              code="timeout")
            time.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def _ended(self, document: Dict[str, Any]) -> Dict[str, Any]:
        if document["state"] == "finished":
            return document
        error = (document.get("errors") or [{}])[0]
        failed = JobFailed(f"job {self.id} {document['state']}: {error.get('message', 'no reason')}",
                           code=str(error.get("code", document["state"])))
        failed.document = document
        raise failed
