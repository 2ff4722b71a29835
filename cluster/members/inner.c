#include "cluster/members/inner.h"

#include <stddef.h>
#include <string.h>

#include "cluster/documents/state.h"
#include "common/address.h"
#include "common/parse.h"

/* "http://host:port": the port, 0 where the URL has none. */
static unsigned port_of(const char *host, size_t *host_len)
{
    uint64_t port;
    const char *colon = strrchr(host, ':');
    if (colon == NULL || strchr(colon, ']') != NULL || parse_u64(colon + 1, &port, NULL) != 0 ||
        port > UINT16_MAX)
        return 0;
    *host_len = (size_t)(colon - host);
    return (unsigned)port;
}

static bool url_is_at(const char *url, const struct sockaddr *address)
{
    const char *scheme = url != NULL ? strstr(url, "://") : NULL;
    if (scheme == NULL)
        return false;
    const char *host = scheme + 3;
    size_t len = 0;
    unsigned port = port_of(host, &len);
    if (port == 0 || port != address_port(address))
        return false;
    return address_is_inner(address) || !address_is_literal(host, len) ||
           address_is_host(address, host, len);
}

bool inner_has(const struct smap *m, const struct sockaddr *address)
{
    for (size_t i = 0; i < m->count; i++) {
        if (url_is_at(m->nodes[i].control_url, address) || url_is_at(m->nodes[i].data_url, address))
            return true;
    }
    return false;
}
