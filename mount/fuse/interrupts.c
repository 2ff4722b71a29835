#include "mount/fuse/interrupts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/interruptible.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define PATIENCE_MS 1000

static _Thread_local struct fuse_session *serving;
static _Thread_local uint64_t begun_ms;

/* A signal that ends the process is a SIGKILL of each of its threads: signal(7). */
bool interrupts_parse_killed(const char *status)
{
    const char *at = strstr(status, "\nSigPnd:");
    return at != NULL && (strtoull(at + strlen("\nSigPnd:"), NULL, 16) >> (SIGKILL - 1) & 1) != 0;
}

/* False: it cannot be seen. */
static bool read_status(pid_t thread, char *to, size_t room)
{
    char path[64];
    if (thread == 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, to, room - 1) : -1;
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool is_over(void *context)
{
    char status[4096];
    fuse_req_t req = context;
    if (fuse_session_exited(serving) != 0)
        return true;
    if (fuse_req_interrupted(req) == 0)
        return false;
    if (read_status(fuse_req_ctx(req)->pid, status, sizeof status))
        return interrupts_parse_killed(status);
    return clock_ms() - begun_ms > PATIENCE_MS;
}

void interrupts_begin(fuse_req_t req, struct fuse_session *session)
{
    serving = session;
    begun_ms = clock_ms();
    client_interruptible(is_over, req);
}

void interrupts_end(void)
{
    client_interruptible(NULL, NULL);
}
