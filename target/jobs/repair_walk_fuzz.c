/* Any JSON either is refused with a sentence, or is a walk: one that survives its own JSON form,
 * and from which a repair goes on. */
#include "target/jobs/repair_walk.h"

#include <assert.h>
#include <string.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct repair_walk *w)
{
    struct repair_walk again = {0};
    _cleanup_json_ json_t *written = repair_walk_to_json(w);
    int code = repair_walk_from_json(&again, written, NULL);
    assert(code == 0);
    _cleanup_json_ json_t *written_again = repair_walk_to_json(&again);
    assert(json_equal(written, written_again));
    repair_walk_done(&again);
}

/* What was passed stays so where nothing has changed. */
static void go_on(struct repair_walk *w, const struct repair_need *now)
{
    bool passed = repair_walk_passed(w, w->bucket_id, w->name);
    if (!repair_walk_go_on(w, now))
        return;
    assert(repair_walk_passed(w, w->bucket_id, w->name) == passed);
    repair_walk_reach(w, w->bucket_id + 1, "name");
    assert(repair_walk_passed(w, w->bucket_id, "name"));
    repair_walk_turn(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct repair_walk w = {0}, same = {0};
    _cleanup_json_ json_t *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    if (repair_walk_from_json(&w, doc, &err) == 0) {
        check_round_trip(&w);
        repair_walk_from_json(&same, doc, NULL);
        go_on(&w, &same.need);
    } else {
        assert(err.code != 0 && err.message[0] != '\0');
    }
    repair_walk_done(&w);
    repair_walk_done(&same);
    return 0;
}
