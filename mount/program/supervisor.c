#include "mount/program/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "mount/program/program.h"
#include "mount/program/restarts.h"

#define FAILED_PAUSE_MS 1000 /* before another process, if one could not begin */

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP};

static volatile sig_atomic_t child; /* 0: none */
static volatile sig_atomic_t stopped;

static void pass_on(int number)
{
    stopped = 1;
    if (child > 0)
        kill((pid_t)child, number);
}

static void handle(void (*handler)(int))
{
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        struct sigaction action = {.sa_handler = handler};
        sigaction(passed_on[i], &action, NULL);
    }
}

/* A signal comes before the fork, or finds the child. */
static pid_t start(const struct supervised *what)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = stopped ? 0 : fork();
    if (pid == 0 && !stopped) {
        handle(SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        exit(what->serve(what->context));
    }
    child = pid > 0 ? pid : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static int await(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) != pid && errno == EINTR)
        continue;
    child = 0;
    return status;
}

bool supervisor_was_stopped(void)
{
    return stopped != 0;
}

int supervisor_run(const struct supervised *what)
{
    struct restarts restarts;
    restarts_init(&restarts, what->restarts);
    handle(pass_on);
    for (;;) {
        pid_t pid = start(what);
        if (pid < 0)
            return program_fail(PROGRAM_FAILED, "fork: %s", strerror(errno));
        if (pid == 0)
            return PROGRAM_OK; /* a signal came first */
        what->started(what->context);
        int status = await(pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == PROGRAM_OK)
            return PROGRAM_OK;
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        if (stopped || !what->can_go_on(what->context))
            return code;
        log_warn("the process that serves has died", li64("pid", pid), li64("exit", code));
        if (!restarts_allow(&restarts, clock_ms())) {
            log_error("the process that serves has died too often: no other one is started",
                      lu64("restarts", what->restarts));
            return code;
        }
        if (WIFEXITED(status))
            poll(NULL, 0, FAILED_PAUSE_MS);
    }
}
