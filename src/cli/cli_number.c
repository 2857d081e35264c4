/* SPDX-License-Identifier: MIT */
/* cli_number.c: quantities for people, as quantity.h has them, under the names of the command line. */
#include "cli/cli.h"

#include "model/quantity.h"

_Static_assert(KY_CLI_NUMBER_BYTES >= KY_QUANTITY_BYTES, "a buffer of the command line is enough");

const char *ky_cli_duration(char *buf, int64_t ns)
{
	return ky_quantity_duration(buf, ns);
}

const char *ky_cli_count(char *buf, uint64_t n)
{
	return ky_quantity_count(buf, n);
}

const char *ky_cli_bytes(char *buf, uint64_t bytes)
{
	return ky_quantity_bytes(buf, bytes);
}

bool ky_cli_parse_duration(const char *text, int64_t *ns)
{
	return ky_quantity_parse_duration(text, ns);
}
