#include "mount/volume/ids.h"

#include <errno.h>

#include "mount/volume/counters.h"
#include "mount/volume/txn.h"

struct take {
    enum counters_ids kind;
    int64_t count;
    struct id_range range;
};

static int decide(struct txn *t, void *op)
{
    struct take *k = op;
    struct meta_key key = counters_next_key(k->kind);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0)
        return rc;
    int64_t next = meta_field(&value, 0);
    if (next <= 0)
        return -EIO; /* no volume has it so */
    txn_expect_equal(t, &key, 0, next);
    txn_add(t, &key, 0, k->count);
    if (k->kind == IDS_SLICES) {
        struct meta_key range = meta_key_number(META_RANGE, t->v->session, (uint64_t)next);
        txn_put(t, &range, NULL, 0);
    }
    k->range = (struct id_range){(uint64_t)next, (uint64_t)next + (uint64_t)k->count};
    return 0;
}

static int take(struct volume *v, struct id_range *range, enum counters_ids kind, int64_t count,
                uint64_t *id)
{
    int rc = 0;
    pthread_mutex_lock(&v->ids_lock);
    if (range->next == range->end) {
        struct take k = {.kind = kind, .count = count};
        rc = txn_run(v, decide, &k);
        if (rc == 0)
            *range = k.range;
    }
    if (rc == 0)
        *id = range->next++;
    pthread_mutex_unlock(&v->ids_lock);
    return rc;
}

int ids_inode(struct volume *v, uint64_t *ino)
{
    return take(v, &v->inodes, IDS_INODES, IDS_INODE_RANGE, ino);
}

int ids_slice(struct volume *v, uint64_t *slice)
{
    return take(v, &v->slices, IDS_SLICES, IDS_SLICE_RANGE, slice);
}

uint64_t ids_next_slice(struct volume *v)
{
    pthread_mutex_lock(&v->ids_lock);
    uint64_t next = v->slices.next;
    pthread_mutex_unlock(&v->ids_lock);
    return next;
}

/* ---- ranges that are used up ---- */

static int decide_settled(struct txn *t, void *op)
{
    const uint64_t below = *(const uint64_t *)op;
    struct meta_item page = {.ask = META_PAGE, .limit = IDS_RANGES_AT_ONCE};
    page.key = (struct meta_key){.kind = META_RANGE, .id = t->v->session};
    int rc = txn_read(t, &page, 1);
    for (size_t i = 0; i < page.count && rc == 0; i++) {
        if (page.rows[i].key.sub + IDS_SLICE_RANGE <= below)
            txn_delete(t, &page.rows[i].key);
    }
    return rc;
}

int ids_settled(struct volume *v, uint64_t below)
{
    return txn_run(v, decide_settled, &below);
}
