/* node logs. */
#include "api/ctl/commands.h"

#include "api/ctl/interrupt.h"
#include "api/ctl/print/table.h"
#include "api/failure.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { PAUSE_MS = 1000 };

struct tail {
    struct ctl *ctl;
    const char *node;
    json_int_t next; /* number of the last line that was printed … */
    char *boot;      /* … and the run of the node that numbers it */
    bool complained;
};

static int ask(const struct tail *t, json_int_t after, json_t **doc, struct dfc_error *err)
{
    _cleanup_free_ char *text = NULL;
    int rc = dfc_node_log(t->ctl->client, t->node, (uint64_t)after, &text, err);
    *doc = rc == DFC_OK ? json_loads(text, 0, NULL) : NULL;
    if (rc != DFC_OK || *doc != NULL)
        return rc;
    return failure_set(err, DFC_FAILED, E_CORRUPT, "the reply is no JSON");
}

static int fail(const struct tail *t, const struct dfc_error *err)
{
    _cleanup_free_ char *what = xprintf("node '%s'", t->node);
    return ctl_fail(t->ctl, err, what);
}

static void remember(struct tail *t, json_t *doc)
{
    const char *boot = json_string_value(json_object_get(doc, "boot"));
    t->next = json_integer_value(json_object_get(doc, "next"));
    free(t->boot);
    t->boot = xstrdup(boot != NULL ? boot : "");
}

/* A node of an earlier release says nothing of its run. */
static bool is_restarted(const struct tail *t, json_t *doc)
{
    const char *boot = json_string_value(json_object_get(doc, "boot"));
    return boot != NULL && strcmp(boot, t->boot) != 0;
}

/* The last `limit` lines; 0: all. */
static void keep_last(json_t *lines, size_t limit)
{
    while (limit > 0 && json_array_size(lines) > limit)
        json_array_remove(lines, 0);
}

static void print_lines(const struct ctl *ctl, json_t *doc)
{
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(doc, "lines"), i, line)
    {
        table_put_clean(ctl->out, json_string_value(line), 0);
        fputc('\n', ctl->out);
    }
    fflush(ctl->out);
}

/* The lines after those that were printed: after a restart, all that the node has. */
static int ask_next(const struct tail *t, json_t **out, struct dfc_error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int rc = ask(t, t->next, &doc, err);
    if (rc != DFC_OK || !is_restarted(t, doc)) {
        *out = steal(doc);
        return rc;
    }
    ctl_remark(t->ctl, "node '%s' was restarted", t->node);
    return ask(t, 0, out, err);
}

/* A node that does not answer may be about to begin again. */
static int complain(struct tail *t, int rc, const struct dfc_error *err)
{
    if (interrupted())
        return EXIT_INTERRUPTED;
    if (rc != DFC_UNREACHABLE && rc != DFC_TIMED_OUT)
        return fail(t, err);
    if (!t->complained)
        ctl_remark(t->ctl, "node '%s' does not answer: %s; asking again", t->node, err->message);
    t->complained = true;
    return EXIT_OK;
}

static int follow(struct tail *t)
{
    while (interrupt_pause(PAUSE_MS)) {
        _cleanup_json_ json_t *doc = NULL;
        struct dfc_error err;
        int rc = ask_next(t, &doc, &err);
        int code = rc != DFC_OK ? complain(t, rc, &err) : EXIT_OK;
        if (code != EXIT_OK)
            return code;
        if (rc != DFC_OK)
            continue;
        t->complained = false;
        json_int_t missed = json_integer_value(json_object_get(doc, "missed"));
        if (missed > 0)
            ctl_remark(t->ctl, "%lld lines came too fast to be shown", (long long)missed);
        print_lines(t->ctl, doc);
        remember(t, doc);
    }
    return EXIT_INTERRUPTED;
}

int node_logs(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *doc = NULL;
    struct dfc_error err;
    struct tail t = {.ctl = ctl, .node = args->words[0]};
    if (ctl->json && args->given[F_follow])
        return ctl_usage(ctl, "--follow prints lines: leave out -o json");
    if (ask(&t, 0, &doc, &err) != DFC_OK)
        return fail(&t, &err);
    keep_last(json_object_get(doc, "lines"), args->given[F_limit] ? args->number[F_limit] : 0);
    if (ctl->json) {
        ctl_print_json(ctl, json_incref(doc));
        return EXIT_OK;
    }
    print_lines(ctl, doc);
    remember(&t, doc);
    int code = args->given[F_follow] ? follow(&t) : EXIT_OK;
    free(t.boot);
    return code;
}
