/* SPDX-License-Identifier: MIT */
/*
 * inline_scopes.h: two trace points in one inline function, included by several translation units (see
 * test_inline_scopes.cc): their static parts are one object each for all units.
 */
#ifndef INLINE_SCOPES_H
#define INLINE_SCOPES_H

#include <kymo/kymo.h>

struct connection {
	const char *peer;
	long bytes;
	void receive() const
	{
		KYMO_SCOPE("net", "receive", "peer", peer, "bytes", bytes);
		KYMO_SCOPE("net", "decode", "bytes", bytes, "peer", peer);
	}
};

void receive_elsewhere(const connection &c);

#endif
