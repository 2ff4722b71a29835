#include "io/thread.h"

#include <signal.h>

#include "common/fault.h"

/* A thread's own faults: blocked, they would end the process without their handlers. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void thread_name(pthread_t thread, const char *name)
{
    char text[16]; /* the kernel's limit, with the NUL */
    snprintf(text, sizeof text, "%s", name);
    pthread_setname_np(thread, text);
}

int thread_start(const char *name, void *(*fn)(void *arg), void *arg, pthread_t *out,
                 struct error *err)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    int errnum = fault_errno("thread.start");
    if (errnum == 0)
        errnum = pthread_create(out, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum != 0) { /* this process's trouble, as too many open files */
        error_errno(err, errnum, "'%s'", name);
        return error_recode(err, E_OVERLOAD, "start thread");
    }
    thread_name(*out, name);
    return 0;
}
