/* Any JSON either is refused with a sentence, or is a roster: one that survives its own JSON form,
 * whose members are found by their names, and to which the changes can be made. */
#include "target/format/roster.h"

#include <assert.h>

#include "common/jsonx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static json_t *to_json(const struct roster *r)
{
    json_t *doc = json_object();
    roster_to_json(r, doc);
    return doc;
}

static void check_names(const struct roster *r)
{
    for (size_t i = 0; i < r->count; i++) {
        assert(roster_find_id(r, r->members[i].id) == i);
        assert(roster_find_path(r, r->members[i].path) == i);
        assert(roster_state_name(&r->members[i]) != NULL);
    }
}

/* It reads again what it writes. */
static void check_round_trip(const struct roster *r)
{
    _cleanup_json_ json_t *doc = to_json(r);
    struct roster *again = NULL;
    int code = roster_from_json(doc, &again, NULL);
    assert(code == 0);
    _cleanup_json_ json_t *doc_again = to_json(again);
    assert(json_equal(doc, doc_again));
    roster_free(again);
}

static void change(struct roster *r)
{
    roster_attach(r, "mp-fuzz", "/fuzz", ROSTER_WEIGHT_DEFAULT, false, 1, NULL);
    for (size_t i = 0; i < r->count; i++) {
        roster_leave(r, i, 2, NULL);
        roster_disable(r, i, "fuzz", 3);
        roster_enable(r, i, 4);
        roster_stay(r, i, 5, NULL);
    }
    roster_scatter(r);
    roster_settle(r);
    if (r->count > 1)
        roster_give_up(r, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *doc = NULL;
    struct roster *r = NULL;
    struct error err = ERROR_INIT;
    if (json_parse((const char *)data, size, &doc, NULL) != 0)
        return 0;
    if (roster_from_json(doc, &r, &err) != 0) {
        assert(err.code != 0 && err.message[0] != '\0');
        return 0;
    }
    check_names(r);
    check_round_trip(r);
    change(r);
    check_names(r);
    check_round_trip(r);
    roster_free(r);
    return 0;
}
