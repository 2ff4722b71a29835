/* The head of a reply, as curl has it, for who looks at it. */
#include "net/client/call.h"

struct call_head {
    struct http_head head;
    CURL *easy;
};

/* libcurl (7.88) leaves the CR of the line in a value that is empty. */
static const char *header_value(const struct curl_header *h)
{
    return h->value[0] == '\r' ? "" : h->value;
}

static const char *head_header(const struct http_head *head, const char *name)
{
    const struct call_head *h = (const struct call_head *)head;
    struct curl_header *found = NULL;
    CURLHcode code = curl_easy_header(h->easy, name, 0, CURLH_HEADER, -1, &found);
    return code == CURLHE_OK ? header_value(found) : NULL;
}

static void head_each(const struct http_head *head,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct call_head *h = (const struct call_head *)head;
    for (struct curl_header *at = NULL;
         (at = curl_easy_nextheader(h->easy, CURLH_HEADER, -1, at)) != NULL;)
        fn(ctx, at->name, header_value(at));
}

static bool head_is_framed(const struct call *c, const struct http_head *head)
{
    if (c->method == HTTP_HEAD || head->status == 204 || head->status == 304)
        return true;
    return head->content_length >= 0 || head->header(head, "Transfer-Encoding") != NULL;
}

void call_take_head(struct call *c)
{
    long status = 0;
    curl_off_t length = -1;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(c->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    const struct call_head h = {.head = {.status = (int)status,
                                         .content_length = length,
                                         .header = head_header,
                                         .each_header = head_each},
                                .easy = c->easy};
    c->head_seen = true;
    c->in_flight = false;
    c->framed = head_is_framed(c, &h.head);
    c->result.status = (int)status;
    c->again = c->life->wants_again(c, &h.head);
    bool counts = !c->again && c->result.code == 0;
    c->streams =
        counts && c->download != NULL && (c->any_status_streams || (status >= 200 && status < 300));
    const char *etag = head_header(&h.head, "ETag");
    snprintf(c->result.etag, sizeof c->result.etag, "%s", etag != NULL ? etag : "");
    if (c->on_head != NULL && counts)
        c->on_head(c->arg, &h.head);
}
