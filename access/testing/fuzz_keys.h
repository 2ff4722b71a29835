/* For fuzzers: keys of proofs, made once. */
#pragma once

#include <assert.h>
#include <string.h>

#include "access/proof_keys.h"

static struct proof_keys *keys_once(void)
{
    static const char line[] = "0123456789abcdef0123456789abcdef";
    static struct proof_keys *made;
    struct cluster_keys keys;
    if (made == NULL) {
        int code = cluster_keys_parse(line, strlen(line), &keys, NULL);
        assert(code == 0);
        made = proof_keys_new(&keys);
    }
    return made;
}
