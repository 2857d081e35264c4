/* SPDX-License-Identifier: MIT */
/*
 * serve_reply.h: sends replies: with headers that keep the content from other sites, errors as JSON, and gzip where it pays.
 */
#ifndef KY_SERVER_SERVE_REPLY_H
#define KY_SERVER_SERVE_REPLY_H

#include "base/buffer.h"

#include <microhttpd.h>

struct ky_serve_reply {
	unsigned status;
	const char *type;
	struct ky_buffer body; /* taken */
	bool pack;             /* with gzip, if the client accepts it and it gets smaller */
};

enum MHD_Result ky_serve_reply_send(struct MHD_Connection *connection,
				    struct ky_serve_reply *reply);
/* Send the page, which is static. */
enum MHD_Result ky_serve_reply_page(struct MHD_Connection *connection, const char *page,
				    size_t bytes, bool pack);
/* Send {"error": why}. */
enum MHD_Result ky_serve_reply_error(struct MHD_Connection *connection, unsigned status,
				     const char *why);
enum MHD_Result ky_serve_reply_redirect(struct MHD_Connection *connection, const char *to);

#endif
