#include "net/http/query.h"

#include <string.h>

#include "common/buf.h"
#include "common/parse.h"
#include "common/suggest.h"
#include "net/http/request_types.h"

enum { NAME_SHOWN = 64 };

static bool is_of_nodes(const char *name)
{
    return strncmp(name, "dfc", 3) == 0;
}

/* The row of the parameter, NULL where the call does not have it. */
static const struct http_parameter *find(const struct http_route *route, const char *name)
{
    const struct http_parameter *p = route->query;
    if (p == NULL)
        return NULL;
    for (; p->name != NULL; p++) {
        if (p->name[0] == HTTP_ANY_PARAMETER[0] ||
            (p->name[0] == name[0] && strcmp(p->name, name) == 0))
            return p;
    }
    return NULL;
}

/* "a, b, c"; what proxies add is nobody else's to send. */
static void put_names(struct buf *out, const struct http_parameter *p)
{
    for (; p != NULL && p->name != NULL; p++) {
        if (!is_of_nodes(p->name))
            buf_printf(out, "%s%s", out->len > 0 ? ", " : "", p->name);
    }
}

static const char *nearest(const struct http_parameter *p, const char *name)
{
    struct suggestion best = SUGGESTION_INIT;
    for (; p != NULL && p->name != NULL; p++) {
        if (!is_of_nodes(p->name))
            suggest(&best, name, p->name);
    }
    return best.text;
}

static int refuse(const struct http_route *route, const char *name, struct error *err)
{
    _cleanup_(buf_done)
    struct buf names = BUF_INIT;
    const char *meant = nearest(route->query, name);
    put_names(&names, route->query);
    return error_set(err, E_INVALID, "%s %s has no parameter '%.*s'%s%s%s; it takes %s",
                     http_method_name(route->method), route->pattern, NAME_SHOWN, name,
                     meant != NULL ? " (did you mean '" : "", meant != NULL ? meant : "",
                     meant != NULL ? "'?)" : "", names.len > 0 ? buf_str(&names) : "none");
}

static int unescape(struct arena *arena, const char *text, size_t len, const char **out,
                    struct error *err)
{
    char *copy = arena_bytes(arena, len + 1);
    int64_t n = parse_url_unescape(text, len, copy, err);
    *out = copy;
    return n < 0 ? (int)n : 0;
}

/* *pair stays NULL for one that is passed over. */
static int parse_pair(struct arena *arena, const char *at, size_t len,
                      const struct http_route *route, bool strict, struct request_header **pair,
                      struct error *err)
{
    const char *equals = memchr(at, '=', len), *name, *value;
    size_t name_len = equals != NULL ? (size_t)(equals - at) : len;
    size_t value_at = equals != NULL ? name_len + 1 : len;
    int rc = unescape(arena, at, name_len, &name, err);
    if (rc == 0)
        rc = unescape(arena, at + value_at, len - value_at, &value, err);
    if (rc != 0)
        return error_wrap(err, "query");
    if (find(route, name) == NULL)
        return strict && !is_of_nodes(name) ? refuse(route, name, err) : 0;
    *pair = arena_alloc(arena, sizeof **pair);
    (*pair)->name = name;
    (*pair)->value = value;
    return 0;
}

int query_parse(struct arena *arena, const char *raw, const struct http_route *route, bool strict,
                struct request_header **out, struct error *err)
{
    struct request_header **end = out;
    *out = NULL;
    for (const char *at = raw; *at != '\0';) {
        size_t len = strcspn(at, "&");
        struct request_header *pair = NULL;
        int rc = len > 0 ? parse_pair(arena, at, len, route, strict, &pair, err) : 0;
        if (rc != 0)
            return rc;
        if (pair != NULL) {
            *end = pair;
            end = &pair->next;
        }
        at += len + (at[len] == '&');
    }
    return 0;
}
