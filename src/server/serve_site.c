/* SPDX-License-Identifier: MIT */
/* serve_site.c: see serve_site.h. */
#include "server/serve_site.h"

#include "server/serve_site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_OF_HTTP 80

int ky_serve_site_make_token(struct ky_serve_site *site)
{
	uint8_t bits[KY_SERVE_SITE_TOKEN_BYTES / 2];
	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -errno;
	for (size_t i = 0; i < sizeof(bits); i++)
		snprintf(site->token + 2 * i, 3, "%02x", bits[i]);
	return 0;
}

void ky_serve_site_add_name(struct ky_serve_site *site, const char *name)
{
	if (site->names_count < KY_SERVE_SITE_NAMES_MAX && strlen(name) < KY_SERVE_SITE_NAME_BYTES)
		strcpy(site->names[site->names_count++], name);
}

/* ---- Host and Origin ---- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool ky_serve_site_same_name(const char *a, const char *b)
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
	if (!*text || *text == '0') /* no browser writes a zero before a port */
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || *port > UINT16_MAX)
			return false;
		*port = *port * 10 + (uint32_t)(*text - '0');
	}
	return true;
}

/* Split "[::1]:80" and "a:80" into a name, with its brackets, and a port. */
static bool split_host(const char *host, char name[KY_SERVE_SITE_NAME_BYTES], uint32_t *port)
{
	const char *const bracket = *host == '[' ? strchr(host, ']') : NULL;
	const char *const colon = bracket ? bracket + 1 : strchr(host, ':');
	const size_t bytes = colon ? (size_t)(colon - host) : strlen(host);
	if ((*host == '[' && !bracket) || bytes >= KY_SERVE_SITE_NAME_BYTES)
		return false;
	memcpy(name, host, bytes);
	name[bytes] = '\0';
	*port = PORT_OF_HTTP;
	if (!colon || !*colon)
		return true;
	return *colon == ':' && parse_port(colon + 1, port);
}

/* Report whether a name is a numeric address: no name server decides where it leads. */
static bool is_literal(const char *name)
{
	struct in6_addr address;
	char inner[KY_SERVE_SITE_NAME_BYTES];
	const size_t bytes = strlen(name);
	if (inet_pton(AF_INET, name, &address) == 1)
		return true;
	if (bytes < 4 || name[0] != '[')
		return false;
	memcpy(inner, name + 1, bytes - 2);
	inner[bytes - 2] = '\0';
	return inet_pton(AF_INET6, inner, &address) == 1;
}

bool ky_serve_site_is_host(const struct ky_serve_site *site, const char *host)
{
	char name[KY_SERVE_SITE_NAME_BYTES];
	uint32_t port;
	if (!split_host(host, name, &port) || port != site->port)
		return false;
	for (uint32_t i = 0; i < site->names_count; i++)
		if (ky_serve_site_same_name(name, site->names[i]))
			return true;
	return site->every && is_literal(name);
}

bool ky_serve_site_is_origin(const struct ky_serve_site *site, const char *origin)
{
	static const char scheme[] = "http://";
	const size_t bytes = sizeof(scheme) - 1;
	return strncmp(origin, scheme, bytes) == 0 && ky_serve_site_is_host(site, origin + bytes);
}

/* ---- the token ---- */

const char *ky_serve_site_after_token(const struct ky_serve_site *site, const char *target)
{
	char given[KY_SERVE_SITE_TOKEN_BYTES] = {0};
	unsigned differ = 0;
	if (target[0] != '/')
		return NULL;
	const size_t bytes = strnlen(target + 1, KY_SERVE_SITE_TOKEN_BYTES);
	memcpy(given, target + 1, bytes);
	for (size_t i = 0; i < KY_SERVE_SITE_TOKEN_BYTES; i++)
		differ |= (unsigned)(given[i] ^ site->token[i]);
	return differ ? NULL : target + 1 + KY_SERVE_SITE_TOKEN_BYTES;
}

/* ---- requests ---- */

static bool is_method(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "POST") == 0;
}

/* Report whether the browser says that our own page is asking, or the user ("none": an address that was typed). */
static bool is_own_fetch(const char *site)
{
	return ky_serve_site_same_name(site, "same-origin") ||
	       ky_serve_site_same_name(site, "none");
}

