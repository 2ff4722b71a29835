/* Logins with a password: how often one name may be tried.  Any thread.
 *
 * After PASSWORD_TRIES_MAX failures within PASSWORD_TRIES_WINDOW_MS a name waits as long.  Names of
 * users and of nobody are counted alike, so that the wait does not tell which exist.
 *
 * A try counts as a failure from its begin on, until it is forgiven.  So many at once are no way
 * around the limit.  At most PASSWORD_NAMES_MAX names are known; beyond that the one whose last try
 * is the oldest is forgotten.  A try takes a hash, so that its time is far over by then. */
#pragma once

#include <stdint.h>

enum {
    PASSWORD_TRIES_MAX = 5,
    PASSWORD_TRIES_WINDOW_MS = 60 * 1000,
    PASSWORD_NAMES_MAX = 8192,
};

struct password_tries;

struct password_tries *password_tries_new(void);
void password_tries_free(struct password_tries *t); /* NULL is fine */

/* 0: the try may be made.  Else: in so many ms. */
uint64_t password_tries_begin(struct password_tries *t, const char *name, uint64_t now_ms);
/* The password was right. */
void password_tries_forgive(struct password_tries *t, const char *name);
