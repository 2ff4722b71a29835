/* Before a bucket is made: does its backend answer?  One active target is asked, since targets have
 * the credentials and the way to it; it asks the backend once. */
#pragma once

#include "common/error.h"

struct proxy;

/* done() is called once, in the thread of the list loop or, where no target can be asked, in this
 * one; err NULL: the backend answers.  Texts are copied.  Errors: E_NO_TARGETS, the target's (of
 * its backend), E_TIMEOUT and E_NET where it cannot be asked. */
void backend_probe(struct proxy *p, const char *url, const char *request_id,
                   void (*done)(void *arg, const struct error *err), void *arg);
