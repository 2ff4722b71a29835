/* What the job `download` is asked for: objects out of http(s) URLs.  Pure.
 *
 *     {"list": ["https://h/a.tar", {"url": "https://h/x?id=7", "name": "b.tar"}]}
 *     {"template": "https://h/set/shard-{0000..0099}.tar"}
 *     both: "prepend": text before the names, "parallel", "rate" (objects_spec.h), "description",
 *           "allow_empty": it is no failure when no URL gives an object
 *
 * Without a name it is the last segment of the URL's path, percent-decoded.  A URL with a user or a
 * password in it is refused, for everybody sees the job; a query (a signed URL's) may be there, and
 * is seen, too.  Each name may come once in a list. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/template.h"

struct download_spec {
    size_t count; /* of a list */
    char **urls, **names;
    struct name_template *url_template; /* or NULL */
    char *prepend, *description;
    uint64_t parallel, rate_bytes_s;
    bool allow_empty;
};

/* E_SPEC, E_JSON, E_NAME; the messages name the field. */
int download_spec_parse(json_t *value, struct download_spec **out, struct error *err);
void download_spec_free(struct download_spec *s);
DEFINE_CLEANUP(struct download_spec, download_spec_free);
uint64_t download_spec_count(const struct download_spec *s);
/* The i-th URL and the object's name; E_NAME where a template's URL has none. */
int download_spec_item(const struct download_spec *s, uint64_t i, struct buf *url, struct buf *name,
                       struct error *err);
/* The URL without its query and fragment. */
void download_source(const char *url, struct buf *out);
