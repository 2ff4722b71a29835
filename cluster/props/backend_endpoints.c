#include "cluster/props/backend_endpoints.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/props/backend.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/origin.h"

enum { ROWS_MAX = 256, FIELDS = 3, ROW_SHOWN = 100 };

static const char own[] = "own", any[] = "*", standard[] = "default", any_port[] = ":*";

struct row {
    char *provider, *endpoint, *credential;
};

struct backend_endpoints {
    size_t count;
    struct row *rows;
};

/* --- hosts of the providers themselves -------------------------------------------------------- */

/* One label of a host's name, behind which `rest` begins. */
static bool take_label(const char *at, const char **rest)
{
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
    *rest = at + len;
    return len > 0;
}

static bool take(const char **at, const char *text)
{
    size_t len = strlen(text);
    if (strncmp(*at, text, len) != 0)
        return false;
    *at += len;
    return true;
}

/* Others of amazonaws.com are their customers' (load balancers, gateways, machines). */
static bool is_amazon(const char *host)
{
    const char *rest;
    if (!take(&host, "s3-fips") && !take(&host, "s3"))
        return false;
    if (strcmp(host, ".amazonaws.com") == 0)
        return true;
    take(&host, ".dualstack");
    if (!take(&host, ".") || !take_label(host, &rest))
        return false;
    return strcmp(rest, ".amazonaws.com") == 0 || strcmp(rest, ".amazonaws.com.cn") == 0;
}

static bool is_google(const char *host)
{
    return strcmp(host, "storage.googleapis.com") == 0;
}

static const struct provider {
    const char *name;
    bool (*is_own)(const char *host);
} providers[] = {{"s3", is_amazon}, {"gcs", is_google}};

static const struct provider *provider_of(const char *name)
{
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        if (strcmp(providers[i].name, name) == 0)
            return &providers[i];
    }
    return NULL;
}

/* --- endpoints, of which one server has one form ---------------------------------------------- */

/* The origin in one spelling, the path without slashes at its end. */
static char *normal_endpoint(const char *url)
{
    _cleanup_free_ char *origin = origin_normal(url);
    const char *path = url + origin_len(url);
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    return xprintf("%s%.*s", origin, (int)len, path);
}

/* A pattern whose port is "*", against any port, also none. */
static bool matches_any_port(const char *pattern, const char *url)
{
    const char *star = strstr(pattern, any_port);
    if (star == NULL)
        return false;
    size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, url, before) != 0)
        return false;
    url += before;
    if (*url == ':')
        url += 1 + strspn(url + 1, "0123456789");
    return strcmp(url, star + strlen(any_port)) == 0;
}

static bool is_own(const struct provider *p, const char *url)
{
    return strncmp(url, "https://", 8) == 0 && p->is_own(url + 8);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void row_done(struct row *r)
{
    free(r->provider);
    free(r->endpoint);
    free(r->credential);
}

void backend_endpoints_free(struct backend_endpoints *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->count; i++)
        row_done(&e->rows[i]);
    free(e->rows);
    free(e);
}

static const char *next_field(const char **at, const char *end, size_t *len)
{
    const char *from = *at;
    while (from < end && *from == ' ')
        from++;
    *at = from;
    while (*at < end && **at != ' ')
        ++*at;
    *len = (size_t)(*at - from);
    return from;
}

static bool is_endpoint(const char *text)
{
    const char *host = strstr(text, "://");
    return strcmp(text, own) == 0 ||
           ((strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0) &&
            strcspn(host + 3, "/:") > 0 && strpbrk(text, "?#@\\") == NULL);
}

static bool row_is_good(const struct row *r, const char *beyond)
{
    bool has_profiles = strcmp(r->provider, "s3") == 0;
    return *beyond == '\0' && provider_of(r->provider) != NULL && is_endpoint(r->endpoint) &&
           (has_profiles || strcmp(r->credential, standard) == 0 ||
            strcmp(r->credential, any) == 0);
}

