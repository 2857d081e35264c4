/* SPDX-License-Identifier: MIT */
/*
 * finder_match.h: which names what was typed means, the best first. A name is meant when it has the letters in
 * that order; it is the better the closer they are together and the more of them begin words. Blanks separate pieces that must all
 * be there, in any order. Capitals count only when one was typed.
 */
#ifndef KY_CLI_FINDER_MATCH_H
#define KY_CLI_FINDER_MATCH_H

#include "capture/symbol_list.h"

#define KY_FINDER_SCORES 1024u

#define KY_FINDER_TYPED_MAX 256u

struct ky_finder_matches {
	const struct ky_symbol_list *list;
	uint32_t *order;  /* indexes of names, the best first */
	uint16_t *scores; /* by index */
	uint32_t count;
	char *small;                     /* all names one after the other, without capitals */
	size_t *small_at;                /* by index: where each begins, and where the last ends */
	char typed[KY_FINDER_TYPED_MAX]; /* that the scores are for */
};

/* 0 or -ENOMEM. All names match at first. */
int ky_finder_matches_open(struct ky_finder_matches *matches, const struct ky_symbol_list *list);
void ky_finder_matches_close(struct ky_finder_matches *matches);
/* Takes tens of milliseconds for 100,000 names; less when more was typed, for then only what matched is looked at. */
void ky_finder_matches_find(struct ky_finder_matches *matches, const char *typed);

/* 0: not meant; else up to KY_FINDER_SCORES - 1. */
uint32_t ky_finder_score(const char *name, const char *typed);

#endif
