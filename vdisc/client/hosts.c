#include "vdisc/client/hosts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/failure.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct hosts {
    char **names; /* "HOST:PORT" */
    size_t count;
};

static void add(struct hosts *h, const char *url)
{
    const char *scheme = url != NULL ? strstr(url, "://") : NULL;
    if (scheme == NULL)
        return;
    const char *host = scheme + 3;
    h->names = xrealloc(h->names, (h->count + 1) * sizeof *h->names);
    h->names[h->count++] = xstrndup(host, strcspn(host, "/"));
}

int hosts_load(struct dfc_client *c, struct hosts **hosts, struct dfc_error *err)
{
    char *text = NULL;
    struct error e = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int rc = dfc_cluster_show(c, NULL, &text, err);
    if (rc != DFC_OK)
        return rc;
    int parsed = json_parse(text, strlen(text), &doc, &e);
    dfc_free(text);
    if (parsed != 0)
        return failure_common(err, DFC_FAILED, &e);
    size_t i;
    json_t *node;
    struct hosts *h = xcalloc(1, sizeof *h);
    json_array_foreach(json_object_get(doc, "nodes"), i, node)
    {
        add(h, json_string_value(json_object_get(node, "public_url")));
    }
    add(h, dfc_client_endpoint(c)); /* it may be known by another name outside */
    *hosts = h;
    return DFC_OK;
}

bool hosts_have(const struct hosts *h, const char *host)
{
    for (size_t i = 0; i < h->count; i++) {
        if (strcasecmp(h->names[i], host) == 0)
            return true;
    }
    return false;
}

void hosts_free(struct hosts *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->count; i++)
        free(h->names[i]);
    free(h->names);
    free(h);
}
