/* The nonces of logins: a proxy takes each once.  Pure; its owner has the lock.
 *
 * A login is good for `window_ms` around its time, so that its nonce need be known for twice that
 * long.  Nonces are kept in two tables that take turns: after two windows the older one is emptied.
 *
 * An access key has NONCES_PER_KEY places in a table.  Beyond that its logins are refused, since a
 * nonce that is forgotten early could be sent again; logins of other keys go on.  A table grows
 * with what is in it, so the number of access keys bounds it.  Only a login whose proof is right
 * takes a place. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { NONCES_PER_KEY = 1024 };

struct nonces;

struct nonces *nonces_new(uint64_t window_ms);
void nonces_free(struct nonces *n);

enum nonce_verdict { NONCE_TAKEN, NONCE_USED, NONCE_FULL };

enum nonce_verdict nonces_take(struct nonces *n, const char *access, const char *nonce,
                               uint64_t now_ms);
