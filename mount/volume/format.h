/* What was decided when a volume was made.  Kept in its metadata as JSON, under FORMAT 0. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "mount/meta/meta.h"

enum {
    VOLUME_ROOT = 1,      /* the inode of the root */
    VOLUME_NAME_MAX = 63, /* bytes of a volume's name */
    VOLUME_BUCKET_MAX = 255,
    VOLUME_TRASH_DAYS_MAX = 36500,
};

struct volume_format {
    char name[VOLUME_NAME_MAX + 1]; /* what its objects begin with: letters, digits, '-', '_' */
    char id[17];                    /* of 16 hex digits, drawn when it was made */
    char bucket[VOLUME_BUCKET_MAX + 1];
    uint64_t chunk_bytes; /* 64 MiB; below 2 GiB */
    uint64_t block_bytes; /* 4 MiB; a chunk has whole blocks */
    uint64_t grace_ms;    /* between the last name and the end of bytes: 15 min */
    uint64_t session_ms;  /* without a heartbeat a session is over: 60 s; below the grace */
    uint64_t trash_days;  /* that removed files are kept; 0: they are not */
    int64_t max_inodes;   /* INT64_MAX: no limit */
    int64_t max_bytes;
};

/* The defaults, and an id. */
void format_init(struct volume_format *f, const char *name, const char *bucket);
/* E_INVALID: a field is out of its bounds. */
int format_check(const struct volume_format *f, struct error *err);
/* As JSON; malloc'ed. */
char *format_text(const struct volume_format *f);
/* Writes the metadata of an empty volume: format, root, counters.  E_EXISTS: the engine has a
 * volume already. */
int format_write(struct meta *m, const struct volume_format *f, uint32_t uid, uint32_t gid,
                 struct error *err);
/* In the place of `was`, which was read; only trash_days and the limits may differ.  Limits are in
 * force at once, also below what is in use; clients see the days with their next heartbeat.
 * E_PRECONDITION: it was changed meanwhile. */
int format_change(struct meta *m, const struct volume_format *was, const struct volume_format *f,
                  struct error *err);
/* What format_text() made. */
int format_parse(const struct meta_value *value, struct volume_format *f, struct error *err);
/* E_NOT_FOUND: the engine has no volume. */
int format_read(struct meta *m, struct volume_format *f, struct error *err);
