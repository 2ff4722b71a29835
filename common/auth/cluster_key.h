/* The cluster's key: what its nodes and operators have in common and nobody else knows.
 *
 * It stands in a file that others cannot read (secret_file.h).  Each line is a key, any
 * text of 32 to 1024 characters without blanks (`openssl rand -hex 32` makes a good one); blank
 * lines and lines that begin with '#' do not count.  The first key is the one that this node opens
 * sessions with; all of them are accepted from others.  So a key is changed without a pause: a
 * second line with the new key on all nodes, then the two lines change places, then the old one
 * goes, and each time the nodes read it anew (SIGHUP).
 *
 * The text itself is kept nowhere: what is used is its digest, and keys are named by a digest of
 * that. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

enum {
    CLUSTER_KEYS_MAX = 4,
    CLUSTER_KEY_TEXT_MIN = 32,
    CLUSTER_KEY_TEXT_MAX = 1024,
    CLUSTER_SECRET_BYTES = 32,
    CLUSTER_KEY_ID_CHARS = 16,
};

struct cluster_key {
    unsigned char secret[CLUSTER_SECRET_BYTES];
    char id[CLUSTER_KEY_ID_CHARS + 1]; /* hex; says nothing of the key */
};

struct cluster_keys {
    size_t count;
    struct cluster_key keys[CLUSTER_KEYS_MAX]; /* the first is our own */
};

/* Of a file's text.  E_INVALID: what is wrong with it, and in which line. */
int cluster_keys_parse(const char *text, size_t len, struct cluster_keys *out, struct error *err);
/* E_INVALID with the file's name: missing, no file, of another user (and not root's), others may
 * read it, or as above. */
int cluster_keys_load(const char *path, struct cluster_keys *out, struct error *err);
/* NULL: none has this id. */
const struct cluster_key *cluster_keys_find(const struct cluster_keys *keys, const char *id);
