/* An operation of the model, on a volume. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mount/volume/testing/model.h"
#include "mount/volume/trash.h"

const char *op_name(enum op_kind kind)
{
    static const char *const names[OPS] = {
        [OP_LOOKUP] = "lookup",
        [OP_GETATTR] = "getattr",
        [OP_READDIR] = "readdir",
        [OP_READLINK] = "readlink",
        [OP_READ] = "read",
        [OP_GETXATTR] = "getxattr",
        [OP_CREATE] = "create",
        [OP_LINK] = "link",
        [OP_UNLINK] = "unlink",
        [OP_RMDIR] = "rmdir",
        [OP_RENAME] = "rename",
        [OP_CHMOD] = "chmod",
        [OP_TRUNCATE] = "truncate",
        [OP_WRITE] = "write",
        [OP_APPEND] = "append",
        [OP_SETXATTR] = "setxattr",
        [OP_OPEN] = "open",
        [OP_REMOVEXATTR] = "removexattr",
        [OP_CLOSE] = "close",
        [OP_BEAT] = "beat",
        [OP_CLEAN] = "clean",
        [OP_COMPACT] = "compact",
        [OP_CLONE] = "clone",
        [OP_RESTORE] = "restore",
        [OP_UNLINK_MANY] = "unlink many",
        [OP_CLEAR] = "clear",
        [OP_SEEK] = "seek",
        [OP_QUOTA_SET] = "quota set",
        [OP_QUOTA_REMOVE] = "quota rm",
    };
    return names[kind];
}

const char *op_file_name(unsigned name)
{
    static const char *const names[MODEL_NAMES] = {"a", "b", "c", "d", "e"};
    return names[name];
}

const char *op_xattr_name(unsigned name)
{
    return name == 0 ? "user.x" : "user.y";
}

uint64_t op_mix(uint64_t digest, uint64_t more)
{
    return (digest ^ more) * 0x9e3779b97f4a7c15u + (digest >> 29);
}

static struct op_result result_of_attr(int rc, uint64_t ino, const struct attr *a)
{
    if (rc != 0)
        return (struct op_result){.rc = rc};
    return (struct op_result){
        .v = {ino, a->mode, (uint64_t)a->nlink,
              (uint64_t)(attr_is_directory(a) ? a->entries
                         : S_ISLNK(a->mode)   ? 0
                                              : a->length),
              !attr_is_directory(a)  ? 0
              : trash_has(a->parent) ? TRASH_INO
                                     : a->parent},
    };
}

static struct op_result run_readdir(struct volume *v, const struct op *op, struct arena *arena)
{
    struct volume_name *names;
    size_t count;
    bool more;
    struct op_result r = {.rc = volume_readdir(v, op->ino, "", 100, arena, &names, &count, &more)};
    for (size_t i = 0; i < count && r.rc == 0; i++) {
        struct op_result a =
            result_of_attr(names[i].known ? 0 : -EIO, names[i].ino, &names[i].attr);
        r.v[0]++;
        for (unsigned k = 0; k < 5; k++)
            r.v[1] = op_mix(r.v[1], a.v[k] + (uint64_t)(names[i].name[0] - 'a'));
    }
    return r;
}

static struct op_result run_read(struct volume *v, const struct op *op, struct arena *arena)
{
    struct volume_extent *x;
    size_t count;
    struct op_result r = {.rc = volume_extents(v, op->ino, 0, MODEL_SEEN_BYTES, arena, &x, &count)};
    for (size_t i = 0; i < count && r.rc == 0; i++) {
        if ((uint64_t)x[i].at != r.v[0])
            r.rc = -ERANGE; /* a gap */
        for (uint64_t b = 0; b < x[i].length; b++, r.v[0]++)
            r.v[1] = op_mix(r.v[1],
                            x[i].entry != NULL ? x[i].entry->slice + 1000 * (x[i].offset + b) : 0);
    }
    return r;
}

static struct op_result run_getxattr(struct volume *v, const struct op *op, struct arena *arena)
{
    const uint8_t *value;
    size_t size;
    struct op_result r = {
        .rc = volume_getxattr(v, op->ino, op_xattr_name(op->name), arena, &value, &size)};
    if (r.rc == 0)
        memcpy(&r.v[0], value, size < sizeof r.v[0] ? size : sizeof r.v[0]);
    return r;
}

static struct op_result run_readlink(struct volume *v, const struct op *op, struct arena *arena)
{
    char *target;
    struct op_result r = {.rc = volume_readlink(v, op->ino, arena, &target)};
    for (const char *c = r.rc == 0 ? target : ""; *c != '\0'; c++)
        r.v[0] = 16 * r.v[0] + (uint64_t)(*c - 'a');
    return r;
}

/* A target of 16 letters, for a number. */
static void target_of(uint64_t value, char out[static 17])
{
    for (int i = 15; i >= 0; i--, value /= 16)
        out[i] = (char)('a' + value % 16);
    out[16] = '\0';
}

static struct op_result run_create(struct volume *v, const struct op *op)
{
    char target[17];
    struct volume_inode out;
    struct volume_new what = {.mode = op->mode};
    target_of(op->value, target);
    what.target = S_ISLNK(op->mode) ? target : NULL;
    int rc = volume_create(v, op->ino, op_file_name(op->name), &what, &out);
    return rc != 0 ? (struct op_result){.rc = rc}
                   : (struct op_result){.v = {out.ino, out.attr.mode}};
}

