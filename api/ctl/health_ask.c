#include "api/ctl/health_ask.h"

#include "api/ctl/health.h"
#include "common/cleanup.h"
#include "common/jsonx.h"

/* What cannot be had is not judged: the primary's silence is a reason of its own. */
static json_t *copies_or_null(struct ctl *ctl)
{
    _cleanup_free_ char *text = NULL;
    json_t *doc = NULL;
    if (dfc_documents_copies(ctl->client, NULL, NULL, &text, NULL) == DFC_OK)
        json_parse(text, strlen(text), &doc, NULL);
    return doc;
}

json_t *health_ask(struct ctl *ctl, json_t *overview)
{
    _cleanup_json_ json_t *copies = health_primary_answered(overview) ? copies_or_null(ctl) : NULL;
    return health_judge(overview, copies);
}
