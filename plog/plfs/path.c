#include "plog/plfs/path.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"

enum { KEY_MAX = 1024 };

static const char *after(const char *text, const char *prefix)
{
    const size_t len = strlen(prefix);
    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* What follows the mount; NULL: the path is outside. */
static const char *below_mount(const char *path, const char *mount)
{
    size_t len = strlen(mount);
    while (len > 0 && mount[len - 1] == '/')
        len--;
    if (strncmp(path, mount, len) != 0 || (path[len] != '/' && path[len] != '\0'))
        return NULL;
    return path + len;
}

static bool add_name(struct buf *out, const char *name, size_t len)
{
    if (len == 2 && memcmp(name, "..", 2) == 0)
        return false;
    if (len == 0 || (len == 1 && name[0] == '.'))
        return true;
    if (out->len > 0)
        buf_puts(out, "/");
    buf_append(out, name, len);
    return true;
}

bool plfs_path_parse(const char *path, const char *mount, struct plfs_path *out)
{
    _cleanup_buf_ struct buf names = BUF_INIT;
    *out = (struct plfs_path){.key = NULL};
    const char *rest = after(path, "plfs:");
    rest = rest != NULL ? rest : path;
    const char *url = after(rest, "dfc://");
    rest = url != NULL ? url : below_mount(rest, mount);
    for (bool more = rest != NULL; more;) {
        const size_t len = strcspn(rest, "/");
        if (!add_name(&names, rest, len))
            return false;
        more = rest[len] == '/';
        rest += len + 1;
    }
    const char *text = buf_str(&names);
    const char *key = strchr(text, '/');
    if (text[0] == '\0' || (key != NULL && strlen(key + 1) > KEY_MAX))
        return false;
    out->bucket = key != NULL ? xstrndup(text, (size_t)(key - text)) : xstrdup(text);
    out->key = xstrdup(key != NULL ? key + 1 : "");
    return true;
}

void plfs_path_done(struct plfs_path *p)
{
    free(p->bucket);
    free(p->key);
    *p = (struct plfs_path){.key = NULL};
}
