/* The documents as a whole: moved, restored, recovered, handed to another primary. */
#pragma once

#include "net/http/server.h"

extern const struct http_route documents_routes[];
