#include "vdisc/client/collect.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/failure.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "vdisc/burn_rules.h"
#include "vdisc/client/lease.h"
#include "vdisc/client/references.h"
#include "vdisc/placing.h"

static bool is_lease(const char *key)
{
    return strncmp(key, BURN_LEASES, strlen(BURN_LEASES)) == 0;
}

bool collect_is_ours(const char *key)
{
    return strncmp(key, BURN_UNIQUE "/", strlen(BURN_UNIQUE "/")) == 0 ||
           strncmp(key, BURN_PACKS "/", strlen(BURN_PACKS "/")) == 0 ||
           burn_rules_is_header(key, NULL) || is_lease(key);
}

/* --- what is referred to ---------------------------------------------------------------------- */

static int take_image(struct dfc_client *c, const char *bucket, const char *key,
                      struct references *refs, struct dfc_error *err)
{
    _cleanup_(vdisc_closep)
    struct vdisc *v = NULL;
    int rc = vdisc_open_table(c, bucket, key, &v, err);
    if (rc == DFC_OK)
        rc = references_take(refs, v, err);
    if (rc == DFC_OK)
        return rc;
    const struct dfc_error was = *err;
    return failure_set(err, rc, error_from_name(was.code),
                       "image '%s/%s' cannot be read, so nothing is removed: %.500s", bucket, key,
                       was.message);
}

struct collecting {
    struct dfc_client *client;
    const struct collect_options *options;
    struct references refs;
    struct collect_result *result;
    struct lease lease;
};

static int take_bucket(struct collecting *g, const char *bucket, struct dfc_error *err)
{
    const struct dfc_list_options all = {.internal = true}; /* as an image's own name may be */
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(g->client, bucket, &all, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        rc = lease_renew(&g->lease, err);
        if (rc != DFC_OK)
            break;
        if (!burn_rules_is_image(entry->name))
            continue;
        g->result->images++;
        rc = take_image(g->client, bucket, entry->name, &g->refs, err);
        if (rc != DFC_OK)
            break;
    }
    dfc_list_close(list);
    return rc;
}

/* Images of buckets that the user does not see may need what would be removed. */
static int check_buckets(const json_t *doc, struct dfc_error *err)
{
    if (!json_is_array(json_object_get(doc, "buckets")))
        return failure_set(err, DFC_FAILED, E_JSON, "the list of buckets cannot be read");
    if (!json_is_true(json_object_get(doc, "hidden")))
        return DFC_OK;
    return failure_set(err, DFC_DENIED, E_ACCESS_DENIED,
                       "there are buckets that you do not see, whose images may need these "
                       "contents: nothing is removed; the right 'list' of all buckets is needed");
}

/* fn() for each bucket of the cluster. */
static int each_bucket(struct dfc_client *c,
                       int (*fn)(void *context, const char *bucket, struct dfc_error *err),
                       void *context, struct dfc_error *err)
{
    char *text = NULL;
    size_t i;
    json_t *row;
    int rc = dfc_bucket_list(c, &text, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    dfc_free(text);
    rc = check_buckets(doc, err);
    json_array_foreach(json_object_get(doc, "buckets"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name != NULL && rc == DFC_OK)
            rc = fn(context, name, err);
    }
    return rc;
}

static int take_one(void *context, const char *bucket, struct dfc_error *err)
{
    return take_bucket(context, bucket, err);
}

/* --- burns ------------------------------------------------------------------------------------ */

static int refuse_burns(void *context, const char *bucket, struct dfc_error *err)
{
    const struct collecting *g = context;
    return lease_refuse_burns(g->client, bucket, g->options->before_ms, err);
}

static bool has_ended(const char *state)
{
    return state != NULL && (strcmp(state, "finished") == 0 || strcmp(state, "failed") == 0 ||
                             strcmp(state, "aborted") == 0);
}

/* Jobs have no lease: they are known to the cluster. */
static int refuse_jobs(struct dfc_client *c, struct dfc_error *err)
{
    char *text = NULL;
    size_t i;
    json_t *job;
    int rc = dfc_job_list(c, "burn", NULL, &text, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    dfc_free(text);
    if (!json_is_array(json_object_get(doc, "jobs")))
        return failure_set(err, DFC_FAILED, E_JSON, "the list of jobs cannot be read");
    json_array_foreach(json_object_get(doc, "jobs"), i, job)
    {
        const char *id = json_string_value(json_object_get(job, "id"));
        if (has_ended(json_string_value(json_object_get(job, "state"))))
            continue;
        return failure_set(err, DFC_CONFLICT, E_OBJECT_RESERVED,
                           "job '%s' burns an image: repeat when it has ended",
                           id != NULL ? id : "");
    }
    return DFC_OK;
}

static int refuse_all_burns(struct collecting *g, struct dfc_error *err)
{
    int rc = refuse_jobs(g->client, err);
    return rc == DFC_OK ? each_bucket(g->client, refuse_burns, g, err) : rc;
}

/* --- what is not ------------------------------------------------------------------------------ */

static int judge(struct collecting *g, const struct dfc_entry *e, struct dfc_error *err)
{
    const struct collect_options *o = g->options;
    const bool is_own = g->lease.key != NULL && strcmp(e->name, g->lease.key) == 0;
    if (is_own || !collect_is_ours(e->name) || references_have(&g->refs, o->bucket, e->name))
        return DFC_OK;
    if (e->modified_ms >= o->before_ms) {
        g->result->younger += !is_lease(e->name);
        return DFC_OK;
    }
    int rc = o->dry_run ? DFC_OK : dfc_delete(g->client, o->bucket, e->name, err);
    if (rc != DFC_OK && rc != DFC_NOT_FOUND)
        return rc;
    g->result->objects++;
    g->result->bytes += e->size;
    return DFC_OK;
}

static int remove_all(struct collecting *g, struct dfc_error *err)
{
    const struct dfc_list_options all = {.internal = true};
    const struct dfc_entry *entry;
    struct dfc_list *list = NULL;
    int rc = dfc_list_open(g->client, g->options->bucket, &all, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        rc = lease_renew(&g->lease, err);
        if (rc == DFC_OK)
            rc = judge(g, entry, err);
        if (rc != DFC_OK)
            break;
    }
    dfc_list_close(list);
    return rc;
}

/* The lease comes first, then the question for burns: a burn does it in the same order. */
int collect(struct dfc_client *c, const struct collect_options *o, struct collect_result *r,
            struct dfc_error *err)
{
    struct collecting g = {.client = c, .options = o, .result = r};
    *r = (struct collect_result){0};
    int rc = o->dry_run ? DFC_OK : lease_take(&g.lease, c, o->bucket, NULL, err);
    if (rc == DFC_OK && !o->dry_run)
        rc = refuse_all_burns(&g, err);
    if (rc == DFC_OK)
        rc = each_bucket(c, take_one, &g, err);
    if (rc == DFC_OK) {
        references_unite(&g.refs);
        rc = remove_all(&g, err);
    }
    references_done(&g.refs);
    lease_end(&g.lease);
    return rc;
}
