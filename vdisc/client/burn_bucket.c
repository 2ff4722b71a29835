/* The objects of a bucket become rows. */
#include <string.h>

#include "api/failure.h"
#include "vdisc/client/burn_parts.h"

#define HIDDEN ".dfc-" /* what burns and others store for themselves */

static bool is_hidden(const char *name, const char *prefix)
{
    return strncmp(name, HIDDEN, strlen(HIDDEN)) == 0 &&
           strncmp(prefix, HIDDEN, strlen(HIDDEN)) != 0;
}

static void set_checksum(const struct dfc_entry *entry, struct checksum_value *out)
{
    if (entry->checksum_type == NULL || entry->checksum == NULL ||
        strcmp(entry->checksum_type, checksum_name(CHECKSUM_SHA256)) != 0 ||
        checksum_parse(CHECKSUM_SHA256, entry->checksum, out, NULL) != 0)
        *out = (struct checksum_value){.type = CHECKSUM_NONE};
}

/* "a/" is a directory, as programs that know S3 write it. */
static void add(struct burn *b, const char *bucket, const char *prefix,
                const struct dfc_entry *entry)
{
    const char *path = entry->name + strlen(prefix);
    const size_t len = strlen(path);
    const bool is_directory = len > 0 && path[len - 1] == '/' && entry->size == 0;
    struct burn_row row = {
        .entry = {.path = path,
                  .kind = is_directory ? ISO_DIRECTORY : ISO_FILE,
                  .size = entry->size,
                  .mtime_s = is_directory ? ISO_NO_TIME : entry->modified_ms / 1000,
                  .mode = ISO_NO_MODE}};
    const struct plan_part part = {
        .bucket = bucket, .key = entry->name, .object_size = entry->size};
    if (len == 0)
        return;
    set_checksum(entry, &row.checksum);
    plan_add(b->plan, PLAN_NEW, &row, is_directory ? NULL : &part);
}

int burn_bucket(struct burn *b, const char *bucket, const char *prefix, struct dfc_error *err)
{
    const struct dfc_list_options options = {.prefix = prefix};
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(b->client, bucket, &options, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        if (!is_hidden(entry->name, prefix))
            add(b, bucket, prefix, entry);
    }
    dfc_list_close(list);
    return rc;
}
