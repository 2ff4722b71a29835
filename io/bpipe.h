/* A bounded pipe of bytes between two threads: where a stream crosses from one that must not
 * block (an HTTP thread, a loop) to one that may (a job's worker), or between two that must not.
 * Backpressure is the bound.
 *
 *              bpipe_write  / bpipe_try_write          bpipe_read / bpipe_try_read
 *   writer  ──────────────────────────────▶  ring  ──────────────────────────────▶  reader
 *                      on_space  ◀──────  wakes  ──────▶  on_data
 *
 * One writer, one reader.  The blocking calls wait; the try_ calls return BPIPE_AGAIN and the
 * callback is called once when it is worth trying again.  Callbacks run in the other side's
 * thread, without the pipe's data lock; they do no more than post or wake, and never call the pipe.
 * bpipe_on_space/on_data(p, NULL, NULL) is a barrier: when it returns the callback is not running
 * and will not run again, so that what it points to may go.
 * A message that the callback posted may still be on its way then: who tries again without waiting
 * for a wake-up that is due is woken later all the same, perhaps after the end.
 * The writer ends with bpipe_finish (0: end of data; or an error the reader will get after the
 * bytes); the reader leaves with bpipe_cancel (the writer gets that code).  Reference-counted:
 * bpipe_new gives one reference, each side drops its own. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"

struct bpipe;

enum {
    BPIPE_AGAIN = -1, /* would wait */
    BPIPE_END = 0,    /* reading: no more bytes */
};

struct bpipe *bpipe_new(size_t capacity_bytes);
struct bpipe *bpipe_ref(struct bpipe *p);
void bpipe_unref(struct bpipe *p);
DEFINE_CLEANUP(struct bpipe, bpipe_unref);

/* Before the first bytes, by the side it concerns. */
void bpipe_on_space(struct bpipe *p, void (*fn)(void *arg), void *arg);
void bpipe_on_data(struct bpipe *p, void (*fn)(void *arg), void *arg);

/* Blocking: all of it, or the code of the reader's cancel (E_CANCELLED, E_ABORTED, ...). */
int bpipe_write(struct bpipe *p, const void *data, size_t len, struct error *err);
/* > 0 bytes taken (on_space comes when they were not all, as after BPIPE_AGAIN), BPIPE_AGAIN, or an
 * error code (< E_END_, never BPIPE_AGAIN). */
ssize_t bpipe_try_write(struct bpipe *p, const void *data, size_t len, struct error *err);
/* 0: end of data.  Otherwise the error the reader gets after the remaining bytes. */
void bpipe_finish(struct bpipe *p, const struct error *error_or_null);

/* Blocking: 1..len bytes, 0 at the end, or the writer's error code. */
ssize_t bpipe_read(struct bpipe *p, void *out, size_t len, struct error *err);
/* Blocking: exactly len bytes; E_LENGTH when the stream ends before. */
int bpipe_read_full(struct bpipe *p, void *out, size_t len, struct error *err);
/* As bpipe_read, or BPIPE_AGAIN. */
ssize_t bpipe_try_read(struct bpipe *p, void *out, size_t len, struct error *err);
void bpipe_cancel(struct bpipe *p, const struct error *why);

/* Either side, at any time: 0, or why the pipe leads nowhere: the reader has cancelled, or the
 * writer has finished with an error (which the reader otherwise gets after the bytes). */
int bpipe_check(struct bpipe *p, struct error *err);
