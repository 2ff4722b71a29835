/* cluster events. */
#include "api/ctl/commands.h"

#include "api/ctl/interrupt.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { PAGE = 1000, LAST = 100, WAIT_MS = 5000, PAUSE_MS = 1000 };

struct walk {
    struct ctl *ctl;
    char *after;        /* the cursor; NULL: from the first on */
    size_t page_events; /* of the last page */
    int64_t printed_ms; /* time of the last event that was printed */
};

static const char *text_at(json_t *doc, const char *field)
{
    const char *text = json_string_value(json_object_get(doc, field));
    return text != NULL ? text : "";
}

static void print_line(const struct ctl *ctl, json_t *event)
{
    char when[32];
    fprintf(ctl->out, "%s  ", ctl_time(json_integer_value(json_object_get(event, "at_ms")), when));
    table_put_clean(ctl->out, text_at(event, "level"), 7);
    fputs("  ", ctl->out);
    table_put_clean(ctl->out, text_at(event, "kind"), 20);
    fputs("  ", ctl->out);
    table_put_clean(ctl->out, text_at(event, "text"), 0);
    fputc('\n', ctl->out);
}

static void print_json(const struct ctl *ctl, const json_t *event)
{
    _cleanup_free_ char *line = json_dumps(event, JSON_COMPACT);
    fprintf(ctl->out, "%s\n", line);
}

/* Another primary, or another run of it, has events that were printed already: those that are not
 * later than the last of these. */
static void print_events(struct walk *w, json_t *doc)
{
    json_t *list = json_object_get(doc, "events"), *event;
    bool anew = w->after != NULL && json_is_true(json_object_get(doc, "anew"));
    size_t i;
    w->page_events = json_array_size(list);
    json_int_t missed = json_integer_value(json_object_get(doc, "missed"));
    if (w->after != NULL && !anew && missed > 0)
        ctl_remark(w->ctl, "%lld events came too fast to be shown", (long long)missed);
    json_array_foreach(list, i, event)
    {
        int64_t at_ms = json_integer_value(json_object_get(event, "at_ms"));
        if (anew && at_ms <= w->printed_ms)
            continue;
        if (w->ctl->json)
            print_json(w->ctl, event);
        else
            print_line(w->ctl, event);
        w->printed_ms = at_ms;
    }
    fflush(w->ctl->out);
}

/* One JSON value, as of every command that ends. */
static int print_document(const struct ctl *ctl, const char *text)
{
    json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK)
        ctl_print_json(ctl, doc);
    return code;
}

static int take_page(struct walk *w, const char *text)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(w->ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    print_events(w, doc);
    free(w->after);
    w->after = xstrdup(text_at(doc, "next"));
    return EXIT_OK;
}

/* A primary that does not wait for events is not asked without a pause. */
static bool pause_if_early(const struct walk *w, uint64_t asked_ms)
{
    return w->page_events > 0 || clock_ms() - asked_ms >= WAIT_MS || interrupt_pause(PAUSE_MS);
}

static int follow(struct walk *w)
{
    bool complained = false;
    for (int code = EXIT_OK; code == EXIT_OK;) {
        struct dfc_error err;
        _cleanup_free_ char *text = NULL;
        const uint64_t asked_ms = clock_ms();
        int rc = dfc_cluster_events(w->ctl->client, w->after, WAIT_MS, PAGE, &text, &err);
        if (interrupted())
            return EXIT_INTERRUPTED;
        if (rc == DFC_OK) {
            complained = false;
            code = take_page(w, text);
            if (code == EXIT_OK && !pause_if_early(w, asked_ms))
                return EXIT_INTERRUPTED;
        } else if (rc != DFC_UNREACHABLE && rc != DFC_TIMED_OUT && rc != DFC_FAILED) {
            return ctl_fail(w->ctl, &err, NULL);
        } else if (!interrupt_pause(PAUSE_MS)) {
            return EXIT_INTERRUPTED;
        } else if (!complained) {
            ctl_remark(w->ctl, "the cluster does not answer: %s; asking again", err.message);
            complained = true;
        }
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

int cluster_events(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    struct walk w = {.ctl = ctl};
    _cleanup_free_ char *text = NULL;
    uint64_t limit = args->given[F_limit] ? args->number[F_limit] : LAST;
    if (limit < 1 || limit > PAGE)
        return ctl_usage(ctl, "--limit must be 1 to %d", PAGE);
    if (dfc_cluster_events(ctl->client, NULL, 0, (uint32_t)limit, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, NULL);
    if (ctl->json && !args->given[F_follow])
        return print_document(ctl, text);
    int code = take_page(&w, text);
    if (code == EXIT_OK && args->given[F_follow])
        code = follow(&w);
    free(w.after);
    return code;
}
