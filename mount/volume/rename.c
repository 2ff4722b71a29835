/* Rename: one commit over both entries, both directories, and the inode that loses its name.
 *
 * A directory must not become its own ancestor.  Before a directory gets another parent, the way
 * from there to the root is read, and the commit expects the stamp of each directory on it.  A move
 * sets `parent`, which gives the moved directory a new stamp.  So of two moves that would make a
 * loop together, the second finds its way changed. */
#include <errno.h>
#include <linux/fs.h>

#include "mount/volume/counters.h"
#include "mount/volume/quotas.h"
#include "mount/volume/steps.h"
#include "mount/volume/trash.h"

enum { FROM, TO, FROM_DIRECTORY, TO_DIRECTORY, USE, READS };
enum { DEPTH_MAX = 100000 }; /* more is a loop that was stored */

struct rename {
    uint64_t from, to;
    const char *from_name, *to_name;
    unsigned flags;
    uint64_t hour; /* of the trash, for what is replaced; 0: none */
};

/* One of the two names. */
struct side {
    const struct meta_item *item;
    struct meta_key directory_key; /* of its directory's attribute */
    uint64_t directory, ino;
    struct attr directory_attr;
    bool found;
    struct attr attr;
};

static int read_side(const struct meta_item *item, const struct meta_item *directory,
                     struct side *out)
{
    struct attr a;
    int rc = steps_check_directory(&directory->value, &a);
    if (rc != 0)
        return rc;
    *out = (struct side){
        .item = item,
        .directory_key = directory->key,
        .directory = directory->key.id,
        .directory_attr = a,
        .found = item->value.found,
        .ino = meta_entry_inode(&item->value),
    };
    return out->found && !attr_decode(&item->attr, &out->attr) ? -EIO : 0;
}

/* ---- loops ---- */

/* EINVAL by txn_fail(): `above` is `ino`, or below it. */
static int expect_outside(struct txn *t, uint64_t ino, uint64_t above)
{
    for (unsigned depth = 0; above != VOLUME_ROOT; depth++) {
        struct meta_key key = meta_key_point(META_ATTR, above);
        struct meta_value value;
        struct attr a;
        if (above == ino)
            return txn_fail(t, -EINVAL);
        if (depth == DEPTH_MAX)
            return -EIO;
        int rc = txn_get(t, &key, &value);
        if (rc != 0)
            return rc;
        txn_expect(t, &key, &value);
        if (!attr_decode(&value, &a))
            return txn_fail(t, -ENOENT);
        above = a.parent;
    }
    return 0;
}

/* `moved` gets another directory. */
static int expect_no_loop(struct txn *t, const struct side *moved, uint64_t directory)
{
    bool moves = attr_is_directory(&moved->attr) && moved->directory != directory;
    return moves ? expect_outside(t, moved->ino, directory) : 0;
}

/* ---- steps ---- */

static void put_entry(struct txn *t, const struct side *at, const struct side *what)
{
    uint8_t bytes[ENTRY_BYTES];
    entry_encode(what->attr.mode, what->ino, bytes);
    txn_put(t, &at->item->key, bytes, sizeof bytes);
}

static void move_inode(struct txn *t, const struct side *moved, uint64_t directory)
{
    struct meta_key key = meta_key_point(META_ATTR, moved->ino);
    if (moved->directory != directory)
        txn_set_number(t, &key, ATTR_PARENT, (int64_t)directory);
    steps_ctime(t, &key);
}

static void count(struct txn *t, const struct meta_key *directory, size_t field, int64_t more)
{
    if (more != 0)
        txn_add(t, directory, field, more);
}

static void exchange(struct txn *t, const struct side *a, const struct side *b)
{
    int64_t a_is = attr_is_directory(&a->attr), b_is = attr_is_directory(&b->attr);
    put_entry(t, a, b);
    put_entry(t, b, a);
    move_inode(t, a, b->directory);
    move_inode(t, b, a->directory);
    count(t, &a->directory_key, ATTR_NLINK, b_is - a_is);
    count(t, &b->directory_key, ATTR_NLINK, a_is - b_is);
}

static void move(struct txn *t, const struct side *from, const struct side *to,
                 const struct trash_name *replaced, const struct meta_value *use)
{
    int64_t is = attr_is_directory(&from->attr);
    int64_t was = to->found && attr_is_directory(&to->attr);
    txn_delete(t, &from->item->key);
    put_entry(t, to, from);
    move_inode(t, from, to->directory);
    if (trash_has(from->directory))
        trash_leave(t, from->ino);
    txn_expect_at_least(t, &to->directory_key, ATTR_NLINK, 1); /* not removed */
    txn_expect_equal(t, &to->directory_key, ATTR_PARENT, (int64_t)to->directory_attr.parent);
    count(t, &from->directory_key, ATTR_ENTRIES, -1);
    count(t, &to->directory_key, ATTR_ENTRIES, to->found ? 0 : 1);
    count(t, &from->directory_key, ATTR_NLINK, -is);
    count(t, &to->directory_key, ATTR_NLINK, is - was);
    if (to->found)
        trash_drop_name(t, replaced, use, to->ino, &to->attr);
}

