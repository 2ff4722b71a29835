/* The bytes of one file of a validation: read at the pace of the walk, compared with the
 * checksum. */
#pragma once

#include "target/scrub/validate_file.h"

/* What differs is reported and dealt with.  False: the work ended before the file did. */
bool walk_check_bytes(struct walk *w, const char *path, struct file *f);
