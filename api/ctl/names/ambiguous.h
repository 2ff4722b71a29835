/* A key with '*', '?' or '[' may be a pattern, and the name of an object. */
#pragma once

#include "api/ctl/args.h"
#include "api/ctl/ctl.h"
#include "api/ctl/names/name.h"

/* Before get, rm and cp take n, which the user wrote as word, for a pattern: EXIT_OK, or the exit
 * code of what is reported.  Asks for an object of that very name, unless --pattern is given. */
int ambiguous_check(const struct ctl *ctl, const struct args *args, const char *word,
                    const struct object_name *n);
