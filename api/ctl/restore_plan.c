#include "api/ctl/restore_plan.h"

#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"

static json_t *change(const char *how, const char *what, const char *name, json_t *from, json_t *to)
{
    return json_pack("{s:s, s:s, s:s, s:O?, s:O?}", "change", how, "what", what, "name", name,
                     "from", from, "to", to);
}

/* Also where neither is there. */
static bool is_same(json_t *a, json_t *b)
{
    return a == b || json_equal(a, b);
}

/* --- buckets ---------------------------------------------------------------------------------- */

static json_t *buckets_of(json_t *state)
{
    return json_object_get(json_object_get(state, "bmd"), "buckets");
}

static const char *name_of(json_t *bucket)
{
    const char *name = json_string_value(json_object_get(bucket, "name"));
    return name != NULL ? name : "";
}

static json_t *find_bucket(json_t *buckets, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach(buckets, i, one)
    {
        if (strcmp(name_of(one), name) == 0)
            return one;
    }
    return NULL;
}

/* Whoever has this id keeps it, whatever it is called; one that was destroyed gets a new one. */
static json_t *find_id(json_t *buckets, json_t *id)
{
    size_t i;
    json_t *one;
    json_array_foreach(buckets, i, one)
    {
        if (is_same(json_object_get(one, "id"), id))
            return id;
    }
    return NULL;
}

/* Did an earlier restore bring it back? */
static bool is_back(json_t *now, json_t *then)
{
    json_t *created = json_object_get(now, "created");
    return json_integer_value(created) != 0 && is_same(created, json_object_get(then, "created"));
}

/* What the bucket itself is, or its properties. */
static json_t *bucket_change(json_t *buckets, json_t *then)
{
    const char *name = name_of(then);
    json_t *now = find_bucket(buckets, name);
    json_t *id = find_id(buckets, json_object_get(then, "id"));
    json_t *old_id = json_object_get(now, "id");
    json_t *props = json_object_get(then, "props");
    json_t *old_props = json_object_get(now, "props");
    if (now == NULL)
        return change("add", "bucket", name, NULL, id);
    if (id == NULL ? !is_back(now, then) : !is_same(id, old_id))
        return change("replace", "bucket", name, old_id, id);
    return is_same(props, old_props) ? NULL : change("set", "bucket", name, old_props, props);
}

/* Of a bucket that stays: its S3 documents. */
static json_t *texts_change(json_t *buckets, json_t *then)
{
    json_t *now = find_bucket(buckets, name_of(then));
    json_t *old = json_object_get(now, "texts"), *texts = json_object_get(then, "texts");
    return now == NULL || is_same(old, texts)
               ? NULL
               : change("set", "S3 documents of bucket", name_of(then), old, texts);
}

static void append(json_t *plan, json_t *change)
{
    if (change != NULL)
        json_array_append_new(plan, change);
}

static void compare_buckets(json_t *plan, json_t *present, json_t *wanted)
{
    json_t *now = buckets_of(present);
    json_t *then = buckets_of(wanted);
    size_t i;
    json_t *one;
    json_array_foreach(then, i, one)
    {
        append(plan, bucket_change(now, one));
        append(plan, texts_change(now, one));
    }
    json_array_foreach(now, i, one)
    {
        if (find_bucket(then, name_of(one)) == NULL)
            json_array_append_new(
                plan, change("remove", "bucket", name_of(one), json_object_get(one, "id"), NULL));
    }
}

/* --- settings --------------------------------------------------------------------------------- */

static json_t *values_of(json_t *state)
{
    return json_object_get(json_object_get(state, "config"), "values");
}

static void compare_settings(json_t *plan, json_t *present, json_t *wanted)
{
    json_t *now = values_of(present);
    json_t *then = values_of(wanted);
    const char *name;
    json_t *value;
    json_object_foreach(then, name, value)
    {
        json_t *old = json_object_get(now, name);
        if (old == NULL || !json_equal(old, value))
            json_array_append_new(plan, change("set", "setting", name, old, value));
    }
    json_object_foreach(now, name, value)
    {
        if (json_object_get(then, name) == NULL)
            json_array_append_new(plan, change("set", "setting", name, value, NULL));
    }
}

json_t *restore_plan(json_t *present, json_t *wanted)
{
    json_t *plan = json_array();
    compare_buckets(plan, present, wanted);
    compare_settings(plan, present, wanted);
    return plan;
}

/* --- for people ------------------------------------------------------------------------------- */

static void put_value(struct buf *out, const char *how, json_t *value)
{
    _cleanup_free_ char *text = NULL;
    if (value == NULL || json_is_null(value)) {
        buf_puts(out, strcmp(how, "set") == 0 ? "its default" : "a new one, without objects");
        return;
    }
    text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_puts(out, text);
}

static const struct {
    const char *change, *what;
    const char *sign, *words;
} forms[] = {
    {"add", "bucket", "+", "comes back: "},
    {"remove", "bucket", "-", "is destroyed, WITH EVERYTHING IN IT: id "},
    {"replace", "bucket", "!", "becomes another one, and WHAT IS IN IT NOW IS DESTROYED: id "},
    {"set", "bucket", "~", "changes: "},
    {"set", "S3 documents of bucket", "~", "change: "},
    {"set", "setting", "~", "changes: "},
};

void restore_plan_line(json_t *c, struct buf *out)
{
    const char *how = json_string_value(json_object_get(c, "change"));
    const char *what = json_string_value(json_object_get(c, "what"));
    json_t *from = json_object_get(c, "from");
    json_t *to = json_object_get(c, "to");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(forms[i].change, how) != 0 || strcmp(forms[i].what, what) != 0)
            continue;
        buf_printf(out, "%s %s '%s' %s", forms[i].sign, what,
                   json_string_value(json_object_get(c, "name")), forms[i].words);
        if (strcmp(how, "add") != 0)
            put_value(out, how, from);
        if (strcmp(how, "replace") == 0 || strcmp(how, "set") == 0)
            buf_puts(out, " -> ");
        if (strcmp(how, "add") == 0 && json_is_integer(to))
            buf_puts(out, "id ");
        if (strcmp(how, "remove") != 0)
            put_value(out, how, to);
    }
}
