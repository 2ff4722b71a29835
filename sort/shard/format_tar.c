/* .tar: what everything else becomes. */
#include "sort/shard/format_parts.h"

const struct shard_format_ops format_tar = {
    .extensions = {".tar"},
    .content_type = "application/x-tar",
    .may_be_empty = true,
    .keeps_end_mark = true,
};
