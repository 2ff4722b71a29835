/* Segments of one handle on their way: each is stored by a thread of its own.  One thread at a time
 * calls, which is the one that has the handle's lock. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "plog/store.h"

struct sender;

/* The store is copied; its put() is called by many threads.  most: objects at once, 1 or more. */
struct sender *sender_new(const struct plog_store *st, unsigned most);
/* The store's send() and flush(). */
int sender_send(struct sender *s, const char *name, struct buf *body, struct error *err);
int sender_flush(struct sender *s, struct error *err);
size_t sender_bytes(const struct sender *s); /* on their way, not stored */
void sender_free(struct sender *s);          /* waits for the threads; NULL is fine */
