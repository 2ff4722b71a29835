#include "io/descriptors.h"

#include <errno.h>
#include <sys/resource.h>

#include "common/log.h"

void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn("the limit of open files stays", li64("errno", errno));
}

void descriptors_check(uint64_t wanted)
{
    uint64_t limit = descriptors_limit();
    if (limit < wanted)
        log_warn("the limit of open files is low: connections will be refused; raise it "
                 "(LimitNOFILE, ulimit -n), or lower --connections-max",
                 lu64("limit", limit), lu64("wanted", wanted));
}

uint64_t descriptors_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}
