/* Does a target's index say what its files say, and are the files what they were stored as?
 *
 *   each file    its attribute can be read, its length is the attribute's, it lies where its name
 *                belongs, and the index has it so; with `checksums` its bytes are read, too
 *   each name    of the index has a file
 *
 * Everything goes on meanwhile.  Without a lock index and file may differ for a moment, while a
 * change is made.  So what looks like a difference is looked at once more under the name's lock,
 * and only then is one.
 *
 * A *validation* changes nothing.  A *scrub* does something about what it finds:
 *
 *   damaged, or in another's place    moved aside (quarantine.h); a good copy is asked for
 *   gone, or not given by the disk    a good copy is asked for
 *   a row of the index                says what the file says again
 *   quarantined earlier               a good copy is asked for again
 *
 * and it is made for long runs: it goes on where it was after a restart (scrub_cursor.h) and when
 * the mountpaths have changed, keeps no set of mountpaths from being closed, reads when the disk
 * has nothing else to do, or waits for that for a while before each MiB.
 *
 * The mountpaths are walked side by side, each by one thread of low priority; memory is bounded.  A
 * mountpath that is disabled, or whose index is being made anew, is a finding, since nobody can
 * say. */
#pragma once

#include "target/store/job_stop.h"
#include "target/store/object.h"
#include "target/store/validate_report.h"

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

/* 0 whatever was found; E_ABORTED where it was stopped, or what kept it from looking further. */
int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err);
