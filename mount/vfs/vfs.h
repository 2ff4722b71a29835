/* A mounted bucket: what each call of a file system does, without FUSE.
 *
 * Nodes are numbers that vfs_lookup() and vfs_adopt() hand out with one use each, which
 * vfs_forget() gives back; 1 is the root.  Functions return 0 or -errno.  Any thread may call; a
 * directory's handle belongs to one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "api/dfc.h"
#include "common/error.h"

struct vfs_options {
    const char *bucket;
    const char *prefix;       /* "" or ends with '/' */
    uint64_t buffer_bytes;    /* all data in memory */
    uint64_t readahead_bytes; /* the largest window of one handle */
    unsigned fetchers;        /* requests for data at once */
    uid_t uid;
    gid_t gid;
    mode_t file_mode, directory_mode; /* permissions */
};

struct vfs;

/* The bucket must exist.  The client is borrowed. */
int vfs_open(const struct vfs_options *options, struct dfc_client *client, struct vfs **vfs,
             struct dfc_error *err);
/* No call may be running; what is open is closed.  NULL is fine. */
void vfs_close(struct vfs *v);

/* ---- names and attributes ---- */

int vfs_lookup(struct vfs *v, uint64_t parent, const char *name, uint64_t *node);
void vfs_forget(struct vfs *v, uint64_t node, uint64_t uses);
void vfs_getattr(struct vfs *v, uint64_t node, struct stat *st);
int vfs_statfs(struct vfs *v, struct statvfs *out);

/* The value, or the names one after another, each with its NUL; malloc'ed.  ENODATA: no such. */
int vfs_getxattr(struct vfs *v, uint64_t node, const char *name, char **value, size_t *size);
int vfs_listxattr(struct vfs *v, uint64_t node, char **names, size_t *size);

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
/* The entry's node, as a lookup would give it: from within fill. */
uint64_t vfs_adopt(const struct vfs_entry *e);
void vfs_closedir(struct vfs_directory *d);

/* ---- files ---- */

struct vfs_file;

/* ESTALE: the node's version is not the object's any more; look its name up again. */
int vfs_openfile(struct vfs *v, uint64_t node, struct vfs_file **file);

struct vfs_read {
    uint64_t offset;
    size_t size;
    bool (*interrupted)(void *context);
    void *context;
};
/* Bytes into `to`, fewer at the end of the file; ESTALE: the version is gone, and not buffered. */
ssize_t vfs_read(struct vfs_file *f, const struct vfs_read *r, void *to);
void vfs_closefile(struct vfs_file *f);
