#include "common/error.h"

#include <errno.h>

#include "common/buf.h"

static const struct error_row {
    const char *name;
    const char *text;
    int status;
} error_rows[] = {
#define ERROR(id, http, code, sentence) {.name = (code), .text = (sentence), .status = (http)},
#include "common/error.def"
#undef ERROR
};

static const struct error_row *error_row(int code)
{
    if (code <= E_FIRST_ || code >= E_END_)
        return NULL;
    return &error_rows[code - E_FIRST_ - 1];
}

static int error_vset(struct error *err, int code, const char *fmt, va_list ap)
{
    if (err != NULL) {
        err->code = code;
        vsnprintf(err->message, sizeof err->message, fmt, ap);
    }
    return code;
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    error_vset(err, code, fmt, ap);
    va_end(ap);
    return code;
}

static int error_code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return E_NO_SPACE;
    case ENOMEM:
        return E_NOMEM;
    case EMFILE: /* this process's trouble, not a disk's */
    case ENFILE:
        return E_OVERLOAD;
    default:
        return E_IO;
    }
}

int error_errno(struct error *err, int errnum, const char *fmt, ...)
{
    int code = error_code_of_errno(errnum);
    if (err == NULL)
        return code;
    va_list ap;
    va_start(ap, fmt);
    error_vset(err, code, fmt, ap);
    va_end(ap);
    char reason[128];
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s",
             strerror_r(errnum, reason, sizeof reason));
    return code;
}

static void error_vprefix(struct error *err, const char *fmt, va_list ap)
{
    char inner[sizeof err->message];
    memcpy(inner, err->message, sizeof inner);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s", inner);
}

int error_wrap(struct error *err, const char *fmt, ...)
{
    if (err == NULL || err->code == 0)
        return E_INTERNAL;
    va_list ap;
    va_start(ap, fmt);
    error_vprefix(err, fmt, ap);
    va_end(ap);
    return err->code;
}

int error_recode(struct error *err, int code, const char *fmt, ...)
{
    if (err == NULL)
        return code;
    va_list ap;
    va_start(ap, fmt);
    error_vprefix(err, fmt, ap);
    va_end(ap);
    err->code = code;
    return code;
}

int error_forgive(struct error *err, int code, int forgiven)
{
    if (code != forgiven)
        return code;
    if (err != NULL)
        *err = ERROR_INIT;
    return 0;
}

const char *error_name(int code)
{
    if (code == 0)
        return "ok";
    const struct error_row *row = error_row(code);
    return row != NULL ? row->name : "internal";
}

const char *error_text(int code)
{
    const struct error_row *row = error_row(code);
    return row != NULL ? row->text : "";
}

int error_status(int code)
{
    if (code == 0)
        return 200;
    const struct error_row *row = error_row(code);
    return row != NULL ? row->status : 500;
}

int error_from_name(const char *name)
{
    for (int code = E_FIRST_ + 1; code < E_END_; code++) {
        if (strcmp(error_row(code)->name, name) == 0)
            return code;
    }
    return 0;
}

/* The rows of one status; returns the next greater status that a row has, or 0. */
static int put_rows(struct buf *out, int status)
{
    int next = 0;
    for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++) {
        const struct error_row *row = &error_rows[i];
        if (row->status > status && (next == 0 || row->status < next))
            next = row->status;
        if (row->status != status)
            continue;
        buf_printf(out, "| %d |", status);
        buf_put_cell(out, row->name, "`");
        buf_put_cell(out, row->text, "");
        buf_putc(out, '\n');
    }
    return next;
}

void errors_markdown(struct buf *out)
{
    buf_puts(out, "| status | code | meaning |\n|---|---|---|\n");
    for (int status = put_rows(out, 0); status != 0;)
        status = put_rows(out, status);
}
