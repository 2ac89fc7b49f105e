// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lines of the file; # begins a comment, a name with blanks stands in quotation marks:
 *
 *	strict | best-effort
 *	partition NAME|P_KEY phy|vlane|def [links=N]
 *	weight NODE|PORT_GUID 1..100
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "pftree_policy.h"

#define MOST_WORDS	5

static const char *const isolations[] = {
	[PFTREE_DEF] = "def", [PFTREE_VLANE] = "vlane", [PFTREE_PHY] = "phy",
};

/** pftree_isolation_name - the word for it in the file */
const char *pftree_isolation_name(enum pftree_isolation isolation)
{
	return isolations[isolation];
}

/* Words of a line; how many, or -1: too many, or a quotation mark without its other. */
static int split(char *line, char **words)
{
	char *at = line;
	int n = 0;

	for (;;) {
		char *end;

		at += strspn(at, " \t\r\n");
		if (!*at || *at == '#')
			return n;
		if (n == MOST_WORDS)
			return -1;
		if (*at == '"') {
			end = strchr(++at, '"');
			if (!end)
				return -1;
		} else {
			end = at + strcspn(at, " \t\r\n#");
		}
		words[n++] = at;
		at = end + (*end != '\0' && *end != '#');
		if (*end == '#')
			*at = '\0';
		*end = '\0';
	}
}

static int number(const char *text, int base, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, base);
	return errno || end == text || *end || *text == '-' || *value < least || *value > most ?
	       -EINVAL : 0;
}

static bool is_hex(const char *text)
{
	return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

static int fits(char *to, size_t size, const char *text)
{
	if (strlen(text) >= size || !*text)
		return -EINVAL;
	strcpy(to, text);
	return 0;
}

/* Room for one more; NULL without memory. */
static void *one_more(void **array, uint32_t *n, size_t size)
{
	void *more = realloc(*array, (*n + 1) * size);

	if (!more)
		return NULL;
	*array = more;
	more = (char *)more + (*n)++ * size;
	memset(more, 0, size);
	return more;
}

static int add_rule(struct pftree_policy *policy, char **words, int n)
{
	struct pftree_rule *rule = one_more((void **)&policy->rules, &policy->n_rules,
					    sizeof(*rule));
	uint64_t value;
	int i;

	if (!rule)
		return -ENOMEM;
	if (n < 3 || n > 4)
		return -EINVAL;
	if (is_hex(words[1])) {
		if (number(words[1], 16, 1, 0xffff, &value) || !(value & 0x7fff))
			return -EINVAL;
		rule->pkey = value & 0x7fff;
	} else if (fits(rule->name, sizeof(rule->name), words[1])) {
		return -EINVAL;
	}
	for (i = PFTREE_PHY; i >= 0 && strcmp(words[2], isolations[i]); i--)
		;
	if (i < 0)
		return -EINVAL;
	rule->isolation = i;
	if (n == 3)
		return 0;
	if (i != PFTREE_PHY || strncmp(words[3], "links=", 6) ||
	    number(words[3] + 6, 10, 1, 254, &value))
		return -EINVAL;
	rule->links = value;
	return 0;
}

static int add_weight(struct pftree_policy *policy, char **words, int n)
{
	struct pftree_weight *weight = one_more((void **)&policy->weights, &policy->n_weights,
						sizeof(*weight));
	uint64_t value;

	if (!weight)
		return -ENOMEM;
	if (n != 3 || number(words[2], 10, 1, 100, &value))
		return -EINVAL;
	weight->weight = value;
	if (!is_hex(words[1]))
		return fits(weight->name, sizeof(weight->name), words[1]);
	return number(words[1], 16, 1, UINT64_MAX, &weight->guid);
}

struct reading {
	struct pftree_policy *policy;
	char text[200];		/* of the line at hand, for a person */
};

static int parse_line(char *line, void *arg)
{
	struct reading *r = arg;
	struct pftree_policy *policy = r->policy;
	char *words[MOST_WORDS];
	int n;

	line[strcspn(line, "\n")] = '\0';
	snprintf(r->text, sizeof(r->text), "%.*s", (int)sizeof(r->text) - 1, line);
	n = split(line, words);
	if (!n)
		return 0;
	if (n == 1 && (!strcmp(words[0], "strict") || !strcmp(words[0], "best-effort"))) {
		policy->strict = words[0][0] == 's';
		return 0;
	}
	if (n > 0 && !strcmp(words[0], "partition"))
		return add_rule(policy, words, n);
	if (n > 0 && !strcmp(words[0], "weight"))
		return add_weight(policy, words, n);
	return -EINVAL;
}

/**
 * pftree_policy_read - a file
 * @policy: filled in; for pftree_policy_free()
 * @path: of the file; empty: there is none, and nothing is wanted
 * @why: the reason of a failure, for a person
 * @size: of @why
 *
 * Return: 0 or a negative error number.
 */
int pftree_policy_read(struct pftree_policy *policy, const char *path, char *why, size_t size)
{
	struct reading r = { .policy = policy };
	unsigned int at;
	int rc;

	*policy = (struct pftree_policy) { 0 };
	if (!*path)
		return 0;
	rc = rsm_lines(path, parse_line, &r, &at);
	if (!rc)
		return 0;
	if (at)
		snprintf(why, size, "%s:%u: not understood: %s (want strict, best-effort, partition "
			 "NAME|P_KEY phy|vlane|def [links=N], or weight NODE|PORT_GUID 1..100)", path,
			 at, r.text);
	else
		snprintf(why, size, "%s: %s", path, strerror(-rc));
	pftree_policy_free(policy);
	return rc;
}

/** pftree_policy_free - all that pftree_policy_read() has filled in */
void pftree_policy_free(struct pftree_policy *policy)
{
	free(policy->rules);
	free(policy->weights);
	*policy = (struct pftree_policy) { 0 };
}
