/* etcd's v3 calls in the JSON of its gateway: requests built, answers read.  Pure.
 *
 *     {"compare": [{"key": "L2Rm…", "target": "MOD", "result": "EQUAL", "mod_revision": "7"}],
 *      "success": [{"request_put": {"key": …, "value": …}}],
 *      "failure": [{"request_range": {"key": …}}]}
 *
 * Keys and values are base64 (RFC 4648 section 4), 64-bit integers are text, and what is zero,
 * empty or false is left out of an answer. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

void etcd_base64_put(struct buf *out, const void *data, size_t len);
/* Appends the bytes; E_JSON where the text is not canonical base64. */
int etcd_base64_parse(const char *text, struct buf *out, struct error *err);

/* --- the pieces of a transaction: new values -------------------------------------------------- */

json_t *etcd_put(const char *key, const void *value, size_t len, uint64_t lease); /* 0: none */
json_t *etcd_delete(const char *key);
json_t *etcd_get(const char *key);
/* True while the key was created (last changed) by that revision; 0: while it is absent. */
json_t *etcd_if_created(const char *key, uint64_t revision);
json_t *etcd_if_changed(const char *key, uint64_t revision);
/* Steals the three arrays.  etcd takes 128 operations at one level (--max-txn-ops): the operations
 * of a longer list go into nested transactions, which are one with it. */
json_t *etcd_txn(json_t *compare, json_t *success, json_t *failure);
/* The keys from `first` up to, not including, `end`, in order; revision 0: of now. */
json_t *etcd_range(const char *first, const char *end, uint64_t revision, unsigned limit);

/* --- answers ---------------------------------------------------------------------------------- */

struct etcd_kv {
    char *key;
    struct buf value;
    uint64_t create_revision;
    uint64_t mod_revision;
};

struct etcd_kvs {
    uint64_t revision; /* of the store, when this was so */
    bool more;         /* the limit cut it */
    size_t count;
    struct etcd_kv *kvs;
};

void etcd_kvs_done(struct etcd_kvs *kvs);
/* Of a range. */
int etcd_kvs_parse(json_t *reply, struct etcd_kvs *out, struct error *err);
/* Of the n-th operation, a get, of a transaction. */
int etcd_txn_kvs_parse(json_t *reply, size_t n, struct etcd_kvs *out, struct error *err);
/* Did the comparisons hold?  And the revision of the store after it. */
int etcd_txn_parse(json_t *reply, bool *succeeded, uint64_t *revision, struct error *err);
/* A field of `obj` that is an integer as text; absent: 0. */
int etcd_u64(json_t *obj, const char *field, uint64_t *out, struct error *err);

/* --- what an answer means --------------------------------------------------------------------- */

/* 0; or E_IN_DOUBT: it may have been done, now or later; or a code that says that it was not, and
 * will not be.  E_UNAUTHORIZED: log in (again). */
int etcd_answer_check(int status, const char *body, size_t len, struct error *err);
