/* dfc_login: a password is exchanged for a token. */
#include "api/dfc.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/client.h"
#include "api/failure.h"
#include "api/secret.h"
#include "common/jsonx.h"

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

/* "http://HOST:PORT": does what is sent there stay on this machine? */
static bool is_of_this_machine(const char *endpoint)
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

static int check_endpoints(const struct dfc_client *c, struct dfc_error *err)
{
    for (size_t i = 0; i < client_endpoint_count(c); i++) {
        const char *endpoint = client_endpoint_at(c, i);
        if (strncasecmp(endpoint, "https://", 8) != 0 && !is_of_this_machine(endpoint))
            return failure_set(
                err, DFC_INVALID, E_INVALID,
                "a password is not sent to '%s' in clear: use https://, or an access "
                "key",
                endpoint);
    }
    return DFC_OK;
}

int dfc_login(struct dfc_client *c, const char *user, const char *password, char **document,
              struct dfc_error *err)
{
    const int rc = check_endpoints(c, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:s}", "user", user, "password", password);
    if (doc == NULL)
        return failure_set(err, DFC_INVALID, E_INVALID, "the user or the password is not UTF-8");
    _cleanup_(secret_freep)
    char *body = json_text(doc);
    const struct call_small what = {.method = "POST", .body = body};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    buf_puts(&path, "/v1/auth/token");
    return call_small(c, &what, &path, document, err);
}
