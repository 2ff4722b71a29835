"""Where the cluster is and who calls: arguments, then the environment, then a profile.

The environment's names and the file of profiles are those of libdfc and dfcctl (api/dfc.h).
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Denied, Invalid, NotFound

DEFAULT_ENDPOINT = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Origin:
    """Scheme and address of a node."""

    tls: bool
    host: str
    port: int

    @staticmethod
    def of(url: str) -> "Origin":
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as e:
            raise Invalid(f"the address '{url}': {e}", code="invalid_argument") from e
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"'{url}' is no address: it has to be http://HOST:PORT or https://…",
                          code="invalid_argument")
        tls = parts.scheme == "https"
        return Origin(tls, parts.hostname, port or (443 if tls else 80))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}"


@dataclass(frozen=True)
class Config:
    endpoints: Tuple[Origin, ...]
    access_key: Optional[str]
    secret_key: Optional[str]
    token: Optional[str]
    ca_file: Optional[str]


def profile_path() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "dfc", "config.json")


def _read_profiles() -> Dict[str, Any]:
    path = profile_path()
    try:
        with open(path, encoding="utf-8") as f:
            if stat.S_IMODE(os.fstat(f.fileno()).st_mode) & 0o077:
                raise Denied(f"others may read {path}, which has secrets: chmod 600 it",
                             code="invalid_argument")
            document = json.load(f)
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise Invalid(f"{path}: {e}", code="invalid_json") from e
    if not isinstance(document, dict):
        raise Invalid(f"{path}: an object is expected", code="invalid_json")
    return document


def _load_profile(name: Optional[str], endpoints: Optional[str]) -> Dict[str, str]:
    """One that is named must be there; the current one counts for its own endpoints alone."""
    if name is None:
        name = os.environ.get("DFC_PROFILE")
    if name == "":
        return {}
    document = _read_profiles()
    chosen = name or document.get("current")
    profiles = document.get("profiles")
    profile = profiles.get(chosen) if isinstance(profiles, dict) and chosen else None
    if not isinstance(profile, dict):
        if name:
            raise NotFound(f"{profile_path()} has no profile '{name}'", code="not_found")
        return {}
    if not name and endpoints is not None and endpoints != profile.get("endpoints"):
        return {}
    return {k: v for k, v in profile.items() if isinstance(v, str)}


def _who(access_key: Optional[str], secret_key: Optional[str], token: Optional[str],
         profile: Dict[str, str]) -> Tuple[Optional[str], Optional[str], Optional[str]]:
    env = os.environ
    for keys in ((access_key, secret_key, token),
                 (env.get("DFC_ACCESS_KEY"), env.get("DFC_SECRET_KEY"), env.get("DFC_TOKEN")),
                 (profile.get("access_key"), profile.get("secret_key"), profile.get("token"))):
        access, secret, single = (k or None for k in keys)
        if access is None and secret is None and single is None:
            continue
        if (access is None) != (secret is None):
            raise Invalid("an access key and its secret key go together", code="invalid_argument")
        if access is not None and single is not None:
            raise Invalid("give an access key or a token, not both", code="invalid_argument")
        return access, secret, single
    return None, None, None


def load(endpoint: Optional[str] = None, *, profile: Optional[str] = None,
         access_key: Optional[str] = None, secret_key: Optional[str] = None,
         token: Optional[str] = None, ca_file: Optional[str] = None) -> Config:
    named = endpoint or os.environ.get("DFC_ENDPOINT") or None
    chosen = _load_profile(profile, named)
    text = named or chosen.get("endpoints") or DEFAULT_ENDPOINT
    origins: List[Origin] = [Origin.of(part) for part in text.split(",") if part.strip()]
    if not origins or len({o.tls for o in origins}) > 1:
        raise Invalid(f"endpoints '{text}': at least one, and all http:// or all https://",
                      code="invalid_argument")
    access, secret, single = _who(access_key, secret_key, token, chosen)
    ca = ca_file or os.environ.get("DFC_CA_FILE") or chosen.get("ca_file") or None
    return Config(tuple(origins), access, secret, single, ca)
