/* unlink and rmdir. */
#include <errno.h>
#include <string.h>

#include "mount/volume/counters.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"

struct removal {
    uint64_t directory;
    const char *name;
    bool of_directory; /* rmdir */
    bool whole;        /* a directory may have names */
    uint64_t hour;     /* of the trash; 0: none */
};

static int check(const struct removal *r, const struct attr *a)
{
    if (r->whole)
        return 0;
    if (!r->of_directory)
        return attr_is_directory(a) ? -EISDIR : 0;
    if (!attr_is_directory(a))
        return -ENOTDIR;
    return a->entries == 0 ? 0 : -ENOTEMPTY;
}

static int decide(struct txn *t, void *op)
{
    struct removal *r = op;
    struct attr directory, a;
    struct meta_item items[] = {
        {.ask = META_FOLLOW, .key = steps_entry(r->directory, r->name)},
        {.ask = META_GET, .key = meta_key_point(META_ATTR, r->directory)},
        {.ask = META_GET, .key = counters_use_key()},
    };
    int rc = txn_read(t, items, 3);
    if (rc == 0)
        rc = steps_check_directory(&items[1].value, &directory);
    if (rc != 0)
        return rc;
    if (!items[0].value.found)
        return -ENOENT;
    if (!attr_decode(&items[0].attr, &a))
        return -EIO;
    rc = check(r, &a);
    if (rc == 0 && r->whole && trash_is_full(t, &items[2].value))
        rc = -ENOSPC;
    if (rc != 0)
        return rc;
    txn_expect(t, &items[0].key, &items[0].value);
    txn_delete(t, &items[0].key);
    txn_add(t, &items[1].key, ATTR_ENTRIES, -1);
    if (attr_is_directory(&a))
        txn_add(t, &items[1].key, ATTR_NLINK, -1);
    steps_touch(t, &items[1].key);
    const struct trash_name was = {r->hour, r->directory, r->name, r->whole};
    trash_drop_name(t, &was, &items[2].value, meta_entry_inode(&items[0].value), &a);
    return quotas_drop(t, meta_entry_inode(&items[0].value), &a);
}

static int check_name(uint64_t directory, const char *name)
{
    const bool of_trash =
        directory == TRASH_INO || (directory == VOLUME_ROOT && strcmp(name, TRASH_NAME) == 0);
    return of_trash ? -EPERM : steps_check_name(name);
}

int remove_directory(struct volume *v, uint64_t directory, const char *name)
{
    struct removal r = {.directory = directory, .name = name, .of_directory = true};
    return txn_run(v, decide, &r);
}

int remove_whole(struct volume *v, uint64_t directory, const char *name, uint64_t hour)
{
    struct removal r = {.directory = directory, .name = name, .whole = true, .hour = hour};
    return txn_run(v, decide, &r);
}

static int remove_one(struct volume *v, struct removal *r)
{
    int rc = check_name(r->directory, r->name);
    if (rc == 0)
        rc = trash_hour_for(v, r->directory, &r->hour);
    return rc != 0 ? rc : txn_run_call(v, decide, r);
}

int volume_unlink(struct volume *v, uint64_t directory, const char *name)
{
    struct removal r = {.directory = directory, .name = name};
    return remove_one(v, &r);
}

int volume_rmdir(struct volume *v, uint64_t directory, const char *name)
{
    struct removal r = {.directory = directory, .name = name, .of_directory = true};
    return strcmp(name, "..") == 0 ? -ENOTEMPTY : remove_one(v, &r);
}
