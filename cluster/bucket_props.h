/* The properties of a bucket: types, words, JSON form, and which of them go together. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"

enum durability { DURABILITY_SYNC, DURABILITY_ASYNC };
/* Of the owners that the map does not pass over, who must have a write before it is acknowledged.
 */
enum write_quorum { WRITE_ALL, WRITE_MAJORITY };
/* Who answers reads: the acting owner alone, or whichever has all that was acknowledged. */
enum read_from { READ_ACTING, READ_ANY };

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
    uint32_t copies; /* 1 … COPIES_MAX, on as many targets */
    uint32_t ec_data,
        ec_parity; /* 0, or objects above ec_min_size are in slices, `copies` of what says so */
    uint64_t ec_min_size;
    enum write_quorum write_quorum;
    enum read_from read_from;
    enum durability durability;
    enum checksum_type checksum; /* computed for every object; default xxh3 */
    bool verify_on_read;
    const char
        *backend; /* NULL, or where what is not here is read from: a URL (cluster/backend.h) */
    bool lru_off; /* with a backend: its objects are not evicted … */
    uint64_t lru_min_age_ms;        /* … or not before they have been unused for so long */
    enum write_policy write_policy; /* with a backend */
    enum validate_mode validate;
    uint64_t validate_interval_ms;
    bool stale_off; /* what the backend cannot be asked about is not served … */
    enum range_fetch range_fetch;
};

#define BUCKET_PROPS_DEFAULT \
    ((struct bucket_props){.copies = 1, .durability = DURABILITY_SYNC, .checksum = CHECKSUM_XXH3})
json_t *bucket_props_to_json(const struct bucket_props *p);
/* Fields that are absent keep their value in *p, so that it can be a default or the old value.
 * p->backend is borrowed from the document; given as an object it becomes a URL there. */
int bucket_props_from_json(json_t *doc, struct bucket_props *p, struct error *err);
/* What this release does not do: E_UNSUPPORTED; what no release does: E_INVALID. */
int bucket_props_check(const struct bucket_props *p, struct error *err);
bool bucket_props_equal(const struct bucket_props *a, const struct bucket_props *b);

const char *write_quorum_name(enum write_quorum q);
const char *read_from_name(enum read_from f);
const char *durability_name(enum durability d);
int durability_from_name(const char *name, enum durability *d, struct error *err);
const char *write_policy_name(enum write_policy p);
