/* A mounted bucket: what each call of a file system does, without FUSE.
 *
 * Nodes are numbers that vfs_lookup() and vfs_adopt() hand out with one use each, which
 * vfs_forget() gives back; 1 is the root.  Handles have numbers, too.  After a crash a process with
 * the same ledger knows all of them.  Functions return 0 or -errno.  Any thread may call; a
 * directory's handle belongs to one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "api/dfc.h"
#include "common/error.h"
#include "mount/group/reader.h"
#include "mount/vfs/backings.h"
#include "mount/write/writer.h"

struct vfs_options {
    const char *bucket;
    const char *prefix;       /* "" or ends with '/' */
    uint64_t buffer_bytes;    /* all data in memory */
    uint64_t readahead_bytes; /* the largest window of one handle */
    unsigned fetchers;        /* requests for data at once */
    uid_t uid;
    gid_t gid;
    mode_t file_mode, directory_mode;  /* permissions */
    const char *cache_directories;     /* "DIR:DIR…"; NULL: no disk cache */
    uint64_t cache_bytes;              /* of all of them */
    uint64_t cache_free_percent;       /* of their file systems, that stays free */
    uint64_t cache_idle_ms;            /* data sets that were not read for so long leave first */
    struct group_reader_options group; /* its group, NULL: none; key file and times */
    bool writable;
    struct writers_options writing; /* if it is writable */
    int64_t opened_s;               /* directories' time */
    int ledger;                     /* ledger_memory(), also of processes before; -1: none */
    pid_t supervisor;               /* the parent, which starts another process after a crash */
};

struct vfs;

/* The bucket must exist.  The client is borrowed. */
int vfs_open(const struct vfs_options *options, struct dfc_client *client, struct vfs **vfs,
             struct dfc_error *err);
/* No call may be running; what is open is closed.  NULL is fine. */
void vfs_close(struct vfs *v);

/* From now on the kernel reads objects itself that the disk cache has in one file.  Before the
 * first open. */
void vfs_let_pass(struct vfs *v, const struct backings *backings);

/* ---- names and attributes ---- */

int vfs_lookup(struct vfs *v, uint64_t parent, const char *name, uint64_t *node);
void vfs_forget(struct vfs *v, uint64_t node, uint64_t uses);
void vfs_getattr(struct vfs *v, uint64_t node, struct stat *st);
/* The file is being written: its attributes change, and its name will be another node. */
bool vfs_is_draft(struct vfs *v, uint64_t node);
int vfs_statfs(struct vfs *v, struct statvfs *out);

/* The value, or the names one after another, each with its NUL; malloc'ed.  ENODATA: no such. */
int vfs_getxattr(struct vfs *v, uint64_t node, const char *name, char **value, size_t *size);
int vfs_listxattr(struct vfs *v, uint64_t node, char **names, size_t *size);

/* ---- names that come and go; EROFS where the mount is not writable ---- */

int vfs_unlink(struct vfs *v, uint64_t parent, const char *name);
int vfs_mkdir(struct vfs *v, uint64_t parent, const char *name, uint64_t *node);
int vfs_rmdir(struct vfs *v, uint64_t parent, const char *name);

struct vfs_rename {
    uint64_t parent;
    const char *name;
    uint64_t new_parent;
    const char *new_name;
};
/* Of a file.  EXDEV: it is a directory; EBUSY: this mount is writing it. */
int vfs_rename(struct vfs *v, const struct vfs_rename *r);

/* ---- directories ---- */

struct vfs_directory;

struct vfs_entry {
    const char *name;
    bool is_directory;
    bool is_known; /* vfs_adopt() gives its node */
    uint64_t inode;
    uint64_t next; /* where to go on behind it */
    struct vfs_directory *directory;
};

int vfs_opendir(struct vfs *v, uint64_t node, struct vfs_directory **directory);
/* Calls fill for each entry from `offset` on, until it says that there is no more room (false): the
 * entry comes again.  offset 0, or a `next`. */
