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
 * segment is full; then a thread stores it, and the next one is filled.
 *
 * After a barrier at which all writers have called sync, later writes win.  Overlapping writes
 * without one have one result, which is the same for all readers.
 *
 * A call that failed can be repeated.  DFC_PRECONDITION of a sync or close: the file was removed or
 * replaced, and what was not synced is in no file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dfc_client; /* of dfc.h, which a program includes, too */
struct dfc_error;

#pragma GCC visibility push(default)

enum {
    DFC_PLOG_WRITE = 1,     /* and read; without it the plog is open for reading alone */
    DFC_PLOG_CREATE = 2,    /* where there is none; else DFC_NOT_FOUND */
    DFC_PLOG_EXCLUSIVE = 4, /* with CREATE: DFC_CONFLICT where there is one */
    DFC_PLOG_TRUNCATE = 8,
};

struct dfc_plog_pool; /* see below */

/* Where handles get the data of segments, instead of by GETs of their own: a program that has many
 * handles open keeps what they read in one place. */
struct dfc_plog_segment {
    const char *object;  /* its name.  An object of this name never changes */
    uint64_t bytes;      /* of data, from the object's first byte on */
    const uint8_t *sums; /* of each MiB of them: XXH3-64, 8 bytes, little endian */
};
struct dfc_plog_reader {
    void *context;
    /* All of the bytes, which are within the data: DFC_OK, or the result that is in *err, too.  It
     * gives none that differ from the sums.  DFC_NOT_FOUND: the object is gone.  Any thread may
     * call. */
    int (*read)(void *context, const struct dfc_plog_segment *segment, void *to, size_t size,
                uint64_t offset, struct dfc_error *err);
};

struct dfc_plog_options {
    unsigned flags;
    uint32_t mode, uid, gid; /* of a new plog */
    uint64_t segment_bytes;  /* 16 MiB: of data in an object; 64 KiB to 1 GiB */
    unsigned index_parallel; /* 8: indexes of segments that are read at once; at most 64 */
    unsigned inflight;       /* 2: segments that are stored while the next is filled; at most 64 */
    const char *id;          /* NULL: any plog; else DFC_PRECONDITION where it is another one */
    struct dfc_plog_pool *pool;           /* NULL: none */
    const struct dfc_plog_reader *reader; /* lives longer than the handle; NULL: none */
};

struct dfc_plog;

/* The client lives longer.  DFC_INVALID: the object is no plog. */
int dfc_plog_open(struct dfc_client *client, const char *bucket, const char *name,
                  const struct dfc_plog_options *options, struct dfc_plog **plog,
                  struct dfc_error *err);
/* The ranks of a job share one record of who has the plog open.  Rank 0 opens it by name, and
 * broadcasts the token of its handle; the others open the plog by the token, without a call.
 *
 *     char token[DFC_PLOG_TOKEN_MAX];
 *     rank 0:  dfc_plog_open(client, "bucket", "run1/ckpt", &how, &f, &err)
 *              dfc_plog_share(f, token, &err)
 *     all:     MPI_Bcast(token, sizeof token, MPI_CHAR, 0, comm)
 *     others:  dfc_plog_open_token(client, token, &how, &f, &err)
 *
 * The token is a text of letters, digits, `.`, `-` and `_`, and no secret.  A token may be used any
 * number of times, also twice by one rank: each handle is a writer of its own.
 *
 * Rank 0 closes last, after a barrier: then it alone merges.  Any other order is right, too: a rank
 * whose rank 0 has closed or died makes a record of its own when it syncs or closes, and merges.
 * But what such a rank has not synced may be read, and later not be read until its sync.
 *
 * What was acknowledged is never lost or hidden, whichever rank dies. */
enum { DFC_PLOG_TOKEN_MAX = 2048 }; /* bytes, with the NUL */
/* Of a handle that is open for writing.  One call, if it has not written yet. */
int dfc_plog_share(struct dfc_plog *plog, char token[DFC_PLOG_TOKEN_MAX], struct dfc_error *err);
/* Of the options, segment_bytes, index_parallel, inflight, pool and reader count.  DFC_INVALID: the
 * token is damaged.  The first sync fails with DFC_PRECONDITION if the plog was removed or
 * replaced, or is not in this cluster. */