int ky_serve_site_check(const struct ky_serve_site *site, const struct ky_serve_head *head,
			const char **after)
{
	*after = NULL;
	if (head->hosts != 1 || !head->host || !ky_serve_site_is_host(site, head->host))
		return 403;
	if (head->origin && !ky_serve_site_is_origin(site, head->origin))
		return 403;
	if (head->fetch_site && !is_own_fetch(head->fetch_site))
		return 403;
	const char *const rest = ky_serve_site_after_token(site, head->target);
	/* Longer than the token: not ours. */
	if (!rest || (*rest && *rest != '/' && *rest != '?'))
		return 403;
	if (!is_method(head->method))
		return 405;
	*after = rest;
	return 0;
}

/* ---- listening ---- */

#define BIND_DEFAULT "127.0.0.1"
#define BACKLOG 512

static int find_address(const char *bind, uint16_t port, struct addrinfo **found,
			char message[KY_MESSAGE_BYTES])
{
	char service[8];
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	snprintf(service, sizeof(service), "%u", (unsigned)port);
	const int error = getaddrinfo(bind, service, &hints, found);
	if (!error)
		return 0;
	return ky_fail(
		message, -EADDRNOTAVAIL,
		"cannot listen on %.80s: %s: use --bind with an address of this machine, such as "
		"0.0.0.0 or ::1",
		bind, gai_strerror(error));
}

static int explain(int error, const char *bind, uint16_t port, char message[KY_MESSAGE_BYTES])
{
	const char *const remedy =
		error == EADDRINUSE
			? "another program uses the port: choose another with --port, or "
			  "omit it"
		: error == EACCES        ? "ports below 1024 need root: choose another with --port"
		: error == EADDRNOTAVAIL ? "use --bind with an address of this machine"
					 : "choose another with --bind or --port";
	return ky_fail(message, -error, "cannot listen on %.80s port %u: %s; %s", bind,
		       (unsigned)port, strerror(error), remedy);
}

static int listen_on(const struct addrinfo *address)
{
	const int on = 1;
	const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	const int error = -errno;
	close(fd);
	return error;
}

/* ---- names ---- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

static void read_address(struct ky_serve_listen *listen, struct ky_serve_site *site,
			 const union address *at)
{
	char text[INET6_ADDRSTRLEN] = "";
	if (at->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &at->v6.sin6_addr, text, sizeof(text));
		snprintf(listen->host, sizeof(listen->host), "[%s]", text);
		site->port = ntohs(at->v6.sin6_port);
		site->every = IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr);
		listen->loopback = IN6_IS_ADDR_LOOPBACK(&at->v6.sin6_addr);
	} else {
		const uint32_t number = ntohl(at->v4.sin_addr.s_addr);
		inet_ntop(AF_INET, &at->v4.sin_addr, text, sizeof(text));
		snprintf(listen->host, sizeof(listen->host), "%s", text);
		site->port = ntohs(at->v4.sin_port);
		site->every = number == INADDR_ANY;
		listen->loopback = number >> 24 == IN_LOOPBACKNET;
	}
}

static void add_names(struct ky_serve_listen *listen, struct ky_serve_site *site, const char *bind)
{
	char own[KY_SERVE_SITE_NAME_BYTES] = "";
	if (listen->loopback || site->every) {
		ky_serve_site_add_name(site, "127.0.0.1");
		ky_serve_site_add_name(site, "localhost");
		ky_serve_site_add_name(site, "[::1]");
	}
	ky_serve_site_add_name(site, listen->host);
	ky_serve_site_add_name(site, bind);
	if (!site->every || gethostname(own, sizeof(own) - 1) != 0)
		return;
	/* A name that also works from other machines. */
	ky_serve_site_add_name(site, own);
	snprintf(listen->host, sizeof(listen->host), "%s", own);
}

int ky_serve_site_open(struct ky_serve_listen *listen, struct ky_serve_site *site,
		       const struct ky_serve_options *options, char message[KY_MESSAGE_BYTES])
{
	const char *const bind = options->bind ? options->bind : BIND_DEFAULT;
	struct addrinfo *found = NULL;
	union address at = {0};
	socklen_t bytes = sizeof(at);
	*listen = (struct ky_serve_listen){.fd = -1};
	const int error = find_address(bind, options->port, &found, message);
	if (error)
		return error;
	listen->fd = listen_on(found);
	freeaddrinfo(found);
	if (listen->fd < 0)
		return explain(-listen->fd, bind, options->port, message);
	getsockname(listen->fd, &at.any, &bytes);
	read_address(listen, site, &at);
	add_names(listen, site, bind);
	return 0;
}
