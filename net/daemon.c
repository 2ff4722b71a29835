#include "net/daemon.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/build.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "net/log_tail.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "common/pages/roff.h"
#include "io/descriptors.h"
#include "io/file.h"
#include "net/daemon_metrics.h"
#include "net/tls/tls.h"

/* Files that a daemon has open beside its connections: indexes, disks, calls to other nodes. */
enum { FILES_BESIDE = 256 };

/* --- options that print ----------------------------------------------------------------------- */

static void put_help(const struct daemon_program *p, struct buf *out)
{
    buf_printf(out,
               "%s: %s\n\nusage: %s [--NAME=VALUE | --NAME VALUE]...\n\n"
               "Each parameter can also be set in the environment (DFC_NAME) and in a JSON file\n"
               "(--config FILE); the command line wins, then the environment.\n\n",
               p->name, p->summary, p->name);
    params_help(p->params, out);
    buf_puts(out, "\n  --help, --version, --man, --api-markdown, --params-markdown,\n"
                  "  --metrics-markdown, --errors-markdown: print and leave\n");
}

static void put_man(const struct daemon_program *p, struct buf *out)
{
    roff_head(out, p->name, 8, p->summary);
    roff_part(out, "SYNOPSIS");
    roff_item(out, p->name);
    roff_text(out, "[--NAME=VALUE | --NAME VALUE]...");
    roff_part(out, "DESCRIPTION");
    roff_text(out,
              "Each parameter below can also be set in the environment (DFC_NAME) and in a JSON "
              "file (--config FILE). The command line wins, then the environment.");
    roff_part(out, "PARAMETERS");
    params_man(p->params, out);
    roff_part(out, "SIGNALS");
    roff_item(out, "SIGTERM, SIGINT");
    roff_text(out, "The daemon ends after the requests that are under way.");
    roff_item(out, "SIGHUP");
    roff_text(out, "The daemon opens its log file again, and reads the key and the configuration "
                   "file again.");
    roff_part(out, "SEE ALSO");
    roff_text(out, "dfcctl(1)");
}

static void put_version(const struct daemon_program *p, struct buf *out)
{
    buf_printf(out, "%s %s\n", p->name, build_text());
}

static void put_api(const struct daemon_program *p, struct buf *out)
{
    http_routes_markdown(p->routes, out);
}

static void put_params(const struct daemon_program *p, struct buf *out)
{
    params_markdown(p->params, out);
    if (p->more_params != NULL)
        p->more_params(out);
}

static void put_metrics(const struct daemon_program *p, struct buf *out)
{
    (void)p;
    metrics_markdown(out);
}

static void put_errors(const struct daemon_program *p, struct buf *out)
{
    (void)p;
    errors_markdown(out);
}

static const struct {
    const char *option;
    void (*put)(const struct daemon_program *p, struct buf *out);
} printers[] = {
    {"--help", put_help},
    {"--version", put_version},
    {"--man", put_man},
    {"--api-markdown", put_api},
    {"--params-markdown", put_params},
    {"--metrics-markdown", put_metrics},
    {"--errors-markdown", put_errors},
};

static bool put_option(const struct daemon_program *p, const char *option, struct buf *out)
{
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        if (strcmp(option, printers[i].option) == 0) {
            printers[i].put(p, out);
            return true;
        }
    }
    for (const struct daemon_printer *own = p->printers; own != NULL && own->option != NULL;
         own++) {
        if (strcmp(option, own->option) == 0) {
            own->put(out);
            return true;
        }
    }
    return false;
}

bool daemon_printed(const struct daemon_program *p, int argc, char **argv)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    for (int i = 1; i < argc; i++) {
        if (put_option(p, argv[i], &text)) {
            fputs(buf_str(&text), stdout);
            return true;
        }
    }
    return false;
}

/* --- beginning -------------------------------------------------------------------------------- */

/* The standard error of the start while the log is a file; -1: none, or the daemon is ready. */
static int first_stderr = -1;

static void forget_first_stderr(void)
{
    if (first_stderr >= 0)
        close(first_stderr);
    first_stderr = -1;
}

static int begin_log_file(const char *path, struct error *err)
{
    first_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return log_set_file(path, err);
}

void daemon_ends(const char *program, const struct error *err)
{
    _cleanup_free_ char *event = xprintf("%s ends", program);
    log_error(event, lerr(err));
    if (first_stderr >= 0)
        dprintf(first_stderr, "%s: %s\n", program, err->message);
    forget_first_stderr();
}

