/* The streams of one task, and the one way in which all its waits end.
 *
 * A link is this task's end of a bounded pipe.  Reading and writing wait, as with the pipe itself,
 * but links_stop() ends every wait, from any thread: the pipe's own calls can only be ended by the
 * other side.  Incoming streams, which the host's threads bring, wait in numbered slots until the
 * task comes for them.
 *
 * Locks: one for the whole; a pipe's wake-up takes it, so nothing here calls a pipe under it. */
#pragma once

#include "common/cleanup.h"
#include "common/error.h"
#include "io/bpipe.h"
#include "sort/base/codec.h"

struct links;
struct link;

struct links *links_new(unsigned slots);
void links_free(struct links *l); /* all its links are freed */
DEFINE_CLEANUP(struct links, links_free);

/* Ends every wait, now and later, with this error; the first call's counts.  Streams that nobody
 * has taken are cancelled. */
void links_stop(struct links *l, const struct error *why);
int links_check(const struct links *l, struct error *err); /* 0, or why it was stopped */

/* A stream has come (takes a reference of the pipe).  E_JOB_STATE where the slot has had one. */
int links_offer(struct links *l, unsigned slot, struct bpipe *pipe, struct error *err);
/* Waits for the slot's stream. */
int links_take(struct links *l, unsigned slot, struct link **out, struct error *err);

/* Both take over the caller's reference of the pipe. */
struct link *link_reader(struct links *l, struct bpipe *pipe);
struct link *link_writer(struct links *l, struct bpipe *pipe);
struct source source_link(struct link *k);
struct sink sink_link(struct link *k);
/* A writer's end: of the data, or with the error that the reader shall get. */
void link_finish(struct link *k, const struct error *error_or_null);
/* A reader that has not come to the end cancels; a writer that has not finished says why. */
void link_free(struct link *k);
DEFINE_CLEANUP(struct link, link_free);
