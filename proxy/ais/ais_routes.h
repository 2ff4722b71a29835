/* The calls of AIStore's SDK (ais/dialect.h). */
#pragma once

#include "net/http/handler.h"

extern const struct http_route ais_routes[];
