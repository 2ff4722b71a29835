#include "target/slices/find.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "target/format/ec_manifest.h"
#include "target/node/target.h"

char *ec_slice_url(const struct node *n, uint64_t bucket_id, uint64_t tag, unsigned index)
{
    char name[EC_SLICE_NAME_MAX];
    return xprintf("%s/v1/slices/%" PRIu64 "/%s?", n->data_url, bucket_id,
                   ec_slice_name(tag, index, name));
}

char *ec_slice_put_url(const struct node *n, uint64_t bucket_id, uint64_t tag, unsigned index,
                       const char *object, bool sync)
{
    struct buf url = BUF_INIT;
    _cleanup_free_ char *slice = ec_slice_url(n, bucket_id, tag, index);
    buf_printf(&url, "%ssync=%s&object=", slice, sync ? "true" : "false");
    buf_put_url_escaped(&url, object, strlen(object), "");
    return buf_steal(&url);
}

int ec_slice_delete(struct target *t, const struct cluster_state *s, const struct node *n,
                    uint64_t bucket_id, uint64_t tag, unsigned index, struct error *err)
{
    _cleanup_free_ char *slice = ec_slice_url(n, bucket_id, tag, index);
    _cleanup_free_ char *url = xprintf("%splaced=%" PRIu64, slice, s->smap.placed);
    return http_json_wait(t->data_client, n->id, HTTP_DELETE, url, NULL, t->params.call_timeout,
                          NULL, err);
}

struct finding {
    struct ec_found *found;
    char *url;
    sem_t *answered;
};

static ec_mask mask_of(json_t *list)
{
    ec_mask mask = 0;
    json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (json_is_integer(item) && json_integer_value(item) >= 0 &&
            json_integer_value(item) < EC_SLICES_MAX)
            mask |= (ec_mask)1 << json_integer_value(item);
    }
    return mask;
}

static int take_slices(struct http_result *r, const char *url, struct ec_found *out)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = http_result_error(r, url, NULL);
    if (code == 0)
        code = json_parse(buf_str(&r->body), r->body.len, &doc, NULL);
    const json_t *list = json_object_get(doc, "slices");
    out->has = mask_of(json_object_get(doc, "slices"));
    out->left = mask_of(json_object_get(doc, "left"));
    return code != 0 || json_is_array(list) ? code : E_JSON;
}

static void answered(void *arg, struct http_result *r)
{
    struct finding *f = arg;
    f->found->answered = take_slices(r, f->url, f->found) == 0;
    sem_post(f->answered);
}

static size_t all_targets(const struct cluster_state *s, uint64_t bucket_id, const char *name,
                          const struct node **out)
{
    size_t count = smap_owners(&s->smap, bucket_id, name, s->smap.count, out);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET && !node_owns(n))
            out[count++] = n;
    }
    return count;
}

static char *find_url(const struct cluster_state *s, const struct node *n,
                      const struct ec_find *what)
{
    struct buf url = BUF_INIT;
    buf_printf(&url, "%s/v1/slices/%" PRIu64 "?tag=%016" PRIx64 "&slices=%u", n->data_url,
               what->bucket_id, what->tag, what->slices);
    if (what->removes)
        buf_printf(&url, "&dfcv=%" PRIu64 ".%" PRIu64, s->term, s->version);
    return buf_steal(&url);
}

size_t ec_slices_find(struct target *t, const struct cluster_state *s, const struct ec_find *what,
                      struct ec_found **found)
{
    _cleanup_free_ const struct node **nodes = xcalloc(s->smap.count + 1, sizeof *nodes);
    size_t count = all_targets(s, what->bucket_id, what->name, nodes), asked = 0;
    struct finding *findings = xcalloc(count + 1, sizeof *findings);
    sem_t sem;
    *found = xcalloc(count + 1, sizeof **found);
    sem_init(&sem, 0, 0);
    for (size_t i = 0; i < count; i++) {
        (*found)[i].node = nodes[i];
        findings[i] = (struct finding){.found = &(*found)[i], .answered = &sem};
        if (nodes[i]->state == NODE_UNREACHABLE)
            continue;
        findings[i].url = find_url(s, nodes[i], what);
        const struct http_call call = {.method = HTTP_GET,
                                       .url = findings[i].url,
                                       .node = nodes[i]->id,
                                       .total_timeout_ms = t->params.call_timeout};
        http_call_start(t->data_client, &call, answered, &findings[i]);
        asked++;
    }
    for (size_t i = 0; i < asked; i++)
        semaphore_wait(&sem);
    for (size_t i = 0; i < count; i++)
        free(findings[i].url);
    free(findings);
    sem_destroy(&sem);
    return count;
}
