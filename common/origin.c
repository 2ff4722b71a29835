#include "common/origin.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

static size_t scheme_len(const char *url)
{
    const char *end = strstr(url, "://");
    return end != NULL ? (size_t)(end - url) + 3 : 0;
}

size_t origin_len(const char *url)
{
    size_t scheme = scheme_len(url);
    return scheme + strcspn(url + scheme, "/?#");
}

static void lower(char *text)
{
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* As a client of HTTP reads it; a host that no client takes stays as it is. */
static void unescape(char *host)
{
    _cleanup_free_ char *plain = xmalloc(strlen(host) + 1);
    int64_t len = parse_url_unescape(host, strlen(host), plain, NULL);
    if (len <= 0 || memchr(plain, '\0', (size_t)len) != NULL)
        return;
    plain[len] = '\0';
    if (strpbrk(plain, "/?#@:\\[]") == NULL)
        memcpy(host, plain, (size_t)len + 1);
}

/* In brackets. */
static char *normal_v6(const char *host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    size_t len = strlen(host);
    _cleanup_free_ char *inner = xstrndup(host + 1, len >= 2 ? len - 2 : 0);
    if (inet_pton(AF_INET6, inner, &v6) != 1)
        return xstrdup(host);
    return xprintf("[%s]", inet_ntop(AF_INET6, &v6, text, sizeof text));
}

static char *normal_host(char *host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr v4;
    lower(host);
    if (host[0] == '[')
        return normal_v6(host);
    unescape(host);
    lower(host);
    for (size_t len = strlen(host); len > 0 && host[len - 1] == '.';)
        host[--len] = '\0';
    if (inet_aton(host, &v4) != 0 && strchr(host, ' ') == NULL)
        return xstrdup(inet_ntop(AF_INET, &v4, text, sizeof text));
    return xstrdup(host);
}

/* ":8080", or "". */
static const char *normal_port(const char *scheme, const char *port)
{
    static const struct {
        const char *scheme, *port;
    } rows[] = {{"http://", "80"}, {"https://", "443"}};
    if (port[0] != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))
        return port;
    port++;
    while (*port == '0')
        port++;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(scheme, rows[i].scheme) == 0 && strcmp(port, rows[i].port) == 0)
            return "";
    }
    return port;
}

char *origin_normal(const char *url)
{
    _cleanup_free_ char *scheme = xstrndup(url, scheme_len(url));
    if (scheme[0] == '\0')
        return xstrndup(url, origin_len(url));
    const char *authority = url + strlen(scheme);
    size_t len = origin_len(url) - strlen(scheme);
    _cleanup_free_ char *text = xstrndup(authority, len);
    size_t host_len = text[0] == '[' ? strcspn(text, "]") : strcspn(text, ":");
    host_len += text[host_len] == ']' ? 1 : 0;
    _cleanup_free_ char *named = xstrndup(text, host_len);
    _cleanup_free_ char *host = normal_host(named);
    lower(scheme);
    const char *port = normal_port(scheme, text + host_len);
    return xprintf("%s%s%s%s", scheme, host, isdigit((unsigned char)*port) ? ":" : "", port);
}
