/* The cluster key of a client, and its sessions with control listeners: what signed.h signs calls
 * with.  A session is opened by signed.h, kept here, and used by all threads.
 *
 * Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"
#include "common/auth/caller.h"

struct signer;

/* With one listener. */
struct signer_session {
    struct signer_session *next;
    char *origin;            /* "http://host:port" */
    char node[AUTH_HEX_MAX]; /* that has proven itself; "": of unsigned calls */
    bool unsigned_calls;     /* the node has no key */
    char id[2 * AUTH_SESSION_BYTES + 1];
    unsigned char key[AUTH_MAC_BYTES];
    uint64_t counter;
};

/* What signs one request. */
struct signer_pen {
    bool signs;
    struct auth_claim claim;
    unsigned char key[AUTH_MAC_BYTES];
};

/* key_file: NULL or "": none.  It is read when the first call is signed. */
struct signer *signer_new(const char *key_file);
void signer_free(struct signer *s);

const char *signer_key_file(const struct signer *s);
bool signer_has_key(const struct signer *s);
/* Reads the key file, once.  DFC_LOCAL. */
int signer_load(struct signer *s, struct dfc_error *err);
/* Who opens a session; after signer_load().  It borrows from the signer. */
struct auth_caller signer_caller(const struct signer *s);

/* With this listener; not kept yet. */
struct signer_session *signer_session_new(const char *origin);
void signer_session_free(struct signer_session *x);
/* Keeps it in place of any other with its listener.  It is the signer's from here on. */
void signer_keep(struct signer *s, struct signer_session *x);
/* The next signature of the session with this listener; false: there is none, or it is another
 * node's than `node` (NULL: any). */
bool signer_take(struct signer *s, const char *origin, const char *node, struct signer_pen *pen);
/* Forgets the session of this id, which the listener does not know any more. */
void signer_drop(struct signer *s, const char *origin, const char *id);
