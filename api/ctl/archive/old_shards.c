#include "api/ctl/archive/old_shards.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 6, DIGITS_MAX = 19 }; /* of a number; 19 fit into 64 bits */

bool old_shards_number(const struct old_shards *o, const char *name, uint64_t *number)
{
    size_t stem = strlen(o->stem);
    if (strncmp(name, o->stem, stem) != 0)
        return false;
    const char *digits = name + stem;
    size_t count = 0;
    while (isdigit((unsigned char)digits[count]) != 0)
        count++;
    bool padded = count == DIGITS || (count > DIGITS && count <= DIGITS_MAX && digits[0] != '0');
    if (!padded || strcmp(digits + count, o->extension) != 0)
        return false;
    *number = strtoull(digits, NULL, 10);
    return true;
}

int old_shards_each(struct dfc_client *client, const struct old_shards *o,
                    bool (*each)(void *context, const char *name), void *context,
                    struct dfc_error *err)
{
    struct dfc_list *list;
    const struct dfc_entry *entry;
    const struct dfc_list_options options = {.prefix = o->stem};
    int rc = dfc_list_open(client, o->bucket, &options, &list, err);
    if (rc != DFC_OK)
        return rc;
    bool goes_on = true;
    while (goes_on && (rc = dfc_list_next(list, &entry, err)) > 0) {
        uint64_t number;
        if (old_shards_number(o, entry->name, &number) && number >= o->from)
            goes_on = each(context, entry->name);
    }
    dfc_list_close(list);
    return rc < 0 ? rc : 0;
}
