/* What a validation (validate.h) is asked for. */
#pragma once

#include "target/store/object.h"

/* What makes it a scrub. */
struct validate_scrub {
    const char *job_id;
    uint64_t save_ms; /* between savings of where it is */
    void (*repair_wanted)(void *ctx, uint64_t bucket_id, const char *name);
};

struct validate_config {
    struct object_store *store;
    /* A destroyed bucket goes in its own time: false, as soon as it begins to. */
    bool (*bucket_lives)(void *ctx, uint64_t bucket_id);
    /* Bytes a second of reading for checksums, at each mountpath, asked again and again; 0, or
     * NULL: as fast as it goes. */
    uint64_t (*rate_bytes_s)(void *ctx);
    void *ctx;
    bool checksums;
    const struct validate_scrub *scrub; /* or NULL */
};
