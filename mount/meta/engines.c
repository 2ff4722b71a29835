#include "mount/meta/engines.h"

#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "mount/meta/memory.h"
#ifdef HAVE_LIBPQ
#include "mount/meta/postgres.h"
#endif
#ifdef HAVE_HIREDIS
#include "mount/meta/redis.h"
#endif
#include "mount/meta/sqlite.h"

static const struct meta_ops *const engines[] = {
    &meta_sqlite_ops,
#ifdef HAVE_HIREDIS
    &meta_redis_ops,
#endif
#ifdef HAVE_LIBPQ
    &meta_postgres_ops,
#endif
    &meta_memory_ops,
};

int engines_open(const char *url, bool make, struct meta **out, struct error *err)
{
    _cleanup_buf_ struct buf schemes = BUF_INIT;
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        size_t len = strlen(engines[i]->scheme);
        if (strncmp(url, engines[i]->scheme, len) == 0 && strncmp(url + len, "://", 3) == 0)
            return engines[i]->open(url + len + 3, make, out, err);
        buf_printf(&schemes, "%s%s://", i > 0 ? ", " : "", engines[i]->scheme);
    }
    _cleanup_free_ char *shown = engines_shown(url);
    return error_set(
        err, E_INVALID,
        "'%s' is no metadata URL: it must begin with one of %s; a bucket is dfc://BUCKET", shown,
        buf_str(&schemes));
}

static const char parameter[] = "password=";

/* Without the values of all parameters of the query that are, or end with, "password".  An '@' in
 * front may be one of a value: what is left of that goes, too. */
static char *without_passwords(const char *before, const char *text)
{
    struct buf out = BUF_INIT;
    if (strstr(before, parameter) != NULL)
        text += strcspn(text, "&");
    const char *query = strchr(text, '?');
    const char *at = query != NULL ? query : text;
    buf_append(&out, text, (size_t)(at - text));
    for (const char *found; (found = strstr(at, parameter)) != NULL;) {
        found += sizeof parameter - 1;
        buf_append(&out, at, (size_t)(found - at));
        buf_printf(&out, "***");
        at = found + strcspn(found, "&");
    }
    buf_printf(&out, "%s", at);
    return buf_steal(&out);
}

/* A path may have '@', and no login. */
char *engines_shown(const char *url)
{
    const char *place = strstr(url, "://");
    const char *at = place != NULL ? strrchr(place, '@') : NULL;
    if (strncmp(url, "sqlite3:", 8) == 0)
        return xstrdup(url);
    if (at == NULL)
        return without_passwords("", url);
    _cleanup_free_ char *login = xstrndup(url, (size_t)(at - url));
    _cleanup_free_ char *rest = without_passwords(login, at + 1);
    return xprintf("%.*s***@%s", (int)(place + 3 - url), url, rest);
}
