/* SPDX-License-Identifier: MIT */
/*
 * html_export.h: writes a trace and the page as one HTML file, which opens from disk without a server.
 *
 * The data is a <script type="application/x-kymo" id="kymo-data"> with base64 of gzip. A page that has it answers its own
 * requests instead of a server (viewer/src/embedded*.ts). docs/formats/html.md describes the format.
 */
#ifndef KY_SERVER_EXPORT_HTML_H
#define KY_SERVER_EXPORT_HTML_H

#include "server/view.h"

struct ky_html_export {
	const struct ky_view *view;
	int64_t from_ns, to_ns; /* of the trace's clock; KY_TIME_NONE: open */
};

/* Write to a descriptor. Return 0, -EFBIG if it is too large for a page, -ENOMEM or -errno. */
int ky_html_export(int fd, const struct ky_html_export *what, char message[256]);

#endif
