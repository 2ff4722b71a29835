#include "api/ctl/key_file.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* The host of "http://host:port", "[::1]:port", "host:port". */
static const char *host_of(const char *one, size_t *len)
{
    const char *scheme = strstr(one, "://");
    if (scheme != NULL && scheme < one + *len) {
        *len -= (size_t)(scheme + 3 - one);
        one = scheme + 3;
    }
    if (*one == '[') {
        const char *end = memchr(one, ']', *len);
        *len = end != NULL ? (size_t)(end - one) - 1 : 0;
        return one + 1;
    }
    size_t host = strcspn(one, ":/");
    *len = host < *len ? host : *len;
    return one;
}

static bool is_four_numbers(const char *host, size_t len)
{
    size_t dots = 0;
    for (size_t i = 0; i < len; i++) {
        if (host[i] != '.' && (host[i] < '0' || host[i] > '9'))
            return false;
        dots += host[i] == '.';
    }
    return dots == 3;
}

/* A name that begins with "127." may be anybody's. */
static bool is_loopback(const char *one, size_t len)
{
    const char *host = host_of(one, &len);
    return (len == 9 && strncasecmp(host, "localhost", 9) == 0) ||
           (len == 3 && memcmp(host, "::1", 3) == 0) ||
           (len > 4 && memcmp(host, "127.", 4) == 0 && is_four_numbers(host, len));
}

bool key_file_all_loopback(const char *endpoints)
{
    if (endpoints == NULL || endpoints[0] == '\0')
        return true;
    while (endpoints != NULL) {
        const char *comma = strchr(endpoints, ',');
        endpoints += strspn(endpoints, " \t");
        if (!is_loopback(endpoints,
                         comma != NULL ? (size_t)(comma - endpoints) : strlen(endpoints)))
            return false;
        endpoints = comma != NULL ? comma + 1 : NULL;
    }
    return true;
}

const char *key_file_choose(const char *flag, const char *environment, const char *endpoints,
                            bool local_exists)
{
    if (flag != NULL)
        return flag;
    if (environment != NULL && environment[0] != '\0')
        return environment;
    return local_exists && key_file_all_loopback(endpoints) ? KEY_FILE_LOCAL : "";
}
