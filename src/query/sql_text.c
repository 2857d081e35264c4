/* SPDX-License-Identifier: MIT */
/* sql_text.c: see sql_text.h. */
#include "query/sql_text.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

struct token {
	const char *at;
	size_t bytes; /* 0 at the end */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

static const char *skip_comment(const char *at)
{
	if (at[0] == '-') {
		at += strcspn(at, "\n");
		return at;
	}
	const char *end = strstr(at + 2, "*/");
	return end ? end + 2 : at + strlen(at);
}

static const char *skip_blank(const char *at)
{
	for (;;) {
		if (is_space(*at))
			at++;
		else if ((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*'))
			at = skip_comment(at);
		else
			return at;
	}
}

/* Doubled quotes inside of quotes read as two adjacent texts, which is fine here. */
static size_t quoted_bytes(const char *at)
{
	const char *end = strchr(at + 1, *at == '[' ? ']' : *at);

	return end ? (size_t)(end - at) + 1 : strlen(at);
}

static struct token next_token(const char *at)
{
	size_t bytes = 0;

	at = skip_blank(at);
	if (*at == '\'' || *at == '"' || *at == '`' || *at == '[')
		return (struct token){at, quoted_bytes(at)};
	while (is_word(at[bytes]))
		bytes++;
	return (struct token){at, bytes ? bytes : *at != '\0'};
}

static struct token token_after(struct token token)
{
	return next_token(token.at + token.bytes);
}

static bool is(struct token token, const char *word)
{
	return token.bytes == strlen(word) &&
	       sqlite3_strnicmp(token.at, word, (int)token.bytes) == 0;
}

static const char *statement_end(const char *text)
{
	struct token token = next_token(text);

	while (token.bytes && !is(token, ";"))
		token = token_after(token);
	return token.at + token.bytes;
}

/* Skip Perfetto's schema behind a name, "(a INT, b LONG)", which SQLite does not know. */
static struct token skip_schema(struct token token)
{
	unsigned depth = 0;

	if (!is(token, "("))
		return token;
	do {
		depth += is(token, "(");
		depth -= is(token, ")");
		token = token_after(token);
	} while (depth && token.bytes);
	return token;
}

/* CREATE [OR REPLACE] PERFETTO TABLE|VIEW name [(schema)] AS ... */
static int rewrite_create(struct ky_sql_statement *statement)
{
	struct token token = token_after(next_token(statement->begin));
	bool replace = false;

	if (is(token, "OR")) {
		replace = true;
		token = token_after(token_after(token));
	}
	if (!is(token, "PERFETTO"))
		return 0;
	const struct token kind = token_after(token);
	if (is(kind, "INDEX")) { /* indexes are ours to choose */
		statement->bytes = 0;
		return 0;
	}
	if (!is(kind, "TABLE") && !is(kind, "VIEW"))
		return 0;
	const struct token name = token_after(kind);
	const struct token rest = skip_schema(token_after(name));
	statement->own =
		sqlite3_mprintf("CREATE %.*s %.*s %.*s", (int)kind.bytes, kind.at, (int)name.bytes,
				name.at, (int)(statement->end - rest.at), rest.at);
	if (replace)
		statement->replaces = sqlite3_mprintf("DROP %.*s IF EXISTS %.*s", (int)kind.bytes,
						      kind.at, (int)name.bytes, name.at);
	if (!statement->own || (replace && !statement->replaces))
		return -ENOMEM;
	statement->text = statement->own;
	statement->bytes = strlen(statement->own);
	return 0;
}

int ky_sql_statement_next(struct ky_sql_statement *statement, const char *text)
{
	const char *begin = skip_blank(text);

	*statement = (struct ky_sql_statement){.begin = begin, .text = begin};
	statement->end = statement_end(begin);
	statement->bytes = (size_t)(statement->end - begin);
	if (statement->bytes > INT_MAX / 2)
		return -E2BIG;
	const struct token first = next_token(begin);
	if (!first.bytes || is(first, ";") ||
	    (is(first, "INCLUDE") && is(token_after(first), "PERFETTO")))
		statement->bytes = 0;
	else if (is(first, "CREATE")) {
		const int error = rewrite_create(statement);
		if (error)
			ky_sql_statement_free(statement);
		return error;
	}
	return 0;
}

void ky_sql_statement_free(struct ky_sql_statement *statement)
{
	sqlite3_free(statement->own);
	sqlite3_free(statement->replaces);
	statement->own = statement->replaces = NULL;
}
