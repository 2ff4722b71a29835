#include "gateway/gateway.h"

#include <string.h>

#include "common/mem.h"
#include "common/param.h"
#include "gateway/gateway_parts.h"
#include "gateway/signing_keys.h"

enum { REGION_MAX = 63 };

/* --- the beginning ---------------------------------------------------------------------------- */

static bool is_name(const char *text, size_t most)
{
    size_t len = strlen(text);
    return len > 0 && len <= most && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == len;
}

static int split_domains(struct gateway *g, struct error *err)
{
    char *rest = g->domains[0] != '\0' ? g->domains : NULL;
    for (char *one; (one = strsep(&rest, ",")) != NULL;) {
        if (!is_name(one, 255) || g->domain_count == GATEWAY_DOMAINS_MAX)
            return error_set(err, E_INVALID,
                             "--s3-domains: '%.64s' is no name in small letters, or one too many "
                             "(%d at most)",
                             one, GATEWAY_DOMAINS_MAX);
        g->domain[g->domain_count++] = one;
    }
    return 0;
}

int gateway_new(const struct gateway_config *config, struct gateway **out, struct error *err)
{
    *out = NULL;
    if (!is_name(config->region, REGION_MAX))
        return error_set(err, E_INVALID, "--s3-region: '%.64s' is no region in small letters",
                         config->region);
    struct gateway *g = xcalloc(1, sizeof *g);
    g->config = *config;
    g->config.region = g->region = xstrdup(config->region);
    g->config.domains = g->domains = xstrdup(config->domains);
    g->keys = signing_keys_new();
    int code = split_domains(g, err);
    if (code != 0)
        gateway_free(g);
    else
        *out = g;
    return code;
}

void gateway_free(struct gateway *g)
{
    if (g == NULL)
        return;
    signing_keys_free(g->keys);
    free(g->domains);
    free(g->region);
    free(g);
}

const char *gateway_region(const struct gateway *g)
{
    return g->region;
}

const struct gateway_config *gateway_config_of(const struct gateway *g)
{
    return &g->config;
}

bool gateway_enter_forward(struct gateway *g)
{
    if (atomic_fetch_add(&g->forwards, 1) < param_live(*g->config.forwards_max))
        return true;
    gateway_leave_forward(g);
    return false;
}

void gateway_leave_forward(struct gateway *g)
{
    atomic_fetch_sub(&g->forwards, 1);
}
