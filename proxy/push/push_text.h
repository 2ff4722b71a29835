/* The texts of pushes: each is made once, in a thread of its own, for all nodes that get it.
 *
 * The text that brings state `to` to a node that holds `from` (NULL: the whole) is kept as long as
 * a call sends it, or `to` is the state that was asked for last.  All functions and callbacks are
 * of one loop's thread; the text itself does not change until it is dropped. */
#pragma once

#include <stddef.h>

#include "cluster/documents/state.h"
#include "io/loop.h"
#include "io/pool.h"

struct push_text;  /* one text; counted */
struct push_texts; /* those of a publisher */

/* The pool makes the texts.  It ends before the loop does, so that each text comes back. */
struct push_texts *push_texts_new(struct loop *loop, struct pool *pool);
/* Whoever waits is told E_CANCELLED.  Nobody may ask after this. */
void push_texts_close(struct push_texts *pt);
/* After push_texts_close().  The memory stays until the last text that is being made is back. */
void push_texts_free(struct push_texts *pt);

/* fn(arg) once, now or later: the text, for push_text_drop(); or NULL and why not, E_OVERLOAD or
 * E_CANCELLED. */
void push_texts_ask(struct push_texts *pt, const struct cluster_state *from,
                    const struct cluster_state *to,
                    void (*fn)(void *arg, struct push_text *text, const struct error *err),
                    void *arg);

const char *push_text_data(const struct push_text *t);
size_t push_text_len(const struct push_text *t);
void push_text_drop(struct push_text *t);
