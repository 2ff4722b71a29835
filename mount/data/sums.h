/* Bytes of a store, compared with the sums that the metadata have of them.
 *
 * A part of an entity is given on after it was compared.  One that differs is fetched once
 * more; if it differs again, the log names the object, and the result is EIO.  An entity without
 * sums is given on as it comes.  Any thread may call. */
#pragma once

#include "mount/data/buffer.h"

struct sums {
    struct data_store from;
    /* What differs is fetched from here the second time; without a fetch: from there, too. */
    struct data_store again;
    /* A part that `from` gave differs; NULL is fine.  The context is that of `from`. */
    void (*differs)(void *context, const struct entity *e, uint64_t offset);
};

/* As fetch of struct data_store; context is a struct sums. */
int sums_fetch(void *sums, const struct entity *e, uint64_t offset, uint64_t length,
               const struct dfc_sink *sink);
