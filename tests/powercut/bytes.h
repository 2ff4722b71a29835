/* What the operation of a number stores: its size and every byte follow from the number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum {
    BUCKET_DOCUMENTS = 0, /* their bytes begin with the number */
    BUCKET_RING = 9,      /* its names are numbers of samples */
};

void die(const char *what, const struct error *err);
size_t size_of(uint64_t number);
char *bytes_of(uint64_t number, size_t len); /* malloc'ed */
/* Prints whether these are the bytes of the operation of this number, all of them. */
void say_bytes(uint64_t bucket, const char *name, uint64_t number, const char *got, size_t len,
               size_t want_len);
