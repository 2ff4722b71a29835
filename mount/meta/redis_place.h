/* Where a Redis server is, as a URL says it. */
#pragma once

#include "common/cleanup.h"
#include "common/error.h"

struct redis_place {
    char *host;
    char *port; /* "6379" */
    char *user; /* NULL: none */
    char *password;
    char *database; /* "0" */
};

/* `where` is what follows "redis://": [[USER]:PASSWORD@]HOST[:PORT][/DATABASE].  An IPv6 address
 * has brackets.  The password ends at the last '@' and has no escapes.  E_INVALID says what is
 * wrong, without the password. */
int redis_place_parse(const char *where, struct redis_place *out, struct error *err);
void redis_place_done(struct redis_place *p);
