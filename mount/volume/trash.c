#include "mount/volume/trash.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "mount/volume/counters.h"
#include "mount/volume/steps.h"

int trash_check_target(uint64_t directory, const struct attr *a, const char *name)
{
    if (trash_has(directory) || (directory == VOLUME_ROOT && strcmp(name, TRASH_NAME) == 0))
        return -EPERM;
    return trash_has(a->parent) ? -ENOENT : 0;
}

/* ---- hours ---- */

uint64_t trash_hour_of(int64_t now_ms)
{
    return TRASH_INO + 1 + (uint64_t)(now_ms / TRASH_HOUR_MS);
}

int64_t trash_hour_end_ms(uint64_t hour)
{
    return (int64_t)(hour - TRASH_INO) * TRASH_HOUR_MS;
}

void trash_hour_name(uint64_t hour, char out[static TRASH_HOUR_NAME])
{
    struct tm tm;
    const time_t begin = (time_t)((trash_hour_end_ms(hour) - TRASH_HOUR_MS) / 1000);
    gmtime_r(&begin, &tm);
    strftime(out, TRASH_HOUR_NAME, "%Y-%m-%d-%H", &tm);
}

static void put_directory(struct txn *t, const struct meta_key *key, uint64_t parent,
                          int64_t entries)
{
    uint8_t bytes[ATTR_BYTES];
    const struct attr a = {
        .mode = S_IFDIR | 0700,
        .nlink = 2 + entries,
        .entries = entries,
        .atime_ns = t->now_ns,
        .mtime_ns = t->now_ns,
        .ctime_ns = t->now_ns,
        .parent = parent,
    };
    attr_encode(&a, bytes);
    txn_put(t, key, bytes, sizeof bytes);
}

static int decide_hour(struct txn *t, void *op)
{
    const uint64_t hour = *(const uint64_t *)op;
    char name[TRASH_HOUR_NAME];
    uint8_t bytes[ENTRY_BYTES];
    struct meta_item items[] = {
        {.key = meta_key_point(META_ATTR, hour)},
        {.key = meta_key_point(META_ATTR, TRASH_INO)},
        {.key = counters_use_key()},
    };
    int rc = txn_read(t, items, 3);
    if (rc != 0 || items[0].value.found)
        return rc;
    const int64_t made = items[1].value.found ? 1 : 2;
    rc = steps_check_use(&items[2].value, made, 0);
    if (rc != 0)
        return rc;
    trash_hour_name(hour, name);
    const struct meta_key entry = steps_entry(TRASH_INO, name);
    txn_expect(t, &items[0].key, &items[0].value);
    put_directory(t, &items[0].key, TRASH_INO, 0);
    entry_encode(S_IFDIR, hour, bytes);
    txn_put(t, &entry, bytes, sizeof bytes);
    steps_use(t, made, 0);
    if (made == 2) {
        txn_expect(t, &items[1].key, &items[1].value);
        put_directory(t, &items[1].key, VOLUME_ROOT, 1);
        return 0;
    }
    txn_add(t, &items[1].key, ATTR_ENTRIES, 1);
    txn_add(t, &items[1].key, ATTR_NLINK, 1);
    steps_touch(t, &items[1].key);
    return 0;
}

int trash_need_hour(struct volume *v, uint64_t *hour)
{
    pthread_mutex_lock(&v->lock);
    const int64_t now_ns = v->env.clock_ns(v->env.context) + v->clock_shift_ns;
    *hour = trash_hour_of(now_ns / 1000000);
    const bool is_known = v->trash_hour == *hour;
    pthread_mutex_unlock(&v->lock);
    if (is_known)
        return 0;
    int rc = txn_run(v, decide_hour, hour);
    if (rc == 0) {
        pthread_mutex_lock(&v->lock);
        v->trash_hour = *hour;
        pthread_mutex_unlock(&v->lock);
    }
    return rc;
}

int trash_hour_for(struct volume *v, uint64_t directory, uint64_t *hour)
{
    *hour = 0;
    if (atomic_load(&v->trash_days) == 0 || trash_has(directory))
        return 0;
    int rc = trash_need_hour(v, hour);
    if (rc != 0)
        *hour = 0;
    return rc == -ENOSPC ? 0 : rc;
}

/* ---- names ---- */

bool trash_is_full(const struct txn *t, const struct meta_value *use)
{
    return meta_field(use, USE_INODES_LEFT) < 1 ||
           meta_field(use, USE_BYTES_LEFT) < (int64_t)t->v->format.block_bytes;
}

static struct meta_key whole_name_key(uint64_t ino)
{
    return meta_key_named(META_XATTR, ino, TRASH_WHOLE_NAME, strlen(TRASH_WHOLE_NAME));
}

void trash_leave(struct txn *t, uint64_t ino)
{
    const struct meta_key key = whole_name_key(ino);
    txn_delete(t, &key);
}

/* The entry that `was` becomes; its name is in the arena. */
static struct meta_key trash_entry(struct txn *t, const struct trash_name *was, uint64_t ino)
{
    char *name = arena_bytes(t->arena, META_NAME_MAX + 1);
    const int size =
        snprintf(name, META_NAME_MAX + 1, "%llu-%llu-%s", (unsigned long long)was->directory,
                 (unsigned long long)ino, was->name);
    if (size > META_NAME_MAX) {
        const struct meta_key key = whole_name_key(ino);
        txn_put(t, &key, was->name, strlen(was->name));
    }
    return steps_entry(was->hour, name);
}

void trash_drop_name(struct txn *t, const struct trash_name *was, const struct meta_value *use,
                     uint64_t ino, const struct attr *a)
{
    const bool is_directory = attr_is_directory(a);
    if (was->hour == 0 || (!is_directory && a->nlink > 1) || trash_is_full(t, use)) {
        steps_drop_name(t, ino, a);
        return;
    }
    uint8_t bytes[ENTRY_BYTES];
    const struct meta_key inode = meta_key_point(META_ATTR, ino);
    const struct meta_key hour = meta_key_point(META_ATTR, was->hour);
    const struct meta_key entry = trash_entry(t, was, ino);
    entry_encode(a->mode, ino, bytes);
    txn_expect(t, &entry, &(struct meta_value){.found = false});
    txn_put(t, &entry, bytes, sizeof bytes);
    if (!is_directory)
        txn_expect_equal(t, &inode, ATTR_NLINK, 1);
    else if (!was->whole)
        txn_expect_equal(t, &inode, ATTR_ENTRIES, 0);
    txn_set_number(t, &inode, ATTR_PARENT, (int64_t)was->hour);
    steps_ctime(t, &inode);
    txn_expect_at_least(t, &hour, ATTR_NLINK, 1);
    txn_add(t, &hour, ATTR_ENTRIES, 1);
    if (is_directory)
        txn_add(t, &hour, ATTR_NLINK, 1);
    steps_touch(t, &hour);
}
