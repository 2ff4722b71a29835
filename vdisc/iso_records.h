/* The records of one directory, as bytes: what iso_layout.c counts and iso_write.c writes. */
#pragma once

#include "vdisc/iso_blocks.h"
#include "vdisc/iso_susp.h"

/* Sees each record of the directory at `place`, "." and ".." first.  No record crosses a sector:
 * the one who takes them keeps to that. */
void iso_records_each(const struct iso_layout *l, unsigned view, uint32_t place,
                      struct susp_area *area,
                      void (*take)(void *context, const uint8_t *record, size_t len),
                      void *context);
/* The root's record, as a volume descriptor has it: 34 bytes. */
#define ISO_ROOT_RECORD 34
void iso_records_root(const struct iso_layout *l, unsigned view,
                      uint8_t to[static ISO_ROOT_RECORD]);
