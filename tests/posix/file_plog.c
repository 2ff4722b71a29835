#include "tests/posix/file_kind.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/dfc.h"
#include "common/mem.h"
#include "plog/client/dfc_plog.h"

static struct dfc_error err;
static struct dfc_client *client; /* of the process; it is there until the end */

static int result(int rc, const char *what, const char *path)
{
    return rc == DFC_OK ? 0 : file_fail(what, path, err.message);
}

/* BUCKET/NAME */
struct place {
    char bucket[64];
    const char *name;
};

static int parse(const char *path, struct place *p)
{
    const char *slash = strchr(path, '/');
    if (slash == NULL || slash == path || (size_t)(slash - path) >= sizeof p->bucket)
        return file_fail("path", path, "it is no BUCKET/NAME");
    snprintf(p->bucket, sizeof p->bucket, "%.*s", (int)(slash - path), path);
    p->name = slash + 1;
    if (client != NULL)
        return 0;
    return result(dfc_client_open(NULL, &client, &err), "client for", path);
}

static int plog_open(const char *path, int flags, struct file *f)
{
    struct place p;
    struct dfc_plog *plog;
    const struct dfc_plog_options o = {
        .flags = ((flags & O_ACCMODE) != O_RDONLY ? DFC_PLOG_WRITE : 0U) |
                 ((flags & O_CREAT) != 0 ? DFC_PLOG_CREATE : 0U) |
                 ((flags & O_EXCL) != 0 ? DFC_PLOG_EXCLUSIVE : 0U) |
                 ((flags & O_TRUNC) != 0 ? DFC_PLOG_TRUNCATE : 0U),
        .mode = 0644,
    };
    if (parse(path, &p) != 0 ||
        result(dfc_plog_open(client, p.bucket, p.name, &o, &plog, &err), "open", path) != 0)
        return -1;
    *f = (struct file){.fd = -1, .handle = plog, .path = xstrdup(path)};
    return 0;
}

static int plog_write(struct file *f, const void *data, size_t size, uint64_t offset)
{
    return result(dfc_plog_write(f->handle, data, size, offset, &err), "write", f->path);
}

static int plog_read(struct file *f, void *to, size_t size, uint64_t offset, size_t *got)
{
    return result(dfc_plog_read(f->handle, to, size, offset, got, &err), "read", f->path);
}

static int plog_truncate(struct file *f, uint64_t length)
{
    return result(dfc_plog_truncate(f->handle, length, &err), "truncate", f->path);
}

static int plog_size(struct file *f, uint64_t *bytes)
{
    struct dfc_plog_glance g;
    const int rc = result(dfc_plog_look(f->handle, &g, &err), "look", f->path);
    *bytes = rc == 0 ? g.size : 0;
    return rc;
}

static int plog_sync(struct file *f)
{
    const int rc = result(dfc_plog_sync(f->handle, &err), "sync", f->path);
    if (rc == 0)
        dfc_plog_renew(f->handle);
    return rc;
}

static int plog_close(struct file *f)
{
    const int rc = result(dfc_plog_close(f->handle, &err), "close", f->path);
    if (rc != 0)
        dfc_plog_drop(f->handle);
    free(f->path);
    return rc;
}

static int plog_stat(const char *path, uint64_t *bytes)
{
    struct place p;
    struct dfc_plog_glance g;
    if (parse(path, &p) != 0 ||
        result(dfc_plog_glance(client, p.bucket, p.name, &g, &err), "stat", path) != 0)
        return -1;
    *bytes = g.size;
    return 0;
}

static int plog_cut(const char *path, uint64_t length)
{
    struct file f;
    if (plog_open(path, O_WRONLY, &f) != 0)
        return -1;
    const int rc = plog_truncate(&f, length);
    return plog_close(&f) == 0 ? rc : -1;
}

static int plog_rename(const char *path, const char *new_path)
{
    struct place from, to;
    if (parse(path, &from) != 0 || parse(new_path, &to) != 0)
        return -1;
    return result(dfc_plog_rename(client, from.bucket, from.name, to.name, &err), "rename", path);
}

static int plog_remove(const char *path)
{
    struct place p;
    if (parse(path, &p) != 0)
        return -1;
    return result(dfc_plog_unlink(client, p.bucket, p.name, &err), "unlink", path);
}

const struct file_kind file_plog = {
    .name = "plog",
    .open = plog_open,
    .write = plog_write,
    .read = plog_read,
    .truncate = plog_truncate,
    .size = plog_size,
    .sync = plog_sync,
    .close = plog_close,
    .stat = plog_stat,
    .cut = plog_cut,
    .rename = plog_rename,
    .remove = plog_remove,
};
