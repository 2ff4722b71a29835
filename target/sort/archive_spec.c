#include "target/sort/archive_spec.h"

#include <string.h>

#include "common/mem.h"
#include "sort/shard/format.h"
#include "sort/shard/member_writer.h"
#include "xaction/objects_spec.h"

#define ONE_SHARD (UINT64_C(1) << 62) /* bytes: more than there are */

static int take_inputs(const struct objects_spec *o, struct sort_spec *s, struct error *err)
{
    switch (o->which) {
    case OBJECTS_TEMPLATE:
        s->input_kind = SORT_INPUT_TEMPLATE;
        return template_parse(template_text(o->name_template), &s->input_template, err);
    case OBJECTS_LIST:
        s->input_kind = SORT_INPUT_LIST;
        s->input_names = xcalloc(o->name_count + 1, sizeof *s->input_names);
        for (; s->input_name_count < o->name_count; s->input_name_count++)
            s->input_names[s->input_name_count] = xstrdup(o->names[s->input_name_count]);
        return 0;
    case OBJECTS_PREFIX:
    case OBJECTS_NONE:
        break;
    }
    s->input_kind = SORT_INPUT_PREFIX;
    s->input_prefix = xstrdup(o->prefix);
    s->input_internal = o->internal;
    return 0;
}

static int take_outputs(const struct objects_spec *o, struct sort_spec *s, struct error *err)
{
    const char *name = o->shards != NULL ? template_text(o->shards) : o->archive;
    int code = member_writer_format(o->format, name, &s->output_shards, err);
    if (code != 0)
        return code;
    s->output_extension = xstrdup(s->output_shards->extensions[0]);
    s->output_shard_size = o->shards != NULL ? o->shard_size : ONE_SHARD;
    if (o->shards != NULL)
        return template_parse(name, &s->output_template, err);
    s->output_template = template_literal(name);
    s->makes_empty = o->allow_empty;
    return 0;
}

/* What lacks a name of its own is refused where it would show; where it cannot, nobody looks. */
static void take_rules(const struct objects_spec *o, struct sort_spec *s)
{
    s->algorithm = o->shuffles ? SORT_SHUFFLE : SORT_NONE;
    s->seed = o->seed;
    s->seed_given = o->shuffles;
    s->plain_objects = true;
    s->member_strip = xstrdup(o->strip);
    s->member_prepend = xstrdup(o->prepend);
    s->member_bare = o->bare_members;
    s->missing_shards = SORT_WARN;
    s->duplicated_output_records = o->bare_members ? SORT_ABORT : SORT_IGNORE;
    s->allow_empty = o->allow_empty;
    s->description = xstrdup(o->description);
}

int archive_sort_spec(const struct objects_spec *o, const char *bucket, struct sort_spec **out,
                      struct error *err)
{
    _cleanup_(sort_spec_freep)
    struct sort_spec *s = xcalloc(1, sizeof *s);
    s->input_bucket = xstrdup(bucket);
    s->output_bucket = xstrdup(objects_spec_to(o, bucket));
    s->input_extension = xstrdup(".tar"); /* what a record's bytes look like */
    s->input_shards = format_of_extension(s->input_extension);
    int code = take_inputs(o, s, err);
    if (code == 0)
        code = take_outputs(o, s, err);
    if (code != 0)
        return code;
    take_rules(o, s);
    *out = steal(s);
    return 0;
}
