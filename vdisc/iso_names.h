/* Identifiers: the names that a reader without Rock Ridge shows.
 *
 * An identifier is the name in upper case, with '_' for what ECMA-119 does not allow, and has at
 * most 30 characters (8 of a name above 106 bytes): "Photo 1.jpeg" is "PHOTO_1.JPEG".  Where two
 * names of a directory would have one identifier, the first of them in bytewise order keeps it, the
 * others get a counter in base 36: "PHOTO_1_1.JPEG".  The ";1" of a file is not a part of it here.
 */
#pragma once

#include <stdint.h>

#include "vdisc/iso_tree.h"

#define ISO_IDENTIFIER_MAX 31 /* bytes, with the dot of a file */

/* Sets ident[n] of each entry n of the directory; the texts are the arena's. */
void iso_names_assign(const struct iso_tree *t, uint32_t directory, struct arena *a,
                      const char **ident);
