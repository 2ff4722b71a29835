#include "target/index/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

enum { FLAGS_MAX = 1024 }; /* 256 mountpaths, and what tests open */

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { SIGNALS = sizeof signals / sizeof *signals };

static _Atomic(_Atomic uint32_t *) flags[FLAGS_MAX];
static struct sigaction before[SIGNALS];
static pthread_once_t installed = PTHREAD_ONCE_INIT;

/* The signal is blocked while this runs: the second one comes when it returns. */
static void on_fault(int signal)
{
    for (size_t i = 0; i < FLAGS_MAX; i++) {
        _Atomic uint32_t *flag = flags[i];
        if (flag != NULL)
            *flag = 1;
    }
    for (size_t i = 0; i < SIGNALS; i++) {
        if (signals[i] == signal)
            sigaction(signal, &before[i], NULL);
    }
    raise(signal);
}

static void install(void)
{
    const struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, &before[i]);
}

static void replace_flag(_Atomic uint32_t *old, _Atomic uint32_t *new)
{
    for (size_t i = 0; i < FLAGS_MAX; i++) {
        _Atomic uint32_t *expected = old;
        if (atomic_compare_exchange_strong(&flags[i], &expected, new))
            return;
    }
}

void index_guard_add(_Atomic uint32_t *flag)
{
    pthread_once(&installed, install);
    replace_flag(NULL, flag);
}

void index_guard_remove(_Atomic uint32_t *flag)
{
    replace_flag(flag, NULL);
}
