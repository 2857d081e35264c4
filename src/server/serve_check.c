/* SPDX-License-Identifier: MIT */
/* serve_check.c: see serve_check.h. */
#include "server/serve_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PORT_OF_HTTP 80

int ky_site_token(struct ky_site *site)
{
	uint8_t bits[KY_SITE_TOKEN_BYTES / 2];
	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -errno;
	for (size_t i = 0; i < sizeof(bits); i++)
		snprintf(site->token + 2 * i, 3, "%02x", bits[i]);
	return 0;
}

void ky_site_name(struct ky_site *site, const char *name)
{
	if (site->names_count < KY_SITE_NAMES_MAX && strlen(name) < KY_SITE_NAME_BYTES)
		strcpy(site->names[site->names_count++], name);
}

/* ---- Host and Origin ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ky_site_same_name(const char *a, const char *b)
{
	while (*a && lower(*a) == lower(*b)) {
		a++;
		b++;
	}
	return lower(*a) == lower(*b);
}

static bool parse_port(const char *text, uint32_t *port)
{
	*port = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || *port > UINT16_MAX)
			return false;
		*port = *port * 10 + (uint32_t)(*text - '0');
	}
	return true;
}

/* "[::1]:80" and "a:80" into a name, with its brackets, and a port. */
static bool split_host(const char *host, char name[KY_SITE_NAME_BYTES], uint32_t *port)
{
	const char *const bracket = *host == '[' ? strchr(host, ']') : NULL;
	const char *const colon = bracket ? bracket + 1 : strchr(host, ':');
	const size_t bytes = colon ? (size_t)(colon - host) : strlen(host);
	if ((*host == '[' && !bracket) || bytes >= KY_SITE_NAME_BYTES)
		return false;
	memcpy(name, host, bytes);
	name[bytes] = '\0';
	*port = PORT_OF_HTTP;
	if (!colon || !*colon)
		return true;
	return *colon == ':' && parse_port(colon + 1, port);
}

/* An address in digits: no name server had a say in where it leads. */
static bool is_literal(const char *name)
{
	struct in6_addr address;
	char inner[KY_SITE_NAME_BYTES];
	const size_t bytes = strlen(name);
	if (inet_pton(AF_INET, name, &address) == 1)
		return true;
	if (bytes < 4 || name[0] != '[')
		return false;
	memcpy(inner, name + 1, bytes - 2);
	inner[bytes - 2] = '\0';
	return inet_pton(AF_INET6, inner, &address) == 1;
}

bool ky_site_is_host(const struct ky_site *site, const char *host)
{
	char name[KY_SITE_NAME_BYTES];
	uint32_t port;
	if (!split_host(host, name, &port) || port != site->port)
		return false;
	for (uint32_t i = 0; i < site->names_count; i++)
		if (ky_site_same_name(name, site->names[i]))
			return true;
	return site->every && is_literal(name);
}

bool ky_site_is_origin(const struct ky_site *site, const char *origin)
{
	static const char scheme[] = "http://";
	const size_t bytes = sizeof(scheme) - 1;
	return strncmp(origin, scheme, bytes) == 0 && ky_site_is_host(site, origin + bytes);
}

/* ---- the token ---- */

const char *ky_site_behind_token(const struct ky_site *site, const char *target)
{
	char given[KY_SITE_TOKEN_BYTES] = {0};
	unsigned differ = 0;
	if (target[0] != '/')
		return NULL;
	const size_t bytes = strnlen(target + 1, KY_SITE_TOKEN_BYTES);
	memcpy(given, target + 1, bytes);
	for (size_t i = 0; i < KY_SITE_TOKEN_BYTES; i++)
		differ |= (unsigned)(given[i] ^ site->token[i]);
	return differ ? NULL : target + 1 + KY_SITE_TOKEN_BYTES;
}

/* ---- all of it ---- */

static bool is_method(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "POST") == 0;
}

int ky_site_check(const struct ky_site *site, const struct ky_head *head, const char **behind)
{
	*behind = NULL;
	if (head->hosts != 1 || !head->host || !ky_site_is_host(site, head->host))
		return 403;
	if (head->origin && !ky_site_is_origin(site, head->origin))
		return 403;
	const char *const rest = ky_site_behind_token(site, head->target);
	/* What is longer than the token is another one. */
	if (!rest || (*rest && *rest != '/' && *rest != '?'))
		return 403;
	if (!is_method(head->method))
		return 405;
	*behind = rest;
	return 0;
}