int daemon_log_check(const char *level, const char *format, struct error *err)
{
    enum log_level known;
    if (log_level_from_name(level, &known) != 0)
        return error_set(err, E_INVALID, "log_level: '%s' is none of debug, info, warn, error, off",
                         level);
    if (strcmp(format, "json") != 0 && strcmp(format, "text") != 0)
        return error_set(err, E_INVALID, "--log-format: '%.32s' is neither text nor json", format);
    return 0;
}

static int begin_log(const struct daemon_config *config, struct error *err)
{
    enum log_level level = LOG_INFO;
    bool json = strcmp(config->log_format, "json") == 0;
    int code = daemon_log_check(config->log_level, config->log_format, err);
    if (code == 0 && config->log_file[0] != '\0')
        code = begin_log_file(config->log_file, err);
    if (code != 0)
        return code;
    log_level_from_name(config->log_level, &level);
    log_tail_keep(config->log_memory);
    log_set_copy(log_tail_add);
    log_set_level(level);
    log_set_format(json ? LOG_JSON : LOG_TEXT);
    log_set_node(config->id);
    return 0;
}

/* Those that daemon_serve() takes: until it does they wait. */
static int block_others(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int daemon_begin(const struct daemon_config *config, int *signals_fd, struct error *err)
{
    int code = begin_log(config, err);
    if (code == 0)
        code = fault_configure(config->faults, err);
    if (code != 0)
        return code;
    daemon_metrics_begin();
    log_info("starting", lstr("program", config->program), lstr("release", build_release()),
             lstr("commit", build_commit()), lstr("built", build_date()), li64("pid", getpid()));
    descriptors_raise();
    descriptors_check(config->files_wanted + FILES_BESIDE);
    signal(SIGPIPE, SIG_IGN); /* a client that leaves is an error of write(), not an end */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    *signals_fd = -1;
    if (block_others() == 0 && pthread_sigmask(SIG_BLOCK, &set, NULL) == 0)
        *signals_fd = signalfd(-1, &set, SFD_CLOEXEC);
    return *signals_fd >= 0 ? 0 : error_errno(err, errno, "signalfd");
}

bool daemon_await(int signals_fd, int other_fd)
{
    struct pollfd fds[] = {{.fd = signals_fd, .events = POLLIN},
                           {.fd = other_fd, .events = POLLIN}}; /* -1 is passed over */
    while (poll(fds, 2, -1) < 0)
        assert(errno == EINTR);
    return fds[0].revents != 0;
}

bool daemon_pause(int signals_fd, int ms)
{
    struct signalfd_siginfo info;
    struct pollfd fd = {.fd = signals_fd, .events = POLLIN};
    return poll(&fd, 1, ms) > 0 && read(signals_fd, &info, sizeof info) > 0;
}

/* --- ready ------------------------------------------------------------------------------------ */

int daemon_write_ready(const char *dir, json_t *doc, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/ready.json", dir);
    _cleanup_free_ char *text = json_text(doc);
    int code = file_mkdirs(dir, 0750, err);
    if (code == 0)
        code = file_replace(path, text, strlen(text), 0640, err);
    if (code == 0)
        forget_first_stderr();
    return code;
}

void daemon_remove_ready(const char *dir)
{
    _cleanup_free_ char *path = xprintf("%s/ready.json", dir);
    if (unlink(path) != 0 && errno != ENOENT)
        log_warn("ready.json not removed", lstr("path", path), li64("errno", errno));
}

const char *daemon_address(const char *own, const char *all)
{
    return own[0] != '\0' ? own : all;
}

const char *daemon_host(const char *own, const char *all, const char *advertise, bool between_nodes)
{
    bool everywhere = strcmp(own, "0.0.0.0") == 0 || strcmp(own, "::") == 0;
    if (between_nodes && own[0] != '\0' && !everywhere)
        return own;
    return advertise[0] != '\0' ? advertise : daemon_address(own, all);
}

char *daemon_url(bool tls, const char *host, uint16_t port)
{
    bool ipv6 = strchr(host, ':') != NULL && *host != '[';
    return xprintf(ipv6 ? "http%s://[%s]:%u" : "http%s://%s:%u", tls ? "s" : "", host, port);
}

unsigned daemon_http_threads(uint64_t wanted)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > 0)
        return (unsigned)wanted;
    return cpus > 2 ? (unsigned)cpus : 2;
}

int daemon_tls_new(const char *cert_file, const char *key_file, struct tls **out, struct error *err)
{
    *out = NULL;
    if ((*cert_file == '\0') != (*key_file == '\0'))
        return error_set(err, E_INVALID, "--tls-cert and --tls-key need each other: %s is missing",
                         *cert_file == '\0' ? "--tls-cert" : "--tls-key");
    return *cert_file != '\0' ? tls_new(cert_file, key_file, out, err) : 0;
}
