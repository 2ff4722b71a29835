#include "mount/volume/testing/model.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "common/mem.h"
#include "mount/volume/trash.h"

/* ---- inodes ---- */

struct model_inode *model_find(const struct model *m, uint64_t ino)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->inodes[i].ino == ino)
            return &m->inodes[i];
    }
    return NULL;
}

static struct model_inode *add_inode(struct model *m, uint64_t ino, uint32_t mode)
{
    if (m->count == m->room) {
        m->room = m->room > 0 ? 2 * m->room : 32;
        m->inodes = xrealloc(m->inodes, m->room * sizeof *m->inodes);
    }
    struct model_inode *i = &m->inodes[m->count++];
    *i = (struct model_inode){.ino = ino, .mode = mode, .nlink = 1};
    if (ino < MODEL_GUESSED)
        m->had[ino] = true;
    return i;
}

void model_init(struct model *m, bool trash)
{
    *m = (struct model){.trash = trash};
    add_inode(m, VOLUME_ROOT, S_IFDIR | 0755)->parent = VOLUME_ROOT;
}

void model_free_inode(struct model *m, uint64_t ino)
{
    struct model_inode *i = model_find(m, ino);
    free(i->cells);
    *i = m->inodes[--m->count];
}

void model_done(struct model *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->inodes[i].cells);
    free(m->inodes);
}

int64_t model_entries(const struct model_inode *i)
{
    int64_t count = 0;
    for (unsigned n = 0; n < MODEL_NAMES; n++)
        count += i->child[n] != 0;
    return count;
}

int64_t model_nlink(const struct model *m, const struct model_inode *i)
{
    if (!S_ISDIR(i->mode))
        return i->nlink;
    int64_t count = i->removed ? 0 : 2;
    for (unsigned n = 0; n < MODEL_NAMES; n++)
        count += i->child[n] != 0 && S_ISDIR(model_find(m, i->child[n])->mode);
    return count;
}

static int check_directory(const struct model_inode *i)
{
    if (i == NULL)
        return -ENOENT;
    if (!S_ISDIR(i->mode))
        return -ENOTDIR;
    return i->removed ? -ENOENT : 0;
}

/* Where names may be made. */
static int check_target(const struct model_inode *i)
{
    int rc = check_directory(i);
    return rc == 0 && i->trashed ? -ENOENT : rc;
}

static int check_file(const struct model_inode *i)
{
    if (i == NULL)
        return -ENOENT;
    return S_ISDIR(i->mode) ? -EISDIR : S_ISREG(i->mode) ? 0 : -EINVAL;
}

static struct op_result failed(int rc)
{
    return (struct op_result){.rc = rc};
}

/* ---- reads ---- */

static struct op_result attr_result(const struct model *m, const struct model_inode *i)
{
    return (struct op_result){
        .v = {i->ino, i->mode, (uint64_t)model_nlink(m, i),
              (uint64_t)(S_ISDIR(i->mode) ? model_entries(i) : i->length),
              S_ISDIR(i->mode) ? i->parent : 0},
    };
}

static struct op_result do_lookup(struct model *m, const struct op *op)
{
    const struct model_inode *d = model_find(m, op->ino);
    bool there = d != NULL && d->child[op->name] != 0;
    return there ? attr_result(m, model_find(m, d->child[op->name])) : failed(-ENOENT);
}

static struct op_result do_getattr(struct model *m, const struct op *op)
{
    const struct model_inode *i = model_find(m, op->ino);
    return i != NULL ? attr_result(m, i) : failed(-ENOENT);
}

static struct op_result do_readdir(struct model *m, const struct op *op)
{
    const struct model_inode *d = model_find(m, op->ino);
    struct op_result r = failed(check_directory(d));
    if (d != NULL && d->removed)
        return failed(0);
    for (unsigned n = 0; n < MODEL_NAMES && r.rc == 0; n++) {
        if (d->child[n] != 0) {
            const struct op_result a = attr_result(m, model_find(m, d->child[n]));
            r.v[0]++;
            for (unsigned k = 0; k < 5; k++)
                r.v[1] = op_mix(r.v[1], a.v[k] + n);
        }
    }
    return r;
}

