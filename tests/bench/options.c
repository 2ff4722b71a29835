#include "tests/bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/parse.h"
#include "tests/bench/response.h"

enum option_id {
    OPT_URL = 256,
    OPT_MODE,
    OPT_PATH,
    OPT_PATHS,
    OPT_PREFIX,
    OPT_NAMES,
    OPT_SIZE,
    OPT_PUT_PERCENT,
    OPT_CONNECTIONS,
    OPT_THREADS,
    OPT_DURATION,
    OPT_REQUESTS,
    OPT_TIMEOUT,
    OPT_REDIRECT,
    OPT_HEADER,
    OPT_EXPECT,
    OPT_CLOSE,
    OPT_ZEROS,
    OPT_PID,
    OPT_HELP,
};

static const struct option_row {
    const char *name;
    int id;
    const char *argument; /* NULL: none */
    const char *help;
} rows[] = {
    {"url", OPT_URL, "http://HOST:PORT", "the server"},
    {"mode", OPT_MODE, "get|put|mixed", "what to send (get)"},
    {"path", OPT_PATH, "PATH", "a path to GET; may be repeated, taken in turn"},
    {"paths", OPT_PATHS, "FILE", "paths to GET, one a line"},
    {"prefix", OPT_PREFIX, "PATH", "PUT to PATH00000000, PATH00000001, …"},
    {"names", OPT_NAMES, "N", "PUT to the same N names again and again (0: never the same)"},
    {"size", OPT_SIZE, "SIZE", "of each PUT's body (1KiB)"},
    {"put-percent", OPT_PUT_PERCENT, "P", "share of PUTs in mixed mode (20)"},
    {"connections", OPT_CONNECTIONS, "N", "clients, each with one request at a time (32)"},
    {"threads", OPT_THREADS, "N", "of this program (2)"},
    {"duration", OPT_DURATION, "TIME", "no request begins after it (1s)"},
    {"requests", OPT_REQUESTS, "N", "no more requests than these (unlimited)"},
    {"timeout", OPT_TIMEOUT, "TIME", "for one request (30s)"},
    {"redirect", OPT_REDIRECT, "none|follow|cache", "a 307: an answer, a hop each time, or once"},
    {"header", OPT_HEADER, "LINE", "one more header line; may be repeated"},
    {"expect", OPT_EXPECT, NULL, "PUT with Expect: 100-continue"},
    {"close", OPT_CLOSE, NULL, "a new connection for each request"},
    {"zeros", OPT_ZEROS, NULL, "bodies of zeros, for disks that keep them in less (random bytes)"},
    {"pid", OPT_PID, "PID", "a server process whose CPU time to report; may be repeated"},
    {"help", OPT_HELP, NULL, "this text"},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

void load_options_help(void)
{
    puts("usage: dfc-load --url http://HOST:PORT [options]\n"
         "Loads an HTTP/1.1 server and prints what it did as JSON.\n");
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        char left[48];
        const char *argument = rows[i].argument;
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, argument ? "=" : "",
                 argument ? argument : "");
        printf("  %-32s %s\n", left, rows[i].help);
    }
}

static int choose(const char *option, const char *text, const char *const names[], unsigned count,
                  unsigned *out, struct error *err)
{
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "--%s: '%s' is none of its values", option, text);
}

static int parse_bounded(const char *option, const char *text, uint64_t min, uint64_t max,
                         uint64_t *out, struct error *err)
{
    if (parse_u64(text, out, err) != 0)
        return error_wrap(err, "--%s", option);
    if (*out < min || *out > max)
        return error_set(err, E_INVALID, "--%s: %s is not from %ju to %ju", option, text,
                         (uintmax_t)min, (uintmax_t)max);
    return 0;
}

static int parse_unsigned(const char *option, const char *text, unsigned min, unsigned max,
                          unsigned *out, struct error *err)
{
    uint64_t value;
    int rc = parse_bounded(option, text, min, max, &value, err);
    if (rc == 0)
        *out = (unsigned)value;
    return rc;
}

static int path_add(struct load *load, const char *path, size_t len, struct error *err)
{
    if (len == 0 || path[0] != '/' || len >= LOAD_PATH_MAX)
        return error_set(err, E_INVALID, "path '%.*s' does not begin with a slash or is too long",
                         (int)(len < 80 ? len : 80), path);
    char **grown = realloc(load->paths, (load->path_count + 1) * sizeof grown[0]);
    if (grown == NULL)
        return error_set(err, E_NOMEM, "paths");
    load->paths = grown;
    load->paths[load->path_count] = strndup(path, len);
    if (load->paths[load->path_count] == NULL)
        return error_set(err, E_NOMEM, "paths");
    load->path_count++;
    return 0;
}

static void file_closep(FILE **f)
{
    if (*f != NULL)
        fclose(*f);
}

static int paths_read(struct load *load, const char *file, struct error *err)
{
    _cleanup_(file_closep)
    FILE *f = fopen(file, "re");
    if (f == NULL)
        return error_errno(err, errno, "open '%s'", file);
    _cleanup_free_ char *line = NULL;
    size_t room = 0;
    for (ssize_t n; (n = getline(&line, &room, f)) > 0;) {
        size_t len = (size_t)n - (line[n - 1] == '\n');
        int rc = path_add(load, line, len, err);
        if (rc != 0)
            return error_wrap(err, "'%s'", file);
    }
    return ferror(f) ? error_errno(err, errno, "read '%s'", file) : 0;
}

static int header_add(struct load *load, const char *line, struct error *err)
{
    size_t used = strlen(load->extra_head);
    size_t room = sizeof load->extra_head - used;
    int n = snprintf(load->extra_head + used, room, "%s\r\n", line);
    if (n < 0 || (size_t)n >= room)
        return error_set(err, E_INVALID, "--header: more than %u bytes in all",
                         (unsigned)sizeof load->extra_head);
    return 0;
}

