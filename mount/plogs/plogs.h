/* A mounted bucket of plogs (plog/client/dfc_plog.h): what each call of a file system does, without
 * FUSE.
 *
 * Nodes are numbers that plogs_lookup() and plogs_create() hand out with one use each, which
 * plogs_forget() gives back; 1 is the root.  Functions return 0 or -errno.  Any thread may call; a
 * directory's handle belongs to one thread at a time.
 *
 * Objects that are no plogs are files, too: they are read, renamed and removed.  An open for
 * writing is EOPNOTSUPP, but with O_TRUNC it makes a plog of the name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "api/dfc.h"

struct plogs_options {
    const char *bucket;
    const char *prefix; /* "" or ends with '/' */
    uid_t uid;          /* of directories */
    gid_t gid;
    mode_t directory_mode;
    bool read_only;
    uint64_t segment_bytes;
    unsigned inflight;     /* segments of a file that are stored at once */
    uint64_t memory_bytes; /* of all writers */
    uint64_t refresh_ms;   /* of the records of open files */
    uint64_t buffer_bytes; /* of what is read, with what waits for the disk cache */
    uint64_t readahead_bytes;
    unsigned fetchers;             /* requests for data at once */
    const char *cache_directories; /* "DIR:DIR…"; NULL: no disk cache */
    uint64_t cache_bytes, cache_free_percent, cache_idle_ms;
    pid_t supervisor;
};

struct plogs;

/* The bucket must exist.  The client is borrowed, as are the texts. */
int plogs_open(const struct plogs_options *options, struct dfc_client *client, struct plogs **out,
               struct dfc_error *err);
/* No call may be running.  What is open is closed: 0, or -errno of the first close that failed,
 * which is in the log.  NULL is fine. */
int plogs_close(struct plogs *p);

/* ---- names and attributes ---- */

int plogs_lookup(struct plogs *p, uint64_t parent, const char *name, uint64_t *node,
                 struct stat *st);
void plogs_forget(struct plogs *p, uint64_t node, uint64_t uses);
int plogs_getattr(struct plogs *p, uint64_t node, struct stat *st);
int plogs_statfs(struct plogs *p, struct statvfs *out);
/* malloc'ed.  ENODATA */
int plogs_getxattr(struct plogs *p, uint64_t node, const char *name, char **value);
/* One after another, each with its NUL; malloc'ed. */
void plogs_listxattr(struct plogs *p, uint64_t node, char **names, size_t *size);

struct plogs_change {
    bool sets_mode, sets_uid, sets_gid, sets_size, sets_mtime;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    uint64_t size, mtime_ms;
};
/* Of a directory nothing changes. */
int plogs_setattr(struct plogs *p, uint64_t node, const struct plogs_change *change,
                  struct stat *st);

/* ---- names that come and go ---- */

int plogs_mkdir(struct plogs *p, uint64_t parent, const char *name, uint64_t *node,
                struct stat *st);
int plogs_rmdir(struct plogs *p, uint64_t parent, const char *name);
int plogs_unlink(struct plogs *p, uint64_t parent, const char *name);
/* Of a file.  EXDEV: it is a directory. */
int plogs_rename(struct plogs *p, uint64_t parent, const char *name, uint64_t new_parent,
                 const char *new_name);

/* ---- directories ---- */

struct plogs_directory;

struct plogs_entry {
    const char *name;
    bool is_directory;
    uint64_t inode;
    uint64_t next; /* where to go on behind it */
};
int plogs_opendir(struct plogs *p, uint64_t node, struct plogs_directory **out);
/* Calls fill for each entry from `offset` on, until it says that there is no more room (false).
 * offset 0 lists anew. */
int plogs_readdir(struct plogs_directory *d, uint64_t offset,
                  bool (*fill)(void *context, const struct plogs_entry *e), void *context);
void plogs_closedir(struct plogs_directory *d);

/* ---- files ---- */

struct plogs_file;

struct plogs_create {
    uint64_t parent;
    const char *name;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    int flags;
};
int plogs_create(struct plogs *p, const struct plogs_create *c, uint64_t *node, struct stat *st,
                 struct plogs_file **file);
int plogs_openfile(struct plogs *p, uint64_t node, int flags, struct plogs_file **file);
/* Does the mount write the file?  Then no page of it may be cached. */
bool plogs_is_written(struct plogs_file *f);
ssize_t plogs_read(struct plogs_file *f, void *to, size_t size, uint64_t offset);
int plogs_write(struct plogs_file *f, const void *data, size_t size, uint64_t offset);
int plogs_fsync(struct plogs_file *f);
/* At each close of a descriptor: what was written is synced, and merged if no one else writes. */
int plogs_flush(struct plogs_file *f);
void plogs_closefile(struct plogs_file *f);