static struct op_result do_readlink(struct model *m, const struct op *op)
{
    const struct model_inode *i = model_find(m, op->ino);
    if (i == NULL || !S_ISLNK(i->mode))
        return failed(i == NULL ? -ENOENT : -EINVAL);
    return (struct op_result){.v = {i->target}};
}

static struct op_result do_read(struct model *m, const struct op *op)
{
    const struct model_inode *i = model_find(m, op->ino);
    struct op_result r = {.rc = i == NULL ? -ENOENT : 0};
    if (i == NULL)
        return r;
    r.v[0] = (uint64_t)(i->length < MODEL_SEEN_BYTES ? i->length : MODEL_SEEN_BYTES);
    if (S_ISLNK(i->mode)) /* its length has no chunks */
        r.v[0] = 16;
    for (uint64_t b = 0; b < r.v[0]; b++) {
        struct slice_cell zero = {0};
        const struct slice_cell *c = i->cells != NULL ? &i->cells[b] : &zero;
        r.v[1] = op_mix(r.v[1], c->slice != 0 ? c->slice + 1000 * (uint64_t)c->offset : 0);
    }
    return r;
}

static struct op_result do_getxattr(struct model *m, const struct op *op)
{
    const struct model_inode *i = model_find(m, op->ino);
    if (i == NULL || i->xattr[op->name] == 0)
        return failed(i == NULL ? -ENOENT : -ENODATA);
    return (struct op_result){.v = {i->xattr[op->name]}};
}

/* ---- changes ---- */

static struct op_result do_create(struct model *m, const struct op *op, bool apply, uint64_t made)
{
    struct model_inode *d = model_find(m, op->ino);
    int rc = check_target(d);
    if (rc != 0 || d->child[op->name] != 0)
        return failed(rc != 0 ? rc : -EEXIST);
    const uint64_t quota = model_quota_of(m, d);
    rc = model_quota_check(m, quota, 1, 0);
    if (rc != 0 || !apply)
        return failed(rc);
    d->child[op->name] = made;
    struct model_inode *i = add_inode(m, made, op->mode);
    i->parent = op->ino;
    i->quota = quota;
    i->target = S_ISLNK(op->mode) ? op->value : 0;
    return (struct op_result){.v = {made, op->mode}};
}

static struct op_result do_link(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino), *d = model_find(m, op->to);
    if (i == NULL || model_nlink(m, i) == 0)
        return failed(-ENOENT);
    if (S_ISDIR(i->mode))
        return failed(-EPERM);
    int rc = check_target(d);
    if (rc != 0 || d->child[op->name] != 0)
        return failed(rc != 0 ? rc : -EEXIST);
    if (model_quota_of(m, i) != model_quota_of(m, d))
        return failed(-EXDEV);
    if (apply) {
        d->child[op->name] = i->ino;
        i->nlink++;
    }
    return failed(0);
}

static void drop_name(struct model *m, uint64_t ino)
{
    struct model_inode *i = model_find(m, ino);
    i->removed = S_ISDIR(i->mode);
    i->nlink -= S_ISDIR(i->mode) ? 0 : 1;
    if (S_ISDIR(i->mode) || i->nlink == 0)
        model_quota_drop(m, i);
}

/* The last name of an inode goes to the trash, if there is one. */
static void trash_name(struct model *m, uint64_t directory, unsigned name)
{
    const uint64_t ino = model_find(m, directory)->child[name];
    struct model_inode *i = model_find(m, ino);
    if (!m->trash || (!S_ISDIR(i->mode) && i->nlink > 1)) {
        drop_name(m, ino);
        return;
    }
    model_quota_drop(m, i);
    i->trashed = true;
    i->was_directory = directory;
    i->was_name = name;
    if (S_ISDIR(i->mode))
        i->parent = TRASH_INO;
}

