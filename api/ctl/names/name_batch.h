/* The names that one job gets as its list: as many as one job document may hold. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/dfc.h"

enum {
    NAME_BATCH_NAMES = 10000,
    NAME_BATCH_BYTES = 256 << 10 /* of JSON; a document of a job has at most 768 KiB in etcd */
};

struct name_batch {
    json_t *names; /* an array of strings */
    size_t bytes;  /* of them as JSON */
    char *over;    /* the name that did not fit, the first one of the next batch; or NULL */
};

#define NAME_BATCH_INIT \
    {                   \
        0               \
    }

/* 1 and a name, 0 at the end, or an enum dfc_result below 0. */
typedef int name_batch_next(void *context, const char **name, struct dfc_error *err);

/* The next batch.  1 where more names follow, 0 where none does, or an enum dfc_result below 0:
 * DFC_CANCELLED after SIGINT, also between two names. */
int name_batch_read(struct name_batch *b, name_batch_next *next, void *context,
                    struct dfc_error *err);
void name_batch_done(struct name_batch *b);
