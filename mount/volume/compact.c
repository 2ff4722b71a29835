/* Chunks whose lists have become long, or whose slices are mostly hidden, are stored anew: planned,
 * then committed if neither the list nor the inode has changed meanwhile. */

#include <errno.h>

#include "mount/volume/chunks.h"
#include "mount/volume/counters.h"
#include "mount/volume/steps.h"

/* Chunks of one inode that are queued at once have times of their own. */
enum { SPREAD_MS = 1000 };

static void put_queued(struct txn *t, uint64_t due_ms, uint64_t ino, uint64_t chunk)
{
    const struct meta_key key = meta_key_number(META_COMPACT, due_ms, ino);
    uint8_t bytes[8];
    meta_field_put(bytes, 0, (int64_t)chunk);
    txn_put(t, &key, bytes, sizeof bytes);
}

void compact_queue(struct txn *t, uint64_t ino, uint64_t chunk, uint64_t after_ms)
{
    put_queued(t, (uint64_t)(t->now_ns / 1000000) + after_ms + chunk % SPREAD_MS, ino, chunk);
}

/* ---- the queue ---- */

int volume_messy(struct volume *v, struct arena *arena, size_t limit, struct volume_chunk **out,
                 size_t *count)
{
    struct error err = ERROR_INIT;
    int64_t now_ms;
    struct meta_item item = {.key.kind = META_COMPACT, .limit = limit};
    int rc = v->meta->ops->now(v->meta, &now_ms, &err);
    if (rc == 0)
        rc = v->meta->ops->queue(v->meta, arena, &item, (uint64_t)now_ms, &err);
    *count = 0;
    *out = arena_alloc(arena, (item.count + 1) * sizeof **out);
    for (size_t i = 0; i < item.count && rc == 0; i++)
        (*out)[(*count)++] = (struct volume_chunk){
            .due_ms = item.rows[i].key.id,
            .ino = item.rows[i].key.sub,
            .number = (uint64_t)meta_field(&item.rows[i].value, 0),
        };
    return rc == 0 ? 0 : txn_engine_error("queue", &err);
}

struct done {
    const struct volume_chunk *chunk;
    bool again;
};

static int decide_done(struct txn *t, void *op)
{
    const struct done *d = op;
    const struct meta_key key = meta_key_number(META_COMPACT, d->chunk->due_ms, d->chunk->ino);
    struct meta_value value;
    int rc = txn_get(t, &key, &value);
    if (rc != 0 || !value.found)
        return rc;
    txn_expect(t, &key, &value);
    txn_delete(t, &key);
    if (d->again)
        compact_queue(t, d->chunk->ino, d->chunk->number, t->v->format.grace_ms);
    return 0;
}

int volume_messy_done(struct volume *v, const struct volume_chunk *chunk, bool again)
{
    struct done d = {chunk, again};
    return txn_run(v, decide_done, &d);
}

/* ---- plan ---- */

struct plan {
    struct volume_rewrite *out;
    unsigned most;
    struct arena *arena;
};

static int read_chunk(struct txn *t, uint64_t ino, uint64_t number, struct meta_value *attr,
                      struct chunk *c)
{
    struct meta_item items[] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, ino)},
        {.ask = META_GET, .key = meta_key_number(META_CHUNK, ino, number)},
    };
    int rc = txn_read(t, items, 2);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    *attr = items[0].value;
    *c = (struct chunk){.key = items[1].key, .value = items[1].value};
    return chunks_parse(t, c);
}

static int decide_plan(struct txn *t, void *op)
{
    struct plan *p = op;
    struct meta_value attr;
    struct chunk c;
    int rc = read_chunk(t, p->out->ino, p->out->number, &attr, &c);
    p->out->count = 0;
    if (rc != 0 || !c.value.found)
        return rc;
    p->out->attr_stamp = attr.stamp;
    p->out->list_stamp = c.value.stamp;
    if (slices_is_messy(&c.list, p->most, t->arena))
        p->out->count = slices_plan(&c.list, t->v->format.block_bytes, p->arena, &p->out->ranges);
    return 0;
}

int volume_plan(struct volume *v, uint64_t ino, uint64_t number, unsigned most, struct arena *arena,
                struct volume_rewrite *out)
{
    struct plan p = {out, most, arena};
    *out = (struct volume_rewrite){.ino = ino, .number = number};
    return txn_run(v, decide_plan, &p);
}

/* ---- commit ---- */

struct rewrite {
    const struct volume_rewrite *plan;
    const struct volume_piece *pieces;
    size_t count;
};

static void lay_pieces(struct txn *t, const struct rewrite *w, struct chunk *c, struct releases *r)
{
    const uint64_t begin = w->plan->number * t->v->format.chunk_bytes;
    for (size_t i = 0; i < w->count; i++) {
        const struct volume_piece *p = &w->pieces[i];
        const struct slice_entry e = {
            .at = (uint32_t)((uint64_t)p->at - begin),
            .length = p->length,
            .size = p->size,
            .slice = p->slice,
            .sums = p->sums,
            .sums_count = p->sums_count,
        };
        releases_make(r, e.slice, e.size);
        chunks_add(t, c, &e, r);
    }
    chunks_prune(t, c, r);
}

/* Who frees the inode expects its stamp, and not those of its lists: so it gets a new one. */
static void restamp(struct txn *t, uint64_t ino, const struct meta_value *attr)
{
    const struct meta_key key = meta_key_point(META_ATTR, ino);
    txn_expect(t, &key, attr);
    txn_add(t, &key, ATTR_CHANGES, 1);
    txn_set_number(t, &key, ATTR_CTIME, meta_field(attr, ATTR_CTIME));
}

static int decide_rewrite(struct txn *t, void *op)
{
    const struct rewrite *w = op;
    struct meta_value attr, use;
    struct chunk c;
    struct releases r = {0};
    const struct meta_key use_key = counters_use_key();
    int rc = read_chunk(t, w->plan->ino, w->plan->number, &attr, &c);
    if (rc == -ENOENT ||
        (rc == 0 && (attr.stamp != w->plan->attr_stamp || c.value.stamp != w->plan->list_stamp)))
        return -ESTALE;
    if (rc == 0)
        rc = txn_get(t, &use_key, &use);
    if (rc != 0)
        return rc;
    lay_pieces(t, w, &c, &r);
    rc = steps_check_use(&use, 0, releases_new_bytes(&r));
    if (rc == 0) {
        restamp(t, w->plan->ino, &attr);
        chunks_store(t, &c);
        rc = releases_apply(&r, t);
    }
    releases_done(&r);
    return rc;
}

int volume_rewrite(struct volume *v, const struct volume_rewrite *plan,
                   const struct volume_piece *pieces, size_t count)
{
    struct rewrite w = {plan, pieces, count};
    return txn_run(v, decide_rewrite, &w);
}
