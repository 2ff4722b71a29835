/* Names that become paths below a directory. */
#pragma once

#include <stdbool.h>

/* What is wrong with such a name, in words: "the part '..'"; NULL: nothing.  Refused is what would
 * leave the directory or meet another name there: empty, "." and ".." parts between slashes, and so
 * absolute names. */
const char *path_flaw(const char *name);

bool path_ends_with(const char *path, const char *end);
