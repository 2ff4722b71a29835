/* The path of an entry, and which names are allowed: pure. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct arena;

/* Which names are allowed; an entry of another name is an error. */
enum iso_names {
    ISO_NAMES_ANY,      /* UTF-8 */
    ISO_NAMES_PORTABLE, /* A-Z a-z 0-9 . _ - (POSIX) */
    ISO_NAMES_EXTENDED, /* what file systems of today have: no control characters, none of
                         * / \ ? % * : | " < > $ ! and no space */
};

/* "//a/./b/" becomes "a/b", in the arena; "" is the root.  E_IMAGE_NAME: a part "..", one that is
 * too long, or one that `names` does not allow. */
int iso_path_clean(const char *path, enum iso_names names, struct arena *a, const char **out,
                   struct error *err);
/* Orders clean paths so that a directory comes directly before everything below it. */
int iso_path_compare(const char *a, const char *b);
/* What a byte counts in that order: the end is 0, a slash is less than every other byte. */
uint8_t iso_path_rank(char c);
