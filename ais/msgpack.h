/* Writes MessagePack (github.com/msgpack/msgpack, spec.md), each value in its shortest form.  The
 * caller writes as many values behind a map's or an array's head as that announces. */
#pragma once

#include <stdint.h>

#include "common/buf.h"

void msgpack_put_map(struct buf *out, uint32_t pairs);
void msgpack_put_array(struct buf *out, uint32_t items);
/* At most UINT32_MAX bytes of UTF-8. */
void msgpack_put_str(struct buf *out, const char *text);
void msgpack_put_u64(struct buf *out, uint64_t value);
