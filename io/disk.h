/* The I/O thread of one mountpath: it owns an io_uring and runs what others hand it.
 *
 * Operations complete in the disk's thread by op->done(op, result), result being the byte count
 * or -errno.  Reads and writes are carried on over short results: a write is all of it or an
 * error, a read is all of it unless the file ends before.  A DISK_CALL op runs a function in the
 * disk's thread (mkdir, rename: what the ring cannot do or what must follow a sync).  When
 * io_uring is not to be had (ENOSYS, EPERM, memlock) the same thread does the same with plain
 * calls, and disk_backend() says so.
 *
 * Queue depth is bounded: disk_submit waits while `depth` operations are outstanding, so it must
 * not be called from the disk's own thread (a done callback submits with disk_submit_next).
 * An op and its data belong to the disk from submission to done(), and to done() from then on.
 * Fault points: disk.read, disk.write, disk.sync. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

struct disk;
struct meter;

enum disk_op_kind {
    DISK_READ,
    DISK_WRITE,
    DISK_WRITE_BACK, /* the file's bytes go to the disk; it may still keep them in its memory */
    DISK_FDATASYNC,
    DISK_FSYNC,
    DISK_CALL,
};

struct disk_op {
    enum disk_op_kind kind;
    int fd;
    void *data;
    size_t len; /* at most INT_MAX */
    uint64_t offset;
    int (*call)(struct disk_op *op); /* DISK_CALL: returns >= 0 or -errno */
    /* Of a sync, or NULL: the fault point at which a test leaves it out, or has it fail. */
    const char *point;
    void (*done)(struct disk_op *op, int result);
    void *ctx;
    /* The disk's own. */
    size_t moved_;
    uint64_t began_us_;
    struct disk_wait *wait_;
    struct disk_op *next_;
};

/* The file's bytes begin their way to the disk, and are not waited for: a later sync has less to
 * do, and finds the errors. */
void disk_write_begin(int fd);

int disk_open(const char *thread_name, unsigned depth, struct disk **out, struct error *err);
/* Without io_uring, where an operator or a test does not want it. */
int disk_open_plain(const char *thread_name, unsigned depth, struct disk **out, struct error *err);
/* Before anything is submitted: what it does is measured (io/meter.h).  NULL: nothing is. */
void disk_measure(struct disk *d, struct meter *m);
void disk_free(struct disk *d); /* completes what is outstanding */
void disk_submit(struct disk *d, struct disk_op *op);
/* From done() only, and at most once in each: the new op takes the place of the ended one. */
void disk_submit_next(struct disk *d, struct disk_op *op);
/* Submits and waits: the result.  `done` is not called. */
int disk_run(struct disk *d, struct disk_op *op);
const char *disk_backend(const struct disk *d); /* "io_uring" or "threads (why)" */
