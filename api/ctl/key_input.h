/* An access key and its secret, or a password, as a person types them or a script pipes them. */
#pragma once

#include "api/ctl/ctl.h"
#include "common/auth/key_pair.h"

/* From standard input (`piped`), else asked for on the terminal, the secret without echo.  An exit
 * code. */
int key_input_read(const struct ctl *ctl, bool piped, struct key_pair *out);
/* The same for a password, which is one line; on the terminal it is asked for `twice`, or once.
 * *password is to be freed with secret_free(). */
int password_input_read(const struct ctl *ctl, bool piped, bool twice, char **password);
