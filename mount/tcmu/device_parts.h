/* What the files of a device share. */
#pragma once

#include "mount/tcmu/device.h"

#define DEVICE_TARGET "/sys/kernel/config/target"
#define DEVICE_HBA_NUMBER "3073" /* no other program's: numbers are anybody's */
#define DEVICE_HBA DEVICE_TARGET "/core/user_" DEVICE_HBA_NUMBER
#define DEVICE_LOOPBACK DEVICE_TARGET "/loopback"
#define DEVICE_UIO_MOST 1024
#define DEVICE_NEVER_S "86400" /* of timeouts: the kernel multiplies it */

/* Paths below the device in core/, and below its port in loopback/; malloc'ed. */
char *device_core(const struct device *d, const char *below);
char *device_port(const struct device *d, const char *below);
/* One process at a time makes and removes folders that devices share, and changes owners, until it
 * closes this descriptor; negative: a code.  Root alone can open the file: other users could keep
 * a lock of a folder of configfs forever. */
#define DEVICE_LOCK "/run/dfc-tcmu.lock"
int device_lock(struct error *err);
/* The same supervisor, or none that lives; the lock is held. */
int device_check_owner(const struct device *d, pid_t supervisor, struct error *err);
/* Waits half a minute for it. */
bool device_wait(bool (*is)(void *context), void *context);
