/* Files of a user with keys or tokens.  They have mode 0600 and are written whole or not at all;
 * one of another user, or that others may read, is refused. */
#pragma once

#include "api/dfc.h"
#include "common/buf.h"

/* Appends the text, at most 1 MiB; private_text_wipe() ends it, also after an error.
 * DFC_NOT_FOUND: there is none.  DFC_LOCAL. */
int private_file_read(const char *path, struct buf *out, struct dfc_error *err);
void private_text_wipe(struct buf *text);
/* Makes the directories, too (0700). */
int private_file_write(const char *path, const char *text, struct dfc_error *err);
