/* The table of engines, by the scheme of a URL. */
#pragma once

#include "mount/meta/meta.h"

/* "sqlite3:///ABSOLUTE/PATH.db", "redis://HOST/0", "memory://".  E_INVALID names the schemes that
 * there are; make: as struct meta_ops has it. */
int engines_open(const char *url, bool make, struct meta **out, struct error *err);
/* The URL as others may see it: *** is in place of user and password; malloc'ed. */
char *engines_shown(const char *url);
