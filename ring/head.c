#include "ring/head.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

void ring_head_done(struct ring_head *h)
{
    for (size_t i = 0; i < h->generations_count; i++)
        free(h->generations[i].cuts);
    free(h->generations);
    free(h->lanes);
    free(h->groups);
    *h = (struct ring_head){.generation = 0};
}

static void *copied(const void *from, size_t count, size_t size)
{
    void *to = xcalloc(count + 1, size);
    if (count > 0)
        memcpy(to, from, count * size);
    return to;
}

void ring_head_copy(const struct ring_head *from, struct ring_head *to)
{
    *to = *from;
    to->lanes = copied(from->lanes, from->lanes_count, sizeof *to->lanes);
    to->groups = copied(from->groups, from->groups_count, sizeof *to->groups);
    to->generations = copied(from->generations, from->generations_count, sizeof *to->generations);
    for (size_t i = 0; i < to->generations_count; i++) {
        struct ring_generation *g = &to->generations[i];
        g->cuts = copied(g->cuts, g->count, sizeof *g->cuts);
    }
}

/* --- looking ---------------------------------------------------------------------------------- */

const struct ring_generation *ring_head_generation(const struct ring_head *h, uint64_t number)
{
    for (size_t i = 0; i < h->generations_count; i++) {
        if (h->generations[i].number == number)
            return &h->generations[i];
    }
    return NULL;
}

bool ring_generation_find(const struct ring_generation *g, uint64_t index, const char **lane,
                          uint64_t *ordinal)
{
    for (size_t i = 0; i < g->count; i++) {
        const uint64_t size = g->cuts[i].to - g->cuts[i].from;
        if (index < size) {
            *lane = g->cuts[i].lane;
            *ordinal = g->cuts[i].from + index;
            return true;
        }
        index -= size;
    }
    return false;
}

/* Where the lane is, or would be. */
static size_t lane_at(const struct ring_head *h, const char *lane)
{
    size_t from = 0, to = h->lanes_count;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (strcmp(h->lanes[middle].lane, lane) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool ring_head_taken(const struct ring_head *h, const char *lane, uint64_t *taken)
{
    const size_t at = lane_at(h, lane);
    if (at == h->lanes_count || strcmp(h->lanes[at].lane, lane) != 0)
        return false;
    *taken = h->lanes[at].taken;
    return true;
}

uint64_t ring_head_release(const struct ring_head *h, const char *lane)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < h->generations_count; i++) {
        const struct ring_generation *g = &h->generations[i];
        for (size_t j = 0; j < g->count; j++) {
            if (strcmp(g->cuts[j].lane, lane) == 0)
                return g->cuts[j].from;
        }
    }
    (void)ring_head_taken(h, lane, &taken);
    return taken;
}

uint64_t ring_head_sealed(const struct ring_head *h, const char *lane)
{
    uint64_t sealed = 0;
    for (size_t i = 0; i < h->generations_count; i++) {
        const struct ring_generation *g = &h->generations[i];
        for (size_t j = 0; j < g->count; j++) {
            if (strcmp(g->cuts[j].lane, lane) == 0)
                sealed = g->cuts[j].to;
        }
    }
    if (sealed == 0)
        (void)ring_head_taken(h, lane, &sealed);
    return sealed;
}

bool ring_head_has(const struct ring_head *h, const char *lane, uint64_t ordinal,
                   uint64_t *generation, uint64_t *count)
{
    for (size_t i = 0; i < h->generations_count; i++) {
        const struct ring_generation *g = &h->generations[i];
        for (size_t j = 0; j < g->count; j++) {
            const struct ring_cut *c = &g->cuts[j];
            if (ordinal < c->from || ordinal >= c->to || strcmp(c->lane, lane) != 0)
                continue;
            *generation = g->number;
            *count = c->to - ordinal;
            return true;
        }
    }
    return false;
}

bool ring_head_is_held(const struct ring_head *h, bool consumed)
{
    bool is_unread = consumed && h->consumed < h->generation;
    for (size_t i = 0; i < h->groups_count; i++)
        is_unread = is_unread || h->groups[i].done < h->generation;
    return h->is_paused || (is_unread && h->generations_count > 0);
}

bool ring_lane_node(const char *lane, char node[static RING_LANE_MAX])
{
    const char *dot = strrchr(lane, '.');
    if (dot == NULL || dot == lane || dot[1] == '\0' || strlen(lane) >= RING_LANE_MAX)
        return false;
    snprintf(node, RING_LANE_MAX, "%.*s", (int)(dot - lane), lane);
    return true;
}

