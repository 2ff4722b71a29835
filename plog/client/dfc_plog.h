/* libdfcplog: plogs, files of many writers, over libdfc.  Conventions are those of dfc.h.
 *
 *     struct dfc_plog_options how = {.flags = DFC_PLOG_WRITE | DFC_PLOG_CREATE, .mode = 0644};
 *     dfc_plog_open(client, "bucket", "run1/ckpt", &how, &f, &err)
 *     dfc_plog_write(f, data, n, offset, &err)
 *     dfc_plog_sync(f, &err)           all that was written is durable, and others read it
 *     dfc_plog_close(f, &err)
 *
 * Any number of processes may write one plog at once, each by a handle of its own.  Calls of one
 * handle may come from any thread; they wait for each other.  A write is kept in memory until a
 * segment is full; then the call that fills it stores it.
 *
 * After a barrier at which all writers have called sync, later writes win.  Overlapping writes
 * without one have one result, which is the same for all readers.
 *
 * A call that failed can be repeated.  DFC_PRECONDITION of a sync or close: the file was removed or
 * replaced, and what was not synced is in no file. */
#pragma once

#include "api/dfc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DFC_PLOG_WRITE = 1,     /* and read; without it the plog is open for reading alone */
    DFC_PLOG_CREATE = 2,    /* where there is none; else DFC_NOT_FOUND */
    DFC_PLOG_EXCLUSIVE = 4, /* with CREATE: DFC_CONFLICT where there is one */
    DFC_PLOG_TRUNCATE = 8,
};

struct dfc_plog_options {
    unsigned flags;
    uint32_t mode, uid, gid; /* of a new plog */
    uint64_t segment_bytes;  /* 16 MiB: of data in an object; 64 KiB to 1 GiB */
    unsigned index_parallel; /* 8: indexes of segments that are read at once; at most 64 */
};

struct dfc_plog;

/* The client lives longer.  DFC_INVALID: the object is no plog. */
int dfc_plog_open(struct dfc_client *client, const char *bucket, const char *name,
                  const struct dfc_plog_options *options, struct dfc_plog **plog,
                  struct dfc_error *err);
int dfc_plog_write(struct dfc_plog *plog, const void *data, size_t size, uint64_t offset,
                   struct dfc_error *err);
/* The file is cut, or extended, to this length, as the next write. */
int dfc_plog_truncate(struct dfc_plog *plog, uint64_t length, struct dfc_error *err);
int dfc_plog_sync(struct dfc_plog *plog, struct dfc_error *err);
/* *got < size: the end of the file.  What this handle has written is synced first; what others have
 * synced is read if they had done so before this handle's first read or its last renew. */
int dfc_plog_read(struct dfc_plog *plog, void *to, size_t size, uint64_t offset, size_t *got,
                  struct dfc_error *err);
void dfc_plog_renew(struct dfc_plog *plog);
struct dfc_plog_stat {
    uint64_t size;   /* of the file */
    uint64_t stored; /* bytes of data in segments, with those that were overwritten */
    uint64_t segments;
    uint64_t sessions; /* that are open, or not merged yet */
    uint32_t mode, uid, gid;
    uint64_t created_ms, modified_ms; /* modified: when it was merged last */
};
int dfc_plog_stat(struct dfc_plog *plog, struct dfc_plog_stat *stat, struct dfc_error *err);
struct dfc_plog_extent {
    uint64_t start, length; /* in the file */
    const char *segment;    /* the object that has the bytes */
    uint64_t physical;      /* where they begin in it */
    const char *why;        /* what is wrong with them; NULL: nothing, or not verified */
};
/* Calls each() for every extent of the file, ascending; holes have none.  verify: the bytes are
 * read and compared with their checksums.  A result of each() but 0 ends the walk: DFC_LOCAL. */
int dfc_plog_walk(struct dfc_plog *plog, bool verify,
                  int (*each)(void *context, const struct dfc_plog_extent *e), void *context,
                  struct dfc_error *err);
/* After an error the handle is still open: repeat the call, or drop it. */
int dfc_plog_close(struct dfc_plog *plog, struct dfc_error *err);
void dfc_plog_drop(struct dfc_plog *plog); /* what was not synced is forgotten */
int dfc_plog_unlink(struct dfc_client *client, const char *bucket, const char *name,
                    struct dfc_error *err);
/* Ends the sessions of writers that died, and merges.  Waits lease_ms (0: 60 s) if there are any
 * that are open: a session that refreshes its record in this time lives.  *busy: one did. */
int dfc_plog_recover(struct dfc_client *client, const char *bucket, const char *name,
                     uint64_t lease_ms, bool *busy, struct dfc_error *err);

#ifdef __cplusplus
}
#endif
