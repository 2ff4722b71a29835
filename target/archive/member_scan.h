/* One pass over an archive: what the index of its members is made of (member_table.h).  Of a plain
 * tar the headers alone are read; anything else is unpacked (member_unpack.h). */
#pragma once

#include "common/error.h"

struct archive_source;
struct member_table;

/* Fills a new table and finishes it.  The source is open; its go_on() is asked again and again, so
 * that it may look how large the table is.  In a thread that may wait.  E_NOT_ARCHIVE,
 * E_ARCHIVE_DAMAGED, what go_on() says, and what reading says. */
int member_scan(struct archive_source *s, struct member_table *t, struct error *err);
