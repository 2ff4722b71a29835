/* Names of the objects of a plog.  Pure.
 *
 * A plog is a logical file.  The object of the file's own name is its head (head.h), which has the
 * plog's id.  All other objects are in the container, the names below PLOG_ROOT<id>/:
 *
 *     s/<epoch>-<writer>-<n>-<end>-<bytes>[-t]    a segment (segment.h); -t: it has a cut
 *     o/<session>                                 the record of a session that is open
 *     o/<session>.c                               ... that is closed, and not merged yet
 *     m/<k>-<nonce>                               merged index number k (merge.h)
 *
 * Numbers are hexadecimal and of a fixed width: names sort as the numbers do.  A name says how far
 * the segment's writes reach and how many bytes it has, so that a list of names gives the size. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PLOG_ROOT ".dfc-plog/"
enum { PLOG_ID_CHARS = 32, PLOG_NAME_MAX = 160 };

struct plog_segment_name {
    uint32_t epoch;
    uint64_t writer; /* random */
    uint32_t n;      /* 0, 1, … of this writer */
    uint64_t end;    /* of the logical bytes that it has written */
    uint64_t bytes;  /* of data */
    bool cuts;
};

/* PLOG_ROOT<id>/tail */
void plog_name(char out[static PLOG_NAME_MAX], const char *id, const char *tail);
void plog_name_segment(char out[static PLOG_NAME_MAX], const char *id,
                       const struct plog_segment_name *s);
/* What a list that begins after this name has: the segments of this epoch and later ones. */
void plog_name_epoch(char out[static PLOG_NAME_MAX], const char *id, uint32_t epoch);
void plog_name_record(char out[static PLOG_NAME_MAX], const char *id, uint64_t session,
                      bool closed);
void plog_name_merged(char out[static PLOG_NAME_MAX], const char *id, uint64_t number,
                      uint64_t nonce);

/* False: it is no name that the functions above make. */
bool plog_name_parse_segment(const char *name, struct plog_segment_name *s);
bool plog_name_parse_record(const char *name, uint64_t *session, bool *closed);
bool plog_name_parse_merged(const char *name, uint64_t *number);
bool plog_id_valid(const char *id); /* PLOG_ID_CHARS hexadecimal digits */
