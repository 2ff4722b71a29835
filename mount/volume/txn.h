/* Transactions: read, decide, commit; again if another client was first.
 *
 *     static int decide(struct txn *t, void *op)
 *     {
 *         struct meta_item item = {.ask = META_GET, .key = …};
 *         int rc = txn_read(t, &item, 1);
 *         if (rc != 0)
 *             return rc;
 *         if (!item.value.found)
 *             return -ENOENT;
 *         txn_expect(t, &item.key, &item.value);
 *         txn_put(t, …);
 *         return 0;
 *     }
 *     return txn_run(v, decide, &op);
 *
 * decide() may run many times, and must set whatever it returns anew each time.  Its reads are at
 * different moments: what it expects must be enough to make the commit right.  An error that
 * follows from more than one read is given with txn_fail(), after its expectations. */
#pragma once

#include "mount/volume/volume_parts.h"

struct txn {
    struct volume *v;
    struct arena *arena; /* until txn_run() returns; begins anew with each try */
    int64_t now_ns;      /* the engine's clock */
    struct meta_step *steps;
    size_t count, room;
    bool changes; /* there is a step that changes */
    int failed;
    struct call *call; /* what it is of; NULL: no call of the kernel, or not all of it */
};

typedef int txn_decide(struct txn *t, void *op);

/* 0 or -errno: decide()'s, txn_fail()'s, or that of the engine. */
int txn_run(struct volume *v, txn_decide *decide, void *op);
/* The same, where the commit is all that a call of the kernel changes. */
int txn_run_call(struct volume *v, txn_decide *decide, void *op);

int txn_read(struct txn *t, struct meta_item *items, size_t count);
int txn_get(struct txn *t, const struct meta_key *key, struct meta_value *value);

/* As it was read: absent, or with this stamp. */
void txn_expect(struct txn *t, const struct meta_key *key, const struct meta_value *value);
void txn_expect_equal(struct txn *t, const struct meta_key *key, size_t offset, int64_t number);
void txn_expect_at_least(struct txn *t, const struct meta_key *key, size_t offset, int64_t number);
/* The bytes are copied. */
void txn_put(struct txn *t, const struct meta_key *key, const void *data, size_t size);
void txn_delete(struct txn *t, const struct meta_key *key);
void txn_set(struct txn *t, const struct meta_key *key, size_t offset, const void *data,
             size_t size);
void txn_set_number(struct txn *t, const struct meta_key *key, size_t offset, int64_t number);
void txn_add(struct txn *t, const struct meta_key *key, size_t offset, int64_t number);
void txn_raise(struct txn *t, const struct meta_key *key, size_t offset, int64_t number);
/* The outcome is this error, if all that was expected holds; nothing is changed. */
int txn_fail(struct txn *t, int error);

/* -errno of an engine's error, which is logged. */
int txn_engine_error(const char *what, const struct error *err);
