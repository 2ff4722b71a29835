/* What a server of images is told, as KEY=VALUE: which images, and how they are read.  The keys are
 * the flags of `dfcctl vdisc serve`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/dfc.h"
#include "common/error.h"
#include "mount/image/objects.h"

#define IMAGE_SETTINGS_HELP                                                             \
    "url=dfc://BUCKET/NAME.vdsc   the image, or dfc://BUCKET: all of them (required)\n" \
    "endpoint=, profile=, ca-file=, insecure=, retries=, parallel=, buffer-size=,\n"    \
    "max-readahead=, cache-dir=, cache-size=, cache-free=   as the flags of dfcctl vdisc serve"

struct image_settings {
    char *bucket, *key; /* key: NULL: of all images of the bucket */
    char *endpoint, *profile, *ca_file, *cache_directories;
    uint64_t insecure; /* 0, 1 */
    uint64_t retries, parallel, readahead_bytes;
    uint64_t buffer_bytes, cache_bytes, cache_free_percent;
};

extern const struct image_settings image_settings_default;

/* E_INVALID: there is no such key, or the value is wrong. */
int image_settings_take(struct image_settings *s, const char *key, const char *value,
                        struct error *err);
int image_settings_client(const struct image_settings *s, const char *agent,
                          struct dfc_client **client, struct dfc_error *err);
struct objects_options image_settings_objects(const struct image_settings *s);
void image_settings_done(struct image_settings *s);
