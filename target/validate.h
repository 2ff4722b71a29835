/* Does a target's index say what its files say, and are the files what they were stored as? Nothing
 * is changed, and everything goes on meanwhile.
 *
 *   each file    its attribute can be read, its length is the attribute's, it lies where its name
 *                belongs, and the index has it so; with `checksums` its bytes are read, too
 *   each name    of the index has a file
 *
 * Without a lock index and file may differ for a moment, while a change is made.  So what looks
 * like a difference is looked at once more under the name's lock, and only then is one.
 *
 * The mountpaths are walked side by side, each by one thread of low priority; memory is bounded.  A
 * mountpath that is disabled, or whose index is being made anew, is a finding, since nobody can
 * say. */
#pragma once

#include "target/job_stop.h"
#include "target/object.h"
#include "target/validate_report.h"

struct validate_config {
    struct object_store *store;
    /* A destroyed bucket goes in its own time: false, as soon as it begins to. */
    bool (*bucket_lives)(void *ctx, uint64_t bucket_id);
    void *ctx;
    bool checksums;
    uint64_t rate_bytes_s; /* of reading for checksums, at each mountpath; 0: as fast as it goes */
};

/* 0 whatever was found; E_ABORTED where it was stopped, or what kept it from looking further. */
int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err);
