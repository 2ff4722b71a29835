/* __complete: what the completion script calls at every TAB. */
#include "api/ctl/commands.h"

#include "api/ctl/complete.h"
#include "api/ctl/names/name.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

/* A cluster that does not answer must not hold the user's keyboard. */
#define ANSWER_WITHIN_MS 1000
#define OBJECTS_SHOWN 200

/* Candidates never are an error message: what cannot be asked is not offered. */
static void offer_from(const struct completion *c, struct buf *out, const char *document,
                       const char *array, const char *field)
{
    _cleanup_json_ json_t *doc = NULL;
    size_t i;
    json_t *one;
    if (document == NULL || json_parse(document, strlen(document), &doc, NULL) != 0)
        return;
    json_array_foreach(json_object_get(doc, array), i, one)
    {
        const char *name = json_string_value(json_object_get(one, field));
        if (name != NULL && strncmp(name, c->start, strlen(c->start)) == 0)
            buf_printf(out, "%s%s\n", c->lead, name);
    }
}

static void offer_buckets(struct dfc_client *client, const struct completion *c, struct buf *out,
                          const char *tail)
{
    _cleanup_free_ char *document = NULL;
    _cleanup_(buf_done)
    struct buf names = BUF_INIT;
    if (dfc_bucket_list(client, &document, NULL) != DFC_OK)
        return;
    offer_from(c, &names, document, "buckets", "name");
    for (const char *p = buf_str(&names); *p != '\0';) {
        size_t n = strcspn(p, "\n");
        buf_printf(out, "%.*s%s\n", (int)n, p, tail);
        p += n + 1;
    }
}

static void offer_objects(struct dfc_client *client, const struct completion *c, struct buf *out)
{
    struct dfc_list *list;
    const struct dfc_entry *entry;
    _cleanup_(object_name_done)
    struct object_name n = {0};
    if (object_name_parse(c->start, &n, NULL) != 0)
        return;
    size_t lead = strlen(c->start) - strlen(n.key); /* "dfc://bucket/" */
    const struct dfc_list_options options = {
        .prefix = n.key, .delimiter = "/", .page_size = OBJECTS_SHOWN};
    if (dfc_list_open(client, n.bucket, &options, &list, NULL) != DFC_OK)
        return;
    for (int i = 0; i < OBJECTS_SHOWN && dfc_list_next(list, &entry, NULL) > 0; i++) {
        if (strpbrk(entry->name, "\n\r") == NULL)
            buf_printf(out, "%.*s%s\n", (int)lead, c->start, entry->name);
    }
    dfc_list_close(list);
}

static void offer_word(struct dfc_client *client, const struct completion *c, struct buf *out)
{
    _cleanup_free_ char *document = NULL;
    switch (c->word) {
    case WORD_FILE:
        buf_puts(out, "@files\n");
        break;
    case WORD_BUCKET:
        offer_buckets(client, c, out, "");
        break;
    case WORD_OBJECT:
        if (strncmp(c->start, "./", 2) == 0 || c->start[0] == '/')
            buf_puts(out, "@files\n");
        else if (strchr(c->start, '/') == NULL)
            offer_buckets(client, c, out, "/");
        else
            offer_objects(client, c, out);
        break;
    case WORD_NODE:
        dfc_cluster_show(client, NULL, &document, NULL);
        offer_from(c, out, document, "nodes", "id");
        break;
    case WORD_JOB:
        dfc_job_list(client, NULL, NULL, &document, NULL);
        offer_from(c, out, document, "jobs", "id");
        break;
    case WORD_COMMAND:
    case WORD_OTHER:
        break;
    }
}

/* The line's own --endpoint, if it has one. */
static const char *endpoint_of(const struct args *args)
{
    for (size_t i = 0; i + 1 < args->word_count; i++) {
        if (strcmp(args->words[i], "--endpoint") == 0)
            return args->words[i + 1];
        if (strncmp(args->words[i], "--endpoint=", 11) == 0)
            return args->words[i] + 11;
    }
    return NULL;
}

int complete(struct ctl *ctl, const struct args *args)
{
    struct completion c;
    struct dfc_client *client;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    const struct dfc_client_options options = {
        .endpoints = endpoint_of(args),
        .connect_timeout_ms = ANSWER_WITHIN_MS,
        .idle_timeout_ms = ANSWER_WITHIN_MS,
        .attempts = 1,
    };
    completion_find(&c, args->words, args->word_count);
    completion_of_table(&c, &out);
    if (c.kind == COMPLETE_WORD && dfc_client_open(&options, &client, NULL) == DFC_OK) {
        offer_word(client, &c, &out);
        dfc_client_close(client);
    }
    fputs(buf_str(&out), ctl->out);
    return EXIT_OK;
}
