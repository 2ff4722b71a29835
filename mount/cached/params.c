#include "mount/cached/params.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"

#define GIB (1ull << 30)

const struct param_row cached_param_rows[] = {
#define PARAM(kind, field, standard, least, most, text)  \
    {                                                    \
        .name = #field,                                  \
        .type = PARAM_##kind,                            \
        .offset = offsetof(struct cached_params, field), \
        .default_text = (standard),                      \
        .min_text = (least),                             \
        .max_text = (most),                              \
        .help = (text),                                  \
    },
#include "mount/cached/params.def"
#undef PARAM
    {.name = NULL},
};

static int need(const char *name, const char *value, struct error *err)
{
    return value[0] != '\0' ? 0 : error_set(err, E_INVALID, "--%s is missing", name);
}

static int name_host(struct cached_params *p, struct error *err)
{
    char host[HOST_NAME_MAX + 1];
    if (gethostname(host, sizeof host) != 0)
        return error_set(err, E_INVALID, "the host has no name: give --id");
    host[sizeof host - 1] = '\0';
    free(p->id);
    p->id = xstrdup(host);
    return 0;
}

int cached_params_check(struct cached_params *p, struct error *err)
{
    int rc;
    if ((rc = need("group", p->group, err)) != 0 ||
        (rc = need("cache-dir", p->cache_dir, err)) != 0)
        return rc;
    if (p->weight == 0)
        p->weight = p->cache_size < GIB ? 1 : p->cache_size / GIB;
    if (p->weight > UINT32_MAX)
        p->weight = UINT32_MAX;
    return p->id[0] == '\0' ? name_host(p, err) : 0;
}
