/* Extended attributes. */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>

#include "mount/volume/steps.h"

enum { VALUE_MAX = 65536, PAGE = 64 };

struct xattr {
    uint64_t ino;
    const char *name;
    const void *value;
    size_t size;
    int flags;
    struct arena *arena;
    struct meta_value found;
    struct buf *names;
    bool all;
};

static struct meta_key key_of(const struct xattr *x)
{
    return meta_key_named(META_XATTR, x->ino, x->name, strlen(x->name));
}

/* Lists of rights ("system.") would be shown and not obeyed. */
static int check_name(const char *name)
{
    static const char *const kinds[] = {"user.", "trusted.", "security."};
    if (strlen(name) > META_NAME_MAX)
        return -ERANGE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return name[strlen(kinds[i])] != '\0' ? 0 : -EINVAL;
    }
    return -EOPNOTSUPP;
}

/* items[0] becomes the inode's attribute, items[1] what is asked. */
static int read_with_inode(struct txn *t, const struct xattr *x, struct meta_item items[2])
{
    items[0] = (struct meta_item){.ask = META_GET, .key = meta_key_point(META_ATTR, x->ino)};
    int rc = txn_read(t, items, 2);
    return rc == 0 && !items[0].value.found ? -ENOENT : rc;
}

/* The inode is not freed meanwhile. */
static void change_inode(struct txn *t, const struct meta_item *inode)
{
    struct meta_key key = inode->key;
    steps_ctime(t, &key);
}

static int decide_set(struct txn *t, void *op)
{
    struct xattr *x = op;
    struct meta_item items[2] = {[1] = {.ask = META_GET, .key = key_of(x)}};
    int rc = read_with_inode(t, x, items);
    if (rc != 0)
        return rc;
    if ((x->flags & XATTR_CREATE) != 0 && items[1].value.found)
        return -EEXIST;
    if ((x->flags & XATTR_REPLACE) != 0 && !items[1].value.found)
        return -ENODATA;
    if (x->flags != 0)
        txn_expect(t, &items[1].key, &items[1].value);
    txn_put(t, &items[1].key, x->value, x->size);
    change_inode(t, &items[0]);
    return 0;
}

int volume_setxattr(struct volume *v, uint64_t ino, const char *name, const void *value,
                    size_t size, int flags)
{
    struct xattr x = {.ino = ino, .name = name, .value = value, .size = size, .flags = flags};
    int rc = check_name(name);
    if (rc == 0 && size > VALUE_MAX)
        rc = -E2BIG;
    if (rc == 0 && (flags & ~(XATTR_CREATE | XATTR_REPLACE)) != 0)
        rc = -EINVAL;
    return rc != 0 ? rc : txn_run_call(v, decide_set, &x);
}

static int decide_get(struct txn *t, void *op)
{
    struct xattr *x = op;
    struct meta_item items[2] = {[1] = {.ask = META_GET, .key = key_of(x)}};
    int rc = read_with_inode(t, x, items);
    if (rc != 0)
        return rc;
    if (!items[1].value.found)
        return -ENODATA;
    x->found = items[1].value;
    uint8_t *bytes = arena_bytes(x->arena, x->found.size + 1);
    if (x->found.size > 0)
        memcpy(bytes, x->found.data, x->found.size);
    x->found.data = bytes;
    return 0;
}

int volume_getxattr(struct volume *v, uint64_t ino, const char *name, struct arena *arena,
                    const uint8_t **value, size_t *size)
{
    struct xattr x = {.ino = ino, .name = name, .arena = arena};
    int rc = check_name(name);
    if (rc == 0)
        rc = txn_run(v, decide_get, &x);
    *value = x.found.data;
    *size = x.found.size;
    return rc;
}

static bool is_listed(const struct xattr *x, const struct meta_key *key)
{
    const size_t len = strlen("trusted.");
    return x->all || key->name_size < len || memcmp(key->name, "trusted.", len) != 0;
}

static int decide_list(struct txn *t, void *op)
{
    struct xattr *x = op;
    struct meta_item items[2] = {[1] = {.ask = META_PAGE, .limit = PAGE}};
    items[1].key = (struct meta_key){.kind = META_XATTR, .id = x->ino};
    buf_clear(x->names);
    do {
        int rc = read_with_inode(t, x, items);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < items[1].count; i++) {
            const struct meta_key *key = &items[1].rows[i].key;
            if (is_listed(x, key)) {
                buf_append(x->names, key->name, key->name_size);
                buf_putc(x->names, '\0');
            }
            items[1].key = *key;
            items[1].after = true;
        }
    } while (items[1].more);
    return 0;
}

int volume_listxattr(struct volume *v, uint64_t ino, bool all, struct buf *names)
{
    struct xattr x = {.ino = ino, .names = names, .all = all};
    return txn_run(v, decide_list, &x);
}

static int decide_remove(struct txn *t, void *op)
{
    struct xattr *x = op;
    struct meta_item items[2] = {[1] = {.ask = META_GET, .key = key_of(x)}};
    int rc = read_with_inode(t, x, items);
    if (rc != 0)
        return rc;
    if (!items[1].value.found)
        return -ENODATA;
    txn_expect(t, &items[1].key, &items[1].value);
    txn_delete(t, &items[1].key);
    change_inode(t, &items[0]);
    return 0;
}

int volume_removexattr(struct volume *v, uint64_t ino, const char *name)
{
    struct xattr x = {.ino = ino, .name = name};
    int rc = check_name(name);
    return rc != 0 ? rc : txn_run_call(v, decide_remove, &x);
}
