#include "api/uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "api/failure.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* Length of "http://" or "https://" at the beginning, or 0. */
static size_t uri_scheme(const char *text)
{
    if (strncasecmp(text, "http://", 7) == 0)
        return 7;
    return strncasecmp(text, "https://", 8) == 0 ? 8 : 0;
}

int uri_endpoint(const char *text, size_t len, char **out, struct dfc_error *err)
{
    while (len > 0 && isspace((unsigned char)*text)) {
        text++;
        len--;
    }
    while (len > 0 && (isspace((unsigned char)text[len - 1]) || text[len - 1] == '/'))
        len--;
    _cleanup_free_ char *plain = xstrndup(text, len);
    size_t scheme = uri_scheme(plain);
    const char *host = plain + scheme;
    size_t host_len = strlen(host);
    if (host_len == 0 || host[0] == ':' || host[host_len - 1] == ':' ||
        strpbrk(host, "/?#@ \t\r\n\"<>\\") != NULL)
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "'%s' is not an endpoint: expected http://HOST:PORT", plain);
    if (scheme == 0 && strchr(host, ':') == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID,
                           "'%s' is not an endpoint: without http:// it needs a port", plain);
    *out = scheme > 0 ? steal(plain) : xprintf("http://%s", plain);
    return DFC_OK;
}

int uri_bucket(struct buf *out, const char *room, const char *bucket, struct dfc_error *err)
{
    if (bucket == NULL || bucket[0] == '\0' || strchr(bucket, '/') != NULL)
        return failure_set(err, DFC_INVALID, E_NAME, "'%s' is not a bucket name: it %s",
                           bucket != NULL ? bucket : "",
                           bucket == NULL || bucket[0] == '\0' ? "is empty" : "has a '/'");
    buf_printf(out, "/v1/%s/", room);
    buf_put_url_escaped(out, bucket, strlen(bucket), "");
    return DFC_OK;
}

int uri_object(struct buf *out, const char *bucket, const char *object, struct dfc_error *err)
{
    return uri_object_in(out, "objects", bucket, object, err);
}

int uri_object_in(struct buf *out, const char *room, const char *bucket, const char *object,
                  struct dfc_error *err)
{
    if (object == NULL || object[0] == '\0')
        return failure_set(err, DFC_INVALID, E_NAME, "the object's name is empty");
    int rc = uri_bucket(out, room, bucket, err);
    if (rc != DFC_OK)
        return rc;
    buf_putc(out, '/');
    buf_put_url_escaped(out, object, strlen(object), "/");
    return DFC_OK;
}

void uri_query(struct buf *out, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    buf_putc(out, strchr(buf_str(out), '?') == NULL ? '?' : '&');
    buf_puts(out, name);
    buf_putc(out, '=');
    buf_put_url_escaped(out, value, strlen(value), "");
}

void uri_query_u64(struct buf *out, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    uri_query(out, name, text);
}

static size_t origin_len(const char *url)
{
    size_t scheme = uri_scheme(url);
    return scheme + strcspn(url + scheme, "/?#");
}

char *uri_origin(const char *url)
{
    return xstrndup(url, origin_len(url));
}

bool uri_is_tls(const char *url)
{
    return uri_scheme(url) == 8;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

bool uri_is_of_this_machine(const char *endpoint)
{
    static const char scheme[] = "http://";
    char host[INET6_ADDRSTRLEN];
    if (strncasecmp(endpoint, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *begin = endpoint + sizeof scheme - 1;
    bool bracketed = *begin == '[';
    begin += bracketed;
    size_t len = strcspn(begin, bracketed ? "]" : ":/");
    if (len >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)len, begin);
    return is_loopback(host);
}

char *uri_for_people(const char *url)
{
    return xstrndup(url, strcspn(url, "?"));
}

char *uri_resolve(const char *base, const char *location)
{
    if (location == NULL)
        return NULL;
    if (uri_scheme(location) > 0)
        return xstrdup(location);
    if (location[0] != '/' || location[1] == '/')
        return NULL;
    return xprintf("%.*s%s", (int)origin_len(base), base, location);
}
