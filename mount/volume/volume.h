/* A volume: names, attributes and slice entries of a file system, over a metadata engine.
 *
 * Every change is one transaction: it reads, decides, and commits what it expects and changes.
 * Another client's change in between makes it read again.  So a call has happened whole, at one
 * moment, or not at all, for every client.
 *
 * A client has a session, and a session has lanes.  Each commit is the next one of a lane: by the
 * lane's number a client finds out whether a commit without a reply was made, and a client that was
 * given up by others, whose lanes are gone, cannot write any more.
 *
 * Functions return 0 or -errno; those that start and end fill a struct error.  Besides what
 * manual pages say of the calls:
 *
 *     EIO      the engine failed, or this session is over; the log says which
 *     ENOSPC   the engine's disk is full, or the volume's limit is reached
 *
 * Any thread may call.  Rights are the kernel's business (default_permissions). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/error.h"
#include "mount/volume/attr.h"
#include "mount/volume/format.h"
#include "mount/volume/slices.h"

struct volume;
struct volume_memory;

struct volume_env {
    void *context;
    int64_t (*clock_ns)(void *context); /* monotonic; its beginning does not matter */
    void (*pause_ms)(void *context, uint64_t ms);
    uint64_t seed;                /* of the pauses */
    unsigned lanes;               /* commits at once: 16 */
    unsigned tries;               /* of a transaction that meets others: 50 */
    struct volume_memory *memory; /* calls.h, also of processes before; NULL: none takes over */
};

/* Clock and pauses of this machine, and the defaults. */
void volume_env_init(struct volume_env *env);

/* The engine is borrowed.  With the memory of a process that has died its
 * session goes on; if it is over by now, there is a new one.  E_NOT_FOUND: the
 * engine has no volume. */
int volume_open(struct meta *m, const struct volume_env *env, struct volume **out,
                struct error *err);
/* Ends the session.  No call may be running, and no file open.  NULL is fine. */
void volume_close(struct volume *v);
DEFINE_CLEANUP(struct volume, volume_close);
/* The same, but the session stays, for a process that goes on with it. */
void volume_leave(struct volume *v);
/* The session of the process before was over: its locks are lost. */
bool volume_is_fenced(const struct volume *v);
const struct volume_format *volume_format(const struct volume *v);
uint64_t volume_session(const struct volume *v);

/* Until the end this thread works for a call of the kernel, which has a number
 * of its own.  True: a process before this one has changed what the call
 * changes.  Of calls that change names, attributes or extended attributes. */
bool volume_call_begin(struct volume *v, uint64_t id);
void volume_call_end(void); /* it was answered */
/* The engine's clock, as this client knows it: ns since 1970. */
int64_t volume_now(struct volume *v);

/* ---- what a client owes the others ---- */

enum { BEATS_IN_SESSION = 5 };
/* The session's heartbeat: at least BEATS_IN_SESSION times in session_ms.  Files that are open here
 * and have lost their last name are kept for this session. */
int volume_beat(struct volume *v);
/* held: this client is the one that cleans, for so long.  Others are refused until then, or until
 * this session is over. */
int volume_lease(struct volume *v, uint64_t ms, bool *held);
/* The same of the client that makes dumps by itself. */
int volume_dump_lease(struct volume *v, uint64_t ms, bool *held);
/* Ends sessions without a heartbeat, and frees inodes whose grace is over: some of each.  *more:
 * there is more to do. */
int volume_clean(struct volume *v, bool *more);

struct volume_garbage {
    uint64_t due_ms, slice;
    uint32_t size;
};
/* Slices whose blocks may be deleted now; in the arena.  Then volume_forget(). */
int volume_garbage(struct volume *v, struct arena *arena, size_t limit, struct volume_garbage **out,
                   size_t *count);
int volume_forget(struct volume *v, const struct volume_garbage *gone, size_t count);

/* ---- inodes and names ---- */

struct volume_inode {
    uint64_t ino;
    struct attr attr;
};

struct volume_new {
    uint32_t mode; /* with its type */
    uint32_t uid, gid, rdev;
    const char *target; /* of a symbolic link: 1 to 4095 bytes */
};