/* --- from JSON -------------------------------------------------------------------------------- */

static int read_lane(json_t *item, const char *path, char out[static RING_LANE_MAX],
                     struct error *err)
{
    const char *text;
    char node[RING_LANE_MAX];
    int code = json_need_str(item, path, "lane", &text, err);
    if (code == 0 && !ring_lane_node(text, node))
        code = error_set(err, E_CORRUPT, "%s.lane: '%.120s' is no lane", path, text);
    if (code == 0)
        snprintf(out, RING_LANE_MAX, "%s", text);
    return code;
}

static int read_list(json_t *doc, const char *path, const char *field, size_t max, json_t **out,
                     struct error *err)
{
    *out = NULL;
    int code = json_get_array(doc, path, field, out, err);
    if (code == 0 && *out == NULL)
        code = error_set(err, E_CORRUPT, "%s.%s is missing", path, field);
    if (code == 0 && json_array_size(*out) > max)
        code = error_set(err, E_CORRUPT, "%s.%s has more than %zu items", path, field, max);
    return code;
}

static int read_lanes(json_t *doc, struct ring_head *h, struct error *err)
{
    json_t *list;
    int code = read_list(doc, "head", "lanes", RING_LANES_MAX, &list, err);
    if (code != 0)
        return code;
    h->lanes = xcalloc(json_array_size(list) + 1, sizeof *h->lanes);
    for (size_t i = 0; i < json_array_size(list) && code == 0; i++) {
        struct ring_taken *l = &h->lanes[i];
        json_t *item = json_array_get(list, i);
        code = read_lane(item, "lanes", l->lane, err);
        if (code == 0)
            code = json_need_u64(item, "lanes", "taken", &l->taken, err);
        if (code == 0 && i > 0 && strcmp(l[-1].lane, l->lane) >= 0)
            code = error_set(err, E_CORRUPT, "lanes: '%s' is out of order", l->lane);
        h->lanes_count += code == 0;
    }
    return code;
}

static int read_cut(const struct ring_head *h, json_t *item, struct ring_cut *c, struct error *err)
{
    uint64_t taken;
    int code = read_lane(item, "cuts", c->lane, err);
    if (code == 0)
        code = json_need_u64(item, "cuts", "from", &c->from, err);
    if (code == 0)
        code = json_need_u64(item, "cuts", "to", &c->to, err);
    if (code == 0 && c->from >= c->to)
        code = error_set(err, E_CORRUPT, "cuts: 'from' is not below 'to'");
    if (code == 0 && (!ring_head_taken(h, c->lane, &taken) || c->to > taken))
        code = error_set(err, E_CORRUPT, "cuts: lane '%s' has not given so much", c->lane);
    return code;
}

static int read_generation(const struct ring_head *h, json_t *item, struct ring_generation *g,
                           struct error *err)
{
    json_t *list;
    int code = json_need_u64(item, "generations", "generation", &g->number, err);
    if (code == 0)
        code = json_need_u64(item, "generations", "sealed_ms", &g->sealed_ms, err);
    if (code == 0)
        code = read_list(item, "generations", "cuts", RING_CUTS_MAX, &list, err);
    if (code != 0)
        return code;
    g->cuts = xcalloc(json_array_size(list) + 1, sizeof *g->cuts);
    for (size_t i = 0; i < json_array_size(list) && code == 0; i++) {
        code = read_cut(h, json_array_get(list, i), &g->cuts[i], err);
        if (code == 0 &&
            __builtin_add_overflow(g->samples, g->cuts[i].to - g->cuts[i].from, &g->samples))
            code = error_set(err, E_CORRUPT, "generations: too many samples");
        g->count += code == 0;
    }
    if (code == 0 && g->count == 0)
        code = error_set(err, E_CORRUPT, "generations: one is empty");
    return code;
}

static int read_generations(json_t *doc, struct ring_head *h, struct error *err)
{
    json_t *list;
    int code = read_list(doc, "head", "generations", RING_KEEP_MAX + 1, &list, err);
    if (code != 0)
        return code;
    h->generations = xcalloc(json_array_size(list) + 1, sizeof *h->generations);
    for (size_t i = 0; i < json_array_size(list) && code == 0; i++) {
        struct ring_generation *g = &h->generations[i];
        h->generations_count++;
        code = read_generation(h, json_array_get(list, i), g, err);
        if (code == 0 && i > 0 && g[-1].number >= g->number)
            code = error_set(err, E_CORRUPT, "generations are out of order");
    }
    if (code == 0 && h->generations_count > 0 &&
        h->generations[h->generations_count - 1].number != h->generation)
        code = error_set(err, E_CORRUPT, "the last generation is not %llu",
                         (unsigned long long)h->generation);
    return code;
}

