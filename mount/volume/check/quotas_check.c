#include "mount/volume/check/quotas_check.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "mount/volume/trash.h"

/* A key that is no quota's is judged as one whose directory is gone. */
void check_quotas_see(struct check_quotas *q, const struct meta_row *row)
{
    if (q->count == q->room) {
        q->room = 2 * q->room + 16;
        q->all = xrealloc(q->all, q->room * sizeof *q->all);
    }
    if (!quotas_decode(&row->value, row->key.id, &q->all[q->count]))
        q->all[q->count].directory = 0;
    q->count++;
}

void check_quotas_done(struct check_quotas *q)
{
    free(q->all);
    *q = (struct check_quotas){0};
}

static int by_id(const void *a, const void *b)
{
    const struct quota *one = a, *two = b;
    return one->id < two->id ? -1 : one->id > two->id;
}

/* NULL: it counts nothing. */
static const struct quota *living(const struct check_quotas *q, uint64_t id)
{
    const struct quota key = {.id = id};
    return id != 0 && q->count > 0 ? bsearch(&key, q->all, q->count, sizeof key, by_id) : NULL;
}

static int by_ino(const void *a, const void *b)
{
    const struct check_inode *one = a, *two = b;
    return one->ino < two->ino ? -1 : one->ino > two->ino;
}

static const struct check_inode *inode_of(const struct check_inodes *inodes, uint64_t ino)
{
    const struct check_inode key = {.ino = ino};
    return inodes->count > 0 ? bsearch(&key, inodes->all, inodes->count, sizeof key, by_ino) : NULL;
}

/* ---- counters ---- */

struct sum {
    int64_t inodes, bytes;
};

static void judge_counters(const struct check_quotas *q, const struct check_inodes *inodes,
                           struct check *c)
{
    struct sum *sums = xcalloc(q->count + 1, sizeof *sums);
    for (size_t i = 0; i < inodes->count; i++) {
        const struct check_inode *one = &inodes->all[i];
        const struct quota *of = living(q, one->quota);
        if (of == NULL || of->directory == one->ino)
            continue;
        sums[of - q->all].inodes++;
        sums[of - q->all].bytes = quotas_sum(sums[of - q->all].bytes, one->bytes);
    }
    for (size_t i = 0; i < q->count; i++) {
        const struct quota *one = &q->all[i];
        check_add_counter(c, CHECK_QUOTA_INODES, one->id, one->inodes, sums[i].inodes);
        check_add_counter(c, CHECK_QUOTA_INODES_LEFT, one->id, one->inodes_left,
                          one->inodes_limit - sums[i].inodes);
        if (sums[i].bytes == INT64_MAX) {
            check_add(c, CHECK_QUOTA_OVER, one->id);
            continue;
        }
        check_add_counter(c, CHECK_QUOTA_BYTES, one->id, one->bytes, sums[i].bytes);
        check_add_counter(c, CHECK_QUOTA_BYTES_LEFT, one->id, one->bytes_left,
                          one->bytes_limit - sums[i].bytes);
    }
    free(sums);
}

/* Those whose directory is there are left. */
static void drop_gone(struct check_quotas *q, const struct check_inodes *inodes, struct check *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < q->count; i++) {
        const struct check_inode *directory = inode_of(inodes, q->all[i].directory);
        if (directory != NULL && directory->quota == q->all[i].id && S_ISDIR(directory->mode))
            q->all[kept++] = q->all[i];
        else
            check_add(c, CHECK_QUOTA_GONE, q->all[i].id);
    }
    q->count = kept;
}

/* ---- numbers ---- */

/* What the way to the root says.  False: the trash is on it, or a loop, or a quota that is not
 * whole yet. */
static bool quota_above(const struct check_quotas *q, const struct check_inodes *inodes,
                        const struct check_inode *i, uint64_t *out)
{
    *out = 0;
    for (size_t steps = 0; steps <= inodes->count; steps++) {
        i = i->names == 1 ? inode_of(inodes, i->from) : NULL;
        if (i == NULL || trash_has(i->ino))
            return false;
        if (i->ino == VOLUME_ROOT)
            return true;
        const struct quota *of = living(q, i->quota);
        if (of != NULL && of->directory == i->ino) {
            *out = of->id;
            return of->whole;
        }
    }
    return false;
}

static void judge_number(const struct check_quotas *q, const struct check_inodes *inodes,
                         const struct check_inode *i, struct check *c)
{
    const struct quota *of = living(q, i->quota);
    uint64_t should;
    const bool own = of != NULL && of->directory == i->ino;
    if (own || i->names != 1 || i->nlink == 0 || (!S_ISDIR(i->mode) && i->nlink != 1) ||
        !quota_above(q, inodes, i, &should) || (of != NULL ? of->id : 0) == should)
        return;
    struct check_finding *f = check_add(c, CHECK_QUOTA_OF, i->ino);
    f->other = i->quota;
    f->is = of != NULL ? (int64_t)of->id : 0;
    f->should = (int64_t)should;
}

void check_quotas_judge(struct check_quotas *q, const struct check_inodes *inodes, struct check *c)
{
    if (q->count > 0)
        qsort(q->all, q->count, sizeof *q->all, by_id);
    drop_gone(q, inodes, c);
    judge_counters(q, inodes, c);
    for (size_t i = 0; i < inodes->count && q->count > 0; i++)
        judge_number(q, inodes, &inodes->all[i], c);
}
