#include "api/ctl/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

#include "api/ctl/exit.h"
#include "common/clock.h"

static _Atomic(struct dfc_client *) client_to_cancel;
static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    (void)number;
    if (seen)
        _exit(EXIT_INTERRUPTED);
    seen = 1;
    struct dfc_client *c = atomic_load(&client_to_cancel);
    if (c != NULL)
        dfc_client_cancel(c);
}

void interrupt_install(struct dfc_client *client)
{
    atomic_store(&client_to_cancel, client);
    /* No SA_RESTART: a blocking read of standard input ends as well. */
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
}

bool interrupted(void)
{
    return seen != 0;
}

bool interrupt_pause(uint64_t ms)
{
    uint64_t until = clock_ms() + ms;
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    /* Signals come only inside ppoll(), so that none falls between the question and the wait. */
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    for (uint64_t now = clock_ms(); !interrupted() && now < until; now = clock_ms()) {
        uint64_t left = until - now;
        struct timespec t = {.tv_sec = (time_t)(left / 1000),
                             .tv_nsec = (long)(left % 1000) * 1000000L};
        ppoll(NULL, 0, &t, &before);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !interrupted();
}
