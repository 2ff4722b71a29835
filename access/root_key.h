/* The access key and the secret of `root`, as --root-key-file gives them. */
#pragma once

#include <stddef.h>

#include "cluster/access/user.h"
#include "common/error.h"

struct root_key {
    char access[ACCESS_KEY_CHARS + 1];
    char secret[SECRET_CHARS + 1];
};

/* Pure.  The two as common/auth/key_pair.h has them: an access key of ACCESS_KEY_CHARS capital
 * letters and digits, a secret of SECRET_CHARS letters, digits, '+', '/', '-' and '_'.  E_INVALID,
 * E_JSON. */
int root_key_parse(const char *text, size_t len, struct root_key *out, struct error *err);
/* Of a file that others cannot read (common/auth/secret_file.h).  E_INVALID names the file. */
int root_key_load(const char *path, struct root_key *out, struct error *err);
void root_key_wipe(struct root_key *key);
