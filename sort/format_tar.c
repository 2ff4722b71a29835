/* .tar: what everything else becomes. */
#include "sort/formats.h"

const struct shard_format_ops format_tar = {
    .extensions = {".tar"},
    .content_type = "application/x-tar",
    .keeps_end_mark = true,
};
