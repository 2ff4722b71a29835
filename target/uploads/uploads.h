/* The uploads in parts that began at this target: where one lies, who is at work on it, and which
 * are too old.
 *
 * What an upload is stands on the disk (upload_dir.h).  Of one that somebody works on there is a
 * struct upload in memory, the same for all; it goes with the last of them.
 *
 *            begin                    complete                     done.json
 *     (none) ─────▶ UPLOAD_OPEN ◀────────────────▶ UPLOAD_COMPLETING ─────▶ UPLOAD_OVER
 *                     │  ▲  part             refused                          ▲
 *                     └──┘                                                    │
 *                     └───────────────── abort, or too old ───────────────────┘
 *
 * A crash between the rename that makes the object and done.json leaves a body with two names: the
 * object's and its own.  Whoever opens such an upload completes it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "s3/sum_text.h"
#include "s3/uploads/sum_kind.h"
#include "target/store/object.h"
#include "target/uploads/part_log.h"
#include "target/uploads/upload_dir.h"

struct target;
struct uploads;

enum upload_state {
    UPLOAD_OPEN,
    UPLOAD_DAMAGED, /* its log cannot be read: it can be aborted */
    UPLOAD_COMPLETING,
    UPLOAD_OVER,
};

struct upload {
    struct uploads *all;
    char id[UPLOAD_ID_CHARS + 1];
    const struct mountpath_set *set; /* holds … */
    struct mountpath *mp;
    struct upload_about about;
    struct s3_sum_kind sums; /* those of its parts */
    json_t *done;            /* the reply of its completion, or NULL */
    int body_fd, log_fd;
    pthread_mutex_t lock; /* of what follows */
    enum upload_state state;
    uint64_t unit;                           /* part_place.h */
    uint64_t log_bytes;                      /* of whole records */
    uint32_t sides;                          /* side files that were begun */
    unsigned in_body;                        /* parts on their way to the body */
    unsigned char sent[PARTS_MAX / 8 + 1];   /* in the body, or on their way there */
    unsigned char stored[PARTS_MAX / 8 + 1]; /* that have a record */
    const struct object_file *file; /* NULL, or the body while it is completed in place … */
    struct object_file body;        /* … which is this */
    char *body_path;
    char body_sum[S3_SUM_TEXT_MAX];
    /* `all`'s */
    unsigned refs;
    bool is_loaded;     /* or could not be; until then nothing else of it may be looked at */
    struct error error; /* then */
    struct upload *next;
};

int uploads_new(struct target *t, struct uploads **out, struct error *err);
/* Completions end soon, with E_ABORTED. */
void uploads_stop(struct uploads *all);
bool uploads_stopped(const struct uploads *all);
void uploads_free(struct uploads *all);

/* fn(arg) in a thread that may wait for the disk.  E_OVERLOAD. */
int uploads_run(struct uploads *all, void (*fn)(void *arg), void *arg, struct error *err);
/* The same for a completion, which waits for as long as its bytes and its leader take. */
int uploads_run_long(struct uploads *all, void (*fn)(void *arg), void *arg, struct error *err);

/* Waits for the disk.  `about` stays the caller's.  E_OVERLOAD: uploads_max are open. */
int uploads_begin(struct uploads *all, const struct upload_about *about,
                  char id[static UPLOAD_ID_CHARS + 1], struct error *err);
/* The one that somebody works on, or NULL: a reference. */
struct upload *uploads_find(struct uploads *all, const char *id);
/* A reference.  E_INVALID: no id; E_NOT_FOUND, also where it is of another object. */
int uploads_get(struct uploads *all, const char *id, uint64_t bucket_id, const char *object,
                struct upload **out, struct error *err);
struct upload *upload_ref(struct upload *u);
void upload_unref(struct upload *u);
DEFINE_CLEANUP(struct upload, upload_unref);
/* Bytes of each record of its log: part_log.h. */
size_t upload_record(const struct upload *u);
/* Is there room for so many bytes more?  E_NO_SPACE. */
int upload_check_room(struct upload *u, uint64_t bytes, struct error *err);
/* Its parts, by the log.  E_NOT_FOUND: it is over. */
int upload_parts(struct upload *u, struct part_table *out, struct error *err);
struct target *upload_target(const struct upload *u);
/* Was it stored before this target started?  A loss of power may have taken bytes that were not
 * synced, and left the record. */
bool upload_part_is_old(const struct upload *u, const struct part *part);
/* The bytes of a part that is stored: a descriptor for upload_close_part(), and where they begin.
 */
int upload_open_part(const struct upload *u, const struct part *part, int *fd, uint64_t *offset,
                     struct error *err);
void upload_close_part(const struct upload *u, int fd);
/* With its lock: may it get parts, or be completed?  E_NOT_READY: it is being completed;
 * E_NOT_FOUND: it is over; E_CORRUPT: it is damaged. */
int upload_check_open(const struct upload *u, struct error *err);
/* Waits for the disk.  E_NOT_READY: it is being completed; E_NOT_FOUND: it is over. */
int upload_abort(struct upload *u, struct error *err);
/* What is left of one that nobody works on, or that cannot be opened. */
int uploads_remove(struct uploads *all, const struct mountpath *mp, const char *id,
                   struct error *err);
/* It is completed, and `reply`, which is taken, says so; then its bytes go.  Waits for the disk.
 * The object is there: that the disk does not take this is logged, and no failure. */
void upload_finish(struct upload *u, json_t *reply);
/* {"version", "etag", "size", "tag", "sum"}: a new reference.  `sum`: the checksum of the object,
 * as its metadata has it; "": none is known. */
json_t *upload_reply(const char *version, const char *etag, uint64_t size, const char *tag,
                     const char *sum);

int upload_not_found(const char *id, struct error *err);
