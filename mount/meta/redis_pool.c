#include "mount/meta/redis_pool.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "mount/meta/link_pool.h"
#include "mount/meta/patience.h"
#include "mount/meta/redis_slot.h"

enum { RUN_ID = 40, SHA = 40 };

struct redis_pool {
    struct redis_place place;
    char sha[REDIS_SCRIPTS][SHA + 1]; /* constant after open */
    bool make;                        /* by the first connection */
    char *lost;                       /* what is said when the server has lost commits */
    struct link_pool *pool;
};

static void free_reply(redisReply **reply)
{
    if (*reply != NULL)
        freeReplyObject(*reply);
}
#define _cleanup_reply_ _cleanup_(free_reply)

/* ---- errors of the server ---- */

static const struct {
    const char *word;
    int code; /* E_NOT_READY: it did nothing, and may do it later */
} server_errors[] = {
    {"LOADING", E_NOT_READY},
    {"BUSY", E_NOT_READY},
    {"MASTERDOWN", E_NOT_READY},
    {"READONLY", E_NOT_READY},
    {"NOREPLICAS", E_NOT_READY},
    {"NOSCRIPT", E_NOT_READY},
    {"OOM", E_NO_SPACE},
    {"NOAUTH", E_ACCESS_DENIED},
    {"WRONGPASS", E_ACCESS_DENIED},
    {"NOPERM", E_ACCESS_DENIED},
    {"invalid password", E_ACCESS_DENIED},
    {"MOVED", E_UNSUPPORTED},
    {"CLUSTERDOWN", E_UNSUPPORTED},
    {"WRONGTYPE", E_CORRUPT},
};

static int server_error(const redisReply *reply, struct error *err)
{
    int code = E_IO;
    for (size_t i = sizeof server_errors / sizeof *server_errors; i-- > 0;) {
        if (strstr(reply->str, server_errors[i].word) != NULL)
            code = server_errors[i].code;
    }
    return error_set(err, code, "the Redis server says: %s", reply->str);
}

/* As redis_link_call(), and an error of the server is one of the call. */
static int say(struct redis_link *l, const struct redis_words *words, redisReply **out,
               struct error *err)
{
    *out = NULL;
    int rc = redis_link_call(l, words, out, err);
    if (rc != 0 || (*out)->type != REDIS_REPLY_ERROR)
        return rc;
    rc = server_error(*out, err);
    freeReplyObject(steal(*out));
    return rc;
}

enum { WORDS_MAX = 16 };

/* Text without NUL bytes; ends with NULL. */
static int say_text(struct redis_link *l, const char *const *text, redisReply **out,
                    struct error *err)
{
    size_t sizes[WORDS_MAX], count = 0;
    for (; text[count] != NULL; count++)
        sizes[count] = strlen(text[count]);
    const struct redis_words words = {text, sizes, count};
    return say(l, &words, out, err);
}
#define SAY(l, out, err, ...) say_text(l, (const char *const[]){__VA_ARGS__, NULL}, out, err)

/* ---- hello ---- */

static int log_in(const struct redis_pool *p, struct redis_link *l, struct error *err)
{
    const struct redis_place *at = &p->place;
    _cleanup_reply_ redisReply *login = NULL, *selected = NULL;
    int rc = 0;
    if (at->password != NULL)
        rc = at->user != NULL ? SAY(l, &login, err, "AUTH", at->user, at->password)
                              : SAY(l, &login, err, "AUTH", at->password);
    if (rc == 0)
        rc = SAY(l, &selected, err, "SELECT", at->database);
    return rc;
}

/* The value of a line of INFO; "" where there is none. */
static void info_value(const redisReply *info, const char *name, char *out, size_t size)
{
    const size_t len = strlen(name);
    const char *at = info->type == REDIS_REPLY_STRING ? info->str : "";
    out[0] = '\0';
    while ((at = strstr(at, name)) != NULL) {
        if ((at == info->str || at[-1] == '\n') && at[len] == ':') {
            snprintf(out, size, "%.*s", (int)strcspn(at + len + 1, "\r\n"), at + len + 1);
            return;
        }
        at += len;
    }
}

