/* How a command over many objects went: what was done, and each thing that was not.  Thread-safe.
 *
 * Failures are printed as they come (below the progress bar) and listed in the JSON result, at
 * most TALLY_LISTED of them by name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/ctl/ctl.h"
#include "api/ctl/print/progress.h"

#define TALLY_LISTED 10000
#define TALLY_HOPELESS 32

struct tally;

/* verb: "put", for messages.  The bar is cleared for each failure: it is freed after the last. */
struct tally *tally_new(const struct ctl *ctl, const char *verb, struct progress *progress);
void tally_done(struct tally *t, uint64_t bytes);
void tally_fail(struct tally *t, const char *name, const struct dfc_error *err);
void tally_fail_common(struct tally *t, const char *name, const struct error *err);
void tally_kept(struct tally *t); /* it exists already, and was to be left alone */
void tally_removed(struct tally *t);
/* Other words than "existed already", for people. */
void tally_name_kept(struct tally *t, const char *words);
/* Nothing is done: the words say what would be.  The JSON result is as otherwise. */
void tally_is_dry(struct tally *t);
/* A prefix or directory has nothing: a failure of its own kind (EXIT_NOTHING). */
void tally_nothing(struct tally *t, const char *name, const char *why);
void tally_matched(struct tally *t, const char *name, uint64_t count); /* says so */
uint64_t tally_count(struct tally *t);                                 /* all of these */
bool tally_is_whole(struct tally *t); /* nothing has failed, and nothing was not tried */

/* Interrupted; or everything has failed so far, more than TALLY_HOPELESS times: the rest is not
 * tried. */
bool tally_hopeless(struct tally *t);
void tally_skip(struct tally *t); /* one thing was not tried */

/* Prints the result, frees, gives the exit code: 0 all done; 6 some failed; where everything
 * failed in one way, that way's code. */
int tally_end(struct tally *t);
