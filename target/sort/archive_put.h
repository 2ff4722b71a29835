/* The output of a job `archive` that makes one object: it is stored as if a client had put it
 * there, whole, whichever way its bucket keeps objects, and takes the place of what had its name.
 * Where the builder's target keeps the only copy, it writes into the store (jobs/made_here.h).
 * Else it writes into a pipe, out of which a thread of the output feeds a PUT.
 *
 * From begin to finish or discard one thread owns an output; archive_puts_stop() may come from any.
 */
#pragma once

#include "sort/base/env.h"
#include "target/sort/part.h"

struct archive_puts;

struct archive_puts *archive_puts_new(const struct sort_part *part);
void archive_puts_stop(struct archive_puts *a); /* what is under way, and later ones: E_ABORTED */
void archive_puts_free(struct archive_puts *a);

/* As struct sort_env says of outputs.  What may pass is E_NET: the job begins again. */
int archive_put_begin(struct archive_puts *a, const char *name, struct sort_output **out,
                      struct error *err);
int archive_put_write(struct sort_output *out, const void *data, size_t len, struct error *err);
int archive_put_finish(struct sort_output *out, struct error *err);
void archive_put_discard(struct sort_output *out);
