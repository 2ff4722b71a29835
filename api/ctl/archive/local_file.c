#include "api/ctl/archive/local_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int local_file_note(struct shard_file *f, struct error *err)
{
    struct stat st;
    if (stat(f->path, &st) != 0 || access(f->path, R_OK) != 0)
        return error_errno(err, errno, "cannot be read");
    if (!S_ISREG(st.st_mode))
        return error_set(err, E_INVALID, "it is not a file");
    f->size = (uint64_t)st.st_size;
    f->mode = (uint32_t)st.st_mode & 0777;
    f->mtime = st.st_mtim.tv_sec;
    return 0;
}