static int read_group(json_t *item, struct ring_group *g, struct error *err)
{
    const char *name;
    int code = json_need_str(item, "groups", "group", &name, err);
    if (code == 0 && (*name == '\0' || strlen(name) >= sizeof g->name))
        code = error_set(err, E_CORRUPT, "groups: '%.80s' is no name", name);
    if (code == 0)
        code = json_need_u64(item, "groups", "done", &g->done, err);
    if (code == 0)
        code = json_need_u64(item, "groups", "lease_ms", &g->lease_ms, err);
    if (code == 0)
        snprintf(g->name, sizeof g->name, "%s", name);
    return code;
}

/* A head of an earlier release does not say it. */
static void note_consumed(struct ring_head *h, const struct ring_group *g)
{
    if (g->done > h->consumed)
        h->consumed = g->done;
}

static int read_groups(json_t *doc, struct ring_head *h, struct error *err)
{
    json_t *list = NULL;
    int code = json_get_array(doc, "head", "groups", &list, err);
    const size_t count = json_array_size(list);
    if (code == 0 && count > RING_GROUPS_MAX)
        code = error_set(err, E_CORRUPT, "groups has more than %d items", RING_GROUPS_MAX);
    if (code != 0 || count == 0)
        return code;
    h->groups = xcalloc(count, sizeof *h->groups);
    for (size_t i = 0; i < count && code == 0; i++) {
        struct ring_group *g = &h->groups[i];
        code = read_group(json_array_get(list, i), g, err);
        if (code == 0 && g->done > h->generation)
            code = error_set(err, E_CORRUPT, "groups: '%s' has done what is not there", g->name);
        if (code == 0 && i > 0 && strcmp(g[-1].name, g->name) >= 0)
            code = error_set(err, E_CORRUPT, "groups: '%s' is out of order", g->name);
        if (code == 0)
            note_consumed(h, g);
        h->groups_count += code == 0;
    }
    return code;
}

int ring_head_parse(const char *text, size_t len, struct ring_head *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    uint64_t format = 0;
    *out = (struct ring_head){.generation = 0};
    int code = json_parse(text, len, &doc, err);
    if (code == 0 && !json_is_object(doc))
        code = error_set(err, E_CORRUPT, "it is no object");
    if (code == 0)
        code = json_need_u64(doc, "head", "format", &format, err);
    if (code == 0 && format != 1)
        code = error_set(err, E_UNSUPPORTED, "format %llu is of a later release",
                         (unsigned long long)format);
    if (code == 0)
        code = json_need_u64(doc, "head", "generation", &out->generation, err);
    if (code == 0)
        code = json_need_u64(doc, "head", "samples_total", &out->samples_total, err);
    if (code == 0)
        code = json_get_u64(doc, "head", "dropped_total", &out->dropped_total, err);
    if (code == 0)
        code = json_get_u64(doc, "head", "consumed", &out->consumed, err);
    if (code == 0 && out->consumed > out->generation)
        code = error_set(err, E_CORRUPT, "a generation is consumed that is not there");
    if (code == 0)
        code = json_get_bool(doc, "head", "paused", &out->is_paused, err);
    if (code == 0)
        code = read_groups(doc, out, err);
    if (code == 0)
        code = read_lanes(doc, out, err);
    if (code == 0)
        code = read_generations(doc, out, err);
    if (code != 0)
        ring_head_done(out);
    return code == 0 || code == E_UNSUPPORTED ? code
                                              : error_recode(err, E_CORRUPT, "head of a ring");
}

/* --- to JSON ---------------------------------------------------------------------------------- */

static void print_generation(const struct ring_generation *g, struct buf *out)
{
    buf_printf(out, "{\"generation\":%llu,\"sealed_ms\":%llu,\"cuts\":[",
               (unsigned long long)g->number, (unsigned long long)g->sealed_ms);
    for (size_t i = 0; i < g->count; i++) {
        buf_puts(out, i > 0 ? ",{\"lane\":\"" : "{\"lane\":\"");
        buf_put_json_escaped(out, g->cuts[i].lane, strlen(g->cuts[i].lane));
        buf_printf(out, "\",\"from\":%llu,\"to\":%llu}", (unsigned long long)g->cuts[i].from,
                   (unsigned long long)g->cuts[i].to);
    }
    buf_puts(out, "]}");
}

