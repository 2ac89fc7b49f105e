// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Who uses which link between switches, and who may use it as well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftree.h"

/** pftree_use_clear - nobody uses anything */
void pftree_use_clear(struct pftree *p)
{
	for (uint32_t i = 0; i < p->n_links; i++) {
		p->links[i].n_users = 0;
		p->links[i].n_hard = 0;
		p->links[i].routes = 0;
		p->links[i].weight = 0;
	}
	memset(p->pairs, 0, (size_t)p->n_parts * p->n_parts * sizeof(*p->pairs));
	memset(p->marks, 0, (size_t)p->topo->n_switches * p->n_parts * sizeof(*p->marks));
}

static struct pftree_user *user_of(const struct pftree_link *link, uint32_t part)
{
	for (uint32_t i = 0; i < link->n_users; i++)
		if (link->users[i].part == part)
			return &link->users[i];
	return NULL;
}

/** pftree_uses - whether a partition uses a link */
bool pftree_uses(const struct pftree_link *link, uint32_t part)
{
	return user_of(link, part);
}

static void pair(struct pftree *p, uint32_t one, uint32_t other, int by)
{
	uint32_t *there = &p->pairs[one * (size_t)p->n_parts + other];
	uint32_t *back = &p->pairs[other * (size_t)p->n_parts + one];

	if (!*there && (p->parts[one].isolation == PFTREE_VLANE ||
			p->parts[other].isolation == PFTREE_VLANE))
		p->tightened = true;
	*there += by;
	*back = *there;
}

/**
 * pftree_use_add - a demand of a partition goes over a link
 * @p: the work
 * @sw: index of the switch that it leaves
 * @port: by that one
 * @part: index of the partition
 *
 * Return: 0 or -ENOMEM.
 */
int pftree_use_add(struct pftree *p, uint32_t sw, uint32_t port, uint32_t part)
{
	struct pftree_link *link = pftree_link_at(p, sw, port);
	struct pftree_user *user = user_of(link, part);

	if (!user) {
		if (link->n_users == link->room) {
			void *more = realloc(link->users, (2 * link->room + 2) * sizeof(*user));

			if (!more)
				return -ENOMEM;
			link->users = more;
			link->room = 2 * link->room + 2;
		}
		for (uint32_t i = 0; i < link->n_users; i++)
			pair(p, part, link->users[i].part, 1);
		user = &link->users[link->n_users++];
		*user = (struct pftree_user) { part, 0 };
		link->n_hard += p->parts[part].isolation != PFTREE_DEF;
	}
	user->count++;
	p->marks[p->topo->switches[sw].ports[port].peer * (size_t)p->n_parts + part]++;
	return 0;
}

/** pftree_use_drop - takes one pftree_use_add() back */
void pftree_use_drop(struct pftree *p, uint32_t sw, uint32_t port, uint32_t part)
{
	struct pftree_link *link = pftree_link_at(p, sw, port);
	struct pftree_user *user = user_of(link, part);

	p->marks[p->topo->switches[sw].ports[port].peer * (size_t)p->n_parts + part]--;
	if (--user->count)
		return;
	link->n_hard -= p->parts[part].isolation != PFTREE_DEF;
	*user = link->users[--link->n_users];
	for (uint32_t i = 0; i < link->n_users; i++)
		pair(p, part, link->users[i].part, -1);
}

/** pftree_clash - whether two partitions must not share a link as things stand */
bool pftree_clash(const struct pftree *p, uint32_t one, uint32_t other)
{
	const struct pftree_part *a = &p->parts[one], *b = &p->parts[other];

	if (one == other || (a->isolation == PFTREE_DEF && b->isolation == PFTREE_DEF))
		return false;
	if (a->isolation == PFTREE_PHY || b->isolation == PFTREE_PHY)
		return true;
	return a->lane != PFTREE_NO_LANE && a->lane == b->lane;
}

/** pftree_may_use - whether a partition may use a link beside those that do */
bool pftree_may_use(const struct pftree *p, const struct pftree_link *link, uint32_t part)
{
	if (p->parts[part].isolation == PFTREE_DEF && !link->n_hard)
		return true;
	for (uint32_t i = 0; i < link->n_users; i++)
		if (pftree_clash(p, part, link->users[i].part))
			return false;
	return true;
}

/* What two partitions on a link keep of what is wanted of them. */
static bool keeps_wish(const struct pftree *p, uint32_t one, uint32_t other)
{
	const struct pftree_part *a = &p->parts[one], *b = &p->parts[other];

	if (a->wanted == PFTREE_PHY || b->wanted == PFTREE_PHY)
		return false;
	return (a->wanted == PFTREE_DEF && b->wanted == PFTREE_DEF) || a->lane != b->lane;
}

/**
 * pftree_shared - look for two partitions that share a link against what is wanted
 * @p: the tables are made, and their users counted
 * @one: in: the partition that it is to be about; its index
 * @other: out: the one that it shares with
 * @where: out: the link, for a person
 * @size: of @where
 *
 * Return: whether there are any.
 */
bool pftree_shared(const struct pftree *p, uint32_t one, uint32_t *other, char *where, size_t size)
{
	for (uint32_t i = 0; i < p->n_parts; i++) {
		if (!p->meet[one * p->n_parts + i] || keeps_wish(p, one, i))
			continue;
		*other = i;
		snprintf(where, size, "the cable of a host that is in both");
		return true;
	}
	for (uint32_t sw = 0; sw < p->topo->n_switches; sw++) {
		for (unsigned int port = 1; port < p->topo->switches[sw].n_ports; port++) {
			const struct pftree_link *link = pftree_link_at(p, sw, port);

			if (link->n_users < 2 || !pftree_uses(link, one))
				continue;
			for (uint32_t u = 0; u < link->n_users; u++) {
				*other = link->users[u].part;
				if (*other == one || keeps_wish(p, one, *other))
					continue;
				snprintf(where, size, "port %u of %s", port,
					 p->topo->switches[sw].name);
				return true;
			}
		}
	}
	return false;
}
