/* The certificate that a daemon's listeners show, and its renewal while they serve.
 *
 * A handshake takes the pair that is in force when it begins; a connection keeps it to its end.  A
 * new pair is loaded and checked (pair.h) before it takes the old one's place.  One that is bad is
 * an error in the log, once, and the old one stays. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct tls;

enum { TLS_EXPIRES_SOON_S = 14 * 24 * 3600 };

/* What tls_pair_load() says. */
int tls_new(const char *cert_file, const char *key_file, struct tls **out, struct error *err);
void tls_free(struct tls *t); /* connections may outlive it */
/* Loads the pair anew where a file is another one than when it was last loaded, or `always`.  Warns
 * in the log, once a day, where tls_warning() says something.  One thread at a time. */
void tls_renew(struct tls *t, bool always);
/* A connection's half of TLS, with the pair in force.  Any thread.  NULL: no memory. */
SSL *tls_accept(struct tls *t);
/* Unix time at which the certificate in force expires.  Any thread. */
int64_t tls_expires_s(const struct tls *t);
/* Seconds until then, at least 1; 0 for NULL. */
uint64_t tls_left_s(const struct tls *t);
/* A sentence where that is soon (TLS_EXPIRES_SOON_S), or was; else NULL.  malloc'ed. */
char *tls_warning(const struct tls *t);
