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

#define DEVICE_ID 32 /* bytes of an image id */

struct device {
    char name[24]; /* "dfc-" and 16 digits */
    uint64_t naa;
};

/* Of an absolute path. */
void device_name(struct device *d, const char *directory);
bool device_exists(const struct device *d);

/* What the machine needs: E_UNSUPPORTED says what is missing, and what to do. */
int device_check(struct error *err);
/* The device is kept by this process, its supervisor.  E_EXISTS: by another one that lives. */
int device_claim(const struct device *d, pid_t supervisor, struct error *err);
/* 0: it has none, or has died. */
pid_t device_owner(const struct device *d);
/* Which image it is, for device_make().  id: of DEVICE_ID bytes; NULL: it has none, and its name
 * and its size must do. */
char *device_image(const char *bucket, const char *key, const uint8_t *id, uint64_t bytes);
/* E_INVALID: the device has another image. */
int device_make(const struct device *d, const char *image, uint64_t bytes, struct error *err);

struct device_ring {
    int uio;
    void *map;
    size_t bytes;
};
/* Waits for an earlier process to give it up.  E_EXISTS: that process goes on with it. */
int device_open(const struct device *d, struct device_ring *r, struct error *err);
void device_close(struct device_ring *r);

#define DEVICE_READ_MOST 1024 /* sectors of one read */
/* The SCSI disk appears: another process must serve it, since this one cannot be killed while the
 * kernel asks the disk.  path: "/dev/sdX", malloc'ed. */
int device_attach(const struct device *d, char **path, struct error *err);
/* The path of its SCSI disk; malloc'ed, NULL: it has none. */
char *device_path(const struct device *d);
/* Is the block device mounted nowhere, in no mount namespace?  Or is it gone? */
bool device_is_idle(const char *path);

/* Nothing is left in configfs.  Reads that wait get errors.  E_EXISTS, and nothing is removed:
 * another supervisor than this one has it (0: any), or a server is at work.  The caller has one
 * thread. */
int device_remove(const struct device *d, pid_t supervisor, struct error *err);
