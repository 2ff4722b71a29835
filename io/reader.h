/* Reading the files of one disk without waiting for it.
 *
 * A thread that serves many clients must not wait for a disk.  It takes what the kernel has in
 * memory, and hands the rest to the disk's readers, a few threads that may wait:
 *
 *     reader_open_now()    directory entries and inode are in memory ── no ──┐
 *     reader_pread_now()   the bytes are                             ── no ──┼─▶ reader_submit(fn)
 *     reader_has()         the bytes are: sendfile does not wait     ── no ──┘     │
 *                                                                                  ▼
 *                          fn() in a reader's thread: open, reader_pread(), reader_fetch()
 *
 * What a disk that is slow, or hangs, can hold up is then its own readers, and nobody else.
 *
 * "In memory" is asked, not guarded: between the answer and the use pages may be dropped, and
 * whoever uses them waits after all.  The kernel drops what was used last, last, so this is rare.
 * A file system that lives in memory (tmpfs) is never asked; one that cannot say (FUSE, NFS) is
 * always read by the readers.  Kernels and sandboxes that lack a call: reader.c.
 *
 * References are counted, for a reply may outlast the mountpath that it reads from.
 * Fault points, with the disk's path as their place: disk.cold (nothing is in memory), disk.read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"

struct reader;
struct meter;

/* What reader_has() and reader_fetch() are asked for at once, at most; it is good to ask for so
 * much. */
enum { READER_PIECE_BYTES = 2 * 1024 * 1024 };

/* For the file system that `path` lies on. */
int reader_new(const char *path, unsigned threads, size_t queue_max, struct reader **out,
               struct error *err);
struct reader *reader_ref(struct reader *r);
void reader_unref(struct reader *r);
/* Runs what is queued and ends the threads; reader_submit() refuses from then on.  Drops a
 * reference. */
void reader_close(struct reader *r);
DEFINE_CLEANUP(struct reader, reader_close);
/* Before anybody reads: what its threads do is measured.  NULL: nothing is. */
void reader_measure(struct reader *r, struct meter *m);
struct meter *reader_meter(const struct reader *r);

/* --- without waiting -------------------------------------------------------------------------- */
/* As openat() with O_RDONLY; -1 with EAGAIN where it would wait. */
int reader_open_now(struct reader *r, int dir_fd, const char *path);
/* The bytes that are in memory, from `offset` on, as far as they are: len of them, fewer, or none.
 */
size_t reader_pread_now(struct reader *r, int fd, void *out, size_t len, uint64_t offset);
bool reader_has(struct reader *r, int fd, uint64_t offset, size_t len);

/* --- waiting ---------------------------------------------------------------------------------- */
/* fn(arg) in one of the threads.  E_OVERLOAD: the queue is full; E_CANCELLED: closed. */
int reader_submit(struct reader *r, void (*fn)(void *arg), void *arg, struct error *err);
/* Is this thread a reader's? */
bool reader_may_wait(void);
/* In such a thread.  Exactly len bytes; E_LENGTH when the file ends before. */
int reader_pread(struct reader *r, int fd, void *out, size_t len, uint64_t offset,
                 struct error *err);
/* Brings a piece of a file into memory, and lets the kernel begin with the one behind it. */
int reader_fetch(struct reader *r, int fd, uint64_t offset, size_t len, struct error *err);