static int url_take(struct load *load, const char *text, struct error *err)
{
    struct url_parts url;
    if (!url_split(text, strlen(text), &url))
        return error_set(err, E_INVALID, "--url: '%s' is not http://HOST:PORT", text);
    int rc = load_endpoint_resolve(url.host, url.host_len, url.port, &load->endpoint);
    if (rc != 0)
        return error_set(err, E_INVALID, "--url: '%s': %s", text, gai_strerror(rc));
    return 0;
}

static int mode_take(struct load *load, const char *text, struct error *err)
{
    static const char *const modes[] = {"get", "put", "mixed"};
    unsigned value = 0;
    int rc = choose("mode", text, modes, 3, &value, err);
    load->mode = (enum load_mode)value;
    return rc;
}

static int redirect_take(struct load *load, const char *text, struct error *err)
{
    static const char *const redirects[] = {"none", "follow", "cache"};
    unsigned value = 0;
    int rc = choose("redirect", text, redirects, 3, &value, err);
    load->redirect = (enum load_redirect)value;
    return rc;
}

static int pid_take(struct load_options *out, const char *text, struct error *err)
{
    unsigned value = 0;
    if (out->pid_count == LOAD_PIDS_MAX)
        return error_set(err, E_INVALID, "--pid: more than %d", LOAD_PIDS_MAX);
    int rc = parse_unsigned("pid", text, 1, INT32_MAX, &value, err);
    out->pids[out->pid_count++] = (pid_t)value;
    return rc;
}

static int option_take(int id, const char *text, struct load *load, struct load_options *out,
                       struct error *err)
{
    switch (id) {
    case OPT_URL:
        return url_take(load, text, err);
    case OPT_MODE:
        return mode_take(load, text, err);
    case OPT_PATH:
        return path_add(load, text, strlen(text), err);
    case OPT_PATHS:
        return paths_read(load, text, err);
    case OPT_PREFIX:
        load->put_prefix = text;
        return strlen(text) < LOAD_PATH_MAX - 32 && text[0] == '/'
                   ? 0
                   : error_set(err, E_INVALID, "--prefix: no slash in front, or too long");
    case OPT_NAMES:
        return parse_bounded("names", text, 0, UINT64_MAX, &load->put_names, err);
    case OPT_SIZE:
        return parse_size(text, &load->body_bytes, err);
    case OPT_PUT_PERCENT:
        return parse_unsigned("put-percent", text, 0, 100, &load->put_percent, err);
    case OPT_CONNECTIONS:
        return parse_unsigned("connections", text, 1, 20000, &load->connections, err);
    case OPT_THREADS:
        return parse_unsigned("threads", text, 1, 64, &load->threads, err);
    case OPT_DURATION:
        return parse_duration_ms(text, &load->duration_ms, err);
    case OPT_REQUESTS:
        return parse_bounded("requests", text, 1, UINT64_MAX, &load->requests_max, err);
    case OPT_TIMEOUT:
        return parse_duration_ms(text, &load->timeout_ms, err);
    case OPT_REDIRECT:
        return redirect_take(load, text, err);
    case OPT_HEADER:
        return header_add(load, text, err);
    case OPT_EXPECT:
        load->expect = true;
        return 0;
    case OPT_CLOSE:
        load->close_each = true;
        return 0;
    case OPT_ZEROS:
        load->zeros = true;
        return 0;
    case OPT_PID:
        return pid_take(out, text, err);
    case OPT_HELP:
        out->help = true;
        return 0;
    default:
        return error_set(err, E_INVALID, "unknown option; --help lists them");
    }
}

static int load_check(const struct load *load, struct error *err)
{
    if (load->endpoint.address_len == 0)
        return error_set(err, E_INVALID, "--url is missing");
    if (load->mode != LOAD_PUT && load->path_count == 0)
        return error_set(err, E_INVALID, "--path or --paths is missing");
    if (load->mode != LOAD_GET && load->put_prefix == NULL)
        return error_set(err, E_INVALID, "--prefix is missing");
    if (load->duration_ms == 0 || load->duration_ms > 3600 * 1000)
        return error_set(err, E_INVALID, "--duration is not from 1ms to 1h");
    if (load->timeout_ms == 0 || load->timeout_ms > 3600 * 1000)
        return error_set(err, E_INVALID, "--timeout is not from 1ms to 1h");
    if (load->body_bytes > 1ull << 30)
        return error_set(err, E_INVALID, "--size is more than 1GiB");
    return 0;
}

int load_options_parse(int argc, char **argv, struct load *load, struct load_options *out,
                       struct error *err)
{
    struct option table[ROW_COUNT + 1] = {0};
    for (unsigned i = 0; i < ROW_COUNT; i++)
        table[i] = (struct option){
            .name = rows[i].name,
            .has_arg = rows[i].argument != NULL ? required_argument : no_argument,
            .val = rows[i].id,
        };
    load->connections = 32;
    load->threads = 2;
    load->put_percent = 20;
    load->body_bytes = 1024;
    load->duration_ms = 1000;
    load->timeout_ms = 30000;
    load->requests_max = UINT64_MAX;
    for (int id; (id = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        int rc = option_take(id, optarg, load, out, err);
        if (rc != 0)
            return rc;
    }
    if (out->help)
        return 0;
    if (optind < argc)
        return error_set(err, E_INVALID, "'%s' is no option", argv[optind]);
    return load_check(load, err);
}

void load_options_done(struct load *load)
{
    for (unsigned i = 0; i < load->path_count; i++)
        free(load->paths[i]);
    free(load->paths);
}
