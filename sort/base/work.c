#include "sort/base/work.h"

#include "io/file.h"

int work_write(const struct sort_env *env, int fd, const void *data, size_t len, uint64_t at,
               struct error *err)
{
    int rc = env->claim_work != NULL ? env->claim_work(env->ctx, fd, at, at + len, err) : 0;
    return rc != 0 ? rc : file_pwrite_all(fd, data, len, at, err);
}
