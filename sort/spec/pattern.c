/* A set of patterns, and the search: the automaton's steps that a name can have come to, byte after
 * byte. */
#include "sort/spec/pattern_parts.h"

#include <string.h>

#include "common/mem.h"

bool pattern_is(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\0' && strchr("\\^$*+?()[]{}|", text[i]) != NULL)
            return true;
    }
    return false;
}

struct patterns *patterns_new(void)
{
    return xcalloc(1, sizeof(struct patterns));
}

void patterns_free(struct patterns *p)
{
    if (p == NULL)
        return;
    free(p->steps);
    free(p->classes);
    free(p->begins);
    free(p);
}

size_t patterns_count(const struct patterns *p)
{
    return p->count;
}

size_t patterns_bytes(const struct patterns *p)
{
    return sizeof *p + p->step_room * sizeof *p->steps + p->class_room * sizeof *p->classes +
           p->count * sizeof *p->begins;
}

int patterns_add(struct patterns *set, const char *text, size_t len, uint32_t value,
                 struct error *err)
{
    size_t steps = set->step_count;
    size_t classes = set->class_count;
    if (set->count == PATTERNS_MAX)
        return error_set(err, E_TOO_LARGE, "there are more than %d patterns", PATTERNS_MAX);
    if (len > PATTERN_BYTES_MAX)
        return error_set(err, E_SPEC, "a pattern of more than %d bytes", PATTERN_BYTES_MAX);
    int rc = pattern_compile(set, text, len, value, err);
    if (rc != 0) {
        set->step_count = steps;
        set->class_count = classes;
        return rc;
    }
    set->begins = xrealloc(set->begins, (set->count + 1) * sizeof *set->begins);
    set->begins[set->count++] = (uint32_t)steps;
    return 0;
}

/* Steps that the automaton stands at: a set that is emptied at no cost. */
struct front {
    uint32_t *dense;
    uint32_t count;
    uint32_t *sparse;
};

struct pattern_search {
    const struct patterns *set;
    struct front now, next;
    uint32_t *stack;
    uint32_t found[2];
};

static void front_init(struct front *f, size_t steps)
{
    f->dense = xcalloc(steps, sizeof *f->dense);
    f->sparse = xcalloc(steps, sizeof *f->sparse);
}

struct pattern_search *pattern_search_new(const struct patterns *p)
{
    if (p->count == 0)
        return NULL;
    struct pattern_search *s = xcalloc(1, sizeof *s);
    s->set = p;
    front_init(&s->now, p->step_count);
    front_init(&s->next, p->step_count);
    s->stack = xcalloc(2 * p->step_count + 1, sizeof *s->stack);
    return s;
}

void pattern_search_free(struct pattern_search *s)
{
    if (s == NULL)
        return;
    free(s->now.dense);
    free(s->now.sparse);
    free(s->next.dense);
    free(s->next.sparse);
    free(s->stack);
    free(s);
}

static bool front_add(struct front *f, uint32_t step)
{
    uint32_t i = f->sparse[step];
    if (i < f->count && f->dense[i] == step)
        return false;
    f->sparse[step] = f->count;
    f->dense[f->count++] = step;
    return true;
}

static void note_match(struct pattern_search *s, uint32_t value)
{
    if (s->found[0] == PATTERN_NONE)
        s->found[0] = value;
    else if (s->found[0] != value)
        s->found[1] = value;
}

/* The step, and all that can be reached from it without a byte. */
static void enter(struct pattern_search *s, struct front *f, uint32_t first, bool begin, bool end)
{
    size_t depth = 0;
    s->stack[depth++] = first;
    while (depth > 0) {
        uint32_t at = s->stack[--depth];
        const struct step *step = &s->set->steps[at];
        if (!front_add(f, at))
            continue;
        uint32_t target = (uint32_t)((int64_t)at + step->to);
        if (step->kind == STEP_MATCH)
            note_match(s, step->value);
        else if (step->kind == STEP_JUMP)
            s->stack[depth++] = target;
        else if (step->kind == STEP_SPLIT)
            s->stack[depth++] = target;
        if (step->kind == STEP_SPLIT || (step->kind == STEP_BEGIN && begin) ||
            (step->kind == STEP_END && end))
            s->stack[depth++] = at + 1;
    }
}

static bool class_has(const struct class *c, unsigned char byte)
{
    return (c->bits[byte / 64] >> (byte % 64) & 1) != 0;
}

static bool takes(const struct patterns *set, const struct step *step, unsigned char byte)
{
    return step->kind == STEP_BYTE
               ? step->value == byte
               : step->kind == STEP_CLASS && class_has(&set->classes[step->value], byte);
}

static void swap_fronts(struct pattern_search *s)
{
    struct front f = s->now;
    s->now = s->next;
    s->next = f;
    s->next.count = 0;
}

/* Nothing more can be found out. */
static bool is_settled(const struct pattern_search *s)
{
    return s->found[1] != PATTERN_NONE || (s->set->count == 1 && s->found[0] != PATTERN_NONE);
}

void pattern_find(struct pattern_search *s, const char *name, size_t len, uint32_t found[2])
{
    s->found[0] = s->found[1] = PATTERN_NONE;
    s->now.count = s->next.count = 0;
    for (size_t i = 0; i <= len && !is_settled(s); i++) {
        for (size_t k = 0; k < s->set->count; k++)
            enter(s, &s->now, s->set->begins[k], i == 0, i == len);
        for (uint32_t k = 0; i < len && k < s->now.count; k++) {
            uint32_t at = s->now.dense[k];
            if (takes(s->set, &s->set->steps[at], (unsigned char)name[i]))
                enter(s, &s->next, at + 1, false, i + 1 == len);
        }
        swap_fronts(s);
    }
    found[0] = s->found[0];
    found[1] = s->found[1];
}
