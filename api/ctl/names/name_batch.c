#include "api/ctl/names/name_batch.h"

#include <stdlib.h>

#include "api/ctl/interrupt.h"
#include "api/failure.h"
#include "common/cleanup.h"
#include "common/mem.h"

/* False where the name does not fit.  The first one always does: names have a bound. */
static bool add(struct name_batch *b, const char *name)
{
    json_t *value = json_string(name);
    size_t bytes = json_dumpb(value, NULL, 0, JSON_ENCODE_ANY) + 1; /* the comma */
    size_t count = json_array_size(b->names);
    if (count == NAME_BATCH_NAMES || (count > 0 && b->bytes + bytes > NAME_BATCH_BYTES)) {
        json_decref(value);
        return false;
    }
    json_array_append_new(b->names, value);
    b->bytes += bytes;
    return true;
}

static void begin(struct name_batch *b)
{
    _cleanup_free_ char *over = steal(b->over);
    json_decref(b->names);
    *b = (struct name_batch){.names = json_array()};
    if (over != NULL)
        add(b, over);
}

int name_batch_read(struct name_batch *b, name_batch_next *next, void *context,
                    struct dfc_error *err)
{
    int rc = 0;
    const char *name;
    begin(b);
    while (!interrupted() && (rc = next(context, &name, err)) > 0) {
        if (!add(b, name)) {
            b->over = xstrdup(name);
            break;
        }
    }
    return rc >= 0 && interrupted() ? failure_set(err, DFC_CANCELLED, E_CANCELLED, "interrupted")
                                    : rc;
}

void name_batch_done(struct name_batch *b)
{
    json_decref(b->names);
    free(b->over);
    *b = (struct name_batch)NAME_BATCH_INIT;
}
