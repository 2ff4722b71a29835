/* One object becomes another, through this program: content type and user metadata stay.
 *
 * The source is read in blocks of one version.  Its checksum is compared before the last block is
 * sent, so that a damaged copy is not stored.  The head of a plog is refused: DFC_INVALID. */
#pragma once

#include "api/ctl/names/name.h"
#include "api/dfc.h"

/* progress may be NULL.  *bytes: of the object. */
int copy_object(struct dfc_client *client, const struct object_name *from,
                const struct object_name *to, dfc_progress *progress, void *progress_context,
                uint64_t *bytes, struct dfc_error *err);
