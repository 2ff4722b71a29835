/* An access key and its secret as a text: two lines, or a JSON object with access_key and
 * secret_key (root.json, `dfcctl user key add -o json`).  Pure. */
#pragma once

#include <stddef.h>

#include "common/error.h"

struct key_pair {
    char *access_key, *secret_key;
};

/* Not what the keys consist of: that is the cluster's business.  E_JSON, E_INVALID, and then *out
 * has nothing. */
int key_pair_parse(const char *text, size_t len, struct key_pair *out, struct error *err);
void key_pair_done(struct key_pair *k); /* wipes the secret */
