#include "mount/program/inside.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "mount/program/program.h"

int inside_exit_of(int errnum)
{
    return errnum == ENOENT                      ? PROGRAM_NOT_FOUND
           : errnum == EACCES || errnum == EPERM ? PROGRAM_DENIED
                                                 : PROGRAM_FAILED;
}

static int check_name(const char *path, const char *name, size_t size)
{
    if (size == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return program_fail(PROGRAM_USAGE, "'%s' must end with a name", path);
    return size <= META_NAME_MAX
               ? PROGRAM_OK
               : program_fail(PROGRAM_USAGE, "'%s': %s", path, strerror(ENAMETOOLONG));
}

int inside_open(const char *path, struct inside *out)
{
    struct stat st;
    _cleanup_free_ char *text = xstrdup(path);
    *out = (struct inside){.fd = -1};
    for (size_t end = strlen(text); end > 1 && text[end - 1] == '/'; end--)
        text[end - 1] = '\0';
    char *slash = strrchr(text, '/');
    const char *name = slash != NULL ? slash + 1 : text;
    const char *directory = slash == NULL ? "." : slash == text ? "/" : text;
    int code = check_name(path, name, strlen(name));
    if (code != PROGRAM_OK)
        return code;
    memcpy(out->name, name, strlen(name) + 1);
    if (slash != NULL)
        *slash = '\0';
    out->fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0 || fstat(out->fd, &st) != 0)
        return program_fail(inside_exit_of(errno), "'%s': %s", directory, strerror(errno));
    out->device = st.st_dev;
    out->directory = st.st_ino;
    return PROGRAM_OK;
}

void inside_close(struct inside *at)
{
    if (at->fd >= 0)
        close(at->fd);
}

int inside_ask(int fd, unsigned long command, void *data, const char *path)
{
    if (ioctl(fd, command, data) >= 0)
        return PROGRAM_OK;
    if (errno == ENOTTY || errno == ENOSYS)
        return program_fail(PROGRAM_USAGE, "'%s' is not in a mounted volume", path);
    return program_fail(inside_exit_of(errno), "'%s': %s", path, strerror(errno));
}
