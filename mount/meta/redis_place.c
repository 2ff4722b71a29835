#include "mount/meta/redis_place.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/parse.h"

void redis_place_done(struct redis_place *p)
{
    free(p->host);
    free(p->port);
    free(p->user);
    free(p->password);
    free(p->database);
    *p = (struct redis_place){0};
}

/* What follows the last '@'. */
static const char *take_login(const char *where, struct redis_place *p)
{
    const char *at = strrchr(where, '@');
    if (at == NULL)
        return where;
    const char *colon = memchr(where, ':', (size_t)(at - where));
    const char *password = colon != NULL ? colon + 1 : where;
    if (colon != NULL && colon > where)
        p->user = xstrndup(where, (size_t)(colon - where));
    p->password = xstrndup(password, (size_t)(at - password));
    return at + 1;
}

static int take_port(const char *text, size_t len, struct redis_place *p, struct error *err)
{
    uint64_t port;
    p->port = xstrndup(text, len);
    if (parse_u64(p->port, &port, NULL) != 0 || port == 0 || port > 65535)
        return error_set(err, E_INVALID, "redis://…: port '%s': it must be 1 to 65535", p->port);
    return 0;
}

static int take_host(const char *text, size_t len, struct redis_place *p, struct error *err)
{
    const char *end = text + len, *host_end = end, *colon;
    if (len > 0 && text[0] == '[') {
        host_end = memchr(text, ']', len);
        if (host_end == NULL)
            return error_set(err, E_INVALID, "redis://…: host '%.*s' has no ']'", (int)len, text);
        p->host = xstrndup(text + 1, (size_t)(host_end - text - 1));
        colon = host_end + 1;
    } else {
        colon = memchr(text, ':', len);
        host_end = colon != NULL ? colon : end;
        colon = host_end;
        p->host = xstrndup(text, (size_t)(host_end - text));
    }
    if (p->host[0] == '\0' || (colon < end && *colon != ':'))
        return error_set(err, E_INVALID,
                         "redis://…: '%.*s' is not HOST[:PORT]; the whole URL is "
                         "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]",
                         (int)len, text);
    if (colon < end)
        return take_port(colon + 1, (size_t)(end - colon - 1), p, err);
    p->port = xstrdup("6379");
    return 0;
}

int redis_place_parse(const char *where, struct redis_place *out, struct error *err)
{
    uint64_t database;
    *out = (struct redis_place){0};
    const char *host = take_login(where, out);
    const char *slash = strchr(host, '/');
    int rc = take_host(host, slash != NULL ? (size_t)(slash - host) : strlen(host), out, err);
    out->database = xstrdup(slash != NULL && slash[1] != '\0' ? slash + 1 : "0");
    if (rc == 0 && (parse_u64(out->database, &database, NULL) != 0 || database > 65535))
        rc = error_set(err, E_INVALID, "redis://…: database '%s': it must be a number",
                       out->database);
    if (rc != 0)
        redis_place_done(out);
    return rc;
}
