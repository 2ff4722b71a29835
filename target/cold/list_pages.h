/* Pages of backends' lists that one target has read for a job, kept for the other targets: each of
 * them goes through the same list, and the backend is asked once.
 *
 *   ask(key) ─▶ it is kept: fn() at once
 *            ─▶ somebody reads it: fn() when it has been read
 *            ─▶ neither: the asker reads it, and says so by list_pages_read(), which calls fn() of
 *               all who have asked meanwhile, its own first
 *
 * What is kept has a bound in bytes; the page that was used least recently goes first, and is read
 * again when somebody comes for it.  A failure goes to those who wait for that page, and is not
 * kept.  What was read for a job is forgotten with it.
 *
 * Threads: any.  fn() is called without a lock, by who asks or by who has read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct list_pages;
struct list_reading; /* a page that is being read */

struct list_asker {
    struct list_asker *next;
    /* One of text and err is NULL; both are the caller's.  The asker may be gone after it. */
    void (*fn)(struct list_asker *a, const struct buf *text, const struct error *err);
};

struct list_wanted {
    const char *job;
    const void *key; /* the same key: the same text */
    size_t key_len;
    uint64_t now_ms;
    uint64_t max_age_ms; /* a page whose reading began earlier does not do; 0: any does */
};

struct list_pages *list_pages_new(uint64_t max_bytes);
void list_pages_free(struct list_pages *p); /* nothing is being read; NULL is fine */

/* NULL: fn() has been called, or will be.  Else the caller is to read the page. */
struct list_reading *list_pages_ask(struct list_pages *p, const struct list_wanted *w,
                                    struct list_asker *asker);
/* Ends a reading; takes the text, which becomes empty.  err: NULL, or why there is none. */
void list_pages_read(struct list_pages *p, struct list_reading *r, struct buf *text,
                     const struct error *err);
/* Forgets the pages of jobs that are over; who waits for one gets it still. */
void list_pages_forget(struct list_pages *p, bool (*is_over)(const void *ctx, const char *job),
                       const void *ctx);
uint64_t list_pages_bytes(struct list_pages *p);
