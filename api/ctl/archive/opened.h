/* An archive of the cluster that a command reads, and how its failures are reported. */
#pragma once

#include "api/ctl/archive/object_reader.h"
#include "api/ctl/ctl.h"
#include "common/cleanup.h"

struct opened {
    struct object_reader *reader;
    struct unarchiver *archive;
    struct unarchiver_limits limits;
};

/* The first word, "BUCKET/KEY", as --formats says: EXIT_OK, or the failure is reported, and this is
 * its exit code. */
int opened_open(struct ctl *ctl, const struct args *args, struct opened *o);
/* Again from its first member, in the same version: EXIT_OK or an exit code. */
int opened_again(struct ctl *ctl, struct opened *o);
void opened_done(struct opened *o);
/* Reports an error of the unarchiver, and gives its exit code. */
int opened_fail(struct ctl *ctl, const struct opened *o, const struct error *err);
/* 1 and the next member; 0 at the end; else *code, and the failure is reported. */
int opened_next(struct ctl *ctl, struct opened *o, struct unarchiver_member *m, int *code);
/* The member's contents go there; EXIT_OK or an exit code. */
int opened_copy(struct ctl *ctl, struct opened *o, int fd);