static struct op_result do_remove(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *d = model_find(m, op->ino);
    int rc = check_directory(d);
    if (rc != 0 || d->child[op->name] == 0)
        return failed(rc != 0 ? rc : -ENOENT);
    const struct model_inode *i = model_find(m, d->child[op->name]);
    if (op->kind == OP_UNLINK && S_ISDIR(i->mode))
        return failed(-EISDIR);
    if (op->kind == OP_RMDIR && (!S_ISDIR(i->mode) || model_entries(i) > 0))
        return failed(!S_ISDIR(i->mode) ? -ENOTDIR : -ENOTEMPTY);
    if (apply) {
        trash_name(m, op->ino, op->name);
        d->child[op->name] = 0;
    }
    return failed(0);
}

/* Of several names of one inode the first. */
static struct op_result do_unlink_many(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *d = model_find(m, op->ino);
    struct op_result r = failed(check_directory(d));
    uint64_t seen[MODEL_NAMES] = {0};
    for (unsigned n = 0; n < MODEL_NAMES && r.rc == 0; n++) {
        const uint64_t ino = (op->flags >> n & 1) != 0 ? d->child[n] : 0;
        bool takes = ino != 0 && !S_ISDIR(model_find(m, ino)->mode);
        for (unsigned k = 0; k < n; k++)
            takes &= seen[k] != ino;
        if (!takes)
            continue;
        seen[n] = ino;
        r.v[0]++;
        if (apply) {
            drop_name(m, ino);
            d->child[n] = 0;
        }
    }
    return r;
}

static bool is_within(const struct model *m, uint64_t directory, uint64_t ino)
{
    while (directory != ino && directory != VOLUME_ROOT && directory != TRASH_INO)
        directory = model_find(m, directory)->parent;
    return directory == ino;
}

static bool makes_loop(const struct model *m, const struct model_inode *moved, uint64_t from,
                       uint64_t to)
{
    return S_ISDIR(moved->mode) && from != to && is_within(m, to, moved->ino);
}

static int check_replaced(const struct model_inode *from, const struct model_inode *to)
{
    if (S_ISDIR(from->mode) && !S_ISDIR(to->mode))
        return -ENOTDIR;
    if (!S_ISDIR(from->mode) && S_ISDIR(to->mode))
        return -EISDIR;
    return model_entries(to) > 0 ? -ENOTEMPTY : 0;
}

static int check_rename(const struct model *m, const struct op *op, struct model_inode *from,
                        struct model_inode *to)
{
    if (from == NULL)
        return -ENOENT;
    if ((op->flags & RENAME_NOREPLACE) != 0 && to != NULL)
        return -EEXIST;
    if ((op->flags & RENAME_EXCHANGE) != 0 && to == NULL)
        return -ENOENT;
    if (from == to)
        return 0;
    if (makes_loop(m, from, op->ino, op->to))
        return -EINVAL;
    const bool exchanges = (op->flags & RENAME_EXCHANGE) != 0;
    if (exchanges && makes_loop(m, to, op->to, op->ino))
        return -EINVAL;
    int rc = exchanges || to == NULL ? 0 : check_replaced(from, to);
    const struct model_inode *d = model_find(m, op->ino), *e = model_find(m, op->to);
    if (rc == 0)
        rc = model_quota_check_move(m, from, d, e);
    return rc == 0 && exchanges ? model_quota_check_move(m, to, e, d) : rc;
}

static struct op_result do_rename(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *d = model_find(m, op->ino), *e = model_find(m, op->to);
    int rc = check_directory(d);
    if (rc == 0)
        rc = check_target(e);
    if (rc != 0)
        return failed(rc);
    struct model_inode *from = model_find(m, d->child[op->name]);
    struct model_inode *to = model_find(m, e->child[op->to_name]);
    rc = check_rename(m, op, from, to);
    if (rc != 0 || !apply || from == to)
        return failed(rc);
    const bool exchanges = (op->flags & RENAME_EXCHANGE) != 0;
    from->parent = op->to;
    if (exchanges)
        to->parent = op->ino;
    else if (to != NULL)
        trash_name(m, op->to, op->to_name);
    d->child[op->name] = exchanges ? to->ino : 0;
    e->child[op->to_name] = from->ino;
    return failed(0);
}

