/* A large file of a job's directory (job_files.h), written piece by piece: of its name there is
 * nothing before it is whole and durable.  What a crash leaves of one goes with the directory. */
#pragma once

#include "target/disk/mountpaths.h"
#include "target/disk/space.h"

struct job_file {
    int fd; /* for writing */
    char *path;
    char *unfinished;
};

/* On the mountpath that has the most room; E_NO_SPACE where `size` bytes are more than that. */
int job_file_create(struct mountpaths *m, const struct space_limits *limits, const char *job_id,
                    const char *name, uint64_t size, struct job_file *f, struct error *err);
/* In place of one of that name on the same mountpath. */
int job_file_keep(struct job_file *f, struct error *err);
/* What was not kept goes.  Also after a failure to create it. */
void job_file_done(struct job_file *f);
