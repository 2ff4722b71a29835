/* Holes of a file: made by fallocate(2), and found by lseek(2). */
#include <errno.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include "mount/volume/chunks.h"
#include "mount/volume/counters.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"

enum { PAGE = 256 };

static int check_file(const struct meta_value *value, struct attr *out)
{
    if (!value->found)
        return -ENOENT;
    if (!attr_decode(value, out))
        return -EIO;
    return S_ISREG(out->mode) ? 0 : attr_is_directory(out) ? -EISDIR : -EINVAL;
}

/* ---- fallocate ---- */

struct allocation {
    uint64_t ino;
    unsigned mode;
    int64_t at;
    uint64_t length;
};

static int clear(struct txn *t, const struct allocation *o)
{
    struct releases r = {0};
    int rc = chunks_clear(t, o->ino, (uint64_t)o->at, (uint64_t)o->at + o->length, &r);
    if (rc == 0)
        rc = releases_apply(&r, t);
    releases_done(&r);
    return rc;
}

/* The file's attribute has changed, and perhaps its length. */
static void change(struct txn *t, const struct meta_key *key, const struct attr *a, int64_t length)
{
    txn_expect_equal(t, key, ATTR_CHANGES, a->changes);
    txn_add(t, key, ATTR_CHANGES, 1);
    txn_raise(t, key, ATTR_LENGTH, length);
    txn_set_number(t, key, ATTR_MTIME, t->now_ns);
    txn_set_number(t, key, ATTR_CTIME, t->now_ns);
}

/* As much as is shown to be free. */
static int check_room(const struct meta_value *use, int64_t more)
{
    return more > VOLUME_FREE_BYTES ? -ENOSPC : steps_check_use(use, 0, more);
}

static int decide_allocate(struct txn *t, void *op)
{
    const struct allocation *o = op;
    const bool clears = (o->mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
    const int64_t end = o->at + (int64_t)o->length;
    struct attr a;
    struct quota quota;
    struct meta_item items[3] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, o->ino)},
        {.ask = META_GET, .key = counters_use_key()},
    };
    int rc = quotas_read(t, items, 2, 0, &quota);
    if (rc != 0)
        return rc;
    rc = check_file(&items[0].value, &a);
    if (rc != 0)
        return rc;
    const bool grows = (o->mode & FALLOC_FL_KEEP_SIZE) == 0 && end > a.length;
    if (grows && !clears)
        rc = check_room(&items[1].value, end - a.length);
    if (rc == 0)
        rc = quotas_resize(t, &items[0].key, &a, &quota, grows ? end : a.length);
    if (rc == 0 && clears)
        rc = clear(t, o);
    if (rc == 0)
        change(t, &items[0].key, &a, grows ? end : a.length);
    return rc;
}

static int check_mode(unsigned mode)
{
    const unsigned known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
    const bool punches = (mode & FALLOC_FL_PUNCH_HOLE) != 0;
    const bool wrong = punches && ((mode & FALLOC_FL_KEEP_SIZE) == 0 || //
                                   (mode & FALLOC_FL_ZERO_RANGE) != 0);
    return (mode & ~known) != 0 || wrong ? -EOPNOTSUPP : 0;
}

int volume_allocate(struct volume *v, uint64_t ino, unsigned mode, int64_t at, uint64_t length)
{
    struct allocation o = {ino, mode, at, length};
    int rc = check_mode(mode);
    if (rc == 0 && length == 0)
        rc = -EINVAL;
    if (rc == 0)
        rc = chunks_check_end(at, length);
    return rc != 0 ? rc : txn_run(v, decide_allocate, &o);
}

/* ---- lseek ---- */

struct seek {
    uint64_t ino;
    int64_t from;
    bool hole;
    int64_t at; /* where the search is */
    bool found;
    struct attr attr;
};

/* Looks from `s->at` on, to the end of the chunk or of the file. */
static int search_chunk(struct txn *t, struct seek *s, const struct meta_row *row)
{
    const int64_t chunk_bytes = (int64_t)t->v->format.chunk_bytes;
    const int64_t begin = (int64_t)row->key.sub * chunk_bytes;
    const int64_t left = s->attr.length - begin;
    const int64_t end = begin + (left < chunk_bytes ? left : chunk_bytes);
    struct chunk c = {.key = row->key, .value = row->value};
    struct extent *extents;
    if (s->at < begin) { /* a chunk that is not there is a hole */
        s->found = s->hole;
        s->at = s->hole ? s->at : begin;
    }
    if (s->found || s->at >= end)
        return 0;
    int rc = chunks_parse(t, &c);
    if (rc != 0)
        return rc;
    size_t count = slices_resolve(&c.list, (uint32_t)(s->at - begin), (uint32_t)(end - s->at),
                                  t->arena, &extents);
    for (size_t i = 0; i < count && !s->found; i++) {
        s->found = (extents[i].entry == NULL) == s->hole;
        s->at = begin + extents[i].at + (s->found ? 0 : extents[i].length);
    }
    return 0;
}

static int search(struct txn *t, struct seek *s, struct meta_item *page)
{
    for (;;) {
        for (size_t i = 0; i < page->count && !s->found; i++) {
            int rc = search_chunk(t, s, &page->rows[i]);
            if (rc != 0)
                return rc;
        }
        if (s->found || page->count == 0 || !page->more)
            return 0;
        page->key = page->rows[page->count - 1].key;
        page->after = true;
        int rc = txn_read(t, page, 1);
        if (rc != 0)
            return rc;
    }
}

/* A write between two pages changes `changes`. */
static int decide_seek(struct txn *t, void *op)
{
    struct seek *s = op;
    const uint64_t first = (uint64_t)s->from / t->v->format.chunk_bytes;
    struct meta_item items[] = {
        {.ask = META_GET, .key = meta_key_point(META_ATTR, s->ino)},
        {.ask = META_PAGE,
         .key = meta_key_number(META_CHUNK, s->ino, first - (first > 0)),
         .after = first > 0,
         .limit = PAGE},
    };
    int rc = txn_read(t, items, 2);
    s->at = s->from;
    s->found = false;
    if (rc != 0)
        return rc;
    rc = check_file(&items[0].value, &s->attr);
    if (rc != 0)
        return rc;
    if (s->at >= s->attr.length)
        return -ENXIO;
    rc = search(t, s, &items[1]);
    if (rc != 0)
        return rc;
    txn_expect_equal(t, &items[0].key, ATTR_CHANGES, s->attr.changes);
    return s->found || s->hole ? 0 : txn_fail(t, -ENXIO);
}

int volume_seek(struct volume *v, uint64_t ino, int64_t at, bool hole, int64_t *out)
{
    struct seek s = {.ino = ino, .from = at, .hole = hole};
    int rc = at < 0 ? -ENXIO : txn_run(v, decide_seek, &s);
    *out = s.at;
    return rc;
}