static void print_groups(const struct ring_head *h, struct buf *out)
{
    buf_puts(out, ",\"groups\":[");
    for (size_t i = 0; i < h->groups_count; i++) {
        const struct ring_group *g = &h->groups[i];
        buf_puts(out, i > 0 ? ",{\"group\":\"" : "{\"group\":\"");
        buf_put_json_escaped(out, g->name, strlen(g->name));
        buf_printf(out, "\",\"done\":%llu,\"lease_ms\":%llu}", (unsigned long long)g->done,
                   (unsigned long long)g->lease_ms);
    }
    buf_putc(out, ']');
}

void ring_head_print(const struct ring_head *h, struct buf *out)
{
    buf_printf(out, "{\"format\":1,\"generation\":%llu,\"samples_total\":%llu",
               (unsigned long long)h->generation, (unsigned long long)h->samples_total);
    if (h->dropped_total > 0)
        buf_printf(out, ",\"dropped_total\":%llu", (unsigned long long)h->dropped_total);
    if (h->consumed > 0)
        buf_printf(out, ",\"consumed\":%llu", (unsigned long long)h->consumed);
    if (h->groups_count > 0)
        print_groups(h, out);
    buf_puts(out, h->is_paused ? ",\"paused\":true,\"lanes\":[" : ",\"lanes\":[");
    for (size_t i = 0; i < h->lanes_count; i++) {
        buf_puts(out, i > 0 ? ",{\"lane\":\"" : "{\"lane\":\"");
        buf_put_json_escaped(out, h->lanes[i].lane, strlen(h->lanes[i].lane));
        buf_printf(out, "\",\"taken\":%llu}", (unsigned long long)h->lanes[i].taken);
    }
    buf_puts(out, "],\"generations\":[");
    for (size_t i = 0; i < h->generations_count; i++) {
        buf_puts(out, i > 0 ? "," : "");
        print_generation(&h->generations[i], out);
    }
    buf_puts(out, "]}");
}

/* --- the next one ----------------------------------------------------------------------------- */

uint64_t ring_have_samples(const struct ring_have *have)
{
    uint64_t samples = have->to - have->from;
    for (size_t i = 0; i < have->holes_count; i++)
        samples -= have->holes[i].to - have->holes[i].from;
    return samples;
}

void ring_cut_take(const struct ring_have *have, size_t count, uint64_t want, uint64_t *take)
{
    uint64_t sum = 0, given = 0;
    for (size_t i = 0; i < count; i++)
        sum += ring_have_samples(&have[i]);
    for (size_t i = 0; i < count; i++) {
        take[i] = (uint64_t)((unsigned __int128)want * ring_have_samples(&have[i]) / sum);
        given += take[i];
    }
    for (; given < want; given++) { /* fewer than `count` times */
        size_t best = count;
        uint64_t most = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t size = ring_have_samples(&have[i]);
            const uint64_t rest = (uint64_t)((unsigned __int128)want * size % sum);
            const bool is_free =
                take[i] == (uint64_t)((unsigned __int128)want * size / sum) && take[i] < size;
            if (is_free && (best == count || rest > most)) {
                best = i;
                most = rest;
            }
        }
        take[best]++;
    }
}

static void set_taken(struct ring_head *h, const char *lane, uint64_t taken)
{
    const size_t at = lane_at(h, lane);
    if (at == h->lanes_count || strcmp(h->lanes[at].lane, lane) != 0) {
        h->lanes = xrealloc(h->lanes, (h->lanes_count + 1) * sizeof *h->lanes);
        memmove(&h->lanes[at + 1], &h->lanes[at], (h->lanes_count - at) * sizeof *h->lanes);
        snprintf(h->lanes[at].lane, sizeof h->lanes[at].lane, "%s", lane);
        h->lanes_count++;
    }
    h->lanes[at].taken = taken;
}

static void drop_oldest(struct ring_head *h, size_t keep)
{
    const size_t drop = h->generations_count > keep ? h->generations_count - keep : 0;
    for (size_t i = 0; i < drop; i++)
        free(h->generations[i].cuts);
    h->generations_count -= drop;
    memmove(h->generations, h->generations + drop, h->generations_count * sizeof *h->generations);
}