static struct op_result run_write(struct volume *v, const struct op *op)
{
    const bool appends = op->kind == OP_APPEND;
    struct volume_piece p = {
        .at = appends ? 0 : op->at,
        .length = op->length,
        .slice = op->slice,
        .size = op->length,
    };
    int64_t end = 0;
    int rc = volume_write(v, op->ino, &p, 1, appends ? VOLUME_APPEND : 0, &end);
    return (struct op_result){.rc = rc, .v = {rc == 0 && appends ? (uint64_t)end : 0}};
}

static struct op_result run_unlink_many(struct volume *v, const struct op *op)
{
    const char *names[MODEL_NAMES];
    size_t count = 0;
    uint64_t removed;
    for (unsigned n = 0; n < MODEL_NAMES; n++) {
        if ((op->flags >> n & 1) != 0)
            names[count++] = op_file_name(n);
    }
    int rc = volume_unlink_many(v, op->ino, names, count, &removed);
    return (struct op_result){.rc = rc, .v = {removed}};
}

static int run_set(struct volume *v, const struct op *op)
{
    struct volume_set set = {
        .fields = op->kind == OP_CHMOD ? VOLUME_SET_MODE : VOLUME_SET_LENGTH,
        .mode = op->mode,
        .length = op->at,
    };
    return volume_setattr(v, op->ino, &set, NULL);
}

static int run_clone(struct volume *v, const struct op *op)
{
    static const struct volume_caller root = {.uid = 0};
    struct volume_tally tally;
    return volume_clone(v, op->ino, op->to, op_file_name(op->name), &root, &tally);
}

static int run_quota(struct volume *v, const struct op *op)
{
    const struct volume_quota_limits limits = {.inodes = op->at, .bytes = (int64_t)op->value};
    struct volume_quota q;
    bool made;
    return volume_quota_mark(v, op->ino, &limits, &q, &made);
}

static struct op_result run_seek(struct volume *v, const struct op *op)
{
    int64_t found;
    int rc = volume_seek(v, op->ino, op->at, op->flags != 0, &found);
    return (struct op_result){.rc = rc, .v = {rc == 0 ? (uint64_t)found : 0}};
}

/* In the hour that has it: there may be two. */
static int run_restore(struct volume *v, const struct op *op)
{
    static const struct volume_caller root = {.uid = 0};
    char hour[META_NAME_MAX + 1] = "", name[64];
    int rc = -ENOENT, found;
    snprintf(name, sizeof name, "%llu-%llu-%s", (unsigned long long)op->to,
             (unsigned long long)op->ino, op_file_name(op->name));
    while (rc == -ENOENT && (found = volume_trash_hour(v, hour, hour)) != -ENOENT)
        rc = found != 0 ? found : volume_restore(v, hour, name, &root);
    return rc;
}

static int run_plain(struct volume *v, const struct op *op)
{
    struct volume_inode out;
    const char *name = op_file_name(op->name);
    switch (op->kind) {
    case OP_LINK:
        return volume_link(v, op->ino, op->to, name, &out);
    case OP_UNLINK:
        return volume_unlink(v, op->ino, name);
    case OP_RMDIR:
        return volume_rmdir(v, op->ino, name);
    case OP_RESTORE:
        return run_restore(v, op);
    case OP_CLONE:
        return run_clone(v, op);
    case OP_RENAME:
        return volume_rename(v, op->ino, name, op->to, op_file_name(op->to_name), op->flags);
    case OP_CHMOD:
    case OP_TRUNCATE:
        return run_set(v, op);
    case OP_CLEAR:
        return volume_allocate(v, op->ino, FALLOC_FL_ZERO_RANGE, op->at, op->length);
    case OP_SETXATTR:
        return volume_setxattr(v, op->ino, op_xattr_name(op->name), &op->value, sizeof op->value,
                               (int)op->flags);
    case OP_REMOVEXATTR:
        return volume_removexattr(v, op->ino, op_xattr_name(op->name));
    case OP_QUOTA_SET:
        return run_quota(v, op);
    case OP_QUOTA_REMOVE:
        return volume_quota_remove(v, op->ino);
    default:
        return -ENOSYS;
    }
}

static struct op_result run_with(struct volume *v, const struct op *op, struct arena *arena)
{
    struct volume_inode found = {.ino = op->ino};
    int rc;
    switch (op->kind) {
    case OP_LOOKUP:
        rc = volume_lookup(v, op->ino, op_file_name(op->name), &found);
        return result_of_attr(rc, found.ino, &found.attr);
    case OP_GETATTR:
        rc = volume_getattr(v, op->ino, &found.attr);
        return result_of_attr(rc, found.ino, &found.attr);
    case OP_READDIR:
        return run_readdir(v, op, arena);
    case OP_READLINK:
        return run_readlink(v, op, arena);
    case OP_READ:
        return run_read(v, op, arena);
    case OP_GETXATTR:
        return run_getxattr(v, op, arena);
    case OP_SEEK:
        return run_seek(v, op);
    case OP_CREATE:
        return run_create(v, op);
    case OP_WRITE:
    case OP_APPEND:
        return run_write(v, op);
    case OP_UNLINK_MANY:
        return run_unlink_many(v, op);
    default:
        return (struct op_result){.rc = run_plain(v, op)};
    }
}

struct op_result op_run(struct volume *v, const struct op *op)
{
    struct arena *arena = arena_new(4096);
    struct op_result r = run_with(v, op, arena);
    arena_free(arena);
    return r;
}
