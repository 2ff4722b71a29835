#include "mount/tcmu/sysfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define MOST 4096

char *sysfile_read(const char *path)
{
    char text[MOST + 1];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, MOST) : -1;
    if (n < 0)
        return NULL;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return xstrdup(text);
}

uint64_t sysfile_number(const char *path)
{
    _cleanup_free_ char *text = sysfile_read(path);
    return text != NULL ? strtoull(text, NULL, 0) : 0;
}

int sysfile_write(const char *path, const char *text, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    const size_t len = strlen(text);
    if (fd >= 0 && write(fd, text, len) == (ssize_t)len)
        return 0;
    return error_errno(err, errno, "write '%s' to '%s'", text, path);
}

int sysfile_make(const char *path, struct error *err)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return 0;
    return error_errno(err, errno, "make '%s'", path);
}

int sysfile_remove(const char *path, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "remove '%s'", path);
    const int rc = S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path);
    return rc == 0 || errno == ENOENT ? 0 : error_errno(err, errno, "remove '%s'", path);
}

char *sysfile_first(const char *directory, const char *prefix)
{
    char *found = NULL;
    DIR *all = opendir(directory);
    const struct dirent *e;
    while (all != NULL && found == NULL && (e = readdir(all)) != NULL) {
        if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            found = xstrdup(e->d_name);
    }
    if (all != NULL)
        closedir(all);
    return found;
}
