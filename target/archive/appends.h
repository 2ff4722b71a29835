/* Members that clients put into archives: PUT with `member` or `members` (write_path.h).
 *
 *   the body ─▶ a temporary file ─▶ the turn of the name ─▶ tries (append_try.h) ─▶ reply
 *
 * Appends to one archive run one after the other at its owner: clients without a condition do not
 * disturb each other.  Any other write of the archive meanwhile makes the append begin anew. */
#pragma once

#include "common/error.h"

struct appends;
struct target;

int appends_new(struct target *t, struct appends **out, struct error *err);
/* Those under way end soon, with E_NOT_READY.  NULL is fine. */
void appends_stop(struct appends *a);
void appends_free(struct appends *a); /* after the servers; NULL is fine */
