/* Times in an image.  All are UTC, so the offset byte is 0. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define ISO_DATE_SHORT 7 /* of a record (ECMA-119 9.1.5): a byte each, years since 1900 */
#define ISO_DATE_LONG 17 /* of a descriptor (8.4.26.1): digits */

/* Unix seconds; a record has years from 1900 to 2155. */
bool iso_date_fits(int64_t unix_s);
void iso_date_put(uint8_t to[static ISO_DATE_SHORT], int64_t unix_s);
void iso_date_put_long(uint8_t to[static ISO_DATE_LONG], int64_t unix_s);
/* 0 where the bytes are no time: a reader shows the file all the same. */
int64_t iso_date_get(const uint8_t from[static ISO_DATE_SHORT]);
