#include "mount/fuse/closing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"

#define EXIT_CODE_FIELD 52 /* of stat: proc(5) */
#define SIGNAL_MASK 0x7f   /* of an exit code: wait(2) */

int64_t closing_parse_process(const char *status)
{
    const char *at = strstr(status, "\nTgid:");
    return at != NULL ? strtoll(at + strlen("\nTgid:"), NULL, 10) : 0;
}

bool closing_parse_killed(const char *stat)
{
    /* The second field is the program's name in parentheses, which may have any characters. */
    const char *at = strrchr(stat, ')');
    for (unsigned field = 2; at != NULL && field < EXIT_CODE_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && (strtol(at, NULL, 10) & SIGNAL_MASK) != 0;
}

bool closing_parse_writes(const char *fdinfo, uint64_t inode)
{
    const char *flags = strstr(fdinfo, "flags:");
    const char *number = strstr(fdinfo, "\nino:");
    return flags != NULL && number != NULL &&
           (strtoul(flags + strlen("flags:"), NULL, 8) & O_ACCMODE) != O_RDONLY &&
           strtoull(number + strlen("\nino:"), NULL, 10) == inode;
}

/* Up to the room of `to`; false: there is no such file. */
static bool read_proc(int64_t process, const char *name, char *to, size_t room)
{
    char path[NAME_MAX + 64];
    snprintf(path, sizeof path, "/proc/%lld/%s", (long long)process, name);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, room - 1) : -1;
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

int64_t closing_process(pid_t thread)
{
    char status[1024];
    int64_t process = 0;
    if (read_proc(thread, "status", status, sizeof status))
        process = closing_parse_process(status);
    return process > 0 ? process : thread;
}

static bool is_killed(int64_t process)
{
    char stat[1024];
    return read_proc(process, "stat", stat, sizeof stat) && closing_parse_killed(stat);
}

uint64_t closing_device(const char *path)
{
    struct statx st;
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) != 0)
        return 0;
    return (uint64_t)makedev(st.stx_dev_major, st.stx_dev_minor);
}

/* Another mount of the bucket has files of the same inode. */
static bool is_of_file(int64_t process, const char *number, const struct closing_file *file)
{
    char name[NAME_MAX + 16], path[NAME_MAX + 64], fdinfo[512];
    snprintf(name, sizeof name, "fdinfo/%s", number);
    snprintf(path, sizeof path, "/proc/%lld/fd/%s", (long long)process, number);
    if (!read_proc(process, name, fdinfo, sizeof fdinfo) ||
        !closing_parse_writes(fdinfo, file->inode))
        return false;
    const uint64_t device = closing_device(path);
    return device == file->device || device == 0 || file->device == 0;
}

static bool keeps(int64_t process, const struct closing_file *file)
{
    char path[64];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%lld/fdinfo", (long long)process);
    DIR *directory = opendir(path);
    if (directory == NULL)
        return false;
    for (struct dirent *e; !found && (e = readdir(directory)) != NULL;)
        found = is_of_file(process, e->d_name, file);
    closedir(directory);
    return found;
}

enum closing closing_of(const struct closing_file *file, pid_t thread)
{
    const int64_t process = closing_process(thread);
    if (is_killed(process))
        return process == file->opener ? CLOSING_DROP : CLOSING_NOT_YET;
    if (keeps(file->opener, file) || (process != file->opener && keeps(process, file)))
        return CLOSING_NOT_YET;
    return CLOSING_STORE;
}
