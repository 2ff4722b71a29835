/* Log lines: one event, one line, on stderr.
 *
 *     log_warn("target unreachable", lstr("node", id), li64("silent_ms", ms));
 *
 * gives, as text,
 *
 *     2026-11-21T03:04:05.123Z WARN t1 target unreachable node=t3 silent_ms=5123
 *
 * and as JSON, with log_set_format(LOG_JSON), one object: time, level, daemon, event and the same
 * keys.  The request id of the request that the thread works on (log_set_request) is added as
 * `req`.  Values are quoted and escaped where needed (what buf_put_json_escaped says of bytes that
 * are not UTF-8 holds in both forms) and cut after LOG_VALUE_MAX bytes; a line is written by one
 * write(2).  Safe in any thread; errno is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum { LOG_VALUE_MAX = 4096 };

/* LOG_AUDIT is above LOG_OFF: it cannot be set, and what is written at it is never left out. */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF, LOG_AUDIT };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
    const char *key; /* NULL ends the list */
    enum { LOG_F_STR, LOG_F_I64, LOG_F_U64, LOG_F_BOOL } type;
    union {
        const char *str;
        int64_t i64;
        uint64_t u64;
        bool boolean;
    };
};

#define lstr(k, v) ((struct log_field){.key = (k), .type = LOG_F_STR, .str = (v)})
#define li64(k, v) ((struct log_field){.key = (k), .type = LOG_F_I64, .i64 = (v)})
#define lu64(k, v) ((struct log_field){.key = (k), .type = LOG_F_U64, .u64 = (v)})
#define lbool(k, v) ((struct log_field){.key = (k), .type = LOG_F_BOOL, .boolean = (v)})
/* The code and message of a struct error *. */
#define lerr(e) lstr("code", error_name((e)->code)), lstr("error", (e)->message)

void log_write(enum log_level level, const char *event, const struct log_field *fields);

#define log_at(level, event, ...) \
    log_write((level), (event), (struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_audit(...) log_at(LOG_AUDIT, __VA_ARGS__)

void log_set_level(enum log_level level);    /* default LOG_INFO */
const char *log_level_now(void);             /* its name */
void log_set_format(enum log_format format); /* default LOG_TEXT */
void log_set_node(const char *name);         /* "t1"; copied */
/* Lines are appended to this file, in place of stderr, from now on; again with the same path: the
 * file is opened anew, since it was renamed.  After an error they go where they went. */
int log_set_file(const char *path, struct error *err);
/* fn() gets each line, too, with its newline: in any thread.  Once, before there are others. */
void log_set_copy(void (*fn)(const char *line, size_t len));
/* The request id that this thread's lines carry, or NULL for none; not copied. */
void log_set_request(const char *request_id);
int log_level_from_name(const char *name, enum log_level *level); /* 0 or E_INVALID */