static int read_run_id(struct redis_link *l, char *run_id, struct error *err)
{
    char mode[16];
    _cleanup_reply_ redisReply *info = NULL;
    int rc = SAY(l, &info, err, "INFO", "server");
    if (rc != 0)
        return rc;
    info_value(info, "redis_mode", mode, sizeof mode);
    info_value(info, "run_id", run_id, RUN_ID + 1);
    if (strcmp(mode, "cluster") == 0)
        return error_set(err, E_UNSUPPORTED,
                         "the Redis server is part of a Redis Cluster: take one that is not");
    if (strlen(run_id) != RUN_ID)
        return error_set(err, E_UNSUPPORTED, "the Redis server does not tell its run_id");
    return 0;
}

static int load_scripts(struct redis_link *l, char (*sha)[SHA + 1], struct error *err)
{
    for (unsigned i = 0; i < REDIS_SCRIPTS; i++) {
        _cleanup_reply_ redisReply *reply = NULL;
        int rc = SAY(l, &reply, err, "SCRIPT", "LOAD", redis_scripts[i]);
        if (rc != 0)
            return rc;
        snprintf(sha[i], SHA + 1, "%s", reply->str);
    }
    return 0;
}

static int say_hello(struct redis_pool *p, struct redis_link *l, bool make, const char *run_id,
                     redisReply **out, struct error *err)
{
    char number[24];
    const struct link_pool_run known = link_pool_known(p->pool);
    snprintf(number, sizeof number, "%lld", (long long)known.number);
    return SAY(l, out, err, "EVAL", redis_scripts[REDIS_HELLO], "3", REDIS_TAG "meta",
               REDIS_TAG "runs", REDIS_TAG "number", make ? "1" : "0", run_id, known.name, number);
}

static int check_format(const struct redis_pool *p, const char *format, struct error *err)
{
    if (format[0] == '\0')
        return error_set(err, E_NOT_FOUND, "database %s of Redis server %s:%s has no volume",
                         p->place.database, p->place.host, p->place.port);
    if (strcmp(format, "1") != 0)
        return error_set(err, E_UNSUPPORTED,
                         "the Redis database has format %s, this release reads %d", format,
                         REDIS_FORMAT);
    return 0;
}

/* What the server said: is it the same run, a later one, or one that lost commits? */
static int judge_hello(struct redis_pool *p, const redisReply *reply, const char *run_id,
                       unsigned *run, struct error *err)
{
    const struct link_pool_hello hello = {
        .kept = reply->element[2]->integer == 1,
        .run = run_id,
        .number = reply->element[1]->integer,
        .refused = check_format(p, reply->element[0]->str, err),
    };
    return link_pool_met(p->pool, &hello, run, err);
}

static int hello(struct redis_pool *p, struct redis_link *l, bool make, unsigned *run,
                 struct error *err)
{
    char run_id[RUN_ID + 1];
    _cleanup_reply_ redisReply *reply = NULL;
    int rc = log_in(p, l, err);
    if (rc == 0)
        rc = read_run_id(l, run_id, err);
    if (rc == 0)
        rc = say_hello(p, l, make, run_id, &reply, err);
    if (rc == 0 && (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
                    reply->element[0]->type != REDIS_REPLY_STRING))
        rc = error_set(err, E_CORRUPT, "reply of the Redis server to the first script");
    return rc != 0 ? rc : judge_hello(p, reply, run_id, run, err);
}

/* ---- calls ---- */

struct call {
    struct link_pool *pool;
    const struct redis_request *request;
    redisReply **out;
};

static int try_call(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    const struct call *c = call;
    int rc = say(link, &c->request->words, c->out, err);
    if (rc == 0 && c->request->counts)
        rc = link_pool_acknowledge(
            c->pool, run, (*c->out)->type == REDIS_REPLY_INTEGER ? (*c->out)->integer : 0, err);
    if (rc == E_IN_DOUBT && *c->out != NULL)
        freeReplyObject(steal(*c->out));
    /* After E_NOT_READY a new connection loads the scripts, and may find another server. */
    *usable = rc != E_NET && rc != E_IN_DOUBT && rc != E_NOT_READY;
    return rc;
}

