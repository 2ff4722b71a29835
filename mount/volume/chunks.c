#include "mount/volume/chunks.h"

#include <errno.h>
#include <string.h>

enum { PAGE = 256 };

int chunks_check_end(int64_t at, uint64_t length)
{
    const uint64_t longest = INT64_MAX / 2;
    return at < 0 || length > longest || (uint64_t)at > longest - length ? -EFBIG : 0;
}

int chunks_parse(struct txn *t, struct chunk *c)
{
    struct error err = ERROR_INIT;
    int rc = slices_decode(c->value.data, c->value.size, t->v->format.chunk_bytes, t->arena,
                           &c->list, &err);
    return rc == 0 ? 0 : txn_engine_error("slices", &err);
}

void chunks_prune(struct txn *t, struct chunk *c, struct releases *r)
{
    struct slice_list gone = slices_prune(&c->list, t->v->format.chunk_bytes, t->arena);
    releases_drop(r, &gone);
}

void chunks_add(struct txn *t, struct chunk *c, const struct slice_entry *e, struct releases *r)
{
    struct slice_list more = {
        arena_alloc(t->arena, (c->list.count + 1) * sizeof *more.entries),
        c->list.count + 1,
    };
    if (c->list.count > 0)
        memcpy(more.entries, c->list.entries, c->list.count * sizeof *more.entries);
    more.entries[c->list.count] = *e;
    c->list = more;
    if (c->list.count > CHUNKS_PRUNE_ABOVE || e->slice == 0)
        chunks_prune(t, c, r);
}

void chunks_store(struct txn *t, const struct chunk *c)
{
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    txn_expect(t, &c->key, &c->value);
    slices_encode(&c->list, &bytes);
    if (c->list.count > 0)
        txn_put(t, &c->key, bytes.data, bytes.len);
    else if (c->value.found)
        txn_delete(t, &c->key);
}

/* ---- zeros ---- */

/* The chunk shows zeros from `from` to `to`, which are places in the file. */
static int clear_chunk(struct txn *t, struct chunk *c, uint64_t from, uint64_t to,
                       struct releases *r)
{
    const uint64_t chunk_bytes = t->v->format.chunk_bytes;
    const uint64_t begin = c->key.sub * chunk_bytes;
    const uint64_t first = from > begin ? from - begin : 0;
    const uint64_t end = to - begin < chunk_bytes ? to - begin : chunk_bytes;
    const struct slice_entry zeros = {
        .at = (uint32_t)first,
        .length = (uint32_t)(end - first),
        .size = (uint32_t)(end - first),
    };
    int rc = chunks_parse(t, c);
    if (rc != 0)
        return rc;
    if (end - first < chunk_bytes) {
        chunks_add(t, c, &zeros, r);
    } else {
        releases_drop(r, &c->list);
        c->list.count = 0;
    }
    chunks_store(t, c);
    return 0;
}

int chunks_clear(struct txn *t, uint64_t ino, uint64_t from, uint64_t to, struct releases *r)
{
    const uint64_t chunk_bytes = t->v->format.chunk_bytes;
    const uint64_t first = from / chunk_bytes;
    struct meta_item page = {
        .ask = META_PAGE,
        .key = meta_key_number(META_CHUNK, ino, first - (first > 0)),
        .after = first > 0,
        .limit = PAGE,
    };
    do {
        int rc = txn_read(t, &page, 1);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < page.count; i++) {
            struct chunk c = {.key = page.rows[i].key, .value = page.rows[i].value};
            if (c.key.sub * chunk_bytes >= to)
                return 0;
            rc = clear_chunk(t, &c, from, to, r);
            if (rc != 0)
                return rc;
            page.key = c.key;
            page.after = true;
        }
    } while (page.more);
    return 0;
}

/* A write that comes between changes `changes`.  So chunks that were not there need no
 * expectation. */
int chunks_truncate(struct txn *t, uint64_t ino, const struct attr *a, int64_t length,
                    struct releases *r)
{
    const struct meta_key key = meta_key_point(META_ATTR, ino);
    int rc = chunks_check_end(0, length < 0 ? UINT64_MAX : (uint64_t)length);
    if (rc == 0 && length < a->length)
        rc = chunks_clear(t, ino, (uint64_t)length, UINT64_MAX, r);
    if (rc != 0)
        return rc;
    txn_expect_equal(t, &key, ATTR_CHANGES, a->changes);
    txn_add(t, &key, ATTR_CHANGES, 1);
    txn_set_number(t, &key, ATTR_LENGTH, length);
    txn_set_number(t, &key, ATTR_MTIME, t->now_ns);
    txn_set_number(t, &key, ATTR_CTIME, t->now_ns);
    return 0;
}
