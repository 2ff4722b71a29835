#include "common/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

enum fault_action {
    FAULT_NONE,
    FAULT_ERRNO,
    FAULT_KILL,
    FAULT_DELAY,
    FAULT_HOLD,
    FAULT_CUT,
    FAULT_SKIP,
    FAULT_AHEAD,
    FAULT_BEHIND,
};

struct fault_setting {
    enum fault_action action;
    int errnum;
    uint64_t amount; /* ms of a delay or of a clock that is wrong, bytes of a cut */
    uint64_t first;  /* the pass that it begins with, counting from 1 */
    uint64_t last;
    char place[64]; /* "": everywhere; else what a place must have */
    char dir[128];  /* of a hold */
};

static const char *const fault_names[] = {
#define POINT(name, text) name,
#include "common/fault.def"
#undef POINT
};

enum {
    FAULT_POINTS = sizeof fault_names / sizeof fault_names[0],
    FAULT_ERRNO_MAX = 255, /* Linux has fewer */
    FAULT_HOLD_MS = 5,     /* between two looks whether a pass is held any longer */
};

/* What is armed, and how often each point was passed since. */
struct fault_set {
    struct fault_setting settings[FAULT_POINTS];
    uint64_t passes[FAULT_POINTS];
};

atomic_bool fault_armed;
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault_set fault_current; /* under fault_lock */

static int find_point(const char *name)
{
    for (int i = 0; i < FAULT_POINTS; i++) {
        if (strcmp(fault_names[i], name) == 0)
            return i;
    }
    return -1;
}

static int find_errno(const char *name)
{
    for (int e = 1; e <= FAULT_ERRNO_MAX; e++) {
        const char *e_name = strerrorname_np(e);
        if (e_name != NULL && strcmp(e_name, name) == 0)
            return e;
    }
    return 0;
}

/* The part after the first `mark`, which is cut off the text; NULL where there is none. */
static char *split_off(char *text, char mark)
{
    char *at = strchr(text, mark);
    if (at != NULL)
        *at++ = '\0';
    return at;
}

/* "3" or "3+" */
static int parse_passes(char *text, struct fault_setting *s, struct error *err)
{
    size_t len = strlen(text);
    bool onward = len > 0 && text[len - 1] == '+';
    if (onward)
        text[len - 1] = '\0';
    int rc = parse_u64(text, &s->first, err);
    if (rc != 0)
        return rc;
    if (s->first == 0)
        return error_set(err, E_INVALID, "passes count from 1");
    s->last = onward ? UINT64_MAX : s->first;
    return 0;
}

static const struct {
    const char *name;
    enum fault_action action;
} timed_actions[] = {{"delay", FAULT_DELAY}, {"ahead", FAULT_AHEAD}, {"behind", FAULT_BEHIND}};

/* FAULT_NONE where it is none that has a time. */
static enum fault_action timed_action(const char *name)
{
    for (size_t i = 0; i < sizeof timed_actions / sizeof timed_actions[0]; i++) {
        if (strcmp(timed_actions[i].name, name) == 0)
            return timed_actions[i].action;
    }
    return FAULT_NONE;
}

static int parse_hold(const char *dir, struct fault_setting *s, struct error *err)
{
    if (strlen(dir) >= sizeof s->dir)
        return error_set(err, E_INVALID, "the directory of a hold has at most %zu characters",
                         sizeof s->dir - 1);
    memcpy(s->dir, dir, strlen(dir) + 1);
    s->action = FAULT_HOLD;
    return 0;
}

/* "EIO@3+", "kill", "delay:50", "hold:/tmp/x", "cut@64k" */
static int parse_setting(char *text, struct fault_setting *s, struct error *err)
{
    *s = (struct fault_setting){.first = 1, .last = UINT64_MAX};
    char *after = split_off(text, '@');
    char *amount = split_off(text, ':');
    if (strcmp(text, "cut") == 0 && amount == NULL && after != NULL) {
        s->action = FAULT_CUT;
        return parse_size(after, &s->amount, err);
    }
    if (amount != NULL && strcmp(text, "hold") == 0) {
        int rc = parse_hold(amount, s, err);
        if (rc != 0)
            return rc;
    } else if (amount != NULL && (s->action = timed_action(text)) != FAULT_NONE) {
        int rc = parse_duration_ms(amount, &s->amount, err);
        if (rc != 0)
            return rc;
    } else if (strcmp(text, "kill") == 0 && amount == NULL) {
        s->action = FAULT_KILL;
    } else if (strcmp(text, "skip") == 0 && amount == NULL) {
        s->action = FAULT_SKIP;
    } else {
        s->action = FAULT_ERRNO;
        s->errnum = amount == NULL ? find_errno(text) : 0;
        if (s->errnum == 0)
            return error_set(err, E_INVALID,
                             "'%s' is none of kill, skip, delay:MS, hold:DIR, ahead:MS, "
                             "behind:MS, cut@SIZE and the errno names",
                             text);
    }
    return after != NULL ? parse_passes(after, s, err) : 0;
}

