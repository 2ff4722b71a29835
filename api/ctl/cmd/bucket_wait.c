/* bucket wait.
 *
 * Targets are asked one after the other, and what waits may move meanwhile from one that is asked
 * later to one that was asked before.  So nothing waits only where two looks in a row have found
 * nothing, at the same targets, and nothing has come to any of them in between: each says so by a
 * mark that changes whenever anything does.  Then, between the two looks, nothing waited anywhere.
 */
#include "api/ctl/commands.h"

#include "api/ctl/interrupt.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { LOOK_MS = 500 };

struct look {
    long long waiting;
    json_t *marks; /* by target */
};

static void look_done(struct look *l)
{
    json_decref(l->marks);
}

/* Adds what waits at one target, by its indexes. */
static int ask_target(struct ctl *ctl, const char *target, const char *bucket, struct look *l)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *what = xprintf("what waits at '%s'", target);
    _cleanup_json_ json_t *doc = NULL;
    if (dfc_node_show(ctl->client, target, "summary", &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    int code = ctl_parse(ctl, text, &doc);
    size_t i;
    json_t *b;
    json_array_foreach(json_object_get(doc, "buckets"), i, b)
    {
        const char *name = json_string_value(json_object_get(b, "name"));
        if (name != NULL && strcmp(name, bucket) == 0)
            l->waiting += json_integer_value(json_object_get(b, "pending"));
    }
    json_t *mark = json_object_get(doc, "pending_mark");
    json_object_set(l->marks, target, mark != NULL ? mark : json_null());
    return code;
}

/* All of them, or it cannot be told. */
static int look(struct ctl *ctl, const char *bucket, struct look *l)
{
    _cleanup_json_ json_t *doc = NULL;
    *l = (struct look){.marks = json_object()};
    int code = ctl_cluster(ctl, NULL, &doc);
    size_t i;
    json_t *n;
    json_array_foreach(json_object_get(doc, "nodes"), i, n)
    {
        const char *role = json_string_value(json_object_get(n, "role"));
        const char *id = json_string_value(json_object_get(n, "id"));
        if (code == EXIT_OK && role != NULL && id != NULL && strcmp(role, "target") == 0)
            code = ask_target(ctl, id, bucket, l);
    }
    return code;
}

/* Twice; *waiting is what the second one has found. */
static int look_twice(struct ctl *ctl, const char *bucket, long long *waiting, bool *over)
{
    struct look first, second;
    int code = look(ctl, bucket, &first);
    *waiting = first.waiting;
    *over = false;
    if (code == EXIT_OK && first.waiting == 0) {
        code = look(ctl, bucket, &second);
        *waiting = second.waiting;
        *over = second.waiting == 0 && json_equal(first.marks, second.marks);
        look_done(&second);
    }
    look_done(&first);
    return code;
}

static int wait_for_end(struct ctl *ctl, const char *bucket, uint64_t timeout_ms)
{
    uint64_t began = clock_ms();
    for (;;) {
        long long waiting;
        bool over;
        int code = look_twice(ctl, bucket, &waiting, &over);
        if (code != EXIT_OK || over)
            return code;
        if (timeout_ms > 0 && clock_ms() - began > timeout_ms) {
            if (waiting > 0)
                ctl_remark(ctl, "dfcctl: %lld write%s wait%s", waiting, waiting > 1 ? "s" : "",
                           waiting > 1 ? "" : "s");
            else
                ctl_remark(ctl, "dfcctl: writes go on coming");
            return EXIT_UNREACHABLE; /* as job wait says that the time ran out */
        }
        if (!interrupt_pause(LOOK_MS))
            return EXIT_INTERRUPTED;
    }
}

int bucket_wait(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    const char *bucket = args->words[0];
    _cleanup_free_ char *text = NULL;
    _cleanup_free_ char *what = xprintf("bucket '%s'", bucket);
    if (dfc_bucket_show(ctl->client, bucket, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, what);
    int code = wait_for_end(ctl, bucket, args->number[F_timeout]);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:i}", "bucket", bucket, "waiting", 0));
    else
        ctl_say(ctl, "%s: nothing waits", bucket);
    return EXIT_OK;
}
