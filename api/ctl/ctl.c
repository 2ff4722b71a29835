#include "api/ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>

#include "api/client.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/print/text.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/parse.h"

static void error_json(const struct ctl *ctl, const struct dfc_error *e, const char *message,
                       int code)
{
    json_t *inner = json_pack("{s:s, s:s, s:i}", "code", e->code[0] != '\0' ? e->code : "failed",
                              "message", message, "exit", code);
    if (e->status != 0)
        json_object_set_new(inner, "status", json_integer(e->status));
    if (e->node[0] != '\0')
        json_object_set_new(inner, "node", json_string(e->node));
    if (e->request_id[0] != '\0')
        json_object_set_new(inner, "request_id", json_string(e->request_id));
    _cleanup_json_ json_t *doc = json_pack("{s:o}", "error", inner);
    _cleanup_free_ char *text = json_text(doc);
    fprintf(ctl->err, "%s\n", text);
}

/* What finds the error in the cluster's logs: of interest where the cluster failed. */
static void error_details(const struct ctl *ctl, const struct dfc_error *e)
{
    const char *lead = "dfcctl: (";
    const struct {
        const char *label, *text;
    } parts[] = {{"code", e->code}, {"node", e->node}, {"request", e->request_id}};
    if (!ctl->verbose && (e->result != DFC_FAILED || e->request_id[0] == '\0'))
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].text[0] == '\0')
            continue;
        fprintf(ctl->err, "%s%s %s", lead, parts[i].label, parts[i].text);
        lead = ", ";
    }
    fputs(strcmp(lead, ", ") == 0 ? ")\n" : "", ctl->err);
}

static int report(const struct ctl *ctl, const struct dfc_error *e, const char *what, int code)
{
    _cleanup_(buf_done)
    struct buf message = BUF_INIT;
    _cleanup_free_ char *said = text_with_flags(e->message);
    if (what != NULL && !text_names(said, what))
        buf_printf(&message, "%s: ", what);
    buf_puts(&message, said);
    if (ctl->json) {
        error_json(ctl, e, buf_str(&message), code);
    } else if (e->result != DFC_CANCELLED || !interrupted()) { /* who pressed the keys knows */
        _cleanup_free_ char *clean = text_clean(buf_str(&message));
        fprintf(ctl->err, "dfcctl: %s\n", clean);
        error_details(ctl, e);
    }
    return code;
}

int ctl_fail(const struct ctl *ctl, const struct dfc_error *err, const char *what)
{
    int code = report(ctl, err, what, exit_of_error(err));
    if (code == EXIT_UNREACHABLE && ctl->client != NULL && client_is_default(ctl->client))
        ctl_remark(ctl, "dfcctl: neither --endpoint nor DFC_ENDPOINT names a proxy of the cluster: "
                        "this is the default");
    return code;
}

int ctl_fail_common(const struct ctl *ctl, const struct error *err, enum exit_code code)
{
    struct dfc_error e = {0};
    snprintf(e.code, sizeof e.code, "%s", error_name(err->code));
    snprintf(e.message, sizeof e.message, "%s", err->message);
    return report(ctl, &e, NULL, (int)code);
}

int ctl_usage(const struct ctl *ctl, const char *fmt, ...)
{
    struct error e = {.code = E_INVALID};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e.message, sizeof e.message, fmt, ap);
    va_end(ap);
    return ctl_fail_common(ctl, &e, EXIT_USAGE);
}

/* A line for people. */
static void say_to(const struct ctl *ctl, FILE *out, const char *fmt, va_list ap)
{
    if (ctl->quiet || ctl->json)
        return;
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    buf_vprintf(&text, fmt, ap);
    _cleanup_free_ char *clean = text_clean(buf_str(&text));
    fprintf(out, "%s\n", clean);
}

void ctl_remark(const struct ctl *ctl, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(ctl, ctl->err, fmt, ap);
    va_end(ap);
}

void ctl_say(const struct ctl *ctl, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(ctl, ctl->out, fmt, ap);
    va_end(ap);
}

void ctl_print_json(const struct ctl *ctl, json_t *doc)
{
    json_dumpf(doc, ctl->out, JSON_INDENT(2) | json_precision(doc));
    fputc('\n', ctl->out);
    json_decref(doc);
}

int ctl_parse(const struct ctl *ctl, const char *text, json_t **doc)
{
    struct error e = ERROR_INIT;
    if (json_parse(text, strlen(text), doc, &e) == 0)
        return EXIT_OK;
    error_wrap(&e, "the server's reply");
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

int ctl_cluster(const struct ctl *ctl, const char *what, json_t **doc)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_cluster_show(ctl->client, what, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what != NULL ? what : "cluster");
    return ctl_parse(ctl, text, doc);
}

const char *ctl_size(const struct ctl *ctl, uint64_t bytes, char out[static 24])
{
    if (!ctl->raw_units)
        return format_size(bytes, out);
    snprintf(out, 24, "%llu", (unsigned long long)bytes);
    return out;
}

const char *ctl_time(int64_t unix_ms, char out[static 32])
{
    if (unix_ms == 0)
        return "-";
    clock_format_rfc3339(unix_ms, out);
    if (strlen(out) >= 19) {
        out[10] = ' ';
        out[19] = '\0';
    }
    return out;
}

int ctl_confirm(const struct ctl *ctl, const struct args *args, const char *question)
{
    char answer[16];
    if (args->given[F_yes])
        return EXIT_OK;
    if (!ctl->in_tty || !ctl->err_tty)
        return ctl_usage(ctl, "%s Not a terminal: repeat the command with --yes.", question);
    fprintf(ctl->err, "%s [y/N] ", question);
    fflush(ctl->err);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return EXIT_OK;
    fprintf(ctl->err, "Nothing was done.\n");
    return EXIT_FAILED;
}
