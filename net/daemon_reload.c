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
#include "net/daemon_sources.h"
#include "net/notify.h"
#include "net/tls/tls.h"

/* The parameters as the sources have them now; NULL after a line in the log.  check: also where the
 * start would refuse them. */
static void *load(const struct daemon_reload *r, bool check)
{
    struct error err = ERROR_INIT;
    bool help;
    void *values = xcalloc(1, r->size);
    int code = params_load(r->rows, values, r->argc, r->argv, &help, &err);
    if (code == 0 && check && r->check != NULL)
        code = r->check(values, &err);
    if (code == 0)
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
    void *now = load(r, true);
    if (now == NULL)
        return;
    struct taking t = {.reload = r, .now = now};
    if (*last != NULL)
        daemon_sources_take(r->sources, *last, now, told, &t);
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
    notify_reloading(r->notify);
    if (r->log_file[0] != '\0' && log_set_file(r->log_file, &err) != 0)
        log_error("log not opened anew", lerr(&err));
    log_info("reloading");
    reload_key(r);
    if (r->tls != NULL)
        tls_renew(r->tls, true);
    if (r->hup != NULL)
        r->hup(r->ctx);
    reload_params(r, last);
    notify_reloaded(r->notify);
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

/* What is waited for. */
enum { FD_SIGNALS, FD_OTHER_SIGNALS, FD_OTHER, FD_NOTIFY, FDS };

static int wait_ms(uint64_t until_ms)
{
    uint64_t now_ms = clock_ms();
    if (until_ms == UINT64_MAX)
        return -1;
    return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}

/* At the files of the certificate, when it is time; whatever else comes meanwhile. */
static void look(const struct daemon_reload *r, uint64_t *look_ms)
{
    if (*look_ms > clock_ms())
        return;
    tls_renew(r->tls, false);
    *look_ms = clock_ms() + r->tls_reload_ms;
}

/* Until something can be read; meanwhile the files of the certificate are looked at, and a manager
 * that could not be reached is tried again. */
static void await(struct pollfd fds[static FDS], const struct daemon_reload *r, uint64_t *look_ms)
{
    for (;;) {
        uint64_t retry_ms = notify_retry_ms(r->notify);
        fds[FD_NOTIFY].fd = notify_fd(r->notify);
        int n = poll(fds, FDS, wait_ms(retry_ms < *look_ms ? retry_ms : *look_ms));
        assert(n >= 0 || errno == EINTR);
        look(r, look_ms);
        if (n > 0)
            return;
        if (retry_ms <= clock_ms())
            notify_flush(r->notify);
    }
}

void daemon_serve(int signals_fd, const struct daemon_reload *r)
{
    _cleanup_close_ int others = other_signals();
    void *last = load(r, false);
    uint64_t look_ms = r->tls != NULL ? clock_ms() + r->tls_reload_ms : UINT64_MAX;
    struct pollfd fds[] = {
        [FD_SIGNALS] = {.fd = signals_fd, .events = POLLIN},
        [FD_OTHER_SIGNALS] = {.fd = others, .events = POLLIN},
        [FD_OTHER] = {.fd = r->other_fd, .events = POLLIN}, /* -1 is passed over */
        [FD_NOTIFY] = {.events = POLLOUT},
    };
    for (;;) {
        await(fds, r, &look_ms);
        if (fds[FD_SIGNALS].revents != 0)
            break;
        if (fds[FD_OTHER_SIGNALS].revents != 0)
            take_signal(others, r, &last);
        if (fds[FD_OTHER].revents != 0)
            r->other(r->ctx);
        if (fds[FD_NOTIFY].revents != 0)
            notify_flush(r->notify);
    }
    unload(r, last);
}
