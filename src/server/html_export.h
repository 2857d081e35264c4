/* SPDX-License-Identifier: MIT */
/*
 * html_export.h: a trace and the page in one HTML file, which opens from disk with no server.
 *
 * The page's data is a <script type="application/x-kymo" id="kymo-data"> with base64 of gzip: the page finds it,
 * and then answers itself what it otherwise asks a server (viewer/src/embedded*.ts). docs/formats/html.md has the
 * format.
 */
#ifndef KY_SERVER_EXPORT_HTML_H
#define KY_SERVER_EXPORT_HTML_H

#include "server/view.h"

struct ky_html_export {
	const struct ky_view *view;
	int64_t from_ns, to_ns; /* of the trace's clock; KY_TIME_NONE: open */
};

/* Writes to an open descriptor. 0, -EFBIG when there is more than a page can hold, -ENOMEM or -errno. */
int ky_html_export(int fd, const struct ky_html_export *what, char message[256]);

#endif
