/* A mounted volume: its files, with the bytes that are on their way.  What concerns names alone is
 * done by the calls of mount/volume/volume.h; nodes are inode numbers.
 *
 *     write   into the open piece of the inode; a full block is sent to the store at once
 *     flush   the rest becomes an object, then one commit names all new slices
 *     read    what this mount has not committed is committed first
 *
 * So a file that was closed, or synced, is whole for every client, and the commit never names bytes
 * that are not stored.  A thread commits what is left alone for a while, sends heartbeats, frees
 * what is over, and deletes the blocks that no file names any more.
 *
 * Handles have numbers.  After the death of the process another one with the same ledger knows
 * them: handles whose bytes were not committed then fail once with EIO, and the others go on.  If
 * the session was over by then, the locks are gone, and no handle of before may change anything.
 *
 * Functions return 0 or -errno.  Any thread may call; a directory belongs to one at a time. */
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "cache/cache.h"
#include "mount/volfs/store.h"
#include "mount/volume/volume.h"

struct volfs_options {
    uint64_t buffer_bytes; /* of blocks that are read */
    uint64_t readahead_bytes;
    unsigned fetchers;
    uint64_t write_bytes; /* of pieces that are not stored; above it writes wait for the store */
    unsigned uploads;     /* pieces that are stored at once */
    uint64_t flush_ms;    /* after so much rest: 5 s */
    uint64_t clean_ms;    /* between two cleanings: 60 s */
    struct cache_options cache; /* directories NULL: no disk cache */
    int ledger;                 /* ledger_memory(), also of processes before; -1: none */
};

struct volfs;

/* The volume and what the store needs are borrowed. */
int volfs_open(const struct volfs_options *options, struct volume *volume,
               const struct volfs_store *store, struct volfs **out, struct error *err);
/* No call may be running.  Commits and closes what is open. */
void volfs_close(struct volfs *v);
struct volume *volfs_volume(struct volfs *v);
/* What was written through this mount is durable, and seen by all clients; but what a quota or the
 * volume's limit refuses, which is no error: the next write or flush of each handle tells it. */
int volfs_sync(struct volfs *v);

/* Inodes of which the process before has lost bytes: the kernel's pages of them
 * must go. */
const uint64_t *volfs_lost(const struct volfs *v, size_t *count);
char *volfs_stats(struct volfs *v); /* Prometheus' text; malloc'ed */

/* ---- attributes: with what is not committed yet ---- */

int volfs_getattr(struct volfs *v, uint64_t ino, struct stat *st);
void volfs_stat(struct volfs *v, const struct volume_inode *inode, struct stat *st);
int volfs_setattr(struct volfs *v, uint64_t ino, const struct volume_set *set, struct stat *st);
int volfs_statfs(struct volfs *v, uint64_t ino, struct statvfs *out);

/* ---- files ---- */

struct volfs_file;

/* append: writes of this handle do. */
int volfs_openfile(struct volfs *v, uint64_t ino, bool append, struct volfs_file **file);
uint64_t volfs_file_id(const struct volfs_file *f); /* the kernel's number of the handle */
/* NULL: there is no such handle. */
struct volfs_file *volfs_file_of(struct volfs *v, uint64_t id);
int volfs_check_locks(const struct volfs_file *f); /* EIO: the session of its locks is over */
/* Were bytes of this handle lost with the process that had them, and has no fsync told it?
 * The EIO of a write does not count as told: the kernel sends a write(2) in parts, and hides the
 * error of a later part.  Nor does that of a close: a child may have closed its copy of the
 * descriptor. */
bool volfs_is_lost(const struct volfs_file *f);
/* Of a write: EIO once for such bytes, or as volfs_check_locks(). */
int volfs_check_write(struct volfs_file *f);
/* Of an fsync: `tell` gives the program the error, and then the loss is forgotten.  A process that
 * dies in between leaves it to be told.  False: there is nothing to tell. */
bool volfs_tell_lost(struct volfs_file *f, void (*tell)(void *context), void *context);
bool volfs_appends(const struct volfs_file *f);
/* Also flushes; what fails then is logged. */
void volfs_closefile(struct volfs_file *f);

struct volfs_range {
    int64_t offset;
    size_t size;
    bool (*interrupted)(void *context);
    void *context;
};
/* The number of bytes; fewer at the end of the file. */
ssize_t volfs_read(struct volfs_file *f, const struct volfs_range *r, void *to);
ssize_t volfs_write(struct volfs_file *f, const struct volfs_range *r, const void *from);
/* At the end that the file has when the bytes are committed: also with other mounts that append, no
 * byte is overwritten.  What one call appends stays together. */
ssize_t volfs_append(struct volfs_file *f, const void *from, size_t size);
/* The set-id bits of the file end with what was written. */
void volfs_drop_setid(struct volfs_file *f);
/* A range of the file and the disk cache, without one the disks of the group's members.  With
 * `fetch` what is missing is fetched, and written before the call returns.  EOPNOTSUPP: there is
 * neither cache nor group; ENOSPC: the cache has not taken all; EIO: a member has not. */
struct volfs_warm {
    uint64_t offset, size;
    bool fetch;
    uint64_t had_bytes, has_bytes; /* of the range, filled: before and now */
};
int volfs_warm(struct volfs_file *f, struct volfs_warm *w);
/* What was written through any handle of the inode is durable, and seen by all clients.  EDQUOT,
 * ENOSPC, once for each handle: a quota or the volume's limit has refused bytes, which are lost. */
int volfs_flush(struct volfs_file *f);
/* The same, but what is refused is no error: the next write or flush of each handle tells it. */
int volfs_settle(struct volfs_file *f);

/* fallocate(2), as volume_allocate(); and lseek(2), as volume_seek(). */
int volfs_allocate(struct volfs_file *f, unsigned mode, int64_t at, uint64_t length);
int volfs_seek(struct volfs_file *f, int64_t at, bool hole, int64_t *out);

/* ---- directories ---- */

struct volfs_directory;

struct volfs_entry {
    const char *name;
    uint64_t next;   /* where to go on behind it */
    struct stat st;  /* st_ino and the type at least */
    bool known;      /* all of st: this mount has not changed it since it was read */
    uint64_t age_ms; /* since then: what other mounts have changed meanwhile is not in it */
};

int volfs_opendir(struct volfs *v, uint64_t ino, struct volfs_directory **directory);
uint64_t volfs_directory_id(const struct volfs_directory *d);
struct volfs_directory *volfs_directory_of(struct volfs *v, uint64_t id); /* NULL: none */
/* As vfs_readdir(): fill says whether there was room.  offset 0, or a `next`. */
int volfs_readdir(struct volfs_directory *d, uint64_t offset,
                  bool (*fill)(void *context, const struct volfs_entry *e), void *context);
void volfs_closedir(struct volfs_directory *d);
