/* `mount -o remount,ro` and `remount,rw`: the kernel refuses writes, or does not any more. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "mount/program/program.h"

int program_remount(const char *directory, bool read_only)
{
    struct statvfs now;
    if (statvfs(directory, &now) != 0)
        return program_fail(PROGRAM_FAILED, "remount '%s': %s", directory, strerror(errno));
    const unsigned long kept = now.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC);
    const unsigned long flags = MS_REMOUNT | kept | (read_only ? MS_RDONLY : 0);
    if (mount(NULL, directory, NULL, flags, NULL) != 0)
        return program_fail(PROGRAM_FAILED, "remount '%s': %s", directory, strerror(errno));
    return PROGRAM_OK;
}
