/* Looking at a plog, and merging it.  Pure: the world is a plog_store.
 *
 * While a plog has any record, the list of its segments is the truth; without one, its head is.
 * A reader therefore lists the records, then the segments if there is any, then reads the head.
 * A merge lists the records, then the segments; it stores a merged index of these and of what the
 * head covers, then the head under If-Match, and then removes the records that it listed, each in
 * the version that it saw before it listed the segments.  So a record that a session has made or
 * refreshed in between stays, and with it what the session has stored.
 *
 * A session is over when its record `.c` exists, or when its record keeps one version for the
 * lease, by the clock of the one who looks: no two clocks are compared.
 *
 * Each merged index has a name of its own.  One of a merge that lost, or that a crash ended, is
 * removed by the next merge. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plog/head.h"
#include "plog/map.h"
#include "plog/store.h"

enum { PLOG_MERGED_MAX = 1 << 30 }; /* bytes of a merged index that every client reads */
/* Bytes of a merged index that is stored: this store reads it, and every client does. */
size_t plog_merged_max(const struct plog_store *st);

struct plog_look {
    struct plog_head head;
    char etag[PLOG_ETAG_MAX]; /* of the head */
    struct plog_map *map;
    size_t records; /* sessions that are open, or not merged yet */
};
void plog_look_done(struct plog_look *l);
#define _cleanup_plog_look_ _cleanup_(plog_look_done)

/* What was acknowledged before the call is in the map, or hidden by a later write.   The
 * caller frees *l.  E_NOT_FOUND: there is no head.  E_INVALID; E_CORRUPT: also if an object of the
 * plog is lost. */
int plog_look(const struct plog_store *st, const char *object, struct plog_look *l,
              struct error *err);

/* Since when records have their versions, as one observer saw them. */
struct plog_watch {
    size_t count;
    struct plog_watched {
        char name[PLOG_NAME_MAX], etag[PLOG_ETAG_MAX];
        uint64_t since_ms;
    } * items;
};
void plog_watch_done(struct plog_watch *w);
#define _cleanup_plog_watch_ _cleanup_(plog_watch_done)

enum plog_merge_result {
    PLOG_MERGED_NOW,
    PLOG_MERGED_NOTHING, /* there is no record */
    PLOG_MERGED_BUSY,    /* a session is open: its close merges */
};

/* now_ms: of a clock that only runs, also while the machine sleeps.  A session whose record the
 * watch has seen unchanged for lease_ms counts as dead.  E_NOT_FOUND, E_INVALID, E_CORRUPT as of
 * plog_look().  E_TOO_LARGE: the store could not read the
 * merged index; the records stay, so nothing is lost. */
int plog_merge(const struct plog_store *st, const char *object, struct plog_watch *watch,
               uint64_t now_ms, uint64_t lease_ms, enum plog_merge_result *result,
               struct error *err);
