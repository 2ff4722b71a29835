/* The checksums of the bytes of a put, computed as they pass: the one that is stored, the one that
 * was promised, and S3's where one is wanted (OBJECT_SUM).  One thread at a time. */
#pragma once

#include "common/checksum.h"
#include "common/error.h"
#include "s3/sum_text.h"

struct object_put_spec;

struct put_sums {
    struct checksum *stored;
    struct checksum *promised;    /* when its type is another one */
    struct checksum_value expect; /* type NONE: nothing was promised */
    struct s3_sum *s3;            /* or NULL … */
    struct s3_sum_text s3_asked;  /* … with what it must be, if that is known */
};

void put_sums_begin(struct put_sums *s, const struct object_put_spec *spec);
void put_sums_update(struct put_sums *s, const void *data, size_t len);
/* All `size` bytes have passed; once.  *stored: the checksum to be stored; s3: OBJECT_SUM, or "".
 * E_CHECKSUM: the bytes are not those that were promised. */
int put_sums_end(struct put_sums *s, uint64_t size, struct checksum_value *stored,
                 char s3[static S3_SUM_TEXT_MAX], struct error *err);
void put_sums_done(struct put_sums *s);
