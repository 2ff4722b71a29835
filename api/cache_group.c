#include "api/cache_group.h"

#include "api/call.h"
#include "common/mem.h"

static void put_name(struct buf *path, const char *before, const char *name)
{
    buf_puts(path, before);
    buf_put_url_escaped(path, name, strlen(name), "");
}

int cache_group_show(struct dfc_client *c, const char *group, char **document,
                     struct dfc_error *err)
{
    const struct call_small what = {.method = "GET", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    put_name(&path, "/v1/cache-groups/", group);
    return call_small(c, &what, &path, document, err);
}

int cache_group_report(struct dfc_client *c, const char *group, const char *member,
                       const char *report, char **document, struct dfc_error *err)
{
    const struct call_small what = {.method = "PUT", .body = report, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    put_name(&path, "/v1/cache-groups/", group);
    put_name(&path, "/members/", member);
    return call_small(c, &what, &path, document, err);
}
