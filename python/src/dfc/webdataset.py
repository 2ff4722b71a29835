"""dfc:// for WebDataset and its package wids.

    import dfc.webdataset, webdataset

    dfc.webdataset.register()
    data = webdataset.WebDataset("dfc://train/shard-{000000..000999}.tar", shardshuffle=100)

    index = wids.ShardListDataset("dfc://train/index.json")

register() is for one process, and for those that it forks.  Workers that are spawned call it, too:
`DataLoader(…, worker_init_fn=dfc.webdataset.register)`.
"""

from __future__ import annotations

import importlib
from typing import Any, Dict, Optional, Tuple

from . import _files
from .bucket import Bucket
from .client import Client
from .errors import Invalid

SCHEME = "dfc"
_default: Dict[str, Client] = {}  # at most one, under ''


def register(client: object = None) -> None:
    """Makes the packages that are installed open dfc://BUCKET/OBJECT.  Without a `dfc.Client` it is
    dfc.Client(), made when the first object is opened; the number of a worker counts as none."""
    if isinstance(client, Client):
        _default[""] = client
    found = [_put_into("webdataset.gopen", "gopen_schemes", gopen),
             _put_into("wids.wids_dl", "default_cmds", download)]
    if not any(found):
        raise ModuleNotFoundError("neither webdataset nor wids is installed")


def _put_into(module: str, table: str, handler: Any) -> bool:
    try:
        getattr(importlib.import_module(module), table)[SCHEME] = handler
        return True
    except ModuleNotFoundError as e:
        if e.name != module.partition(".")[0]:
            raise
        return False


def gopen(url: str, mode: str = "rb", bufsize: Optional[int] = None, **_: Any) -> Any:
    """What WebDataset opens: a shard that it reads or, with its writers, writes whole."""
    bucket, name = _split(url)
    return _files.opened(bucket, name, mode)


def download(url: str, path: str) -> None:
    """What wids calls for a shard or an index that it does not have."""
    bucket, name = _split(url)
    _files.download(bucket, name, path)


def _split(url: str) -> Tuple[Bucket, str]:
    scheme, _, rest = url.partition("://")
    bucket, _, name = rest.partition("/")
    if scheme != SCHEME or not bucket or not name:
        raise Invalid(f"'{url}' names no object: it has to be dfc://BUCKET/OBJECT",
                      code="invalid_argument")
    if "" not in _default:
        _default[""] = Client()
    return _default[""].bucket(bucket), name
