/* The content type by which others tell the head of a plog from any other object. */
#pragma once

#define PLOG_TYPE "application/vnd.dfc.plog+json"
