/* mount --mode tcmu: a dataset image as a disk of the kernel, see mount/tcmu/. */
#pragma once

struct mounted;

/* Until it is unmounted: an exit code, see program.h.  The device is removed at the end. */
int disk_supervise(struct mounted *m);
