/* The inside of a struct disk, for its source and tests. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "common/error.h"
#include "mount/tcmu/device.h"

/* What the supervisor and its processes share. */
struct disk {
    atomic_bool ours;   /* the device */
    atomic_bool served; /* the mount has answered */
    struct device device;
    char path[32];     /* "/dev/sdX"; "": there is none yet */
    pid_t mounter;     /* attaches and mounts, the first time */
    int go;            /* of the process that serves: a byte, and the mounter begins */
    struct error said; /* by the mounter */
};
