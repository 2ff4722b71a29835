#include "net/daemon_reload.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/auth/auth.h"
#include "net/tls/tls.h"

/* The parameters as the sources have them now; NULL after a line in the log. */
static void *load(const struct daemon_reload *r)
{
    struct error err = ERROR_INIT;
    bool help;
    void *values = xcalloc(1, r->size);
    if (params_load(r->rows, values, r->argc, r->argv, &help, &err) == 0)
        return values;
    log_error("configuration not taken", lerr(&err));
    params_free(r->rows, values);
    free(values);
    return NULL;
}

static void unload(const struct daemon_reload *r, void *values)
{
    if (values == NULL)
        return;
    params_free(r->rows, values);
    free(values);
}

struct taking {
    const struct daemon_reload *reload;
    const void *now;
};

static bool take_log_level(const struct param_row *row, const void *now)
{
    enum log_level level;
    const char *text;
    memcpy(&text, (const char *)now + row->offset, sizeof text);
    if (log_level_from_name(text, &level) != 0)
        return false;
    log_set_level(level);
    return true;
}

static void told(void *ctx, const struct param_row *row, bool taken)
{
    const struct taking *t = ctx;
    if (strcmp(row->name, "log_level") == 0)
        taken = take_log_level(row, t->now);
    if (taken)
        log_info("parameter changed", lstr("name", row->name));
    else
        log_warn("parameter needs a restart to change", lstr("name", row->name));
}

static void reload_params(const struct daemon_reload *r, void **last)
{
    void *now = load(r);
    if (now == NULL)
        return;
    struct taking t = {.reload = r, .now = now};
    if (*last != NULL)
        params_take(r->rows, r->values, *last, now, r->live, told, &t);
    unload(r, *last);
    *last = now;
}

static void reload_key(const struct daemon_reload *r)
{
    struct error err = ERROR_INIT;
    bool changed = false;
    if (r->key_file[0] != '\0' && auth_reload(r->auth, r->key_file, &changed, &err) != 0)
        log_error("cluster key not taken: the one before stays", lerr(&err));
    else if (changed)
        log_info("cluster key changed");
}

static void reload(const struct daemon_reload *r, void **last)
{
    struct error err = ERROR_INIT;
    if (r->log_file[0] != '\0' && log_set_file(r->log_file, &err) != 0)
        log_error("log not opened anew", lerr(&err));
    log_info("reloading");
    reload_key(r);
    if (r->tls != NULL)
        tls_renew(r->tls, true);
    if (r->hup != NULL)
        r->hup(r->ctx);
    reload_params(r, last);
}

static int other_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void take_signal(int fd, const struct daemon_reload *r, void **last)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGHUP)
        reload(r, last);
    else
        log_info("a signal that means nothing here", lu64("signal", info.ssi_signo),
                 lu64("from", info.ssi_pid));
}

/* Until something can be read; meanwhile the files of the certificate are looked at. */
static void await(struct pollfd *fds, nfds_t count, const struct daemon_reload *r)
{
    uint64_t look_ms = r->tls != NULL ? clock_ms() + r->tls_reload_ms : UINT64_MAX;
    for (;;) {
        uint64_t now_ms = clock_ms();
        int wait_ms = r->tls == NULL ? -1 : look_ms > now_ms ? (int)(look_ms - now_ms) : 0;
        int n = poll(fds, count, wait_ms);
        assert(n >= 0 || errno == EINTR);
        if (n > 0)
            return;
        if (n == 0) {
            tls_renew(r->tls, false);
            look_ms = clock_ms() + r->tls_reload_ms;
        }
    }
}

void daemon_serve(int signals_fd, const struct daemon_reload *r)
{
    _cleanup_close_ int others = other_signals();
    void *last = load(r);
    struct pollfd fds[] = {{.fd = signals_fd, .events = POLLIN},
                           {.fd = others, .events = POLLIN},
                           {.fd = r->other_fd, .events = POLLIN}}; /* -1 is passed over */
    for (;;) {
        await(fds, 3, r);
        if (fds[0].revents != 0)
            break;
        if (fds[1].revents != 0)
            take_signal(others, r, &last);
        if (fds[2].revents != 0)
            r->other(r->ctx);
    }
    unload(r, last);
}