static int check_replaced(const struct side *from, const struct side *to)
{
    if (!to->found)
        return 0;
    if (attr_is_directory(&from->attr) && !attr_is_directory(&to->attr))
        return -ENOTDIR;
    if (!attr_is_directory(&from->attr) && attr_is_directory(&to->attr))
        return -EISDIR;
    return attr_is_directory(&to->attr) && to->attr.entries > 0 ? -ENOTEMPTY : 0;
}

static int check_flags(const struct rename *r, const struct side *from, const struct side *to)
{
    if (!from->found)
        return -ENOENT;
    if ((r->flags & RENAME_NOREPLACE) != 0 && to->found)
        return -EEXIST;
    return (r->flags & RENAME_EXCHANGE) != 0 && !to->found ? -ENOENT : 0;
}

/* Also of a directory with a quota to another one: it would not know how much comes. */
static int check_quotas(struct txn *t, const struct rename *r, const struct side *from,
                        const struct side *to)
{
    const struct meta_key one = meta_key_point(META_ATTR, from->ino);
    const struct meta_key two = meta_key_point(META_ATTR, to->ino);
    const struct quotas_place here = {&from->directory_key, &from->directory_attr};
    const struct quotas_place there = {&to->directory_key, &to->directory_attr};
    if (from->directory == to->directory)
        return 0;
    int rc = quotas_check_move(t, &(struct quotas_place){&one, &from->attr}, &here, &there);
    if (rc == 0 && (r->flags & RENAME_EXCHANGE) != 0)
        rc = quotas_check_move(t, &(struct quotas_place){&two, &to->attr}, &there, &here);
    return rc;
}

/* Names may leave the trash, and none may get into it. */
static int check_trash(const struct rename *r, const struct side *from, const struct side *to)
{
    int rc = trash_check_target(to->directory, &to->directory_attr, r->to_name);
    if (rc == 0 && (r->flags & RENAME_EXCHANGE) != 0)
        rc = trash_check_target(from->directory, &from->directory_attr, r->from_name);
    return rc == 0 && from->directory == TRASH_INO ? -EPERM : rc;
}

static int decide(struct txn *t, void *op)
{
    struct rename *r = op;
    struct side from, to;
    const bool exchanges = (r->flags & RENAME_EXCHANGE) != 0;
    struct meta_item items[READS] = {
        [FROM] = {.ask = META_FOLLOW, .key = steps_entry(r->from, r->from_name)},
        [TO] = {.ask = META_FOLLOW, .key = steps_entry(r->to, r->to_name)},
        [FROM_DIRECTORY] = {.ask = META_GET, .key = meta_key_point(META_ATTR, r->from)},
        [TO_DIRECTORY] = {.ask = META_GET, .key = meta_key_point(META_ATTR, r->to)},
        [USE] = {.ask = META_GET, .key = counters_use_key()},
    };
    int rc = txn_read(t, items, READS);
    if (rc == 0)
        rc = read_side(&items[FROM], &items[FROM_DIRECTORY], &from);
    if (rc == 0)
        rc = read_side(&items[TO], &items[TO_DIRECTORY], &to);
    if (rc == 0)
        rc = check_flags(r, &from, &to);
    if (rc == 0)
        rc = check_trash(r, &from, &to);
    if (rc != 0 || (to.found && to.ino == from.ino)) /* two names of one inode: nothing to do */
        return rc;
    txn_expect(t, &items[FROM].key, &items[FROM].value);
    txn_expect(t, &items[TO].key, &items[TO].value);
    rc = expect_no_loop(t, &from, to.directory);
    if (rc == 0 && t->failed == 0 && exchanges)
        rc = expect_no_loop(t, &to, from.directory);
    if (rc != 0 || t->failed != 0)
        return rc;
    rc = exchanges ? 0 : check_replaced(&from, &to);
    if (rc == 0)
        rc = check_quotas(t, r, &from, &to);
    if (rc != 0)
        return rc;
    const struct trash_name replaced = {r->hour, r->to, r->to_name, false};
    if (exchanges)
        exchange(t, &from, &to);
    else
        move(t, &from, &to, &replaced, &items[USE].value);
    steps_touch(t, &from.directory_key);
    steps_touch(t, &to.directory_key);
    return to.found && !exchanges ? quotas_drop(t, to.ino, &to.attr) : 0;
}

int volume_rename(struct volume *v, uint64_t from, const char *from_name, uint64_t to,
                  const char *to_name, unsigned flags)
{
    struct rename r = {from, to, from_name, to_name, flags, 0};
    if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) != 0 ||
        flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
        return -EINVAL;
    int rc = steps_check_name(from_name);
    if (rc == 0)
        rc = steps_check_name(to_name);
    if (rc == 0 && (flags & (RENAME_NOREPLACE | RENAME_EXCHANGE)) == 0)
        rc = trash_hour_for(v, to, &r.hour);
    return rc != 0 ? rc : txn_run_call(v, decide, &r);
}
