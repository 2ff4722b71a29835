#include "target/sort/archive_view.h"

#include <string.h>

static json_int_t figure(const json_t *sort, const char *phase, const char *a, const char *b)
{
    const json_t *v = json_object_get(json_object_get(sort, phase), a);
    return json_integer_value(b != NULL ? json_object_get(v, b) : v);
}

/* Who reads objects counts them as a whole, who builds shards as done: the sums agree at the end.
 */
json_t *archive_view(const json_t *sort, double seconds)
{
    const char *phase = json_string_value(json_object_get(sort, "phase"));
    json_int_t missing = figure(sort, "extract", "shards", "missing");
    json_t *warnings = json_object_get(sort, "warnings");
    json_t *view = json_pack(
        "{s:s, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:f, s:o}", "phase",
        phase != NULL && strcmp(phase, "done") == 0 ? "done" : "running", "objects", "done",
        figure(sort, "create", "records", NULL), "skipped", (json_int_t)0, "missing", missing,
        "failed", (json_int_t)0, "total", figure(sort, "extract", "records", NULL) + missing,
        "bytes", figure(sort, "create", "bytes", "done"), "seconds", seconds, "warnings",
        warnings != NULL ? json_deep_copy(warnings) : json_array());
    if (sort != NULL) /* the phases, one by one */
        json_object_set_new(view, "sort", json_deep_copy(sort));
    return view;
}