int redis_pool_call(struct redis_pool *p, const struct redis_request *request, redisReply **out,
                    struct error *err)
{
    struct call c = {p->pool, request, out};
    *out = NULL;
    return link_pool_call(p->pool, try_call, &c, request->again, err);
}

const char *redis_pool_sha(const struct redis_pool *p, enum redis_script script)
{
    return p->sha[script];
}

/* ---- settings ---- */

static int info_of(struct redis_link *l, const char *section, const char *name, char *out,
                   size_t size, struct error *err)
{
    _cleanup_reply_ redisReply *info = NULL;
    int rc = SAY(l, &info, err, "INFO", section);
    if (rc == 0)
        info_value(info, name, out, size);
    return rc;
}

static int warn_of_settings(const struct redis_pool *p, struct redis_link *l, struct error *err)
{
    char aof[8], policy[32];
    int rc = info_of(l, "persistence", "aof_enabled", aof, sizeof aof, err);
    if (rc == 0)
        rc = info_of(l, "memory", "maxmemory_policy", policy, sizeof policy, err);
    if (rc != 0)
        return rc;
    if (strcmp(aof, "0") == 0)
        log_warn("the Redis server has 'appendonly no': a restart of the server loses changes of "
                 "the volume; set 'appendonly yes'",
                 lstr("server", p->place.host));
    if (policy[0] != '\0' && strcmp(policy, "noeviction") != 0)
        log_warn("the Redis server may evict metadata: set 'maxmemory-policy noeviction'",
                 lstr("server", p->place.host), lstr("maxmemory_policy", policy));
    return 0;
}

/* ---- a connection ---- */

static int open_link(void *context, bool first, void **link, unsigned *run, struct error *err)
{
    struct redis_pool *p = context;
    _cleanup_(redis_link_closep)
    struct redis_link *l = NULL;
    char sha[REDIS_SCRIPTS][SHA + 1]; /* as they were: a server that started anew has no scripts */
    int rc = redis_link_open(&p->place, META_REDIS_CALL_MS, &l, err);
    if (rc == 0)
        rc = hello(p, l, first && p->make, run, err);
    if (rc == 0)
        rc = load_scripts(l, first ? p->sha : sha, err);
    if (rc == 0 && first)
        rc = warn_of_settings(p, l, err);
    if (rc == 0)
        *link = steal(l);
    return rc;
}

static void close_link(void *link)
{
    redis_link_close(link);
}

static bool is_idle(const void *link)
{
    return redis_link_is_idle(link);
}

static const struct link_pool_ops ops = {
    .server = "Redis",
    .away_ms = META_AWAY_MS,
    .open = open_link,
    .close = close_link,
    .is_idle = is_idle,
};

/* ---- open and close ---- */

int redis_pool_open(const char *where, bool make, struct redis_pool **out, struct error *err)
{
    struct redis_place place;
    int rc = redis_place_parse(where, &place, err);
    if (rc != 0)
        return rc;
    struct redis_pool *p = xcalloc(1, sizeof *p);
    const char *password = getenv("DFC_META_PASSWORD");
    p->place = place;
    if (place.password == NULL && password != NULL && password[0] != '\0')
        p->place.password = xstrdup(password);
    p->make = make;
    p->lost = xprintf("Redis server %s:%s has lost commits that it acknowledged (a restart with an "
                      "old file, a failover, or FLUSHALL): mount the volume again",
                      p->place.host, p->place.port);
    p->pool = link_pool_new(&ops, p, p->lost, META_REDIS_LINKS);
    rc = link_pool_open(p->pool, err);
    if (rc != 0) {
        redis_pool_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void redis_pool_close(struct redis_pool *p)
{
    if (p == NULL)
        return;
    link_pool_free(p->pool);
    free(p->lost);
    redis_place_done(&p->place);
    free(p);
}
