#include "mount/volume/steps.h"

#include <errno.h>
#include <string.h>

#include "mount/volume/counters.h"

int steps_check_name(const char *name)
{
    size_t len = strlen(name);
    if (len == 0)
        return -ENOENT;
    if (len > META_NAME_MAX)
        return -ENAMETOOLONG;
    bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    return dots || strchr(name, '/') != NULL ? -EINVAL : 0;
}

struct meta_key steps_entry(uint64_t directory, const char *name)
{
    return meta_key_named(META_ENTRY, directory, name, strlen(name));
}

int steps_check_directory(const struct meta_value *value, struct attr *out)
{
    if (!value->found)
        return -ENOENT;
    if (!attr_decode(value, out))
        return -EIO;
    if (!attr_is_directory(out))
        return -ENOTDIR;
    return out->nlink > 0 ? 0 : -ENOENT;
}

void steps_touch(struct txn *t, const struct meta_key *directory)
{
    txn_raise(t, directory, ATTR_MTIME, t->now_ns);
    txn_raise(t, directory, ATTR_CTIME, t->now_ns);
}

void steps_ctime(struct txn *t, const struct meta_key *inode)
{
    txn_set_number(t, inode, ATTR_CTIME, t->now_ns);
}

void steps_queue_unlinked(struct txn *t, uint64_t ino)
{
    int64_t due_ms = t->now_ns / 1000000 + (int64_t)t->v->format.grace_ms;
    struct meta_key key = meta_key_number(META_UNLINKED, (uint64_t)due_ms, ino);
    txn_put(t, &key, NULL, 0);
}

void steps_drop_name(struct txn *t, uint64_t ino, const struct attr *a)
{
    struct meta_key key = meta_key_point(META_ATTR, ino);
    bool last = attr_is_directory(a) || a->nlink <= 1;
    if (attr_is_directory(a)) {
        txn_expect_equal(t, &key, ATTR_ENTRIES, 0);
        txn_set_number(t, &key, ATTR_NLINK, 0);
    } else {
        if (last)
            txn_expect_equal(t, &key, ATTR_NLINK, 1);
        else
            txn_expect_at_least(t, &key, ATTR_NLINK, 2);
        txn_add(t, &key, ATTR_NLINK, -1);
    }
    steps_ctime(t, &key);
    if (last)
        steps_queue_unlinked(t, ino);
}

/* ---- use ---- */

int steps_check_use(const struct meta_value *value, int64_t inodes, int64_t bytes)
{
    bool room = (inodes <= 0 || meta_field(value, USE_INODES_LEFT) >= inodes) &&
                (bytes <= 0 || meta_field(value, USE_BYTES_LEFT) >= bytes);
    return room ? 0 : -ENOSPC;
}

static void use_field(struct txn *t, size_t used, size_t left, int64_t more)
{
    struct meta_key key = counters_use_key();
    if (more == 0)
        return;
    if (more > 0)
        txn_expect_at_least(t, &key, left, more);
    txn_add(t, &key, used, more);
    txn_add(t, &key, left, -more);
}

void steps_use(struct txn *t, int64_t inodes, int64_t bytes)
{
    use_field(t, USE_INODES, USE_INODES_LEFT, inodes);
    use_field(t, USE_BYTES, USE_BYTES_LEFT, bytes);
}
