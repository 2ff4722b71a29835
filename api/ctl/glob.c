#include "api/ctl/glob.h"

#include <fnmatch.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define SIGNS "*?["

/* Escapes count only beside signs: a name with a backslash alone needs none. */
static bool has_escapes(const char *key)
{
    return strpbrk(key, SIGNS) != NULL;
}

/* Appends the text before the first sign without an escape, and returns where that stands. */
static const char *put_plain(const char *key, struct buf *out)
{
    const char *at = key;
    for (; *at != '\0' && strchr(SIGNS, *at) == NULL; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        buf_putc(out, *at);
    }
    return at;
}

bool glob_is(const char *key)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    return has_escapes(key) && *put_plain(key, &plain) != '\0';
}

char *glob_prefix(const char *pattern)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    put_plain(pattern, &plain);
    return xstrdup(buf_str(&plain));
}

bool glob_matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

char *glob_name(const char *key)
{
    return has_escapes(key) ? glob_prefix(key) : xstrdup(key);
}

char *glob_escape(const char *name)
{
    struct buf key = BUF_INIT;
    buf_puts(&key, "");
    for (; *name != '\0'; name++) {
        if (strchr(SIGNS "\\", *name) != NULL)
            buf_putc(&key, '\\');
        buf_putc(&key, *name);
    }
    return buf_steal(&key);
}

bool glob_only_prefix(const char *pattern)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    return strcmp(put_plain(pattern, &plain), "*") == 0;
}

int glob_open(struct dfc_client *client, const char *bucket, const char *pattern,
              struct glob_list *out, struct dfc_error *err)
{
    _cleanup_free_ char *prefix = glob_prefix(pattern);
    const struct dfc_list_options options = {.prefix = prefix};
    *out = (struct glob_list){.pattern = pattern};
    return dfc_list_open(client, bucket, &options, &out->list, err);
}

int glob_next(struct glob_list *g, const struct dfc_entry **entry, struct dfc_error *err)
{
    int rc;
    while ((rc = dfc_list_next(g->list, entry, err)) > 0) {
        if (glob_matches(g->pattern, (*entry)->name)) {
            g->matched++;
            return rc;
        }
    }
    return rc;
}

void glob_close(struct glob_list *g)
{
    if (g->list != NULL)
        dfc_list_close(g->list);
    g->list = NULL;
}
