/* libcurl's multi interface driven by a libuv loop: sockets by uv_poll, time by one uv_timer.
 * Everything here belongs to the loop's thread.  Internal to net/. */
#pragma once

#include <curl/curl.h>

#include "common/error.h"
#include "io/loop.h"

struct curl_loop;

struct curl_loop_ops {
    /* A transfer uses this socket. */
    void (*socket)(void *arg, CURL *easy, curl_socket_t fd);
    /* A transfer has ended; the handle has left the multi. */
    void (*finished)(void *arg, CURL *easy, CURLcode result);
};

int curl_loop_new(struct loop *loop, unsigned connections_per_host_max,
                  const struct curl_loop_ops *ops, void *arg, struct curl_loop **out,
                  struct error *err);
/* The caller has removed every transfer. */
void curl_loop_free(struct curl_loop *c);
int curl_loop_add(struct curl_loop *c, CURL *easy, struct error *err);
void curl_loop_remove(struct curl_loop *c, CURL *easy);