int dfc_plog_open_token(struct dfc_client *client, const char *token,
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
/* The bytes of the plog become the object of its name; its segments go.  From then on any client
 * reads it.  DFC_CONFLICT, code `plog_busy`: it is open for writing, or a writer of it died.
 * DFC_PRECONDITION: it was written in between; nothing was changed.  An error whose message begins
 * with "'NAME' is flat": parts of the plog are left, and dfc_plog_collect() removes them. */
int dfc_plog_flatten(struct dfc_client *client, const char *bucket, const char *name,
                     struct dfc_error *err);
/* Its bytes, as all writers have synced them, become another object. */
int dfc_plog_copy(struct dfc_client *client, const char *bucket, const char *name,
                  const char *to_bucket, const char *to_name, struct dfc_error *err);
struct dfc_plog_entry {
    const char *name; /* NULL: no head has the container, since the plog was removed or replaced */
    const char *id;
    uint64_t size;            /* of the file, as it was merged last */
    uint64_t objects, stored; /* of the container; stored: their bytes */
    int64_t newest_ms;        /* when the last of them was stored; 0: there is none */
};
/* Calls each() for the plogs of the bucket, by name, then for the containers that have none.  It
 * reads every object of the bucket that is as small as a head.  A result of each() but 0 ends the
 * list: DFC_LOCAL. */
int dfc_plog_list(struct dfc_client *client, const char *bucket,
                  int (*each)(void *context, const struct dfc_plog_entry *e), void *context,
                  struct dfc_error *err);
struct dfc_plog_collected {
    uint64_t containers, objects, stored; /* that were removed, or would be */
    uint64_t younger;                     /* containers that stay */
};
/* Removes the containers that no head has, unless an object of it was stored later than before_ms
 * (Unix time).  DFC_CORRUPT: an object has the content type of a head, and is none; nothing was
 * removed.  It looks for heads twice, so that a rename hides none.  A writer that says nothing
 * for so long, and goes on then, may lose what it syncs: use a day. */
int dfc_plog_collect(struct dfc_client *client, const char *bucket, int64_t before_ms, bool dry_run,
                     struct dfc_plog_collected *out, struct dfc_error *err);

/* --- all handles of a process ----------------------------------------------------------------- */

/* A pool bounds what its handles hold in memory, and says every so often that its writers live.  A
 * writer without one says so with its writes and syncs alone, and can be taken for dead when it is
 * idle.  What was synced is never lost by that. */
struct dfc_plog_pool_options {
    uint64_t memory_bytes; /* 512 MiB: above it, a write waits until what it has is stored */
    uint64_t refresh_ms;   /* 20 s: at most a third of the lease of those that recover */
};
int dfc_plog_pool_open(const struct dfc_plog_pool_options *options, struct dfc_plog_pool **pool,
                       struct dfc_error *err);
void dfc_plog_pool_close(struct dfc_plog_pool *pool); /* its handles are closed; NULL is fine */

/* --- names and attributes --------------------------------------------------------------------- */

struct dfc_plog_glance {
    uint64_t size;   /* of the file */
    uint64_t stored; /* bytes of data in segments */
    uint64_t sessions;
    uint32_t mode, uid, gid;
    uint64_t created_ms, modified_ms;
    char id[33];       /* of the plog */
    char version[256]; /* of the head */
};
/* What a new reader would find, by lists of names: cheaper than an open. */
int dfc_plog_glance(struct dfc_client *client, const char *bucket, const char *name,
                    struct dfc_plog_glance *glance, struct dfc_error *err);
/* The same, with the size that the handle sees: what it has not synced counts. */
int dfc_plog_look(struct dfc_plog *plog, struct dfc_plog_glance *glance, struct dfc_error *err);
/* Of the plog that the handle has open for writing; "" if it is open for reading. */
const char *dfc_plog_id(struct dfc_plog *plog);

/* Milliseconds: nanoseconds of a later time are no int64_t. */
#define DFC_PLOG_MODIFIED_MAX ((uint64_t)INT64_MAX / 1000000)

struct dfc_plog_change {
    bool sets_mode, sets_uid, sets_gid, sets_modified;
    uint32_t mode, uid, gid;
    uint64_t modified_ms; /* at most DFC_PLOG_MODIFIED_MAX; the next merge sets it, too */
};
int dfc_plog_change(struct dfc_client *client, const char *bucket, const char *name,
                    const struct dfc_plog_change *change, struct dfc_error *err);
/* Of any object; one of the new name is replaced.  If that was a plog, dfc_plog_collect() removes
 * its segments.  Open handles of this process go on under the new name after dfc_plog_renamed();
 * the next sync of those of others fails with DFC_PRECONDITION.  No call of a handle of the plog
 * may run meanwhile. */
int dfc_plog_rename(struct dfc_client *client, const char *bucket, const char *name,
                    const char *new_name, struct dfc_error *err);
void dfc_plog_renamed(struct dfc_plog *plog, const char *new_name);
/* An object that is no plog becomes an empty one.  Nothing happens where there is no object, or a
 * plog. */
int dfc_plog_replace_object(struct dfc_client *client, const char *bucket, const char *name,
                            const struct dfc_plog_options *options, struct dfc_error *err);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