static void resize(struct model_inode *i, int64_t length)
{
    i->cells = xrealloc(i->cells, ((size_t)length + 1) * sizeof *i->cells);
    if (length > i->length)
        memset(i->cells + i->length, 0, (size_t)(length - i->length) * sizeof *i->cells);
    i->length = length;
}

/* A file that becomes so long, or stays as it is. */
static int check_growth(const struct model *m, const struct model_inode *i, int64_t length)
{
    int rc = check_file(i);
    return rc == 0 && length > i->length ? model_quota_check(m, i->quota, 0, length - i->length)
                                         : rc;
}

static struct op_result do_truncate(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    int rc = check_growth(m, i, op->at);
    if (rc == 0 && apply)
        resize(i, op->at);
    return failed(rc);
}

static struct op_result do_clear(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    int rc = check_growth(m, i, op->at + op->length);
    if (rc != 0 || !apply)
        return failed(rc);
    if (op->at + op->length > i->length)
        resize(i, op->at + op->length);
    memset(i->cells + op->at, 0, op->length * sizeof *i->cells);
    return failed(0);
}

static struct op_result do_seek(const struct model *m, const struct op *op)
{
    const struct model_inode *i = model_find(m, op->ino);
    int64_t at = op->at;
    int rc = check_file(i);
    if (rc != 0)
        return failed(rc);
    while (at < i->length && (i->cells[at].slice == 0) != (op->flags != 0))
        at++;
    const bool none = op->at >= i->length || (at == i->length && op->flags == 0);
    return none ? failed(-ENXIO) : (struct op_result){.v = {(uint64_t)at}};
}

static struct op_result do_write(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    int64_t at = op->kind == OP_APPEND && i != NULL ? i->length : op->at;
    int rc = check_growth(m, i, at + op->length);
    if (rc != 0 || !apply)
        return failed(rc);
    if (at + op->length > i->length)
        resize(i, at + op->length);
    for (uint32_t b = 0; b < op->length; b++)
        i->cells[at + b] = (struct slice_cell){op->slice, b};
    return (struct op_result){.v = {op->kind == OP_APPEND ? (uint64_t)at : 0}};
}

/* Bytes behind the end of the file are zeros. */
uint64_t model_digest(const struct model *m, uint64_t ino, int64_t at, uint32_t length)
{
    const struct model_inode *i = model_find(m, ino);
    uint64_t digest = 0;
    for (int64_t b = at; i != NULL && b < at + length && b < i->length; b++)
        digest = op_mix(digest, i->cells[b].slice + 1000 * i->cells[b].offset);
    return digest;
}

/* The bytes are the same ones, in another slice. */
static struct op_result do_compact(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    if (!apply)
        return failed(0);
    if (i == NULL || model_digest(m, op->ino, op->at, op->length) != op->value)
        return failed(-ESTALE);
    for (uint32_t b = 0; b < op->length && op->at + b < i->length; b++)
        i->cells[op->at + b] = (struct slice_cell){op->slice, b};
    return failed(0);
}

void model_build(struct model *m, uint64_t ino, uint64_t made)
{
    const uint32_t mode = model_find(m, ino)->mode;
    struct model_inode *i = add_inode(m, made, mode);
    const struct model_inode *from = model_find(m, ino); /* the array may have moved */
    i->building = true;
    i->target = from->target;
    memcpy(i->xattr, from->xattr, sizeof i->xattr);
    if (from->length > 0) {
        resize(i, from->length);
        memcpy(i->cells, from->cells, (size_t)from->length * sizeof *i->cells);
    }
}

