#include "xaction/testing/fake_kind.h"

struct fake_kind fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int fake_open(const struct xaction_ops *kind, void *host, const struct job *job, void **self,
                     struct error *err)
{
    (void)kind;
    (void)job;
    if (fake.open_code != 0)
        return error_set(err, fake.open_code, "open");
    *self = host;
    return 0;
}

static int fake_prepare(void *self, struct error *err)
{
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.prepares++;
    while (!fake.may_prepare)
        pthread_cond_wait(&fake.changed, &fake.lock);
    pthread_mutex_unlock(&fake.lock);
    if (fake.leaves_error)
        error_set(err, E_NOT_FOUND, "what was looked for first");
    return fake.prepare_code != 0 ? error_set(err, fake.prepare_code, "prepare") : 0;
}

static int fake_run(void *self, struct error *err)
{
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.runs++;
    while (!fake.may_run && !fake.stop_asked)
        pthread_cond_wait(&fake.changed, &fake.lock);
    int code = fake.stop_asked ? E_ABORTED : fake.run_code;
    pthread_mutex_unlock(&fake.lock);
    if (fake.leaves_error)
        error_set(err, E_NOT_FOUND, "what was looked for first");
    return code != 0 ? error_set(err, code, "%s", fake.message) : 0;
}

static void fake_stop(void *self)
{
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.stop_asked = true;
    fake.stops++;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

static int fake_try(int *counter, int code, struct error *err)
{
    pthread_mutex_lock(&fake.lock);
    (*counter)++;
    bool bad = code != 0 && fake.bad_tries-- > 0;
    pthread_mutex_unlock(&fake.lock);
    return bad ? error_set(err, code, "not yet") : 0;
}

static int fake_commit(void *self, struct error *err)
{
    (void)self;
    return fake_try(&fake.commits, fake.commit_code, err);
}

static int fake_undo(void *self, struct error *err)
{
    (void)self;
    return fake_try(&fake.undos, fake.undo_code, err);
}

static json_t *fake_status(void *self)
{
    (void)self;
    return json_pack("{s:i}", "done", 42);
}

static void fake_free(void *self)
{
    (void)self;
    pthread_mutex_lock(&fake.lock);
    fake.frees++;
    pthread_mutex_unlock(&fake.lock);
}

void fake_moved(void *host, const char *job_id)
{
    (void)host, (void)job_id;
    pthread_mutex_lock(&fake.lock);
    fake.moves++;
    pthread_mutex_unlock(&fake.lock);
}

static const struct xaction_ops fake_ops = {
    .kind = "sort",
    .open = fake_open,
    .prepare = fake_prepare,
    .run = fake_run,
    .stop = fake_stop,
    .commit = fake_commit,
    .undo = fake_undo,
    .status = fake_status,
    .free = fake_free,
};
const struct xaction_ops *const fake_kinds[] = {&fake_ops, NULL};

void fake_reset(void)
{
    fake.may_prepare = true;
    fake.leaves_error = false;
    fake.may_run = fake.stop_asked = false;
    fake.open_code = fake.prepare_code = fake.run_code = 0;
    fake.commit_code = fake.undo_code = 0;
    fake.bad_tries = 1;
    fake.prepares = fake.runs = fake.stops = fake.commits = fake.undos = fake.frees = fake.moves =
        0;
    fake.message = "run";
}

static void let(bool *may)
{
    pthread_mutex_lock(&fake.lock);
    *may = true;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.lock);
}

void fake_let_prepare(void)
{
    let(&fake.may_prepare);
}

void fake_let_run(void)
{
    let(&fake.may_run);
}

int fake_count(const int *counter)
{
    pthread_mutex_lock(&fake.lock);
    int n = *counter;
    pthread_mutex_unlock(&fake.lock);
    return n;
}
