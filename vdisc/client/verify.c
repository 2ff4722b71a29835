#include "vdisc/client/verify.h"

#include <pthread.h>
#include <string.h>

#include "common/checksum.h"
#include "vdisc/client/each.h"

struct verifying {
    struct vdisc *v;
    void (*tell)(void *context, uint32_t extent, const struct verify_extent *found);
    void *context;
    struct verify_tally *tally;
    pthread_mutex_t lock; /* tally, tell() */
};

static int digest(void *context, const void *data, size_t size)
{
    checksum_update(context, data, size);
    return 0;
}

static void say(struct verify_extent *f, enum verdict verdict, const char *why)
{
    f->verdict = verdict;
    snprintf(f->why, sizeof f->why, "%s", why);
}

static bool is_other(const struct dfc_error *e)
{
    return e->result == DFC_PRECONDITION || e->result == DFC_CORRUPT;
}

static int compare(struct vdisc *v, uint32_t extent, struct verify_extent *f, struct dfc_error *err)
{
    const struct vdisc_extent *e = &vdisc_table_of(v)->extents[extent];
    struct checksum_value wanted, got;
    if (!vdisc_extent_checksum(e, &wanted)) {
        say(f, VERDICT_UNKNOWN, "the table has no checksum of it that is known here");
        return DFC_OK;
    }
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(wanted.type);
    const struct dfc_sink sink = {.write = digest, .context = sum};
    int rc = vdisc_check(v, extent, &sink, err);
    if (rc == DFC_CANCELLED)
        return rc;
    if (rc != DFC_OK) {
        say(f, is_other(err) ? VERDICT_DIFFERS : VERDICT_FAILED, err->message);
        return DFC_OK;
    }
    checksum_final(sum, &got);
    if (checksum_equal(&wanted, &got))
        f->verdict = VERDICT_EQUAL;
    else
        say(f, VERDICT_DIFFERS, "its bytes do not have the checksum that the table has");
    return DFC_OK;
}

static int verify_one(void *context, uint32_t extent, struct dfc_error *err)
{
    struct verifying *w = context;
    struct verify_tally *t = w->tally;
    struct verify_extent f = {0};
    int rc = compare(w->v, extent, &f, err);
    if (rc != DFC_OK)
        return rc;
    pthread_mutex_lock(&w->lock);
    uint64_t *const counts[] = {&t->equal, &t->differing, &t->unknown, &t->failed};
    (*counts[f.verdict])++;
    if (f.verdict == VERDICT_EQUAL)
        t->bytes += vdisc_extent_size(&vdisc_table_of(w->v)->extents[extent]);
    else if (w->tell != NULL)
        w->tell(w->context, extent, &f);
    pthread_mutex_unlock(&w->lock);
    return DFC_OK;
}

int vdisc_verify(struct vdisc *v, unsigned threads,
                 void (*tell)(void *context, uint32_t extent, const struct verify_extent *found),
                 void *context, struct verify_tally *tally, struct dfc_error *err)
{
    struct verifying w = {.v = v,
                          .tell = tell,
                          .context = context,
                          .tally = tally,
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    *tally = (struct verify_tally){.extents = vdisc_table_of(v)->count};
    return each_number(vdisc_table_of(v)->count, threads, verify_one, &w, err);
}

bool verify_is_whole(const struct verify_tally *t)
{
    return t->extents > 0 && t->equal == t->extents;
}
