/* A certificate chain and its key, as files of PEM, made ready to speak TLS.
 *
 * A pair is taken whole or not at all: the files can be read, the key belongs to the first
 * certificate, which is valid now, and nobody but the owner of the key's file can read that.  What
 * is spoken with it is TLS 1.2 and 1.3, with ciphers that authenticate (AEAD) and keys that are
 * forgotten (ECDHE), without renegotiation and compression; ALPN http/1.1. */
#pragma once

#include <openssl/ssl.h>
#include <stdint.h>

#include "common/error.h"

enum {
    TLS_RECORD_BYTES = 16 * 1024, /* of plain text, at most (RFC 8446 section 5.1) */
    TLS_READ_BYTES = 64 * 1024,   /* that one read of a socket brings at most */
};

/* 0 and a context (SSL_CTX_free), with the Unix time at which the certificate expires; E_INVALID,
 * or why a file cannot be read. */
int tls_pair_load(const char *cert_file, const char *key_file, SSL_CTX **out, int64_t *expires_s,
                  struct error *err);
/* The text of this thread's last error of OpenSSL, which is forgotten. */
const char *tls_error_text(void);
