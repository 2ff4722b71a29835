/* What a GET or HEAD that this target answers adds to metrics, and to the use of the object. */
#pragma once

#include <stdint.h>

struct object_call;
struct reader;

/* Before the reply; `length` is that of the bytes which a GET sends. */
void object_read_count(const struct object_call *call, uint64_t length,
                       const struct reader *reader);