/* "/mp1]", behind its bracket */
static int parse_place(const char *text, struct fault_setting *s, struct error *err)
{
    size_t len = strlen(text);
    if (len < 2 || text[len - 1] != ']' || len > sizeof s->place)
        return error_set(err, E_INVALID, "'[%s' is not a place in brackets", text);
    memcpy(s->place, text, len - 1);
    s->place[len - 1] = '\0';
    return 0;
}

/* "disk.write[/mp1]=EIO@3" */
static int parse_entry(char *text, struct fault_set *set, struct error *err)
{
    char *action = split_off(text, '=');
    const char *place = split_off(text, '[');
    int point = find_point(text);
    if (point < 0)
        return error_set(err, E_INVALID, "no fault point is called '%s'", text);
    if (action == NULL)
        return error_set(err, E_INVALID, "fault '%s' lacks '=' and an action", text);
    int rc = parse_setting(action, &set->settings[point], err);
    if (rc == 0 && place != NULL)
        rc = parse_place(place, &set->settings[point], err);
    return rc != 0 ? error_wrap(err, "fault '%s'", text) : 0;
}

static int parse_spec(const char *spec, struct fault_set *set, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(spec);
    char *next = NULL;
    for (char *at = strtok_r(copy, ",", &next); at != NULL; at = strtok_r(NULL, ",", &next)) {
        int rc = parse_entry(at, set, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static bool fault_set_armed(const struct fault_set *set)
{
    for (int i = 0; i < FAULT_POINTS; i++) {
        if (set->settings[i].action != FAULT_NONE)
            return true;
    }
    return false;
}

int fault_configure(const char *spec, struct error *err)
{
    struct fault_set set = {0};
    int rc = parse_spec(spec != NULL ? spec : "", &set, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&fault_lock);
    fault_current = set;
    atomic_store(&fault_armed, fault_set_armed(&set));
    pthread_mutex_unlock(&fault_lock);
    return 0;
}

/* The setting of a point as far as it concerns this pass, which is counted. */
static struct fault_setting fault_take(int point, const char *place)
{
    pthread_mutex_lock(&fault_lock);
    struct fault_setting s = fault_current.settings[point];
    bool here = strstr(place, s.place) != NULL;
    uint64_t pass = here ? ++fault_current.passes[point] : 0;
    pthread_mutex_unlock(&fault_lock);
    if (pass < s.first || pass > s.last)
        s.action = FAULT_NONE;
    return s;
}

static void fault_delay(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

static void fault_hold(const char *dir, const char *place)
{
    _cleanup_free_ char *path = xprintf("%s/%s", dir, place);
    while (access(path, F_OK) == 0)
        fault_delay(FAULT_HOLD_MS);
}

/* 0, or the errno to pretend. */
static int fault_happen(const struct fault_setting *s, const char *place)
{
    switch (s->action) {
    case FAULT_ERRNO:
        return s->errnum;
    case FAULT_KILL:
        kill(getpid(), SIGKILL);
        pause();
        return 0;
    case FAULT_DELAY:
        fault_delay(s->amount);
        return 0;
    case FAULT_HOLD:
        fault_hold(s->dir, place);
        return 0;
    case FAULT_NONE:
    case FAULT_CUT:
    case FAULT_SKIP:
    case FAULT_AHEAD:
    case FAULT_BEHIND:
        return 0;
    }
    return 0;
}

int fault_pass(const char *point, const char *place)
{
    int at = find_point(point);
    if (at < 0)
        abort(); /* a point that is not a row of fault.def */
    const struct fault_setting s = fault_take(at, place);
    return fault_happen(&s, place);
}

int fault_step_pass(const char *point)
{
    int at = find_point(point);
    if (at < 0)
        abort(); /* as above */
    const struct fault_setting s = fault_take(at, "");
    return s.action == FAULT_SKIP ? FAULT_LEFT_OUT : fault_happen(&s, "");
}

uint64_t fault_cut_bytes(const char *point)
{
    if (!atomic_load_explicit(&fault_armed, memory_order_relaxed))
        return UINT64_MAX;
    int at = find_point(point);
    if (at < 0)
        abort(); /* as above */
    pthread_mutex_lock(&fault_lock);
    struct fault_setting s = fault_current.settings[at];
    pthread_mutex_unlock(&fault_lock);
    return s.action == FAULT_CUT ? s.amount : UINT64_MAX;
}

bool fault_skip_pass(const char *point)
{
    int at = find_point(point);
    if (at < 0)
        abort(); /* as above */
    return fault_take(at, "").action == FAULT_SKIP;
}

int64_t fault_shift_pass(const char *point)
{
    int at = find_point(point);
    if (at < 0)
        abort(); /* as above */
    struct fault_setting s = fault_take(at, "");
    if (s.action != FAULT_AHEAD && s.action != FAULT_BEHIND)
        return 0;
    return s.action == FAULT_AHEAD ? (int64_t)s.amount : -(int64_t)s.amount;
}
