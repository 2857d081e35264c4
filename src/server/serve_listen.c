/* SPDX-License-Identifier: MIT */
/* serve_listen.c: see serve_listen.h. */
#include "server/serve_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIND_AS_IT_IS "127.0.0.1"
#define BACKLOG 512

static int find_address(const char *bind, uint16_t port, struct addrinfo **found,
			char message[KY_SERVE_MESSAGE_BYTES])
{
	char service[8];
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	snprintf(service, sizeof(service), "%u", (unsigned)port);
	const int error = getaddrinfo(bind, service, &hints, found);
	if (!error)
		return 0;
	snprintf(message, KY_SERVE_MESSAGE_BYTES,
		 "cannot listen on %.80s: %s; --bind takes an address of this machine, as "
		 "0.0.0.0 or ::1",
		 bind, gai_strerror(error));
	return -EADDRNOTAVAIL;
}

static int say_cannot(int error, const char *bind, uint16_t port,
		      char message[KY_SERVE_MESSAGE_BYTES])
{
	const char *const remedy =
		error == EADDRINUSE ? "another program has the port: choose one with --port, or "
				      "none for a free one"
		: error == EACCES ? "ports below 1024 are the system's: choose another with --port"
		: error == EADDRNOTAVAIL ? "--bind takes an address of this machine"
					 : "choose another with --bind or --port";
	snprintf(message, KY_SERVE_MESSAGE_BYTES, "cannot listen on %.80s port %u: %s; %s", bind,
		 (unsigned)port, strerror(error), remedy);
	return -error;
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

static void look_at(struct ky_listen *listen, struct ky_site *site, const union address *at)
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

static void give_names(struct ky_listen *listen, struct ky_site *site, const char *bind)
{
	char own[KY_SITE_NAME_BYTES] = "";
	if (listen->loopback || site->every) {
		ky_site_name(site, "127.0.0.1");
		ky_site_name(site, "localhost");
		ky_site_name(site, "[::1]");
	}
	ky_site_name(site, listen->host);
	ky_site_name(site, bind);
	if (!site->every || gethostname(own, sizeof(own) - 1) != 0)
		return;
	/* An address that can be opened as it is printed, and from elsewhere. */
	ky_site_name(site, own);
	snprintf(listen->host, sizeof(listen->host), "%s", own);
}

int ky_listen_open(struct ky_listen *listen, struct ky_site *site,
		   const struct ky_serve_options *options, char message[KY_SERVE_MESSAGE_BYTES])
{
	const char *const bind = options->bind ? options->bind : BIND_AS_IT_IS;
	struct addrinfo *found = NULL;
	union address at = {0};
	socklen_t bytes = sizeof(at);
	*listen = (struct ky_listen){.fd = -1};
	const int error = find_address(bind, options->port, &found, message);
	if (error)
		return error;
	listen->fd = listen_on(found);
	freeaddrinfo(found);
	if (listen->fd < 0)
		return say_cannot(-listen->fd, bind, options->port, message);
	getsockname(listen->fd, &at.any, &bytes);
	look_at(listen, site, &at);
	give_names(listen, site, bind);
	return 0;
}
