/* Older images: what a burn begins with, and what it need not read or send again. */
#include <string.h>

#include "vdisc/client/burn_parts.h"

static int load(struct burn *b, const char *bucket, const char *key, struct vdisc **image,
                struct older **older, struct dfc_error *err)
{
    int rc = vdisc_open(b->client, bucket, key, image, err);
    return rc == DFC_OK ? older_load(*image, older, err) : rc;
}

/* Directories and links with the date of the older image get the date of the new one, as they would
 * in a burn of all of it. */
int burn_from(struct burn *b, const char *bucket, const char *key, struct dfc_error *err)
{
    struct iso_found root;
    int rc = load(b, bucket, key, &b->from_image, &b->from, err);
    if (rc != DFC_OK)
        return rc;
    iso_reader_root(vdisc_reader(b->from_image), &root);
    const struct burn_row top = {.entry = {.path = "/",
                                           .kind = ISO_DIRECTORY,
                                           .mtime_s = ISO_NO_TIME,
                                           .mode = root.mode,
                                           .uid = root.uid,
                                           .gid = root.gid}};
    plan_add(b->plan, PLAN_OLDER, &top, NULL);
    for (size_t i = 0; i < older_count(b->from); i++) {
        const struct older_entry *e = older_entry(b->from, i);
        struct burn_row row = e->row;
        if (row.entry.kind != ISO_FILE && row.entry.mtime_s == root.mtime_s)
            row.entry.mtime_s = ISO_NO_TIME;
        plan_add(b->plan, PLAN_OLDER, &row, row.entry.kind == ISO_FILE ? &e->part : NULL);
    }
    return DFC_OK;
}

void burn_remove(struct burn *b, const char *path)
{
    plan_remove(b->plan, path);
}

int burn_base(struct burn *b, const char *bucket, const char *key, struct dfc_error *err)
{
    return load(b, bucket, key, &b->base_image, &b->base, err);
}
