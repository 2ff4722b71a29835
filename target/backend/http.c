/* Any HTTP server: the object's URL is the base and its name.  Nothing is signed; redirects are
 * followed, as those of public data sets want it. */
#include "target/backend/backend.h"

#include <string.h>

/* A server may resolve these, and the name would leave the base. */
static bool has_dot_segment(const char *name)
{
    for (const char *at = name;;) {
        size_t len = strcspn(at, "/");
        if ((len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return true;
        if (at[len] == '\0')
            return false;
        at += len + 1;
    }
}

static int http_request(const struct backend_spec *spec, const struct backend_ask *ask,
                        struct arena *a, struct backend_request *out, struct error *err)
{
    if (ask->url == NULL && has_dot_segment(ask->name))
        return error_set(err, E_OBJECT_NOT_FOUND,
                         "object '%s' does not exist: an HTTP backend has no names with the "
                         "segments . and ..",
                         ask->name);
    _cleanup_buf_ struct buf url = BUF_INIT;
    if (ask->url != NULL) {
        buf_puts(&url, ask->url);
    } else {
        buf_printf(&url, "%s/", spec->endpoint);
        buf_put_url_escaped(&url, ask->name, strlen(ask->name), "/");
    }
    const char **headers = arena_alloc(a, (2 + BACKEND_ASK_LINES) * sizeof *headers);
    headers[0] = "accept-encoding: identity";
    backend_ask_lines(ask, a, headers + 1);
    *out = (struct backend_request){.url = arena_strdup(a, buf_str(&url)), .headers = headers};
    return 0;
}

/* Entity tags are whatever the server likes; Content-MD5 is of the body, that is, of the whole
 * object where the status is 200. */
static void http_sum(const struct http_head *head, struct checksum_value *out)
{
    const char *md5 = head->header(head, "Content-MD5");
    if (md5 != NULL && head->status == 200)
        checksum_parse_base64(CHECKSUM_MD5, md5, out);
}

const struct backend_ops backend_http = {
    .provider = "http",
    .request = http_request,
    .sum = http_sum,
    .redirects = true,
};
