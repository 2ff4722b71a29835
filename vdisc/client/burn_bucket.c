/* The objects of a bucket become rows. */
#include <string.h>

#include "common/internal_name.h"
#include "vdisc/client/burn_parts.h"

int burn_bucket(struct burn *b, const char *bucket, const char *prefix, struct dfc_error *err)
{
    const struct dfc_list_options options = {.prefix = prefix};
    const bool is_own_bucket = strcmp(bucket, b->options->bucket) == 0;
    const struct dfc_entry *entry;
    struct dfc_list *list;
    int rc = dfc_list_open(b->client, bucket, &options, &list, err);
    if (rc != DFC_OK)
        return rc;
    while ((rc = dfc_list_next(list, &entry, err)) > 0) {
        const struct burn_found found = {.size = entry->size,
                                         .modified_ms = entry->modified_ms,
                                         .checksum_type = entry->checksum_type,
                                         .checksum = entry->checksum};
        /* Of an earlier burn that ended before its table. */
        if (is_own_bucket && burn_rules_is_header(entry->name, b->options->key))
            continue;
        /* A proxy of an earlier release lists internal names. */
        if (!name_is_internal(entry->name) || name_is_internal(prefix))
            burn_rules_add(b->plan, bucket, prefix, entry->name, &found);
    }
    dfc_list_close(list);
    return rc;
}
