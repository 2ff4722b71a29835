#include "vdisc/client/collect.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/failure.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "vdisc/client/burn.h"
#include "vdisc/client/references.h"

#define SUFFIX ".vdsc"

static bool ends_with(const char *text, const char *suffix)
{
    const size_t len = strlen(text), n = strlen(suffix);
    return len > n && strcmp(text + len - n, suffix) == 0;
}

bool collect_is_ours(const char *key)
{
    return strncmp(key, BURN_UNIQUE "/", strlen(BURN_UNIQUE "/")) == 0 ||
           strncmp(key, BURN_PACKS "/", strlen(BURN_PACKS "/")) == 0 ||
           burn_rules_is_header(key, NULL);
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

static int take_bucket(struct dfc_client *c, const char *bucket, struct references *refs,
                       struct collect_result *r, struct dfc_error *err)
{
    const struct dfc_list_options all = {.internal = true}; /* as an image's own name may be */
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(c, bucket, &all, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        if (!ends_with(entry->name, SUFFIX))
            continue;
        r->images++;
        rc = take_image(c, bucket, entry->name, refs, err);
        if (rc != DFC_OK)
            break;
    }
    dfc_list_close(list);
    return rc;
}

static int take_all(struct dfc_client *c, struct references *refs, struct collect_result *r,
                    struct dfc_error *err)
{
    char *text = NULL;
    size_t i;
    json_t *row;
    int rc = dfc_bucket_list(c, &text, err);
    if (rc != DFC_OK)
        return rc;
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    dfc_free(text);
    json_array_foreach(json_object_get(doc, "buckets"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name != NULL && rc == DFC_OK)
            rc = take_bucket(c, name, refs, r, err);
    }
    return rc;
}

/* --- what is not ------------------------------------------------------------------------------ */

static int judge(struct dfc_client *c, const struct collect_options *o, const struct dfc_entry *e,
                 const struct references *refs, struct collect_result *r, struct dfc_error *err)
{
    if (!collect_is_ours(e->name) || references_have(refs, o->bucket, e->name))
        return DFC_OK;
    if (e->modified_ms >= o->before_ms) {
        r->younger++;
        return DFC_OK;
    }
    int rc = o->dry_run ? DFC_OK : dfc_delete(c, o->bucket, e->name, err);
    if (rc != DFC_OK && rc != DFC_NOT_FOUND)
        return rc;
    r->objects++;
    r->bytes += e->size;
    return DFC_OK;
}

int collect(struct dfc_client *c, const struct collect_options *o, struct collect_result *r,
            struct dfc_error *err)
{
    struct references refs = {0};
    const struct dfc_list_options all = {.internal = true};
    const struct dfc_entry *entry;
    struct dfc_list *list = NULL;
    *r = (struct collect_result){0};
    int rc = take_all(c, &refs, r, err);
    if (rc == DFC_OK) {
        references_unite(&refs);
        rc = dfc_list_open(c, o->bucket, &all, &list, err);
    }
    if (rc == DFC_OK) {
        while ((rc = dfc_list_next(list, &entry, err)) > 0) {
            rc = judge(c, o, entry, &refs, r, err);
            if (rc != DFC_OK)
                break;
        }
        dfc_list_close(list);
    }
    references_done(&refs);
    return rc;
}
