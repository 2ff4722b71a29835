"""Amazon's signatures, Version 4, of requests to S3: computed from the description, and checked."""

import hashlib
import hmac
import re
import urllib.parse

from fake_http import Refused


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def canonical_query(query):
    pairs = [p.partition("=")[::2] for p in query.split("&") if p]
    quoted = sorted((urllib.parse.quote(urllib.parse.unquote(k), safe="-_.~"),
                     urllib.parse.quote(urllib.parse.unquote(v), safe="-_.~")) for k, v in pairs)
    return "&".join(f"{k}={v}" for k, v in quoted)


def signature(secret, method, path, query, headers, signed, date, region, service):
    """As "Authenticating Requests: Using the Authorization Header" has it."""
    lines = "".join(f"{name}:{' '.join(headers.get(name, '').split())}\n" for name in signed)
    request = "\n".join([method, path, canonical_query(query), lines, ";".join(signed),
                         headers.get("x-amz-content-sha256", "")])
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (date[:8], region, service, "aws4_request"):
        key = digest(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def authorize(request, keys, token, region):
    """Refused unless the request is signed by one of the keys, and has the session's token, if
    there is one."""
    headers = {n.lower(): v for n, v in request.headers.items()}
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
                         r"SignedHeaders=([^ ,]+), Signature=([0-9a-f]{64})",
                         headers.get("authorization", ""))
    if not found:
        raise Refused(403, "AccessDenied", "Anonymous access is forbidden")
    access, day, its_region, names, got = found.groups()
    date, signed = headers.get("x-amz-date", ""), names.split(";")
    if access not in keys:
        raise Refused(403, "InvalidAccessKeyId", "The AWS Access Key Id is not in our records")
    if its_region != region or date[:8] != day or signed != sorted(signed):
        raise Refused(403, "AuthorizationHeaderMalformed", "The scope is not right")
    missing = [n for n in headers if n.startswith("x-amz-") and n not in signed]
    if "host" not in signed or missing:
        raise Refused(403, "AccessDenied", f"Headers that must be signed: {missing}")
    if token is not None and headers.get("x-amz-security-token") != token:
        raise Refused(403, "InvalidToken", "The provided token is malformed")
    path, _, query = request.path.partition("?")
    if got != signature(keys[access], request.command, path, query, headers, signed, date, region,
                        "s3"):
        raise Refused(403, "SignatureDoesNotMatch", "The request signature does not match")
