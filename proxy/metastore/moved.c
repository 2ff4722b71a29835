#include "proxy/metastore/moved.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"

enum { FORMAT = 1, FILE_MAX = 64 << 10, FILE_MODE = 0600 };

static char *path_in(const char *dir)
{
    return xprintf("%s/moved.json", dir);
}

void moved_done(struct moved *m)
{
    free(m->metastore);
    free(m->prefix);
    free(m->cluster);
    *m = (struct moved){0};
}

static int moved_from_json(json_t *doc, struct moved *out, struct error *err)
{
    const char *metastore;
    const char *prefix;
    const char *cluster;
    uint64_t format;
    int r;
    if (!json_is_object(doc))
        return error_set(err, E_JSON, "it is not an object");
    if ((r = json_need_u64(doc, "", "format", &format, err)) != 0)
        return r;
    if (format != FORMAT)
        return error_set(err, E_UNSUPPORTED, "field 'format' is %llu, and this release reads %d",
                         (unsigned long long)format, FORMAT);
    if ((r = json_need_str(doc, "", "metastore", &metastore, err)) != 0 ||
        (r = json_need_str(doc, "", "prefix", &prefix, err)) != 0 ||
        (r = json_need_str(doc, "", "cluster", &cluster, err)) != 0 ||
        (r = json_need_u64(doc, "", "term", &out->term, err)) != 0 ||
        (r = json_need_u64(doc, "", "version", &out->version, err)) != 0 ||
        (r = json_get_bool(doc, "", "done", &out->done, err)) != 0)
        return r;
    out->metastore = xstrdup(metastore);
    out->prefix = xstrdup(prefix);
    out->cluster = xstrdup(cluster);
    return 0;
}

int moved_read(const char *dir, struct moved *out, struct error *err)
{
    _cleanup_free_ char *path = path_in(dir);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    *out = (struct moved){0};
    int r = file_read_all(path, FILE_MAX, &text, err);
    if (r != 0)
        return r;
    if ((r = json_parse(buf_str(&text), text.len, &doc, err)) != 0 ||
        (r = moved_from_json(doc, out, err)) != 0)
        error_wrap(err, "'%s'", path);
    return r;
}

int moved_write(const char *dir, const struct moved *m, struct error *err)
{
    _cleanup_free_ char *path = path_in(dir);
    _cleanup_json_ json_t *doc =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:b}", "format", FORMAT, "metastore",
                  m->metastore, "prefix", m->prefix, "cluster", m->cluster, "term",
                  (json_int_t)m->term, "version", (json_int_t)m->version, "done", (int)m->done);
    if (doc == NULL)
        return error_set(err, E_INVALID, "the metastore's address is not UTF-8");
    _cleanup_free_ char *text = json_text(doc);
    return file_replace(path, text, strlen(text), FILE_MODE, err);
}

int moved_remove(const char *dir, struct error *err)
{
    _cleanup_free_ char *path = path_in(dir);
    if (unlink(path) != 0 && errno != ENOENT)
        return error_errno(err, errno, "remove '%s'", path);
    return file_fsync_dir(dir, err);
}

int moved_refuse(const char *dir, struct error *err)
{
    struct moved m;
    int r = moved_read(dir, &m, err);
    if (r == E_NOT_FOUND)
        return 0;
    if (r == 0)
        r = error_set(err, E_EXISTS,
                      "the documents in '%s' have moved to %s (prefix '%s'): start this proxy with "
                      "--metastore=%s. The way back is told in docs/guide/install.md, 'Growing'",
                      dir, m.metastore, m.prefix, m.metastore);
    moved_done(&m);
    return r;
}