static int take_row(const char *text, size_t len, struct row *out, struct error *err)
{
    const char *at = text, *end = text + len;
    char *fields[FIELDS + 1];
    for (size_t i = 0; i <= FIELDS; i++) {
        size_t field_len;
        const char *field = next_field(&at, end, &field_len);
        fields[i] = xstrndup(field, field_len);
    }
    _cleanup_free_ char *beyond = fields[FIELDS], *endpoint = fields[1];
    *out = (struct row){.provider = fields[0],
                        .endpoint = normal_endpoint(endpoint),
                        .credential = *fields[2] != '\0' ? fields[2] : xstrdup(standard)};
    if (*fields[2] == '\0')
        free(fields[2]);
    if (row_is_good(out, beyond))
        return 0;
    return error_set(err, E_INVALID,
                     "'%.*s' is no row: write PROVIDER ENDPOINT [CREDENTIAL], as in 's3 "
                     "http://minio.example:9000 default'",
                     (int)(len < ROW_SHOWN ? len : ROW_SHOWN), text);
}

static bool is_blank(const char *text, size_t len)
{
    while (len > 0 && *text == ' ') {
        text++;
        len--;
    }
    return len == 0;
}

int backend_endpoints_new(const char *text, struct backend_endpoints **out, struct error *err)
{
    struct backend_endpoints *e = xcalloc(1, sizeof *e);
    e->rows = xcalloc(ROWS_MAX, sizeof e->rows[0]);
    int code = 0;
    bool is_more = !is_blank(text, strlen(text));
    while (code == 0 && is_more) {
        size_t len = strcspn(text, ",");
        code = e->count == ROWS_MAX
                   ? error_set(err, E_INVALID, "more than %d rows are given", ROWS_MAX)
                   : take_row(text, len, &e->rows[e->count++], err);
        is_more = text[len] == ',';
        text += len + is_more;
    }
    if (code == 0)
        *out = e;
    else
        backend_endpoints_free(e);
    return code;
}

/* --- the question ----------------------------------------------------------------------------- */

static bool credential_is(const struct row *r, const char *profile)
{
    return strcmp(r->credential, any) == 0 ||
           strcmp(r->credential, *profile != '\0' ? profile : standard) == 0;
}

static bool row_has(const struct row *r, const struct provider *p, const char *endpoint,
                    const char *profile)
{
    if (strcmp(r->provider, p->name) != 0 || !credential_is(r, profile))
        return false;
    if (strcmp(r->endpoint, own) == 0)
        return is_own(p, endpoint);
    return strcmp(r->endpoint, endpoint) == 0 || matches_any_port(r->endpoint, endpoint);
}

int backend_endpoints_check(const struct backend_endpoints *e, const struct backend_spec *spec,
                            struct error *err)
{
    const struct provider *p = provider_of(spec->provider);
    if (!spec->is_signed || p == NULL)
        return 0;
    _cleanup_free_ char *endpoint = normal_endpoint(spec->endpoint);
    bool is_theirs = is_own(p, endpoint);
    if (is_theirs && *spec->profile == '\0')
        return 0;
    for (size_t i = 0; i < e->count; i++) {
        if (row_has(&e->rows[i], p, endpoint, spec->profile))
            return 0;
    }
    return error_set(err, E_BACKEND_DENIED,
                     "the operator allows no credentials for this endpoint: add '%s %s%s%s' to "
                     "--backend-endpoints of proxies and targets, or set auth=none",
                     p->name, is_theirs ? own : endpoint, *spec->profile != '\0' ? " " : "",
                     spec->profile);
}

int backend_endpoints_check_url(const struct backend_endpoints *e, const char *url,
                                struct error *err)
{
    struct backend_spec spec;
    _cleanup_(arena_freep)
    struct arena *a = arena_new(1024);
    if (backend_parse(url, a, &spec, NULL) != 0)
        return 0;
    return backend_endpoints_check(e, &spec, err);
}
