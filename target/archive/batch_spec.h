/* The body of a batch: which objects, members and ranges are wanted, in this order.
 *
 *     {"entries": [{"bucket": "b", "object": "o", "member": "m", "offset": 0, "length": 10}, …],
 *      "on_missing": "fail", "format": ".tar", "names": "bucket", "report": false}
 *
 * All but "entries", "bucket" and "object" may be left out.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/cleanup.h"
#include "common/error.h"

struct buf;
struct shard_format_ops;

struct batch_entry {
    const char *bucket, *object;
    const char *member; /* NULL: the object itself */
    bool ranged;
    uint64_t offset, length; /* length 0: to the end */
    const char *opaque;      /* the client's own, for the report; or NULL */
};

struct batch_spec {
    json_t *doc; /* the entries' texts borrow from it */
    struct batch_entry *entries;
    size_t count;
    bool empty_if_missing; /* "on_missing": "empty" */
    const struct shard_format_ops *format;
    bool bare_names; /* "names": "object" */
    bool report;     /* wanted before the archive (batch_report.h) */
};

/* E_JSON, E_INVALID, E_NAME: which entry is wrong, and why. */
int batch_spec_parse(const char *text, size_t len, size_t entries_max, struct batch_spec *out,
                     struct error *err);
void batch_spec_done(struct batch_spec *s);

/* Its name in the archive: "BUCKET/OBJECT", "BUCKET/OBJECT/MEMBER", with `bare_names` without the
 * bucket; of one that is missing behind "__404__/". */
void batch_entry_name(const struct batch_spec *s, const struct batch_entry *e, bool missing,
                      struct buf *out);
/* How many bytes the entry is of an object, or a member, of so many.  E_RANGE: it begins behind. */
int batch_entry_size(const struct batch_entry *e, uint64_t whole, uint64_t *out, struct error *err);
