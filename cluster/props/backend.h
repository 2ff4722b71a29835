/* Where the objects of a cold bucket come from: the bucket property `backend`.  Pure; fuzzed.
 *
 * In the documents it is a URL; a request may also give an object, of which the URL is made:
 *
 *   s3://NAME[/PREFIX][?endpoint=URL&region=R&style=path|virtual&auth=signed|none&profile=P]
 *   {"provider": "s3", "bucket": NAME, "prefix": …, "endpoint": …, "region": …, "style": …,
 *    "auth": …, "profile": …}
 *
 *   gs://NAME[/PREFIX][?endpoint=URL&auth=signed|none]
 *   {"provider": "gcs", "bucket": NAME, "prefix": …, "endpoint": …, "auth": …}
 *
 *   http://HOST[:PORT][/BASE]    https://HOST[:PORT][/BASE]
 *   {"provider": "http", "url": URL}
 *
 *   dfc://NAME[/PREFIX]?endpoint=URL
 *   {"provider": "dfc", "bucket": NAME, "prefix": …, "endpoint": …}
 *
 * s3: the object's key is PREFIX/name.  Without an endpoint it is AWS's of the region (us-east-1
 * where none is given).  style: how the bucket is named in requests; with an endpoint `path`, else
 * `virtual` where the name has no dot.  auth=none: requests are not signed, as public buckets want
 * it.  profile: which section of the targets' AWS files has the keys.
 * gs: Google Cloud Storage by its own API; without an endpoint it is Google's.
 * http: the object's URL is BASE/name.
 * dfc: a bucket of another cluster, of which the endpoint is a proxy.
 *
 * A URL is seen by every user of the cluster, and logged: keys never stand in it, and one with a
 * user or a password is refused. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"

enum { BACKEND_URL_MAX = 2048 };

struct backend_spec {
    const char *provider; /* "s3", "gcs", "http", "dfc" */
    const char *endpoint; /* "http://host:port/base", without a slash at the end */
    const char *bucket;   /* "" with http */
    const char *prefix;   /* "" or "some/prefix/" */
    const char *region;
    const char *profile; /* "" : the default one */
    bool path_style;
    bool is_signed;
};

/* Texts are the arena's.  E_INVALID; E_UNSUPPORTED for a provider that this release has not. */
int backend_parse(const char *url, struct arena *a, struct backend_spec *out, struct error *err);
int backend_check(const char *url, struct error *err);
/* The URL of the object form. */
int backend_url_from_json(json_t *doc, struct buf *out, struct error *err);
/* Do both lead to the same objects, so that what is kept of the one holds for the other?  An
 * endpoint may move; provider, bucket and prefix may not (of http: the URL). */
bool backend_same_objects(const char *a, const char *b);
/* Does this release write to it, and list it? */
bool backend_is_written(const char *url);
bool backend_is_listed(const char *url);
/* Do targets use credentials of the cluster for it, the default ones or a profile's? */
bool backend_is_signed(const char *url);
