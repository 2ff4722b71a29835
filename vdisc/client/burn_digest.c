/* Checksums that no row knows: the targets compute them. */
#include <stdlib.h>
#include <string.h>

#include "api/failure.h"
#include "common/mem.h"
#include "vdisc/client/burn_parts.h"
#include "vdisc/client/each.h"

DEFINE_CLEANUP(struct dfc_object_info, dfc_object_info_free);

/* A target reads at least so many bytes in a millisecond; other objects may be before this one. */
#define PACE 1024
#define PATIENCE_MS (10u * 60 * 1000)
#define PATIENCE_MAX_MS (24u * 3600 * 1000)

struct learning {
    struct burn *b;
    struct plan_object *objects;
    const uint32_t *order; /* in which they are asked for */
    uint32_t patience_ms;
};

static uint32_t patience_for(const struct plan_object *objects, uint32_t count)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < count; i++)
        largest = objects[i].size > largest ? objects[i].size : largest;
    const uint64_t ms = PATIENCE_MS + largest / PACE;
    return ms < PATIENCE_MAX_MS ? (uint32_t)ms : PATIENCE_MAX_MS;
}

static int ask(const struct learning *l, const struct plan_object *o, enum checksum_type type,
               const char *etag, struct dfc_object_info **info, struct dfc_error *err)
{
    const struct dfc_digest_options options = {.if_match = etag, .idle_timeout_ms = l->patience_ms};
    int rc = dfc_digest(l->b->client, o->bucket, o->key, checksum_name(type), &options, info, err);
    if (rc == DFC_NOT_FOUND)
        return burn_missing(o, err);
    return rc == DFC_PRECONDITION ? burn_changed(o, BURN_REPLACED, err) : rc;
}

static int take_checksum(const struct plan_object *o, const struct dfc_object_info *info,
                         enum checksum_type type, struct checksum_value *out, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    if (strcmp(info->checksum_type, checksum_name(type)) == 0 &&
        checksum_parse(type, info->checksum, out, &e) == 0)
        return DFC_OK;
    return failure_set(err, DFC_FAILED, E_NET,
                       "object '%s/%s': the target's reply has no %s checksum", o->bucket, o->key,
                       checksum_name(type));
}

/* The list's checksum is of another type: is it right? */
static int compare_listed(const struct learning *l, const struct plan_object *o,
                          struct dfc_error *err)
{
    struct checksum_value sum;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    if (o->checksum.type == CHECKSUM_NONE)
        return DFC_OK;
    int rc = ask(l, o, o->checksum.type, o->etag, &info, err);
    if (rc == DFC_OK)
        rc = take_checksum(o, info, o->checksum.type, &sum, err);
    if (rc == DFC_OK && !checksum_equal(&sum, &o->checksum))
        rc = burn_changed(o, BURN_OTHER_CHECKSUM, err);
    return rc;
}

static int learn(void *context, uint32_t number, struct dfc_error *err)
{
    const struct learning *l = context;
    struct plan_object *o = &l->objects[l->order[number]];
    struct checksum_value sum;
    _cleanup_(dfc_object_info_freep)
    struct dfc_object_info *info = NULL;
    int rc = ask(l, o, CHECKSUM_SHA256, o->wanted_etag, &info, err);
    if (rc == DFC_OK)
        rc = burn_check_size(o, info, err);
    if (rc == DFC_OK)
        rc = take_checksum(o, info, CHECKSUM_SHA256, &sum, err);
    if (rc != DFC_OK)
        return rc;
    o->etag = xstrdup(info->etag);
    rc = compare_listed(l, o, err);
    o->checksum = sum;
    return rc;
}

int burn_digest(struct burn *b, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct learning l = {.b = b};
    uint32_t count = 0;
    if (plan_unknown(b->plan, &b->options->plan, &l.objects, &count, &e) != 0)
        return failure_common(err, DFC_INVALID, &e);
    b->learnt = l.objects;
    b->learnt_count = count;
    l.patience_ms = patience_for(l.objects, count);
    _cleanup_free_ uint32_t *order = burn_rules_order(l.objects, count);
    l.order = order;
    return each_number(count, b->options->threads, learn, &l, err);
}
