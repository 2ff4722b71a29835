/* New names: of new inodes, and of inodes that have a name already. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/volume/counters.h"
#include "mount/volume/ids.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"

/* ---- create ---- */

struct create {
    uint64_t directory, ino;
    const char *name;
    const struct volume_new *what;
    struct attr attr;
};

static void new_attr(const struct txn *t, const struct create *c, const struct attr *directory,
                     const struct quota *quota, struct attr *out)
{
    const bool is_directory = S_ISDIR(c->what->mode);
    const bool inherits = (directory->mode & S_ISGID) != 0;
    *out = (struct attr){
        .mode = c->what->mode | (inherits && is_directory ? S_ISGID : 0),
        .uid = c->what->uid,
        .gid = inherits ? directory->gid : c->what->gid,
        .rdev = c->what->rdev,
        .nlink = is_directory ? 2 : 1,
        .length = c->what->target != NULL ? (int64_t)strlen(c->what->target) : 0,
        .atime_ns = t->now_ns,
        .mtime_ns = t->now_ns,
        .ctime_ns = t->now_ns,
        .parent = c->directory,
        .quota = quota->id,
    };
}

static void put_entry(struct txn *t, const struct meta_key *entry, uint32_t mode, uint64_t ino)
{
    uint8_t bytes[ENTRY_BYTES];
    entry_encode(mode, ino, bytes);
    txn_put(t, entry, bytes, sizeof bytes);
}

/* The directory has one name more, and has not been removed. */
static void add_name(struct txn *t, const struct meta_key *directory, const struct attr *was,
                     bool is_directory)
{
    txn_expect_at_least(t, directory, ATTR_NLINK, 1);
    txn_expect_equal(t, directory, ATTR_PARENT, (int64_t)was->parent); /* not in the trash */
    txn_add(t, directory, ATTR_ENTRIES, 1);
    if (is_directory)
        txn_add(t, directory, ATTR_NLINK, 1);
    steps_touch(t, directory);
}

static int decide_create(struct txn *t, void *op)
{
    struct create *c = op;
    struct attr directory;
    struct quota quota;
    uint8_t bytes[ATTR_BYTES];
    struct meta_item items[4] = {
        {.ask = META_GET, .key = steps_entry(c->directory, c->name)},
        {.ask = META_GET, .key = meta_key_point(META_ATTR, c->directory)},
        {.ask = META_GET, .key = counters_use_key()},
    };
    int rc = quotas_read(t, items, 3, 1, &quota);
    if (rc == 0)
        rc = steps_check_directory(&items[1].value, &directory);
    if (rc == 0)
        rc = trash_check_target(c->directory, &directory, c->name);
    if (rc == 0 && items[0].value.found)
        rc = -EEXIST;
    if (rc == 0)
        rc = steps_check_use(&items[2].value, 1, 0);
    if (rc == 0)
        rc = quotas_check(&quota, 1, 0);
    if (rc != 0)
        return rc;
    new_attr(t, c, &directory, &quota, &c->attr);
    attr_encode(&c->attr, bytes);
    struct meta_key inode = meta_key_point(META_ATTR, c->ino);
    txn_expect(t, &items[0].key, &items[0].value);
    put_entry(t, &items[0].key, c->attr.mode, c->ino);
    txn_put(t, &inode, bytes, sizeof bytes);
    add_name(t, &items[1].key, &directory, attr_is_directory(&c->attr));
    quotas_expect(t, &items[1].key, &directory);
    quotas_charge(t, &quota, 1, 0);
    steps_use(t, 1, 0);
    if (c->what->target != NULL) {
        struct meta_key link = meta_key_point(META_SYMLINK, c->ino);
        txn_put(t, &link, c->what->target, strlen(c->what->target));
    }
    return 0;
}

static int check_new_name(const char *name)
{
    bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    return dots ? -EEXIST : steps_check_name(name);
}

static int check_new(const char *name, const struct volume_new *what)
{
    const bool is_link = S_ISLNK(what->mode);
    if (is_link != (what->target != NULL))
        return -EINVAL;
    if (is_link && what->target[0] == '\0')
        return -ENOENT;
    if (is_link && strlen(what->target) >= PATH_MAX)
        return -ENAMETOOLONG;
    return check_new_name(name);
}

int volume_create(struct volume *v, uint64_t directory, const char *name,
                  const struct volume_new *what, struct volume_inode *out)
{
    struct create c = {.directory = directory, .name = name, .what = what};
    int rc = check_new(name, what);
    if (rc == 0)
        rc = ids_inode(v, &c.ino);
    if (rc == 0)
        rc = txn_run_call(v, decide_create, &c);
    *out = (struct volume_inode){c.ino, c.attr};
    return rc;
}

/* ---- link ---- */

struct link {
    uint64_t ino, directory;
    const char *name;
    struct attr attr;
};

static int decide_link(struct txn *t, void *op)
{
    struct link *l = op;
    struct attr directory;
    struct meta_item items[] = {
        {.ask = META_GET, .key = steps_entry(l->directory, l->name)},
        {.ask = META_GET, .key = meta_key_point(META_ATTR, l->directory)},
        {.ask = META_GET, .key = meta_key_point(META_ATTR, l->ino)},
    };
    int rc = txn_read(t, items, 3);
    if (rc != 0)
        return rc;
    if (items[2].value.found && !attr_decode(&items[2].value, &l->attr))
        return -EIO;
    if (!items[2].value.found || l->attr.nlink == 0)
        return -ENOENT;
    if (attr_is_directory(&l->attr))
        return -EPERM;
    rc = steps_check_directory(&items[1].value, &directory);
    if (rc == 0)
        rc = trash_check_target(l->directory, &directory, l->name);
    if (rc != 0)
        return rc;
    if (items[0].value.found)
        return -EEXIST;
    if (l->attr.nlink >= INT32_MAX)
        return -EMLINK;
    rc = quotas_check_link(t, &(struct quotas_place){&items[2].key, &l->attr},
                           &(struct quotas_place){&items[1].key, &directory});
    if (rc != 0)
        return rc;
    txn_expect(t, &items[0].key, &items[0].value);
    txn_expect_at_least(t, &items[2].key, ATTR_NLINK, 1);
    put_entry(t, &items[0].key, l->attr.mode, l->ino);
    txn_add(t, &items[2].key, ATTR_NLINK, 1);
    steps_ctime(t, &items[2].key);
    add_name(t, &items[1].key, &directory, false);
    l->attr.nlink++;
    l->attr.ctime_ns = t->now_ns;
    return 0;
}

int volume_link(struct volume *v, uint64_t ino, uint64_t directory, const char *name,
                struct volume_inode *out)
{
    struct link l = {.ino = ino, .directory = directory, .name = name};
    int rc = check_new_name(name);
    if (rc == 0)
        rc = txn_run_call(v, decide_link, &l);
    *out = (struct volume_inode){ino, l.attr};
    return rc;
}
