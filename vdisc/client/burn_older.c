/* Older images: what a burn begins with, and what it need not read or send again. */
#include <string.h>

#include "api/failure.h"
#include "vdisc/client/burn_parts.h"

struct loading {
    const struct vdisc *image;
    struct dfc_error failure; /* of an address */
};

static int object(void *ctx, uint32_t extent, char **bucket, char **key, struct error *err)
{
    struct loading *l = ctx;
    if (vdisc_object(l->image, extent, bucket, key, &l->failure) == DFC_OK)
        return 0;
    return error_set(err, E_INVALID, "%s", l->failure.message);
}

static int load(struct burn *b, const char *bucket, const char *key, struct vdisc **image,
                struct older **older, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    struct loading l = {.image = NULL};
    int rc = vdisc_open(b->client, bucket, key, image, err);
    if (rc != DFC_OK)
        return rc;
    l.image = *image;
    const struct older_image of = {.table = vdisc_table_of(*image),
                                   .reader = vdisc_reader(*image),
                                   .object = object,
                                   .ctx = &l,
                                   .entries_max = b->options->plan.entries_max};
    if (older_load(&of, older, &e) == 0)
        return DFC_OK;
    if (l.failure.result == DFC_OK)
        return vdisc_failure(*image, &e, err);
    *err = l.failure;
    return l.failure.result;
}

int burn_from(struct burn *b, const char *bucket, const char *key, struct dfc_error *err)
{
    int rc = load(b, bucket, key, &b->from_image, &b->from, err);
    if (rc == DFC_OK)
        older_add(b->from, b->plan);
    return rc;
}

void burn_remove(struct burn *b, const char *path)
{
    plan_remove(b->plan, path);
}

int burn_base(struct burn *b, const char *bucket, const char *key, struct dfc_error *err)
{
    return load(b, bucket, key, &b->base_image, &b->base, err);
}