/* ENOENT: no such inode.  nlink 0: it has no name, and is there as long as it is open. */
int volume_getattr(struct volume *v, uint64_t ino, struct attr *out);
int volume_lookup(struct volume *v, uint64_t directory, const char *name, struct volume_inode *out);
/* A file, directory, symbolic link, fifo, socket or device. */
int volume_create(struct volume *v, uint64_t directory, const char *name,
                  const struct volume_new *what, struct volume_inode *out);
int volume_link(struct volume *v, uint64_t ino, uint64_t directory, const char *name,
                struct volume_inode *out);
int volume_unlink(struct volume *v, uint64_t directory, const char *name);
int volume_rmdir(struct volume *v, uint64_t directory, const char *name);
/* flags: 0, RENAME_NOREPLACE or RENAME_EXCHANGE. */
int volume_rename(struct volume *v, uint64_t from, const char *from_name, uint64_t to,
                  const char *to_name, unsigned flags);
int volume_readlink(struct volume *v, uint64_t ino, struct arena *arena, char **target);

struct volume_name {
    const char *name;
    uint32_t type; /* S_IFMT bits */
    uint64_t ino;
    bool known; /* attr is */
    struct attr attr;
};
/* The names that follow `after` ("": all), `limit` at most, in bytewise order; "." and ".." are not
 * among them.  *more: there are others behind. */
int volume_readdir(struct volume *v, uint64_t directory, const char *after, size_t limit,
                   struct arena *arena, struct volume_name **out, size_t *count, bool *more);

/* How often this client has changed something. */
uint64_t volume_changes(struct volume *v);
/* Has it changed the inode's attribute after the first `since` times?  So what was read then may be
 * outdated.  True also for a few other inodes; changes of other clients do not count. */
bool volume_is_changed(struct volume *v, uint64_t ino, uint64_t since);
/* What was read of the inode before may be outdated, as if this client had changed it now. */
void volume_note_changed(struct volume *v, uint64_t ino);

enum volume_set_field {
    VOLUME_SET_MODE = 1, /* the type stays */
    VOLUME_SET_UID = 2,
    VOLUME_SET_GID = 4,
    VOLUME_SET_ATIME = 8,
    VOLUME_SET_MTIME = 16,
    VOLUME_SET_LENGTH = 32,
    VOLUME_SET_ATIME_NOW = 64,
    VOLUME_SET_MTIME_NOW = 128,
};

struct volume_set {
    unsigned fields;
    uint32_t mode, uid, gid;
    int64_t atime_ns, mtime_ns;
    int64_t length;
};
/* out: as it is then; may be NULL. */
int volume_setattr(struct volume *v, uint64_t ino, const struct volume_set *set, struct attr *out);

/* ---- extended attributes ---- */

/* EOPNOTSUPP: a name that does not begin with "user.", "trusted." or "security."; those of access
 * control lists begin with "system.". */

/* flags: 0, XATTR_CREATE or XATTR_REPLACE.  E2BIG: more than 64 KiB. */
int volume_setxattr(struct volume *v, uint64_t ino, const char *name, const void *value,
                    size_t size, int flags);
int volume_getxattr(struct volume *v, uint64_t ino, const char *name, struct arena *arena,
                    const uint8_t **value, size_t *size);
/* The names one after another, each with its NUL; `all`: also those of "trusted.". */
int volume_listxattr(struct volume *v, uint64_t ino, bool all, struct buf *names);
int volume_removexattr(struct volume *v, uint64_t ino, const char *name);

/* ---- files ---- */

/* Between these two an inode without a name is kept.  attr is as it is at the open. */
int volume_openfile(struct volume *v, uint64_t ino, struct attr *attr);
void volume_closefile(struct volume *v, uint64_t ino);

/* ---- locks: of all clients ---- */

enum volume_lock_type { VOLUME_LOCK_NONE, VOLUME_LOCK_SHARED, VOLUME_LOCK_EXCLUSIVE };

struct volume_lock {
    enum volume_lock_type type;
    bool flock;         /* of flock(2), a whole file; otherwise of fcntl(2) */
    uint64_t owner;     /* within this client */
    int64_t start, end; /* the first byte and the last; INT64_MAX: all that follow */
    uint32_t pid;
};
/* NONE unlocks.  EAGAIN: another lock is in the way; ask again.  ENOLCK: the file has too many. */
int volume_setlock(struct volume *v, uint64_t ino, const struct volume_lock *lock);
/* The lock that this one would wait for; type NONE: there is none.  pid 0: of another client. */
int volume_getlock(struct volume *v, uint64_t ino, struct volume_lock *lock);
/* Has this client locks of the inode?  Asks no engine. */
bool volume_haslocks(struct volume *v, uint64_t ino);

