/* What quotas of directories must do, as plainly as it can be said. */
#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "mount/volume/testing/model.h"

/* NULL: the number is of no quota. */
static struct model_quota *living(const struct model *m, uint64_t id)
{
    for (size_t i = 0; i < m->quota_count && id != 0; i++) {
        if (m->quotas[i].id == id && !m->quotas[i].gone)
            return (struct model_quota *)&m->quotas[i];
    }
    return NULL;
}

uint64_t model_quota_of(const struct model *m, const struct model_inode *i)
{
    const struct model_quota *q = living(m, i->quota);
    return q != NULL ? q->id : 0;
}

int model_quota_check(const struct model *m, uint64_t id, int64_t inodes, int64_t bytes)
{
    const struct model_quota *q = living(m, id);
    for (size_t k = 0; k < m->count && q != NULL; k++) {
        const struct model_inode *i = &m->inodes[k];
        if (i->quota != id || i->ino == q->directory)
            continue;
        inodes += inodes > 0;
        bytes += bytes > 0 && S_ISREG(i->mode) ? i->length : 0;
    }
    const bool room = q == NULL || ((inodes <= 0 || inodes <= q->inodes) && //
                                    (bytes <= 0 || bytes <= q->bytes));
    return room ? 0 : -EDQUOT;
}

void model_quota_drop(struct model *m, struct model_inode *i)
{
    struct model_quota *q = living(m, i->quota);
    if (q != NULL && q->directory == i->ino)
        q->gone = true;
    i->quota = 0;
}

int model_quota_check_move(const struct model *m, const struct model_inode *i,
                           const struct model_inode *from, const struct model_inode *to)
{
    const struct model_quota *q = living(m, i->quota);
    const uint64_t own = q != NULL && q->directory != i->ino ? q->id : 0;
    const uint64_t here = model_quota_of(m, from), there = model_quota_of(m, to);
    if (from == to)
        return 0;
    return here == there && (there == 0 || own == there) ? 0 : -EXDEV;
}

bool model_quota_may_return(const struct model *m, const struct model_inode *i,
                            const struct model_inode *directory)
{
    const uint64_t quota = model_quota_of(m, i);
    bool may = quota == model_quota_of(m, directory);
    for (size_t k = 0; k < m->count && quota != 0; k++) {
        for (unsigned n = 0; n < MODEL_NAMES; n++)
            may &= m->inodes[k].child[n] != i->ino || model_quota_of(m, &m->inodes[k]) == quota;
    }
    return may;
}

/* op: the directory; at, value: limits.  made: the quota's number. */
struct op_result model_quota_do(struct model *m, const struct op *op, bool apply, uint64_t made)
{
    struct model_inode *i = model_find(m, op->ino);
    struct op_result r = {.rc = 0};
    if (op->kind == OP_QUOTA_SET && op->ino == VOLUME_ROOT)
        r.rc = -EINVAL;
    else if (i == NULL || i->removed)
        r.rc = i == NULL || S_ISDIR(i->mode) ? -ENOENT : -ENOTDIR;
    else if (!S_ISDIR(i->mode))
        r.rc = -ENOTDIR;
    if (r.rc != 0)
        return r;
    struct model_quota *q = living(m, i->quota);
    const bool own = q != NULL && q->directory == i->ino;
    if (op->kind == OP_QUOTA_REMOVE) {
        r.rc = own ? 0 : -ENODATA;
        if (own && apply)
            model_quota_drop(m, i);
        return r;
    }
    if (i->trashed || (q != NULL && !own)) {
        r.rc = i->trashed ? -ENOENT : -EEXIST;
        return r;
    }
    if (apply && q == NULL) {
        assert(m->quota_count < MODEL_QUOTAS);
        q = &m->quotas[m->quota_count++];
        *q = (struct model_quota){.id = made, .directory = op->ino};
        i->quota = made;
    }
    if (apply) {
        q->inodes = op->at;
        q->bytes = (int64_t)op->value;
    }
    return r;
}
