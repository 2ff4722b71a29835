/* Every shard format: one file each, format_*.c. */
#pragma once

#include "sort/shard/format.h"

extern const struct shard_format_ops format_tar, format_tgz, format_zip, format_zst, format_lz4,
    format_msgpack, format_tfrecord, format_xz, format_bz2, format_cpio, format_7z;
