#include "net/http/visitor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct row {
    struct row *next;
    char *text;
};

struct visitor_rules {
    char *advertise;
    struct row *hosts;
    struct row *origins;
};

/* --- the rules -------------------------------------------------------------------------------- */

static int check_host_row(const char *row, struct error *err)
{
    const char *name = strncmp(row, "*.", 2) == 0 ? row + 2 : row;
    if (strcmp(row, "*") == 0 || (*name != '\0' && strpbrk(name, ":/*@ \t[]") == NULL))
        return 0;
    return error_set(
        err, E_INVALID,
        "--allowed-hosts: '%.200s' is not a name without a port, '*.' and a name, or '*'", row);
}

/* "http://" or "https://": its length; else 0. */
static size_t scheme_len(const char *origin)
{
    if (strncasecmp(origin, "http://", 7) == 0)
        return 7;
    return strncasecmp(origin, "https://", 8) == 0 ? 8 : 0;
}

static int check_origin_row(const char *row, struct error *err)
{
    size_t scheme = scheme_len(row);
    if (scheme > 0 && row[scheme] != '\0' && strpbrk(row + scheme, "/*@? \t") == NULL)
        return 0;
    return error_set(err, E_INVALID, "--allowed-origins: '%.200s' is not https://HOST[:PORT]", row);
}

static int read_rows(const char *list, int (*check)(const char *row, struct error *err),
                     struct row **out, struct error *err)
{
    while (*list != '\0') {
        size_t len = strcspn(list, ",");
        size_t skip = strspn(list, " \t");
        size_t end = len;
        while (end > skip && (list[end - 1] == ' ' || list[end - 1] == '\t'))
            end--;
        struct row *row = xcalloc(1, sizeof *row);
        row->text = end > skip ? xstrndup(list + skip, end - skip) : xstrdup("");
        row->next = *out;
        *out = row;
        int code = check(row->text, err);
        if (code != 0)
            return code;
        list += len + (list[len] == ',' ? 1 : 0);
    }
    return 0;
}

static void free_rows(struct row *row)
{
    for (struct row *next; row != NULL; row = next) {
        next = row->next;
        free(row->text);
        free(row);
    }
}

int visitor_rules_new(const char *advertise, const char *allowed_hosts, const char *allowed_origins,
                      struct visitor_rules **out, struct error *err)
{
    struct visitor_rules *r = xcalloc(1, sizeof *r);
    r->advertise = xstrdup(advertise);
    int code = read_rows(allowed_hosts, check_host_row, &r->hosts, err);
    if (code == 0)
        code = read_rows(allowed_origins, check_origin_row, &r->origins, err);
    if (code != 0)
        visitor_rules_free(r);
    else
        *out = r;
    return code;
}

void visitor_rules_free(struct visitor_rules *r)
{
    if (r == NULL)
        return;
    free_rows(r->hosts);
    free_rows(r->origins);
    free(r->advertise);
    free(r);
}

/* --- Host ------------------------------------------------------------------------------------- */

/* The name in "name:port" and "[address]:port", without the dot of a name that is spelt in full;
 * malloc'ed. */
static char *name_of(const char *host)
{
    if (*host == '[') {
        size_t len = strcspn(host, "]");
        return xstrndup(host + 1, len > 0 ? len - 1 : 0);
    }
    size_t len = strcspn(host, ":");
    if (len > 1 && host[len - 1] == '.')
        len--;
    return xstrndup(host, len);
}

static bool is_address(const char *name)
{
    struct in_addr v4;
    struct in6_addr v6;
    return inet_pton(AF_INET, name, &v4) == 1 || inet_pton(AF_INET6, name, &v6) == 1;
}

static bool row_has(const char *row, const char *name)
{
    size_t row_len = strlen(row), len = strlen(name);
    if (strcmp(row, "*") == 0 || strcasecmp(row, name) == 0)
        return true;
    /* ".example.org" at the end, and something before it */
    return row[0] == '*' && len >= row_len && strcasecmp(name + len - (row_len - 1), row + 1) == 0;
}

static bool is_ours(const struct visitor_rules *r, const char *name)
{
    if (is_address(name) || strcasecmp(name, "localhost") == 0 ||
        (r->advertise[0] != '\0' && strcasecmp(name, r->advertise) == 0))
        return true;
    for (const struct row *row = r->hosts; row != NULL; row = row->next) {
        if (row_has(row->text, name))
            return true;
    }
    return false;
}

/* A request of HTTP/1.0 may have none: it is no browser's. */
static int check_host(const struct visitor_rules *r, const struct visitor *v, struct error *err)
{
    bool shows = v->origin != NULL || v->fetch_site != NULL;
    if (v->host == NULL || (v->is_open && v->only_reads && !shows))
        return 0;
    _cleanup_free_ char *name = name_of(v->host);
    if (is_ours(r, name))
        return 0;
    return error_set(err, E_HOST,
                     "'%.255s' is not known as a name of this node: use its IP address, or start "
                     "every node with --allowed-hosts=%.255s",
                     name, name[0] != '\0' ? name : "NAME");
}

/* --- where the page is from ------------------------------------------------------------------- */

static bool is_allowed(const struct visitor_rules *r, const char *origin)
{
    for (const struct row *row = r->origins; row != NULL; row = row->next) {
        if (strcasecmp(row->text, origin) == 0)
            return true;
    }
    return false;
}

/* The Host is ours, so that a page of the same name and port was served here. */
static bool is_own(const struct visitor *v)
{
    size_t scheme = scheme_len(v->origin);
    return scheme > 0 && v->host != NULL && strcasecmp(v->origin + scheme, v->host) == 0;
}

static int check_origin(const struct visitor_rules *r, const struct visitor *v, struct error *err)
{
    if (v->origin != NULL)
        return is_own(v) || is_allowed(r, v->origin)
                   ? 0
                   : error_set(err, E_ORIGIN,
                               "a web page of '%.255s' may not call this cluster "
                               "(--allowed-origins names those that may)",
                               v->origin);
    if (v->only_reads || v->fetch_site == NULL || strcasecmp(v->fetch_site, "same-origin") == 0 ||
        strcasecmp(v->fetch_site, "none") == 0)
        return 0;
    return error_set(err, E_ORIGIN, "a web page of another site may not call this cluster");
}

static bool is_json(const char *content_type)
{
    static const char json[] = "application/json";
    size_t len = strcspn(content_type, "; \t");
    return len == sizeof json - 1 && strncasecmp(content_type, json, len) == 0;
}

static int check_type(const struct visitor *v, struct error *err)
{
    bool browser = v->origin != NULL || v->fetch_site != NULL;
    if (!browser || !v->sends_json || (v->content_type != NULL && is_json(v->content_type)))
        return 0;
    return error_set(err, E_MEDIA_TYPE,
                     "Content-Type '%.100s': from a web page this call takes application/json",
                     v->content_type != NULL ? v->content_type : "");
}

int visitor_check(const struct visitor_rules *r, const struct visitor *v, struct error *err)
{
    int code = check_host(r, v, err);
    if (code == 0)
        code = check_origin(r, v, err);
    return code != 0 ? code : check_type(v, err);
}