/* made: what was built. */
static struct op_result do_clone(struct model *m, const struct op *op, bool apply, uint64_t made)
{
    struct model_inode *d = model_find(m, op->to), *i = model_find(m, op->ino);
    int rc = check_target(d);
    if (rc != 0 || d->child[op->name] != 0)
        return failed(rc != 0 ? rc : -EEXIST);
    if (apply) {
        d->child[op->name] = made;
        model_find(m, made)->building = false;
    } else if (i == NULL || i->nlink == 0) {
        return failed(-ENOENT);
    }
    return failed(0);
}

/* op: the inode, and where it was. */
static struct op_result do_restore(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *d = model_find(m, op->to), *i = model_find(m, op->ino);
    if (i == NULL || !i->trashed)
        return failed(-ENOENT);
    int rc = check_target(d);
    if (rc != 0 || d->child[op->name] != 0)
        return failed(rc != 0 ? rc : -EEXIST);
    if (apply && !model_quota_may_return(m, i, d))
        return failed(-EXDEV);
    if (apply) {
        d->child[op->name] = op->ino;
        i->trashed = false;
        i->parent = op->to;
    }
    return failed(0);
}

static void drop_clone(struct model *m, struct model_inode *i)
{
    i->nlink = 0;
    model_quota_drop(m, i);
}

void model_empty_trash(struct model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (m->inodes[i].trashed)
            drop_name(m, m->inodes[i].ino);
        if (m->inodes[i].building) /* perhaps it was removed already */
            drop_clone(m, &m->inodes[i]);
        m->inodes[i].trashed = false;
    }
}

static struct op_result do_chmod(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    if (i == NULL)
        return failed(-ENOENT);
    if (apply)
        i->mode = (i->mode & S_IFMT) | op->mode;
    return failed(0);
}

static struct op_result do_setxattr(struct model *m, const struct op *op, bool apply)
{
    struct model_inode *i = model_find(m, op->ino);
    if (i == NULL)
        return failed(-ENOENT);
    if ((op->flags & XATTR_CREATE) != 0 && i->xattr[op->name] != 0)
        return failed(-EEXIST);
    bool must = (op->flags & XATTR_REPLACE) != 0 || op->kind == OP_REMOVEXATTR;
    if (must && i->xattr[op->name] == 0)
        return failed(-ENODATA);
    if (apply)
        i->xattr[op->name] = op->kind == OP_SETXATTR ? op->value : 0;
    return failed(0);
}

struct op_result model_do(struct model *m, const struct op *op, bool apply, uint64_t made)
{
    switch (op->kind) {
    case OP_LOOKUP:
        return do_lookup(m, op);
    case OP_GETATTR:
        return do_getattr(m, op);
    case OP_READDIR:
        return do_readdir(m, op);
    case OP_READLINK:
        return do_readlink(m, op);
    case OP_READ:
        return do_read(m, op);
    case OP_GETXATTR:
        return do_getxattr(m, op);
    case OP_SEEK:
        return do_seek(m, op);
    case OP_CREATE:
        return do_create(m, op, apply, made);
    case OP_LINK:
        return do_link(m, op, apply);
    case OP_UNLINK:
    case OP_RMDIR:
        return do_remove(m, op, apply);
    case OP_UNLINK_MANY:
        return do_unlink_many(m, op, apply);
    case OP_RENAME:
        return do_rename(m, op, apply);
    case OP_CHMOD:
        return do_chmod(m, op, apply);
    case OP_TRUNCATE:
        return do_truncate(m, op, apply);
    case OP_CLEAR:
        return do_clear(m, op, apply);
    case OP_WRITE:
    case OP_APPEND:
        return do_write(m, op, apply);
    case OP_COMPACT:
        return do_compact(m, op, apply);
    case OP_RESTORE:
        return do_restore(m, op, apply);
    case OP_CLONE:
        return do_clone(m, op, apply, made);
    case OP_SETXATTR:
    case OP_REMOVEXATTR:
        return do_setxattr(m, op, apply);
    case OP_QUOTA_SET:
    case OP_QUOTA_REMOVE:
        return model_quota_do(m, op, apply, made);
    default:
        return failed(0);
    }
}