/* ---- slices ---- */

/* A number that no other slice has or had. */
int volume_new_slice(struct volume *v, uint64_t *slice);
/* Later calls of volume_new_slice() give this one, or greater ones. */
uint64_t volume_next_slice(struct volume *v);
/* Slices below are committed, or never will be.  Until it is told so, others must not delete blocks
 * of this client's slices. */
int volume_settled(struct volume *v, uint64_t below);

/* What was written, and is durable in the store. */
struct volume_piece {
    int64_t at; /* in the file; of an append: behind its end */
    uint32_t length;
    uint64_t slice; /* 0: zeros */
    uint32_t size;  /* of the slice; its first byte is at `at` */
    const uint64_t *sums;
    uint32_t sums_count;
    int64_t written_ns; /* becomes the file's mtime, by volume_now(); 0: the commit's time */
};

enum volume_write_flag {
    VOLUME_APPEND = 1,     /* at the end that the file has then */
    VOLUME_DROP_SETID = 2, /* as attr_without_setid() */
};

/* All pieces at once; later ones cover earlier ones.  *end: where an append began; may be NULL.
 * ENOENT: the inode is gone. */
int volume_write(struct volume *v, uint64_t ino, const struct volume_piece *pieces, size_t count,
                 unsigned flags, int64_t *end);

struct volume_extent {
    int64_t at;
    uint64_t length;
    const struct slice_entry *entry; /* NULL: zeros */
    uint32_t offset;                 /* in the slice */
};
/* What `length` bytes from `at` on are, up to the end of the file; in the arena. */
int volume_extents(struct volume *v, uint64_t ino, int64_t at, uint64_t length, struct arena *arena,
                   struct volume_extent **out, size_t *count);

/* ---- lists that are stored anew ---- */

struct volume_chunk {
    uint64_t due_ms, ino, number;
};
/* Chunks that writes have left messy, and that are due; in the arena.  Each is planned, rewritten,
 * and done; `again`: it is due once more, later. */
int volume_messy(struct volume *v, struct arena *arena, size_t limit, struct volume_chunk **out,
                 size_t *count);
int volume_messy_done(struct volume *v, const struct volume_chunk *chunk, bool again);

struct volume_rewrite {
    uint64_t ino, number;
    uint64_t attr_stamp, list_stamp;
    struct slice_range *ranges; /* in the chunk; in the arena */
    size_t count;               /* 0: it is well as it is */
};
enum { VOLUME_LIST_LONG = 16 }; /* entries of a list that may stay */
/* What to store anew of a chunk that has more entries than `most`, or is mostly hidden. */
int volume_plan(struct volume *v, uint64_t ino, uint64_t number, unsigned most, struct arena *arena,
                struct volume_rewrite *out);
/* Some of the ranges, each a piece of the same bytes.  ESTALE: the file has changed since the plan,
 * and the pieces are no part of it. */
int volume_rewrite(struct volume *v, const struct volume_rewrite *plan,
                   const struct volume_piece *pieces, size_t count);

/* ---- holes ---- */

/* What a volume without a limit shows as free. */
#define VOLUME_FREE_BYTES (1LL << 50)

/* fallocate(2): mode is 0 or FALLOC_FL_KEEP_SIZE, neither of which reserves room; or, with or
 * without KEEP_SIZE, FALLOC_FL_ZERO_RANGE; or PUNCH_HOLE with KEEP_SIZE.  EOPNOTSUPP: others.
 * ENOSPC: the file would grow by more than is free. */
int volume_allocate(struct volume *v, uint64_t ino, unsigned mode, int64_t at, uint64_t length);
/* The first hole, or the first byte of data, from `at` on.  The end of a file is a hole.  ENXIO:
 * there is none. */
int volume_seek(struct volume *v, uint64_t ino, int64_t at, bool hole, int64_t *out);

struct volume_use {
    int64_t inodes, bytes;           /* bytes: of slices that files name */
    int64_t inodes_left, bytes_left; /* INT64_MAX/2 and above: no limit */
};
int volume_use(struct volume *v, struct volume_use *out);
