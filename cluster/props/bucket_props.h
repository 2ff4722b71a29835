/* The properties of a bucket: types, JSON form, and which of them go together.  A property is one
 * row of cluster/props/bucket_props.def, and a check here where it depends on others. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/checksum.h"
#include "common/error.h"

enum durability { DURABILITY_SYNC, DURABILITY_ASYNC };
/* Of the owners that the map does not pass over, who must have a write before it is acknowledged.
 */
enum write_quorum { WRITE_ALL, WRITE_MAJORITY };
/* Who answers reads: the acting owner alone, or whichever has all that was acknowledged. */
enum read_from { READ_ACTING, READ_ANY };

/* Entity tags of S3: of the version, or the MD5 of the bytes. */
enum etag_kind { ETAG_FAST, ETAG_MD5 };

enum { COPIES_MAX = 8, EC_DATA_SLICES_MAX = 32 };
#define EC_MIN_SIZE_DEFAULT (UINT64_C(1) << 20)

/* What becomes of writes to a bucket with a backend. */
enum write_policy {
    WRITE_POLICY_NONE,    /* they are refused */
    WRITE_POLICY_THROUGH, /* the backend has them before they are answered */
    WRITE_POLICY_BACK,    /* they are uploaded later */
};

/* When is the backend asked whether it still has what is kept here? */
enum validate_mode { VALIDATE_NEVER, VALIDATE_OPEN, VALIDATE_INTERVAL, VALIDATE_MODES };

/* Does a ranged read of what is not here bring the whole, too? */
enum range_fetch { RANGE_FETCH_SIZE, RANGE_FETCH_NEVER, RANGE_FETCH_ALWAYS, RANGE_FETCHES };

struct bucket_props {
#define BUCKET_PROP(name, flag, kind, ctype, field, ...) ctype field;
#include "cluster/props/bucket_props.def"
#undef BUCKET_PROP
    /* The rest of `ec`: with ec_data > 0 objects above ec_min_size are in slices, and there are
     * `copies` of what says so. */
    uint32_t ec_parity;
    uint64_t ec_min_size;
    /* The rest of `ring`; ring_cap 0: the bucket is none. */
    uint32_t ring_keep;
    uint64_t ring_bytes_max;
    bool ring_consumed, ring_drops;
};

extern const struct bucket_props bucket_props_default;
extern const char *const bucket_props_names[]; /* ends with NULL */
#define BUCKET_PROPS_DEFAULT bucket_props_default

json_t *bucket_props_to_json(const struct bucket_props *p);
/* Fields that are absent keep their value in *p, so that it can be a default or the old value.
 * p->backend is borrowed from the document; given as an object it becomes a URL there. */
int bucket_props_from_json(json_t *doc, struct bucket_props *p, struct error *err);
/* What this release does not do: E_UNSUPPORTED; what no release does: E_INVALID. */
int bucket_props_check(const struct bucket_props *p, struct error *err);
bool bucket_props_equal(const struct bucket_props *a, const struct bucket_props *b);

static inline bool bucket_props_have_quota(const struct bucket_props *p)
{
    return p->quota_bytes > 0 || p->quota_objects > 0;
}

/* May `setprops` change them so?  E_INVALID for what is set when a bucket is created. */
int bucket_props_check_change(const struct bucket_props *old, const struct bucket_props *now,
                              struct error *err);
void bucket_props_markdown(struct buf *out); /* the table of docs/reference/buckets.md */
