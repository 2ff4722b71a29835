/* An object as the source of an unarchiver: ranges of it are fetched as they are needed, so that a
 * list of a large tar does not fetch its contents, and a zip is read from its end.
 *
 * All ranges are of the version that was there first; where another takes its place, the read fails
 * with DFC_PRECONDITION.  Ranges grow while the reading goes forward. */
#pragma once

#include "api/dfc.h"
#include "common/cleanup.h"
#include "sort/archive/unarchiver.h"

struct object_reader;

int object_reader_open(struct dfc_client *client, const char *bucket, const char *key,
                       struct object_reader **out, struct dfc_error *err);
/* Borrows the reader. */
struct unarchiver_source object_reader_source(struct object_reader *r);
/* In place of an error that the source gave: what the library said. */
void object_reader_failure(const struct object_reader *r, struct dfc_error *err);
void object_reader_close(struct object_reader *r);
DEFINE_CLEANUP(struct object_reader, object_reader_close);
