/* A file of this machine that becomes a member: what is kept of it. */
#pragma once

#include "api/ctl/archive/shard_plan.h"
#include "common/error.h"

/* Fills in size, permissions and time of f->path; an error where it cannot be read. */
int local_file_note(struct shard_file *f, struct error *err);