int vfs_readdir(struct vfs_directory *d, uint64_t offset,
                bool (*fill)(void *context, const struct vfs_entry *e), void *context);
/* The next vfs_readdir() that does not begin anew fails with rc: entries before it were given. */
void vfs_readdir_failed(struct vfs_directory *d, int rc);
/* The entry's node, as a lookup would give it, from within fill; 0: there is no room for it. */
uint64_t vfs_adopt(const struct vfs_entry *e);
void vfs_closedir(struct vfs_directory *d);
uint64_t vfs_directory_id(const struct vfs_directory *d);
struct vfs_directory *vfs_directory_of(struct vfs *v, uint64_t id); /* NULL: none */

/* ---- files ---- */

struct vfs_file;

/* ESTALE: the node's version is not the object's any more; look its name up again.  Of a draft the
 * object's present version is read, which is not what the node's attributes say; EBUSY: there is
 * none.  request: the kernel's number, or 0. */
int vfs_openfile(struct vfs *v, uint64_t node, uint64_t request, struct vfs_file **file);
/* What the process before has opened for this request of the kernel, which has not heard of it and
 * sends the request again.  NULL: nothing. */
struct vfs_file *vfs_file_again(struct vfs *v, uint64_t request);

struct vfs_read {
    uint64_t offset;
    size_t size;
    bool (*interrupted)(void *context);
    void *context;
};
/* Bytes into `to`, fewer at the end of the file; ESTALE: the version is gone, and not buffered. */
ssize_t vfs_read(struct vfs_file *f, const struct vfs_read *r, void *to);
void vfs_closefile(struct vfs_file *f);
uint64_t vfs_file_id(const struct vfs_file *f);
int vfs_file_backing(const struct vfs_file *f); /* what the kernel reads; 0: vfs_read() does */
struct vfs_file *vfs_file_of(struct vfs *v, uint64_t id); /* NULL: none */

struct vfs_warm {
    uint64_t offset, size; /* of the file */
    bool fetch;            /* what is missing */
    /* Filled: bytes of the range that the disk cache, without one the group, had and has now. */
    uint64_t had_bytes, has_bytes;
};
/* 0 or -errno, also with the range partly cached.  EOPNOTSUPP: the mount has neither a disk cache
 * nor a group, or the object no entity tag. */
int vfs_warm(struct vfs_file *f, struct vfs_warm *w);

/* ---- files that are written: whole, from the first byte to the last ---- */

struct vfs_create {
    uint64_t parent;
    const char *name;
    int flags;       /* of open(2) */
    int64_t process; /* that opens, or 0 */
};
/* A name that is new: its node with a use.  The object appears when it is stored. */
int vfs_create(struct vfs *v, const struct vfs_create *c, uint64_t *node, struct vfs_file **file);
/* ESTALE: look its name up again, and open what it is then.  EOPNOTSUPP: the flags neither empty
 * the file nor find it empty; or they append.  EBUSY: this mount is writing it. */
int vfs_openwrite(struct vfs *v, uint64_t node, int flags, int64_t process, struct vfs_file **file);
bool vfs_is_written(const struct vfs_file *f);
int64_t vfs_process(const struct vfs_file *f); /* of a file that is written, as inode */
uint64_t vfs_inode(const struct vfs_file *f);
/* Bytes taken, fewer after an interruption; -errno as of writer_append(). */
ssize_t vfs_write(struct vfs_file *f, const struct vfs_read *r, const void *from);
/* What was written becomes the object; nothing to do for a file that is read.  ESTALE: another
 * client has changed the object since the open.  EIO: what was written died with the process. */
int vfs_store(struct vfs_file *f);
/* What was written is given up.  vfs_closefile() stores what neither of the two has seen. */
void vfs_drop(struct vfs_file *f);
/* 0 if the file has this size, else EOPNOTSUPP. */
int vfs_resize(struct vfs *v, uint64_t node, uint64_t size);
