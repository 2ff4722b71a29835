/* Any path against a table with every kind of pattern: what is found lies within the path and, put
 * together again by the pattern, is the path. */
#include "net/http/router.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void nothing(struct http_request *req)
{
    (void)req;
}

static const struct http_route routes[] = {
    {.name = "a",
     .pattern = "/v1/objects/{bucket}/{object...}",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = nothing},
    {.name = "b",
     .pattern = "/v1/objects/{bucket}",
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = nothing},
    {.name = "c", .pattern = "/v1/{x}/b/{y}", .nets = 1, .right = RIGHT_NONE, .begin = nothing},
    {.name = "d", .pattern = "/v1/a/{x}/{y}", .nets = 1, .right = RIGHT_NONE, .begin = nothing},
    {.name = "e", .pattern = "/v1/a/b/c", .nets = 1, .right = RIGHT_NONE, .begin = nothing},
    {.name = "f",
     .pattern = "/{all...}",
     .method = HTTP_PUT,
     .nets = 1,
     .right = RIGHT_NONE,
     .begin = nothing},
    {.name = NULL},
};

static void check_match(const struct router_match *m, const char *path, size_t len)
{
    const char *at = path;
    for (size_t i = 0; i < m->param_count; i++) {
        const struct router_param *p = &m->params[i];
        assert(p->len > 0 && p->text > at && p->text + p->len <= path + len);
        assert(p->text[-1] == '/');
        bool rest = p->name[p->name_len] == '.';
        assert(rest ? p->text + p->len == path + len : memchr(p->text, '/', p->len) == NULL);
        at = p->text + p->len;
        assert(at == path + len || *at == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct router *router;
    if (router == NULL) {
        static const struct http_route *const tables[] = {routes, NULL};
        int rc = router_new(tables, 1, &router, NULL);
        assert(rc == 0);
    }
    if (size == 0)
        return 0;
    const char *path = (const char *)data + 1;
    struct router_match m;
    int rc = router_find(router, data[0] % (HTTP_OTHER + 1), path, size - 1, &m);
    assert(rc == 0 || rc == E_ROUTE || rc == E_METHOD);
    assert((rc == E_METHOD) <= (m.allowed != 0));
    if (rc == 0)
        check_match(&m, path, size - 1);
    else
        assert(m.route == NULL);
    return 0;
}