/* So many samples of the lane become cuts, around its holes; where the last one ends. */
static uint64_t cut_lane(const struct ring_have *h, uint64_t take, struct ring_generation *g)
{
    uint64_t at = h->from;
    for (size_t i = 0; take > 0; i++) {
        const uint64_t end = i < h->holes_count ? h->holes[i].from : h->to;
        const uint64_t size = end - at < take ? end - at : take;
        if (size > 0) {
            struct ring_cut *c = &g->cuts[g->count++];
            *c = (struct ring_cut){.from = at, .to = at + size};
            snprintf(c->lane, sizeof c->lane, "%s", h->lane);
        }
        take -= size;
        at = take == 0 ? at + size : h->holes[i].to;
    }
    return at;
}

void ring_head_seal(const struct ring_head *h, const struct ring_have *have, size_t count,
                    uint64_t want, unsigned keep, uint64_t now_ms, struct ring_head *next)
{
    _cleanup_free_ uint64_t *take = xcalloc(count + 1, sizeof *take);
    size_t room = count;
    for (size_t i = 0; i < count; i++)
        room += have[i].holes_count;
    struct ring_generation g = {.number = h->generation + 1,
                                .sealed_ms = now_ms,
                                .samples = want,
                                .cuts = xcalloc(room + 1, sizeof *g.cuts)};
    ring_head_copy(h, next);
    ring_cut_take(have, count, want, take);
    for (size_t i = 0; i < count; i++) {
        if (take[i] > 0)
            set_taken(next, have[i].lane, cut_lane(&have[i], take[i], &g));
    }
    drop_oldest(next, keep);
    next->generations =
        xrealloc(next->generations, (next->generations_count + 1) * sizeof *next->generations);
    next->generations[next->generations_count++] = g;
    next->generation = g.number;
    next->samples_total += want;
}

void ring_head_clear(const struct ring_head *h, const struct ring_have *have, size_t count,
                     struct ring_head *next)
{
    ring_head_copy(h, next);
    drop_oldest(next, 0);
    for (size_t i = 0; i < count; i++)
        set_taken(next, have[i].lane, have[i].to);
}

void ring_head_drop(struct ring_head *next, const struct ring_have *have, uint64_t to)
{
    struct ring_have dropped = *have;
    dropped.to = to < have->to ? to : have->to;
    while (dropped.holes_count > 0 && dropped.holes[dropped.holes_count - 1].to > dropped.to) {
        struct ring_range *last = &dropped.holes[dropped.holes_count - 1];
        if (last->from < dropped.to)
            last->to = dropped.to;
        else
            dropped.holes_count--;
    }
    next->dropped_total += ring_have_samples(&dropped);
    set_taken(next, have->lane, dropped.to);
}

void ring_head_forget(struct ring_head *h, const char *lane)
{
    const size_t at = lane_at(h, lane);
    if (at == h->lanes_count || strcmp(h->lanes[at].lane, lane) != 0)
        return;
    h->lanes_count--;
    memmove(&h->lanes[at], &h->lanes[at + 1], (h->lanes_count - at) * sizeof *h->lanes);
}

/* --- groups ----------------------------------------------------------------------------------- */

const struct ring_group *ring_head_group(const struct ring_head *h, const char *name)
{
    for (size_t i = 0; i < h->groups_count; i++) {
        if (strcmp(h->groups[i].name, name) == 0)
            return &h->groups[i];
    }
    return NULL;
}

bool ring_head_set_group(struct ring_head *h, const struct ring_group *group)
{
    size_t at = 0;
    while (at < h->groups_count && strcmp(h->groups[at].name, group->name) < 0)
        at++;
    if (at < h->groups_count && strcmp(h->groups[at].name, group->name) == 0) {
        h->groups[at] = *group;
        note_consumed(h, group);
        return true;
    }
    if (h->groups_count >= RING_GROUPS_MAX)
        return false;
    note_consumed(h, group);
    h->groups = xrealloc(h->groups, (h->groups_count + 1) * sizeof *h->groups);
    memmove(&h->groups[at + 1], &h->groups[at], (h->groups_count - at) * sizeof *h->groups);
    h->groups[at] = *group;
    h->groups_count++;
    return true;
}

void ring_head_leave_group(struct ring_head *h, const char *name)
{
    size_t at = 0;
    while (at < h->groups_count && strcmp(h->groups[at].name, name) != 0)
        at++;
    if (at == h->groups_count)
        return;
    h->groups_count--;
    memmove(&h->groups[at], &h->groups[at + 1], (h->groups_count - at) * sizeof *h->groups);
}
