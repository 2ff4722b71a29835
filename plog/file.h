/* A plog that is open: writes are gathered into segments, reads are painted from them.  Pure: the
 * world is a plog_store, and all calls wait.  A file is of one thread at a time.
 *
 *     plog_file_open(&st, "a/ckpt1", &how, &f, err)
 *     plog_file_write(f, data, n, offset, err)     kept in memory until a segment is full
 *     plog_file_sync(f, err)                       now it is durable, and others read it
 *     plog_file_close(f, err)                      the same; the last one merges the plog
 *
 * A write or sync that failed has lost nothing: the same call again goes on where it stopped.  But
 * E_PRECONDITION says that the file is gone, and with it what was not synced.
 *
 * A read shows the plog as it was at the first read after the open, a renew or a write of this
 * file.  What this file has written is synced first.  E_PRECONDITION says that the name leads to
 * another plog than the one that was opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plog/head.h"
#include "plog/merge.h"
#include "plog/session.h"
#include "plog/store.h"

struct plog_file;

struct plog_file_how {
    bool write;                      /* else it is for reading alone */
    bool truncate;                   /* with write: the file becomes an empty one */
    struct plog_open open;           /* with write; its id also for reading */
    const struct plog_token *token;  /* with write: instead of open; NULL: none */
    size_t segment_bytes;            /* of data in a segment, at most; 0: 16 MiB */
    size_t cached;                   /* MiB of segments that reads keep in memory; 0: 16.  If the
                                      * store keeps data: only for reads of many extents */
    uint64_t refresh_ms;             /* of the record, by calls of write; 0: 20 s */
    uint64_t (*clock_ms)(void *ctx); /* that only runs; with the store's ctx */
    /* Asked before each part of a read, with the store's ctx; NULL: not.  What it says ends it. */
    int (*check)(void *ctx, struct error *err);
};

/* The store stays the caller's, and lives longer.  E_NOT_FOUND, E_EXISTS, E_INVALID: no plog. */
int plog_file_open(const struct plog_store *st, const char *object, const struct plog_file_how *how,
                   struct plog_file **f, struct error *err);
/* To read alone what the look shows: no renew changes that.  The look is the file's from now on. */
struct plog_file *plog_file_of_look(const struct plog_store *st, const char *object,
                                    const struct plog_file_how *how, struct plog_look *l);
/* For other processes, which open the plog by it; they share the record of this file's session. */
int plog_file_share(struct plog_file *f, struct plog_token *token, struct error *err);
int plog_file_write(struct plog_file *f, const void *data, size_t len, uint64_t offset,
                    struct error *err);
int plog_file_cut(struct plog_file *f, uint64_t length, struct error *err);
int plog_file_sync(struct plog_file *f, struct error *err);
/* What is in memory begins to be stored.  Nothing is acknowledged by this. */
int plog_file_push(struct plog_file *f, struct error *err);
size_t plog_file_held(const struct plog_file *f); /* bytes in memory, without those on their way */
/* Says that the writer lives, if refresh_ms have passed since that was said. */
int plog_file_refresh(struct plog_file *f, struct error *err);
/* The head has this name now. */
void plog_file_rename(struct plog_file *f, const char *object);
const char *plog_file_object(const struct plog_file *f);
const char *plog_file_id(const struct plog_file *f); /* the plog's; "": it is not known yet */
struct plog_unsynced {
    bool cuts;    /* there is a cut */
    uint64_t end; /* of the bytes that were written, or cut, since the last sync */
};
struct plog_unsynced plog_file_unsynced(const struct plog_file *f);
/* *got < len: the end of the file.  E_CORRUPT names the segment. */
int plog_file_read(struct plog_file *f, void *to, size_t len, uint64_t offset, size_t *got,
                   struct error *err);
void plog_file_renew(struct plog_file *f); /* the next read looks for what others have written */
struct plog_file_stat {
    struct plog_head head;
    uint64_t size, bytes; /* of the file; of data in its segments */
    size_t segments, records;
};
int plog_file_stat(struct plog_file *f, struct plog_file_stat *out, struct error *err);
/* Of each extent of the file, ascending; holes are left out.  segment: its object.  why: NULL, or
 * what is wrong with its bytes.  Other than 0 ends the walk and is its result. */
typedef int plog_file_each(void *ctx, const struct plog_extent *e, const char *segment,
                           const char *why);
/* verify: the bytes are read and compared with their checksums. */
int plog_file_walk(struct plog_file *f, bool verify, plog_file_each *each, void *ctx,
                   struct error *err);
/* After an error the file is still open: close it again, or drop what was not synced. */
int plog_file_close(struct plog_file *f, struct error *err);
void plog_file_drop(struct plog_file *f); /* frees it and stores nothing */
