/* Findings of a check, put right: each by one commit that expects what was found. */
#pragma once

#include "mount/volume/check/check.h"
#include "mount/volume/volume.h"

/* 0; ENOTSUP: there is no repair of it; ESTALE: the volume has changed meanwhile, and a new check
 * is due.  Inodes without a name get one in the directory "lost+found" of the root. */
int repair_finding(struct volume *v, const struct check_finding *f);
