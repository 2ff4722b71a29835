/* A disk of target_core_user: configfs, the uio device, the SCSI disk.
 *
 *     core/user_HBA/NAME  --enable-->  /dev/uioN            ring, commands
 *            ^ symlink
 *     loopback/naa.…/tpgt_1/lun/lun_0  -->  SCSI host  -->  /dev/sdX
 *
 * All state is the kernel's: a process that takes over finds it by the name, which is made of the
 * mount's directory.  Each function makes what is not there yet.  Root alone may call them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "mount/tcmu/scsi.h"

struct device {
    char name[24]; /* "dfc-" and 16 digits */
    uint64_t naa;
};

/* Of an absolute path. */
void device_name(struct device *d, const char *directory);
bool device_exists(const struct device *d);

/* What the machine needs: E_UNSUPPORTED says what is missing, and what to do. */
int device_check(struct error *err);
/* `image` says which image it is: E_INVALID of a device that has another one. */
int device_make(const struct device *d, const char *image, uint64_t bytes, struct error *err);

struct device_ring {
    int uio;
    void *map;
    size_t bytes;
};
/* Waits for an earlier process to give it up. */
int device_open(const struct device *d, struct device_ring *r, struct error *err);
void device_close(struct device_ring *r);

#define DEVICE_READ_MOST 1024 /* sectors of one read */
/* The SCSI disk appears: there must be a server.  path: "/dev/sdX", malloc'ed. */
int device_attach(const struct device *d, char **path, struct error *err);
/* Is the block device mounted nowhere, in no mount namespace? */
bool device_is_idle(const char *path);

/* The device is kept by this process, its supervisor. */
int device_own(const struct device *d, pid_t supervisor, struct error *err);
/* 0: it has none, or has died. */
pid_t device_owner(const struct device *d);
/* Nothing is left in configfs.  Reads that wait get errors; no server may be at work. */
int device_remove(const struct device *d, struct error *err);
