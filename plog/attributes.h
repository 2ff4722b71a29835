/* What a file has besides its bytes: fields of the head, changed under If-Match.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plog/session.h"
#include "plog/store.h"

struct plog_change {
    bool sets_mode, sets_uid, sets_gid, sets_mtime;
    uint64_t mode, uid, gid, mtime_ms;
};

/* E_NOT_FOUND, E_INVALID: no plog. */
int plog_attributes(const struct plog_store *st, const char *object, const struct plog_change *c,
                    struct error *err);
/* An object of this name that is no plog becomes an empty plog.  Nothing happens where there is no
 * object, or a plog. */
int plog_replace_object(const struct plog_store *st, const char *object,
                        const struct plog_open *how, struct error *err);
