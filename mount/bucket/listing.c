/* The listings of tree.h. */
#include "mount/bucket/tree.h"

#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/bucket/entries.h"
#include "mount/bucket/errors.h"

struct listing {
    struct dfc_list *list;
    char *prefix;
    struct entries entries;
    bool ended;
};

int listing_open(struct tree *t, const char *prefix, struct listing **out)
{
    struct dfc_error err;
    struct dfc_list *list;
    const struct dfc_list_options options = {.prefix = prefix, .delimiter = "/"};
    if (dfc_list_open(t->client, t->bucket, &options, &list, &err) != DFC_OK)
        return errors_told(prefix, &err);
    struct listing *l = xcalloc(1, sizeof *l);
    l->list = list;
    l->prefix = xstrdup(prefix);
    *out = l;
    return 0;
}

int listing_next(struct listing *l, struct entry *out)
{
    while (!entries_pop(&l->entries, out)) {
        struct dfc_error err;
        const struct dfc_entry *e;
        if (l->ended)
            return 0;
        int rc = dfc_list_next(l->list, &e, &err);
        if (rc < 0)
            return errors_told(l->prefix, &err);
        if (dfc_list_incomplete(l->list)) {
            log_warn("list is incomplete", lstr("directory", l->prefix));
            return -EIO;
        }
        if (rc > 0) {
            entries_push(&l->entries, l->prefix, e);
        } else {
            entries_end(&l->entries);
            l->ended = true;
        }
    }
    return 1;
}

void listing_close(struct listing *l)
{
    if (l == NULL)
        return;
    if (l->entries.hidden > 0)
        log_info("names that cannot be shown", lstr("directory", l->prefix),
                 lu64("count", l->entries.hidden));
    dfc_list_close(l->list);
    entries_done(&l->entries);
    free(l->prefix);
    free(l);
}
