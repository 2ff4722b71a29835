/* An access key and its secret, as a person types them or a script pipes them. */
#pragma once

#include "api/ctl/ctl.h"

struct key_input {
    char *access_key, *secret_key;
};

/* Pure.  Two lines, or a JSON object with access_key and secret_key (root.json).  E_INVALID. */
int key_input_parse(const char *text, size_t len, struct key_input *out, struct error *err);
/* From standard input (`piped`), else asked for on the terminal, the secret without echo.  An exit
 * code. */
int key_input_read(const struct ctl *ctl, bool piped, struct key_input *out);
void key_input_done(struct key_input *k); /* wipes the secret */
