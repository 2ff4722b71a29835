#include "proxy/http/hop.h"

#include <string.h>
#include <strings.h>

#include "net/http/handler.h"

static const char *const of_a_connection[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    NULL,
};
/* The client library makes the first four, or must not.  Where the client is from, and who, has
 * been looked at here: to the next node this one is the client. */
static const char *const of_a_request[] = {
    "Host",      "Content-Length", "Expect",         "X-Request-Id",    "Dfc-Redirect", "Dfc-Auth",
    "Dfc-State", "Origin",         "Sec-Fetch-Site", HTTP_ACTOR_HEADER, NULL,
};
static const char *const of_a_reply[] = {
    "Content-Length", "Date", "Server", "X-Request-Id", "Dfc-Node", "WWW-Authenticate", NULL,
};

/* It says who asks, and goes to the node that answers: no client takes it off on the way. */
static bool is_of_the_caller(const char *name)
{
    return strcasecmp(name, "Authorization") == 0;
}

static bool is_in(const char *name, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcasecmp(name, *list) == 0)
            return true;
    }
    return false;
}

/* Is it one of the words of "close, X-Custom"? */
static bool is_named(const char *name, const char *connection)
{
    static const char separators[] = ", \t";
    size_t name_len = strlen(name);
    while (connection != NULL && *connection != '\0') {
        size_t len = strcspn(connection, separators);
        if (len == name_len && strncasecmp(connection, name, len) == 0)
            return true;
        connection += len;
        connection += strspn(connection, separators);
    }
    return false;
}

bool hop_request_header_passes(const char *name, const char *connection)
{
    return !is_in(name, of_a_connection) && !is_in(name, of_a_request) &&
           (is_of_the_caller(name) || !is_named(name, connection));
}

bool hop_reply_header_passes(const char *name, const char *connection)
{
    return !is_in(name, of_a_connection) && !is_in(name, of_a_reply) && !is_named(name, connection);
}
