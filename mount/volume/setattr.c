/* chmod, chown, utimens, truncate. */
#include <endian.h>
#include <errno.h>
#include <sys/stat.h>

#include "mount/volume/chunks.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"

struct setting {
    uint64_t ino;
    const struct volume_set *set;
    struct attr attr;
};

static void set32(struct txn *t, const struct meta_key *key, size_t offset, uint32_t number)
{
    uint32_t little = htole32(number);
    txn_set(t, key, offset, &little, sizeof little);
}

static void set_owner(struct txn *t, const struct meta_key *key, const struct volume_set *set,
                      struct attr *a)
{
    if ((set->fields & VOLUME_SET_MODE) != 0) {
        a->mode = (a->mode & S_IFMT) | (set->mode & ~(uint32_t)S_IFMT);
        set32(t, key, ATTR_MODE, a->mode);
    }
    if ((set->fields & VOLUME_SET_UID) != 0)
        set32(t, key, ATTR_UID, a->uid = set->uid);
    if ((set->fields & VOLUME_SET_GID) != 0)
        set32(t, key, ATTR_GID, a->gid = set->gid);
}

static void set_times(struct txn *t, const struct meta_key *key, const struct volume_set *set,
                      struct attr *a)
{
    const unsigned f = set->fields;
    if ((f & (VOLUME_SET_ATIME | VOLUME_SET_ATIME_NOW)) != 0) {
        a->atime_ns = (f & VOLUME_SET_ATIME_NOW) != 0 ? t->now_ns : set->atime_ns;
        txn_set_number(t, key, ATTR_ATIME, a->atime_ns);
    }
    if ((f & (VOLUME_SET_MTIME | VOLUME_SET_MTIME_NOW)) != 0) {
        a->mtime_ns = (f & VOLUME_SET_MTIME_NOW) != 0 ? t->now_ns : set->mtime_ns;
        txn_set_number(t, key, ATTR_MTIME, a->mtime_ns);
    }
    a->ctime_ns = t->now_ns;
    txn_set_number(t, key, ATTR_CTIME, a->ctime_ns);
}

static int set_length(struct txn *t, struct setting *s, const struct quota *quota)
{
    const struct meta_key key = meta_key_point(META_ATTR, s->ino);
    struct releases r = {0};
    if (!S_ISREG(s->attr.mode))
        return attr_is_directory(&s->attr) ? -EISDIR : -EINVAL;
    int rc = s->set->length < 0 ? 0 : quotas_resize(t, &key, &s->attr, quota, s->set->length);
    if (rc == 0)
        rc = chunks_truncate(t, s->ino, &s->attr, s->set->length, &r);
    if (rc == 0)
        rc = releases_apply(&r, t);
    releases_done(&r);
    s->attr.length = s->set->length;
    s->attr.mtime_ns = t->now_ns;
    return rc;
}

static int decide(struct txn *t, void *op)
{
    struct setting *s = op;
    struct meta_key key = meta_key_point(META_ATTR, s->ino);
    struct quota quota = {0};
    struct meta_item items[2] = {{.ask = META_GET, .key = key}};
    const bool cuts = (s->set->fields & VOLUME_SET_LENGTH) != 0;
    int rc = cuts ? quotas_read(t, items, 1, 0, &quota) : txn_read(t, items, 1);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    if (!attr_decode(&items[0].value, &s->attr))
        return -EIO;
    if (cuts)
        rc = set_length(t, s, &quota);
    if (rc != 0)
        return rc;
    set_owner(t, &key, s->set, &s->attr);
    set_times(t, &key, s->set, &s->attr);
    return 0;
}

int volume_setattr(struct volume *v, uint64_t ino, const struct volume_set *set, struct attr *out)
{
    struct setting s = {.ino = ino, .set = set};
    int rc = txn_run_call(v, decide, &s);
    if (out != NULL)
        *out = s.attr;
    return rc;
}
