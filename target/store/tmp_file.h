/* A temporary file of a mountpath, which becomes an object, and the attribute on it. */
#pragma once

#include "target/disk/mountpath.h"
#include "target/format/attr.h"

/* An empty file of its own in tmp/.  Fault point: disk.open. */
int object_tmp_create(struct mountpath *mp, char name[static MOUNTPATH_TMP_NAME], int *fd,
                      struct error *err);
/* A second name, in tmp/, of a file of the same mountpath.  Fault point: disk.open. */
int object_tmp_link(struct mountpath *mp, const char *path, char name[static MOUNTPATH_TMP_NAME],
                    int *fd, struct error *err);
/* Writes the attribute.  Fault point: disk.xattr. */
int object_set_attr(const struct mountpath *mp, int fd, const struct attr *a, struct error *err);
