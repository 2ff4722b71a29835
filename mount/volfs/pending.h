/* What was written to an inode and is not committed: an open piece in memory, and pieces that are
 * stored, or on their way to the store.
 *
 * A piece never crosses the end of a block, so it is one object, and one slice.  Writes that follow
 * one another, or fall into the open piece, change it in place; any other write closes it first.
 * Closed pieces are stored side by side.  One that cannot be stored stays in memory, and the next
 * write or commit tries it again.
 *
 * What a quota or the volume's limit refuses does not stay, or nobody could read the file or
 * shorten it: all that is pending is dropped, and each handle is told once by a flush (file.c).  gc
 * deletes the blocks.  If the disk of the store or of the engine is full, the bytes stay. */
#pragma once

#include <pthread.h>

#include "mount/volfs/uploads.h"
#include "mount/volume/volume.h"

enum { PENDING_SLICES = 128 }; /* more are committed at once */

struct pending_piece {
    struct upload upload;
    bool sent;
    struct volume_piece at; /* its sums are of the piece */
    uint64_t *sums;
};

struct pending {
    struct pending *chain; /* of the table's slot */
    uint64_t ino;
    unsigned uses;        /* the table's lock */
    pthread_mutex_t lock; /* of all below */
    char *data;           /* the open piece */
    size_t size, room;
    int64_t at;
    struct pending_piece **pieces; /* the newest last */
    size_t count, pieces_room;
    bool append;         /* places count from the end that the file has at the commit */
    int64_t end;         /* behind the last byte of all; 0: there is none */
    uint64_t changed_ms; /* the last write */
    uint64_t stamp;      /* of the bytes that are not committed; 0: there are none */
    uint64_t mark;       /* of the ledger, with the stamp */
    int64_t written_ns;  /* the same, by the volume's clock */
    bool drops_setid;    /* the file's set-id bits end with the commit */
    uint64_t refusals;   /* commits that a quota or the volume's limit has refused */
    int refused;         /* by the last of them: EDQUOT of a quota, ENOSPC of the limit */
    bool full;           /* the limit was the last word: it is asked before the store */
};

/* What the inodes of one mount share. */
struct pendings {
    struct volume *volume;
    struct volfs_store store;
    struct ledger *ledger; /* borrowed */
    struct uploads *uploads;
    uint64_t limit_bytes;
    _Atomic uint64_t bytes; /* of pieces that are not stored */
    pthread_mutex_t lock;
    struct pending *slots[1024];
};

/* False: no thread could be started; pendings_done() is due nevertheless. */
bool pendings_init(struct pendings *all, struct volume *volume, const struct volfs_store *store,
                   uint64_t limit_bytes, unsigned uploads);
void pendings_done(struct pendings *all); /* none has a use */

/* With a use more; made if `make`, otherwise NULL where there is none. */
struct pending *pending_take(struct pendings *all, uint64_t ino, bool make);
void pending_give(struct pendings *all, struct pending *p); /* NULL is fine */

/* Of a write, append or commit: a quota or the volume's limit has refused all that was pending, and
 * nothing is pending now.  EDQUOT and ENOSPC are of the store or the engine, and the bytes stay. */
enum { PENDING_REFUSED = 1 };
/* The lock is held by the caller.  0, -errno or PENDING_REFUSED. */
int pending_write(struct pendings *all, struct pending *p, int64_t at, const void *from,
                  size_t size);
/* Behind what the file has then, and behind what is pending.  Other clients that append meanwhile
 * come before or behind. */
int pending_append(struct pendings *all, struct pending *p, const void *from, size_t size);
/* The attribute as it will be with what is pending: length, times and set-id bits. */
void pending_show(const struct pending *p, struct attr *a);
/* Also PENDING_REFUSED. */
int pending_commit(struct pendings *all, struct pending *p);

/* A process that takes over will know that bytes of the inode were not
 * committed, if this one dies before.  0 with a stamp, or -ENOMEM.  A commit
 * ends it. */
int pending_mark(struct pendings *all, struct pending *p);
void pending_unmark(struct pendings *all, struct pending *p);

/* Slices below are committed, or never will be. */
uint64_t pendings_settled(struct pendings *all);

/* Commits what was left alone since `before_ms`.  The first error; each is logged.  A refusal is
 * none: the handles tell it. */
int pendings_commit(struct pendings *all, uint64_t before_ms);
