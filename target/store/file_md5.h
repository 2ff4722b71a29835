/* The MD5 of a file that is being written.  A pool's threads read the file out of the page cache
 * while its writer goes on, so that the writer never waits for MD5, which is slower than the rest
 * of a write.
 *
 *   writer   new ─▶ wrote, wrote, … ─▶ end ──────────────────────────▶ fn(): result ─▶ unref
 *                     │ 1 MiB more                                        ▲
 *   pool              └▶ read what there is, digest it, … ── caught up ───┘
 *
 * The writer computes the digest of a small file itself: a thread would cost more than the MD5.  At
 * most one thread of the pool works for a file, and leaves it when it has caught up.
 *
 * A thread reads up to MD5_LANES files at once, side by side (common/md5.h).  It takes those that
 * wait whenever it has a free lane.  So idle threads have a file each, and busy ones several. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"

struct file_md5;
struct pool;

/* The threads, and the files that wait for one. */
struct hashers;

/* Takes the pool. */
struct hashers *hashers_new(struct pool *threads);
/* Every file_md5 has been left before.  NULL is fine. */
void hashers_free(struct hashers *h);

enum { FILE_MD5_SMALL = 64 * 1024 };

/* Of the bytes from `offset` on.  `size`: how many there will be, or UINT64_MAX.  The descriptor
 * stays the caller's. */
int file_md5_new(struct hashers *hashers, int fd, uint64_t offset, uint64_t size,
                 struct file_md5 **out, struct error *err);
/* These bytes were written, behind those before.  One thread at a time. */
void file_md5_wrote(struct file_md5 *m, const void *data, size_t len);
/* All bytes are written, or `why` tells why not (else NULL).  Calls fn once, from this thread or
 * one of the pool. */
void file_md5_end(struct file_md5 *m, const struct error *why, void (*fn)(void *arg), void *arg);
/* In hex, from fn() on.  An error is that of end(), of a read, or E_OVERLOAD of the pool. */
int file_md5_result(const struct file_md5 *m, char hex[static 2 * CHECKSUM_MAX + 1],
                    struct error *err);
/* The writer has no more use for it.  NULL is fine. */
void file_md5_unref(struct file_md5 *m);
