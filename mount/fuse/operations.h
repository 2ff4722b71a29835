/* The table of calls that session.c gives to libfuse, and what its files share. */
#pragma once

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

#include "mount/fuse/link.h"
#include "mount/fuse/tickets.h"

struct image;
struct locks;
struct lost;
struct plogs;
struct vfs;
struct volfs;

/* What libfuse hands to each call. */
struct operations {
    struct vfs *vfs;     /* of a bucket */
    struct volfs *volfs; /* of a volume */
    struct image *image; /* of a dataset image */
    struct plogs *plogs; /* of a bucket of plogs */
    struct locks *locks; /* of a volume */
    struct lost *lost;   /* of a volume, as long as the kernel has lost bytes */
    struct fuse_session *fuse;
    int fuse_fd;      /* of the kernel's connection */
    pid_t supervisor; /* the parent, while it lives */
    double attr_ttl_s, entry_ttl_s;
    bool writable;
    uint64_t device; /* of the file system; 0: it is not known */
    struct link link;
    struct tickets tickets; /* of a volume */
};

extern const struct fuse_lowlevel_ops operations_table;        /* of a bucket */
extern const struct fuse_lowlevel_ops volume_operations_table; /* volume_operations.c */
extern const struct fuse_lowlevel_ops image_operations_table;  /* image_operations.c */
extern const struct fuse_lowlevel_ops plog_operations_table;   /* plog_operations.c */

struct vfs *operations_vfs(fuse_req_t req);     /* NULL: not of a bucket */
struct volfs *operations_volfs(fuse_req_t req); /* NULL: not of a volume */
uint64_t operations_device(fuse_req_t req);
bool operations_interrupted(void *req);
/* Until interrupts_end(): the cluster is waited for no longer than the caller lives. */
void operations_waits(fuse_req_t req);
/* The node's attributes, as long as the kernel may keep them. */
struct fuse_entry_param operations_entry(fuse_req_t req, uint64_t node);
void operations_reply_entry(fuse_req_t req,
                            uint64_t node); /* of a node with a use for the kernel */
void operations_reply_attr(fuse_req_t req, uint64_t node);
/* The value of an attribute, or the names of all; with any rc but 0, this error.  A caller without
 * room asks for the size; one with too little room gets ERANGE. */
void operations_reply_value(fuse_req_t req, int rc, const void *value, size_t size, size_t room);

/* Of a volume, around a call that changes names or attributes.  True: the
 * process before has made it, and died before the kernel heard of that.  After the reply comes
 * volume_call_end(). */
bool operations_call_begin(fuse_req_t req);

/* ---- changes.c: what changes something ---- */

void change_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void change_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void change_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void change_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                   const char *new_name, unsigned flags);
void change_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void change_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char *name);
void change_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void change_setattr(fuse_req_t req, fuse_ino_t node, struct stat *to, int which,
                    struct fuse_file_info *fi);
void change_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *fi);
void change_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void change_write(fuse_req_t req, fuse_ino_t node, const char *from, size_t size, off_t offset,
                  struct fuse_file_info *fi);
void change_flush(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi);
void change_fsync(fuse_req_t req, fuse_ino_t node, int datasync, struct fuse_file_info *fi);

/* ---- control.c: what programs ask by ioctl ---- */

void control_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
                   struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                   size_t out_size);

/* ---- volume_control.c: the same, of a volume ---- */

void volume_control_ioctl(fuse_req_t req, fuse_ino_t node, unsigned command, void *arg,
                          struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                          size_t out_size);
